//! On what terms a member asks models with a key: all that must hold before a call leaves, read at once.

use capo_api::{Role, Scope as TokenScope};
use capo_gateway::{Limits, Scope};
use sqlx::{AssertSqlSafe, Row};

use super::limits::{ChargedTo, set_for};
use super::{Millis, Store, StoreError, StoredKey, word};
use crate::secret::Secret;

/// By what a member is known who asks.
#[derive(Debug)]
pub enum Proof {
    /// A personal token.
    Token(Secret),
    /// The secret of a session.
    Session(Secret),
    /// Their id, on whose account a run asks.
    Member(String),
}

/// What holds for a member who asks with a key, as of one moment.
#[derive(Debug)]
pub struct Terms {
    /// Id of the member.
    pub member: String,
    /// What the token may be used for.
    pub scope: TokenScope,
    /// Their projects by id and name, and their role in each; all of them, as their administrator, for who administers the
    /// server.
    pub projects: Vec<(String, String, Role)>,
    /// The key, if there is one.
    pub key: Option<StoredKey>,
    limits: Vec<(Scope, String, Limits)>,
}

impl Terms {
    /// The limits that a request counts towards: of the member, the project and the key.
    pub fn limits(&self, payers: &ChargedTo) -> [Limits; 3] {
        payers.all().map(|payer| {
            let mut limits = self.limits.iter();
            let found = limits.find(|(scope, subject, _)| (*scope, subject.as_str()) == payer);
            found.map(|(.., limits)| *limits).unwrap_or_default()
        })
    }
}

/// Who shows the hash `$2` of a secret at `$3`, as [`Store::token`] has it; then as [`Store::session`] has it, and by id.
const ASKING: [&str; 3] = [
    "members.id AS member, is_admin, tokens.id AS means, scope AS may, tokens.created_at, seen_at \
     FROM tokens JOIN members ON members.id = tokens.member WHERE secret = $2 AND expires_at > $3",
    "members.id AS member, is_admin, sessions.id AS means, 'write' AS may, sessions.created_at, seen_at \
     FROM sessions JOIN members ON members.id = sessions.member WHERE secret = $2 AND expires_at > $3",
    "id AS member, is_admin, '' AS means, 'write' AS may, created_at, created_at AS seen_at \
     FROM members WHERE id = $2",
];

/// Whose limits may count, a row for each. `name` and `content` are of the member what they show and what it is for, of
/// the key `$1` its record and what is sealed, of a project its name and their role.
const TERMS: &str = "\
    SELECT 'member' AS scope, member AS subject, means AS name, may AS content, created_at, seen_at, nano_usd, requests \
    FROM asking LEFT JOIN limits ON limits.scope = 'member' AND subject = member \
    UNION ALL SELECT 'key', keys.id, record, sealed, keys.created_at, NULL, nano_usd, requests \
    FROM asking JOIN keys ON keys.id = $1 LEFT JOIN limits ON limits.scope = 'key' AND subject = keys.id \
    UNION ALL SELECT 'project', projects.id, name, role, projects.created_at, NULL, nano_usd, requests \
    FROM asking JOIN roles ON roles.member = asking.member JOIN projects ON projects.id = roles.project \
    LEFT JOIN limits ON limits.scope = 'project' AND subject = projects.id WHERE is_admin = 0 \
    UNION ALL SELECT 'project', projects.id, name, 'admin', projects.created_at, NULL, nano_usd, requests \
    FROM asking CROSS JOIN projects \
    LEFT JOIN limits ON limits.scope = 'project' AND subject = projects.id WHERE is_admin = 1";

impl Store {
    /// On what terms somebody asks with a key, if they may sign in and what they show is valid now; notes that it was used.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn terms(&self, shown: &Proof, key: &str, now: Millis) -> Result<Option<Terms>, StoreError> {
        let (asking, shows) = match shown {
            Proof::Token(secret) => (ASKING[0], secret.hash()),
            Proof::Session(secret) => (ASKING[1], secret.hash()),
            Proof::Member(id) => (ASKING[2], id.clone()),
        };
        let statement = format!("WITH asking AS (SELECT {asking} AND disabled_at IS NULL) {TERMS}");
        let rows = sqlx::query(AssertSqlSafe(statement))
            .bind(key)
            .bind(shows)
            .bind(now)
            .fetch_all(&self.read)
            .await?;
        let (mut known, mut kept) = (None, None);
        let (mut projects, mut limits) = (Vec::new(), Vec::new());
        for row in &rows {
            let (scope, subject, set) = set_for(row)?;
            let (name, created_at): (String, Millis) = (row.try_get("name")?, row.try_get("created_at")?);
            match scope {
                Scope::Member => {
                    let seen_at = row.try_get("seen_at")?;
                    match shown {
                        Proof::Token(_) => self.touch_token(&name, seen_at, now).await,
                        Proof::Session(_) => self.touch_session(&name, created_at, seen_at, now).await,
                        Proof::Member(_) => {}
                    }
                    known = Some((subject.clone(), word(row, "content")?));
                }
                Scope::Project => projects.push((subject.clone(), name, word(row, "content")?)),
                Scope::Key => kept = Some(StoredKey::new(&name, row.try_get("content")?, created_at)?),
            }
            limits.push((scope, subject, set));
        }
        Ok(known.map(|(member, scope)| Terms {
            member,
            scope,
            projects,
            key: kept,
            limits,
        }))
    }
}
