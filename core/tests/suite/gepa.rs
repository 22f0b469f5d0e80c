//! GEPA against its reference implementation, and what is its own.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use crate::ladder::{Arguments, climb};
use crate::world::{EFFORT, Probe, WorldModels, events, problem, resume, run, study};
use capo_core::arena::{Models, RunOptions};
use capo_core::ids::CandidateId;
use capo_core::journal::{Event, Journal, MemoryJournal, Origin, SteerEvent};
use capo_core::llm::{
    AssistantMessage, CallUsage, ChatRequest, ChatResponse, Finish, Llm, LlmError, Message, Role,
};
use capo_core::study::{Rounds, UntilBudget};
use capo_core::workload::Split;
use capo_core::{Outcome, optimize, verify};
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::{LocalBoxFuture, ready};

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
fn what_is_not_better_on_the_few_examples_is_not_measured_on_all_and_what_is_stays() {
    let (mut accepted, mut turned_down, mut merged, mut together) = (0, 0, 0, 0);
    for seed in 0..10 {
        let mut long = study(seed, "gepa", EFFORT, "[method]\nmerges = 5\n");
        long.study.rounds = serde_json::from_str("12").unwrap();
        let (outcome, lines) = run(long, &Rc::new(Probe::default()));
        let rounds = outcome.journal.state().rounds();
        let mut rewrites = vec![0; rounds.len()];
        for event in events(&lines) {
            let Event::Rewrite(rewrite) = event else { continue };
            rewrites[rewrite.round as usize] += 1;
            let Some(child) = rewrite.child else { continue };
            let round = &rounds[rewrite.round as usize];
            if rewrite.origin == Origin::Crossover {
                assert_eq!(
                    round.parents,
                    [rewrite.parent, rewrite.others[0]],
                    "two parents are merged"
                );
                merged += 1;
            }
            let measured = round.scores.contains_key(&child);
            if measured { accepted += 1 } else { turned_down += 1 }
        }
        together += rewrites.iter().filter(|count| **count > 1).count();
        assert!(rewrites.iter().all(|count| *count <= 4), "{rewrites:?}");
        for pair in rounds.windows(2) {
            let is_known = |parent| pair[0].retained.contains(parent);
            assert!(pair[1].parents.iter().all(is_known), "parents are of the front");
            let stays = |id| pair[1].scores.contains_key(id);
            assert!(
                pair[0].scores.keys().all(stays),
                "who left the front may come back"
            );
        }
    }
    assert!(
        accepted > 10 && turned_down > 10 && merged > 0 && together > 10,
        "all happen: {accepted} {turned_down} {merged} {together}"
    );
}

/// The world, whose rewriter adds a word or drops the last one: it comes back to what there was before.
struct Wavering {
    others: WorldModels,
    asked: Rc<RefCell<Vec<String>>>,
}

impl Models for Wavering {
    fn model(&self, role: Role) -> Rc<dyn Llm> {
        match role {
            Role::Rewriter => Rc::new(Rewriter(Rc::clone(&self.asked))),
            other => self.others.model(other),
        }
    }
}

struct Rewriter(Rc<RefCell<Vec<String>>>);

impl Llm for Rewriter {
    fn name(&self) -> &'static str {
        "wavering"
    }

    fn chat(&self, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        let Some(Message::User { content }) = request.messages.first() else {
            unreachable!("a rewriter is asked something")
        };
        self.0.borrow_mut().push(content.clone());
        let (_, prompt) = content.split_once("<prompt>").expect("it quotes a prompt");
        let (prompt, _) = prompt.split_once("</prompt>").expect("the prompt ends");
        let words: Vec<&str> = prompt.split_whitespace().collect();
        let (kept, word) = match request.seed.unwrap_or(0) % 3 {
            0 if words.len() > 1 => (words.len() - 1, ""),
            1 => (words.len(), "haste"),
            _ => (words.len(), "care"),
        };
        let answer = format!("<prompt>{} {word}</prompt>", words[..kept].join(" "));
        ready(Ok(ChatResponse {
            message: AssistantMessage {
                content: Some(answer),
                tool_calls: Vec::new(),
            },
            finish: Finish::Stop,
            usage: CallUsage::default(),
            failed_tries: None,
        }))
        .boxed_local()
    }
}

/// Lines of a run of so many rounds with that rewriter, and what it was asked.
fn wavering(seed: u64, settings: &str, rounds: u32) -> (Vec<String>, Vec<String>) {
    let probe = Rc::new(Probe::default());
    let mut long = study(seed, "gepa", EFFORT, settings);
    long.study.rounds = Rounds::Count(rounds);
    let asked = Rc::new(RefCell::new(Vec::new()));
    let models = Wavering {
        others: WorldModels(Rc::clone(&probe)),
        asked: Rc::clone(&asked),
    };
    let store = MemoryJournal::new();
    let journal = Journal::create(Box::new(store.clone()));
    let running = optimize(
        problem(long, &probe),
        journal,
        Rc::new(models),
        RunOptions::default(),
    );
    block_on(running).expect("the run ends");
    let lines = store.lines().to_vec();
    let asked = asked.borrow().clone();
    (lines, asked)
}

#[test]
fn a_rewriter_that_comes_back_to_earlier_prompts_ends_no_run() {
    let mut came_back = 0;
    for seed in 0..10 {
        let (lines, _) = wavering(seed, "[method]\nmerges = 20\n", 30);
        block_on(verify(&lines)).unwrap();
        let is_back = |event: &Event| matches!(event, Event::Rewrite(rewrite) if rewrite.child == Some(CandidateId::of("Act.")));
        came_back += events(&lines).iter().filter(|event| is_back(event)).count();
    }
    assert!(came_back > 0, "the seed came of what came of it");
}

#[test]
fn the_rewriter_is_told_means_over_all_examples_and_failures_of_a_few() {
    let (_, asked) = wavering(1, "[feedback]\nform = \"trajectory\"\n", 6);
    let after = |text: &str, before: &str| -> String {
        let (_, rest) = text.split_once(before).expect("it is told so");
        let ends = |letter: char| !letter.is_ascii_digit() && letter != '.';
        rest.split(ends).next().unwrap_or_default().to_owned()
    };
    let told: HashSet<String> = asked.iter().map(|text| after(text, "`success` (now ")).collect();
    // Three examples have no other means.
    let of_three = ["0.000", "0.333", "0.667", "1.000"];
    assert!(told.iter().any(|mean| !of_three.contains(&&**mean)), "{told:?}");
    let missed = asked.iter().filter(|text| text.contains("`success` missed in "));
    let missed: Vec<String> = missed.map(|text| after(text, "`success` missed in ")).collect();
    assert!(
        !missed.is_empty() && missed.iter().all(|count| ["1", "2", "3"].contains(&&**count)),
        "{missed:?}"
    );
}

#[test]
fn batches_of_rounds_are_refused() {
    let mut batched = study(0, "gepa", EFFORT, "");
    batched.study.batch = Some(8);
    let error = batched.checked().unwrap_err().to_string();
    assert!(
        error.contains("study.batch") && error.contains("says by itself"),
        "{error}"
    );
}

#[test]
fn a_change_waits_for_the_next_round_where_one_has_measured_again() {
    let probe = || Rc::new(Probe::default());
    let lax = "[[constraint]]\nmetric = \"effort\"\nthreshold = 99.0\n";
    let settings = "[method]\nparents = 1\nminibatch = 1\n[budget]\nrollouts = 300\n";
    let mut open = study(1, "gepa", lax, settings);
    open.study.rounds = Rounds::Open(UntilBudget::UntilBudget);
    let (_, lines) = run(open.clone(), &probe());
    // A parent without a failure on its one example is measured there once more, and nobody is asked anything.
    let (mut round, mut asked) = (0, false);
    let mut is_again = |event: &Event| {
        match event {
            Event::Critique(_) | Event::Rewrite(_) => asked = true,
            Event::Round(_) => (round, asked) = (round + 1, false),
            Event::Rollout(rollout) => {
                return !asked && rollout.repeat > 0 && rollout.split == Split::Optimize;
            }
            _ => {}
        }
        false
    };
    let again = events(&lines).iter().position(&mut is_again).expect("it happens");
    let options = RunOptions::default();
    options.control.steer(SteerEvent {
        thresholds: Some([("effort".to_owned(), 0.5)].into()),
        ..SteerEvent::default()
    });
    let (_, lines) = resume(open, &probe(), lines[..=again].to_vec(), options);
    block_on(verify(&lines)).unwrap();
    let steered = events(&lines).into_iter().find_map(|event| match event {
        Event::Steer(steer) => Some(steer.round),
        _ => None,
    });
    assert_eq!(steered, Some(round + 1));
}
