//! Configuration of members, projects and keys, in variables of the worker.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::str::FromStr;

use capo_api::{DailyLimits, MemberName, Role};
use capo_core::ids::hex;
use capo_gateway::{DEFAULT_MAX_BODY, DEFAULT_RATE, Limits, NanoUsd, SharedKey};
use capo_hosted::RUNS_OF_MEMBER;
use capo_models::Secret;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;
use worker::Env;
use worker::js_sys::Reflect;

/// All of it, checked.
#[derive(Debug)]
pub(crate) struct Configuration {
    members: BTreeMap<String, Member>,
    projects: BTreeMap<String, Limited>,
    keys: BTreeMap<String, Key>,
    /// The most bytes of a request's body.
    pub(crate) max_body: usize,
    /// Requests a second of each token and address; without it as many as they like.
    pub(crate) rate: Option<NonZeroU32>,
    /// Runs of one member at a time.
    pub(crate) runs_per_member: u32,
}

/// A member, as in `MEMBERS` by name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Member {
    /// The SHA-256 of the member's token, in hexadecimal digits.
    token_sha256: String,
    /// Whether they see what everybody uses.
    #[serde(default)]
    pub(crate) is_admin: bool,
    /// Their roles in projects, by name.
    #[serde(default)]
    pub(crate) projects: BTreeMap<String, Role>,
    #[serde(default)]
    limits: DailyLimits,
}

/// A project, as in `PROJECTS` by name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limited {
    #[serde(default)]
    limits: DailyLimits,
}

/// A provider's key, as in `KEYS` by name; further members are those of a [`capo_gateway::KeyRecord`].
#[derive(Debug, Deserialize)]
struct KeyTable {
    secret: String,
    #[serde(default)]
    limits: DailyLimits,
    #[serde(flatten)]
    record: Map<String, Value>,
}

/// A key that was checked.
#[derive(Debug)]
pub(crate) struct Key {
    /// What the gate knows of it.
    pub(crate) shared: SharedKey,
    /// The secret of the worker that holds it.
    secret: String,
    limits: DailyLimits,
}

impl Configuration {
    /// Reads the worker's variables.
    ///
    /// # Errors
    /// Which of them is wrong, and why; nothing secret is in it.
    pub(crate) fn read(env: &Env) -> Result<Self, String> {
        let mut keys = BTreeMap::new();
        for (name, mut table) in variable::<BTreeMap<String, KeyTable>>(env, "KEYS")? {
            table.record.insert("id".into(), name.clone().into());
            let shared = serde_json::from_value(Value::Object(table.record));
            let key = Key {
                shared: shared.map_err(|error| format!("KEYS, of {name}: {error}"))?,
                secret: table.secret,
                limits: table.limits,
            };
            keys.insert(name, key);
        }
        let read = Self {
            members: variable(env, "MEMBERS")?,
            projects: variable(env, "PROJECTS")?,
            keys,
            max_body: whole(env, "MAX_BODY", "bytes")?.unwrap_or(DEFAULT_MAX_BODY),
            rate: NonZeroU32::new(whole(env, "RATE", "requests a second")?.unwrap_or(DEFAULT_RATE)),
            runs_per_member: whole(env, "RUNS_PER_MEMBER", "runs")?.unwrap_or(RUNS_OF_MEMBER),
        };
        read.check()?;
        Ok(read)
    }

    /// Refuses what would silently let somebody in, or be without the limit that is meant.
    fn check(&self) -> Result<(), String> {
        let mut known = BTreeSet::from(["", "capo_"].map(hash));
        for (name, member) in &self.members {
            // Under another name nobody could sign in on the page.
            if MemberName::try_from(name.clone()).map_or(true, |valid| valid.as_str() != name) {
                return Err(format!(
                    "MEMBERS: `{name}` is no name of a member; write small letters, digits and . _ - @ +"
                ));
            }
            if !known.insert(member.token_sha256.clone()) {
                return Err(format!(
                    "MEMBERS, of {name}: `token_sha256` is another member's, or that of an empty token"
                ));
            }
            let is_hash = |text: &str| {
                text.len() == 64
                    && text
                        .bytes()
                        .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
            };
            if !is_hash(&member.token_sha256) {
                return Err(format!(
                    "MEMBERS, of {name}: `token_sha256` is no SHA-256 in small hexadecimal digits"
                ));
            }
        }
        let of_members = self.members.values().flat_map(|member| member.projects.keys());
        let of_keys = self.keys.values().flat_map(|key| &key.shared.record().projects);
        if let Some(project) = of_members
            .chain(of_keys)
            .find(|name| !self.projects.contains_key(*name))
        {
            return Err(format!(
                "PROJECTS: there is no `{project}`, which members or keys name"
            ));
        }
        let of_members = self.members.values().map(|member| member.limits);
        let of_projects = self.projects.values().map(|project| project.limits);
        let of_keys = self.keys.values().map(|key| key.limits);
        let mut all = of_members.chain(of_projects).chain(of_keys);
        match all.find_map(|limits| limits.usd.filter(|usd| NanoUsd::from_usd(*usd).is_none())) {
            Some(usd) => Err(format!("with the limit of {usd} dollars: a limit is 0 or more")),
            None => Ok(()),
        }
    }

    /// The same for an object, whose failure the log has.
    pub(crate) fn of(env: &Env) -> worker::Result<Self> {
        Self::read(env).map_err(|error| worker::Error::RustError(format!("the variable {error}")))
    }

    /// Whose token this is, with their name. Hashes are compared, in a time that tells nothing of where they differ.
    pub(crate) fn member(&self, token: &str) -> Option<(&str, &Member)> {
        let hash = hash(token);
        let found = self
            .members
            .iter()
            .find(|(_, member)| member.token_sha256.as_bytes().ct_eq(hash.as_bytes()).into());
        found.map(|(name, member)| (name.as_str(), member))
    }

    /// The member of a name.
    pub(crate) fn named(&self, name: &str) -> Option<&Member> {
        self.members.get(name)
    }

    /// The keys that a project may use.
    pub(crate) fn keys_of(&self, project: &str) -> impl Iterator<Item = &SharedKey> {
        let keys = self.keys.values().map(|key| &key.shared);
        keys.filter(move |key| key.is_shared_with(project))
    }

    /// The key of a name.
    pub(crate) fn key(&self, name: &str) -> Option<&Key> {
        self.keys.get(name)
    }

    /// What may be used in a day by a member, a project and a key.
    pub(crate) fn limits(&self, member: &Member, project: &str, key: &Key) -> [Limits; 3] {
        let of_project = self.projects.get(project).map(|project| project.limits);
        [member.limits, of_project.unwrap_or_default(), key.limits].map(|limits| Limits {
            usd_per_day: limits.usd.and_then(NanoUsd::from_usd),
            requests_per_day: limits.requests,
        })
    }
}

impl Key {
    /// The key itself, if the worker has it.
    pub(crate) fn secret(&self, env: &Env) -> Option<Secret> {
        let secret = env.secret(&self.secret).ok()?;
        Some(Secret::new(secret.to_string()))
    }

    /// The name of the secret that holds it.
    pub(crate) fn secret_name(&self) -> &str {
        &self.secret
    }
}

/// A variable that is a JSON object.
fn variable<T: DeserializeOwned>(env: &Env, name: &str) -> Result<T, String> {
    let value: Value = env.object_var(name).map_err(|error| format!("{name}: {error}"))?;
    serde_json::from_value(value).map_err(|error| format!("{name}: {error}"))
}

/// A variable that is a number, if it is stated; one that is no text is not to be passed over as if it were not.
fn whole<T: FromStr>(env: &Env, name: &str, of: &str) -> Result<Option<T>, String> {
    let stated = Reflect::get(env, &name.into()).unwrap_or_default();
    if stated.is_undefined() {
        return Ok(None);
    }
    let number = stated.as_string().and_then(|text| text.parse().ok());
    number
        .map(Some)
        .ok_or_else(|| format!("{name}: no number of {of}, as text"))
}

/// SHA-256 of a token, in small hexadecimal digits.
pub(crate) fn hash(token: &str) -> String {
    hex(&Sha256::digest(token.as_bytes()))
}
