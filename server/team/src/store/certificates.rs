//! Certificates of what runs tested, kept so that no journal need be read for it.

use std::collections::{BTreeMap, BTreeSet};

use capo_api::{RunOrigin, VersionNamed};
use capo_core::certificate::Certificate;
use capo_core::reading::certificates;
use capo_core::run_state::RunState;
use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, Row};

use super::columns::{number, written};
use super::{Millis, Project, Store, StoreError, count};

/// Letters of a prompt that are kept beside its certificate.
const BEGINNING: usize = 100;

/// Texts whose versions one statement looks for.
const TEXTS: usize = 500;

/// A prompt that a run tested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tested {
    /// How its text begins.
    pub beginning: String,
    /// What the test said.
    pub certificate: Certificate,
}

impl Tested {
    /// All that a journal says, in the order in which it was tested.
    pub fn all(state: &RunState) -> Vec<Self> {
        let tested = certificates::all(state).into_iter().map(|certificate| {
            let candidate = state.candidate(&certificate.candidate);
            let text = candidate.map_or("", |candidate| &*candidate.prompt);
            Self {
                beginning: text.chars().take(BEGINNING).collect(),
                certificate,
            }
        });
        tested.collect()
    }
}

/// A run that tested something, or may have.
#[derive(Debug, Clone, PartialEq)]
pub struct TestingRun {
    /// 32 hexadecimal digits.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// When its journal or its stage last changed.
    pub touched_at: Millis,
    /// What it tested; `None` where only its journal knows.
    pub tested: Option<Vec<Tested>>,
}

impl Store {
    /// The runs of a project that tested something or may have, those that changed last first; or those that come after one
    /// that changed then and has this id. What has not come to an end tested nothing, unless it was pushed so.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn testing_runs(
        &self,
        project: &Project,
        before: Option<(Millis, &str)>,
        most: u32,
    ) -> Result<Vec<TestingRun>, StoreError> {
        let (at, id) = before.unwrap_or((Millis::MAX, ""));
        let rows = sqlx::query(
            "SELECT id, name, touched_at, certificates FROM runs WHERE project = $1 \
             AND (certificates <> '[]' OR (certificates IS NULL AND study LIKE '%confirm%' \
             AND (status IS NOT NULL OR origin = $2))) \
             AND (touched_at < $3 OR (touched_at = $3 AND id < $4)) \
             ORDER BY touched_at DESC, id DESC LIMIT $5",
        )
        .bind(&project.id)
        .bind(written(&RunOrigin::Pushed))
        .bind(at)
        .bind(id)
        .bind(i64::from(most))
        .fetch_all(&self.read)
        .await?;
        let runs = rows.iter().map(|row| {
            let tested: Option<String> = row.try_get("certificates")?;
            let unreadable = |error| StoreError::Unreadable(format!("certificates: {error}"));
            Ok(TestingRun {
                id: row.try_get("id")?,
                name: row.try_get("name")?,
                touched_at: row.try_get("touched_at")?,
                tested: tested
                    .map(|text| serde_json::from_str(&text))
                    .transpose()
                    .map_err(unreadable)?,
            })
        });
        runs.collect()
    }

    /// Keeps what a journal of so many lines says was tested, unless it has more of them by now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn note_tested(&self, run: &str, lines: usize, tested: &[Tested]) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE runs SET certificates = $1 WHERE id = $2 AND lines = $3 AND certificates IS NULL",
        )
        .bind(written(&tested))
        .bind(run)
        .bind(number(lines))
        .execute(&self.write)
        .await?;
        Ok(())
    }

    /// The versions of a project's prompts that have one of these texts, all by SHA-256.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn versions_by_text(
        &self,
        project: &Project,
        texts: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, Vec<VersionNamed>>, StoreError> {
        let texts: Vec<&String> = texts.iter().collect();
        let mut versions: BTreeMap<String, Vec<VersionNamed>> = BTreeMap::new();
        for texts in texts.chunks(TEXTS) {
            let named: Vec<String> = (0..texts.len()).map(|index| format!("${}", index + 2)).collect();
            let statement = format!(
                "SELECT prompt_versions.sha256, prompts.name, prompt_versions.number FROM prompt_versions \
                 JOIN prompts ON prompts.id = prompt_versions.prompt \
                 WHERE prompts.project = $1 AND prompt_versions.sha256 IN ({}) \
                 ORDER BY prompts.name, prompt_versions.number",
                named.join(", ")
            );
            let mut query = sqlx::query(AssertSqlSafe(statement)).bind(&project.id);
            for text in texts {
                query = query.bind(*text);
            }
            for row in &query.fetch_all(&self.read).await? {
                let of_text = versions.entry(row.try_get("sha256")?).or_default();
                of_text.push(VersionNamed {
                    prompt: row.try_get("name")?,
                    version: count(row, "number")?,
                });
            }
        }
        Ok(versions)
    }
}
