//! GEPA against its reference implementation, and what is its own.

use std::rc::Rc;

use crate::ladder::{Arguments, climb};
use crate::world::{EFFORT, Probe, events, run, study};
use capo_core::Outcome;
use capo_core::journal::{Event, Origin};

fn ladder(rollouts: u64, seed: u64) -> Outcome {
    let arguments = Arguments {
        rollouts,
        method: "gepa".to_owned(),
        journal: None,
        seed,
        characters: None,
        json: false,
    };
    climb(&arguments).expect("the ladder can be climbed")
}

/// How many rules the best prompt of each round has, each number once.
fn steps(outcome: &Outcome) -> Vec<u32> {
    let rounds = outcome.journal.state().rounds().iter();
    let mut steps: Vec<u32> = rounds
        .map(|round| (round.scores[&round.best[0]].objective * 20.0).round() as u32)
        .collect();
    steps.dedup();
    steps
}

/// gepa 0.1.4 with its defaults: 300 metric calls are 11 reflections and 12 candidates, the best of which has 0.55 on
/// its validation set; 3,000 are 21 candidates, the best of which has 1.0. It counts the calls of a minibatch
/// beside those of the whole set; here they are the same rollouts, and 40 are held-out ones.
#[test]
fn on_the_ladder_it_climbs_as_the_reference_does() {
    for seed in 0..3 {
        let some = ladder(300, seed);
        let state = some.journal.state();
        let candidates = state.candidates().len();
        assert!((12..=13).contains(&candidates), "seed {seed}: {candidates}");
        assert_eq!(
            state.rewrites().len() + 1,
            candidates,
            "every reflection finds a prompt"
        );
        let steps_of_some = steps(&some);
        assert!(
            steps_of_some.starts_with(&(1..=11).collect::<Vec<_>>()),
            "11 reflections lead to 0.55: {steps_of_some:?}"
        );

        let all = ladder(3000, seed);
        assert_eq!(all.journal.state().candidates().len(), 21, "seed {seed}");
        assert_eq!(all.journal.state().rewrites().len(), 20, "seed {seed}");
        assert_eq!(steps(&all), (1..=20).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn what_is_not_better_on_the_few_examples_is_not_measured_on_all() {
    let (mut accepted, mut turned_down, mut merged) = (0, 0, 0);
    for seed in 0..10 {
        let mut long = study(seed, "gepa", EFFORT, "");
        long.study.rounds = serde_json::from_str("12").unwrap();
        let (outcome, lines) = run(long, &Rc::new(Probe::default()));
        let rounds = outcome.journal.state().rounds();
        for event in events(&lines) {
            let Event::Rewrite(rewrite) = event else { continue };
            let Some(child) = rewrite.child else { continue };
            let round = &rounds[rewrite.round as usize];
            assert_eq!(
                rewrite.origin == Origin::Crossover,
                round.parents.len() == 2,
                "two parents are merged"
            );
            merged += usize::from(round.parents.len() == 2);
            let measured = round.scores.contains_key(&child);
            if measured { accepted += 1 } else { turned_down += 1 }
        }
        for pair in rounds.windows(2) {
            let is_known = |parent| pair[0].retained.contains(parent);
            assert!(pair[1].parents.iter().all(is_known), "parents are of the front");
        }
    }
    assert!(
        accepted > 10 && turned_down > 10 && merged > 0,
        "all happen: {accepted} {turned_down} {merged}"
    );
}
