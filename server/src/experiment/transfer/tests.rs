//! Targets of a transfer, and what the report says of made-up runs.

use capo_core::llm::Role;
use capo_rewriter::tiny_qwen3::TinyQwen3Config;
use capo_rewriter::tokenizer::Tokenizer;

use super::*;
use crate::experiment::fixture;

fn rewriter() -> Transferred {
    Transferred {
        folder: PolicyFolder {
            model: "/models/qwen".into(),
            adapter: Some("/runs/telecom/checkpoints/step-00000030/policy".into()),
        },
        drawn: StatedDrawing {
            max_tokens: Some(300),
            max_batch: Some(8),
            ..StatedDrawing::default()
        },
    }
}

fn file(name: &str, more: &str) -> StudyFile {
    let study = r#"
        [study]
        name = "target"
        method = "dcapo"
        rounds = 6
        batch = 3
        batch_growth = 1.5
        [workload]
        kind = "desk"
        [prompt]
        text = "You are a customer service agent."
        [objective]
        metric = "success"
        [[constraint]]
        metric = "human_requests"
        threshold = 0.35
        [models.agent]
        provider = "simulated"
        [budget]
        rollouts = 900
    "#;
    StudyFile::parse(&format!("{study}{more}"), Path::new(name)).unwrap()
}

fn one(file: StudyFile) -> Target {
    targets(&[file], &rewriter()).unwrap().remove(0)
}

#[test]
fn a_target_is_its_study_with_one_round_of_the_rewriter() {
    let plain = file("studies/retail.toml", "");
    let target = one(plain.clone());
    let study = &target.variant.study;
    assert_eq!(
        (target.variant.key.as_str(), target.variant.label.as_str()),
        ("retail", "target")
    );
    assert_eq!(study.study.method, "sampling");
    assert_eq!(
        (&study.method["k"], &study.method["weight"]),
        (&json!(4), &json!(1.0))
    );
    assert_eq!((study.study.rounds, study.study.batch), (Rounds::Count(1), None));
    let asked = json!({
        "provider": "local", "model": "/runs/telecom/checkpoints/step-00000030/policy", "max_tokens": 300, "concurrency": 8,
    });
    assert_eq!(study.models[&Role::Rewriter], asked);
    assert!(
        !study.models.contains_key(&Role::Critic),
        "the agent's model criticises"
    );
    // All else is the study's own.
    assert_eq!(
        (&study.constraints, &study.prompt),
        (&plain.study.constraints, &plain.study.prompt)
    );
    assert_eq!(
        (&study.workload, &study.budget),
        (&plain.study.workload, &plain.study.budget)
    );
}

#[test]
fn a_target_keeps_its_multiplier_and_its_critic() {
    let own = "[method]\nlambda_init = 2.5\n[models.rewriter]\nprovider = \"simulated\"\n";
    let study = one(file("a.toml", own)).variant.study;
    assert_eq!(study.method["weight"], json!(2.5));
    assert_eq!(study.models[&Role::Critic], json!({ "provider": "simulated" }));
    let learned = "[models.rewriter]\nprovider = \"local\"\nmodel = \"x\"\n";
    let study = one(file("a.toml", learned)).variant.study;
    assert!(
        !study.models.contains_key(&Role::Critic),
        "a learned rewriter criticises nobody"
    );
}

#[test]
fn targets_are_called_after_their_files() {
    let called = |name: &str| one(file(name, "")).variant.key;
    assert_eq!(called("a/my study_2.v1.toml"), "my-study-2.v1");
    let twice = targets(&[file("a/x.toml", ""), file("b/x.toml", "")], &rewriter());
    assert_eq!(
        twice.unwrap_err().to_string(),
        "two of the studies are kept as `x`: give their files different names"
    );
}

#[test]
fn a_report_has_both_prompts_of_every_target() {
    let targets: Vec<Target> = ["a.toml", "b.toml"].map(|name| one(file(name, ""))).into();
    let mut records: Vec<RunRecord> = (0..3)
        .flat_map(|seed| [fixture::record("a", seed, 0.0), fixture::record("b", seed, 1.0)])
        .collect();
    for record in &mut records {
        // Under one seed the rewriter of `b` gives nothing.
        record.candidates = if (record.variant.as_str(), record.seed) == ("b", 2) {
            1
        } else {
            4
        };
    }
    let report = report(&targets, &records);
    let [a, b, paper] = &report.tables[..] else {
        panic!("a table for each target, and the paper's");
    };
    assert_eq!(
        (a.name.as_str(), a.rows.len(), paper.rows.len()),
        ("held-out-a", 2, 4)
    );
    let page = a.markdown();
    assert!(page.contains("human_requests (≤ 0.35)"), "{page}");
    assert!(!page.contains("fresh"), "nothing fresh was measured: {page}");
    let difference = |record: &RunRecord| {
        let [rewrite, seed] =
            [&record.evaluate, &record.seed_prompt].map(|outcome| outcome.as_ref().unwrap());
        rewrite.objective - seed.objective
    };
    let expected: Vec<f64> = records
        .iter()
        .filter(|record| record.variant == "a")
        .map(difference)
        .collect();
    assert_eq!(a.rows[1][2], crate::experiment::Cell::mean(&expected));
    assert!(!page.contains("no rewrite gave"), "{page}");
    let page = b.markdown();
    assert!(
        page.contains("Under 1 of these seeds no rewrite gave another prompt"),
        "{page}"
    );
    for record in &mut records {
        (record.fresh, record.seed_prompt_fresh) = (record.evaluate.clone(), record.seed_prompt.clone());
    }
    let page = self::report(&targets, &records).tables[0].markdown();
    assert!(
        page.contains("AllSat, fresh") && page.contains("1,000 rollouts"),
        "{page}"
    );
}

#[test]
fn a_directory_is_one_rewriters() {
    let place = tempfile::tempdir().unwrap();
    let config = TinyQwen3Config {
        hidden: 16,
        layers: 1,
        heads: 1,
        kv_heads: 1,
        head_dim: 16,
        intermediate: 16,
        context: 64,
        tied: true,
    };
    let [one, other] = [1, 2].map(|seed| {
        let folder = place.path().join(format!("model-{seed}"));
        config
            .write(&folder, &Tokenizer::of_bytes().unwrap(), seed)
            .unwrap();
        Transferred::find(&folder.display().to_string(), StatedDrawing::default()).unwrap()
    });
    let out = place.path().join("out");
    one.hold(&out).unwrap();
    one.hold(&out).unwrap();
    let refused = other.hold(&out).unwrap_err().to_string();
    assert!(
        refused.contains("another rewriter") && refused.contains("--out"),
        "{refused}"
    );
    std::fs::write(out.join("rewriter.json"), "{").unwrap();
    let refused = one.hold(&out).unwrap_err().to_string();
    assert!(
        refused.contains("rewriter.json: it does not tell of a rewriter"),
        "{refused}"
    );
}
