//! The study and the data that a run was started with, from which another one is set up.

use std::collections::BTreeMap;
use std::sync::Arc;

use capo_api::{TrainingDetail, file_path};
use capo_core::study::{Format, Study};
use js_sys::Uint8Array;
use leptos::prelude::WithValue as _;
use wasm_bindgen_futures::JsFuture;

use super::run::Run;
use super::runs::Runs;
use crate::storage::server_id;
use crate::team::{self, Server, sentence};
use crate::worker::protocol::DataFiles;

/// What a run or a training was started with. Keys are none of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Begun {
    /// Its study.
    pub study: Study,
    /// Its data files by path.
    pub files: DataFiles,
    /// Paths of those that are no text, and so not here.
    pub no_text: Vec<String>,
    /// The project on whose account it ran; none for a run of this browser.
    pub project: Option<String>,
}

impl Runs {
    /// What a run was started with.
    ///
    /// # Errors
    /// Why that is not known here, in words.
    pub async fn begun(self, run: Run) -> Result<Begun, String> {
        let id = run.id();
        let Some(on_server) = server_id(&id) else {
            return Ok(Begun {
                study: read(&run.study())?,
                files: run.inner.with_value(|inner| inner.files.clone()),
                no_text: Vec::new(),
                project: None,
            });
        };
        let detail = async |server: Server| server.run(on_server).await;
        let detail = self.team().ask(detail).await?;
        self.begun_in(detail.run.project, read(&detail.study)?, detail.files)
            .await
    }

    /// What a training was started with.
    ///
    /// # Errors
    /// As of a run.
    pub async fn begun_training(self, detail: TrainingDetail) -> Result<Begun, String> {
        let (training, study, mut files) = (detail.training, read(&detail.study)?, detail.files);
        // One that asks no models has no files of its own: those of its first run, if it took the study of that.
        if files.is_empty()
            && let Some(first) = training.runs.first()
        {
            let run = async |server: Server| server.run(first).await;
            match self.team().request(run).await {
                Ok(run) if read(&run.study).is_ok_and(|of_run| of_run.workload == study.workload) => {
                    files = run.files;
                }
                Err(error) if error.status() != Some(404) => return Err(sentence(&error)),
                // Whoever takes it in says what it lacks.
                Ok(_) | Err(_) => {}
            }
        }
        self.begun_in(training.project, study, files).await
    }

    /// With the data files of a project that have these hashes, by path.
    async fn begun_in(
        self,
        project: String,
        study: Study,
        hashes: BTreeMap<String, String>,
    ) -> Result<Begun, String> {
        let (mut files, mut no_text) = (DataFiles::new(), Vec::new());
        for (path, sha256) in hashes {
            let text = self.text_of(&project, &sha256).await;
            if let Some(text) = text.map_err(|why| format!("{path}: {why}"))? {
                files.insert(path, text);
            } else {
                no_text.push(path);
            }
        }
        Ok(Begun {
            study,
            files,
            no_text,
            project: Some(project),
        })
    }

    /// What a data file of a project holds, if it is text.
    async fn text_of(self, project: &str, sha256: &str) -> Result<Option<Arc<str>>, String> {
        let path = file_path(project, sha256);
        let file = self.team().ask(async |_: Server| team::file(&path).await);
        let bytes = JsFuture::from(file.await?.array_buffer()).await;
        let bytes = bytes.map_err(|_| "It cannot be read: memory may be short.")?;
        let text = String::from_utf8(Uint8Array::new(&bytes).to_vec());
        Ok(text.ok().map(Arc::from))
    }
}

fn read(study: &str) -> Result<Study, String> {
    if study.is_empty() {
        // That of a journal from elsewhere may hold what TOML cannot write.
        return Err("The study cannot be written as a study file.".into());
    }
    Study::parse(study, Format::Toml).map_err(|error| format!("The study does not read: {error}"))
}
