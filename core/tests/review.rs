//! Review.

mod world;

use std::rc::Rc;

use capo_core::arena::RunOptions;
use capo_core::control::Control;
use capo_core::journal::{Event, Status, SteerEvent, branch};
use futures::executor::block_on;
use world::{EFFORT, Probe, events, resume, run, study};

fn probe() -> Rc<Probe> {
    Rc::new(Probe::default())
}

#[test]
fn prompt_at_the_limit() {
    // 24 examples; "Act." has 4 characters. find a text whose mean is off.
    for n in 30..60 {
        let threshold = format!("[[constraint]]\nmetric = \"prompt_length\"\nthreshold = {}\n", f64::from(n) / 1000.0);
        let mut s = study(0, "capo", &threshold, "");
        s.prompt.text = Some("x".repeat(n as usize));
        s.study.rounds = serde_json::from_str("1").unwrap();
        let (outcome, _) = run(s, &probe());
        let seed = outcome.journal.state().rounds()[0].parents[0];
        assert!(outcome.journal.state().rounds()[0].scores[&seed].feasible, "{n}");
        let estimate = outcome.finished.seed_evaluation["prompt_length"];
        assert_eq!(estimate.standard_error, 0.0);
        assert!(estimate.mean <= f64::from(n) / 1000.0);
    }
}

#[test]
fn one_round_methods_steered() {
    for method in ["sampling", "injected"] {
        let control = Control::new();
        control.steer(SteerEvent {
            thresholds: Some([("effort".to_owned(), 1.2)].into()),
            ..SteerEvent::default()
        });
        let options = RunOptions { control, ..RunOptions::default() };
        let (outcome, lines) = resume(study(3, method, EFFORT, ""), &probe(), Vec::new(), options);
        for score in outcome.journal.state().rounds()[0].scores.values() {
            assert_eq!(score.feasible, score.costs["effort"] <= 1.2, "{method}");
        }
        block_on(capo_core::verify(&lines)).unwrap();
    }
}

#[test]
fn budget_finished_resume_adds_nothing() {
    for budget in ["rollouts = 200", "calls = 500", "usd = 0.5", "tokens = 5000"] {
        let s = study(4, "capo", EFFORT, &format!("[budget]\n{budget}\n"));
        let (_, lines) = run(s.clone(), &probe());
        let p = probe();
        let (_, again) = resume(s, &p, lines.clone(), RunOptions::default());
        assert_eq!((p.rollouts(), p.calls.get()), (0, 0), "{budget}");
        assert_eq!(again[lines.len()..], [] as [String; 0], "{budget} {:?}", lines.last());
    }
}

#[test]
fn minibatch_budget_returns_something() {
    let mut s = study(4, "capo", EFFORT, "[budget]\nrollouts = 100\n");
    s.study.batch = Some(4);
    let (outcome, lines) = run(s, &probe());
    assert!(outcome.finished.best.is_some(), "{:?} rounds {}", outcome.finished, outcome.journal.state().rounds().len());
    block_on(capo_core::verify(&lines)).unwrap();
}

#[test]
fn branch_at_zero_of_relative() {
    let relative = "[[constraint]]\nmetric = \"effort\"\nrelative_to_seed = 0.9\n";
    let (first, lines) = run(study(3, "capo", relative, ""), &probe());
    for round in [0, 1, 2] {
        let branched = branch(&lines, round, SteerEvent::default()).unwrap();
        let p = probe();
        let (out, _) = resume(study(3, "capo", relative, ""), &p, branched, RunOptions::default());
        assert!(!p.served.borrow().keys().any(|(prompt, example, _)| prompt == "Act." && example.starts_with('o')), "{round}");
        assert_eq!(out.finished.best, first.finished.best);
    }
}

#[test]
fn interrupt_during_evaluation() {
    let (_, lines) = run(study(3, "capo", EFFORT, ""), &probe());
    let cut = lines.iter().rposition(|l| l.contains("\"event\":\"round\"")).unwrap() + 1;
    let control = Control::new();
    control.interrupt();
    let options = RunOptions { control, ..RunOptions::default() };
    let (outcome, lines) = resume(study(3, "capo", EFFORT, ""), &probe(), lines[..cut].to_vec(), options);
    assert_eq!(outcome.finished.status, Status::Stopped, "{:?}", outcome.finished.reason);
    block_on(capo_core::verify(&lines)).unwrap();
}

#[test]
fn steering_nonsense() {
    for (metric, value) in [("effort", f64::NAN), ("effort", f64::INFINITY), ("nonsense", 1.0)] {
        for thresholds in [true, false] {
            let map = Some([(metric.to_owned(), value)].into());
            let event = if thresholds { SteerEvent { thresholds: map, ..SteerEvent::default() } } else { SteerEvent { multipliers: map, ..SteerEvent::default() } };
            let control = Control::new();
            control.steer(event);
            let options = RunOptions { control, ..RunOptions::default() };
            let (_, lines) = resume(study(3, "capo", EFFORT, ""), &probe(), Vec::new(), options);
            events(&lines);
            assert!(!lines.iter().any(|l| l.contains("nonsense") && !l.contains("finished")));
        }
    }
}

#[test]
fn tampered_status() {
    let (_, mut lines) = run(study(3, "capo", EFFORT, ""), &probe());
    let last = lines.last_mut().unwrap();
    *last = last.replacen("\"status\":\"feasible\"", "\"status\":\"infeasible\"", 1);
    assert!(last.contains("infeasible"));
    block_on(capo_core::verify(&lines)).unwrap_err();
}

#[test]
fn huge_repeat() {
    let (_, mut lines) = run(study(3, "capo", EFFORT, ""), &probe());
    let at = lines.iter().position(|l| l.contains("\"event\":\"rollout\"")).unwrap();
    lines[at] = lines[at].replacen("\"repeat\":0", "\"repeat\":40000000", 1);
    let error = block_on(capo_core::verify(&lines)).unwrap_err().to_string();
    assert!(error.contains("line") && error.contains("repeat"), "{error}");
}

#[test]
fn both_thresholds() {
    let text = "[study]\nname = \"n\"\n[workload]\nkind = \"world\"\n[prompt]\ntext = \"Act.\"\n[objective]\nmetric = \"success\"\n[models.agent]\nprovider = \"x\"\n[[constraint]]\nmetric = \"effort\"\nthreshold = 1.0\nrelative_to_seed = 0.5\n";
    capo_core::study::Study::parse(text, capo_core::study::Format::Toml).unwrap_err();
}

#[test]
fn stranger_file_kept() {
    let path = std::env::temp_dir().join(format!("capo-review-{}", std::process::id()));
    std::fs::write(&path, "precious text without a line break").unwrap();
    let opened = capo_core::journal::FileJournal::open(&path, capo_core::journal::Fsync::Never);
    let after = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(after, "precious text without a line break");
    assert!(opened.is_err());
}
