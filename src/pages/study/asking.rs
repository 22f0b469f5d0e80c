//! Questions to a worker about a draft: its cost at most, and whether its models answer.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use capo_core::llm::Role;
use capo_core::study::{Study, Table};
use gloo_timers::callback::Timeout;
use leptos::prelude::*;
use serde_json::Value;

use super::credentials::provider_of;
use super::problem::Problem;
use super::reach::Unreached;
use crate::keys::Keys;
use crate::live::WorkerHandle;
use crate::servers;
use crate::worker::protocol::{ChangedFiles, DataFiles, Looked, Order, ProbeFailure, Report};

/// How long a draft must rest before its cost is asked for, in milliseconds.
const REST: u32 = 300;
/// More bytes of data than this are not sent at every stroke of a key.
const MUCH: usize = 200_000;

/// What is known of a model or an agent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tested {
    /// It was asked.
    Asking,
    /// It answered, after so many seconds.
    Answers(f64),
    /// It did not: what happened, and what to do.
    Fails(String, String),
}

/// A test of a model, and of what exactly.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Test {
    /// The model's table.
    pub(super) table: Value,
    /// The keys it was asked with.
    pub(super) keys: Keys,
    /// What came of it.
    pub(super) tested: Tested,
    ticket: u64,
}

/// A test of an agent of somebody's own, and of what exactly.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AgentTest {
    /// The study's `[workload]` table.
    pub(super) workload: Table,
    /// What came of it.
    pub(super) tested: Tested,
    ticket: u64,
}

/// A search for examples that are in both splits, and of which rows exactly.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Duplicates {
    /// The study's `[workload]` table.
    pub(super) workload: Table,
    /// The data files it names.
    pub(super) files: DataFiles,
    /// The study's seed.
    pub(super) seed: u64,
    /// What to leave out; none before that is known.
    pub(super) found: Option<Vec<String>>,
    ticket: u64,
}

/// What a study costs at most, or what is wrong with it; none while it is worked out.
pub(super) type Forecasted = Option<Result<Value, String>>;

/// A worker that is asked, and its latest answers. Clones are the same.
#[derive(Clone, Copy)]
pub(super) struct Asking {
    inner: StoredValue<Inner, LocalStorage>,
    /// What the latest workload measures; none before it was first looked at.
    pub(super) looked: RwSignal<Option<Looked>>,
    /// The forecast of the latest draft.
    pub(super) forecast: RwSignal<Forecasted>,
    /// The latest test of each role's own model.
    pub(super) tests: RwSignal<BTreeMap<Role, Test>>,
    /// The latest test of the workload's own agent.
    pub(super) agent: RwSignal<Option<AgentTest>>,
    /// The latest search for examples that are in both splits.
    pub(super) duplicates: RwSignal<Option<Duplicates>>,
}

#[derive(Default)]
struct Inner {
    worker: Option<Rc<WorkerHandle>>,
    /// The data files that the worker has.
    sent: DataFiles,
    ticket: u64,
    /// The ticket of the forecast that counts.
    awaited: u64,
    rest: Option<Timeout>,
    /// Where the answers about other studies go, by their tickets.
    others: BTreeMap<u64, RwSignal<Forecasted>>,
    /// The same of the look at the workload.
    look_awaited: u64,
    look_rest: Option<Timeout>,
}

impl Asking {
    /// Nothing asked yet.
    pub(super) fn new() -> Self {
        Self {
            inner: StoredValue::new_local(Inner::default()),
            looked: RwSignal::new(None),
            forecast: RwSignal::new(None),
            tests: RwSignal::new(BTreeMap::new()),
            agent: RwSignal::new(None),
            duplicates: RwSignal::new(None),
        }
    }

    /// Asks what a workload measures; of much data once it has not changed for a moment.
    pub(super) fn look(self, workload: Table, files: DataFiles, seed: u64) {
        let reads_more = capo_workloads::of(&workload).is_some_and(|kind| kind.shares_files);
        let much = reads_more || files.values().map(|text| text.len()).sum::<usize>() > MUCH;
        let rest = if much { REST } else { 0 };
        let ask = move || {
            let ticket = self.ticket();
            self.inner.update_value(|inner| {
                inner.look_awaited = ticket;
                inner.look_rest = None;
            });
            let order = Order::Look {
                ticket,
                workload,
                seed,
            };
            self.tell_of(files, &order);
        };
        self.inner
            .update_value(|inner| inner.look_rest = Some(Timeout::new(rest, ask)));
    }

    /// Asks what a study costs at most, once it has not changed for a moment.
    pub(super) fn forecast(self, study: String, files: DataFiles) {
        let ask = move || {
            let ticket = self.ticket();
            self.inner.update_value(|inner| {
                inner.awaited = ticket;
                inner.rest = None;
            });
            self.tell_of(files, &Order::Forecast { ticket, study });
        };
        self.inner
            .update_value(|inner| inner.rest = Some(Timeout::new(REST, ask)));
    }

    /// Asks what a study beside the draft costs at most, and has the answer put there.
    pub(super) fn forecast_other(self, study: String, files: DataFiles, answer: RwSignal<Forecasted>) {
        let ticket = self.ticket();
        self.inner.update_value(|inner| {
            inner.others.insert(ticket, answer);
        });
        self.tell_of(files, &Order::Forecast { ticket, study });
    }

    /// Says that there is nothing to forecast.
    pub(super) fn forget_forecast(self) {
        self.inner.update_value(|inner| {
            inner.rest = None;
            inner.awaited = 0;
        });
        self.forecast.set(None);
    }

    /// Asks the model of a role whether it answers.
    pub(super) fn test(self, role: Role, table: Value, keys: Keys) {
        let ticket = self.ticket();
        let test = Test {
            table: table.clone(),
            keys: keys.clone(),
            tested: Tested::Asking,
            ticket,
        };
        self.tests.update(|tests| {
            tests.insert(role, test);
        });
        self.tell(&Order::Probe {
            ticket,
            table,
            role,
            keys,
        });
    }

    /// Has the agent of a workload do one example under the study's prompt.
    pub(super) fn try_agent(self, study: &Study, files: DataFiles) {
        let ticket = self.ticket();
        self.agent.set(Some(AgentTest {
            workload: study.workload.clone(),
            tested: Tested::Asking,
            ticket,
        }));
        let order = Order::TryAgent {
            ticket,
            workload: study.workload.clone(),
            prompt: study.prompt.text.clone().unwrap_or_default(),
            seed: study.study.seed,
        };
        self.tell_of(files, &order);
    }

    /// Asks which examples are in both splits.
    pub(super) fn find_duplicates(self, workload: Table, files: DataFiles, seed: u64) {
        let ticket = self.ticket();
        self.duplicates.set(Some(Duplicates {
            workload: workload.clone(),
            files: files.clone(),
            seed,
            found: None,
            ticket,
        }));
        let order = Order::Duplicates {
            ticket,
            workload,
            seed,
        };
        self.tell_of(files, &order);
    }

    fn ticket(self) -> u64 {
        let drawn = self.inner.try_update_value(|inner| {
            inner.ticket += 1;
            inner.ticket
        });
        drawn.unwrap_or_default()
    }

    /// Gives an order about data files, of which the worker is sent what it does not have yet.
    fn tell_of(self, files: DataFiles, order: &Order) {
        let changed = self.inner.try_update_value(|inner| changed(&inner.sent, &files));
        let Some(changed) = changed else { return };
        if changed.is_empty() || self.tell(&Order::Files { changed }) {
            self.inner.update_value(|inner| inner.sent = files);
            self.tell(order);
        }
    }

    /// Gives an order, and says whether there is a worker to carry it out.
    fn tell(self, order: &Order) -> bool {
        let worker = self.inner.try_with_value(|inner| inner.worker.clone()).flatten();
        let start = || WorkerHandle::new(move |report| self.hear(report), move |reason| self.broke(&reason));
        let worker = worker.map_or_else(start, Ok);
        match worker {
            Ok(worker) => {
                worker.tell(order);
                self.inner.update_value(|inner| inner.worker = Some(worker));
                true
            }
            Err(message) => {
                self.failed(&message);
                false
            }
        }
    }

    fn hear(self, report: Report) {
        match report {
            Report::Forecast { ticket, forecast } => {
                let to = self.inner.try_update_value(|inner| {
                    let other = inner.others.remove(&ticket);
                    other.or((inner.awaited == ticket).then_some(self.forecast))
                });
                if let Some(to) = to.flatten() {
                    // Whoever asked may be gone by now.
                    let _ = to.try_set(Some(forecast.map(|forecast| *forecast)));
                }
            }
            Report::Looked { ticket, looked } => {
                let counts = self.inner.try_with_value(|inner| inner.look_awaited == ticket);
                if counts == Some(true) {
                    self.looked.set(Some(looked));
                }
            }
            Report::Duplicates { ticket, ids } => self.duplicates.update(|search| {
                if let Some(search) = search.as_mut().filter(|search| search.ticket == ticket) {
                    search.found = Some(ids);
                }
            }),
            Report::Probed { ticket, answer } => self.probed(ticket, answer),
            Report::Failed { message } => self.failed(&message),
            // Reports of runs.
            _ => {}
        }
    }

    fn broke(self, reason: &str) {
        self.failed(&format!(
            "The worker that works this out stopped ({reason}). Change the study or test again; if that does not \
             help, reload the page."
        ));
    }

    /// The worker stopped: whatever was asked of it stays without an answer.
    fn failed(self, message: &str) {
        let others = self.inner.try_update_value(|inner| {
            inner.worker = None;
            inner.sent.clear();
            std::mem::take(&mut inner.others)
        });
        for other in others.into_iter().flat_map(BTreeMap::into_values) {
            let _ = other.try_set(Some(Err(message.to_owned())));
        }
        self.duplicates.set(None);
        self.forecast.set(Some(Err(message.to_owned())));
        self.looked.update(|looked| {
            looked.get_or_insert_default().wrong = Some(message.to_owned());
        });
        self.tests.update(|tests| {
            for test in tests.values_mut().filter(|test| test.tested == Tested::Asking) {
                test.tested = cut_short();
            }
        });
        self.agent.update(|test| {
            if let Some(test) = test.as_mut().filter(|test| test.tested == Tested::Asking) {
                test.tested = cut_short();
            }
        });
    }

    fn tried(self, ticket: u64, endpoint: String, answer: Result<f64, ProbeFailure>) {
        match answer {
            Ok(seconds) => self.settle_agent(ticket, Tested::Answers(seconds)),
            Err(failure) if !failure.unreachable => {
                let advice = Problem::of_text(&failure.message).message;
                let what = "The agent did not do the first example.".to_owned();
                self.settle_agent(ticket, Tested::Fails(what, advice));
            }
            Err(_) => leptos::task::spawn_local(async move {
                let why = Unreached::why(&endpoint).await;
                let (what, advice) = why.words_of_agent(&server(&endpoint), &origin());
                self.settle_agent(ticket, Tested::Fails(what, advice));
            }),
        }
    }

    fn settle_agent(self, ticket: u64, tested: Tested) {
        // The page may be gone by now.
        let _ = self.agent.try_update(|test| {
            if let Some(test) = test.as_mut().filter(|test| test.ticket == ticket) {
                test.tested = tested;
            }
        });
    }

    fn probed(self, ticket: u64, answer: Result<f64, ProbeFailure>) {
        let endpoint = self.agent.with_untracked(|test| {
            let test = test.as_ref().filter(|test| test.ticket == ticket)?;
            Some(test.workload.get("endpoint")?.as_str()?.to_owned())
        });
        if let Some(endpoint) = endpoint {
            return self.tried(ticket, endpoint, answer);
        }
        let asked = self.tests.with_untracked(|tests| {
            tests
                .values()
                .find(|test| test.ticket == ticket)
                .map(|test| test.table.clone())
        });
        let Some(table) = asked else { return };
        match answer {
            Ok(seconds) => self.settle(ticket, &Tested::Answers(seconds)),
            Err(failure) if !failure.unreachable => {
                let (what, advice) = told(&failure.message, &table);
                self.settle(ticket, &Tested::Fails(what, advice));
            }
            Err(_) => leptos::task::spawn_local(async move {
                let address = address(&table);
                let why = Unreached::why(&address).await;
                let (what, advice) = why.words(provider_of(&table), &server(&address), &origin());
                self.settle(ticket, &Tested::Fails(what, advice));
            }),
        }
    }

    fn settle(self, ticket: u64, tested: &Tested) {
        // The page may be gone by now.
        let _ = self.tests.try_update(|tests| {
            for test in tests.values_mut().filter(|test| test.ticket == ticket) {
                test.tested = tested.clone();
            }
        });
    }
}

/// What somebody who has some files needs to have others: the texts that are new, and none where one is gone.
fn changed(had: &DataFiles, files: &DataFiles) -> ChangedFiles {
    let is_had = |path: &String, text: &Arc<str>| had.get(path).is_some_and(|had| Arc::ptr_eq(had, text));
    let new = files.iter().filter(|(path, text)| !is_had(path, text));
    let new = new.map(|(path, text)| (path.clone(), Some(Arc::clone(text))));
    let gone = had.keys().filter(|path| !files.contains_key(*path));
    new.chain(gone.map(|path| (path.clone(), None))).collect()
}

/// What became of a test whose worker stopped.
fn cut_short() -> Tested {
    Tested::Fails("The test was cut short.".into(), "Test again.".into())
}

/// A failure's first sentence, and the rest with where the key went.
fn told(message: &str, table: &Value) -> (String, String) {
    let (what, rest) = message.split_once(". ").unwrap_or((message, ""));
    let what = format!("{}.", what.trim_end_matches('.'));
    let key_was_sent = what.contains("refused the key");
    let went = format!(" It was sent to {} only.", server(&address(table)));
    let advice = format!("{rest}{}", if key_was_sent { went.as_str() } else { "" });
    (what, advice.trim().to_owned())
}

/// Where a model's table asks.
fn address(table: &Value) -> String {
    let provider = table["provider"].as_str().unwrap_or_default();
    let usual = capo_models::ProviderName::find(provider).and_then(|provider| provider.get().base_url);
    table["base_url"]
        .as_str()
        .or(usual)
        .unwrap_or_default()
        .to_owned()
}

/// The server of an address, as people read it.
fn server(address: &str) -> String {
    let origin = servers::origin(address);
    servers::shown(origin.as_deref().unwrap_or(address)).to_owned()
}

/// Where this page comes from, as servers are told.
fn origin() -> String {
    let origin = web_sys::window().and_then(|window| window.location().origin().ok());
    origin.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_files_only_what_changed_is_sent() {
        let text = |text: &str| Arc::<str>::from(text);
        let (rows, old) = (text("question\n"), text("a"));
        let had = DataFiles::from([
            ("rows.csv".into(), Arc::clone(&rows)),
            ("tools.json".into(), old),
            ("gone.csv".into(), text("b")),
        ]);
        let files = DataFiles::from([("rows.csv".into(), rows), ("tools.json".into(), text("c"))]);
        let sent = changed(&had, &files);
        let expected = [
            ("gone.csv".to_owned(), None),
            ("tools.json".to_owned(), Some(text("c"))),
        ];
        assert_eq!(sent, ChangedFiles::from(expected));
        assert!(changed(&files, &files).is_empty());
    }

    #[test]
    fn a_refused_key_is_told_where_it_went() {
        let table = json!({ "provider": "anthropic", "model": "m" });
        let (what, advice) = told(
            "Anthropic refused the key (401). Check that it was copied whole and is still active.",
            &table,
        );
        assert_eq!(what, "Anthropic refused the key (401).");
        assert_eq!(
            advice,
            "Check that it was copied whole and is still active. It was sent to api.anthropic.com only."
        );
    }
}
