//! What is peculiar to the paper's baselines beside GEPA.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use crate::world::{EFFORT, Probe, events, run, study};
use capo_core::ids::CandidateId;
use capo_core::journal::{Event, Origin, RewriteEvent};
use capo_core::reading::measured;
use capo_core::score::Score;
use capo_core::verify;
use capo_core::workload::Split;
use futures::executor::block_on;

fn probe() -> Rc<Probe> {
    Rc::new(Probe::default())
}

#[test]
fn what_ranks_by_the_fixed_score_never_loses_its_best() {
    for method in ["apo", "evoprompt-ga", "evoprompt-de"] {
        for seed in 0..4 {
            let (outcome, _) = run(study(seed, method, EFFORT, ""), &probe());
            let rounds = outcome.journal.state().rounds();
            assert!(
                rounds.iter().all(|round| round.multipliers["effort"] == 1.0),
                "{method}"
            );
            let best: Vec<f64> = rounds
                .iter()
                .map(|round| round.scores[&round.best[0]].lagrangian)
                .collect();
            assert!(
                best.windows(2).all(|pair| pair[0] <= pair[1]),
                "{method}: {best:?}"
            );
            let size = if method == "apo" { 4 } else { 6 };
            assert!(
                rounds.iter().all(|round| round.retained.len() <= size),
                "{method}"
            );
        }
    }
}

fn dominates(a: &Score, b: &Score) -> bool {
    let [a, b] = [a, b].map(|score| [score.objective, -score.cautious_cost("effort")]);
    a != b && a[0] >= b[0] && a[1] >= b[1]
}

#[test]
fn mopo_lets_go_of_nobody_who_dominates_one_that_stays() {
    let mut dropped = 0;
    for (seed, caution) in [(0, 0.0), (1, 0.0), (2, 0.0), (3, 0.0), (0, 1.64), (1, 1.64)] {
        let mut study = study(seed, "mopo", EFFORT, "");
        study.study.caution = caution;
        let (outcome, _) = run(study, &probe());
        for round in outcome.journal.state().rounds() {
            let best = round.scores[&round.best[0]].lagrangian;
            assert!(round.scores.values().all(|score| score.lagrangian <= best));
            for (_, gone) in round
                .scores
                .iter()
                .filter(|(id, _)| !round.retained.contains(*id))
            {
                dropped += 1;
                let mut kept = round.retained.iter().map(|id| &round.scores[id]);
                assert!(!kept.any(|kept| dominates(gone, kept)));
            }
        }
    }
    assert!(dropped > 20, "{dropped}");
}

#[test]
fn bandits_run_fewer_examples() {
    let rollouts = |selection: &str| -> u64 {
        let settings = format!("[method]\nselection = \"{selection}\"\n");
        let run = |seed| run(study(seed, "apo", EFFORT, &settings), &probe()).0;
        (0..3)
            .map(|seed| run(seed).journal.state().rollouts().count())
            .sum()
    };
    let all = rollouts("all");
    for selection in ["ucb", "successive-rejects", "successive-halving"] {
        let some = rollouts(selection);
        assert!(some < all, "{selection}: {some} of {all}");
    }
}

#[test]
fn bandits_choose_what_does_better_on_examples_that_each_round_draws() {
    for selection in ["ucb", "successive-rejects", "successive-halving"] {
        let (mut chosen, mut passed_over, mut drawn) = (Vec::new(), Vec::new(), HashSet::new());
        for seed in 0..4 {
            let settings = format!("[method]\nselection = \"{selection}\"\n");
            let (outcome, lines) = run(study(seed, "apo", EFFORT, &settings), &probe());
            let state = outcome.journal.state();
            let mut measured_on: HashMap<CandidateId, BTreeSet<String>> = HashMap::new();
            for event in events(&lines) {
                if let Event::Rollout(rollout) = event {
                    measured_on
                        .entry(rollout.candidate)
                        .or_default()
                        .insert(rollout.example);
                }
            }
            for (id, candidate) in state.candidates().filter(|(id, _)| measured_on.contains_key(*id)) {
                let means = measured::on_split(state, id, Split::Optimize).estimates;
                let lagrangian = means["success"].mean - (means["effort"].mean - 1.6);
                if state.rounds()[candidate.round as usize].scores.contains_key(id) {
                    chosen.push(lagrangian);
                } else {
                    passed_over.push(lagrangian);
                    drawn.insert((seed, candidate.round, measured_on[id].clone()));
                }
            }
        }
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let (better, worse) = (mean(&chosen), mean(&passed_over));
        assert!(
            better > worse,
            "{selection}: {better}, and {worse} of those passed over"
        );
        let fewest = |round: u32| {
            let of_round = drawn.iter().filter(|(seed, of, _)| (*seed, *of) == (0, round));
            of_round
                .map(|(.., examples)| examples)
                .min_by_key(|examples| examples.len())
        };
        let beginnings: Vec<_> = (0..6).filter_map(fewest).collect();
        assert!(
            beginnings
                .windows(2)
                .any(|pair| !pair[0].is_subset(pair[1]) && !pair[1].is_subset(pair[0])),
            "{selection}"
        );
    }
}

#[test]
fn all_of_whom_something_was_made_are_parents() {
    let (outcome, lines) = run(study(1, "evoprompt-ga", EFFORT, ""), &probe());
    let mut made_of: Vec<HashSet<CandidateId>> = vec![HashSet::new(); outcome.journal.state().rounds().len()];
    for event in events(&lines) {
        if let Event::Rewrite(rewrite) = event {
            made_of[rewrite.round as usize].extend(rewrite.others.into_iter().chain([rewrite.parent]));
        }
    }
    for (round, made_of) in outcome.journal.state().rounds().iter().zip(made_of) {
        assert_eq!(round.parents.iter().copied().collect::<HashSet<_>>(), made_of);
    }
}

#[test]
fn who_was_combined_is_told_truly() {
    let (_, lines) = run(study(1, "evoprompt-ga", EFFORT, ""), &probe());
    block_on(verify(&lines)).unwrap();
    let event = |line: &String| serde_json::from_str::<Event>(line).unwrap();
    // The first rewrite of a new text that has several parents.
    let is_new = |place: &usize| {
        let (candidate, rewrite) = (event(&lines[place - 1]), event(&lines[*place]));
        matches!((candidate, rewrite), (Event::Candidate(_), Event::Rewrite(rewrite)) if !rewrite.others.is_empty())
    };
    let place = (1..lines.len()).find(is_new).unwrap();
    let changed = |change: fn(&mut Vec<CandidateId>, &mut Origin)| {
        let Event::Rewrite(mut rewrite) = event(&lines[place]) else {
            panic!("it is a rewrite")
        };
        assert_eq!(rewrite.origin, Origin::Crossover);
        change(&mut rewrite.others, &mut rewrite.origin);
        let mut lines = lines.clone();
        lines[place] = serde_json::to_string(&Event::Rewrite(rewrite)).unwrap();
        block_on(verify(&lines)).unwrap_err().to_string()
    };
    for difference in [
        changed(|others, _| others.clear()),
        changed(|_, origin| *origin = Origin::Rewrite),
    ] {
        assert!(
            difference.contains("says that it is a crossover of ["),
            "{difference}"
        );
    }

    // Both lines together tell of what was not asked for.
    let forged = |change: &dyn Fn(&mut RewriteEvent)| {
        let (Event::Candidate(mut candidate), Event::Rewrite(mut rewrite)) =
            (event(&lines[place - 1]), event(&lines[place]))
        else {
            panic!("it is a rewrite of its own text")
        };
        change(&mut rewrite);
        candidate.origin = rewrite.origin;
        candidate.parents = [&[rewrite.parent][..], &rewrite.others[..]].concat();
        let mut lines = lines.clone();
        lines[place - 1] = serde_json::to_string(&Event::Candidate(candidate)).unwrap();
        lines[place] = serde_json::to_string(&Event::Rewrite(rewrite)).unwrap();
        block_on(verify(&lines)).unwrap_err().to_string()
    };
    for difference in [
        forged(&|rewrite| rewrite.others = vec![rewrite.parent]),
        forged(&|rewrite| rewrite.others.clear()),
        forged(&|rewrite| rewrite.origin = Origin::Paraphrase),
    ] {
        assert!(
            difference.contains("another one than was asked for"),
            "{difference}"
        );
    }
}

#[test]
fn what_gave_no_child_is_told_truly_too() {
    let probe = probe();
    // All six paraphrases of the first round, asked for twice.
    probe.bad_rewrites.set(12);
    let (_, mut lines) = run(study(1, "evoprompt-ga", EFFORT, ""), &probe);
    block_on(verify(&lines)).unwrap();
    let is_childless =
        |line: &String| line.contains(r#""event":"rewrite""#) && line.contains(r#""child":null"#);
    let place = lines.iter().position(is_childless).unwrap();
    lines[place] = lines[place].replace(r#""origin":"paraphrase""#, r#""origin":"crossover""#);
    let difference = block_on(verify(&lines)).unwrap_err().to_string();
    assert!(
        difference.contains("another one than was asked for"),
        "{difference}"
    );
}
