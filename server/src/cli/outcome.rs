//! The end of a search: its exit code, and how it goes on.

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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use capo_core::study::{Format, Study};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_certified_prompt_that_misses_a_threshold_held_out_is_none_to_hand_over() {
        let study = Study::parse(include_str!("../../../studies/help-desk.toml"), Format::Toml).unwrap();
        let line = json!({
            "event": "study", "schema": 1, "id": "", "study": study, "started_at": "", "workloads": {},
        });
        let mut state = RunState::default();
        state.apply(&serde_json::from_value(line).unwrap(), 0).unwrap();
        let candidate = "ab".repeat(32);
        let of = |human_requests: f64| -> Ending {
            let estimate = |mean: f64| json!({ "mean": mean, "standard_error": 0.0, "n": 40 });
            let finished: FinishedEvent = serde_json::from_value(json!({
                "status": "feasible", "best": candidate, "final_scores": {}, "multipliers": {}, "usage": {},
                "evaluation": {
                    "human_requests": estimate(human_requests),
                    "excess_tools": estimate(0.0),
                    "prompt_length": estimate(0.0),
                },
                "certificates": [{
                    "candidate": candidate, "verdict": "certified", "confidence": 0.95, "reserve": 300,
                    "examples": 300, "ended": true, "constraints": {},
                }],
            }))
            .unwrap();
            ending(
                &state,
                &finished,
                &CommandLine::new("optimize", Path::new("study.toml")),
            )
        };
        assert_eq!(of(0.3), Ending::Done);
        assert_eq!(of(0.4), Ending::Infeasible);
    }
}
