//! The files of the tau2 benchmark, kept once for all studies.

use std::collections::BTreeMap;

use js_sys::{Array, JsString};

use super::{FILES, Storage, StorageError, all_of, key};

/// Owns them beside the runs; no run has this id.
const OWNER: &str = "tau2-bench";

impl Storage {
    /// Keeps files of the benchmark by their paths, beside what is kept of it.
    ///
    /// # Errors
    /// When the browser refuses; nothing is changed then.
    pub async fn keep_benchmark(&self, files: &BTreeMap<&str, String>) -> Result<(), StorageError> {
        self.write(&[FILES], |store| {
            let store = store(FILES)?;
            for (path, content) in files {
                let at = key(OWNER, JsString::from(*path));
                store.put(&JsString::from(content.as_str()), Some(&at))?;
            }
            Ok(())
        })
        .await
    }

    /// One file of the benchmark; `None` when it is not kept here.
    ///
    /// # Errors
    /// When the browser does not give it back.
    pub async fn benchmark_file(&self, path: &str) -> Result<Option<String>, StorageError> {
        self.text(FILES, key(OWNER, JsString::from(path))).await
    }

    /// The paths of the files that are kept of the benchmark.
    ///
    /// # Errors
    /// When the browser does not say.
    pub async fn benchmark_paths(&self) -> Result<Vec<String>, StorageError> {
        let keys = self
            .store(FILES)?
            .get_all_keys(Some(all_of(OWNER)?), None)?
            .await?;
        let path = |key| Array::from(&key).get(1).as_string();
        Ok(keys.into_iter().filter_map(path).collect())
    }

    /// Forgets the benchmark.
    ///
    /// # Errors
    /// When the browser refuses; everything is then kept.
    pub async fn forget_benchmark(&self) -> Result<(), StorageError> {
        self.write(&[FILES], |store| {
            store(FILES)?.delete(all_of(OWNER)?)?;
            Ok(())
        })
        .await
    }
}
