//! The driver on a workload that asks no model.

use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use capo_core::arena::{Models, RunOptions};
use capo_core::journal::{FileJournal, Fsync};
use capo_core::llm::{Llm, Role};
use capo_core::metric::{MetricSpec, PROMPT_LENGTH, prompt_length};
use capo_core::problem::Problem;
use capo_core::usage::Usage;
use capo_core::workload::{Rollout, RolloutContext, RolloutError, Split, Trace, Workload};
use futures::FutureExt;
use futures::future::LocalBoxFuture;

use super::*;
use crate::experiment::EXPERIMENTS;

/// Three examples, solved by longer prompts more often; asks no model.
struct Echo {
    metrics: Vec<MetricSpec>,
    examples: Vec<String>,
}

impl Workload for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn metrics(&self) -> &[MetricSpec] {
        &self.metrics
    }

    fn examples(&self, split: Split) -> &[String] {
        match split {
            Split::Optimize => &self.examples[..2],
            Split::Evaluate => &self.examples[2..],
        }
    }

    fn fingerprint(&self) -> String {
        String::new()
    }

    fn description(&self) -> String {
        String::new()
    }

    fn max_calls(&self) -> Vec<(Role, u64)> {
        Vec::new()
    }

    fn rollout<'a>(
        &'a self,
        context: RolloutContext<'a>,
    ) -> LocalBoxFuture<'a, Result<Rollout, RolloutError>> {
        let length = prompt_length(context.prompt);
        let solved = if length > 0.1 { 1.0 } else { 0.0 };
        let measurements = [("success".to_owned(), solved), (PROMPT_LENGTH.to_owned(), length)].into();
        async move {
            Ok(Rollout {
                measurements,
                trace: Trace::default(),
                external_usage: Usage::default(),
            })
        }
        .boxed_local()
    }
}

struct Nobody;

impl Models for Nobody {
    fn model(&self, role: Role) -> Rc<dyn Llm> {
        unreachable!("the method `injected` asks no {role:?}")
    }
}

fn variants() -> Vec<Variant> {
    let study: Study = toml::from_str(
        r#"
        [study]
        name = "echo"
        method = "injected"

        [workload]
        kind = "echo"

        [prompt]
        text = "Answer."

        [objective]
        metric = "success"

        [[constraint]]
        metric = "prompt_length"
        threshold = 1.0

        [models]
        "#,
    )
    .unwrap();
    let study = study.checked().unwrap();
    let tight = |study: &mut Study| study.constraints[0].threshold = Some(0.01);
    vec![
        Variant::of(&study, "loose", "loose", |_| ()),
        Variant::of(&study, "tight", "tight", tight),
    ]
}

/// Runs trials on [`Echo`].
struct Honest;

fn problem(trial: &Trial) -> Result<Problem, capo_core::RunError> {
    let workload = Echo {
        metrics: vec![
            MetricSpec::objective("success", "Long enough."),
            MetricSpec::prompt_length(),
        ],
        examples: ["a", "b", "c"].map(String::from).into(),
    };
    Ok(Problem::new(trial.study(), vec![Rc::new(workload)])?)
}

impl Runner for Honest {
    type Error = capo_core::RunError;

    fn study_id(&self, trial: &Trial) -> Result<String, Self::Error> {
        Ok(problem(trial)?.id())
    }

    fn run(&self, trial: &Trial) -> Result<Option<RunRecord>, Self::Error> {
        std::fs::create_dir_all(trial.journal.parent().unwrap()).unwrap();
        let journal = FileJournal::open(&trial.journal, Fsync::Never)?;
        let running = capo_core::optimize(problem(trial)?, journal, Rc::new(Nobody), RunOptions::default());
        let outcome = running.now_or_never().expect("nothing to wait for")?;
        let record = trial.record(outcome.journal.state());
        Ok(Some(record.expect("the run has ended")))
    }
}

/// Fails every run.
struct Keyless;

impl Runner for Keyless {
    type Error = std::io::Error;

    fn study_id(&self, trial: &Trial) -> Result<String, Self::Error> {
        Ok(problem(trial).unwrap().id())
    }

    fn run(&self, _: &Trial) -> Result<Option<RunRecord>, Self::Error> {
        Err(std::io::Error::other("no key"))
    }
}

#[derive(Default)]
struct Counts {
    started: AtomicUsize,
    fresh: AtomicUsize,
    known: AtomicUsize,
}

impl Watch for Counts {
    fn started(&self, _: &Trial) {
        self.started.fetch_add(1, Relaxed);
    }

    fn done(&self, _: &Trial, fresh: bool) {
        if fresh { &self.fresh } else { &self.known }.fetch_add(1, Relaxed);
    }
}

fn jobs(jobs: usize) -> NonZeroUsize {
    NonZeroUsize::new(jobs).unwrap()
}

fn trials_of<'a>(variants: &'a [Variant], seeds: &str, out: &Path) -> Vec<Trial<'a>> {
    trials(EXPERIMENTS[0].name, variants, &seeds.parse().unwrap(), out, false)
}

#[test]
fn every_cell_is_run_once_and_never_again() {
    let out = tempfile::tempdir().unwrap();
    let variants = variants();
    let trials = trials_of(&variants, "0,3,7", out.path());
    let counts = Counts::default();
    let first = drive(&trials, jobs(3), &counts, &Honest).unwrap();
    assert_eq!((counts.fresh.load(Relaxed), counts.known.load(Relaxed)), (6, 0));
    let keys: Vec<(&str, u64)> = first
        .iter()
        .map(|record| (record.variant.as_str(), record.seed))
        .collect();
    assert_eq!(
        keys,
        [
            ("loose", 0),
            ("tight", 0),
            ("loose", 3),
            ("tight", 3),
            ("loose", 7),
            ("tight", 7)
        ]
    );
    assert_eq!(first[0].status, Status::Feasible);
    assert_eq!(first[1].status, Status::Infeasible);
    assert_eq!(first[0].evaluate.as_ref().unwrap().objective, 1.0);

    let counts = Counts::default();
    assert_eq!(drive(&trials, jobs(2), &counts, &Keyless).unwrap(), first);
    assert_eq!((counts.started.load(Relaxed), counts.known.load(Relaxed)), (0, 6));
}

#[test]
fn a_run_cut_off_is_carried_on() {
    let out = tempfile::tempdir().unwrap();
    let variants = variants();
    let trials = trials_of(&variants[..1], "1", out.path());
    let whole = drive(&trials, jobs(1), &Counts::default(), &Honest).unwrap();
    let text = std::fs::read_to_string(&trials[0].journal).unwrap();
    let lines = text.lines().count();
    let torn: String = text
        .split_inclusive('\n')
        .take(lines - 2)
        .chain(["{\"event\":\"rol"])
        .collect();
    std::fs::write(&trials[0].journal, torn).unwrap();
    let counts = Counts::default();
    assert_eq!(drive(&trials, jobs(1), &counts, &Honest).unwrap(), whole);
    assert_eq!(counts.fresh.load(Relaxed), 1);
}

#[test]
fn a_run_whose_journal_is_cut_in_its_first_line_is_started_anew() {
    let out = tempfile::tempdir().unwrap();
    let variants = variants();
    let trials = trials_of(&variants[..1], "1", out.path());
    let whole = drive(&trials, jobs(1), &Counts::default(), &Honest).unwrap();
    for cut in ["", "{\"event\":\"study\",\"sch"] {
        std::fs::write(&trials[0].journal, cut).unwrap();
        assert_eq!(
            drive(&trials, jobs(1), &Counts::default(), &Honest).unwrap(),
            whole
        );
    }
}

#[test]
fn a_run_whose_held_out_evaluation_was_cut_by_the_budget_is_carried_on() {
    let out = tempfile::tempdir().unwrap();
    let mut variants = variants();
    variants.truncate(1);
    let run = |variants: &[Variant]| {
        let trials = trials_of(variants, "1", out.path());
        let counts = Counts::default();
        let records = drive(&trials, jobs(1), &counts, &Honest).unwrap();
        (records[0].clone(), counts.fresh.load(Relaxed))
    };
    let (whole, fresh) = run(&variants);
    assert_eq!((whole.complete, fresh), (true, 1));
    assert_eq!(run(&variants), (whole.clone(), 0), "it is finished");

    // The search is in the journal, its two rollouts are the budget, and the third one is held out.
    let journal = trials_of(&variants, "1", out.path())[0].journal.clone();
    let text = std::fs::read_to_string(&journal).unwrap();
    let held_out =
        |line: &&str| line.contains(r#""split":"evaluate""#) || line.contains(r#""event":"finished""#);
    let search: String = text
        .split_inclusive('\n')
        .filter(|line| !held_out(line))
        .collect();
    std::fs::write(&journal, search).unwrap();
    variants[0].study.budget.rollouts = Some(2);
    for _ in 0..2 {
        let (cut, fresh) = run(&variants);
        assert_eq!((cut.status, cut.evaluate.is_none()), (Status::Feasible, true));
        assert_eq!((cut.complete, fresh), (false, 1), "it is carried on");
    }
    variants[0].study.budget.rollouts = None;
    let (raised, fresh) = run(&variants);
    assert_eq!((&raised.evaluate, fresh), (&whole.evaluate, 1));
    assert_eq!(run(&variants), (raised, 0), "and now it is finished");
}

#[test]
fn a_run_that_is_dropped_is_an_interruption() {
    struct Dropped;
    impl Runner for Dropped {
        type Error = std::io::Error;

        fn study_id(&self, trial: &Trial) -> Result<String, Self::Error> {
            Ok(problem(trial).unwrap().id())
        }

        fn run(&self, _: &Trial) -> Result<Option<RunRecord>, Self::Error> {
            Ok(None)
        }
    }
    let out = tempfile::tempdir().unwrap();
    let variants = variants();
    let trials = trials_of(&variants, "1", out.path());
    let error = drive(&trials, jobs(1), &Counts::default(), &Dropped).unwrap_err();
    assert!(
        matches!(error, DriveError::Interrupted { done: 0, all: 2 }),
        "{error}"
    );
}

#[test]
fn a_journal_of_another_study_is_refused() {
    let out = tempfile::tempdir().unwrap();
    let mut variants = variants();
    drive(
        &trials_of(&variants, "1", out.path()),
        jobs(1),
        &Counts::default(),
        &Honest,
    )
    .unwrap();
    variants[0].study.constraints[0].threshold = Some(2.0);
    let trials = trials_of(&variants, "1", out.path());
    let error = drive(&trials, jobs(1), &Counts::default(), &Honest)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("loose, seed 0: this journal belongs to another study"),
        "{error}"
    );
    assert!(error.contains("threshold: 1.0 → 2.0"), "{error}");
}

#[test]
fn a_broken_journal_is_named() {
    let out = tempfile::tempdir().unwrap();
    let variants = variants();
    let trials = trials_of(&variants, "1", out.path());
    std::fs::create_dir_all(out.path().join("journals")).unwrap();
    std::fs::write(&trials[0].journal, "hello\n").unwrap();
    let error = drive(&trials, jobs(1), &Counts::default(), &Honest)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("beta-loose-seed-0.journal.jsonl: journal line 1: not a Capo journal"),
        "{error}"
    );
}

#[test]
fn the_first_error_stops_what_has_not_begun() {
    let out = tempfile::tempdir().unwrap();
    let variants = variants();
    let trials = trials_of(&variants, "3", out.path());
    let counts = Counts::default();
    let error = drive(&trials, jobs(1), &counts, &Keyless)
        .unwrap_err()
        .to_string();
    assert_eq!(error, "loose, seed 0: no key");
    assert_eq!(counts.started.load(Relaxed), 1);
}
