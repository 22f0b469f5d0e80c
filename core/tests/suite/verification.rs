//! Every honest journal verifies, wherever it was cut and however it was resumed.

use std::rc::Rc;

use crate::world::{EFFORT, Probe, events, resume, run, run_over, study};
use capo_core::arena::RunOptions;
use capo_core::certificate::Confirm;
use capo_core::journal::{MemoryJournal, SteerEvent, branch, slim};
use capo_core::llm::FailureKind;
use capo_core::run_state::RunState;
use capo_core::starts::Start;
use capo_core::study::{FailedExample, Rounds, Study, UntilBudget};
use capo_core::{methods, verify};
use futures::executor::block_on;
use proptest::prelude::*;

/// Every method, with settings that make it measure more than once in a round where it can.
const METHODS: [(&str, &str); 17] = [
    ("capo", ""),
    ("capo-ea", "[method]\npool = 3\n"),
    ("count", ""),
    ("dcapo", ""),
    ("dcapo", "[method]\ndepth = 3\nparents = 2\n"),
    ("sampling", "[method]\nk = 4\n"),
    ("injected", ""),
    ("gepa", ""),
    ("gepa", "[method]\nminibatch = 7\nmerges = 5\n"),
    ("gepa", "[method]\nparents = 1\nminibatch = 1\n"),
    ("mopo", "[method]\npool = 3\n"),
    ("evoprompt-ga", "[method]\npool = 3\n"),
    ("evoprompt-de", "[method]\npool = 4\n"),
    ("apo", "[method]\nbeam = 1\nselection = \"all\"\n"),
    ("apo", "[method]\nbeam = 2\nselection = \"ucb\"\n"),
    ("apo", "[method]\nbeam = 2\nselection = \"successive-rejects\"\n"),
    ("apo", "[method]\nbeam = 2\nselection = \"successive-halving\"\n"),
];

const RELATIVE: &str = "[[constraint]]\nmetric = \"effort\"\nrelative_to_seed = 0.9\n";

#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is drawn for itself")]
struct Case {
    method: usize,
    seed: u64,
    relative: bool,
    repeats: u32,
    batch: Option<usize>,
    growth: Option<f64>,
    until_budget: bool,
    caution: f64,
    confirm: bool,
    /// What becomes of an example that is always refused, if there is one.
    refused: Option<FailedExample>,
    warm: bool,
}

impl Case {
    fn probe(self) -> Rc<Probe> {
        let probe = Probe::default();
        // Ten are left when some are kept for the test.
        probe.held_out.set(if self.confirm { 16 } else { 10 });
        if self.refused.is_some() {
            let refuse = |_: &str, example: &str| (example == "o7").then_some((FailureKind::Provider, false));
            *probe.refuse.borrow_mut() = Some(Rc::new(refuse));
        }
        Rc::new(probe)
    }

    /// Of its first session: prompts to start from where its method takes some.
    fn beginning(self) -> RunOptions {
        let (method, settings) = METHODS[self.method];
        let study = study(self.seed, method, EFFORT, settings);
        let takes = methods::build(method, &study.method).expect("a method").pool() > 1;
        let start = |prompt: &str| Start {
            prompt: prompt.into(),
            run: "an earlier run".to_owned(),
        };
        let starts = ["Act. care", "Act. haste care"].map(start);
        RunOptions {
            starts: starts.into_iter().filter(|_| self.warm && takes).collect(),
            ..RunOptions::default()
        }
    }

    /// `bound` is a key under `[budget]`.
    fn bounded(self, bound: &str, limit: u64) -> Study {
        let mut study = self.study(None);
        match bound {
            "rollouts" => study.budget.rollouts = Some(limit),
            "calls" => study.budget.calls = Some(limit),
            "usd" => study.budget.usd = Some(limit as f64),
            other => panic!("{other}"),
        }
        study
    }

    fn study(self, budget: Option<u64>) -> Study {
        let (method, settings) = METHODS[self.method];
        let constraint = if self.relative { RELATIVE } else { EFFORT };
        let budget = budget.map_or(String::new(), |budget| format!("[budget]\nrollouts = {budget}\n"));
        let mut study = study(self.seed, method, constraint, &format!("{settings}{budget}"));
        study.study.repeats = self.repeats;
        let takes_batches = methods::build(method, &study.method)
            .expect("a method")
            .takes_batches();
        study.study.batch = self.batch.filter(|_| takes_batches);
        study.study.batch_growth = self.growth.filter(|_| study.study.batch.is_some());
        study.study.caution = self.caution;
        study.confirm = self.confirm.then(|| {
            let mut confirm = Confirm::of(6);
            confirm.bounds.insert("effort".into(), 6.0);
            confirm
        });
        study.failures.example = self.refused.unwrap_or_default();
        study.study.rounds = if self.until_budget {
            Rounds::Open(UntilBudget::UntilBudget)
        } else {
            Rounds::Count(3)
        };
        study
    }
}

fn case() -> impl Strategy<Value = Case> {
    (
        0..METHODS.len(),
        0_u64..50,
        any::<bool>(),
        1_u32..4,
        prop_oneof![2 => Just(None), 1 => (3_usize..20).prop_map(Some)],
        prop_oneof![Just(None), (1.0..3.0).prop_map(Some)],
        any::<bool>(),
        prop_oneof![Just(0.0), Just(1.64)],
        any::<bool>(),
        prop_oneof![
            2 => Just(None),
            1 => Just(Some(FailedExample::Worst)),
            1 => Just(Some(FailedExample::LeaveOut)),
        ],
        any::<bool>(),
    )
        .prop_map(
            |(
                method,
                seed,
                relative,
                repeats,
                batch,
                growth,
                until_budget,
                caution,
                confirm,
                refused,
                warm,
            )| {
                Case {
                    method,
                    seed,
                    relative,
                    repeats,
                    batch,
                    growth,
                    until_budget,
                    caution,
                    confirm,
                    // What is told of failures stands before thresholds are frozen, which is never cut below.
                    refused: refused.filter(|_| !relative),
                    warm,
                }
            },
        )
}

/// Runs a study over given lines and verifies what comes of it.
fn verified(study: Study, probe: &Rc<Probe>, lines: Vec<String>, options: RunOptions) -> Vec<String> {
    let place = format!("{:?} {:?}", study.study, study.budget);
    let (_, lines) = resume(study, probe, lines, options);
    block_on(verify(&lines)).unwrap_or_else(|difference| panic!("{place}: {difference}"));
    lines
}

/// A round that the budget halted lacked what was then measured for the final choice; the replay has all of it.
#[test]
fn a_round_that_the_final_choice_made_whole_is_no_missing_line() {
    let case = Case {
        method: 2,
        seed: 36,
        relative: true,
        repeats: 1,
        batch: Some(9),
        growth: None,
        until_budget: true,
        caution: 0.0,
        confirm: false,
        refused: None,
        warm: false,
    };
    let probe = Rc::new(Probe::default());
    let lines = verified(
        case.bounded("rollouts", 111),
        &probe,
        Vec::new(),
        RunOptions::default(),
    );
    let lines = verified(
        case.bounded("calls", 4 * (111 + 227)),
        &probe,
        lines,
        RunOptions::default(),
    );

    // A line that was taken away still is one.
    let last = lines
        .iter()
        .rposition(|line| line.starts_with(r#"{"event":"round""#))
        .unwrap();
    let mut without = lines;
    without.remove(last);
    let difference = block_on(verify(&without)).unwrap_err();
    assert!(difference.to_string().ends_with("is missing"), "{difference}");
}

#[test]
fn what_is_left_out_for_the_final_choice_of_a_search_in_batches_is_left_out_again() {
    let case = Case {
        method: 5,
        seed: 0,
        relative: false,
        repeats: 1,
        batch: Some(3),
        growth: None,
        until_budget: false,
        caution: 0.0,
        confirm: false,
        refused: Some(FailedExample::LeaveOut),
        warm: false,
    };
    for rollouts in 20..120 {
        verified(
            case.study(Some(rollouts)),
            &case.probe(),
            Vec::new(),
            RunOptions::default(),
        );
    }
}

#[test]
fn what_the_final_choice_measured_of_a_halted_round_is_no_part_of_that_round() {
    let case = Case {
        method: 12,
        seed: 36,
        relative: true,
        repeats: 2,
        batch: Some(6),
        growth: Some(2.66),
        until_budget: false,
        caution: 0.0,
        confirm: true,
        refused: None,
        warm: false,
    };
    verified(
        case.bounded("calls", 800),
        &case.probe(),
        Vec::new(),
        RunOptions::default(),
    );
}

#[test]
fn a_journal_without_traces_says_the_same_of_its_run_and_verifies() {
    let (_, whole) = run(study(3, "capo", EFFORT, ""), &Rc::new(Probe::default()));
    let slimmed: Vec<String> = whole.iter().map(|line| slim(line).into_owned()).collect();
    assert!(slimmed.concat().len() < whole.concat().len(), "there were traces");
    let folded = |lines: &[String]| {
        let mut state = RunState::default();
        for (line, event) in (0..).zip(events(lines)) {
            state.apply(&event, line).unwrap();
        }
        state
    };
    let (all, less) = (folded(&whole), folded(&slimmed));
    assert!(less.finished().is_some());
    assert_eq!(less.finished(), all.finished());
    assert_eq!(less.rounds(), all.rounds());
    assert_eq!(less.ledger().usage(), all.ledger().usage());
    assert_eq!(less.rollouts().count(), all.rollouts().count());
    block_on(verify(&slimmed)).unwrap();
}

#[test]
fn nothing_goes_on_from_a_journal_without_traces() {
    let probe = Rc::new(Probe::default());
    let (_, whole) = run(study(3, "capo", EFFORT, ""), &probe);
    let is_end = |line: &&String| line.starts_with(r#"{"event":"finished""#);
    let begun: Vec<String> = whole.iter().filter(|line| !is_end(line)).cloned().collect();
    let slimmed: Vec<String> = begun.iter().map(|line| slim(line).into_owned()).collect();
    let over = |lines: Vec<String>| {
        let store = Box::new(MemoryJournal::from_lines(lines.clone()));
        let options = RunOptions::default();
        run_over(study(3, "capo", EFFORT, ""), &probe, store, lines, options).map(|outcome| outcome.finished)
    };
    over(begun.clone()).unwrap();
    let refused = over(slimmed.clone()).unwrap_err().to_string();
    assert!(refused.contains("without traces"), "{refused}");
    let branched = |lines: &[String]| branch(lines, 1, SteerEvent::default());
    branched(&begun).unwrap();
    assert_eq!(branched(&slimmed).unwrap_err().to_string(), refused);
    // What went its whole way is told again.
    over(whole.iter().map(|line| slim(line).into_owned()).collect()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_run_that_a_budget_cuts_anywhere_verifies_and_so_does_it_resumed(
        case in case(),
        budgets in proptest::collection::vec(1_u64..260, 1..4),
        disorder in 0_u64..4,
    ) {
        let probe = case.probe();
        probe.disorder.set(disorder);
        let (mut lines, mut spent) = (Vec::new(), 0);
        for more in budgets {
            spent += more;
            lines = verified(case.study(Some(spent)), &probe, lines, case.beginning());
        }
        if !case.until_budget {
            verified(case.study(None), &probe, lines, RunOptions::default());
        }
    }

    #[test]
    fn a_run_that_is_killed_anywhere_and_then_interrupted_verifies(
        case in case(),
        budget in 40_u64..500,
        cut in 0.0..1.0_f64,
        disorder in 0_u64..4,
    ) {
        let probe = case.probe();
        probe.disorder.set(disorder);
        let whole = verified(case.study(Some(budget)), &probe, Vec::new(), case.beginning());
        // The first line holds frozen thresholds once the seed is measured, which was never cut before.
        let introduced = 2 + case.beginning().starts.len();
        let frozen = if case.relative { introduced + 24 * case.repeats as usize } else { 1 };
        let least = frozen.min(whole.len());
        let kept = whole[..least + (cut * (whole.len() - least) as f64) as usize].to_vec();
        // Whoever interrupts at once pays for nothing, and says what the journal holds.
        let options = RunOptions::default();
        options.control.interrupt();
        let probe = case.probe();
        let lines = verified(case.study(Some(budget)), &probe, kept, options);
        prop_assert_eq!(probe.calls.get(), 0);
        verified(case.study(Some(budget)), &probe, lines, RunOptions::default());
    }

    #[test]
    fn a_run_whose_budget_bounds_something_else_in_every_session_verifies(
        case in case(),
        sessions in proptest::collection::vec((prop_oneof![Just("rollouts"), Just("calls")], 20_u64..260), 1..4),
        first in proptest::option::of(1_u32..200),
    ) {
        let probe = case.probe();
        let mut lines = Vec::new();
        if let Some(calls) = first {
            // Begun under a budget that bounds nothing here, and interrupted.
            let options = RunOptions::default();
            let control = options.control.clone();
            *probe.after_calls.borrow_mut() = Some((calls, Box::new(move || control.interrupt())));
            lines = verified(case.bounded("usd", 1_000_000), &probe, lines, options);
        }
        let (mut rollouts, mut calls) = (0, 0);
        for (bound, more) in sessions {
            rollouts += more;
            calls += 4 * more;
            let limit = if bound == "calls" { calls } else { rollouts };
            lines = verified(case.bounded(bound, limit), &probe, lines, RunOptions::default());
        }
    }
}
