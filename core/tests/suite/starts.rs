//! Prompts of earlier runs that a search starts from.

use std::rc::Rc;

use crate::world::{EFFORT, Probe, events, problem, resume, run, study};
use capo_core::arena::RunOptions;
use capo_core::ids::CandidateId;
use capo_core::journal::{Origin, SteerEvent, branch};
use capo_core::reading::measured;
use capo_core::run_state::RunState;
use capo_core::starts::{Start, Starts};
use capo_core::study::{Rounds, Study, Table};
use capo_core::workload::Split;
use capo_core::{Outcome, methods, verify};
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
    let most = |method: &str| methods::build(method, &Table::new()).unwrap().pool();
    let taking = methods::ALL.iter().filter(|entry| most(entry.name) > 1);
    for method in taking.map(|entry| entry.name) {
        let settings = match method {
            "gepa" => "",
            "apo" => "[method]\nbeam = 3\n",
            _ => "[method]\npool = 3\n",
        };
        let study = study(3, method, EFFORT, settings);
        let options = RunOptions {
            starts: taken(study.clone(), &[&earlier]).unwrap(),
            ..RunOptions::default()
        };
        let prompts: Vec<CandidateId> = options
            .starts
            .iter()
            .map(|start| CandidateId::of(&start.prompt))
            .collect();
        assert_eq!(prompts.len(), if method == "gepa" { 6 } else { 3 });
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
fn luck_on_a_few_examples_is_no_promise() {
    let mut luckier = 0;
    for seed in 0..4 {
        let mut long = study(seed, "gepa", EFFORT, "");
        long.study.rounds = Rounds::Count(12);
        let (_, earlier) = run(long, &probe());
        let before = state(&earlier);
        let measured = |id: &CandidateId| {
            let measured = measured::on_split(&before, id, Split::Optimize);
            let success = measured
                .estimates
                .get("success")
                .map_or(0.0, |estimate| estimate.mean);
            (measured.examples.is_whole(), success)
        };
        let seed = CandidateId::of("Act.");
        let others = before.candidates().map(|(id, _)| *id).filter(|id| *id != seed);
        let others: Vec<(bool, f64)> = others.map(|id| measured(&id)).collect();
        let starts = taken(limited("capo", 99.0), &[&earlier]).unwrap();
        let taken: Vec<_> = starts
            .iter()
            .map(|start| measured(&CandidateId::of(&start.prompt)))
            .collect();
        let whole = others.iter().filter(|(is_whole, _)| *is_whole).count();
        assert!(
            taken.iter().take(whole).all(|(is_whole, _)| *is_whole),
            "{taken:?}"
        );
        let least = taken.iter().map(|(_, success)| *success).fold(1.0, f64::min);
        luckier += others
            .iter()
            .filter(|(is_whole, success)| !is_whole && *success > least)
            .count();
    }
    assert!(luckier > 0);
}

#[test]
fn no_prompt_whose_search_may_have_seen_a_held_out_example_is_taken() {
    let (_, earlier) = run(study(3, "capo", EFFORT, ""), &probe());
    let saw = earlier[0].replace("\"o0\"", "\"e0\"");
    let refused = |lines: &[String]| taken(limited("capo", 1.2), &[lines]).unwrap_err();
    assert!(refused(&[saw]).contains("its search saw `e0`"));

    // What a run held out itself no prompt that it took has seen; of other examples it knows nothing.
    let options = RunOptions {
        starts: taken(limited("capo", 1.2), &[&earlier]).unwrap(),
        ..RunOptions::default()
    };
    let (_, chained) = resume(limited("capo", 1.2), &probe(), Vec::new(), options);
    assert!(!taken(limited("capo", 1.4), &[&chained]).unwrap().is_empty());
    let held_out_fewer = chained[0].replace("\"e0\",", "");
    let beginning = [held_out_fewer, chained[1].clone(), chained[2].clone()];
    assert!(beginning[2].contains("\"origin\":\"from\""), "{}", beginning[2]);
    assert!(refused(&beginning).contains("may have seen `e0`"));
    let without = beginning[..2].to_vec();
    assert!(!refused(&without).contains("`e0`"), "it took no prompt");
}

#[test]
fn prompts_join_as_long_as_only_the_seed_was_measured() {
    let (_, earlier) = run(study(3, "capo", EFFORT, ""), &probe());
    let (_, alone) = run(limited("capo", 1.2), &probe());
    let starts = taken(limited("capo", 1.2), &[&earlier]).unwrap();
    let joined = |lines: &[String]| {
        let options = RunOptions {
            starts: starts.clone(),
            ..RunOptions::default()
        };
        let (outcome, lines) = resume(limited("capo", 1.2), &probe(), lines.to_vec(), options);
        block_on(verify(&lines)).unwrap();
        let candidates = outcome.journal.state().candidates();
        candidates.filter(|(_, one)| one.origin == Origin::From).count()
    };
    let critique = alone
        .iter()
        .position(|line| line.contains("\"event\":\"critique\""))
        .unwrap();
    // The study, the seed, and five rollouts of it, as a pilot makes them.
    assert_eq!(joined(&alone[..7]), 3);
    assert_eq!(joined(&alone[..critique]), 3);
    assert_eq!(joined(&alone[..=critique]), 0);
}

#[test]
fn where_a_prompt_was_taken_from_is_told_truly() {
    let (_, earlier) = run(study(3, "capo", EFFORT, ""), &probe());
    let options = RunOptions {
        starts: taken(limited("capo", 1.2), &[&earlier]).unwrap(),
        ..RunOptions::default()
    };
    let (_, lines) = resume(limited("capo", 1.2), &probe(), Vec::new(), options);
    block_on(verify(&lines)).unwrap();
    let difference = |lines: &[String]| block_on(verify(lines)).unwrap_err().to_string();
    let with = |place: usize, change: &dyn Fn(&mut serde_json::Value)| {
        let mut lines = lines.clone();
        let mut event: serde_json::Value = serde_json::from_str(&lines[place]).unwrap();
        change(&mut event);
        lines[place] = event.to_string();
        difference(&lines)
    };
    let nowhere = with(2, &|event| {
        event.as_object_mut().unwrap().remove("from");
    });
    assert!(nowhere.contains("no earlier run"), "{nowhere}");
    let is_made =
        |line: &String| line.contains("\"event\":\"candidate\"") && line.contains("\"origin\":\"rewrite\"");
    let made = lines.iter().position(is_made).unwrap();
    let both = with(made, &|event| event["from"] = "an earlier run".into());
    assert!(
        both.contains("says that it is a rewrite, and names an earlier run"),
        "{both}"
    );
    let no_room = with(0, &|event| event["study"]["study"]["method"] = "injected".into());
    assert!(no_room.contains("has no room for"), "{no_room}");
    let mut event: serde_json::Value = serde_json::from_str(&lines[2]).unwrap();
    event["prompt"] = "Another.".into();
    event["id"] = serde_json::to_value(CandidateId::of("Another.")).unwrap();
    let mut late = lines.clone();
    late.insert(made + 2, event.to_string());
    let late = difference(&late);
    assert!(late.contains("had begun without"), "{late}");
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
