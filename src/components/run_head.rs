//! The head of a page inside a run.

use capo_core::run_state::RunState;
use leptos::prelude::*;

use super::{RunNav, RunTag};
use crate::format;
use crate::live::Run;
use crate::studies;

/// The run's name and state, what it is about, and the second level of navigation.
#[component]
pub fn RunHead(run: Run) -> impl IntoView {
    let name = move || {
        run.record
            .with(|record| record.as_ref().map(|record| record.name.clone()))
    };
    let facts = Memo::new(move |_| run.read(|folded| facts(&folded.state)));
    view! {
        <div class="page-head run-head">
            <div class="row loose">
                <h1>{name}</h1>
                <RunTag run/>
                <span class="note">{facts}</span>
            </div>
            <RunNav run/>
        </div>
    }
}

/// "CAPO · sim-medium, seed 0 · six rounds".
fn facts(state: &RunState) -> String {
    let Some(started) = state.study() else {
        return String::new();
    };
    let study = &started.study;
    [
        studies::method_name(&study.study.method),
        studies::about(study),
        format::counted(state.rounds().len(), "round"),
    ]
    .join(" · ")
}
