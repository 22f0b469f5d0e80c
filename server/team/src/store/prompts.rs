//! Prompts for programs: their versions, the labels that are on these, and where the labels were before.

use std::collections::BTreeMap;

use capo_core::ids::CandidateId;
use capo_core::reading::evidence::Evidence;
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row, Transaction};

use super::columns::{ROWS, ROWS_AT_ONCE, number, rows};
use super::{Actor, Millis, Project, Store, StoreError, audit, count, optional_count, place, present};
use crate::secret;

/// A prompt as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// 32 hexadecimal digits.
    pub id: String,
    /// Id of its project.
    pub project: String,
    /// Its name in addresses.
    pub name: String,
    /// Its newest version.
    pub newest: u64,
    /// When a version was added or a label moved.
    pub touched_at: Millis,
}

/// A version of a prompt as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptVersion {
    /// Counts up from 1.
    pub number: u64,
    /// The prompt itself.
    pub text: String,
    /// SHA-256 of the text.
    pub sha256: String,
    /// SHA-256 of text and evidence together.
    pub fingerprint: String,
    /// What somebody says of it.
    pub note: Option<String>,
    /// Id of the run that it comes from.
    pub run: Option<String>,
    /// What the run says of it.
    pub evidence: Option<Evidence>,
    /// Who added it.
    pub created_by: String,
    /// When it was added.
    pub created_at: Millis,
}

/// A version that is to be kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AddedVersion {
    /// The prompt itself.
    pub text: String,
    /// What somebody says of it.
    pub note: Option<String>,
    /// Id of the run that it comes from, and what the run says of it.
    pub source: Option<(String, Evidence)>,
    /// Who made it elsewhere, and when; who adds it, now, unless stated.
    pub made: Option<(String, Millis)>,
}

/// A move of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Counts up from 1.
    pub number: u64,
    /// When it was moved.
    pub at: Millis,
    /// Who moved it.
    pub actor: String,
    /// The version before; `None` where there was no such label.
    pub from: Option<u64>,
    /// The version from then on; `None` where the label was taken away.
    pub to: Option<u64>,
}

impl Prompt {
    fn of(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            project: row.try_get("project")?,
            name: row.try_get("name")?,
            newest: count(row, "newest")?,
            touched_at: row.try_get("touched_at")?,
        })
    }
}

impl PromptVersion {
    fn of(row: &AnyRow) -> Result<Self, StoreError> {
        let sha256: String = row.try_get("sha256")?;
        let evidence: Option<String> = row.try_get("evidence")?;
        let seen = format!("{sha256}\n{}", evidence.as_deref().unwrap_or_default());
        let unreadable = |error| StoreError::Unreadable(format!("evidence: {error}"));
        Ok(Self {
            number: count(row, "number")?,
            text: row.try_get("body")?,
            sha256,
            fingerprint: secret::sha256(seen.as_bytes()),
            note: row.try_get("note")?,
            run: row.try_get("run")?,
            evidence: evidence
                .map(|text| serde_json::from_str(&text))
                .transpose()
                .map_err(unreadable)?,
            created_by: row.try_get("created_by")?,
            created_at: row.try_get("created_at")?,
        })
    }

    /// Whether to add this would say nothing new: the text is the same, and no run says of it what it did not say before.
    fn has_all_of(&self, new: &AddedVersion) -> bool {
        let known = self.run.as_ref().zip(self.evidence.as_ref());
        let told = new.source.as_ref().map(|(run, evidence)| (run, evidence));
        self.text == new.text && (told.is_none() || told == known)
    }
}

impl Moved {
    fn of(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            number: count(row, "number")?,
            at: row.try_get("at")?,
            actor: row.try_get("actor")?,
            from: optional_count(row, "from_version")?,
            to: optional_count(row, "to_version")?,
        })
    }
}

const VERSION: &str = "SELECT * FROM prompt_versions WHERE prompt = $1 AND number = $2";

impl Store {
    /// The prompts of a project, by name, each with the versions that its labels are on.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn prompts(
        &self,
        project: &Project,
    ) -> Result<Vec<(Prompt, BTreeMap<String, u64>)>, StoreError> {
        let rows = sqlx::query("SELECT * FROM prompts WHERE project = $1 ORDER BY name")
            .bind(&project.id)
            .fetch_all(&self.read)
            .await?;
        let labelled = sqlx::query(
            "SELECT labels.* FROM labels JOIN prompts ON prompts.id = labels.prompt WHERE prompts.project = $1",
        )
        .bind(&project.id)
        .fetch_all(&self.read)
        .await?;
        let mut labels: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for row in &labelled {
            let of_prompt = labels.entry(row.try_get("prompt")?).or_default();
            of_prompt.insert(row.try_get("name")?, count(row, "version")?);
        }
        let prompts = rows.iter().map(|row| {
            let prompt = Prompt::of(row)?;
            let labels = labels.remove(&prompt.id).unwrap_or_default();
            Ok((prompt, labels))
        });
        prompts.collect()
    }

    /// A prompt of a project by its name.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn prompt(&self, project: &Project, name: &str) -> Result<Prompt, StoreError> {
        let row = sqlx::query("SELECT * FROM prompts WHERE project = $1 AND name = $2")
            .bind(&project.id)
            .bind(name)
            .fetch_optional(&self.read)
            .await?;
        Prompt::of(&present(row, "prompt")?)
    }

    /// Keeps a version of a prompt, and with the first one the prompt. Returns it, and whether it is new: what the newest
    /// version says already is not kept twice.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn add_prompt_version(
        &self,
        actor: &Actor,
        project: &Project,
        name: &str,
        new: &AddedVersion,
    ) -> Result<(PromptVersion, bool), StoreError> {
        let mut transaction = self.begin().await?;
        // Two at once would have one number: the second waits for the row.
        let row = sqlx::query(
            "INSERT INTO prompts (id, project, name, newest, touched_at) VALUES ($1, $2, $3, 0, $4) \
             ON CONFLICT (project, name) DO UPDATE SET touched_at = excluded.touched_at RETURNING *",
        )
        .bind(secret::id())
        .bind(&project.id)
        .bind(name)
        .bind(actor.at)
        .fetch_one(&mut *transaction)
        .await?;
        let prompt = Prompt::of(&row)?;
        let newest = version(&mut transaction, &prompt, prompt.newest).await?;
        if let Some(newest) = newest.filter(|newest| newest.has_all_of(new)) {
            transaction.rollback().await?;
            return Ok((newest, false));
        }
        let next = prompt.newest + 1;
        let (by, at) = match &new.made {
            Some((by, at)) => (by, *at),
            None => (&actor.name, actor.at),
        };
        let (run, evidence) = new.source.as_ref().map(|(run, evidence)| (run, evidence)).unzip();
        let evidence = evidence.map(|evidence| serde_json::to_string(evidence).expect("evidence is plain"));
        sqlx::query(
            "INSERT INTO prompt_versions (prompt, number, body, sha256, note, run, evidence, created_by, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(&prompt.id)
        .bind(number(next))
        .bind(&new.text)
        .bind(CandidateId::of(&new.text).to_string())
        .bind(&new.note)
        .bind(run)
        .bind(evidence)
        .bind(by)
        .bind(at)
        .execute(&mut *transaction)
        .await?;
        sqlx::query("UPDATE prompts SET newest = $1 WHERE id = $2")
            .bind(number(next))
            .bind(&prompt.id)
            .execute(&mut *transaction)
            .await?;
        let subject = format!("{name} {next}");
        audit::write(&mut transaction, actor, "prompt.add", &subject, Some(&project.id)).await?;
        transaction.commit().await?;
        Ok((self.prompt_version(&prompt, next).await?, true))
    }

    /// A version of a prompt.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn prompt_version(&self, prompt: &Prompt, version: u64) -> Result<PromptVersion, StoreError> {
        let row = sqlx::query(VERSION)
            .bind(&prompt.id)
            .bind(number(version))
            .fetch_optional(&self.read)
            .await?;
        PromptVersion::of(&present(row, "version")?)
    }

    /// The versions of a prompt, the newest first; or those before one of a number.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn prompt_versions(
        &self,
        prompt: &Prompt,
        before: Option<u64>,
        most: u32,
    ) -> Result<Vec<PromptVersion>, StoreError> {
        let rows = sqlx::query(
            "SELECT * FROM prompt_versions WHERE prompt = $1 AND number < $2 ORDER BY number DESC LIMIT $3",
        )
        .bind(&prompt.id)
        .bind(before.map_or(i64::MAX, number))
        .bind(i64::from(most))
        .fetch_all(&self.read)
        .await?;
        rows.iter().map(PromptVersion::of).collect()
    }

    /// Deletes a prompt with its versions and labels. Its lines of the audit log stay.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn delete_prompt(&self, actor: &Actor, prompt: &Prompt) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let deleted = sqlx::query("DELETE FROM prompts WHERE id = $1")
            .bind(&prompt.id)
            .execute(&mut *transaction)
            .await?;
        if deleted.rows_affected() == 0 {
            return Err(StoreError::Missing("prompt"));
        }
        let project = Some(prompt.project.as_str());
        audit::write(&mut transaction, actor, "prompt.delete", &prompt.name, project).await?;
        Ok(transaction.commit().await?)
    }
}

/// A version as a transaction sees it.
async fn version(
    transaction: &mut Transaction<'static, Any>,
    prompt: &Prompt,
    version: u64,
) -> Result<Option<PromptVersion>, StoreError> {
    let row = sqlx::query(VERSION)
        .bind(&prompt.id)
        .bind(number(version))
        .fetch_optional(&mut **transaction)
        .await?;
    row.as_ref().map(PromptVersion::of).transpose()
}

/// Labels.
impl Store {
    /// The version that each label of a prompt is on.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn labels(&self, prompt: &Prompt) -> Result<BTreeMap<String, u64>, StoreError> {
        let rows = sqlx::query("SELECT name, version FROM labels WHERE prompt = $1")
            .bind(&prompt.id)
            .fetch_all(&self.read)
            .await?;
        rows.iter()
            .map(|row| Ok((row.try_get("name")?, count(row, "version")?)))
            .collect()
    }

    /// Moves a label to a version, or takes it away. Where `was` says on which version it is, 0 for none, it is not moved
    /// from another one. One that is there already stays as it is.
    ///
    /// # Errors
    /// When it is on another version, there is no such version or no such label to take away, or the database fails.
    pub async fn move_label(
        &self,
        actor: &Actor,
        prompt: &Prompt,
        label: &str,
        to: Option<u64>,
        was: Option<u64>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        // One at a time; the second sees where the first left the label.
        let touched = sqlx::query("UPDATE prompts SET touched_at = $1 WHERE id = $2")
            .bind(actor.at)
            .bind(&prompt.id)
            .execute(&mut *transaction)
            .await?;
        if touched.rows_affected() == 0 {
            return Err(StoreError::Missing("prompt"));
        }
        let row = sqlx::query("SELECT version FROM labels WHERE prompt = $1 AND name = $2")
            .bind(&prompt.id)
            .bind(label)
            .fetch_optional(&mut *transaction)
            .await?;
        let from = row.as_ref().map(|row| count(row, "version")).transpose()?;
        if was.is_some_and(|was| was != from.unwrap_or(0)) {
            return Err(StoreError::LabelMoved {
                label: label.to_owned(),
                version: from,
            });
        }
        if from == to {
            transaction.rollback().await?;
            return to.map(|_| ()).ok_or(StoreError::Missing("label"));
        }
        let action = if let Some(to) = to {
            let there = version(&mut transaction, prompt, to).await?;
            there.ok_or(StoreError::Missing("version"))?;
            "label.move"
        } else {
            "label.remove"
        };
        write_move(
            &mut transaction,
            prompt,
            label,
            (actor.name.as_str(), actor.at),
            (from, to),
        )
        .await?;
        let subject = format!("{} {label}: {} to {}", prompt.name, place(from), place(to));
        audit::write(&mut transaction, actor, action, &subject, Some(&prompt.project)).await?;
        Ok(transaction.commit().await?)
    }

    /// Keeps moves of a prompt's labels that were made elsewhere, each label's in order, and puts the labels where they end;
    /// it has none of either yet. They are counted anew.
    ///
    /// # Errors
    /// When a label ends on a version that there is not, or the database fails; a part of them may be kept then.
    pub async fn import_label_moves(
        &self,
        actor: &Actor,
        prompt: &Prompt,
        moves: &[(String, Moved)],
    ) -> Result<(), StoreError> {
        let mut numbers: BTreeMap<&str, i64> = BTreeMap::new();
        for moves in moves.chunks(ROWS_AT_ONCE) {
            let mut transaction = self.begin().await?;
            for moves in moves.chunks(ROWS) {
                let values = rows(moves.len(), 6);
                let statement = format!(
                    "INSERT INTO label_moves (prompt, label, number, at, actor, from_version, to_version) \
                     VALUES {values}"
                );
                let mut query = sqlx::query(AssertSqlSafe(statement)).bind(&prompt.id);
                for (label, moved) in moves {
                    let last = numbers.entry(label.as_str()).or_default();
                    *last += 1;
                    query = query
                        .bind(label)
                        .bind(*last)
                        .bind(moved.at)
                        .bind(&moved.actor)
                        .bind(moved.from.map(number))
                        .bind(moved.to.map(number));
                }
                query.execute(&mut *transaction).await?;
            }
            transaction.commit().await?;
        }
        let mut transaction = self.begin().await?;
        sqlx::query(
            "INSERT INTO labels (prompt, name, version) SELECT prompt, label, to_version FROM label_moves AS moves \
             WHERE prompt = $1 AND to_version IS NOT NULL AND number = \
             (SELECT MAX(number) FROM label_moves WHERE prompt = moves.prompt AND label = moves.label)",
        )
        .bind(&prompt.id)
        .execute(&mut *transaction)
        .await?;
        let subject = format!("{}: {} moves of another server", prompt.name, moves.len());
        let project = Some(prompt.project.as_str());
        audit::write(&mut transaction, actor, "label.import", &subject, project).await?;
        Ok(transaction.commit().await?)
    }

    /// All moves of a prompt's labels, label by label, the first before others.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn all_label_moves(&self, prompt: &Prompt) -> Result<Vec<(String, Moved)>, StoreError> {
        let rows = sqlx::query("SELECT * FROM label_moves WHERE prompt = $1 ORDER BY label, number")
            .bind(&prompt.id)
            .fetch_all(&self.read)
            .await?;
        rows.iter()
            .map(|row| Ok((row.try_get("label")?, Moved::of(row)?)))
            .collect()
    }

    /// The moves of a label, the latest first; or those before one of a number.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn label_moves(
        &self,
        prompt: &Prompt,
        label: &str,
        before: Option<u64>,
        most: u32,
    ) -> Result<Vec<Moved>, StoreError> {
        let rows = sqlx::query(
            "SELECT * FROM label_moves WHERE prompt = $1 AND label = $2 AND number < $3 \
             ORDER BY number DESC LIMIT $4",
        )
        .bind(&prompt.id)
        .bind(label)
        .bind(before.map_or(i64::MAX, number))
        .bind(i64::from(most))
        .fetch_all(&self.read)
        .await?;
        rows.iter().map(Moved::of).collect()
    }
}

/// Puts a label where a move leaves it, and writes the move as the label's next.
async fn write_move(
    transaction: &mut Transaction<'static, Any>,
    prompt: &Prompt,
    label: &str,
    (actor, at): (&str, Millis),
    (from, to): (Option<u64>, Option<u64>),
) -> Result<(), StoreError> {
    let placed = match to {
        Some(to) => sqlx::query(
            "INSERT INTO labels (prompt, name, version) VALUES ($1, $2, $3) \
             ON CONFLICT (prompt, name) DO UPDATE SET version = excluded.version",
        )
        .bind(&prompt.id)
        .bind(label)
        .bind(number(to)),
        None => sqlx::query("DELETE FROM labels WHERE prompt = $1 AND name = $2")
            .bind(&prompt.id)
            .bind(label),
    };
    placed.execute(&mut **transaction).await?;
    sqlx::query(
        "INSERT INTO label_moves (prompt, label, number, at, actor, from_version, to_version) \
         SELECT $1, $2, COALESCE(MAX(number), 0) + 1, $3, $4, $5, $6 FROM label_moves \
         WHERE prompt = $1 AND label = $2",
    )
    .bind(&prompt.id)
    .bind(label)
    .bind(at)
    .bind(actor)
    .bind(from.map(number))
    .bind(to.map(number))
    .execute(&mut **transaction)
    .await?;
    Ok(())
}
