//! Promises of the help desk.

mod agents;
mod data;
mod dialogues;
mod played;
mod settings;
mod tools;

use std::rc::Rc;

use capo_core::metric::Measurements;
use capo_core::workload::{Caller, Rollout, RolloutContext, Workload};
use futures::executor::block_on;

use super::{Desk, DeskSettings, State, UserKind};

fn desk() -> Desk {
    Desk::new(DeskSettings::default()).unwrap()
}

fn fresh(desk: &Desk) -> State {
    State::new(Rc::clone(&desk.records))
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
