//! What is paid once is never paid again, and neither crashes nor the order of arrival change a run.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;

use crate::tiny;
use crate::world::{EFFORT, Probe, WorldModels, events, problem, resume, run, study};
use capo_core::arena::{Models, RunOptions};
use capo_core::batches::Batches;
use capo_core::journal::{Event, Journal, MemoryJournal, Status, SteerEvent};
use capo_core::llm::{ChatRequest, ChatResponse, FailureKind, Llm, LlmError, Role};
use capo_core::notice::{BatchUnderWay, Notice, Observer};
use capo_core::workload::Split;
use capo_core::{optimize, verify};
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::{LocalBoxFuture, pending, ready};

fn probe() -> Rc<Probe> {
    Rc::new(Probe::default())
}

/// What a caller hears of whether a batch is written who outlives the run.
pub(crate) type Heard = Rc<RefCell<Option<LocalBoxFuture<'static, bool>>>>;

/// The tiny world, whose agent hands its calls in together once the journal has that, and waits for ever.
#[derive(Clone)]
pub(crate) struct InBatch(pub(crate) Batches, pub(crate) Heard);

impl Models for InBatch {
    fn model(&self, role: Role) -> Rc<dyn Llm> {
        match role {
            Role::Agent => Rc::new(self.clone()),
            other => tiny::Tiny.model(other),
        }
    }

    fn batches(&self) -> Option<Batches> {
        Some(self.0.clone())
    }
}

impl Llm for InBatch {
    fn name(&self) -> &'static str {
        "tiny"
    }

    fn chat(&self, _: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        self.0.note("batch_1", vec!["first".into(), "second".into()]);
        *self.1.borrow_mut() = Some(self.0.written().boxed_local());
        let waiting = async move {
            assert!(self.0.written().await);
            self.0.wait_for(BatchUnderWay {
                model: self.name().to_owned(),
                id: "batch_1".into(),
                calls: 2,
            });
            pending().await
        };
        waiting.boxed_local()
    }
}

#[test]
fn a_batch_is_journaled_before_it_is_waited_for_and_a_resumed_run_knows_it() {
    let (store, told) = (MemoryJournal::new(), Rc::new(RefCell::new(Vec::new())));
    let begin = |batches: &Batches| {
        let lines = store.lines().to_vec();
        let journal = Journal::open(Box::new(store.clone()), (0..).zip(lines).map(Ok)).unwrap();
        let telling = Rc::clone(&told);
        let observer: Observer = Rc::new(move |notice: &Notice| telling.borrow_mut().push(notice.clone()));
        let options = RunOptions {
            concurrency: 1,
            observer: Some(observer),
            ..RunOptions::default()
        };
        let models = Rc::new(InBatch(batches.clone(), Heard::default()));
        let run = optimize(tiny::problem(tiny::STUDY).unwrap(), journal, models, options);
        let mut run = pin!(run);
        assert!(run.as_mut().now_or_never().is_none());
        assert!(!batches.are_under_way(), "it is journaled first");
        assert!(run.as_mut().now_or_never().is_none());
        assert!(batches.are_under_way());
    };
    begin(&Batches::default());
    let journaled = events(&store.lines());
    assert!(
        matches!(journaled.last(), Some(Event::Batch(batch)) if batch.requests == ["first", "second"]),
        "{journaled:?}"
    );
    let text = match &told.borrow()[..] {
        [Notice::Batch(batch)] => batch.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(text.starts_with("tiny: batch batch_1 (2 calls)"), "{text}");

    let later = Batches::default();
    begin(&later);
    assert_eq!(later.claim("second"), Some(("batch_1".to_owned(), 2)));
    assert_eq!(later.claim("second"), None, "its answer is for one caller");
}

/// The models of the world, whose second call is refused; calls are handed in with the batches, if there are any.
#[derive(Clone)]
struct Refusing(Rc<Probe>, Option<Batches>);

impl Models for Refusing {
    fn model(&self, _: Role) -> Rc<dyn Llm> {
        Rc::new(self.clone())
    }

    fn batches(&self) -> Option<Batches> {
        self.1.clone()
    }
}

impl Llm for Refusing {
    fn name(&self) -> &'static str {
        "refusing"
    }

    fn chat(&self, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        if self.0.calls.get() == 1 {
            let refused = LlmError::failed(FailureKind::Authentication, false, "refused");
            return ready(Err(refused)).boxed_local();
        }
        let model = WorldModels(self.0.clone()).model(Role::Agent);
        async move { model.chat(request).await }.boxed_local()
    }
}

#[test]
fn what_a_batch_answered_is_kept_whatever_fails_after_it() {
    for (batches, kept) in [(None, 0), (Some(Batches::default()), 1)] {
        let (store, probe) = (MemoryJournal::new(), probe());
        let options = RunOptions {
            concurrency: 1,
            ..RunOptions::default()
        };
        let run = optimize(
            problem(study(3, "capo", EFFORT, ""), &probe),
            Journal::create(Box::new(store.clone())),
            Rc::new(Refusing(probe.clone(), batches)),
            options,
        );
        assert_eq!(block_on(run).unwrap().finished.status, Status::Failed);
        let answers = |event| match event {
            Event::Failure(failure) => Some(failure.answers.len()),
            _ => None,
        };
        assert_eq!(events(&store.lines()).into_iter().find_map(answers), Some(kept));
    }
}

#[test]
fn a_run_cut_at_any_line_resumes_to_the_same_result_and_pays_for_nothing_twice() {
    let whole_probe = probe();
    let (whole, lines) = run(study(3, "capo", EFFORT, ""), &whole_probe);
    for cut in (1..lines.len()).step_by(37).chain([2, lines.len() - 1]) {
        let (probe, kept) = (probe(), lines[..cut].to_vec());
        let paid: usize = events(&kept)
            .iter()
            .filter(|event| matches!(event, Event::Rollout(_)))
            .count();
        let (outcome, resumed) = resume(study(3, "capo", EFFORT, ""), &probe, kept, RunOptions::default());
        assert_eq!(outcome.finished, whole.finished, "cut at line {cut}");
        assert_eq!(
            outcome.journal.state().rounds(),
            whole.journal.state().rounds(),
            "cut at line {cut}"
        );
        assert_eq!(
            probe.rollouts() as usize + paid,
            whole_probe.rollouts() as usize,
            "cut at line {cut}"
        );
        assert!(probe.served.borrow().values().all(|times| *times == 1));
        assert_eq!(resumed.len(), lines.len(), "cut at line {cut}");
    }
}

#[test]
fn frozen_thresholds_and_minibatches_resume_to_the_same_result() {
    let relative = "[[constraint]]\nmetric = \"effort\"\nrelative_to_seed = 0.9\n";
    let mut study = study(0, "capo", relative, "[method]\npool = 2\n");
    study.study.batch = Some(12);
    let (whole, lines) = run(study.clone(), &probe());
    block_on(verify(&lines)).unwrap();
    let half = lines[..lines.len() / 2].to_vec();
    let (resumed, _) = resume(study, &probe(), half, RunOptions::default());
    assert_eq!(resumed.finished, whole.finished);
}

#[test]
fn a_run_that_ended_while_its_thresholds_were_being_frozen_resumes_to_a_journal_that_verifies() {
    let relative = "[[constraint]]\nmetric = \"effort\"\nrelative_to_seed = 0.9\n";
    let (whole, _) = run(study(0, "capo", relative, ""), &probe());
    let failing = probe();
    failing.fail.set(Some((5, 1, false)));
    let (failed, lines) = run(
        study(0, "capo", relative, "[failures]\ntries = 1\nexample = \"stop\"\n"),
        &failing,
    );
    assert_eq!(failed.finished.status, Status::Failed);
    assert!(failed.journal.state().rounds().is_empty());
    block_on(verify(&lines)).unwrap();

    let (resumed, mut lines) = resume(
        study(0, "capo", relative, ""),
        &failing,
        lines,
        RunOptions::default(),
    );
    assert_eq!(resumed.finished.final_scores, whole.finished.final_scores);
    assert!(block_on(verify(&lines)).unwrap().finished);

    // A frozen threshold that the seed's rollouts do not give is found all the same.
    let effort = whole.journal.state().study().unwrap().study.constraints[0].threshold;
    lines[0] = lines[0].replace(&effort.unwrap().to_string(), "1.5");
    let difference = block_on(verify(&lines)).unwrap_err().to_string();
    assert!(
        difference.contains("the threshold of `effort` is 1.5"),
        "{difference}"
    );
    // So is one that was frozen before the seed was measured.
    let early: Vec<_> = lines.iter().take(4).cloned().collect();
    let difference = block_on(verify(&early)).unwrap_err().to_string();
    assert!(difference.contains("was not measured"), "{difference}");
}

#[test]
fn resuming_a_finished_run_does_nothing() {
    let (whole, lines) = run(study(5, "capo-ea", EFFORT, ""), &probe());
    let probe = probe();
    let (again, resumed) = resume(
        study(5, "capo-ea", EFFORT, ""),
        &probe,
        lines.clone(),
        RunOptions::default(),
    );
    assert_eq!((probe.rollouts(), probe.calls.get()), (0, 0));
    assert_eq!(resumed, lines);
    assert_eq!(again.finished, whole.finished);
}

#[test]
fn neither_concurrency_nor_arrival_changes_a_run() {
    let reference = run(study(8, "capo", EFFORT, ""), &probe()).0;
    for (disorder, concurrency) in [(1, 1), (2, 3), (3, 64)] {
        let probe = probe();
        probe.disorder.set(disorder);
        let options = RunOptions {
            concurrency,
            ..RunOptions::default()
        };
        let (outcome, lines) = resume(study(8, "capo", EFFORT, ""), &probe, Vec::new(), options);
        assert_eq!(
            outcome.journal.state().rounds(),
            reference.journal.state().rounds()
        );
        let (mut usage, mut expected) = ((*outcome.finished).clone(), (*reference.finished).clone());
        // Sums of dollars and seconds may differ in their last bits with the order of arrival.
        usage.usage.clone_from(&expected.usage);
        expected.reason = None;
        assert_eq!(usage, expected);
        block_on(verify(&lines)).unwrap();
    }
}

#[test]
fn a_seed_changes_a_run() {
    let a = run(study(1, "capo", EFFORT, ""), &probe()).0;
    let b = run(study(2, "capo", EFFORT, ""), &probe()).0;
    assert_ne!(a.journal.state().rounds(), b.journal.state().rounds());
}

#[test]
fn a_budget_of_rollouts_is_kept_exactly_and_can_be_raised() {
    let unlimited = run(study(4, "capo", EFFORT, ""), &probe()).0;
    for budget in [30, 57, 200, 333] {
        let probe = probe();
        let limited = study(4, "capo", EFFORT, &format!("[budget]\nrollouts = {budget}\n"));
        let (outcome, lines) = run(limited, &probe);
        assert!(probe.rollouts() <= budget, "{} > {budget}", probe.rollouts());
        // What the last whole round leaves is less than a batch and the held-out evaluation take.
        assert!(
            probe.rollouts() + 24 + 20 > budget,
            "{} of {budget}",
            probe.rollouts()
        );
        assert_eq!(outcome.finished.status, Status::Budget);
        let (raised, _) = resume(study(4, "capo", EFFORT, ""), &probe, lines, RunOptions::default());
        assert_eq!(
            raised.journal.state().rounds(),
            unlimited.journal.state().rounds()
        );
        assert_eq!(raised.finished.best, unlimited.finished.best);
        assert!(probe.served.borrow().values().all(|times| *times == 1));
    }
}

#[test]
fn an_open_search_spends_its_rollouts_to_the_last() {
    for budget in [25_u32, 35, 100, 531] {
        let mut searched = None;
        for failing in [None, Some(0), Some(1), Some(9), Some(15), Some(22)] {
            let probe = probe();
            probe.disorder.set(3);
            // The rollout that fails is among the last ones that the budget allows.
            probe
                .fail
                .set(failing.map(|from_the_end| (budget - 1 - from_the_end, 1, true)));
            let mut open = study(4, "capo", EFFORT, &format!("[budget]\nrollouts = {budget}\n"));
            open.study.rounds = serde_json::from_str("\"until-budget\"").unwrap();
            let (outcome, _) = run(open, &probe);
            assert_eq!(probe.rollouts(), budget, "failing {failing:?}");
            let by_search = outcome.journal.state().ledger().search_rollouts;
            let expected = *searched.get_or_insert(by_search);
            assert_eq!(
                by_search, expected,
                "none is lost to the search; failing {failing:?}"
            );
            let failures = outcome.journal.state().failures().len();
            assert_eq!(failures, usize::from(failing.is_some()));
        }
    }
}

#[test]
fn calls_are_never_one_too_many_and_half_a_rollout_is_accounted_for() {
    for budget in [5, 61, 222] {
        let probe = probe();
        let limited = study(4, "capo", EFFORT, &format!("[budget]\ncalls = {budget}\n"));
        let (outcome, lines) = run(limited, &probe);
        assert_eq!(outcome.finished.status, Status::Budget);
        assert!(probe.calls.get() <= budget);
        let journaled = outcome.journal.state().ledger().usage().total().calls;
        assert_eq!(
            journaled,
            u64::from(probe.calls.get()),
            "every call is in the journal"
        );
        block_on(verify(&lines)).unwrap();
    }
}

#[test]
fn tokens_and_dollars_stop_the_run_at_the_first_call_beyond_them() {
    for (key, limit, spent_per_call) in [("tokens", 1500.0, 15.0), ("usd", 0.1, 0.001)] {
        let probe = probe();
        // One call at a time, so that none is under way when the limit is reached.
        let options = RunOptions {
            concurrency: 1,
            ..RunOptions::default()
        };
        let limited = study(4, "capo", EFFORT, &format!("[budget]\n{key} = {limit}\n"));
        let (outcome, _) = resume(limited, &probe, Vec::new(), options);
        assert_eq!(outcome.finished.status, Status::Budget);
        let spent = f64::from(probe.calls.get()) * spent_per_call;
        assert!(spent < limit + spent_per_call, "{key}: {spent}");
        // At most a third is held back for the held-out evaluation, which then spends of it.
        assert!(spent >= limit / 1.5, "{key}: {spent}");
        assert_eq!(outcome.finished.evaluation["success"].n, 10, "{key}");
    }
}

#[test]
fn search_never_touches_held_out_examples_before_the_end() {
    let (outcome, lines) = run(study(6, "capo", EFFORT, ""), &probe());
    let events = events(&lines);
    let first_held_out = events
        .iter()
        .position(|event| matches!(event, Event::Rollout(rollout) if rollout.split == Split::Evaluate))
        .unwrap();
    let last_round = events
        .iter()
        .rposition(|event| matches!(event, Event::Round(_)))
        .unwrap();
    assert!(first_held_out > last_round);
    assert_eq!(outcome.finished.evaluation["success"].n, 10);
    assert_eq!(outcome.finished.seed_evaluation["effort"].n, 10);
}

#[test]
fn a_passing_failure_is_tried_again_and_a_lasting_one_stops_with_everything_else_kept() {
    let reference = run(study(9, "capo", EFFORT, ""), &probe()).0;
    let passing = probe();
    passing.fail.set(Some((40, 1, true)));
    let (outcome, lines) = run(study(9, "capo", EFFORT, ""), &passing);
    assert_eq!(
        outcome.journal.state().rounds(),
        reference.journal.state().rounds()
    );
    assert_eq!(
        events(&lines)
            .iter()
            .filter(|event| matches!(event, Event::Failure(_)))
            .count(),
        1
    );

    for (times, retryable) in [(2, true), (1, false)] {
        let lasting = probe();
        lasting.disorder.set(5);
        lasting.fail.set(Some((40, times, retryable)));
        let tries = if retryable { 2 } else { 1 };
        let stopping = format!("[failures]\ntries = {tries}\nexample = \"stop\"\n");
        let (outcome, lines) = run(study(9, "capo", EFFORT, &stopping), &lasting);
        let served = lasting.rollouts() as usize;
        if outcome.finished.status == Status::Failed {
            assert!(
                outcome
                    .finished
                    .reason
                    .as_deref()
                    .unwrap()
                    .contains("the tool broke")
            );
        } else {
            assert!(retryable, "two failures of different rollouts are both retried");
        }
        let journaled = events(&lines)
            .iter()
            .filter(|event| matches!(event, Event::Rollout(_)))
            .count();
        assert_eq!(journaled, served, "everything answered is journaled");
        let (resumed, _) = resume(
            study(9, "capo", EFFORT, ""),
            &lasting,
            lines,
            RunOptions::default(),
        );
        assert_eq!(
            resumed.journal.state().rounds(),
            reference.journal.state().rounds()
        );
        assert!(lasting.served.borrow().values().all(|times| *times == 1));
    }
}

#[test]
fn a_measurement_that_is_no_number_is_named_and_never_a_score() {
    let probe = probe();
    *probe.nan_on.borrow_mut() = Some("o7".into());
    let stopping = "[failures]\ntries = 1\nexample = \"stop\"\n";
    let (outcome, lines) = run(study(9, "capo", EFFORT, stopping), &probe);
    assert_eq!(outcome.finished.status, Status::Failed);
    let reason = outcome.finished.reason.clone().unwrap();
    assert!(
        reason.contains("`o7`") && reason.contains("`effort`") && reason.contains("NaN"),
        "{reason}"
    );
    assert!(outcome.finished.final_scores.is_empty() && outcome.finished.best.is_none());
    let calls = outcome.finished.usage.total().calls;
    assert_eq!(
        calls,
        u64::from(probe.calls.get()) + 3,
        "what it cost outside is kept"
    );
    assert!(!lines.iter().any(|line| line.contains("\"event\":\"round\"")));
}

#[test]
fn an_unusable_rewrite_is_asked_for_once_more_and_then_counts_as_no_child() {
    let probe = probe();
    probe.bad_rewrites.set(3);
    let (_, lines) = run(study(2, "capo", EFFORT, ""), &probe);
    let events = events(&lines);
    let failures = events
        .iter()
        .filter(|event| matches!(event, Event::Failure(_)))
        .count();
    let without: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Rewrite(rewrite) if rewrite.child.is_none() => rewrite.reason.clone(),
            _ => None,
        })
        .collect();
    // Three bad answers over two children: both first answers, and one of the second ones.
    assert_eq!((failures, without.len()), (2, 1));
    assert!(without[0].contains("<prompt>"));
}

#[test]
fn a_failed_call_of_unknown_price_does_not_end_a_run_with_a_budget_of_dollars() {
    let probe = probe();
    probe.failing_call.set(1);
    let (outcome, _) = run(study(4, "capo", EFFORT, "[budget]\nusd = 50.0\n"), &probe);
    assert_eq!(outcome.journal.state().failures()[&FailureKind::RateLimit], 1);
    assert_eq!(
        outcome.finished.status,
        Status::Feasible,
        "{:?}",
        outcome.finished.reason
    );
    assert_eq!(outcome.finished.usage.total().usd, None, "nobody says $0");
}

/// An agent that crashes says nothing of what it had consumed.
#[test]
fn a_crash_of_unknown_price_does_not_end_a_run_with_a_budget_of_dollars() {
    let probe = probe();
    probe.fail.set(Some((0, 3, true)));
    let options = RunOptions {
        concurrency: 1,
        ..RunOptions::default()
    };
    let study = study(4, "capo", EFFORT, "[budget]\nusd = 50.0\n");
    let (outcome, lines) = resume(study, &probe, Vec::new(), options);
    let state = outcome.journal.state();
    assert_eq!(state.failures()[&FailureKind::Tool], 3);
    assert_eq!(
        outcome.finished.status,
        Status::Feasible,
        "{:?}",
        outcome.finished.reason
    );
    let failed = events(&lines).into_iter().find_map(|event| match event {
        Event::Failure(failure) => Some(failure),
        _ => None,
    });
    assert_eq!(
        failed.unwrap().usage.total().usd,
        None,
        "the journal estimates nothing"
    );
    assert_eq!(state.ledger().usage().total().usd, None, "nor does the account");
    block_on(verify(&lines)).unwrap();
}

#[test]
fn a_budget_of_dollars_asks_no_model_of_unknown_price() {
    let probe = probe();
    probe.unpriced.set(true);
    let (outcome, _) = run(study(4, "capo", EFFORT, "[budget]\nusd = 50.0\n"), &probe);
    assert_eq!(probe.calls.get(), 0);
    assert_eq!(outcome.finished.status, Status::Budget);
    let reason = outcome.finished.reason.clone().unwrap();
    assert!(reason.contains("world's price is unknown"), "{reason}");
    // Without such a budget it is.
    run(study(4, "capo", EFFORT, ""), &probe);
    assert!(probe.calls.get() > 0);
}

#[test]
fn an_open_search_that_spends_nothing_of_its_budget_ends() {
    for budget in ["usd = 1.0", "seconds = 60.0"] {
        let probe = probe();
        probe.free.set(true);
        let mut open = study(4, "capo", EFFORT, &format!("[budget]\n{budget}\n"));
        open.study.rounds = serde_json::from_str("\"until-budget\"").unwrap();
        let (outcome, lines) = run(open, &probe);
        assert_eq!(outcome.finished.status, Status::Feasible);
        let reason = outcome.finished.reason.clone().unwrap();
        assert!(reason.contains("bound `rollouts` or `seconds`"), "{reason}");
        block_on(verify(&lines)).unwrap();

        // Resumed from anywhere, it ends after the same round.
        let mut open = study(4, "capo", EFFORT, &format!("[budget]\n{budget}\n"));
        open.study.rounds = serde_json::from_str("\"until-budget\"").unwrap();
        for kept in [lines.len() / 2, lines.len()] {
            let kept = lines[..kept].to_vec();
            let (_, resumed) = resume(open.clone(), &probe, kept, RunOptions::default());
            let rounds = |lines: &[String]| {
                lines
                    .iter()
                    .filter(|line| line.contains("\"event\":\"round\""))
                    .count()
            };
            assert_eq!(rounds(&resumed), rounds(&lines), "{budget}");
        }
    }
}

#[test]
fn what_no_metric_speaks_of_must_be_a_number_too_for_the_journal_to_be_read_again() {
    for mood in [f64::NAN, f64::INFINITY, 1e300] {
        let probe = probe();
        probe.beside.set(Some(mood));
        let (outcome, lines) = run(study(9, "capo", EFFORT, ""), &probe);
        assert_eq!(outcome.finished.status, Status::Failed, "{mood}");
        assert!(outcome.finished.reason.clone().unwrap().contains("`mood`"));
        events(&lines);
    }
}

#[test]
fn resuming_a_run_whose_budget_is_spent_adds_nothing() {
    for budget in ["rollouts = 200", "calls = 500", "usd = 0.5", "tokens = 5000"] {
        let limited = study(4, "capo", EFFORT, &format!("[budget]\n{budget}\n"));
        let (whole, lines) = run(limited.clone(), &probe());
        assert_eq!(whole.finished.status, Status::Budget, "{budget}");
        let probe = probe();
        let (again, resumed) = resume(limited, &probe, lines.clone(), RunOptions::default());
        assert_eq!((probe.rollouts(), probe.calls.get()), (0, 0), "{budget}");
        assert_eq!(resumed, lines, "{budget}");
        assert_eq!(again.finished, whole.finished, "{budget}");
    }
}

#[test]
fn nothing_is_criticised_or_rewritten_that_could_not_be_measured_any_more() {
    // Round 0 measures the seed and two children, and 20 rollouts are held back for the end.
    let exactly_one_round = 24 + 2 * 24 + 20;
    let budget = format!("[budget]\nrollouts = {exactly_one_round}\n");
    let (outcome, lines) = run(study(1, "capo", EFFORT, &budget), &probe());
    assert_eq!(outcome.journal.state().rounds().len(), 1);
    assert_eq!(outcome.journal.state().ledger().search_rollouts, 24 + 2 * 24);
    let later = |event: &Event| matches!(event, Event::Critique(critique) if critique.round > 0);
    assert!(!events(&lines).iter().any(later));
    assert_eq!(outcome.finished.evaluation["success"].n, 10);
}

#[test]
fn measuring_the_last_pool_whole_leaves_room_for_the_held_out_evaluation() {
    for growth in [None, Some(1.2)] {
        let mut chosen_on = [0, 0];
        for budget in (60..900).step_by(31) {
            let mut batched = study(4, "capo", EFFORT, &format!("[budget]\nrollouts = {budget}\n"));
            batched.study.batch = Some(4);
            batched.study.batch_growth = growth;
            let probe = probe();
            let (outcome, lines) = run(batched, &probe);
            let finished = &outcome.finished;
            assert!(probe.rollouts() <= budget, "{} > {budget}", probe.rollouts());
            assert_eq!(finished.evaluation["success"].n, 10, "of {budget}");
            assert_eq!(finished.seed_evaluation["success"].n, 10, "of {budget}");
            let last = outcome.journal.state().rounds().last().unwrap();
            let best = finished.best.unwrap();
            let on_the_batch = last
                .scores
                .get(&best)
                .is_some_and(|score| score.costs == finished.final_scores[&best].costs);
            chosen_on[usize::from(on_the_batch)] += 1;
            block_on(verify(&lines)).unwrap_or_else(|error| panic!("{budget}: {error}"));
        }
        // Where batches grow, some of the final choice nearly always have room.
        let both = chosen_on[0] > 5 && (chosen_on[1] > 2 || growth.is_some());
        assert!(both, "both happen: {chosen_on:?}");
    }
}

#[test]
fn a_small_budget_of_growing_batches_measures_as_many_of_the_final_choice_as_it_has_room_for() {
    let mut told = 0;
    for budget in (100..400).step_by(20) {
        let mut growing = study(4, "capo", EFFORT, &format!("[budget]\nrollouts = {budget}\n"));
        (growing.study.batch, growing.study.batch_growth) = (Some(4), Some(1.2));
        growing.study.rounds = serde_json::from_str("\"until-budget\"").unwrap();
        let (outcome, lines) = run(growing, &probe());
        let finished = &outcome.finished;
        let reason = finished.reason.as_deref().unwrap();
        assert_ne!(finished.status, Status::Budget, "of {budget}: {reason}");
        let best = finished.best.unwrap();
        let on_search = |event: &&Event| matches!(event, Event::Rollout(one) if one.candidate == best && one.split == Split::Optimize);
        let measured = events(&lines).iter().filter(on_search).count();
        assert_eq!(measured, 24, "of {budget}: {reason}");
        assert_eq!(finished.evaluation["success"].n, 10, "of {budget}");
        told += usize::from(reason.contains("more candidates of the final choice"));
        block_on(verify(&lines)).unwrap_or_else(|error| panic!("{budget}: {error}"));
    }
    assert!(told > 3, "{told} had no room for all");
}

#[test]
fn a_search_holds_back_what_its_final_choice_will_measure_and_no_more() {
    let relative = "[[constraint]]\nmetric = \"effort\"\nrelative_to_seed = 0.9\n";
    let pool = "[method]\npool = 2\n";
    // The held-out evaluation takes 20; each candidate of the final choice 24.
    for (method, constraint, settings, growth, budget, held_back) in [
        // The pool, three others and the seed.
        ("capo", EFFORT, pool, None, 330, 20 + (2 + 3 + 1) * 24),
        // The seed is measured already.
        ("capo", relative, pool, None, 290, 20 + (2 + 3) * 24),
        // The method's own choice alone.
        ("sampling", EFFORT, "", None, 90, 20 + 24),
        // What they lack of the batch of the rounds, which does not grow here.
        ("capo", EFFORT, pool, Some(1.0), 200, 20 + (2 + 3 + 1) * 4),
    ] {
        let budget = format!("[budget]\nrollouts = {budget}\n");
        let mut batched = study(4, method, constraint, &format!("{settings}{budget}"));
        batched.study.batch = Some(20);
        batched.study.batch_growth = growth;
        let (outcome, lines) = run(batched, &probe());
        assert_eq!(outcome.finished.status, Status::Budget, "{method}");
        let reason = outcome.finished.reason.clone().unwrap();
        let expected = format!("({held_back} held back for the final evaluation)");
        assert!(reason.contains(&expected), "{method}: {reason}");
        assert_eq!(outcome.finished.evaluation["success"].n, 10, "{method}");
        block_on(verify(&lines)).unwrap();
    }
}

#[test]
fn a_search_with_minibatches_that_stopped_early_returns_its_best_by_the_last_batch() {
    let mut batched = study(4, "capo", EFFORT, "[budget]\nrollouts = 100\n");
    batched.study.batch = Some(4);
    let (outcome, lines) = run(batched, &probe());
    let finished = &outcome.finished;
    assert_eq!(finished.status, Status::Budget);
    let last = outcome.journal.state().rounds().last().unwrap();
    let best = finished.best.unwrap();
    assert_eq!(finished.final_scores[&best].costs, last.scores[&best].costs);
    assert_eq!(finished.evaluation["success"].n, 10);
    block_on(verify(&lines)).unwrap();
}

#[test]
fn an_interrupt_during_the_held_out_evaluation_is_told_and_can_be_resumed() {
    let (reference, lines) = run(study(3, "capo", EFFORT, ""), &probe());
    let rounds_over = 1 + lines
        .iter()
        .rposition(|line| line.contains("\"event\":\"round\""))
        .unwrap();
    let options = RunOptions::default();
    options.control.interrupt();
    let kept = lines[..rounds_over].to_vec();
    let (stopped, lines) = resume(study(3, "capo", EFFORT, ""), &probe(), kept, options);
    assert_eq!(stopped.finished.status, Status::Stopped);
    assert_eq!(stopped.finished.best, reference.finished.best);
    block_on(verify(&lines)).unwrap();
    let (resumed, _) = resume(
        study(3, "capo", EFFORT, ""),
        &probe(),
        lines,
        RunOptions::default(),
    );
    assert_eq!(resumed.finished, reference.finished);
}

#[test]
fn an_unusable_rewrite_is_not_paid_for_again_after_a_kill() {
    let whole_probe = probe();
    whole_probe.bad_rewrites.set(1);
    let (whole, lines) = run(study(2, "capo", EFFORT, ""), &whole_probe);
    let failed = lines
        .iter()
        .position(|line| line.starts_with("{\"event\":\"failure\""))
        .unwrap();
    let (probe, kept) = (probe(), lines[..=failed].to_vec());
    let paid: u64 = events(&kept)
        .iter()
        .map(|event| match event {
            Event::Rollout(rollout) => rollout.usage.total().calls,
            Event::Critique(critique) => critique.usage.total().calls,
            Event::Rewrite(rewrite) => rewrite.usage.total().calls,
            Event::Failure(failure) => failure.usage.total().calls,
            _ => 0,
        })
        .sum();
    let (resumed, _) = resume(study(2, "capo", EFFORT, ""), &probe, kept, RunOptions::default());
    assert_eq!(resumed.finished, whole.finished);
    assert_eq!(
        u64::from(probe.calls.get()) + paid,
        u64::from(whole_probe.calls.get())
    );
}

#[test]
fn an_unusable_rewrite_leaves_the_next_one_all_its_tries() {
    let probe = probe();
    probe.bad_rewrites.set(1);
    // The seed's 24 rollouts of two calls, its critique, the unusable answer, and then a failure.
    probe.failing_call.set(48 + 1 + 1 + 1);
    let (outcome, lines) = run(study(2, "capo", EFFORT, ""), &probe);
    let failed: Vec<_> = events(&lines)
        .into_iter()
        .filter_map(|event| match event {
            Event::Failure(failure) => Some((failure.of, failure.kind)),
            _ => None,
        })
        .collect();
    assert_eq!(failed.len(), 2);
    assert_eq!(failed[0].0, failed[1].0, "two tries of one rewrite");
    assert_eq!(
        [failed[0].1, failed[1].1],
        [FailureKind::Malformed, FailureKind::RateLimit]
    );
    assert!(outcome.finished.reason.is_none(), "{:?}", outcome.finished.reason);
}

#[test]
fn every_setting_at_once_survives_a_cut_anywhere_and_any_order_of_arrival() {
    let constraints = "[[constraint]]\nmetric = \"effort\"\nrelative_to_seed = 0.9\n\
        [[constraint]]\nmetric = \"prompt_length\"\nthreshold = 0.02\nfrom_round = 2\n";
    let method = "[method]\nnoise = 0.1\ndual_step = \"pid\"\npool = 3\n";
    for budget in ["", "[budget]\nrollouts = 400\n", "[budget]\ncalls = 700\n"] {
        let mut crowded = study(3, "capo", constraints, &format!("{method}{budget}"));
        (crowded.study.batch, crowded.study.repeats) = (Some(7), 2);
        let options = RunOptions::default();
        options.control.steer(SteerEvent {
            thresholds: Some([("effort".to_owned(), 1.2)].into()),
            ..SteerEvent::default()
        });
        let (whole, lines) = resume(crowded.clone(), &probe(), Vec::new(), options);
        block_on(verify(&lines)).unwrap();
        let steered = lines.iter().position(|line| line.contains("\"event\":\"steer\""));
        for cut in (steered.unwrap() + 1..lines.len()).step_by(101) {
            let probe = probe();
            probe.disorder.set(cut as u64);
            let kept = lines[..cut].to_vec();
            let (resumed, lines) = resume(crowded.clone(), &probe, kept, RunOptions::default());
            let place = format!("{budget}cut at line {cut}");
            assert_eq!(
                resumed.journal.state().rounds(),
                whole.journal.state().rounds(),
                "{place}"
            );
            let (now, then) = (&resumed.finished, &whole.finished);
            assert_eq!(now.best, then.best, "{place}");
            assert_eq!(now.final_scores, then.final_scores, "{place}");
            assert!(probe.served.borrow().values().all(|times| *times == 1), "{place}");
            block_on(verify(&lines)).unwrap_or_else(|error| panic!("{place}: {error}"));
        }
    }
}
