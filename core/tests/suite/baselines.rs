//! What is peculiar to the paper's baselines beside GEPA.

use std::rc::Rc;

use crate::world::{EFFORT, Probe, run, study};
use capo_core::ids::CandidateId;
use capo_core::journal::{Event, Origin};
use capo_core::score::Score;
use capo_core::verify;
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
    let [a, b] = [a, b].map(|score| [score.objective, -score.costs["effort"]]);
    a != b && a[0] >= b[0] && a[1] >= b[1]
}

#[test]
fn mopo_lets_go_of_nobody_who_dominates_one_that_stays() {
    let mut dropped = 0;
    for seed in 0..4 {
        let (outcome, _) = run(study(seed, "mopo", EFFORT, ""), &probe());
        for round in outcome.journal.state().rounds() {
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
        assert!(difference.contains("names the origin Crossover"), "{difference}");
    }
}
