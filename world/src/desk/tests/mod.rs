//! Promises of the help desk.

mod agents;
mod data;
mod dialogues;
mod played;
mod settings;
mod tools;

use capo_core::metric::Measurements;
use capo_core::workload::{Caller, Rollout, RolloutContext, Workload};
use futures::executor::block_on;

use super::{Desk, DeskSettings, State, UserKind};

fn desk() -> Desk {
    Desk::new(DeskSettings::default()).unwrap()
}

/// The tasks of a hundred batches.
fn hundred_batches() -> Desk {
    let settings = DeskSettings {
        optimize: 11_000,
        evaluate: 400,
        ..DeskSettings::default()
    };
    Desk::new(settings).unwrap()
}

fn fresh(desk: &Desk) -> State {
    State::new(desk.records(0))
}

/// One rollout of an agent on a task.
fn rollout(desk: &Desk, task: &str, caller: &dyn Caller) -> Rollout {
    let context = RolloutContext {
        prompt: "Be kind.",
        example: task,
        repeat: 0,
        seed: 7,
        caller,
    };
    block_on(desk.rollout(context)).unwrap()
}

fn value(measurements: &Measurements, metric: &str) -> f64 {
    measurements[metric]
}
