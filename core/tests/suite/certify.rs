//! Prompts tested on the examples that a study keeps for it.

use std::collections::HashSet;
use std::rc::Rc;

use crate::world::{EFFORT, Effort, Probe, WorldModels, events, problem, resume, run, study};
use capo_core::arena::{Halt, RunOptions};
use capo_core::certificate::{Certificate, Test, Verdict};
use capo_core::certify::{Tested, certify};
use capo_core::evaluate::Evaluator;
use capo_core::ids::CandidateId;
use capo_core::journal::{Event, Journal, MemoryJournal, Status, SteerEvent, branch};
use capo_core::reading::certificates;
use capo_core::reading::certify::certificate;
use capo_core::reading::evidence::Evidence;
use capo_core::reading::feasibility::Feasibility;
use capo_core::study::Study;
use capo_core::verify;
use capo_core::workload::Split;
use futures::executor::block_on;

const CONFIRM: &str = "[confirm]\nexamples = 60\n[confirm.bounds]\neffort = 6.0\n";

/// A world with 40 held-out examples and 60 kept for the test.
fn probe() -> Rc<Probe> {
    let probe = Probe::default();
    probe.held_out.set(100);
    Rc::new(probe)
}

/// The examples that the test is made on, told by those that it leaves to the held-out evaluation.
fn reserve(study: &Study) -> HashSet<String> {
    let of = |study: Study| {
        let probe = probe();
        let journal = Journal::create(Box::new(MemoryJournal::new()));
        let models = Rc::new(WorldModels(probe.clone()));
        let evaluator = Evaluator::open(problem(study, &probe), journal, models, RunOptions::default());
        let examples = evaluator.expect("a new journal").examples(Split::Evaluate);
        examples.into_iter().collect::<HashSet<_>>()
    };
    let all = of(Study {
        confirm: None,
        ..study.clone()
    });
    all.difference(&of(study.clone())).cloned().collect()
}

#[test]
fn the_prompts_found_are_tested_the_safest_first_on_examples_that_nothing_else_touches() {
    let (mut tested, mut certified) = (0, 0);
    for seed in 0..6 {
        let study = study(seed, "capo", EFFORT, CONFIRM);
        let reserve = reserve(&study);
        assert_eq!(reserve.len(), 60);
        let (outcome, lines) = run(study.clone(), &probe());
        let finished = &outcome.finished;
        let certificates = &finished.certificates;
        tested += certificates.len();
        assert!(
            (1..=3).contains(&certificates.len()),
            "seed {seed}: {}",
            certificates.len()
        );
        for (place, one) in certificates.iter().enumerate() {
            assert_eq!((one.confidence, one.reserve), (0.95, 60));
            let is_last = place + 1 == certificates.len();
            assert!(
                is_last || one.verdict == Verdict::Certified,
                "the first that fails is the last"
            );
            let read = certificate(outcome.journal.state(), &one.candidate);
            assert_eq!(read.as_ref(), Some(one), "the journal tells the same");
        }
        let objectives: Vec<f64> = certificates
            .iter()
            .map(|one| finished.final_scores[&one.candidate].objective)
            .collect();
        assert!(objectives.is_sorted(), "seed {seed}: {objectives:?}");
        if let Some(last) = certificates.iter().rfind(|one| one.verdict == Verdict::Certified) {
            certified += 1;
            assert_eq!(finished.best, Some(last.candidate), "seed {seed}");
            let feasibility = Feasibility::of(outcome.journal.state(), finished);
            assert_eq!(
                (feasibility.certified, feasibility.holds()),
                (Some(Verdict::Certified), true)
            );
        }
        assert_eq!(finished.evaluation["success"].n, 40);
        let state = outcome.journal.state();
        assert_eq!(&certificates::all(state), certificates, "seed {seed}");
        let evidence = Evidence::of(state, &finished.best.unwrap()).unwrap();
        assert_eq!(evidence.evaluation, finished.evaluation, "seed {seed}");
        assert_eq!(evidence.seed_evaluation, finished.seed_evaluation, "seed {seed}");
        assert_eq!(evidence.feasibility, Feasibility::of(state, finished));
        let read: Evidence = serde_json::from_str(&serde_json::to_string(&evidence).unwrap()).unwrap();
        assert_eq!(read, evidence);

        let asked: HashSet<_> = certificates.iter().map(|one| one.candidate).collect();
        for event in events(&lines) {
            if let Event::Rollout(rollout) = event {
                let is_kept = reserve.contains(&rollout.example);
                assert!(!is_kept || asked.contains(&rollout.candidate), "{rollout:?}");
            }
        }
        block_on(verify(&lines)).unwrap();
    }
    assert!(
        tested > 6 && certified > 3,
        "{tested} tested, {certified} searches certified"
    );
}

#[test]
fn a_run_cut_anywhere_ends_with_the_same_certificates_and_pays_for_nothing_twice() {
    let study = study(2, "capo", EFFORT, CONFIRM);
    let (outcome, lines) = run(study.clone(), &probe());
    let rollouts = |lines: &[String]| {
        let events = events(lines).into_iter();
        events.filter(|event| matches!(event, Event::Rollout(_))).count() as u32
    };
    let all = rollouts(&lines);
    for cut in (lines.len() - 250..lines.len()).step_by(23) {
        let again = probe();
        let (resumed, longer) = resume(
            study.clone(),
            &again,
            lines[..cut].to_vec(),
            RunOptions::default(),
        );
        assert_eq!(resumed.finished, outcome.finished, "cut at {cut}");
        assert_eq!(again.rollouts(), all - rollouts(&lines[..cut]), "cut at {cut}");
        block_on(verify(&longer)).unwrap();
    }
    let mut tampered = lines.clone();
    let last = tampered.pop().unwrap();
    let changed = last.replacen("\"p\":0.", "\"p\":0.0", 1);
    assert!(changed != last);
    tampered.push(changed);
    assert!(block_on(verify(&tampered)).is_err(), "a changed p-value is found");
}

#[test]
fn a_budget_that_ends_in_the_test_is_kept_and_raising_it_goes_on() {
    let with = |rollouts: u32| {
        let budget = format!("{CONFIRM}[budget]\nrollouts = {rollouts}\n");
        study(2, "capo", EFFORT, &budget)
    };
    let whole = run(study(2, "capo", EFFORT, CONFIRM), &probe()).0.finished;
    // The test and the evaluation need more than half, so that the search holds back the evaluation alone.
    let cut = probe();
    let (short, lines) = run(with(400), &cut);
    assert_eq!(cut.rollouts(), 400);
    block_on(verify(&lines)).unwrap();
    assert_ne!(short.finished.certificates, whole.certificates);
    let (raised, lines) = resume(with(4000), &cut, lines, RunOptions::default());
    assert_eq!(raised.finished.certificates, whole.certificates);
    assert_eq!(
        (raised.finished.status, raised.finished.best),
        (whole.status, whole.best)
    );
    block_on(verify(&lines)).unwrap();
}

#[test]
fn a_test_that_has_begun_goes_on_before_another_begins() {
    let mut begun = 0;
    for seed in 0..6 {
        let study = study(seed, "capo", EFFORT, CONFIRM);
        let kept = reserve(&study);
        let (whole, lines) = run(study.clone(), &probe());
        let [_, second, ..] = &whole.finished.certificates[..] else {
            continue;
        };
        begun += 1;
        let of_test = |event: &Event| match event {
            Event::Rollout(rollout) if kept.contains(&rollout.example) => Some(rollout.candidate),
            _ => None,
        };
        let all = events(&lines);
        let before = all.iter().position(|event| of_test(event).is_some()).unwrap();
        let of_second = all.iter().zip(&lines);
        let of_second = of_second.filter(|(event, _)| of_test(event) == Some(second.candidate));
        let block = of_second.map(|(_, line)| line).take(20);
        let cut = lines[..before].iter().chain(block).cloned().collect();
        let (resumed, lines) = resume(study, &probe(), cut, RunOptions::default());
        assert_eq!(&resumed.finished.certificates[0], second, "seed {seed}");
        block_on(verify(&lines)).unwrap();
    }
    assert!(begun > 0, "some search tests two prompts");
}

#[test]
fn without_a_stated_bound_nothing_is_bought_and_the_reason_is_told() {
    let study = study(1, "capo", EFFORT, "[confirm]\nexamples = 60\n");
    let kept = reserve(&study);
    let (outcome, lines) = run(study, &probe());
    let [certificate] = &outcome.finished.certificates[..] else {
        panic!("one prompt is looked at")
    };
    assert_eq!(
        (certificate.verdict, certificate.examples),
        (Verdict::Undecided, 0)
    );
    let finding = &certificate.constraints["effort"];
    assert_eq!(finding.test, Test::None);
    assert!(
        certificate.sentence().contains("[confirm.bounds]"),
        "{}",
        certificate.sentence()
    );
    assert_eq!(outcome.finished.status, Status::Feasible);
    let of_reserve =
        |event: &Event| matches!(event, Event::Rollout(rollout) if kept.contains(&rollout.example));
    assert!(!events(&lines).iter().any(of_reserve));
}

fn tested(study: Study, prompt: &str, probe: &Rc<Probe>, lines: Vec<String>) -> (Tested, Vec<String>) {
    let store = MemoryJournal::from_lines(lines.clone());
    let numbered = lines
        .into_iter()
        .enumerate()
        .map(|(index, line)| Ok((index as u64, line)));
    let journal = Journal::open(Box::new(store.clone()), numbered).expect("lines of a run");
    let models = Rc::new(WorldModels(probe.clone()));
    let tested = certify(
        problem(study, probe),
        journal,
        models,
        RunOptions::default(),
        prompt,
    );
    (
        block_on(tested).expect("a journal of its own"),
        store.lines().to_vec(),
    )
}

#[test]
fn any_prompt_can_be_tested_and_no_more_is_bought_than_decides() {
    let study = || study(1, "capo", EFFORT, CONFIRM);
    let verdict = |prompt: &str| {
        let probe = probe();
        let (tested, lines) = tested(study(), prompt, &probe, Vec::new());
        block_on(verify(&lines)).unwrap();
        let certificate = tested.certificate.unwrap();
        assert_eq!(probe.rollouts() as usize, certificate.examples);
        (certificate.verdict, certificate.examples)
    };
    let (cautious, few) = verdict("Act. haste haste");
    assert!(
        cautious == Verdict::Certified && few < 60,
        "{cautious:?} on {few}"
    );
    let (careful, few) = verdict("Act. care care care care care care");
    assert!(careful == Verdict::Refuted && few < 60, "{careful:?} on {few}");
    assert_eq!(verdict("Act. care"), (Verdict::Undecided, 60));

    let probe = probe();
    let (first, lines) = tested(study(), "Act. care", &probe, Vec::new());
    let (again, more) = tested(study(), "Act. care", &probe, lines.clone());
    assert_eq!((first.certificate.clone(), &lines), (again.certificate, &more));
    assert_eq!(probe.rollouts(), 60, "nothing is paid for twice");
    let certificate = first.certificate.unwrap();
    let journal = Journal::open(Box::new(MemoryJournal::new()), (0..).zip(&lines).map(Ok)).unwrap();
    assert_eq!(
        certificates::all(journal.state()),
        std::slice::from_ref(&certificate)
    );
    assert!(certificate.more().is_some_and(|more| more > 0));
    assert!(
        certificate.sentence().contains("more examples would be needed"),
        "{}",
        certificate.sentence()
    );
}

#[test]
fn after_a_prompt_that_was_not_certified_the_reserve_certifies_no_other() {
    let (careful, cautious) = ("Act. care", "Act. haste haste");
    let probe = probe();
    let test = |prompt: &str, lines: Vec<String>| {
        let (found, lines) = tested(study(1, "capo", EFFORT, CONFIRM), prompt, &probe, lines);
        block_on(verify(&lines)).unwrap();
        (found.certificate.unwrap(), lines)
    };
    let (first, lines) = test(careful, Vec::new());
    assert_eq!((first.verdict, first.untested), (Verdict::Undecided, false));
    let (other, lines) = test(cautious, lines);
    assert_eq!(
        (other.verdict, other.untested, other.examples),
        (Verdict::Undecided, true, 0)
    );
    assert_eq!(probe.rollouts(), 60, "what can certify nothing is not bought");
    assert!(
        other.sentence().contains("no test has touched"),
        "{}",
        other.sentence()
    );
    assert_eq!(test(careful, lines).0, first);

    let (certified, lines) = test(cautious, Vec::new());
    assert_eq!(certified.verdict, Verdict::Certified);
    let (next, _) = test(careful, lines);
    assert_eq!((next.untested, next.examples), (false, 60), "a sequence goes on");
}

#[test]
fn a_raised_budget_tests_no_other_prompt_on_the_same_reserve() {
    let effort: Effort = |example| if example.starts_with('e') { 1.6 } else { 1.0 };
    let mut others = 0;
    for seed in 0..4 {
        let with = |rollouts: u32| {
            let confirm = CONFIRM.replace("60", "20\nfinalists = 1");
            let budget = format!("{confirm}[budget]\nrollouts = {rollouts}\n");
            study(seed, "capo", EFFORT, &budget)
        };
        let probe = probe();
        probe.held_out.set(30);
        *probe.effort.borrow_mut() = Some(effort);
        let (short, lines) = run(with(300), &probe);
        let (a_little_more, _) = resume(with(350), &probe, lines.clone(), RunOptions::default());
        let (raised, lines) = resume(with(4000), &probe, lines, RunOptions::default());
        block_on(verify(&lines)).unwrap();
        // The seed prompt is measured on the held-out examples already, and nothing is to be tested.
        let reason = a_little_more.finished.reason.clone().unwrap_or_default();
        assert!(reason.contains("(10 held back"), "seed {seed}: {reason}");
        let ([first], [second]) = (
            &short.finished.certificates[..],
            &raised.finished.certificates[..],
        ) else {
            panic!("seed {seed}: one prompt is looked at each time")
        };
        assert_eq!((first.untested, first.examples), (false, 20), "seed {seed}");
        let is_other = second.candidate != first.candidate;
        assert_eq!(second.untested, is_other, "seed {seed}");
        let feasibility = Feasibility::of(raised.journal.state(), &raised.finished);
        assert_eq!(feasibility.certified, Some(Verdict::Undecided), "seed {seed}");
        others += u32::from(is_other);
    }
    assert!(others > 0, "the longer searches return other prompts");
}

#[test]
fn a_certified_prompt_is_returned_though_it_is_no_finalist_any_more() {
    let study = study(2, "capo", EFFORT, &CONFIRM.replace("60", "60\nfinalists = 1"));
    let (kept, probe, seed) = (reserve(&study), probe(), CandidateId::of("Act."));
    let cheap: Effort = |example| if example.starts_with('e') { 0.5 } else { 1.0 };
    let dear: Effort = |example| if example.starts_with('e') { 3.0 } else { 1.0 };
    *probe.effort.borrow_mut() = Some(cheap);
    let (first, lines) = run(study.clone(), &probe);
    let [safe] = &first.finished.certificates[..] else {
        panic!("one prompt is tested")
    };
    assert!(safe.verdict == Verdict::Certified && safe.candidate != seed);

    // The same, as if the seed prompt had been tested before the search found better ones.
    let all = events(&lines);
    let of_test = |event: &Event| matches!(event, Event::Rollout(rollout) if kept.contains(&rollout.example));
    let before = all.iter().position(of_test).unwrap();
    let of_seed = lines.iter().zip(&all).filter(|(_, event)| of_test(event));
    let of_seed = of_seed.map(|(line, _)| line.replace(&safe.candidate.to_string(), &seed.to_string()));
    let cut = lines[..before].iter().cloned().chain(of_seed).collect();
    *probe.effort.borrow_mut() = Some(dear);
    let (second, lines) = resume(study, &probe, cut, RunOptions::default());
    let certificates = &second.finished.certificates;
    let candidates: Vec<CandidateId> = certificates.iter().map(|one| one.candidate).collect();
    assert_eq!(candidates, [seed, safe.candidate]);
    assert_eq!(certificates[0].verdict, Verdict::Certified);
    assert_ne!(certificates[1].verdict, Verdict::Certified);
    assert_eq!(second.finished.best, Some(seed));
    block_on(verify(&lines)).unwrap();
}

#[test]
fn a_branch_does_not_undo_a_test() {
    let study = || study(0, "capo", EFFORT, &CONFIRM.replace("60", "20\nfinalists = 1"));
    let effort: Effort = |example| if example.starts_with('e') { 1.6 } else { 1.0 };
    let probe = probe();
    probe.held_out.set(30);
    *probe.effort.borrow_mut() = Some(effort);
    let (first, mut lines) = run(study(), &probe);
    let [one] = &first.finished.certificates[..] else {
        panic!("one prompt is tested")
    };
    assert_eq!((one.verdict, one.untested), (Verdict::Undecided, false));
    assert_ne!(one.candidate, CandidateId::of("Act."), "which a branch shares");
    // A branch, and a branch of that.
    for _ in 0..2 {
        let branched = branch(&lines, 0, SteerEvent::default()).unwrap();
        let (second, longer) = resume(study(), &probe, branched, RunOptions::default());
        let [one] = &second.finished.certificates[..] else {
            panic!("one prompt is looked at")
        };
        assert_eq!(
            (one.verdict, one.untested, one.examples),
            (Verdict::Undecided, true, 0)
        );
        block_on(verify(&longer)).unwrap();
        lines = longer;
    }
}

#[test]
fn other_thresholds_than_those_that_were_tested_are_not_certified_on_the_same_reserve() {
    let probe = probe();
    let test = |prompt: &str, lines: Vec<String>| {
        let (found, lines) = tested(study(1, "capo", EFFORT, CONFIRM), prompt, &probe, lines);
        (found.certificate.unwrap(), lines)
    };
    let steered = |lines: &[String], threshold: f64| {
        let steer = Event::Steer(SteerEvent {
            thresholds: Some([("effort".to_owned(), threshold)].into()),
            ..SteerEvent::default()
        });
        let mut lines = lines.to_vec();
        lines.push(serde_json::to_string(&steer).unwrap());
        lines
    };
    let (first, lines) = test("Act. care", Vec::new());
    assert_eq!(first.verdict, Verdict::Undecided);
    let looser = steered(&lines, 4.0);
    for prompt in ["Act. care", "Act. haste haste"] {
        let (one, _) = test(prompt, looser.clone());
        assert_eq!(
            (one.verdict, one.untested),
            (Verdict::Undecided, true),
            "{prompt}"
        );
    }
    assert_eq!(probe.rollouts(), 60, "what can certify nothing is not bought");
    assert_eq!(test("Act. care", steered(&looser, 1.6)).0, first);

    let begins = |line: &&String| !line.starts_with("{\"event\":\"rollout\"");
    let before: Vec<String> = lines.iter().filter(begins).cloned().collect();
    let (steered_first, _) = test("Act. care", steered(&before, 4.0));
    assert_eq!(steered_first.verdict, Verdict::Certified);
}

#[test]
fn how_many_more_are_needed_is_counted_beyond_the_reserve() {
    let mut certificate: Certificate = serde_json::from_value(serde_json::json!({
        "candidate": "ab".repeat(32), "verdict": "undecided", "confidence": 0.95, "reserve": 300, "examples": 40,
        "ended": true, "constraints": { "effort": {
            "test": "binomial", "verdict": "undecided", "threshold": 0.37, "mean": 0.35, "examples": 40, "p": 1.0,
            "upper": null, "simultaneous": null, "more": 500,
        } },
    }))
    .unwrap();
    assert_eq!(certificate.more(), Some(240));
    let mut open = certificate.constraints["effort"].clone();
    (open.test, open.more) = (Test::Betting, None);
    certificate.constraints.insert("calls".into(), open.clone());
    assert_eq!(certificate.more(), Some(240), "the other could have been decided");
    open.mean = Some(0.4);
    certificate.constraints.insert("calls".into(), open);
    assert_eq!(certificate.more(), None, "no number would do at this cost");
    certificate.constraints.shift_remove("calls");
    let words = "about 240 more examples would be needed than the 300 kept, in a new test of 540";
    assert!(
        certificate.sentence().contains(words),
        "{}",
        certificate.sentence()
    );
    assert!(!serde_json::to_string(&certificate).unwrap().contains("untested"));
}

#[test]
fn a_study_that_keeps_nothing_or_too_much_is_refused() {
    let probe = probe();
    let journal = Journal::create(Box::new(MemoryJournal::new()));
    let models = Rc::new(WorldModels(probe.clone()));
    let none = study(1, "capo", EFFORT, "");
    let refused = block_on(certify(
        problem(none, &probe),
        journal,
        models,
        RunOptions::default(),
        "Act.",
    ));
    assert!(refused.is_err_and(|error| error.to_string().contains("[confirm] examples")));

    for (confirm, part) in [
        ("[confirm]\nexamples = 0", "between 1 and 10000"),
        (
            "[confirm]\nexamples = 5\nconfidence = 1.0",
            "between 0.5 and 0.999",
        ),
        ("[confirm]\nexamples = 5\nfinalists = 0", "between 1 and 20"),
        (
            "[confirm]\nexamples = 5\n[confirm.bounds]\neffrt = 3.0",
            "did you mean `effort`?",
        ),
    ] {
        let text = format!(
            "[study]\nname = \"world\"\n[workload]\nkind = \"world\"\n[prompt]\ntext = \"Act.\"\n[objective]\n\
             metric = \"success\"\n{EFFORT}[models.agent]\nprovider = \"world\"\n{confirm}\n"
        );
        let error = Study::parse(&text, capo_core::study::Format::Toml)
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{error}");
    }
    let most = study(1, "capo", EFFORT, "[confirm]\nexamples = 101");
    let workloads: Vec<Rc<dyn capo_core::workload::Workload>> =
        vec![Rc::new(crate::world::World::new(&probe))];
    let error = capo_core::problem::Problem::new(most, workloads)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("101") && error.contains("has 100"), "{error}");
}

#[test]
fn an_example_that_cannot_be_measured_counts_as_the_worst() {
    let probe = probe();
    let study = study(1, "capo", EFFORT, CONFIRM);
    let kept = reserve(&study);
    *probe.refuse.borrow_mut() = {
        let some = kept.iter().min().unwrap().clone();
        Some(Rc::new(move |_, example| {
            (example == some).then_some((capo_core::llm::FailureKind::Provider, false))
        }))
    };
    let (found, lines) = tested(study, "Act. care", &probe, Vec::new());
    assert_eq!(found.halt, None::<Halt>);
    let finding = &found.certificate.unwrap().constraints["effort"];
    assert_eq!((finding.examples, finding.bound), (60, Some(6.0)));
    let of_others: Vec<f64> = events(&lines)
        .into_iter()
        .filter_map(|event| match event {
            Event::Rollout(rollout) if rollout.failed.is_none() => Some(rollout.measurements["effort"]),
            _ => None,
        })
        .collect();
    assert_eq!(of_others.len(), 59);
    let mean = (of_others.iter().sum::<f64>() + 6.0) / 60.0;
    assert!((finding.mean.unwrap() - mean).abs() < 1e-12, "{:?}", finding.mean);
    block_on(verify(&lines)).unwrap();
}

#[test]
fn a_finalist_that_cannot_be_run_is_not_returned_and_fails_no_run() {
    let study = study(2, "capo", EFFORT, CONFIRM);
    let kept = reserve(&study);
    let (whole, _) = run(study.clone(), &probe());
    let best = whole.finished.certificates.last().unwrap().candidate;
    let text = whole.journal.state().candidate(&best).unwrap().prompt.to_string();
    let probe = probe();
    *probe.refuse.borrow_mut() = Some(Rc::new(move |prompt, example| {
        let refused = prompt == text && kept.contains(example);
        refused.then_some((capo_core::llm::FailureKind::ContextLength, false))
    }));
    let (outcome, lines) = run(study, &probe);
    assert!(
        matches!(outcome.finished.status, Status::Feasible),
        "{:?}",
        outcome.finished
    );
    assert_ne!(outcome.finished.best, Some(best));
    let last = outcome.finished.certificates.last().unwrap();
    assert!(last.candidate != best || !last.ended);
    block_on(verify(&lines)).unwrap();
}

#[test]
fn a_prompt_that_is_too_long_is_refuted_for_nothing() {
    let short = format!("{EFFORT}[[constraint]]\nmetric = \"prompt_length\"\nthreshold = 0.01\n");
    let probe = probe();
    let (found, _) = tested(
        study(1, "capo", &short, CONFIRM),
        "Act. care care",
        &probe,
        Vec::new(),
    );
    let certificate = found.certificate.unwrap();
    assert_eq!(
        (certificate.verdict, certificate.examples, probe.rollouts()),
        (Verdict::Refuted, 0, 0)
    );
}
