//! The method of `docs/adding-a-method.md` is the one in `random_search.rs`, and it works.

use std::rc::Rc;

use capo_core::arena::{Arena, Halt, Models, RunOptions};
use capo_core::journal::{Journal, MemoryJournal, RoundEvent};
use capo_core::llm::{Llm, Role};
use capo_core::methods::Search;
use futures::executor::block_on;

use crate::random_search::RandomSearch;
use crate::{blocks, page, tiny};

#[test]
fn the_page_shows_the_method_that_is_tested() {
    let page = page("adding-a-method");
    let method = include_str!("random_search.rs");
    assert!(
        blocks(&page, "rust").contains(&method),
        "the page does not hold core/tests/documentation/random_search.rs as it is"
    );
}

/// Searches over the given lines; gives the rounds and the lines after it.
fn search(
    study: &str,
    lines: Vec<String>,
    models: Rc<dyn Models>,
) -> (Result<(), Halt>, Vec<RoundEvent>, Vec<String>) {
    let store = MemoryJournal::from_lines(lines.clone());
    let journal = Journal::open(Box::new(store.clone()), (0..).zip(lines).map(Ok)).unwrap();
    let problem = tiny::problem(study).unwrap();
    let arena = Arena::open(problem, journal, models, RunOptions::default()).unwrap();
    let ended = block_on(RandomSearch::default().search(&arena));
    let rounds = arena.into_journal().state().rounds().to_vec();
    let lines = store.lines().to_vec();
    (ended, rounds, lines)
}

struct Nobody;

impl Models for Nobody {
    fn model(&self, role: Role) -> Rc<dyn Llm> {
        panic!("the {role} is asked although the journal holds every answer")
    }
}

const ABSOLUTE: (&str, &str) = ("relative_to_seed = 0.25", "threshold = 0.25");

#[test]
fn random_search_finds_a_feasible_prompt_and_replays_for_free() {
    let study = tiny::STUDY
        .replace(ABSOLUTE.0, ABSOLUTE.1)
        .replace("rounds = 2", "rounds = 3");
    let (ended, rounds, lines) = search(&study, Vec::new(), Rc::new(tiny::Tiny));
    ended.unwrap();
    assert_eq!(rounds.len(), 3);
    let last = &rounds[2];
    assert!(
        !rounds[0].scores[&rounds[0].parents[0]].feasible,
        "the seed is not feasible"
    );
    assert!(last.scores[&last.best[0]].feasible, "{last:?}");

    let (ended, again, replayed) = search(&study, lines.clone(), Rc::new(Nobody));
    ended.unwrap();
    assert_eq!((again, replayed), (rounds.clone(), lines.clone()));

    let half = lines[..lines.len() / 2].to_vec();
    let (ended, resumed, _) = search(&study, half, Rc::new(tiny::Tiny));
    ended.unwrap();
    assert_eq!(resumed, rounds);
}

#[test]
fn random_search_spends_an_open_budget_to_its_end() {
    let study = tiny::STUDY
        .replace(ABSOLUTE.0, ABSOLUTE.1)
        .replace("rounds = 2", "rounds = \"until-budget\"");
    let study = format!("{study}[budget]\nrollouts = 60\n");
    let (ended, _, lines) = search(&study, Vec::new(), Rc::new(tiny::Tiny));
    assert!(matches!(ended, Err(Halt::Budget(_))), "{ended:?}");
    let rollouts = lines
        .iter()
        .filter(|line| line.starts_with("{\"event\":\"rollout\""))
        .count();
    // Four are held back for the final evaluation of the best prompt and the seed.
    assert_eq!(rollouts, 56);
}
