//! The list of runs, and the files and texts that belong to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use capo_core::journal::Status;
use capo_core::reading::progress::{Progress, Times};
use capo_core::run_state::RunState;
use idb::{Query, TransactionMode};
use js_sys::{Array, JsString};
use serde::{Deserialize, Serialize};
use wasm_bindgen::JsValue;

use super::mirror::ServerRun;
use super::notes::Notes;
use super::{Backend, FILES, LINES, RUNS, SLIM, Storage, StorageError, VAULT, all_of, key};
use crate::format;

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It goes on in a tab, or that tab was closed in the middle.
    Running,
    /// A person paused it.
    Paused,
    /// It ended so.
    Ended(Status),
}

/// A prompt that another run returned, to be measured under this run's models beside the seed prompt, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The other run.
    pub of: String,
    /// Its prompt.
    pub prompt: String,
    /// On so many held-out examples.
    pub examples: usize,
}

impl Check {
    /// As many of these as it wants, from the first to the last.
    pub fn among<T>(&self, all: Vec<T>) -> Vec<T> {
        let (count, of) = (self.examples.min(all.len()), all.len());
        let all = all.into_iter().enumerate();
        let is_one = |place: usize| (place + 1) * count / of > place * count / of;
        all.filter(|(place, _)| is_one(*place))
            .map(|(_, one)| one)
            .collect()
    }
}

/// A run as the list of runs keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Names it in addresses.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Name of the method.
    pub method: String,
    /// One line about who answers and what is measured.
    pub about: String,
    /// The metric that its study raises; empty in records kept before it was.
    #[serde(default)]
    pub objective: String,
    /// Where it stands.
    pub status: RunStatus,
    /// The study it goes on with, as TOML; empty when TOML cannot write that of a journal from
    /// elsewhere.
    pub study: String,
    /// Milliseconds since 1970 when it was made.
    pub created: f64,
    /// Milliseconds since 1970 when it was last worked on.
    pub touched: f64,
    /// Its numbers.
    pub progress: Progress,
    /// When lines of its journal came, which says nothing of time.
    #[serde(default)]
    pub times: Times,
    /// So many of its first rollouts alone are to be made before anything else; none once they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pilot: Option<usize>,
    /// All that it does, if it is no search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
    /// What the server says of it, if it is a run of the server that is mirrored here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerRun>,
    /// What a person noted on its examples.
    #[serde(default, skip_serializing_if = "Notes::is_empty")]
    pub notes: Notes,
}

/// The list of runs as far as this page can read it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunList {
    /// The last touched first.
    pub runs: Vec<RunRecord>,
    /// Names of those that a newer version of the page wrote.
    pub newer: Vec<String>,
}

impl RunRecord {
    /// The record of a run whose journal comes from elsewhere and says this.
    ///
    /// # Errors
    /// When the journal has no study yet.
    pub fn of(run: &str, state: &RunState, about: String) -> Result<Self, String> {
        let started = state
            .study()
            .ok_or("The journal is empty; it begins with its study.")?;
        let study = &started.study;
        let began = js_sys::Date::new(&started.started_at.as_str().into()).get_time();
        Ok(Self {
            id: run.to_owned(),
            name: format::capitalized(&study.study.name),
            method: study.study.method.clone(),
            about,
            objective: study.objective.metric.clone(),
            status: state
                .finished()
                .map_or(RunStatus::Running, |finished| RunStatus::Ended(finished.status)),
            // A journal can be looked at whose study TOML cannot write. Resuming it says why not.
            study: study.to_toml().unwrap_or_default(),
            created: began,
            touched: js_sys::Date::now(),
            progress: Progress::of(state),
            times: Times::default(),
            pilot: None,
            check: None,
            server: None,
            notes: Notes::new(),
        })
    }
}

impl RunList {
    fn read(texts: &[String]) -> Self {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let mut listed = Self::default();
        for text in texts {
            if let Ok(record) = serde_json::from_str(text) {
                listed.runs.push(record);
                continue;
            }
            let named = serde_json::from_str(text).map(|named: Named| named.name);
            let name = named.unwrap_or_else(|_| "a run without a name".to_owned());
            listed.newer.push(name);
        }
        listed.runs.sort_by(|a, b| b.touched.total_cmp(&a.touched));
        listed
    }
}

impl Storage {
    /// Keeps or replaces a run's record.
    ///
    /// # Errors
    /// When the browser refuses.
    pub async fn put_run(&self, run: &RunRecord) -> Result<(), StorageError> {
        let text = serde_json::to_string(run).map_err(|error| StorageError(error.to_string()))?;
        self.put_text(RUNS, &JsString::from(run.id.as_str()), &text).await
    }

    /// One run's record.
    ///
    /// # Errors
    /// When the browser does not give it back.
    pub async fn run(&self, id: &str) -> Result<Option<RunRecord>, StorageError> {
        if let Some(reported) = self.reported(id) {
            return Ok(Some(reported.record.clone()));
        }
        let text = self.text(RUNS, JsString::from(id).into()).await?;
        text.map(|text| read(&text)).transpose()
    }

    /// Changes a run's record in one step, whoever else changes it meanwhile, and returns it; `None`
    /// when there is no such run, and none is made.
    ///
    /// # Errors
    /// When the browser refuses; the record is then as it was.
    pub async fn change_run(
        &self,
        id: &str,
        change: impl FnOnce(&mut RunRecord),
    ) -> Result<Option<RunRecord>, StorageError> {
        let transaction = self
            .database()?
            .transaction(&[RUNS], TransactionMode::ReadWrite)?;
        let store = transaction.object_store(RUNS)?;
        let at = JsValue::from(JsString::from(id));
        let found = store.get(Query::Key(at.clone()))?.await?;
        let Some(text) = found.and_then(|found| found.as_string()) else {
            return Ok(None);
        };
        let mut record = read(&text)?;
        change(&mut record);
        let text = serde_json::to_string(&record).map_err(|error| StorageError(error.to_string()))?;
        store.put(&JsString::from(text).into(), Some(&at))?;
        self.committed(transaction).await?;
        Ok(Some(record))
    }

    /// Whether the list of runs has one of this id, readable or not.
    ///
    /// # Errors
    /// When the browser does not say.
    pub async fn has_record(&self, id: &str) -> Result<bool, StorageError> {
        Ok(self.text(RUNS, JsString::from(id).into()).await?.is_some())
    }

    /// All runs that this page can read, the last touched first, and the others by name.
    ///
    /// # Errors
    /// When the browser does not give them back.
    pub async fn runs(&self) -> Result<RunList, StorageError> {
        if let Backend::InReport(all) = &self.kept {
            let runs = all.iter().map(|reported| reported.record.clone()).collect();
            return Ok(RunList {
                runs,
                ..RunList::default()
            });
        }
        let found = self.store(RUNS)?.get_all(None, None)?.await?;
        let texts: Vec<String> = found.iter().filter_map(JsValue::as_string).collect();
        Ok(RunList::read(&texts))
    }

    /// Forgets a run with its journal and files.
    ///
    /// # Errors
    /// When the browser refuses; everything is then kept.
    pub async fn delete_run(&self, id: &str) -> Result<(), StorageError> {
        self.write(&[RUNS, LINES, SLIM, FILES], |store| {
            store(RUNS)?.delete(Query::Key(JsString::from(id).into()))?;
            for name in [LINES, SLIM, FILES] {
                store(name)?.delete(all_of(id)?)?;
            }
            Ok(())
        })
        .await
    }

    /// Keeps a data file of a run's study.
    ///
    /// # Errors
    /// When the browser refuses.
    pub async fn put_file(&self, run: &str, path: &str, content: &str) -> Result<(), StorageError> {
        self.put_text(FILES, &key(run, JsString::from(path)), content)
            .await
    }

    /// Keeps data files in place of those kept before.
    ///
    /// # Errors
    /// When the browser refuses; those kept before are then kept.
    pub async fn put_files(&self, run: &str, files: &BTreeMap<String, Arc<str>>) -> Result<(), StorageError> {
        self.write(&[FILES], |store| {
            let store = store(FILES)?;
            store.delete(all_of(run)?)?;
            for (path, content) in files {
                let at = key(run, JsString::from(path.as_str()));
                store.put(&JsString::from(&**content), Some(&at))?;
            }
            Ok(())
        })
        .await
    }

    /// The data files of a run's study by path.
    ///
    /// # Errors
    /// When the browser does not give them back.
    pub async fn files(&self, run: &str) -> Result<BTreeMap<String, Arc<str>>, StorageError> {
        if self.reported(run).is_some() {
            return Ok(BTreeMap::new());
        }
        let keys = self.store(FILES)?.get_all_keys(Some(all_of(run)?), None)?.await?;
        let contents = self.store(FILES)?.get_all(Some(all_of(run)?), None)?.await?;
        let path = |key: JsValue| Array::from(&key).get(1).as_string();
        let files = keys.into_iter().zip(contents);
        Ok(files
            .filter_map(|(key, content)| Some((path(key)?, content.as_string()?.into())))
            .collect())
    }

    /// Keeps a text under a name, for what is encrypted already.
    ///
    /// # Errors
    /// When the browser refuses.
    pub async fn put_in_vault(&self, name: &str, text: &str) -> Result<(), StorageError> {
        self.put_text(VAULT, &JsString::from(name), text).await
    }

    /// A text that was kept under a name.
    ///
    /// # Errors
    /// When the browser does not give it back.
    pub async fn in_vault(&self, name: &str) -> Result<Option<String>, StorageError> {
        self.text(VAULT, JsString::from(name).into()).await
    }

    /// Forgets what was kept under a name.
    ///
    /// # Errors
    /// When the browser refuses.
    pub async fn forget_in_vault(&self, name: &str) -> Result<(), StorageError> {
        self.write(&[VAULT], |store| {
            store(VAULT)?.delete(Query::Key(JsString::from(name).into()))?;
            Ok(())
        })
        .await
    }

    async fn put_text(&self, store: &str, at: &JsValue, text: &str) -> Result<(), StorageError> {
        let value = JsString::from(text);
        self.write(&[store], |open| {
            open(store)?.put(&value, Some(at))?;
            Ok(())
        })
        .await
    }
}

fn read(text: &str) -> Result<RunRecord, StorageError> {
    serde_json::from_str(text).map_err(|error| {
        StorageError(format!(
            "this run was written by a newer version of this page ({error}); reload to get that version"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_a_newer_page_hides_no_other() {
        let record = RunRecord {
            id: "a".into(),
            name: "Mine".into(),
            method: "capo".into(),
            about: String::new(),
            status: RunStatus::Paused,
            study: String::new(),
            objective: String::new(),
            created: 0.0,
            touched: 1.0,
            progress: Progress::default(),
            times: Times::default(),
            pilot: None,
            check: None,
            server: None,
            notes: Notes::new(),
        };
        let readable = serde_json::to_string(&record).unwrap();
        let newer = r#"{"id":"b","name":"Theirs","status":"dreaming"}"#.to_owned();
        let listed = RunList::read(&[newer, "{".to_owned(), readable]);
        assert_eq!(listed.runs, [record]);
        assert_eq!(listed.newer, ["Theirs", "a run without a name"]);
    }
}
