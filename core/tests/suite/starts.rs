//! Prompts of earlier runs that a search starts from.

use std::rc::Rc;

use crate::world::{EFFORT, Probe, events, problem, resume, run, study};
use capo_core::arena::RunOptions;
use capo_core::ids::CandidateId;
use capo_core::journal::{Origin, SteerEvent, branch};
use capo_core::reading::measured;
use capo_core::run_state::RunState;
use capo_core::starts::{Start, Starts};
use capo_core::study::Study;
use capo_core::workload::Split;
use capo_core::{Outcome, verify};
use futures::executor::block_on;

fn probe() -> Rc<Probe> {
    Rc::new(Probe::default())
}

fn limited(method: &str, threshold: f64) -> Study {
    let constraint = format!("[[constraint]]\nmetric = \"effort\"\nthreshold = {threshold:?}\n");
    study(3, method, &constraint, "[method]\npool = 3\n")
}

fn state(lines: &[String]) -> RunState {
    let mut state = RunState::default();
    for (line, event) in (0..).zip(events(lines)) {
        state.apply(&event, line).expect("a line that fits");
    }
    state
}

/// What a study's search takes from journals.
fn taken(study: Study, journals: &[&[String]]) -> Result<Vec<Start>, String> {
    let problem = problem(study, &probe());
    let mut starts = Starts::of(&problem).expect("a method that takes prompts");
    for journal in journals {
        starts.take(&state(journal))?;
    }
    Ok(starts.best())
}

#[test]
fn a_search_starts_from_earlier_prompts_and_its_journal_stands_alone() {
    let (_, earlier) = run(study(3, "capo", EFFORT, ""), &probe());
    for method in ["capo", "capo-ea", "count", "dcapo"] {
        let study = limited(method, 1.2);
        let options = RunOptions {
            starts: taken(study.clone(), &[&earlier]).unwrap(),
            ..RunOptions::default()
        };
        let prompts: Vec<CandidateId> = options
            .starts
            .iter()
            .map(|start| CandidateId::of(&start.prompt))
            .collect();
        assert_eq!(prompts.len(), 3);
        let (outcome, lines) = resume(study.clone(), &probe(), Vec::new(), options);
        let starts_there = |outcome: &Outcome| {
            let state = outcome.journal.state();
            let from = state.candidates().filter(|(_, one)| one.origin == Origin::From);
            let from: Vec<CandidateId> = from.map(|(id, _)| *id).collect();
            let scored = &state.rounds()[0].scores;
            from == prompts && from.iter().all(|id| scored.contains_key(id))
        };
        assert!(starts_there(&outcome), "{method}");
        block_on(verify(&lines)).unwrap();

        let beginning = lines[..lines.len() / 2].to_vec();
        let (resumed, _) = resume(study.clone(), &probe(), beginning, RunOptions::default());
        assert_eq!(resumed.finished, outcome.finished, "{method}");
        let branched = branch(&lines, 0, SteerEvent::default()).unwrap();
        let (branched, lines) = resume(study, &probe(), branched, RunOptions::default());
        assert!(starts_there(&branched), "{method}");
        block_on(verify(&lines)).unwrap();
    }
}

#[test]
fn the_present_thresholds_say_which_prompts_promise_most() {
    let (_, earlier) = run(study(3, "capo", EFFORT, ""), &probe());
    let before = state(&earlier);
    let seed = CandidateId::of("Act.");
    let mean = |id: &CandidateId, metric: &str| {
        let measured = measured::on_split(&before, id, Split::Optimize);
        Some(measured.estimates.get(metric)?.mean)
    };
    for (threshold, metric, sign) in [(0.0, "effort", 1.0), (99.0, "success", -1.0)] {
        let others = before.candidates().filter(|(id, _)| **id != seed);
        let mut all: Vec<f64> = others
            .filter_map(|(id, _)| Some(sign * mean(id, metric)?))
            .collect();
        all.sort_by(f64::total_cmp);
        let starts = taken(limited("capo", threshold), &[&earlier, &earlier]).unwrap();
        let first = starts.iter().map(|start| CandidateId::of(&start.prompt));
        let first: Vec<f64> = first.map(|id| sign * mean(&id, metric).unwrap()).collect();
        assert_eq!(first, all[..3], "{metric}");
        assert!(starts.iter().all(|start| start.run == before.study().unwrap().id));
    }
}

#[test]
fn a_run_of_another_workload_or_in_another_unit_is_refused() {
    let (_, earlier) = run(study(3, "capo", EFFORT, ""), &probe());
    let refused = |there: &str, here: &str| {
        let header = earlier[0].replace(there, here);
        taken(limited("capo", 1.2), &[&[header]]).unwrap_err()
    };
    assert!(refused("\"world\":{", "\"desk\":{").contains("the workload `world`"));
    assert!(refused("\"steps\"", "\"seconds\"").contains("`effort` in the unit `steps`"));
}
