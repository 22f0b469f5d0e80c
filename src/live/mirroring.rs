//! A run of the server, mirrored in this browser: its lines come from there instead of from a worker.
//!
//! One tab at a time is connected and keeps what comes; others read what it keeps. A tab that nobody sees lets go of both.

use capo_api::{ClientError, RunDetail, RunOrigin, RunShown, RunStage};
use capo_core::study::{Format, Study};
use futures::StreamExt as _;
use futures::channel::mpsc::{self, UnboundedReceiver};
use futures::future::{Either, select};
use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::fold::Folded;
use super::phase::Phase;
use super::run::{Inner, Run};
use super::server_events::{ServerEvent, ServerEvents};
use super::server_phase::{Coming, Connection, Left, why};
use crate::storage::lock::{self, NotHeld};
use crate::storage::{NotKept, RunRecord, Storage, StorageError, server_id, slim};
use crate::studies;
use crate::team::{Server, Standing, Team, sentence};

/// What stands in place of a run of the server.
pub(super) const SIGNED_OUT: &str = "This run is on the team’s server. Sign in to see it.";
const NO_SERVER: &str = "This run is on a team’s server, and none stands behind this page.";
const GONE: &str = "This run is not on the server any more, or you have no role in its project.";

/// Milliseconds between two looks at whether anybody still wants to be told.
const LOOK: u32 = 1_000;

/// Lines that come within so many milliseconds are kept together.
const GATHER: u32 = 60;

/// Connections of a tab that stay open: a browser makes few to one server, and requests need some of them.
const MOST: u32 = 2;

/// Events taken in at once.
const AT_ONCE: usize = 250;

/// Where what comes is kept, if anywhere.
struct Keeping {
    storage: Option<Storage>,
    id: String,
}

impl Run {
    /// Has the run follow that on the server from now on.
    pub(super) fn mirror(self, team: Team) {
        let (wake, mut woken) = mpsc::unbounded();
        self.inner.update_value(|inner| inner.server = Some((team, wake)));
        spawn_local(async move {
            let mut last = (Left::Hidden, 0);
            // Whether it was lost without having told anything new.
            let mut was_lost = false;
            while self.inner.try_with_value(|inner| inner.discarded) == Some(false) {
                // What was said before is heeded by looking now.
                while woken.try_recv().is_ok() {}
                let lines = self.peek(Folded::lines);
                let left = self.session(team, was_lost).await;
                let is_news = self.peek(Folded::lines) > lines;
                was_lost = left == Left::Lost && !is_news;
                last = if left == last.0 && !is_news {
                    (left, last.1 + 1)
                } else {
                    (left, 0)
                };
                select(TimeoutFuture::new(left.wait(last.1)), woken.next()).await;
            }
        });
    }

    /// Has the server looked at once more, now.
    pub(super) fn wake(self) {
        self.inner.with_value(|inner| {
            if let Some((_, wake)) = &inner.server {
                // Nobody listens any more where the run is discarded.
                let _ = wake.unbounded_send(());
            }
        });
    }

    /// Forgets what is known of it here, and says why.
    pub(super) fn close(self, why: &str) {
        self.inner.update_value(|inner| {
            inner.folded = Folded::default();
            inner.began = None;
        });
        self.record.set(None);
        self.pending.set(None);
        self.cut_off(false);
        self.phase.set(Phase::Unreadable(why.to_owned()));
        self.show();
    }

    /// Follows the run as long as that is of use.
    async fn session(self, team: Team, was_lost: bool) -> Left {
        match team.standing_now() {
            Standing::SignedOut | Standing::NotSetUp => {
                self.close(SIGNED_OUT);
                return Left::NotAllowed;
            }
            Standing::NoServer => {
                self.close(NO_SERVER);
                return Left::NotAllowed;
            }
            Standing::Unknown | Standing::Unreached(_) | Standing::SignedIn(_) => {}
        }
        let storage = Storage::open().await;
        if let Err(error) = &storage {
            self.refuse(error.to_string());
        }
        let mut keeping = Keeping {
            storage: storage.ok(),
            id: self.id(),
        };
        if self.record.with_untracked(Option::is_none) {
            self.read_mirror(&mut keeping).await;
        }
        if document().hidden() {
            return Left::Hidden;
        }
        let mut _held = None;
        if keeping.storage.is_some() {
            match lock::hold(&keeping.id).await {
                Ok(held) => _held = Some(held),
                Err(NotHeld::Busy) => {
                    // What cannot be read now is looked for again.
                    let _ = self.follow().await;
                    self.stand(true);
                    return Left::Elsewhere;
                }
                Err(NotHeld::Refused) => {}
            }
        }
        let id = keeping.id.clone();
        let on_server = server_id(&id).unwrap_or_default();
        let detail = team.request(async |server: Server| server.run(on_server).await);
        let detail = match detail.await {
            Ok(detail) => detail,
            Err(error) => return self.not_told(&error, &keeping, was_lost).await,
        };
        self.begin_at(&detail, &mut keeping).await;
        let lines = self.peek(Folded::lines);
        let Some(mut events) = ServerEvents::of(on_server, lines) else {
            return Left::Lost;
        };
        let mut connection = Connection::new(lines, detail.run.revision);
        let left = self
            .listen(team, &mut events.told, &mut connection, &mut keeping)
            .await;
        if left == Left::Lost {
            // One lost connection is no news: the next is made at once.
            self.cut_off(was_lost);
            self.inner.update_value(Inner::rest);
        }
        left
    }

    /// Shows what this browser keeps of it, before the server is asked.
    async fn read_mirror(self, keeping: &mut Keeping) {
        let Some(storage) = &keeping.storage else { return };
        let Ok(Some(record)) = storage.run(&keeping.id).await else {
            return;
        };
        self.set_study(record, <_>::default());
        let read = self.fold_stored(|read, of| self.phase.set(Phase::Opening(read, of)));
        if read.await.is_err() {
            // The server has all of it.
            self.drop_lines(keeping).await;
        } else if self.peek(Folded::lines) > 0 {
            self.stand(false);
            self.show();
        }
    }

    /// Forgets the lines that are known here, which are not those of the server's journal.
    async fn drop_lines(self, keeping: &mut Keeping) {
        self.inner.update_value(|inner| inner.folded = Folded::default());
        if let Some(storage) = &keeping.storage
            && let Err(error) = storage.cut_lines(&keeping.id, 0).await
        {
            self.keep_no_more(keeping, &error);
        }
    }

    fn keep_no_more(self, keeping: &mut Keeping, why: &StorageError) {
        keeping.storage = None;
        self.refuse(why.to_string());
    }

    /// Keeps what the server says of the run, and lets go of lines that are not of its journal.
    async fn begin_at(self, detail: &RunDetail, keeping: &mut Keeping) {
        let known = self.record.with_untracked(|record| {
            let server = record.as_ref()?.server.as_ref()?;
            Some(server.revision)
        });
        let is_other = self.peek(Folded::lines) > detail.run.lines || known != Some(detail.run.revision);
        if self.peek(Folded::lines) > 0 && is_other {
            self.drop_lines(keeping).await;
        }
        let study = Study::parse(&detail.study, Format::Toml).ok();
        let about = study.as_ref().map(studies::about).unwrap_or_default();
        let change = |record: &mut RunRecord| {
            record.take_with_revision(&detail.run);
            record.study.clone_from(&detail.study);
            record.about.clone_from(&about);
        };
        let mut record = RunRecord::mirrored(&detail.run);
        change(&mut record);
        self.set_study(record.clone(), <_>::default());
        let Some(storage) = &keeping.storage else { return };
        let lines = self.peek(Folded::lines);
        let kept = async {
            // Beyond the lines that are known only such can lie that follow a missing one.
            storage.cut_lines(&keeping.id, lines).await?;
            if storage.change_run(&keeping.id, change).await?.is_none() {
                storage.put_run(&record).await?;
            }
            match lines.checked_sub(1) {
                Some(last) => storage.slim_line(&keeping.id, last).await,
                None => Ok(Some(String::new())),
            }
        };
        match kept.await {
            Ok(last) if self.peek(|folded| last.as_deref() == Some(folded.last())) => self.refused.set(None),
            // What lies between was not kept, and nothing is that would follow it.
            Ok(_) => keeping.storage = None,
            Err(error) => self.keep_no_more(keeping, &error),
        }
    }

    /// The server did not say anything of the run.
    async fn not_told(self, error: &ClientError, keeping: &Keeping, was_lost: bool) -> Left {
        let status = match error {
            ClientError::Refused(problem) => problem.status,
            ClientError::Unreached(_) | ClientError::UnexpectedAnswer { .. } => 0,
        };
        match status {
            401 => {
                self.close(SIGNED_OUT);
                Left::NotAllowed
            }
            404 => {
                if let Some(storage) = &keeping.storage {
                    // One that stays is deleted when it is opened next.
                    let _ = storage.delete_run(&keeping.id).await;
                }
                self.close(GONE);
                Left::NotAllowed
            }
            _ => {
                if self.record.with_untracked(Option::is_none) {
                    self.phase.set(Phase::Unreadable(sentence(error)));
                } else {
                    self.stand(false);
                }
                if was_lost {
                    self.cut_off(true);
                }
                Left::Lost
            }
        }
    }

    /// Takes in what comes, until nobody wants it any more.
    async fn listen(
        self,
        team: Team,
        told: &mut UnboundedReceiver<ServerEvent>,
        connection: &mut Connection,
        keeping: &mut Keeping,
    ) -> Left {
        loop {
            if let Either::Left((event, _)) = select(told.next(), TimeoutFuture::new(LOOK)).await {
                let Some(event) = event else { return Left::Lost };
                if matches!(event, ServerEvent::Line(..)) {
                    TimeoutFuture::new(GATHER).await;
                }
                let mut events = vec![event];
                while events.len() < AT_ONCE
                    && let Ok(event) = told.try_recv()
                {
                    events.push(event);
                }
                if let Err(left) = self.take_events(events, team, connection, keeping).await {
                    return left;
                }
            }
            let is_out = matches!(
                team.standing_now(),
                Standing::SignedOut | Standing::NotSetUp | Standing::NoServer
            );
            if is_out || self.inner.try_with_value(|inner| inner.discarded) != Some(false) {
                return Left::NotAllowed;
            }
            if document().hidden() {
                self.inner.update_value(Inner::rest);
                return Left::Hidden;
            }
            let goes_on = self.record.with_untracked(|record| {
                let server = record.as_ref().and_then(|record| record.server.as_ref());
                server.is_some_and(crate::storage::ServerRun::goes_on)
            });
            if connection.is_level() && !goes_on {
                return Left::Rests;
            }
            if connection.is_level() && ServerEvents::open() > MOST {
                return Left::Crowded;
            }
        }
    }

    async fn take_events(
        self,
        events: Vec<ServerEvent>,
        team: Team,
        connection: &mut Connection,
        keeping: &mut Keeping,
    ) -> Result<(), Left> {
        let mut whole = Vec::new();
        for event in events {
            match event {
                ServerEvent::Line(number, line) => match connection.line(number) {
                    Coming::Next => whole.push(line),
                    Coming::Known => {}
                    Coming::Beyond => return Err(Left::Lost),
                },
                ServerEvent::Study(line) => {
                    self.take_lines(std::mem::take(&mut whole), keeping).await?;
                    connection.study();
                    self.replace_first(&line, keeping).await?;
                }
                ServerEvent::Run(shown) => {
                    self.take_lines(std::mem::take(&mut whole), keeping).await?;
                    if !connection.run(shown.revision) {
                        self.drop_lines(keeping).await;
                        return Err(Left::Again);
                    }
                    self.take_shown(&shown, RunRecord::take_with_revision);
                    self.cut_off(false);
                    let is_shown = !matches!(
                        self.phase.get_untracked(),
                        Phase::Opening(..) | Phase::Unreadable(_)
                    );
                    if connection.is_level() || is_shown {
                        self.stand(true);
                    }
                    self.keep_shown(&shown, team, keeping).await;
                    self.show();
                }
                ServerEvent::Strange => {
                    let newer =
                        "The server tells of this run what this page does not understand. Reload the page.";
                    self.phase.set(Phase::Failed(newer.to_owned()));
                    return Err(Left::NotAllowed);
                }
                ServerEvent::Lost => {
                    self.take_lines(std::mem::take(&mut whole), keeping).await?;
                    return Err(Left::Lost);
                }
            }
        }
        self.take_lines(whole, keeping).await
    }

    /// Folds lines that came and keeps them.
    async fn take_lines(self, whole: Vec<String>, keeping: &mut Keeping) -> Result<(), Left> {
        if whole.is_empty() {
            return Ok(());
        }
        let slim: Vec<String> = whole.iter().map(|line| slim(line).into_owned()).collect();
        let (first, at) = (self.peek(Folded::lines), self.times());
        let taken = self.inner.try_update_value(|inner| inner.take(first, &slim, at));
        match taken {
            Some(Ok(steers)) => self.took(&steers, js_sys::Date::now()),
            Some(Err(message)) => {
                self.phase.set(Phase::Unreadable(message));
                return Err(Left::NotAllowed);
            }
            None => return Err(Left::NotAllowed),
        }
        if let Phase::Opening(..) = self.phase.get_untracked() {
            let lines = |record: &Option<RunRecord>| Some(record.as_ref()?.server.as_ref()?.lines);
            let of = self.record.with_untracked(lines).unwrap_or_default();
            self.phase
                .set(Phase::Opening(self.peek(Folded::lines) as usize, of as usize));
        }
        let Some(storage) = &keeping.storage else {
            return Ok(());
        };
        match storage.add_lines(&keeping.id, first, &whole, &slim).await {
            Ok(()) => {}
            Err(NotKept::Refused(error)) => self.keep_no_more(keeping, &error),
            // Without locks another tab may keep the same lines.
            Err(NotKept::Taken) => keeping.storage = None,
        }
        Ok(())
    }

    /// Thresholds relative to the seed prompt were frozen.
    async fn replace_first(self, line: &str, keeping: &mut Keeping) -> Result<(), Left> {
        let refolded = self.inner.try_update_value(|inner| inner.folded.under(line));
        let Some(Ok(refolded)) = refolded else {
            self.drop_lines(keeping).await;
            return Err(Left::Again);
        };
        self.inner.update_value(|inner| inner.folded = refolded);
        if let Some(storage) = &keeping.storage
            && let Err(error) = storage.replace_first_line(&keeping.id, line).await
        {
            self.keep_no_more(keeping, &error);
        }
        Ok(())
    }

    /// Keeps where the run stands.
    async fn keep_shown(self, shown: &RunShown, team: Team, keeping: &mut Keeping) {
        let Some(storage) = &keeping.storage else { return };
        match storage
            .change_run(&keeping.id, |record| record.take_with_revision(shown))
            .await
        {
            Ok(Some(_)) => {}
            // Deleted in another tab, perhaps because somebody signed out there.
            Ok(None) => {
                keeping.storage = None;
                team.find_out();
            }
            Err(error) => self.keep_no_more(keeping, &error),
        }
    }

    /// Takes in where the server says that the run stands.
    pub(super) fn take_shown(self, shown: &RunShown, take: fn(&mut RunRecord, &RunShown)) {
        let mut record = self.record.get_untracked();
        match &mut record {
            Some(record) => take(record, shown),
            None => record = Some(RunRecord::mirrored(shown)),
        }
        self.record.set(record);
        if shown.origin == RunOrigin::Server {
            // All its rounds took of its time.
            self.inner.update_value(|inner| inner.inherited = Some(0));
        }
    }

    /// Shows where the run stands as its record says; its clock goes on when that is `of_now` and the run goes on.
    pub(super) fn stand(self, of_now: bool) {
        let Some(record) = self.record.get_untracked() else {
            return;
        };
        let Some(server) = record.server else { return };
        let (now, so_far) = (js_sys::Date::now(), self.elapsed());
        let noted = 1000.0 * record.times.last();
        self.inner.update_value(|inner| {
            let runs = of_now && server.stage == RunStage::Running;
            inner.elapsed = if runs { so_far.max(noted) } else { noted };
            inner.began = runs.then_some(now);
            inner.why = why(&server);
        });
        let start = server.start_at.as_deref();
        let start = start.map(|at| js_sys::Date::new(&at.into()).get_time());
        let phase = Phase::of_server(&server, start.filter(|start| *start > now));
        let before = self.phase.get_untracked();
        let rested = matches!(before, Phase::Paused(_) | Phase::Resting | Phase::Failed(_));
        if rested && server.goes_on() {
            let at = Some(self.elapsed() / 1000.0);
            self.inner.update_value(|inner| inner.folded.goes_on(at));
        }
        if before != phase {
            self.phase.set(phase);
        }
        // What waits when a run is paused waits on the server for when it is resumed.
        if matches!(server.stage, RunStage::Ended | RunStage::Failed) {
            self.drop_pending(self.peek(|folded| folded.state.finished().map(|finished| finished.status)));
        }
    }
}
