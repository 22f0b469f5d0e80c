//! A project of another server, read from an archive, see [`crate::archive`]. Nothing in it is believed: journals are
//! verified, files are what their names say, and who is named in it has no rights by that.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Read};

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use capo_api::{
    EntryShown, LabelName, MOST_FILE, MOST_JOURNAL, NewDataSet, ProjectName, ProjectShown, PromptName, Role,
    RunOrigin, RunStage,
};
use capo_core::reading::evidence::Evidence;
use capo_core::study::{Format, Study, suggest};
use capo_hosted::check_size;
use futures::TryStreamExt as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tar::{Archive, EntryType};
use tokio::runtime::Handle;
use tokio_util::io::{StreamReader, SyncIoBridge};
use utoipa::IntoParams;

use super::Server;
use super::caller::Caller;
use super::data_sets::read as read_data_set;
use super::extract::{Json, Query, millis, pieces};
use super::problem::Refusal;
use super::projects::shown;
use super::prompts::check as check_prompt;
use super::runs::{Facts, verified};
use crate::archive::{
    ArchivedMove, ArchivedProject, ArchivedRun, ArchivedVersion, END, FORMAT, MOST_LINES, PROJECT,
};
use crate::secret::sha256;
use crate::store::{AddedRun, AddedVersion, Entry, Millis, Moved, Project};

/// Bytes of an archive, and of a document in it.
const MOST: usize = 8 << 30;
const MOST_DOCUMENT: usize = 4 << 20;

/// Bytes that are still taken of an archive that is refused.
const MOST_REST: u64 = 64 << 20;

/// Members of an archive.
const MOST_MEMBERS: usize = 100_000;

/// What a name from another server is marked with, for it may be anybody's here.
const MARK: &str = " (imported)";

/// What the project is to be called.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    /// Its name in addresses; the one that it had unless stated.
    name: Option<String>,
}

/// Makes a project of an archive that a server exported, and becomes its administrator. It is there whole or not at all.
#[utoipa::path(
    post, path = "/api/projects/import", operation_id = "import_project", params(Named),
    request_body(content = Vec<u8>, content_type = "application/x-tar"), security(("session" = []), ("token" = [])),
    responses((status = 201, body = ProjectShown))
)]
pub(super) async fn import(
    State(server): State<Server>,
    caller: Caller,
    Query(named): Query<Named>,
    body: Body,
) -> Result<(StatusCode, Json<ProjectShown>), Refusal> {
    let name = named.name.map(ProjectName::try_from).transpose();
    let name = name.map_err(|error| Refusal::invalid(error.to_string()))?;
    let permit = server.upload(&caller).await?;
    let pieces = pieces(body, MOST).map_err(|Refusal(problem)| io::Error::other(problem.detail));
    let mut archive = SyncIoBridge::new(StreamReader::new(Box::pin(pieces)));
    // It goes on when the caller has gone: what they sent in part is taken back.
    let read = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let imported = Import::new(server, caller).all(&mut archive, name);
        if imported.is_err() {
            // A program that still sends would not read why it was refused.
            let _ = io::copy(&mut archive.take(MOST_REST), &mut io::sink());
        }
        imported
    });
    let project = read.await.map_err(|_| Refusal::internal())??;
    Ok((StatusCode::CREATED, Json(shown((project, Role::Admin)))))
}

/// A project as it is read.
struct Import {
    server: Server,
    caller: Caller,
    handle: Handle,
    /// The ids of runs here, by those that they had.
    runs: HashMap<String, String>,
    /// The run whose journal comes next.
    waiting: Option<ArchivedRun>,
    /// The prompts of which labels have come, or their history.
    labelled: HashSet<String>,
    /// Whether the audit log has come.
    has_log: bool,
}

impl Import {
    fn new(server: Server, caller: Caller) -> Self {
        Self {
            server,
            caller,
            handle: Handle::current(),
            runs: HashMap::new(),
            waiting: None,
            labelled: HashSet::new(),
            has_log: false,
        }
    }

    fn all(mut self, archive: impl Read, name: Option<ProjectName>) -> Result<Project, Refusal> {
        let mut archive = Archive::new(archive);
        // Names and sizes stand in the members' own headers, or it is no archive of a server.
        let members = archive.entries().map_err(broken)?.raw(true);
        let mut members = members.map(|member| Member::of(member.map_err(broken)?));
        let first = members.next().transpose()?.filter(|first| first.path == PROJECT);
        let about: ArchivedProject = first
            .ok_or_else(|| {
                Refusal::invalid(
                    "This is no archive that a server exported: it does not begin with project.json.",
                )
            })?
            .document()?;
        if !(1..=FORMAT).contains(&about.format) {
            return Err(Refusal::invalid(format!(
                "The archive has the format {}, and this server reads up to {FORMAT}; a newer one may read it.",
                about.format
            )));
        }
        let name = name.unwrap_or(about.name);
        let (handle, store, actor) = (
            self.handle.clone(),
            self.server.store().clone(),
            self.caller.actor(),
        );
        // Whoever looks meanwhile, or after a server that was killed in the midst, sees what this is.
        let title = format!("{} (not yet imported)", about.title.as_str());
        let made = store.add_project(&actor, &self.caller.member, name.as_str(), &title);
        let project = handle.block_on(made)?;
        match self.members(&project, members) {
            Ok(()) => Ok(handle.block_on(store.retitle_project(&actor, &project, about.title.as_str()))?),
            Err(refusal) => {
                handle.block_on(store.delete_project(&actor, &project))?;
                Err(refusal)
            }
        }
    }

    fn members<R: Read>(
        &mut self,
        project: &Project,
        members: impl Iterator<Item = Result<Member<R>, Refusal>>,
    ) -> Result<(), Refusal> {
        for (count, member) in members.enumerate() {
            let member = member?;
            if count >= MOST_MEMBERS {
                return Err(Refusal::invalid(format!(
                    "The archive has more than {MOST_MEMBERS} members."
                )));
            }
            let path = member.path.clone();
            let parts: Vec<&str> = path.split('/').collect();
            match (self.waiting.take(), parts.as_slice()) {
                (Some(run), ["runs", file]) if file.strip_suffix(".jsonl") == Some(&run.id) => {
                    self.run(project, run, Some(member.content(MOST_JOURNAL)?))?;
                }
                (Some(run), _) => {
                    return Err(Refusal::invalid(format!(
                        "The journal of the run {} is missing.",
                        run.id
                    )));
                }
                (None, [END]) => return Ok(()),
                (None, ["files", named]) => self.file(project, named, member.content(MOST_FILE)?)?,
                (None, ["data", _]) => self.data_set(project, member.document()?)?,
                (None, ["runs", _]) => {
                    let run: ArchivedRun = member.document()?;
                    if run.has_journal {
                        self.waiting = Some(run);
                    } else {
                        self.run(project, run, None)?;
                    }
                }
                (None, ["prompts", prompt, "labels.json"]) => {
                    self.labels(project, prompt, member.document()?)?;
                }
                (None, ["prompts", prompt, "history.jsonl"]) => {
                    self.history(project, prompt, member.lines()?)?;
                }
                (None, ["audit.jsonl"]) if !self.has_log => {
                    self.audit(project, member.lines()?)?;
                    self.has_log = true;
                }
                (None, ["prompts", prompt, _]) => self.version(project, prompt, member)?,
                _ => {
                    return Err(Refusal::invalid(format!(
                        "`{path}` is nothing that a server exports."
                    )));
                }
            }
        }
        Err(Refusal::invalid(
            "The archive is cut off: its last member is missing.",
        ))
    }

    fn file(&self, project: &Project, named: &str, content: Vec<u8>) -> Result<(), Refusal> {
        if sha256(&content) != named {
            return Err(Refusal::invalid(format!(
                "The data file {named} holds something else than its name says."
            )));
        }
        let actor = self.caller.actor();
        let kept = self.server.keep_file(&actor, project, named, content.into());
        self.handle.block_on(kept)
    }

    fn data_set(&self, project: &Project, set: NewDataSet) -> Result<(), Refusal> {
        let content = self.server.file_content(&project.id, &set.sha256);
        let content = self.handle.block_on(content)?.ok_or_else(|| {
            Refusal::invalid(format!(
                "The file of the data set {} is not in the archive.",
                set.name.as_str()
            ))
        })?;
        let set = read_data_set(set, &content).map_err(Refusal::invalid)?;
        let (store, actor) = (self.server.store(), self.caller.actor());
        self.handle.block_on(store.add_data_set(&actor, project, &set))?;
        Ok(())
    }

    fn run(&mut self, project: &Project, run: ArchivedRun, journal: Option<Vec<u8>>) -> Result<(), Refusal> {
        let of_run = |error: String| Refusal::invalid(format!("The run {}: {error}", run.id));
        let study = Study::parse(&run.study, Format::Toml).map_err(|error| of_run(error.to_string()))?;
        check_size(&study).map_err(of_run)?;
        for (path, sha256) in &run.files {
            let file = self
                .handle
                .block_on(self.server.store().kept_file(&project.id, sha256))?;
            file.ok_or_else(|| {
                of_run(format!(
                    "its data file `{path}` ({sha256}) is not in the archive."
                ))
            })?;
        }
        let pushed = if let Some(journal) = journal {
            let verifying = self.server.0.verifying.clone();
            let _one = self.handle.block_on(verifying.acquire_owned());
            verified(&journal, String::new()).map_err(of_run)?
        } else {
            let facts = Facts::of(&study);
            AddedRun {
                method: facts.method,
                objective: facts.objective,
                stage: Some(RunStage::Paused),
                ..AddedRun::default()
            }
        };
        let origin = match run.origin {
            RunOrigin::Branch { run, round } => {
                let here = self.runs.get(&run).cloned();
                here.map(|run| RunOrigin::Branch { run, round })
            }
            RunOrigin::Server | RunOrigin::Training { .. } | RunOrigin::Pushed => None,
        };
        let added = AddedRun {
            name: run.name.as_str().to_owned(),
            origin: Some(origin.unwrap_or(RunOrigin::Pushed)),
            study: run.study,
            files: run.files,
            author: Some(marked(&run.started_by)),
            created_at: Some(self.moment(&run.created_at)?),
            ..pushed
        };
        let (store, actor) = (self.server.store(), self.caller.actor());
        let kept = store.add_run(&actor, project, &self.caller.member, added);
        self.runs.insert(run.id, self.handle.block_on(kept)?.id);
        Ok(())
    }

    fn version<R: Read>(&self, project: &Project, prompt: &str, member: Member<R>) -> Result<(), Refusal> {
        let path = member.path.clone();
        let version: ArchivedVersion = member.document()?;
        let name =
            PromptName::try_from(prompt.to_owned()).map_err(|error| Refusal::invalid(error.to_string()))?;
        check_prompt(&version.text)?;
        // What stands in its journal is verified, and what is said here of it is not.
        let source = version.run.zip(version.evidence).map(|(run, evidence)| {
            let evidence = Evidence {
                measured_elsewhere: true,
                ..evidence
            };
            (self.runs.get(&run).cloned().unwrap_or(run), evidence)
        });
        let new = AddedVersion {
            text: version.text,
            note: version.note.map(|note| note.as_str().to_owned()),
            source,
            made: Some((marked(&version.created_by), self.moment(&version.created_at)?)),
        };
        let (store, actor) = (self.server.store(), self.caller.actor());
        let added = store.add_prompt_version(&actor, project, name.as_str(), &new);
        let (added, _) = self.handle.block_on(added)?;
        if path == format!("prompts/{prompt}/{}.json", added.number) {
            return Ok(());
        }
        Err(Refusal::invalid(format!(
            "`{path}` is not the next version of the prompt, or says what the one before it says."
        )))
    }

    fn labels(
        &mut self,
        project: &Project,
        prompt: &str,
        labels: BTreeMap<String, u64>,
    ) -> Result<(), Refusal> {
        let has_history = !self.labelled.insert(prompt.to_owned());
        let (store, actor) = (self.server.store(), self.caller.actor());
        let prompt = self.handle.block_on(store.prompt(project, prompt))?;
        if has_history {
            if self.handle.block_on(store.labels(&prompt))? == labels {
                return Ok(());
            }
            return Err(Refusal::invalid(format!(
                "The labels of the prompt {} are not where their history leaves them.",
                prompt.name
            )));
        }
        for (label, version) in labels {
            let label = LabelName::try_from(label).map_err(|error| Refusal::invalid(error.to_string()))?;
            let moved = store.move_label(&actor, &prompt, label.as_str(), Some(version), None);
            self.handle.block_on(moved)?;
        }
        Ok(())
    }

    fn history(&mut self, project: &Project, prompt: &str, moves: Vec<ArchivedMove>) -> Result<(), Refusal> {
        let is_first = self.labelled.insert(prompt.to_owned());
        let (store, actor) = (self.server.store(), self.caller.actor());
        let prompt = self.handle.block_on(store.prompt(project, prompt))?;
        let is_there =
            |version: Option<u64>| version.is_none_or(|version| (1..=prompt.newest).contains(&version));
        let mut on: BTreeMap<String, Option<u64>> = BTreeMap::new();
        let mut followed = Vec::with_capacity(moves.len());
        for ArchivedMove { label, moved } in moves {
            let label = LabelName::try_from(label).map_err(|error| Refusal::invalid(error.to_string()))?;
            let label = label.as_str().to_owned();
            // Those before the first that comes may be left out.
            let on = on
                .entry(label.clone())
                .or_insert(moved.from.filter(|_| moved.number > 1));
            let are_there = is_there(moved.from) && is_there(moved.to);
            if !is_first || moved.from != *on || moved.to == *on || !are_there {
                return Err(Refusal::invalid(format!(
                    "A move of the label {label} of the prompt {} does not follow from what is before it.",
                    prompt.name
                )));
            }
            *on = moved.to;
            let moved = Moved {
                number: moved.number,
                at: self.moment(&moved.at)?,
                actor: marked(&moved.actor),
                from: moved.from,
                to: moved.to,
            };
            followed.push((label, moved));
        }
        let kept = store.import_label_moves(&actor, &prompt, &followed);
        Ok(self.handle.block_on(kept)?)
    }

    /// Nothing of it is checked, so it stands apart, in bounds.
    fn audit(&self, project: &Project, entries: Vec<EntryShown>) -> Result<(), Refusal> {
        let entry = |entry: EntryShown| {
            Ok(Entry {
                id: entry.id,
                at: self.moment(&entry.at)?,
                actor: marked(&entry.actor),
                address: line(&entry.address, 100),
                action: line(&entry.action, 100),
                subject: line(&entry.subject, 1000),
                project: Some(project.id.clone()),
            })
        };
        let entries: Vec<Entry> = entries.into_iter().map(entry).collect::<Result<_, Refusal>>()?;
        let (store, actor) = (self.server.store(), self.caller.actor());
        let kept = store.import_audit(&actor, &project.id, &entries);
        Ok(self.handle.block_on(kept)?)
    }

    /// A moment in the past: lists go by it.
    fn moment(&self, moment: &str) -> Result<Millis, Refusal> {
        Ok(millis(moment)?.clamp(0, self.caller.visitor.at))
    }
}

/// Somebody of another server, in words of at most 100 letters.
fn marked(name: &str) -> String {
    line(name.strip_suffix(MARK).unwrap_or(name), 100) + MARK
}

/// Words of another server on one line, of at most so many letters.
fn line(words: &str, most: usize) -> String {
    let letters = words.chars().filter(|letter| !letter.is_control());
    letters.take(most).collect()
}

fn broken(error: impl std::fmt::Display) -> Refusal {
    Refusal::unreadable(
        StatusCode::BAD_REQUEST,
        format!("The archive broke off, or is none: {error}"),
    )
}

fn unreadable(path: &str, error: &serde_json::Error) -> Refusal {
    let why = suggest(&error.to_string());
    Refusal::invalid(format!("`{path}` cannot be read: {why}"))
}

/// A plain file of the archive.
struct Member<R> {
    path: String,
    size: u64,
    content: R,
}

impl<'a, R: Read> Member<tar::Entry<'a, R>> {
    fn of(entry: tar::Entry<'a, R>) -> Result<Self, Refusal> {
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if entry.header().entry_type() != EntryType::Regular {
            return Err(Refusal::invalid(format!(
                "`{path}` is no plain file, and a server exports nothing else."
            )));
        }
        Ok(Self {
            path,
            size: entry.header().size().map_err(broken)?,
            content: entry,
        })
    }
}

impl<R: Read> Member<R> {
    fn content(mut self, most: usize) -> Result<Vec<u8>, Refusal> {
        if self.size > most as u64 {
            let most = most >> 20;
            return Err(Refusal::invalid(format!(
                "`{}` is larger than {most} MiB.",
                self.path
            )));
        }
        let mut content = Vec::new();
        self.content.read_to_end(&mut content).map_err(broken)?;
        if (content.len() as u64) < self.size {
            return Err(broken(format!("it ends in the midst of `{}`", self.path)));
        }
        Ok(content)
    }

    fn document<T: DeserializeOwned>(self) -> Result<T, Refusal> {
        let path = self.path.clone();
        serde_json::from_slice(&self.content(MOST_DOCUMENT)?).map_err(|error| unreadable(&path, &error))
    }

    /// JSON Lines.
    fn lines<T: DeserializeOwned>(self) -> Result<Vec<T>, Refusal> {
        let path = self.path.clone();
        let content = self.content(MOST_FILE)?;
        let lines = serde_json::Deserializer::from_slice(&content).into_iter::<T>();
        let lines: Vec<T> = lines
            .take(MOST_LINES + 1)
            .collect::<Result<_, _>>()
            .map_err(|error| unreadable(&path, &error))?;
        if lines.len() > MOST_LINES {
            return Err(Refusal::invalid(format!(
                "`{path}` has more than {MOST_LINES} lines."
            )));
        }
        Ok(lines)
    }
}
