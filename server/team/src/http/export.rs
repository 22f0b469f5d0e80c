//! A project as an archive, see [`crate::archive`].

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use capo_api::{DataSetName, Membership, NewDataSet, ProjectName, Role, Title};
use serde::Serialize;

use super::Server;
use super::audit::line;
use super::caller::Caller;
use super::extract::{Path, moment};
use super::pieces::{self, Disconnected, Pieces};
use super::problem::Refusal;
use super::prompts::moved;
use crate::archive::{
    ArchivedMove, ArchivedProject, ArchivedRun, ArchivedVersion, END, FORMAT, MOST_LINES, PROJECT,
};
use crate::store::{Moved, Project, Prompt, Run, StoreError};

/// Runs and versions that are listed at once, and bytes of a journal that are read.
const PAGE: u32 = 100;
const AT_ONCE: usize = 1 << 20;

/// All that a project has but keys, trainings and who may sign in, as a tar archive that another server imports.
#[utoipa::path(
    get, path = "/api/projects/{project}/export", operation_id = "export_project", params(("project" = String, Path)),
    security(("session" = []), ("token" = [])),
    responses((status = 200, body = Vec<u8>, content_type = "application/x-tar"))
)]
pub(super) async fn export(
    State(server): State<Server>,
    caller: Caller,
    Path(project): Path<String>,
) -> Result<Response, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Admin).await?;
    // Data files are held in memory, one at a time.
    let permit = server.upload(&caller).await?;
    let (actor, store) = (caller.actor(), server.store());
    let exported = (project.name.as_str(), Some(project.id.as_str()));
    let recorded = store
        .record(&actor, "project.export", exported.0, exported.1)
        .await;
    match recorded {
        Ok(()) => {}
        // There an export is what helps.
        Err(error) if error.is_full() => {
            tracing::error!(project = project.name, actor = actor.name, %error, "an export is not in the audit log");
        }
        Err(error) => return Err(error.into()),
    }
    let (pieces, body) = pieces::body();
    let name = format!("attachment; filename=\"{}.tar\"", project.name);
    tokio::spawn(async move {
        let archive = Archive { server, pieces };
        match archive.write(&project).await {
            Ok(()) => archive.pieces.end().await,
            Err(Broken::Disconnected(_)) => {}
            // Whoever reads it sees that it is not whole.
            Err(error) => tracing::warn!(project = project.name, %error, "an export broke off"),
        }
        drop(permit);
    });
    let head = [
        (header::CONTENT_TYPE, "application/x-tar".to_owned()),
        (header::CONTENT_DISPOSITION, name),
    ];
    Ok((head, body).into_response())
}

/// Why an archive does not come to its end.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Disconnected(#[from] Disconnected),
    /// A journal got another first line meanwhile.
    #[error("the run {0} has begun meanwhile; export the project once more")]
    Changed(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Header(#[from] io::Error),
}

/// An archive as it is written.
struct Archive {
    server: Server,
    pieces: Pieces,
}

impl Archive {
    async fn write(&self, project: &Project) -> Result<(), Broken> {
        let store = self.server.store();
        let unreadable = |error: capo_api::NameError| StoreError::Unreadable(error.to_string());
        let members = store.member_roles(project).await?.into_iter();
        let about = ArchivedProject {
            format: FORMAT,
            name: ProjectName::try_from(project.name.clone()).map_err(unreadable)?,
            title: Title::try_from(project.title.clone()).map_err(unreadable)?,
            exported_at: moment(self.server.now()),
            members: members
                .map(|place| Membership {
                    member: place.member,
                    role: place.role,
                })
                .collect(),
        };
        self.document(PROJECT, &about).await?;
        let runs = self.runs(project).await?;
        let mut files = BTreeSet::new();
        for run in &runs {
            match store.run_study(run).await {
                Ok(study) => files.extend(study.files.into_values()),
                // Deleted meanwhile.
                Err(StoreError::Missing(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let sets = store.data_sets(project).await?;
        files.extend(sets.iter().map(|set| set.sha256.clone()));
        for sha256 in files {
            // One whose file is gone says so when it is resumed.
            if let Some(content) = self.server.file_content(&project.id, &sha256).await? {
                self.file(&format!("files/{sha256}"), content).await?;
            }
        }
        for set in sets {
            let named = NewDataSet {
                name: DataSetName::try_from(set.name).map_err(unreadable)?,
                sha256: set.sha256,
            };
            self.document(&format!("data/{}.json", set.id), &named).await?;
        }
        for run in &runs {
            match store.run(run).await {
                Ok(run) => self.run(&run).await?,
                // Deleted meanwhile.
                Err(StoreError::Missing(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for (prompt, _) in store.prompts(project).await? {
            match self.prompt(project, &prompt).await {
                // Deleted meanwhile.
                Ok(()) | Err(Broken::Store(StoreError::Missing(_))) => {}
                Err(error) => return Err(error),
            }
        }
        self.audit(project).await?;
        self.file(END, Vec::new()).await?;
        // By this programs know where an archive ends.
        self.send(vec![0; 1024]).await
    }

    /// The ids of a project's runs, those that were added first before others.
    async fn runs(&self, project: &Project) -> Result<Vec<String>, StoreError> {
        let (mut ids, mut last): (Vec<String>, Option<Run>) = (Vec::new(), None);
        loop {
            let before = last.as_ref().map(|run| (run.created_at, run.id.as_str()));
            let of = std::slice::from_ref(&project.id);
            let page = self.server.store().runs(of, before, PAGE).await?;
            ids.extend(page.iter().map(|run| run.id.clone()));
            last = page.into_iter().next_back();
            if last.is_none() {
                ids.reverse();
                return Ok(ids);
            }
        }
    }

    async fn run(&self, run: &Run) -> Result<(), Broken> {
        let store = self.server.store();
        let study = store.run_study(&run.id).await?;
        let archived = ArchivedRun {
            id: run.id.clone(),
            name: Title::try_from(run.name.clone())
                .map_err(|error| StoreError::Unreadable(error.to_string()))?,
            started_by: run.member_name.clone(),
            origin: run.origin.clone(),
            created_at: moment(run.created_at),
            study: study.text,
            files: study.files,
            has_journal: run.lines > 0,
        };
        self.document(&format!("runs/{}.json", run.id), &archived).await?;
        if run.lines == 0 {
            return Ok(());
        }
        // It may grow meanwhile.
        let size = store.size_of_lines(&run.id, run.lines).await?;
        self.head(&format!("runs/{}.jsonl", run.id), size).await?;
        let (mut next, mut sent) = (0, 0);
        while next < run.lines {
            let lines = store.lines(&run.id, next, AT_ONCE).await?;
            let lines = lines.into_iter().filter(|(line, _)| *line < run.lines);
            let mut text = String::new();
            for (line, body) in lines {
                text += &body;
                text.push('\n');
                next = line + 1;
            }
            if text.is_empty() {
                break;
            }
            sent += text.len() as u64;
            self.send(text.into_bytes()).await?;
        }
        if sent != size {
            return Err(Broken::Changed(run.id.clone()));
        }
        self.pad(size).await
    }

    async fn prompt(&self, project: &Project, prompt: &Prompt) -> Result<(), Broken> {
        let store = self.server.store();
        let moves = latest(store.all_label_moves(prompt).await?, MOST_LINES);
        let id = &prompt.id;
        // With all versions that these name, and without what moves meanwhile.
        let prompt = store.prompt(project, &prompt.name).await?;
        if prompt.id != *id {
            // Another one of this name, added meanwhile.
            return Ok(());
        }
        self.versions(&prompt).await?;
        let mut labels = BTreeMap::new();
        for (label, moved) in &moves {
            labels.insert(label.clone(), moved.to);
        }
        labels.retain(|_, version| version.is_some());
        let moves = moves.into_iter().map(|(label, move_of)| ArchivedMove {
            label,
            moved: moved(move_of),
        });
        let moves: Vec<ArchivedMove> = moves.collect();
        if !moves.is_empty() {
            self.lines(&format!("prompts/{}/history.jsonl", prompt.name), &moves)
                .await?;
        }
        self.document(&format!("prompts/{}/labels.json", prompt.name), &labels)
            .await
    }

    async fn audit(&self, project: &Project) -> Result<(), Broken> {
        let (mut entries, mut before) = (Vec::new(), None);
        while entries.len() < MOST_LINES {
            let page = self.server.store().audit(Some(&project.id), before, PAGE).await?;
            let Some(last) = page.last() else { break };
            before = Some(last.id);
            entries.extend(page.into_iter().map(line));
        }
        entries.reverse();
        self.lines("audit.jsonl", &entries).await
    }

    async fn versions(&self, prompt: &Prompt) -> Result<(), Broken> {
        let store = self.server.store();
        for number in 1..=prompt.newest {
            let version = store.prompt_version(prompt, number).await?;
            let note = version.note.map(Title::try_from).transpose();
            let archived = ArchivedVersion {
                text: version.text,
                note: note.map_err(|error| StoreError::Unreadable(error.to_string()))?,
                run: version.run,
                evidence: version.evidence,
                created_by: version.created_by,
                created_at: moment(version.created_at),
            };
            let path = format!("prompts/{}/{number}.json", prompt.name);
            self.document(&path, &archived).await?;
        }
        Ok(())
    }

    async fn document(&self, path: &str, document: &impl Serialize) -> Result<(), Broken> {
        let text = serde_json::to_vec_pretty(document).expect("documents are plain");
        self.file(path, text).await
    }

    async fn lines(&self, path: &str, lines: &[impl Serialize]) -> Result<(), Broken> {
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line).expect("documents are plain");
            text.push(b'\n');
        }
        self.file(path, text).await
    }

    async fn file(&self, path: &str, content: Vec<u8>) -> Result<(), Broken> {
        let size = content.len() as u64;
        self.head(path, size).await?;
        self.send(content).await?;
        self.pad(size).await
    }

    async fn head(&self, path: &str, size: u64) -> Result<(), Broken> {
        let mut header = tar::Header::new_ustar();
        header.set_path(path)?;
        header.set_size(size);
        header.set_mode(0o644);
        header.set_mtime(u64::try_from(self.server.now() / 1000).unwrap_or(0));
        header.set_entry_type(tar::EntryType::Regular);
        header.set_cksum();
        self.send(header.as_bytes().to_vec()).await
    }

    /// Members begin at whole blocks.
    async fn pad(&self, size: u64) -> Result<(), Broken> {
        let over = (size % 512) as usize;
        self.send(vec![0; (512 - over) % 512]).await
    }

    async fn send(&self, content: Vec<u8>) -> Result<(), Broken> {
        Ok(self.pieces.send(content).await?)
    }
}

/// Of moves of labels, label by label in order, at most so many: each label's latest, down to the same depth.
fn latest(moves: Vec<(String, Moved)>, most: usize) -> Vec<(String, Moved)> {
    let last: BTreeMap<String, u64> = moves
        .iter()
        .map(|(label, moved)| (label.clone(), moved.number))
        .collect();
    let is_within = |(label, moved): &(String, Moved), depth: u64| moved.number + depth > last[label];
    let mut depth = most as u64;
    while moves.iter().filter(|one| is_within(one, depth)).count() > most {
        depth /= 2;
    }
    moves.into_iter().filter(|one| is_within(one, depth)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_moves_each_labels_latest_are_kept() {
        let moved = |label: &str, number: u64| {
            let moved = Moved {
                number,
                at: 0,
                actor: "ed".into(),
                from: (number > 1).then_some(number - 1),
                to: Some(number),
            };
            (label.to_owned(), moved)
        };
        let often = (1..=9).map(|number| moved("often", number));
        let moves: Vec<_> = often.chain([moved("once", 1)]).collect();
        let kept = |most: usize| -> Vec<(String, u64)> {
            let kept = latest(moves.clone(), most).into_iter();
            kept.map(|(label, moved)| (label, moved.number)).collect()
        };
        assert_eq!(kept(10).len(), 10);
        let those = [("often", 7_u64), ("often", 8), ("often", 9), ("once", 1)];
        assert_eq!(kept(6), those.map(|(label, number)| (label.to_owned(), number)));
        assert!(kept(1).is_empty());
    }
}
