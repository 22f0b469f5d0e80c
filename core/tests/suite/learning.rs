//! A rewriter that learns while it searches: what it is asked, what it learns from, and what a resumed run tells
//! it again.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::world::{EFFORT, Probe, WorldModels, events, problem, study};
use capo_core::arena::{Family, LearnError, Learner, Models, RewriteOutcome, RunOptions};
use capo_core::ids::{CandidateId, Round};
use capo_core::journal::{Event, Journal, MemoryJournal, RewriteEvent, Status, SteerEvent, branch};
use capo_core::llm::{
    AssistantMessage, CallUsage, ChatRequest, ChatResponse, FailureKind, Finish, Llm, LlmError, Message,
    RewriteForm, Role,
};
use capo_core::methods;
use capo_core::study::Study;
use capo_core::{Outcome, RunError, optimize, verify};
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::{LocalBoxFuture, ready};
use indexmap::IndexMap;

/// A rewriter that adds a word, and counts what it is told became of it.
#[derive(Default)]
struct LearnerStub {
    /// Texts it was asked with.
    asked: RefCell<Vec<String>>,
    rounds: RefCell<Vec<(Round, Vec<Family>)>>,
    /// So many answers are empty.
    silent: Cell<u32>,
    /// It refuses to learn from this round.
    refuses: Cell<Option<Round>>,
    /// A person interrupts it while it learns from this round.
    interrupted: Cell<Option<Round>>,
    figure: Cell<Option<f64>>,
    /// Its answers begin so.
    thoughts: Cell<&'static str>,
    /// So many answers are cut.
    cut: Cell<u32>,
    /// It has no room for requests with more characters than this.
    room: Cell<Option<usize>>,
}

impl Llm for LearnerStub {
    fn name(&self) -> &'static str {
        "learner"
    }

    fn rewrite_form(&self) -> RewriteForm {
        RewriteForm::Learned
    }

    fn chat(&self, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        let [Message::User { content }] = &request.messages[..] else {
            unreachable!("a learned rewriter is told everything in one message")
        };
        self.asked.borrow_mut().push(content.clone());
        if self.room.get().is_some_and(|room| content.len() > room) {
            let kind = FailureKind::ContextLength;
            return ready(Err(LlmError::failed(
                kind,
                false,
                "learner: the request is too long",
            )))
            .boxed_local();
        }
        let (_, told) = content.split_once("Prompt:\n").unwrap();
        let (told, _) = told.split_once("\n\nFeedback:\n").unwrap();
        let last = told.rsplit("\n\nDraft:\n").next().unwrap();
        let word = ["care", "haste", "filler"][(request.seed.unwrap() % 3) as usize];
        let content = if self.silent.get() > 0 {
            self.silent.set(self.silent.get() - 1);
            " \n".to_owned()
        } else {
            format!("{}{last} {word}\n", self.thoughts.get())
        };
        let finish = if self.cut.get() > 0 {
            self.cut.set(self.cut.get() - 1);
            Finish::Length
        } else {
            Finish::Stop
        };
        ready(Ok(ChatResponse {
            message: AssistantMessage {
                content: Some(content),
                tool_calls: Vec::new(),
            },
            finish,
            usage: CallUsage {
                usd: Some(0.0),
                ..CallUsage::default()
            },
            failed_tries: None,
        }))
        .boxed_local()
    }
}

impl Learner for LearnerStub {
    fn learn<'a>(
        &'a self,
        round: Round,
        families: &'a [Family],
    ) -> LocalBoxFuture<'a, Result<IndexMap<String, f64>, LearnError>> {
        let learned = if self.refuses.get() == Some(round) {
            Err(LearnError::Failed("the loss is not finite".to_owned()))
        } else if self.interrupted.get() == Some(round) {
            Err(LearnError::Interrupted)
        } else {
            self.rounds.borrow_mut().push((round, families.to_vec()));
            let attempts: Vec<&RewriteOutcome> =
                families.iter().flat_map(|family| &family.attempts).collect();
            let figure = self.figure.get().unwrap_or(attempts.len() as f64);
            Ok([("attempts".to_owned(), figure)].into())
        };
        ready(learned).boxed_local()
    }
}

struct ModelsWithLearner {
    learner: Rc<LearnerStub>,
    others: WorldModels,
}

impl Models for ModelsWithLearner {
    fn model(&self, role: Role) -> Rc<dyn Llm> {
        match role {
            Role::Rewriter => self.learner.clone(),
            _ => self.others.model(role),
        }
    }

    fn learner(&self) -> Option<Rc<dyn Learner>> {
        Some(self.learner.clone())
    }
}

const TABLE: &str = "[method]\nparents = 2\nchildren = 3\npool = 4\n";

fn dcapo(seed: u64, depth: u32) -> Study {
    study(seed, "dcapo", EFFORT, &format!("{TABLE}depth = {depth}\n"))
}

fn run(
    study: Study,
    learner: &Rc<LearnerStub>,
    lines: Vec<String>,
) -> (Result<Outcome, RunError>, Vec<String>) {
    let store = MemoryJournal::from_lines(lines.clone());
    let numbered = (0..).zip(lines).map(Ok);
    let journal = Journal::open(Box::new(store.clone()), numbered).unwrap();
    let probe = Rc::new(Probe::default());
    let models = ModelsWithLearner {
        learner: learner.clone(),
        others: WorldModels(probe.clone()),
    };
    let outcome = block_on(optimize(
        problem(study, &probe),
        journal,
        Rc::new(models),
        RunOptions::default(),
    ));
    let lines = store.lines().to_vec();
    (outcome, lines)
}

fn rewrites(lines: &[String]) -> Vec<RewriteEvent> {
    let rewrite = |event| match event {
        Event::Rewrite(rewrite) => Some(rewrite),
        _ => None,
    };
    events(lines).into_iter().filter_map(rewrite).collect()
}

#[test]
fn each_round_learns_from_all_rewrites_of_each_parent() {
    for depth in [1, 2, 3] {
        let learner = Rc::new(LearnerStub::default());
        let (outcome, lines) = run(dcapo(3, depth), &learner, Vec::new());
        let outcome = outcome.unwrap();
        let state = outcome.journal.state();
        let rounds = learner.rounds.borrow();
        assert_eq!(rounds.len(), state.rounds().len());
        for ((round, families), closed) in rounds.iter().zip(state.rounds()) {
            assert_eq!(*round, closed.round);
            let parents: Vec<_> = families.iter().map(|family| family.parent).collect();
            assert_eq!(parents, closed.parents);
            for family in families {
                assert_eq!(family.lagrangian, closed.scores[&family.parent].lagrangian);
                let depths: Vec<_> = family.attempts.iter().map(|attempt| attempt.depth).collect();
                let expected: Vec<_> = (1..=depth).flat_map(|depth| [depth; 3]).collect();
                assert_eq!(depths, expected);
                for (index, attempt) in (0..).zip(&family.attempts) {
                    let written = state.rewrite(*round, family.parent, index).unwrap();
                    assert_eq!(attempt.child.map(|(child, _)| child), written.child);
                    if let Some((child, lagrangian)) = attempt.child {
                        assert_eq!(lagrangian, closed.scores[&child].lagrangian);
                    }
                }
            }
        }
        let figures: Vec<_> = (0..6)
            .map(|round| state.learned(round).unwrap().figures["attempts"])
            .collect();
        assert_eq!(figures[0], f64::from(3 * depth));
        assert!(
            figures[1..]
                .iter()
                .all(|figure| *figure == f64::from(2 * 3 * depth))
        );
        let verified = block_on(verify(&lines)).unwrap();
        assert!(verified.finished && verified.rounds == 6);
    }
}

#[test]
fn a_deeper_rewrite_is_of_the_parent_and_told_of_the_draft() {
    let learner = Rc::new(LearnerStub::default());
    let (outcome, lines) = run(dcapo(5, 2), &learner, Vec::new());
    let state = outcome.unwrap().journal;
    let state = state.state();
    let prompt = |candidate: &CandidateId| state.candidate(candidate).unwrap().prompt.to_string();
    let asked = learner.asked.borrow();
    let of_seed: Vec<_> = rewrites(&lines)
        .into_iter()
        .filter(|rewrite| rewrite.round == 0)
        .collect();
    for rewrite in &of_seed {
        assert_eq!(prompt(&rewrite.parent), "Act.");
        let child = prompt(&rewrite.child.unwrap());
        let words = child.split_whitespace().count();
        assert_eq!(words, if rewrite.index < 3 { 2 } else { 3 }, "{child}");
    }
    let drafts = |text: &&String| text.contains("\n\nDraft:\nAct. ");
    let of_first_round = &asked[..6];
    assert_eq!(of_first_round.iter().filter(drafts).count(), 3);
    // The seed is rewritten before there is any evidence to speak of.
    let blind = of_first_round
        .iter()
        .filter(|text| text.ends_with("Feedback:\nnone"));
    assert_eq!(blind.count(), 3);
    let told = of_first_round.iter().find(drafts).unwrap();
    assert!(told.contains("Feedback:\nIt should take more care."), "{told}");
    assert!(
        told.starts_with("Rewrite the system prompt of an AI agent"),
        "{told}"
    );
    assert!(told.contains("\n\nObjective: success "), "{told}");
    assert!(told.contains("\nConstraint: effort "), "{told}");
    assert!(told.contains(", at most 1.600, weight 1.00\n"), "{told}");
}

#[test]
fn only_the_best_of_each_line_is_admitted() {
    for seed in 0..8 {
        let (outcome, lines) = run(dcapo(seed, 2), &Rc::default(), Vec::new());
        let journal = outcome.unwrap().journal;
        let rewrites = rewrites(&lines);
        let mut pool = vec![journal.state().candidates().next().map(|(id, _)| *id).unwrap()];
        for round in journal.state().rounds() {
            let admitted: Vec<_> = round.retained.iter().filter(|id| !pool.contains(id)).collect();
            let score = |id: &CandidateId| round.scores[id].lagrangian;
            for child in &admitted {
                let is_best_of_a_line = rewrites
                    .iter()
                    .filter(|rewrite| rewrite.round == round.round && rewrite.child == Some(**child))
                    .any(|rewrite| {
                        let line = rewrites.iter().filter(|other| {
                            (other.round, other.parent, other.index % 3)
                                == (rewrite.round, rewrite.parent, rewrite.index % 3)
                        });
                        line.filter_map(|other| other.child)
                            .all(|other| score(&other) <= score(child))
                    });
                assert!(is_best_of_a_line, "seed {seed} round {}", round.round);
            }
            pool.clone_from(&round.retained);
        }
    }
}

#[test]
fn a_resumed_run_hears_every_step_again_and_writes_none_twice() {
    let learner = Rc::new(LearnerStub::default());
    let (outcome, lines) = run(dcapo(9, 2), &learner, Vec::new());
    let outcome = outcome.unwrap();
    let is_learned = |line: &&String| line.starts_with(r#"{"event":"learned""#);
    assert_eq!(lines.iter().filter(is_learned).count(), 6);
    for kept in (1..lines.len()).step_by(37).chain([lines.len()]) {
        let again = Rc::new(LearnerStub::default());
        let (resumed, more) = run(dcapo(9, 2), &again, lines[..kept].to_vec());
        assert_eq!(resumed.unwrap().finished, outcome.finished, "{kept}");
        assert_eq!(*again.rounds.borrow(), *learner.rounds.borrow(), "{kept}");
        assert_eq!(more.iter().filter(is_learned).count(), 6, "{kept}");
    }
}

#[test]
fn an_empty_answer_is_no_child_and_not_asked_for_again() {
    let learner = Rc::new(LearnerStub::default());
    learner.silent.set(2);
    let (outcome, lines) = run(dcapo(2, 1), &learner, Vec::new());
    outcome.unwrap();
    let first: Vec<_> = rewrites(&lines).into_iter().take(3).collect();
    assert_eq!(first.iter().filter(|rewrite| rewrite.child.is_none()).count(), 2);
    let told = first
        .iter()
        .filter(|rewrite| rewrite.reason.as_deref() == Some("it is empty"));
    assert_eq!(told.count(), 2);
    let rounds = learner.rounds.borrow();
    let (_, families) = &rounds[0];
    assert_eq!(
        families[0]
            .attempts
            .iter()
            .filter(|attempt| attempt.child.is_none())
            .count(),
        2
    );
    assert_eq!(learner.asked.borrow().len(), rewrites(&lines).len());
}

#[test]
fn a_parent_that_the_rewriter_has_no_room_for_gets_no_child() {
    let learner = Rc::new(LearnerStub::default());
    let (_, whole) = run(dcapo(2, 1), &learner, Vec::new());
    let asked = learner.asked.take();
    let room = asked.iter().map(String::len).sum::<usize>() / asked.len();
    learner.room.set(Some(room));
    let (outcome, lines) = run(dcapo(2, 1), &learner, Vec::new());
    assert_eq!(outcome.unwrap().finished.reason, None);
    let rewrites = rewrites(&lines);
    let refused = rewrites
        .iter()
        .filter(|rewrite| rewrite.reason.as_deref() == Some("learner: the request is too long"));
    let too_long = learner
        .asked
        .borrow()
        .iter()
        .filter(|text| text.len() > room)
        .count();
    assert!(too_long > 0 && refused.count() == too_long, "{too_long}");
    assert!(rewrites.iter().any(|rewrite| rewrite.child.is_some()));
    assert!(
        !events(&lines)
            .iter()
            .any(|event| matches!(event, Event::Failure(_)))
    );
    // What was refused stands: a rewriter with more room does not change a run that is resumed.
    learner.room.set(None);
    let (resumed, again) = run(dcapo(2, 1), &learner, lines.clone());
    resumed.unwrap();
    assert_eq!(again, lines);
    assert_ne!(whole, lines);
}

#[test]
fn a_cut_answer_is_no_child_and_thoughts_are_no_part_of_one() {
    let learner = Rc::new(LearnerStub::default());
    learner.cut.set(1);
    learner.thoughts.set("<think>\nMore care?\n</think>\n\n");
    let (outcome, lines) = run(dcapo(2, 1), &learner, Vec::new());
    let journal = outcome.unwrap().journal;
    let first: Vec<_> = rewrites(&lines).into_iter().take(3).collect();
    let cut = Some("it was cut off before its end");
    assert_eq!(
        first
            .iter()
            .filter(|rewrite| rewrite.reason.as_deref() == cut)
            .count(),
        1
    );
    assert!(journal.state().candidates().len() > 3);
    for (_, candidate) in journal.state().candidates() {
        assert!(candidate.prompt.starts_with("Act."), "{}", candidate.prompt);
    }
    let learner = Rc::new(LearnerStub::default());
    learner.thoughts.set("<think>\nOn and on");
    let (_, lines) = run(dcapo(2, 1), &learner, Vec::new());
    let endless = Some("it ends before its thoughts do");
    assert!(
        rewrites(&lines)
            .iter()
            .all(|rewrite| rewrite.reason.as_deref() == endless)
    );
}

#[test]
fn a_rewriter_that_cannot_learn_ends_the_run_with_its_reason() {
    for round in [0, 3, 5] {
        let learner = Rc::new(LearnerStub::default());
        learner.refuses.set(Some(round));
        let (outcome, lines) = run(dcapo(4, 1), &learner, Vec::new());
        let outcome = outcome.unwrap();
        let reason = outcome.finished.reason.clone().unwrap();
        let expected = format!("the rewriter could not learn from round {round}: the loss is not finite");
        assert!(reason.starts_with(&expected), "{reason}");
        assert_eq!(outcome.finished.status, Status::Failed);
        assert_eq!(outcome.journal.state().rounds().len() as Round, round + 1);
        block_on(verify(&lines)).unwrap_or_else(|error| panic!("round {round}: {error}"));
        // Resumed, it learns from the round that is complete.
        learner.refuses.set(None);
        let (resumed, lines) = run(dcapo(4, 1), &learner, lines);
        assert_eq!(resumed.unwrap().journal.state().rounds().len(), 6);
        block_on(verify(&lines)).unwrap();
    }
}

#[test]
fn an_interrupted_update_stops_the_run_and_is_given_again() {
    let (_, whole) = run(dcapo(4, 1), &Rc::default(), Vec::new());
    for round in [0, 3, 5] {
        let learner = Rc::new(LearnerStub::default());
        learner.interrupted.set(Some(round));
        let (outcome, lines) = run(dcapo(4, 1), &learner, Vec::new());
        let outcome = outcome.unwrap();
        assert_eq!(outcome.finished.status, Status::Stopped);
        assert_eq!(outcome.finished.reason.as_deref(), Some("interrupted"));
        assert_eq!(outcome.journal.state().rounds().len() as Round, round + 1);
        block_on(verify(&lines)).unwrap_or_else(|error| panic!("round {round}: {error}"));
        learner.interrupted.set(None);
        let (resumed, mut lines) = run(dcapo(4, 1), &learner, lines);
        resumed.unwrap();
        block_on(verify(&lines)).unwrap();
        lines.retain(|line| !line.contains(r#""status":"stopped""#));
        assert_eq!(lines, whole, "round {round}");
    }
}

#[test]
fn a_rewriter_that_lost_what_it_learned_spoils_no_journal() {
    let learner = Rc::new(LearnerStub::default());
    let (_, lines) = run(dcapo(4, 1), &learner, Vec::new());
    learner.refuses.set(Some(2));
    let (outcome, after) = run(dcapo(4, 1), &learner, lines.clone());
    let error = outcome.err().unwrap().to_string();
    assert_eq!(
        error,
        "the rewriter could not learn from round 2: the loss is not finite"
    );
    assert_eq!(after, lines);
}

#[test]
fn a_figure_that_is_no_number_ends_the_run_and_keeps_the_journal_readable() {
    let learner = Rc::new(LearnerStub::default());
    learner.figure.set(Some(f64::NAN));
    let (outcome, lines) = run(dcapo(4, 1), &learner, Vec::new());
    let reason = outcome.unwrap().finished.reason.clone().unwrap();
    assert!(
        reason.contains("round 0: its figure `attempts` is NaN"),
        "{reason}"
    );
    learner.figure.set(None);
    let (outcome, _) = run(dcapo(4, 1), &learner, lines);
    assert_eq!(outcome.unwrap().journal.state().rounds().len(), 6);
}

#[test]
fn a_branch_keeps_what_was_learned_from_the_shared_rounds() {
    let (_, lines) = run(dcapo(6, 1), &Rc::default(), Vec::new());
    let change = SteerEvent {
        multipliers: Some([("effort".to_owned(), 2.0)].into()),
        ..SteerEvent::default()
    };
    let branched = branch(lines.iter().map(String::as_str), 3, change).unwrap();
    let learned = events(&branched).into_iter().filter_map(|event| match event {
        Event::Learned(learned) => Some(learned.round),
        _ => None,
    });
    assert_eq!(learned.collect::<Vec<_>>(), [0, 1, 2]);
    let (outcome, lines) = run(dcapo(6, 1), &Rc::default(), branched);
    assert_eq!(outcome.unwrap().journal.state().rounds().len(), 6);
    block_on(verify(&lines)).unwrap();
}

#[test]
fn an_instructed_rewriter_goes_as_deep() {
    for depth in [2, 3] {
        let probe = Rc::new(Probe::default());
        let (outcome, lines) = crate::world::run(dcapo(1, depth), &probe);
        let effort = methods::build("dcapo", &dcapo(1, depth).method)
            .unwrap()
            .at_most(6);
        let made = rewrites(&lines);
        assert!(made.len() as u64 <= effort.rewrites && made.iter().any(|rewrite| rewrite.draft.is_some()));
        assert!(outcome.journal.state().candidates().len() as u64 <= effort.candidates);
        let is_critique = |event: &Event| matches!(event, Event::Critique(_));
        let critiques = events(&lines).iter().filter(|event| is_critique(event)).count();
        assert!(
            critiques as u64 <= effort.critiques,
            "{critiques} of {}",
            effort.critiques
        );
        assert!(
            events(&lines)
                .iter()
                .all(|event| !matches!(event, Event::Learned(_)))
        );
        block_on(verify(&lines)).unwrap();
    }
}

#[test]
fn an_open_search_without_new_rewrites_measures_its_pool_again() {
    let probe = Rc::new(Probe::default());
    probe.good_rewrites.set(Some(6));
    let extra = format!("{TABLE}depth = 1\n[budget]\nrollouts = 900\n");
    let mut open = study(3, "dcapo", EFFORT, &extra);
    open.study.rounds = serde_json::from_str("\"until-budget\"").unwrap();
    let (outcome, lines) = crate::world::run(open, &probe);
    assert_eq!(probe.rollouts(), 900);
    let most = probe.served.borrow().keys().map(|(_, _, repeat)| *repeat).max();
    assert!(most > Some(1), "{most:?}");
    assert_eq!(outcome.finished.status, Status::Feasible);
    block_on(verify(&lines)).unwrap();
}

#[test]
fn every_dual_step_admits_by_its_own_ranking() {
    for step in ["count", "pid", "augmented", "fixed"] {
        let extra = format!("{TABLE}depth = 2\ndual_step = \"{step}\"\n");
        let (outcome, lines) = run(study(7, "dcapo", EFFORT, &extra), &Rc::default(), Vec::new());
        assert_eq!(outcome.unwrap().journal.state().rounds().len(), 6, "{step}");
        block_on(verify(&lines)).unwrap();
    }
}
