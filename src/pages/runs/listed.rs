//! The runs kept in this browser and those of the team, as the page holds them.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::baseline::{Against, Baselines};
use super::on_server::{OnServer, merged};
use super::rows::{Row, State};
use crate::components::{every, may_order};
use crate::frame::imports::Imports;
use crate::live::{Phase, Run, Runs};
use crate::storage::{RunList, RunRecord, lock, mirror_id};
use crate::team::{Server, Team};

/// How often a list with a run that goes on is read anew.
const EVERY: Duration = Duration::from_millis(1500);

/// The server is asked every so many times, and as long as it has no news twice as rarely each time, up to `RAREST`.
const ASKED: u32 = 3;
const RAREST: u32 = 48;

/// Requests about single runs that are under way at once: a browser makes few to one server.
const AT_ONCE: usize = 4;

/// The list and what is selected in it. Clones are the same list.
#[derive(Clone, Copy)]
pub(super) struct Listed {
    runs: Runs,
    on_server: RwSignal<OnServer>,
    asking: StoredValue<ServerAsked>,
    /// `None` until it is read.
    rows: RwSignal<Option<Result<Vec<Row>, String>>>,
    /// Names of runs that only a newer version of the page can read.
    pub(super) newer: RwSignal<Vec<String>>,
    /// Ids of selected runs.
    pub(super) selected: RwSignal<BTreeSet<String>>,
    /// What names are looked for.
    pub(super) looked_for: RwSignal<String>,
    baselines: Baselines,
}

/// How the server is asked.
#[derive(Clone, Copy)]
struct ServerAsked {
    /// How often it was, or was not to be any more.
    count: u32,
    /// Whether its answer is waited for.
    waits: bool,
    /// Every how many times it is.
    pace: u32,
}

impl Listed {
    /// The list, kept up to date as long as the caller lives.
    pub(super) fn new() -> Self {
        let runs = expect_context::<Runs>();
        let imports = expect_context::<Imports>();
        let team = expect_context::<Team>();
        // One's roles may have changed since.
        team.read_projects();
        let listed = Self {
            runs,
            on_server: RwSignal::new(OnServer::default()),
            asking: StoredValue::new(ServerAsked {
                count: 0,
                waits: false,
                pace: ASKED,
            }),
            rows: RwSignal::new(None),
            newer: RwSignal::new(Vec::new()),
            selected: RwSignal::new(BTreeSet::new()),
            looked_for: RwSignal::new(String::new()),
            baselines: Baselines::kept(),
        };
        Effect::new(move |_| {
            imports.arrived();
            runs.cleared();
            listed.refresh();
        });
        let standing = team.standing();
        Effect::new(move |before: Option<Option<String>>| {
            team.changes();
            // Read, not only tracked: a memo that nobody reads knows of no change.
            let member = standing.with(|standing| standing.member().map(str::to_owned));
            if before.is_some_and(|before| before != member) {
                listed.on_server.set(OnServer::default());
            }
            listed.asking.update_value(|asking| asking.pace = ASKED);
            listed.ask_server(member.is_some(), 0);
            member
        });
        let goes_on = move |states: &[State]| {
            listed.rows.with_untracked(|rows| {
                let mut rows = rows.iter().flatten().flatten();
                rows.any(|row| states.contains(&row.state))
            })
        };
        let ticks = StoredValue::new(0_u32);
        let tick = move || {
            if document().hidden() {
                return;
            }
            ticks.update_value(|ticks| *ticks += 1);
            let ServerAsked { waits, pace, .. } = listed.asking.get_value();
            let is_due = ticks.get_value() >= pace && !waits;
            if is_due && goes_on(&[State::OnServer, State::Queued]) {
                ticks.set_value(0);
                listed.ask_server(true, 0);
            } else if goes_on(&[State::Running, State::InAnotherTab, State::InTurn])
                || !runs.running().is_empty()
            {
                listed.refresh();
            }
        };
        every(|| Some(EVERY), tick);
        listed
    }

    /// Asks the server anew for the pages that it listed, and for so many more, if somebody `is_in`, signed in to one.
    fn ask_server(self, is_in: bool, more: u32) {
        self.asking.update_value(|asking| {
            asking.count += 1;
            asking.waits = is_in;
        });
        if !is_in {
            return self.refresh();
        }
        let count = self.asking.get_value().count;
        let known = self.on_server.with_untracked(|known| known.pages);
        spawn_local(async move {
            let read = self.read(known, more).await;
            // The page may be left by then, somebody signed out, or an answer overtaken by a later one.
            if self.asking.try_get_value().map(|asking| asking.count) != Some(count) {
                return;
            }
            let is_news = read
                .as_ref()
                .is_ok_and(|read| self.on_server.with_untracked(|known| known != read));
            self.asking.update_value(|asking| {
                asking.waits = false;
                asking.pace = if is_news {
                    ASKED
                } else {
                    RAREST.min(2 * asking.pace)
                };
            });
            match read {
                Ok(read) => self.on_server.set(read),
                Err(why) => self.on_server.update(|known| known.refused = Some(why)),
            }
            self.refresh();
        });
    }

    /// What the server says of the runs on those pages, of baselines, and of others that are mirrored here: at first of all,
    /// then of those that go on. Mirrors of runs that it does not have any more are deleted.
    async fn read(self, known: u32, more: u32) -> Result<OnServer, String> {
        // Before the list is: it has what is mirrored later.
        // A browser that keeps nothing has no mirrors.
        let kept = self.runs.kept().await.unwrap_or_default().runs;
        let page = async |before: Option<String>| {
            let request = async |server: Server| server.runs(None, before.as_deref()).await;
            self.runs.team().ask(request).await
        };
        let mut read = OnServer::read(known + more, page).await?;
        let lacking = read.lacks(&kept, known == 0, &self.baselines.now());
        let answers = lacking.into_iter().map(async |id| {
            let request = async |server: Server| server.run(&id).await;
            let answer = self.runs.team().request(request).await;
            (id, answer)
        });
        let mut answers = stream::iter(answers).buffered(AT_ONCE);
        while let Some((id, answer)) = answers.next().await {
            match answer {
                Ok(detail) => read.add(detail.run),
                Err(error) if error.status() == Some(404) => {
                    let id = mirror_id(&id);
                    self.baselines.forget(&id);
                    self.runs.gone(&id).await;
                }
                // What is known of it stands.
                Err(_) => {}
            }
        }
        Ok(read)
    }

    /// Asks the server for the next page, too.
    pub(super) fn ask_more(self) {
        self.ask_server(true, 1);
    }

    /// Why the server lists nothing new.
    pub(super) fn refused(self) -> Option<String> {
        self.on_server.with(|listed| listed.refused.clone())
    }

    /// Whether the server has more to list.
    pub(super) fn has_more(self) -> bool {
        self.on_server.with(|listed| listed.more.is_some())
    }

    /// Reads the list anew.
    pub(super) fn refresh(self) {
        spawn_local(async move {
            let held = lock::held().await;
            // Asked last: who signs out meanwhile is shown nothing of the team.
            let read = self.runs.kept().await.map_err(|error| error.to_string());
            let Some(there) = self.on_server.try_with_untracked(OnServer::records) else {
                return;
            };
            let read = match read {
                // A browser that keeps nothing shows those of the team all the same.
                Err(_) if !there.is_empty() => Ok(RunList::default()),
                read => read,
            };
            let running: BTreeSet<String> = self.runs.running().iter().map(Run::id).collect();
            let opened = self.runs.opened();
            let queued = opened
                .iter()
                .filter(|run| matches!(run.phase.get_untracked(), Phase::Queued(_)));
            let queued: BTreeSet<String> = queued.map(Run::id).collect();
            let rows = read.map(|listed| -> Vec<Row> {
                self.newer.set(listed.newer);
                let rows = merged(listed.runs, there)
                    .into_iter()
                    .map(|record| Row::new(record, &running, &queued, &held));
                rows.collect()
            });
            if let Ok(rows) = &rows {
                let kept: BTreeSet<&str> = rows.iter().map(|row| row.record.id.as_str()).collect();
                self.selected
                    .update(|selected| selected.retain(|id| kept.contains(id.as_str())));
            }
            self.rows.set(Some(rows));
        });
    }

    /// Rows, or why there are none; `None` until they are read.
    pub(super) fn rows(self) -> Option<Result<Vec<Row>, String>> {
        self.rows.get()
    }

    pub(super) fn all(self) -> Vec<RunRecord> {
        self.rows.with(|rows| {
            let rows = rows.iter().flatten().flatten();
            rows.map(|row| row.record.clone()).collect()
        })
    }

    /// Those that are selected, in the list's order.
    pub(super) fn chosen(self) -> Vec<RunRecord> {
        let selected = self.selected.get();
        let all = self.all().into_iter();
        all.filter(|record| selected.contains(&record.id)).collect()
    }

    /// The baseline of a run's project, or of this browser's own.
    pub(super) fn baseline(self, run: &RunRecord) -> Option<RunRecord> {
        self.rows.with(|rows| {
            let all = rows.iter().flatten().flatten().map(|row| &row.record);
            self.baselines.of(run, all).cloned()
        })
    }

    /// Whether any run is measured against one.
    pub(super) fn has_baseline(self) -> bool {
        self.rows.with(|rows| {
            let mut all = rows.iter().flatten().flatten().map(|row| &row.record);
            all.any(|run| self.baselines.of(run, std::iter::once(run)).is_some())
        })
    }

    /// How a run stands to its baseline.
    pub(super) fn against(self, run: &RunRecord) -> Option<Against> {
        self.baseline(run).map(|baseline| Against::new(run, &baseline))
    }

    /// Makes a run the baseline in place of another one, or no longer.
    pub(super) fn turn_baseline(self, run: &RunRecord) {
        let former = untrack(|| self.baseline(run));
        self.baselines.turn(&run.id, former.as_ref());
    }

    /// Whether one may do more with a run than look at it.
    pub(super) fn may_order(self, record: &RunRecord) -> bool {
        may_order(self.runs.team(), record)
    }

    pub(super) fn record(self, id: &str) -> Option<RunRecord> {
        self.all().into_iter().find(|record| record.id == id)
    }

    /// How many there are.
    pub(super) fn count(self) -> usize {
        self.rows.with(|rows| rows.iter().flatten().flatten().count())
    }

    /// How many of them this browser keeps.
    pub(super) fn kept(self) -> usize {
        self.rows.with(|rows| {
            let rows = rows.iter().flatten().flatten();
            rows.filter(|row| row.is_kept()).count()
        })
    }

    /// Whether there is none, or none is read yet.
    pub(super) fn is_empty(self) -> bool {
        self.count() == 0
    }
}
