//! Pairs from journals: of a run as it is made, and of runs written line by line.

mod journal;
#[path = "../../../../core/tests/tiny/mod.rs"]
#[allow(
    unreachable_pub,
    missing_docs,
    clippy::must_use_candidate,
    clippy::new_without_default,
    reason = "shared with the examples of another crate"
)]
mod tiny;

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use capo_core::arena::{Models, RunOptions};
use capo_core::journal::{FileJournal, Fsync, SteerEvent};
use capo_core::llm::{ChatRequest, ChatResponse, Llm, LlmError, Message, RewriteForm, Role};
use capo_core::optimize;
use capo_core::templates::WeightedConstraint;
use capo_rewriter::pairs::{PairSettings, Pairs, PairsError, Tally, is_held_out, read_journal};
use futures::executor::block_on;
use futures::future::LocalBoxFuture;
use proptest::prelude::*;
use tempfile::TempDir;

use self::journal::Run;

const EVERYTHING: PairSettings = PairSettings {
    min_gain: 0.0,
    held_out: 0.0,
};

fn read(runs: &[&Run], settings: PairSettings) -> Result<Pairs, PairsError> {
    let folder = TempDir::new().expect("a folder");
    let paths: Vec<_> = (0..)
        .zip(runs)
        .map(|(index, run)| run.write(folder.path(), index))
        .collect();
    Pairs::read(&paths, &settings)
}

/// The tiny world, whose rewriter is asked as one that learned, and what it was asked.
#[derive(Clone, Default)]
struct Overheard(Rc<RefCell<Vec<String>>>);

struct Listening {
    model: Rc<dyn Llm>,
    heard: Overheard,
}

impl Models for Overheard {
    fn model(&self, role: Role) -> Rc<dyn Llm> {
        let model = tiny::Tiny.model(role);
        match role {
            Role::Rewriter => Rc::new(Listening {
                model,
                heard: self.clone(),
            }),
            _ => model,
        }
    }
}

impl Llm for Listening {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn rewrite_form(&self) -> RewriteForm {
        RewriteForm::Learned
    }

    fn chat(&self, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        for message in request.messages.iter() {
            let Message::User { content } = message else {
                panic!("a learned rewriter is asked in one message of the user's")
            };
            self.heard.0.borrow_mut().push(content.clone());
        }
        self.model.chat(request)
    }
}

#[test]
fn pairs_ask_as_the_search_asked() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("run.journal.jsonl");
    let journal = FileJournal::open(&path, Fsync::Never).expect("opens");
    let study = tiny::STUDY
        .replace("[study]", "[study]\nmethod = \"dcapo\"")
        .replace("children = 1", "children = 2\ndepth = 2");
    let overheard = Overheard::default();
    block_on(optimize(
        tiny::problem(&study).expect("a valid study"),
        journal,
        Rc::new(overheard.clone()),
        RunOptions::default(),
    ))
    .expect("runs");

    let mut tally = Tally::default();
    let pairs = read_journal(&path, &mut tally).expect("has pairs");
    let mut asked: Vec<_> = pairs.iter().map(|pair| pair.request.text()).collect();
    let mut heard = overheard.0.borrow().clone();
    asked.sort();
    heard.sort();
    assert_eq!(asked, heard);
    let has = |part: &str| asked.iter().any(|text| text.contains(part));
    assert!(has("\n\nDraft:\n") && has("\n\nFeedback:\nnone") && has("Feedback:\nIt should look up"));
}

fn refused(run: &Run, parts: &[&str]) {
    let message = read(&[run], EVERYTHING).expect_err("must be refused").to_string();
    for part in parts {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}

#[test]
fn a_run_gives_its_successful_rewrites() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("run.journal.jsonl");
    let journal = FileJournal::open(&path, Fsync::Never).expect("opens");
    let problem = tiny::problem(tiny::STUDY).expect("a valid study");
    block_on(optimize(
        problem,
        journal,
        Rc::new(tiny::Tiny),
        RunOptions::default(),
    ))
    .expect("runs");

    let pairs = Pairs::read(&[&path], &EVERYTHING).expect("has pairs");
    assert!(pairs.tally.rewrites >= 2, "{:?}", pairs.tally);
    let first = &pairs.training[0];
    assert_eq!(first.request.prompt, "You answer customers.");
    assert!(
        first.child.starts_with("You answer customers. Look up every "),
        "{}",
        first.child
    );
    assert!(first.request.feedback.starts_with("It should look up every "));
    assert_eq!(first.request.objective.value, 0.0);
    // The seed hands everybody over; a quarter of that is the frozen threshold.
    let handovers = WeightedConstraint {
        metric: "handovers".into(),
        threshold: 0.25,
        multiplier: 1.0,
        cost: 1.0,
    };
    assert_eq!(first.request.constraints, [handovers]);
    // 0 − (1 − 0.25), and half of both with one topic named.
    assert_eq!(first.parent_lagrangian, -0.75);
    assert_eq!(first.child_lagrangian, 0.25);
    assert_eq!(first.gain(), 1.0);
    assert!(first.retained);
    assert_eq!(first.place.journal, path);
}

#[test]
fn what_is_dropped_is_counted() {
    let mut run = Run::new("capo");
    run.rewrite("seed", "better", 0.5, 0.7)
        .rewrite("seed", "worse", 0.5, 0.4)
        .rewrite("seed", "equal", 0.5, 0.5)
        .childless("seed")
        .round(&[("effort", 1.0)])
        .rewrite("better", "never scored", 0.7, 0.9);
    let pairs = read(&[&run, &run], EVERYTHING).expect("has pairs");
    assert_eq!(
        pairs.tally,
        Tally {
            journals: 2,
            rewrites: 10,
            childless: 2,
            unfinished: 2,
            discarded: 0,
            no_gain: 4,
            duplicates: 1,
            training: 1,
            held_out: 0,
        }
    );
    assert_eq!(pairs.training[0].child, "better");
    let eager = PairSettings {
        min_gain: 0.5,
        ..EVERYTHING
    };
    let message = read(&[&run, &run], eager).expect_err("nothing left").to_string();
    assert_eq!(
        message,
        "no training pair is left of 10 rewrites in 2 journals: 2 gave no child, 2 belong to unfinished rounds, \
         0 led to prompts that were not measured whole, 6 have no ΔJ above 0.5, 0 are duplicates, 0 are held out; give more journals, or change the filter"
    );
    let lenient = PairSettings {
        min_gain: -1.0,
        ..EVERYTHING
    };
    assert_eq!(read(&[&run], lenient).expect("has pairs").training.len(), 3);
}

#[test]
fn children_that_could_not_be_run_are_counted_and_left_aside() {
    let mut run = Run::new("capo");
    run.rewrite("seed", "better", 0.5, 0.7)
        .rewrite("seed", "too long", 0.5, 0.7)
        .discard("too long")
        .round(&[("effort", 1.0)]);
    let pairs = read(&[&run], EVERYTHING).expect("has pairs");
    let tally = pairs.tally;
    assert_eq!((tally.rewrites, tally.discarded, tally.training), (2, 1, 1));
    assert_eq!(pairs.training[0].child, "better");
}

#[test]
fn rejected_children_are_there_and_say_so() {
    let mut run = Run::new("capo");
    run.rewrite("seed", "good", 0.1, 0.7)
        .rewrite("seed", "pruned", 0.1, 0.2)
        .prune("pruned")
        .round(&[("effort", 1.0)]);
    let pairs = read(&[&run], EVERYTHING).expect("has pairs").training;
    let retained: Vec<_> = pairs
        .iter()
        .map(|pair| (pair.child.as_str(), pair.retained))
        .collect();
    assert_eq!(retained, [("good", true), ("pruned", false)]);
}

#[test]
fn thresholds_and_multipliers_are_those_of_the_round() {
    let mut run = Run::new("capo");
    run.rewrite("seed", "one", 0.1, 0.2)
        .round(&[("effort", 1.0)])
        .steer(SteerEvent {
            round: 1,
            thresholds: Some([("effort".to_owned(), 1.5)].into()),
            ..SteerEvent::default()
        })
        .rewrite("one", "two", 0.2, 0.3)
        .round(&[("effort", 3.0), ("length", 0.0)]);
    let pairs = read(&[&run], EVERYTHING).expect("has pairs").training;
    let terms = |index: usize| -> Vec<_> {
        let constraints = pairs[index].request.constraints.iter();
        constraints
            .map(|one| (one.metric.as_str(), one.threshold, one.multiplier))
            .collect()
    };
    assert_eq!(terms(0), [("effort", 2.0, 1.0)]);
    assert_eq!(terms(1), [("effort", 1.5, 3.0), ("length", 5.0, 0.0)]);
    assert_eq!(pairs[1].place.round, 1);
    assert_eq!(pairs[1].request.feedback, "feedback on one");
}

#[test]
fn what_has_no_critique_was_rewritten_without_feedback() {
    for extra in ["", "[feedback]\nform = \"none\""] {
        let mut run = Run::with("capo", extra);
        run.uncriticised("seed", "one", 0.1, 0.2)
            .round(&[("effort", 1.0)])
            .rewrite("one", "two", 0.2, 0.3)
            .round(&[("effort", 1.0)]);
        let pairs = read(&[&run], EVERYTHING).expect("has pairs").training;
        assert_eq!(pairs[0].request.feedback, "");
        assert_eq!(pairs[1].request.feedback, "feedback on one");
    }
}

#[test]
fn journals_that_do_not_read_are_named_with_their_line() {
    let good = || {
        let mut run = Run::new("capo");
        run.rewrite("seed", "one", 0.1, 0.2).round(&[("effort", 1.0)]);
        run
    };
    let mut run = good();
    run.lines.insert(2, "{\"event\":\"rewrite\"}".into());
    refused(&run, &["run-0.jsonl line 3:", "round"]);
    let mut run = good();
    run.lines[0] = "{\"event\":\"study\",\"schema\":99}".into();
    refused(&run, &["run-0.jsonl line 1:", "newer Capo"]);
    let mut run = good();
    run.lines.remove(1);
    refused(&run, &["run-0.jsonl line 2:", "never introduced"]);
    let mut run = good();
    run.lines.clear();
    refused(&run, &["run-0.jsonl line 1:", "empty"]);

    let message = read_journal(Path::new("nowhere.jsonl"), &mut Tally::default()).expect_err("is not there");
    assert!(message.to_string().contains("nowhere.jsonl"), "{message}");
}

#[test]
fn runs_without_rewriter_and_settings_out_of_range_are_refused() {
    refused(
        &Run::new("injected"),
        &["`injected`", "rewrites nothing", "capo, capo-ea"],
    );
    for (settings, name) in [
        (
            PairSettings {
                held_out: 1.0,
                ..EVERYTHING
            },
            "held_out",
        ),
        (
            PairSettings {
                min_gain: f64::NAN,
                ..EVERYTHING
            },
            "min_gain",
        ),
    ] {
        let message = read(&[], settings).expect_err("must be refused").to_string();
        assert!(message.contains(name), "{message}");
    }
    let nothing = read(&[], EVERYTHING).expect_err("nothing to read");
    assert!(
        nothing.to_string().contains("0 rewrites in 0 journals"),
        "{nothing}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_parent_is_on_both_sides(
        families in prop::collection::vec((0u8..12, 0u8..30, -1.0f64..1.0), 1..30), share in 0.0f64..0.9,
    ) {
        let mut run = Run::new("capo");
        for (parent, child, score) in families {
            run.rewrite(&format!("parent {parent}"), &format!("child {child}"), 0.0, score).round(&[("effort", 1.0)]);
        }
        let settings = PairSettings { held_out: share, ..EVERYTHING };
        let Ok(pairs) = read(&[&run], settings) else { return Ok(()) };
        let parents = |pairs: &[capo_rewriter::pairs::Pair]| -> Vec<String> {
            pairs.iter().map(|pair| pair.request.prompt.clone()).collect()
        };
        let (training, held_out) = (parents(&pairs.training), parents(&pairs.held_out));
        prop_assert!(held_out.iter().all(|parent| !training.contains(parent)));
        prop_assert!(training.iter().all(|parent| !is_held_out(parent, share)));
        prop_assert!(pairs.training.iter().all(|pair| pair.gain() > 0.0));
        let tally = pairs.tally;
        let parts = tally.childless + tally.unfinished + tally.no_gain + tally.duplicates + tally.training + tally.held_out;
        prop_assert_eq!(parts, tally.rewrites);
    }

    #[test]
    fn the_share_held_out_is_about_what_was_asked(share in 0.05f64..0.95) {
        let count = 2000;
        let held = (0..count).filter(|index| is_held_out(&format!("parent {index}"), share)).count();
        let error = (share * (1.0 - share) / f64::from(count)).sqrt();
        prop_assert!((held as f64 / f64::from(count) - share).abs() < 5.0 * error);
        prop_assert!(!is_held_out("any", 0.0));
    }
}
