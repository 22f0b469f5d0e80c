//! The worker's side: runs a study over a journal in IndexedDB and tells the page each line.

mod benchmark;
mod import;
mod look;
mod pieces;
pub mod protocol;
mod session;
mod trial;
mod work;

use std::cell::{Cell, RefCell};

use capo_core::llm::Role;
use capo_models::forecast::Forecast;
use capo_models::prices::PriceTable;
use capo_models::probe::ProbeError;
use js_sys::Reflect;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent};

pub(crate) use self::look::ADVICE;
#[cfg(test)]
pub(crate) use self::look::look;
use self::protocol::{DataFiles, Message, ModelRequest, Order, ProbeFailure, Report, stamp};
use self::session::Session;
use self::work::Work;
pub(crate) use self::work::torn;
use crate::keys::Keys;

/// This worker's scope; none where it runs as no worker.
fn scope() -> Option<DedicatedWorkerGlobalScope> {
    js_sys::global().dyn_into().ok()
}

/// Listens to the page from now on.
pub fn start() {
    console_error_panic_hook::set_once();
    let Some(scope) = scope() else {
        // Nobody could give it orders.
        return;
    };
    let listen = Closure::<dyn Fn(MessageEvent)>::new(|message: MessageEvent| {
        let Message { order, beside, build } = Message::unpack(&message.data());
        match serde_json::from_str(&order) {
            _ if build != own_build() => report(&Report::Failed {
                message:
                    "Another tab took a newer version of this page, and this one is older. Reload the page."
                        .to_owned(),
            }),
            Ok(order) => take(order, beside),
            Err(error) => report(&Report::Failed {
                message: format!(
                    "The page and its worker do not understand each other ({error}). Reload the page."
                ),
            }),
        }
    });
    scope.set_onmessage(Some(listen.as_ref().unchecked_ref()));
    listen.forget();
}

/// What public/worker.js calls the module it has loaded.
const BUILD: &str = "capoBuild";

/// The module this worker runs, by the stamp of its content.
fn own_build() -> Option<String> {
    let build = Reflect::get(&js_sys::global(), &BUILD.into()).ok()?.as_string()?;
    stamp(&build)
}

fn report(report: &Report) {
    let (Some(scope), Ok(text)) = (scope(), serde_json::to_string(report)) else {
        return;
    };
    // Fails only when the page is gone.
    let _ = scope.post_message(&text.into());
}

thread_local! {
    /// The ticket of the latest [`Order::Look`].
    static LOOKING: Cell<u64> = const { Cell::new(0) };
    /// The data files at hand, by [`Order::Files`].
    static FILES: RefCell<DataFiles> = const { RefCell::new(DataFiles::new()) };
}

/// The data files at hand.
fn files() -> DataFiles {
    FILES.with_borrow(Clone::clone)
}

fn take(order: Order, attached: JsValue) {
    match order {
        Order::Run {
            run,
            study,
            files,
            keys,
            keep,
            known,
            elapsed,
            pilot,
            check,
        } => work::begin(Work {
            run,
            study,
            files,
            keys,
            keep,
            known,
            elapsed,
            pilot,
            check,
        }),
        Order::Interrupt { listed } => work::interrupt(listed),
        Order::Steer { change } => work::steer(change),
        Order::Withdraw { change } => work::withdraw(&change),
        Order::Files { changed } => FILES.with_borrow_mut(|files| {
            for (path, text) in changed {
                match text {
                    Some(text) => files.insert(path, text),
                    None => files.remove(&path),
                };
            }
        }),
        Order::Forecast { ticket, study } => {
            let files = files();
            spawn_local(async move {
                report(&Report::Forecast {
                    ticket,
                    forecast: forecast(&study, files).await,
                });
            });
        }
        Order::Look {
            ticket,
            workload,
            seed,
        } => {
            LOOKING.set(ticket);
            let files = files();
            spawn_local(async move {
                let files = benchmark::beside(&workload, files).await;
                if LOOKING.get() != ticket {
                    // Nobody waits for it any more.
                    return;
                }
                let looked = match files {
                    Ok(files) => look::look(&workload, &files, seed),
                    Err(wrong) => look::without_data(&workload, wrong),
                };
                report(&Report::Looked { ticket, looked });
            });
        }
        Order::Duplicates {
            ticket,
            workload,
            seed,
        } => report(&Report::Duplicates {
            ticket,
            ids: look::duplicates(workload, &files(), seed),
        }),
        Order::KeepBenchmark => spawn_local(async move {
            report(&Report::KeptBenchmark {
                kept: benchmark::take_in(&attached).await,
            });
        }),
        Order::Unsaved => report(&Report::Unsaved {
            chunks: work::unsaved(),
        }),
        Order::Probe {
            ticket,
            table,
            role,
            keys,
        } => spawn_local(async move {
            report(&Report::Probed {
                ticket,
                answer: probe(role, &table, &keys).await,
            });
        }),
        Order::Write(ModelRequest {
            table,
            prompt,
            message,
        }) => report(&Report::Written {
            request: capo_models::write_request(&table, &prompt, &message),
        }),
        Order::TryAgent {
            ticket,
            workload,
            prompt,
            seed,
        } => {
            let files = files();
            spawn_local(async move {
                report(&Report::Probed {
                    ticket,
                    answer: trial::try_agent(&workload, &files, &prompt, seed).await,
                });
            });
        }
        Order::Branch { from, run, round } => spawn_local(async move {
            let branched = import::branch(&from, &run, round).await;
            report(&Report::Imported {
                run: branched.map(|()| run),
            });
        }),
        Order::Import { run, name } => spawn_local(async move {
            let imported = import::import(&run, &name, attached, |how_far| {
                report(&Report::Importing(how_far));
            });
            report(&Report::Imported { run: imported.await });
        }),
    }
}

async fn forecast(study: &str, files: DataFiles) -> Result<Box<serde_json::Value>, String> {
    let session = Session::new(study, files).await?;
    let forecast = Forecast::new(&session.0.problem, &session.0.specs, &PriceTable::shipped());
    let forecast = forecast.map_err(|error| error.to_string())?;
    serde_json::to_value(forecast)
        .map(Box::new)
        .map_err(|error| error.to_string())
}

/// Asks a model whether it answers.
async fn probe(role: Role, table: &serde_json::Value, keys: &Keys) -> Result<f64, ProbeFailure> {
    match capo_models::probe::probe(role, table, keys).await {
        Ok(answered) => Ok(answered.seconds),
        Err(error) => Err(ProbeFailure {
            message: error.to_string(),
            unreachable: matches!(error, ProbeError::Unreachable { .. }),
        }),
    }
}
