//! Studies and journals on their way to the server.

use std::collections::BTreeMap;

use capo_api::{MOST_FILE, MOST_JOURNAL, Moment, ProjectKey, RunShown};
use capo_core::ids::sha256_hex;
use capo_core::journal::{Event, StudyEvent, parse_line};
use capo_core::study::{Format, Study};
use leptos::prelude::WithValue as _;

use super::orders::title;
use super::run::Run;
use super::runs::{NewRun, Runs};
use crate::shared_keys;
use crate::team::Server;
use crate::worker::protocol::DataFiles;

impl Runs {
    /// Starts a study on the server, now or not before a moment. Its data files go there first, but for those that the
    /// project has.
    ///
    /// # Errors
    /// Why the server does not take it, in words.
    pub async fn begin_on_server(
        self,
        project: &str,
        new: NewRun,
        start_at: Option<Moment>,
    ) -> Result<Run, String> {
        let study = Study::parse(&new.study, Format::Toml).map_err(|error| error.to_string())?;
        let study = self.asked_there(project, study).await?;
        let new = capo_api::NewRun {
            name: title(&new.name)?,
            study: study.to_toml().map_err(|error| error.to_string())?,
            files: self.send_files(project, &new.files).await?,
            start_at,
        };
        let asked = self
            .team()
            .ask(async |server: Server| server.add_run(project, &new).await);
        Ok(self.shown(&asked.await?))
    }

    /// A study as the server runs it, which finds shared keys by where they lead.
    async fn asked_there(self, project: &str, mut study: Study) -> Result<Study, String> {
        let mut tables = study.models.values();
        if let Some(origin) = shared_keys::origin()
            && tables.any(|table| shared_keys::of_table(table).is_some())
        {
            let keys = async |server: Server| server.project_keys(project).await;
            lead_to_providers(&mut study, &origin, &self.team().ask(keys).await?)?;
        }
        Ok(study)
    }

    /// Sends the data files that a project lacks, and returns the SHA-256 of all by path.
    async fn send_files(self, project: &str, files: &DataFiles) -> Result<BTreeMap<String, String>, String> {
        let mut named = BTreeMap::new();
        for (path, text) in files {
            if text.len() > MOST_FILE {
                return Err(format!(
                    "{path} is larger than the server takes, {} MiB.",
                    MOST_FILE >> 20
                ));
            }
            let sha256 = sha256_hex(text.as_bytes());
            let sent = self.team().ask(async |server: Server| {
                if !server.has_file(project, &sha256).await? {
                    let bytes = text.as_bytes().to_vec();
                    server.put_file(project, &sha256, bytes).await?;
                }
                Ok(())
            });
            sent.await.map_err(|why| format!("{path}: {why}"))?;
            named.insert(path.clone(), sha256);
        }
        Ok(named)
    }

    /// Has the server keep the journal of a run of this browser, once it has verified it, with the data files of its study.
    ///
    /// # Errors
    /// Why it does not, in words.
    pub async fn push(self, project: &str, run: Run, journal: Vec<String>) -> Result<RunShown, String> {
        let journal = journal.concat();
        if journal.len() > MOST_JOURNAL {
            return Err(format!(
                "The journal is larger than the server takes, {} MiB.",
                MOST_JOURNAL >> 20
            ));
        }
        let name = title(&run.name())?;
        let files = run.inner.with_value(|inner| inner.files.clone());
        let files = self.send_files(project, &files).await?;
        let (first, rest) = journal.split_once('\n').unwrap_or_default();
        let journal = match parse_line(first, 1) {
            Ok(Event::Study(begun)) => match self.asked_there(project, begun.study.clone()).await {
                Ok(study) if study != begun.study => format!("{}\n{rest}", written(begun.under(study))?),
                // Where the project lacks a key, it can be looked at all the same.
                Ok(_) | Err(_) => journal,
            },
            // The server says what is wrong with it.
            Ok(_) | Err(_) => journal,
        };
        let pushed = async |server: Server| {
            server
                .push_run(project, name.as_str(), &files, journal.into_bytes())
                .await
        };
        self.team().ask(pushed).await
    }
}

/// The line of a study.
fn written(begun: StudyEvent) -> Result<String, String> {
    serde_json::to_string(&Event::Study(Box::new(begun))).map_err(|error| error.to_string())
}

/// Has models that are asked through the server of this origin asked at their providers.
///
/// # Errors
/// Which key is none of the project's, in words.
fn lead_to_providers(study: &mut Study, origin: &str, keys: &[ProjectKey]) -> Result<(), String> {
    for (role, table) in &mut study.models {
        let name = table["base_url"]
            .as_str()
            .and_then(|base_url| shared_keys::name_at(origin, base_url));
        let Some(name) = name else { continue };
        let key = keys.iter().find(|key| key.name == name).ok_or_else(|| {
            format!("The {role} is asked with the key {name}, which this project may not use. Choose another one beside the model.")
        })?;
        let Some(table) = table.as_object_mut() else {
            continue;
        };
        table.shift_remove("base_url");
        if let Some(address) = &key.provider_base_url {
            table.insert("base_url".into(), address.clone().into());
        }
        if let Some(headers) = table
            .get_mut("headers")
            .and_then(|headers| headers.as_object_mut())
        {
            headers.shift_remove(shared_keys::PROJECT);
            if headers.is_empty() {
                table.shift_remove("headers");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use capo_core::llm::Role;
    use serde_json::json;

    use super::*;

    fn key(name: &str, provider_base_url: Option<&str>) -> ProjectKey {
        ProjectKey {
            name: name.into(),
            provider: "openai".into(),
            models: vec!["m".into()],
            base_url: format!("/api/proxy/{name}"),
            provider_base_url: provider_base_url.map(str::to_owned),
        }
    }

    #[test]
    fn a_study_that_runs_on_the_server_names_providers_and_not_their_proxy() {
        let mut study = crate::studies::help_desk().unwrap();
        let asked = |base_url: &str| json!({ "provider": "openai", "model": "m", "base_url": base_url });
        let mut through = asked("https://capo.example/api/proxy/own");
        through["headers"] = json!({ "x-capo-project": "help-desk" });
        let mut with_more = asked("https://capo.example/api/proxy/gpu");
        with_more["headers"] = json!({ "x-capo-project": "help-desk", "X-Team": "search" });
        let elsewhere = asked("https://other.example/api/proxy/own");
        study.models.insert(Role::Agent, through);
        study.models.insert(Role::Rewriter, with_more);
        study.models.insert(Role::Judge, elsewhere.clone());
        let keys = [key("own", None), key("gpu", Some("http://gpu.example/v1"))];
        let before = study.clone();
        lead_to_providers(&mut study, "https://capo.example", &keys).unwrap();
        assert_eq!(
            study.models[&Role::Agent],
            json!({ "provider": "openai", "model": "m" })
        );
        let mut led = asked("http://gpu.example/v1");
        led["headers"] = json!({ "X-Team": "search" });
        assert_eq!(study.models[&Role::Rewriter], led);
        assert_eq!(study.models[&Role::Judge], elsewhere);
        // A journal that is pushed states the id of the study as it is led.
        let id = study.id(&serde_json::Map::new());
        let begun = StudyEvent {
            schema: 1,
            id: before.id(&serde_json::Map::new()),
            study: before.clone(),
            started_at: "2026-11-26T07:00:00Z".into(),
            workloads: <_>::default(),
            version: String::new(),
        };
        let Ok(Event::Study(led)) = parse_line(&written(begun.under(study)).unwrap(), 1) else {
            panic!("the line of a study is one");
        };
        assert!(led.id == id && led.is_of(&id));

        let mut study = before;
        let refused = lead_to_providers(&mut study, "https://capo.example", &keys[..1]).unwrap_err();
        assert!(refused.contains("the key gpu"), "{refused}");
    }
}
