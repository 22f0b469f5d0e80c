//! A run of the server, mirrored in this browser: its lines come from there instead of from a worker.
//!
//! One tab at a time is connected and keeps what comes; others read what it keeps. What nobody sees, because another page
//! or another tab is shown, is let go of.

use capo_api::{ClientError, RunOrigin, RunShown, RunStage};
use capo_core::journal::slim;
use capo_models::Wait;
use futures::StreamExt as _;
use futures::channel::mpsc::{self, UnboundedReceiver};
use futures::future::{Either, select};
use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::fold::Folded;
use super::keeping::{Keeping, forget_mirror};
use super::phase::Phase;
use super::run::{Inherited, Inner, Run};
use super::server_events::{ServerEvent, ServerEvents, events_of};
use super::server_phase::{Coming, Connection, Disconnection, why};
use crate::storage::{RunRecord, server_id};
use crate::team::{Server, Standing, Team, sentence};

/// What stands in place of a run of the server.
pub(super) const SIGNED_OUT: &str = "This run is on the team’s server. Sign in to see it.";
const NO_SERVER: &str = "This run is on a team’s server, and none stands behind this page.";
pub(super) const GONE: &str = "This run is not on the server any more, or you have no role in its project.";

/// Milliseconds between two looks at whether anybody still wants to be told.
const LOOK: u32 = 1_000;

/// Lines that come within so many milliseconds are kept together.
const GATHER: u32 = 60;

/// Connections of a tab that stay open: a browser makes few to one server, and requests need some of them.
const MOST: u32 = 2;

/// The fewest seconds for which it is shown that a model is waited for.
const MOMENT: f64 = 2.0;

/// Events taken in at once.
const AT_ONCE: usize = 250;

/// Somebody who shows a run.
pub(super) struct Viewer(Run);

impl Drop for Viewer {
    fn drop(&mut self) {
        self.0.inner.try_update_value(|inner| inner.viewers -= 1);
    }
}

impl Run {
    /// Says which server it is on, if it is on one; what is returned hears when that is to be looked at.
    pub(super) fn be_on(self, team: Team) -> UnboundedReceiver<()> {
        let (wake, woken) = mpsc::unbounded();
        self.inner.update_value(|inner| inner.server = Some((team, wake)));
        woken
    }

    /// Has the run follow that on the server from now on.
    pub(super) fn mirror(self, team: Team) {
        let mut woken = self.be_on(team);
        spawn_local(async move {
            let mut last = (Disconnection::Unseen, 0);
            // Whether it was lost without having told anything new.
            let mut was_lost = false;
            while self.inner.try_with_value(|inner| inner.server.is_some()) == Some(true) {
                // What was said before is heeded by looking now.
                while woken.try_recv().is_ok() {}
                let lines = self.peek(Folded::lines);
                let left = self.session(team, was_lost).await;
                let is_news = self.peek(Folded::lines) > lines;
                was_lost = left == Disconnection::Lost && !is_news;
                last = if left == last.0 && !is_news {
                    (left, last.1 + 1)
                } else {
                    (left, 0)
                };
                match left.wait(last.1) {
                    Some(wait) => _ = select(TimeoutFuture::new(wait), woken.next()).await,
                    None => _ = woken.next().await,
                }
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
            inner.study.clear();
            inner.files.clear();
            inner.began = None;
            inner.closed = true;
        });
        self.say_not_done(None);
        self.record.set(None);
        self.refused.set(None);
        self.pending.set(None);
        self.notes.set(Vec::new());
        self.cut_off(false);
        self.phase.set(Phase::Unreadable(why.to_owned()));
        self.show();
    }

    /// Whether nothing that comes of it is to be shown or kept any more.
    pub(super) fn is_closed(&self) -> bool {
        self.inner.try_with_value(|inner| inner.closed) != Some(false)
    }

    /// Counts somebody among those who show it, for as long as they hold what is returned. A run of the server is followed
    /// as long as there is one.
    pub(super) fn shown_to(self) -> Viewer {
        self.inner.update_value(|inner| inner.viewers += 1);
        self.wake();
        Viewer(self)
    }

    fn is_seen(&self) -> bool {
        !document().hidden() && self.inner.with_value(|inner| inner.viewers > 0)
    }

    /// Follows the run as long as that is of use.
    async fn session(self, team: Team, was_lost: bool) -> Disconnection {
        match team.standing_now() {
            Standing::SignedOut | Standing::NotSetUp => {
                self.close(SIGNED_OUT);
                return Disconnection::NotAllowed;
            }
            Standing::NoServer => {
                self.close(NO_SERVER);
                return Disconnection::NotAllowed;
            }
            Standing::Unknown | Standing::Unreached(_) | Standing::SignedIn(_) => {}
        }
        self.inner.update_value(|inner| inner.closed = false);
        let mut keeping = Keeping::of(self).await;
        if self.record.with_untracked(Option::is_none) {
            keeping.read().await;
        }
        if !self.is_seen() {
            return Disconnection::Unseen;
        }
        if !keeping.hold().await {
            // What cannot be read now is looked for again.
            let _ = self.follow().await;
            self.cut_off(false);
            self.stand(true);
            return Disconnection::Elsewhere;
        }
        let id = keeping.id.clone();
        let on_server = server_id(&id).unwrap_or_default();
        let detail = team.request(async |server: Server| server.run(on_server).await);
        let detail = detail.await;
        if self.is_closed() {
            return Disconnection::NotAllowed;
        }
        let detail = match detail {
            Ok(detail) => detail,
            Err(error) => return self.not_told(&error, was_lost).await,
        };
        keeping.begin(&detail).await;
        if self.is_closed() {
            return Disconnection::NotAllowed;
        }
        let lines = self.peek(Folded::lines);
        let Some(mut events) = events_of(on_server, lines) else {
            return Disconnection::Lost;
        };
        let mut connection = Connection::new(lines, detail.run.revision);
        let left = self
            .listen(team, &mut events.told, &mut connection, &mut keeping)
            .await;
        if left == Disconnection::Lost {
            // One lost connection is no news: the next is made at once.
            self.cut_off(was_lost);
        }
        if matches!(left, Disconnection::Lost | Disconnection::Unseen) {
            self.inner.update_value(Inner::rest);
        }
        left
    }

    /// The server did not say anything of the run.
    async fn not_told(self, error: &ClientError, was_lost: bool) -> Disconnection {
        match error.status() {
            Some(401) => {
                self.close(SIGNED_OUT);
                Disconnection::NotAllowed
            }
            Some(404) => {
                self.close(GONE);
                forget_mirror(&self.id()).await;
                Disconnection::NotAllowed
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
                Disconnection::Lost
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
    ) -> Disconnection {
        loop {
            if let Either::Left((event, _)) = select(told.next(), TimeoutFuture::new(LOOK)).await {
                let Some(event) = event else {
                    return Disconnection::Lost;
                };
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
            if self.is_closed() {
                return Disconnection::NotAllowed;
            }
            if !self.is_seen() {
                return Disconnection::Unseen;
            }
            let goes_on = self.record.with_untracked(|record| {
                let server = record.as_ref().and_then(|record| record.server.as_ref());
                server.is_some_and(crate::storage::ServerRun::goes_on)
            });
            if connection.is_level() && !goes_on {
                return Disconnection::Rests;
            }
            if connection.is_level() && ServerEvents::open() > MOST {
                return Disconnection::Crowded;
            }
        }
    }

    async fn take_events(
        self,
        events: Vec<ServerEvent>,
        team: Team,
        connection: &mut Connection,
        keeping: &mut Keeping,
    ) -> Result<(), Disconnection> {
        let mut whole = Vec::new();
        for event in events {
            if self.is_closed() {
                return Err(Disconnection::NotAllowed);
            }
            match event {
                ServerEvent::Line(number, line) => match connection.line(number) {
                    Coming::Next => whole.push(line),
                    Coming::Known => {}
                    Coming::Beyond => return Err(Disconnection::Lost),
                },
                ServerEvent::Study(line) => {
                    self.take_lines(std::mem::take(&mut whole), keeping).await?;
                    connection.study();
                    self.replace_first(&line, keeping).await?;
                }
                ServerEvent::Run(shown) => {
                    self.take_lines(std::mem::take(&mut whole), keeping).await?;
                    if !connection.run(shown.revision) {
                        keeping.drop_lines().await;
                        return Err(Disconnection::Again);
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
                    keeping.shown(&shown, team).await;
                    self.show();
                }
                // What is heard of late is shown for a moment.
                ServerEvent::Waits(wait) => self.wait_for(wait.map(|wait| Wait {
                    seconds: wait.seconds.max(MOMENT),
                    ..wait
                })),
                ServerEvent::Strange => {
                    let newer =
                        "The server tells of this run what this page does not understand. Reload the page.";
                    self.phase.set(Phase::Failed(newer.to_owned()));
                    return Err(Disconnection::NotAllowed);
                }
            }
        }
        self.take_lines(whole, keeping).await
    }

    /// Folds lines that came and keeps them.
    async fn take_lines(self, whole: Vec<String>, keeping: &mut Keeping) -> Result<(), Disconnection> {
        if self.is_closed() {
            return Err(Disconnection::NotAllowed);
        }
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
                return Err(Disconnection::NotAllowed);
            }
            None => return Err(Disconnection::NotAllowed),
        }
        if let Phase::Opening(..) = self.phase.get_untracked() {
            let lines = |record: &Option<RunRecord>| Some(record.as_ref()?.server.as_ref()?.lines);
            let of = self.record.with_untracked(lines).unwrap_or_default();
            self.phase
                .set(Phase::Opening(self.peek(Folded::lines) as usize, of as usize));
        }
        keeping.lines(first, &whole, &slim).await;
        if self.is_closed() {
            Err(Disconnection::NotAllowed)
        } else {
            Ok(())
        }
    }

    /// Thresholds relative to the seed prompt were frozen.
    async fn replace_first(self, line: &str, keeping: &mut Keeping) -> Result<(), Disconnection> {
        let refolded = self.inner.try_update_value(|inner| inner.folded.under(line));
        let Some(Ok(refolded)) = refolded else {
            keeping.drop_lines().await;
            return Err(Disconnection::Again);
        };
        self.inner.update_value(|inner| inner.folded = refolded);
        keeping.first_line(line).await;
        Ok(())
    }

    /// Takes in where the server says that the run stands, unless it is closed meanwhile.
    pub fn take_shown(self, shown: &RunShown, take: fn(&mut RunRecord, &RunShown)) {
        if self.is_closed() {
            return;
        }
        let mut record = self.record.get_untracked();
        match &mut record {
            Some(record) => take(record, shown),
            None => record = Some(RunRecord::mirrored(shown)),
        }
        self.record.set(record);
        if matches!(shown.origin, RunOrigin::Server | RunOrigin::Training { .. }) {
            // All its rounds took of its time.
            self.inner
                .update_value(|inner| inner.inherited = Some(Inherited::default()));
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
