//! How a search ended, and how it goes on.

use capo_core::journal::{FinishedEvent, Status};
use capo_core::reading::examples::Examples;
use capo_core::reading::feasibility::Feasibility;
use capo_core::run_state::RunState;
use capo_core::workload::Split;

use super::command_line::CommandLine;
use super::failure::Ending;
use crate::stderr::warn;

/// How a search ended. Says on standard error why it ended early, and how to go on.
pub(super) fn ending(state: &RunState, finished: &FinishedEvent, resume: &CommandLine) -> Ending {
    let unmeasured = finished.evaluation.is_empty() && !Examples::whole(state, Split::Evaluate).is_empty();
    say_how_to_go_on(finished, unmeasured, resume);
    let feasibility = Feasibility::of(state, finished);
    match finished.status {
        Status::Feasible | Status::Infeasible if unmeasured => Ending::Stopped,
        Status::Feasible | Status::Infeasible if feasibility.is_borne_out() => Ending::Done,
        Status::Infeasible if !feasibility.holds() => Ending::Infeasible,
        Status::Feasible | Status::Infeasible => {
            warn(&format!("the best prompt {}", feasibility.words()));
            Ending::Infeasible
        }
        status => status.into(),
    }
}

/// Says why a run ended early and how to go on, on standard error. A search that ended by itself
/// has ended early all the same where its result is `unmeasured` on the held-out examples.
fn say_how_to_go_on(finished: &FinishedEvent, unmeasured: bool, resume: &CommandLine) {
    let reason = finished.reason.as_deref().unwrap_or("stopped").replace('\n', " ");
    let reason = reason.trim_end_matches('.');
    match finished.status {
        Status::Feasible | Status::Infeasible if unmeasured => {
            warn(&format!(
                "stopped: {reason}.\nThe search is done. To measure its result, raise [budget] and run: {resume}"
            ));
        }
        Status::Feasible | Status::Infeasible => {
            if finished.reason.is_some() {
                warn(&format!("warning: {reason}"));
            }
        }
        Status::Budget => {
            warn(&format!(
                "stopped: {reason}.\nTo go on, raise it under [budget] and run: {resume}"
            ));
        }
        Status::Stopped => warn(&format!("stopped: {reason}. To go on, run: {resume}")),
        Status::Failed => warn(&format!(
            "error: {reason}.\nEverything paid for is in the journal; to go on, run: {resume}"
        )),
    }
}
