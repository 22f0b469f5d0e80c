//! What a run was started with, from which another one is set up.

use std::collections::BTreeMap;

use capo_api::{DataKind, DataSetShown};
use capo_core::study::{Format, Study};
use leptos::prelude::WithValue as _;
use wasm_bindgen_futures::JsFuture;

use super::run::Run;
use super::runs::Runs;
use crate::storage::server_id;
use crate::team::{Server, data_file};
use crate::worker::protocol::DataFiles;

/// What a run was started with. Keys are none of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Begun {
    /// Its study.
    pub study: Study,
    /// Those of its data files that are here, by path.
    pub files: DataFiles,
    /// SHA-256 of those that the server does not give back, by path.
    pub elsewhere: BTreeMap<String, String>,
    /// The project on whose account it ran; none for a run of this browser.
    pub project: Option<String>,
}

impl Runs {
    /// What a run was started with. The server gives back those data files that are data sets of its project.
    ///
    /// # Errors
    /// Why that is not known here, in words.
    pub async fn begun(self, run: Run) -> Result<Begun, String> {
        let id = run.id();
        let Some(on_server) = server_id(&id) else {
            return Ok(Begun {
                study: read(&run.study())?,
                files: run.inner.with_value(|inner| inner.files.clone()),
                elsewhere: BTreeMap::new(),
                project: None,
            });
        };
        let detail = async |server: Server| server.run(on_server).await;
        let detail = self.team().ask(detail).await?;
        let project = detail.run.project;
        let mut begun = Begun {
            study: read(&detail.study)?,
            files: DataFiles::new(),
            elsewhere: detail.files,
            project: Some(project.clone()),
        };
        if begun.elsewhere.is_empty() {
            return Ok(begun);
        }
        let sets = async |server: Server| server.data_sets(&project).await;
        // A host may keep files and know of no data sets.
        let sets = self.team().ask(sets).await.unwrap_or_default();
        for (path, sha256) in std::mem::take(&mut begun.elsewhere) {
            // An archive is no text.
            let is_it = |set: &&DataSetShown| set.sha256 == sha256 && set.kind != DataKind::Tau2;
            if let Some(set) = sets.iter().find(is_it) {
                let text = self.text_of(&project, set).await?;
                begun.files.insert(path, text.into());
            } else {
                begun.elsewhere.insert(path, sha256);
            }
        }
        Ok(begun)
    }

    /// The text of a data set.
    async fn text_of(self, project: &str, set: &DataSetShown) -> Result<String, String> {
        let file = self.team().ask(async |_: Server| data_file(project, set).await);
        let text = JsFuture::from(file.await?.text()).await;
        let text = text.ok().and_then(|text| text.as_string());
        text.ok_or_else(|| format!("{} cannot be read: memory may be short.", set.name))
    }
}

fn read(study: &str) -> Result<Study, String> {
    if study.is_empty() {
        // That of a journal from elsewhere may hold what TOML cannot write.
        return Err("The study of this run cannot be written as a study file.".into());
    }
    Study::parse(study, Format::Toml).map_err(|error| format!("The study of this run does not read: {error}"))
}
