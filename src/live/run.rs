//! One run as this tab knows it.

use std::rc::Rc;

use capo_core::journal::{EffectName, FailureEvent, Status, SteerEvent};
use capo_core::llm::{FailureKind, Role};
use capo_core::study::{Format, Study};
use capo_models::{Wait, serving};
use capo_workloads::is_scorers_failure;
use futures::channel::{mpsc, oneshot};
use gloo_timers::callback::Timeout;
use leptos::prelude::*;

use super::fold::{Consumed, Folded};
use super::orders::{NotDone, Ordered};
use super::phase::{Pause, Phase};
use super::sending;
use super::worker::WorkerHandle;
use crate::keys::{Destination, Keys};
use crate::storage::{Check, Chunks, RunRecord, RunStatus, ServerRun, server_id};
use crate::studies::has_own_agent;
use crate::team::Team;
use crate::worker::protocol::{DataFiles, Report};

/// Screens change at most this often while a run goes on, in milliseconds.
const REFRESH: f64 = 250.0;

/// A run. Clones are the same run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub(super) inner: StoredValue<Inner, LocalStorage>,
    /// Rises when there is something new to show.
    version: RwSignal<u64>,
    /// What it is doing here.
    pub phase: RwSignal<Phase>,
    /// What the list of runs keeps of it.
    pub record: RwSignal<Option<RunRecord>>,
    /// Why the browser keeps no more: what came since lies in the worker's memory only.
    pub refused: RwSignal<Option<Refused>>,
    /// Changes that wait for the next round.
    pub pending: RwSignal<Option<SteerEvent>>,
    /// What a person should know of how it went on: what was left out or not applied.
    pub notes: RwSignal<Vec<String>>,
}

/// What a run had come to at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Inherited {
    /// Rounds that were closed.
    pub rounds: usize,
    /// What was consumed.
    pub consumed: Consumed,
    /// Milliseconds that it had run.
    pub elapsed: f64,
}

/// Why a browser keeps no more of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What it said.
    pub reason: String,
    /// Whether what it kept before is gone too.
    pub is_lost: bool,
}

pub(super) struct Inner {
    pub(super) id: String,
    pub(super) folded: Folded,
    /// The fold is not what the journal says: it is read anew before the run goes on.
    pub(super) stale: bool,
    pub(super) worker: Option<Rc<WorkerHandle>>,
    /// What the worker reported while the fold was catching up with the journal.
    pub(super) behind: Option<Vec<Report>>,
    /// Why it cannot go on, said once its worker has come to rest.
    pub(super) broken: Option<String>,
    /// Whole study as TOML, its data files and the keys it runs with.
    pub(super) study: String,
    pub(super) files: DataFiles,
    pub(super) keys: Keys,
    pub(super) keep: bool,
    /// Nothing that comes of it is shown or kept: it is deleted, nobody looks at it any more, or it is one of the server that
    /// may not be shown before it is asked for anew.
    pub(super) closed: bool,
    /// How many show it.
    pub(super) viewers: u32,
    pub(super) why: Pause,
    /// The next try to reach its models, and how many were in vain.
    pub(super) retry: Option<Timeout>,
    pub(super) tries: u32,
    shown: f64,
    refresh: Option<Timeout>,
    /// The model it waits for now, and until when, in milliseconds since 1970.
    pub(super) waits: Option<(Wait, f64)>,
    /// Who waits for the lines that only the worker's memory holds.
    pub(super) asked: Vec<oneshot::Sender<Chunks>>,
    /// Milliseconds of running before this session of it, and when this one began.
    pub(super) began: Option<f64>,
    pub(super) elapsed: f64,
    /// See [`Run::inherited`].
    pub(super) inherited: Option<Inherited>,
    /// The server that it is on, and what has that looked at once more.
    pub(super) server: Option<(Team, mpsc::UnboundedSender<()>)>,
    /// Whether that is not reached at present.
    pub(super) cut_off: RwSignal<bool>,
    /// The order that it did not carry out, until the next one.
    pub(super) not_done: RwSignal<Option<NotDone>>,
}

impl Run {
    /// A run of this id about which nothing is known yet. Lives as long as the page.
    pub fn new(id: &str) -> Self {
        Self::made(id, true)
    }

    /// A run of a study that nobody wants to keep: it ends with its last owner's tab.
    pub fn unkept(study: &str) -> Self {
        let run = Self::made("unkept", false);
        run.inner.update_value(|inner| study.clone_into(&mut inner.study));
        run
    }

    fn made(id: &str, keep: bool) -> Self {
        Self {
            inner: StoredValue::new_local(Inner {
                id: id.to_owned(),
                folded: Folded::default(),
                stale: false,
                worker: None,
                behind: None,
                broken: None,
                study: String::new(),
                files: DataFiles::new(),
                keys: Keys::new(),
                keep,
                closed: false,
                viewers: 0,
                why: Pause::Asked,
                retry: None,
                tries: 0,
                shown: 0.0,
                refresh: None,
                waits: None,
                asked: Vec::new(),
                began: None,
                elapsed: 0.0,
                inherited: None,
                server: None,
                cut_off: RwSignal::new(false),
                not_done: RwSignal::new(None),
            }),
            version: RwSignal::new(0),
            phase: RwSignal::new(Phase::Resting),
            record: RwSignal::new(None),
            refused: RwSignal::new(None),
            pending: RwSignal::new(None),
            notes: RwSignal::new(Vec::new()),
        }
    }

    /// Its id.
    pub fn id(&self) -> String {
        self.inner.with_value(|inner| inner.id.clone())
    }

    /// Whether it is a run of the server, of which this browser keeps a mirror.
    pub fn is_on_server(&self) -> bool {
        self.inner.with_value(|inner| server_id(&inner.id).is_some())
    }

    /// Whether it is on a server that is not reached at present.
    pub fn is_cut_off(&self) -> bool {
        self.inner.with_value(|inner| inner.cut_off).get()
    }

    /// Notes whether its server is reached.
    pub(super) fn cut_off(self, cut_off: bool) {
        let known = self.inner.with_value(|inner| inner.cut_off);
        if known.get_untracked() != cut_off {
            known.set(cut_off);
        }
    }

    /// Why the server did not carry out the last order, if that was about this.
    pub fn not_done(&self, of: Ordered) -> Option<String> {
        let not_done = self.inner.with_value(|inner| inner.not_done).get()?;
        (not_done.of == of).then_some(not_done.why)
    }

    /// What the server said last of it, if it is one of its own.
    pub fn server(&self) -> Option<ServerRun> {
        self.record.with(|record| record.as_ref()?.server.clone())
    }

    /// What people call it; its id when nothing is known of it.
    pub fn name(&self) -> String {
        let name = |record: &Option<RunRecord>| record.as_ref().map(|record| record.name.clone());
        self.record.with_untracked(name).unwrap_or_else(|| self.id())
    }

    /// Reads something off the fold; a reactive caller is told when it may have changed.
    pub fn read<T>(&self, read: impl FnOnce(&Folded) -> T) -> T {
        self.version.track();
        self.inner.with_value(|inner| read(&inner.folded))
    }

    /// The model it waits for now, and until when, in milliseconds since 1970. Whoever shows it looks again
    /// every second, because the seconds left are shown, too.
    pub fn waits(&self) -> Option<(Wait, f64)> {
        self.inner.with_value(|inner| inner.waits.clone())
    }

    /// Like [`Run::read`] without telling the caller of changes.
    pub fn peek<T>(&self, read: impl FnOnce(&Folded) -> T) -> T {
        self.inner.with_value(|inner| read(&inner.folded))
    }

    /// Of `keys` those that its study may use, see [`sending::allowed`].
    pub fn allowed(&self, keys: &Keys) -> Keys {
        let Ok(study) = Study::parse(&self.study(), Format::Toml) else {
            return Keys::new();
        };
        sending::allowed(&study, keys)
    }

    /// Where its study sends keys that neither it nor `keys` has; nowhere when the server asks with its own.
    pub fn wanted(&self, keys: &Keys) -> Vec<Destination> {
        if self.is_on_server() {
            return Vec::new();
        }
        let Ok(study) = Study::parse(&self.study(), Format::Toml) else {
            return Vec::new();
        };
        let had = self.inner.with_value(|inner| inner.keys.clone());
        let mut wanted: Vec<Destination> = study
            .asked_models()
            .flat_map(sending::destinations)
            .filter(|to| had.of(to).is_none() && keys.of(to).is_none())
            .collect();
        wanted.sort();
        wanted.dedup();
        wanted
    }

    /// How many of its first rollouts alone are to be made before anything else, if they are not made yet.
    pub fn pilot(&self) -> Option<usize> {
        self.record.with(|record| record.as_ref()?.pilot)
    }

    /// The prompt of another run that it measures, if that is all it does.
    pub fn check(&self) -> Option<Check> {
        self.record.with(|record| record.as_ref()?.check.clone())
    }

    /// How it ended, once it has. Of a check the journal does not say.
    pub fn status(&self) -> Option<Status> {
        let checked = |record: &Option<RunRecord>| match record.as_ref()? {
            RunRecord {
                check: Some(_),
                status: RunStatus::Ended(status @ (Status::Feasible | Status::Infeasible | Status::Budget)),
                ..
            } => Some(*status),
            _ => None,
        };
        self.read(|folded| Some(folded.state.finished()?.status))
            .or_else(|| self.record.with(checked))
    }

    /// Whether its first rollouts alone were made, and the rest of it waits to be asked for.
    pub fn is_piloted(&self) -> bool {
        let waits = matches!(self.phase.get(), Phase::Paused(_)) && !self.is_on_server();
        let has_begun = waits && self.read(Folded::lines) > 0;
        has_begun && self.pilot().is_none() && self.check().is_none() && self.status().is_none()
    }

    /// The refusal of a key that ended it, if a model refused one that is of this tab.
    pub fn refusal(&self) -> Option<Refusal> {
        if self.is_on_server() {
            return None;
        }
        let broke_off = match self.phase.get() {
            Phase::Failed(message) => Some(message),
            _ => None,
        };
        let failure = self.read(|folded| folded.ended_by(broke_off.as_deref()).cloned())?;
        let study = Study::parse(&self.study(), Format::Toml).ok()?;
        Refusal::of(&failure, &study)
    }

    /// Names in its study the variables of keys that were typed for servers of which it says nothing of a key, and
    /// returns the study if that changed it.
    pub(super) fn name_keys(&self, keys: &Keys) -> Option<String> {
        let refusal = untrack(|| self.refusal())?;
        let mut study = Study::parse(&self.study(), Format::Toml).ok()?;
        let mut typed = refusal.asked.iter().filter(|to| keys.of(to).is_some()).peekable();
        typed.peek()?;
        for to in typed {
            sending::name_variable(&mut study, to);
        }
        let toml = study.to_toml().ok().filter(|toml| *toml != self.study())?;
        self.inner.update_value(|inner| inner.study.clone_from(&toml));
        Some(toml)
    }

    /// The study it was started with, as TOML.
    pub fn study(&self) -> String {
        self.inner.with_value(|inner| inner.study.clone())
    }

    /// Whether the data files that its study names are to be had: in this browser, or on the server that it is on.
    pub fn has_files(&self) -> bool {
        self.is_on_server() || self.inner.with_value(|inner| !inner.files.is_empty())
    }

    /// What it had come to when it first ran in this tab, or when it last went on here after it had in others; none where it
    /// did not run here.
    pub fn inherited(&self) -> Option<Inherited> {
        self.inner.with_value(|inner| inner.inherited)
    }

    /// Milliseconds it has run.
    pub fn elapsed(&self) -> f64 {
        let (before, began) = self.inner.with_value(|inner| (inner.elapsed, inner.began));
        let began = began.or_else(|| {
            // Another tab notes in the record, now and then, how long it had run by when.
            let elsewhere = self.phase.get_untracked() == Phase::InAnotherTab;
            let noted = self
                .record
                .with_untracked(|record| record.as_ref().map(|record| record.touched));
            noted.filter(|_| elsewhere)
        });
        before + began.map_or(0.0, |began| (js_sys::Date::now() - began).max(0.0))
    }

    /// Names what it runs with, before it is started for the first time.
    pub fn set_study(&self, record: RunRecord, files: DataFiles) {
        self.inner.update_value(|inner| {
            inner.study.clone_from(&record.study);
            inner.files = files;
        });
        self.set_record(record);
    }

    /// Takes over what is kept of how it went on in other tabs, and in this one before a reload.
    pub(super) fn set_record(&self, record: RunRecord) {
        self.inner
            .update_value(|inner| inner.elapsed = inner.elapsed.max(1000.0 * record.times.last()));
        self.record.set(Some(record));
    }

    /// Leaves it to the memory of its worker, because the browser refused to keep it.
    pub(super) fn keep_in_memory(self, refused: String) {
        self.inner.update_value(|inner| inner.keep = false);
        self.refuse(refused);
    }

    /// Notes why the browser keeps no more.
    pub(super) fn refuse(self, reason: String) {
        let is_lost = untrack(|| self.has_lost());
        self.refused.set(Some(Refused { reason, is_lost }));
    }

    /// Whether what the browser had kept of it is gone.
    pub fn has_lost(&self) -> bool {
        self.refused
            .with(|refused| refused.as_ref().is_some_and(|refused| refused.is_lost))
    }

    /// Where what was answered so far lies.
    pub fn what_is_kept(&self) -> &'static str {
        if self.is_on_server() {
            "Everything answered so far is kept."
        } else if self.has_lost() {
            "What was answered lies in the memory of this tab alone."
        } else if self.refused.with(Option::is_some) {
            "What was answered since this browser stores no more lies in the memory of this tab; what came before is kept."
        } else {
            "Everything answered so far is kept."
        }
    }

    /// Whether it was told to stop, not to pause.
    pub fn stops(&self) -> bool {
        self.inner.with_value(|inner| inner.why == Pause::Stopped)
    }

    /// Notes that what the browser kept of it was deleted: from now on its worker's memory is all there is.
    pub(super) fn lose_stored(self) {
        self.inner.update_value(|inner| inner.keep = false);
        self.refused.set(Some(Refused {
            reason: "the site data were cleared".to_owned(),
            is_lost: true,
        }));
    }

    /// Whether nothing of it could be read.
    pub fn is_unreadable(&self) -> bool {
        matches!(self.phase.get(), Phase::Unreadable(_)) && self.read(Folded::lines) == 0
    }

    /// Whether a worker of this tab works on it.
    pub fn is_working(&self) -> bool {
        !self.is_on_server() && matches!(self.phase.get_untracked(), Phase::Running | Phase::Pausing)
    }

    /// Whether lines of its journal lie in the memory of its worker only.
    pub fn holds_unsaved(&self) -> bool {
        self.refused.with_untracked(Option::is_some) && self.inner.with_value(|inner| inner.worker.is_some())
    }

    /// Shows what is new, now or a little later.
    pub(super) fn refresh(self, now: f64) {
        self.inner.update_value(|inner| {
            if inner.refresh.is_none() {
                let wait = (inner.shown + REFRESH - now).max(0.0);
                inner.refresh = Some(Timeout::new(wait as u32, move || self.overlook()));
            }
        });
    }

    /// Makes the overview that screens draw from and lets a later task draw it: both in one would
    /// keep the page from answering.
    fn overlook(self) {
        self.peek(Folded::overview);
        let show = Timeout::new(0, move || self.show());
        self.inner.update_value(|inner| inner.refresh = Some(show));
    }

    pub(super) fn show(self) {
        self.inner.update_value(|inner| {
            inner.shown = js_sys::Date::now();
            inner.refresh = None;
        });
        self.version.update(|version| *version += 1);
    }
}

/// A model that did not answer because of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Where the keys go of whoever the failed call may have asked.
    pub asked: Vec<Destination>,
    /// Whether the key itself is refused or missing (401), not what is done with it.
    pub is_of_key: bool,
    /// Whether a key was sent at all.
    pub was_sent: bool,
}

impl Refusal {
    /// None where a failure is no refusal, or of an agent or a scorer of somebody's own, which has no key here.
    fn of(failure: &FailureEvent, study: &Study) -> Option<Self> {
        if failure.kind != FailureKind::Authentication {
            return None;
        }
        let is_own = has_own_agent(study) || is_scorers_failure(&failure.message);
        let roles: &[Role] = match failure.of {
            EffectName::Rollout { .. } if is_own => return None,
            EffectName::Rollout { .. } => &[Role::Agent, Role::User, Role::Judge, Role::Embeddings],
            EffectName::Critique { .. } => &[Role::Critic],
            EffectName::Rewrite { .. } => &[Role::Rewriter],
        };
        let models = study.asked_tables();
        let tables = roles.iter().filter_map(|role| serving(*role, &models));
        let mut asked: Vec<Destination> = tables
            .flat_map(|(role, table)| match sending::destinations(table) {
                // A server that was to want no key.
                none if none.is_empty() => sending::destination(role, table).into_iter().collect(),
                some => some,
            })
            .collect();
        if asked.is_empty() {
            return None;
        }
        asked.sort();
        asked.dedup();
        // The message names the variable; where it does not, it may be any of them.
        let named: Vec<Destination> = asked
            .iter()
            .filter(|to| failure.message.contains(&to.variable))
            .cloned()
            .collect();
        Some(Self {
            is_of_key: failure.message.contains("HTTP 401"),
            was_sent: !named.is_empty(),
            asked: if named.is_empty() { asked } else { named },
        })
    }
}

#[cfg(test)]
mod tests {
    use capo_core::ids::CandidateId;
    use capo_core::usage::Usage;
    use serde_json::json;

    use super::*;

    fn failure(of: EffectName, message: &str) -> FailureEvent {
        FailureEvent {
            of,
            kind: FailureKind::Authentication,
            message: message.to_owned(),
            attempt: 1,
            tries: 1,
            usage: Usage::default(),
            answer: None,
            answers: Vec::new(),
        }
    }

    fn rollout() -> EffectName {
        EffectName::Rollout {
            candidate: CandidateId::of("seed"),
            split: capo_core::workload::Split::Optimize,
            workload: "table".into(),
            example: "1".into(),
            repeat: 0,
        }
    }

    fn study(agent: serde_json::Value) -> Study {
        let mut study = crate::studies::help_desk().unwrap();
        study.models = [(Role::Agent, agent)].into();
        study
    }

    #[test]
    fn a_server_that_was_to_want_no_key_is_given_a_field() {
        let mut study = study(
            json!({ "provider": "openai-compatible", "model": "m", "base_url": "http://localhost:1/v1" }),
        );
        let message = "openai-compatible/m: HTTP 401: a key is needed; name its variable with `api_key_env`";
        let refusal = Refusal::of(&failure(rollout(), message), &study).unwrap();
        assert!(refusal.is_of_key && !refusal.was_sent);
        assert_eq!(refusal.asked.len(), 1);
        assert_eq!(refusal.asked[0].origin, "http://localhost:1");
        sending::name_variable(&mut study, &refusal.asked[0]);
        let table = &study.models[&Role::Agent];
        assert_eq!(table["api_key_env"], json!(refusal.asked[0].variable));
        assert_eq!(sending::destinations(table), refusal.asked);
    }

    #[test]
    fn what_is_forbidden_is_no_refused_key() {
        let study = study(json!({ "provider": "openai", "model": "m" }));
        let message = "HTTP 403: not allowed for the key in OPENAI_API_KEY: no access to m";
        let refusal = Refusal::of(&failure(rollout(), message), &study).unwrap();
        assert!(!refusal.is_of_key && refusal.was_sent);
        assert_eq!(refusal.asked[0].variable, "OPENAI_API_KEY");
    }

    #[test]
    fn a_scorer_s_key_is_no_model_s() {
        let study = study(json!({ "provider": "openai", "model": "m" }));
        let message =
            "metric `tone`: the scorer https://scorer.example/run: HTTP 401 Unauthorized; it says: no";
        assert_eq!(Refusal::of(&failure(rollout(), message), &study), None);
    }

    #[test]
    fn an_agent_of_one_s_own_is_asked_by_no_model() {
        let mut study = study(json!({ "provider": "openai", "model": "m" }));
        study.workload = [("kind".to_owned(), json!("external"))].into_iter().collect();
        let message = "https://agent.example/run: HTTP 401 Unauthorized; it says: no";
        assert_eq!(Refusal::of(&failure(rollout(), message), &study), None);
        let rewrite = EffectName::Rewrite {
            round: 0,
            parent: CandidateId::of("seed"),
            index: 0,
        };
        assert!(Refusal::of(&failure(rewrite, "HTTP 401: refused"), &study).is_some());
    }
}
