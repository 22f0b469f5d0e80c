//! A small help desk run with simulated models, for tests.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use capo_core::arena::RunOptions;
use capo_core::control::Control;
use capo_core::journal::{Event, Journal, MemoryJournal, SteerEvent};
use capo_core::optimize;
use capo_core::problem::Problem;
use capo_core::run_state::RunState;
use capo_core::study::{Format, Study};
use capo_workloads::files::MemoryFiles;

const STUDY: &str = r#"
    [study]
    name = "small desk"
    seed = 1
    rounds = 3

    [workload]
    kind = "desk"
    optimize = 12
    evaluate = 8

    [prompt]
    text = "You are a customer service agent. Help the customer with their request."

    [objective]
    metric = "success"

    [[constraint]]
    metric = "human_requests"
    threshold = 0.4

    [[constraint]]
    metric = "excess_tools"
    threshold = 1.3

    [[constraint]]
    metric = "prompt_length"
    threshold = 5.0

    [models.agent]
    provider = "simulated"

    [method]
    parents = 2
    pool = 3
"#;

/// The events of a run of the small desk with changes written over its study, with what a person
/// asks for at the next round boundary.
pub(crate) fn events(change: impl Fn(&mut Study), steer: Option<SteerEvent>) -> Vec<Event> {
    let mut study = Study::parse(STUDY, Format::Toml).unwrap();
    change(&mut study);
    events_of(study.checked().unwrap(), steer)
}

/// The same of any study on simulated models.
pub(crate) fn events_of(study: Study, steer: Option<SteerEvent>) -> Vec<Event> {
    let seed = study.study.seed;
    let workloads = capo_workloads::build(&study.workload, &MemoryFiles::new(), seed).unwrap();
    let keys = std::collections::BTreeMap::<String, String>::new();
    let models = capo_models::build(&study.models, &keys, seed).unwrap();
    let control = Control::new();
    let mut journal = Journal::create(Box::new(MemoryJournal::new()));
    let events = Rc::new(RefCell::new(Vec::new()));
    let (seen, watched, waiting) = (Rc::clone(&events), control.clone(), RefCell::new(steer));
    journal.observe(Box::new(move |event, _| {
        seen.borrow_mut().push(event.clone());
        if matches!(event, Event::Round(_))
            && let Some(steer) = waiting.borrow_mut().take()
        {
            watched.steer(steer);
        }
    }));
    let options = RunOptions {
        control,
        ..RunOptions::default()
    };
    let problem = Problem::new(study, workloads).unwrap();
    block_on(optimize(problem, journal, Rc::new(models), options)).unwrap();
    events.take()
}

/// Simulated models wait for nobody, so their run can be asked again at once.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

/// The fold over events.
pub(crate) fn fold(events: &[Event]) -> RunState {
    let mut state = RunState::default();
    for (line, event) in (0..).zip(events) {
        state.apply(event, line).unwrap();
    }
    state
}

/// The fold over the events up to and including the first for which `last` holds.
pub(super) fn until(events: &[Event], last: impl Fn(&Event) -> bool) -> RunState {
    let end = events.iter().position(last).unwrap();
    fold(&events[..=end])
}

/// The finished small desk.
pub(crate) fn finished() -> RunState {
    fold(&events(|_| {}, None))
}
