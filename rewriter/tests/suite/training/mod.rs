//! Fine-tuning as a whole: it learns, stops, refuses, and goes on after a break.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

use burn_flex::{Flex, FlexDevice};
use burn_tensor::{FloatDType, Tensor};
use capo_rewriter::checkpoint::{Checkpoints, Identity, Retention};
use capo_rewriter::decoder::Decoder;
use capo_rewriter::error::RequestError;
use capo_rewriter::fine_tuning::{SftEvent, SftExample, SftSettings, SftStep, SftTrainer, TrainingError};
use capo_rewriter::lora::{Adapter, LoraConfig};
use capo_rewriter::parameters::{Parameter, Parameters as _};
use capo_rewriter::policy::Policy;
use capo_rewriter::replicas::Replicas;
use capo_rewriter::tiny_qwen3::TinyQwen3Config;
use capo_rewriter::tokenizer::Tokenizer;
use serde_json::json;
use tempfile::TempDir;

/// A model over bytes that fits into a test.
fn model() -> TempDir {
    model_with_tied(true)
}

/// [`model`], with an output layer of its own unless it is the embedding.
fn model_with_tied(tied: bool) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let config = TinyQwen3Config {
        hidden: 32,
        layers: 2,
        heads: 2,
        kv_heads: 1,
        head_dim: 16,
        intermediate: 64,
        context: 64,
        tied,
    };
    let tokenizer = Tokenizer::of_bytes().expect("builds");
    config.write(folder.path(), &tokenizer, 5).expect("writes");
    folder
}

fn whole(folder: &Path) -> Policy<Flex> {
    Policy::Whole(Decoder::from_folder(folder, FloatDType::F32, &FlexDevice).expect("loads"))
}

fn adapted(folder: &Path) -> Policy<Flex> {
    let base = Decoder::from_folder(folder, FloatDType::F32, &FlexDevice).expect("loads");
    let lora = LoraConfig {
        dropout: 0.2,
        ..LoraConfig::all(4, 8.0)
    };
    let adapter = Adapter::new(&lora, base.config(), 1, &FlexDevice).expect("valid");
    Policy::Adapted { base, adapter }
}

/// A word with the same word backwards.
fn examples(words: &[&str]) -> Vec<SftExample> {
    let tokens = |text: String| text.bytes().map(u32::from).collect();
    let example = |word: &&str| {
        let back: String = word.chars().rev().collect();
        (tokens(format!("{word}>")), tokens(format!("{back}.")))
    };
    words.iter().map(example).collect()
}

const WORDS: [&str; 10] = ["ab", "abc", "cab", "bca", "acb", "aabb", "bbaa", "cc", "a", "cba"];

fn settings() -> SftSettings {
    SftSettings {
        epochs: 4,
        batch: 4,
        pass_tokens: 16,
        learning_rate: 5e-3,
        evaluate_every: 5,
        patience: None,
        seed: 3,
        ..SftSettings::default()
    }
}

fn trainer(policy: Policy<Flex>, settings: SftSettings) -> SftTrainer<Flex> {
    SftTrainer::new(policy, examples(&WORDS), examples(&["bac", "bb"]), settings).expect("valid")
}

fn checkpoints(folder: &Path, model: &Path, settings: SftSettings) -> Checkpoints {
    let identity = Identity::of_model(model, json!("words"), json!(settings)).expect("reads");
    let retention = Retention {
        last: NonZeroUsize::MIN,
        best: true,
    };
    Checkpoints::open(folder, identity, retention).expect("opens")
}

/// Steps and evaluations of a training that is resumed where its folder stands.
fn run(
    policy: Policy<Flex>,
    model: &Path,
    folder: &Path,
    settings: SftSettings,
    most: u64,
) -> (Vec<SftStep>, Vec<f64>, SftTrainer<Flex>) {
    let checkpoints = checkpoints(folder, model, settings);
    let mut trainer = trainer(policy, settings);
    if let Some(last) = checkpoints.latest().expect("reads") {
        trainer.resume(&last).expect("resumes");
    }
    let (mut steps, mut losses) = (Vec::new(), Vec::new());
    let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        trainer.run(&checkpoints, model, |event| {
            match event {
                SftEvent::Step(step) => {
                    steps.push(step);
                    assert!(step.step < most, "killed");
                }
                SftEvent::Evaluation { loss, .. } => losses.push(loss),
            }
            ControlFlow::Continue(())
        })
    }));
    if let Ok(ended) = killed {
        ended.expect("trains");
    }
    (steps, losses, trainer)
}

#[test]
fn a_training_that_is_broken_off_leaves_a_checkpoint_of_that_step() {
    let (model, folder) = (model(), TempDir::new().expect("a folder"));
    let start = whole(model.path());
    let settings = SftSettings {
        evaluate_every: 1000,
        ..settings()
    };
    let other = TempDir::new().expect("a folder");
    let (expected, ..) = run(start.clone(), model.path(), other.path(), settings, u64::MAX);
    {
        let checkpoints = checkpoints(folder.path(), model.path(), settings);
        let mut trainer = trainer(start.clone(), settings);
        let ended = trainer.run(&checkpoints, model.path(), |event| match event {
            SftEvent::Step(step) if step.step == 3 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        ended.expect("is broken off");
        let last = checkpoints.latest().expect("reads").expect("is there");
        assert_eq!((last.step(), last.progress().merit), (3, None));
    }
    let (rest, ..) = run(start.clone(), model.path(), folder.path(), settings, u64::MAX);
    assert_eq!(rest.len(), expected.len() - 3);
    for (one, other) in rest.iter().zip(&expected[3..]) {
        assert!((one.loss - other.loss).abs() < 1e-6, "{one:?} {other:?}");
    }
}

#[test]
fn a_policy_learns_and_goes_on_after_a_break_as_if_there_had_been_none() {
    let model = model();
    // Beside random weights an adapter learns little.
    for (policy, share) in [(whole(model.path()), 0.9), (adapted(model.path()), 0.995)] {
        let folders = [(); 2].map(|()| TempDir::new().expect("a folder"));
        let (steps, losses, _) = run(
            policy.clone(),
            model.path(),
            folders[0].path(),
            settings(),
            u64::MAX,
        );
        assert_eq!(steps.len(), 12);
        assert_eq!(losses.len(), 3);
        assert!(
            losses[2] < losses[0] && steps[11].loss < share * steps[0].loss,
            "{losses:?}"
        );
        // Killed in the midst of what no checkpoint has yet.
        let (before, ..) = run(policy.clone(), model.path(), folders[1].path(), settings(), 8);
        assert_eq!(before.len(), 8);
        let (after, resumed, trainer) = run(policy, model.path(), folders[1].path(), settings(), u64::MAX);
        assert_eq!(after.first().map(|step| step.step), Some(6));
        for (step, other) in steps[5..].iter().zip(&after) {
            assert!((step.loss - other.loss).abs() <= 1e-6, "{step:?} {other:?}");
            assert_eq!(step.tokens, other.tokens);
        }
        assert!((losses[2] - resumed[1]).abs() <= 1e-6);
        assert_eq!(trainer.steps(), trainer.total_steps());
    }
}

#[test]
fn a_batch_in_passes_is_the_same_batch() {
    let model = model();
    let losses = |pass_tokens| {
        let settings = SftSettings {
            pass_tokens,
            ..settings()
        };
        let mut trainer = trainer(whole(model.path()), settings);
        [(); 3].map(|()| trainer.step().expect("finite"))
    };
    for (one, other) in losses(8).iter().zip(losses(1 << 20)) {
        assert!((one.loss - other.loss).abs() < 1e-5, "{one:?} {other:?}");
        assert!(
            (one.gradient_norm - other.gradient_norm).abs() < 1e-4,
            "{one:?} {other:?}"
        );
    }
}

#[test]
fn it_stops_when_nothing_gets_better() {
    let model = model();
    let folder = TempDir::new().expect("a folder");
    // So large a step unlearns.
    let settings = SftSettings {
        learning_rate: 0.3,
        epochs: 40,
        evaluate_every: 1,
        patience: Some(2),
        ..settings()
    };
    let (steps, losses, trainer) = run(
        whole(model.path()),
        model.path(),
        folder.path(),
        settings,
        u64::MAX,
    );
    assert!(trainer.steps() < trainer.total_steps(), "{losses:?}");
    assert_eq!(steps.len(), losses.len());
    let best = losses.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(losses[losses.len() - 2..].iter().all(|loss| *loss >= best));
    let checkpoints = checkpoints(folder.path(), model.path(), settings);
    let kept = checkpoints.best().expect("reads").expect("there is one");
    assert_eq!(kept.progress().merit, Some(-best));
    // A stop is remembered.
    drop(checkpoints);
    let (more, ..) = run(
        whole(model.path()),
        model.path(),
        folder.path(),
        settings,
        u64::MAX,
    );
    assert_eq!(more, []);
}

#[test]
fn what_cannot_be_learned_is_named() {
    let model = model();
    let new = |training: Vec<SftExample>, settings| {
        let trainer = SftTrainer::new(whole(model.path()), training, Vec::new(), settings);
        trainer.map(|_| ()).expect_err("must be refused").to_string()
    };
    let refused = |training| new(training, settings());
    assert!(refused(vec![(vec![1], vec![2]), (vec![1], vec![])]).contains('1'));
    assert!(refused(vec![(vec![1; 60], vec![2; 5])]).contains("64"));
    assert!(refused(vec![(vec![1], vec![999])]).contains("999"));
    refused(Vec::new());
    for (settings, name) in [
        (
            SftSettings {
                epochs: 0,
                ..settings()
            },
            "epochs",
        ),
        (
            SftSettings {
                warmup: 1.0,
                ..settings()
            },
            "warmup",
        ),
        (
            SftSettings {
                learning_rate: -1.0,
                ..settings()
            },
            "learning rate",
        ),
    ] {
        let message = new(examples(&WORDS), settings);
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn numbers_that_are_none_name_their_step_and_keep_the_last_checkpoint() {
    let model = model_with_tied(false);
    let folder = TempDir::new().expect("a folder");
    let settings = SftSettings {
        warmup: 0.0,
        evaluate_every: 1,
        ..settings()
    };
    let checkpoints = checkpoints(folder.path(), model.path(), settings);
    // One letter of one word means nothing, and its word comes when it comes.
    let words = examples(&[&WORDS[..], &["z"]].concat());
    let policy = without_meaning(&whole(model.path()), usize::from(b'z'));
    let mut trainer = SftTrainer::new(policy, words, examples(&["bac"]), settings).expect("valid");
    let error = trainer
        .run(&checkpoints, model.path(), |_| ControlFlow::Continue(()))
        .expect_err("must fail");
    assert!(
        matches!(error, TrainingError::Request(RequestError::NotFinite { .. })),
        "{error}"
    );
    let made = trainer.steps();
    assert!(
        made > 0 && error.to_string().contains(&format!("step {}", made + 1)),
        "{error}"
    );
    let last = checkpoints.latest().expect("reads").expect("is there");
    assert_eq!(last.step(), made);
}

/// A policy that has no number for a token.
fn without_meaning(policy: &Policy<Flex>, token: usize) -> Policy<Flex> {
    let parameters = policy.names().into_iter().zip(policy.parameters());
    policy.with(parameters.map(|(name, parameter)| match parameter {
        Parameter::Matrix(table) if name.contains("embed_tokens") => {
            let [_, width] = table.dims();
            let nothing = Tensor::full([1, width], f32::NAN, &FlexDevice);
            Parameter::Matrix(table.slice_assign([token..token + 1, 0..width], nothing))
        }
        parameter => parameter,
    }))
}

/// All numbers that learn.
pub(crate) fn numbers(policy: &Policy<Flex>) -> Vec<f32> {
    let of = |parameter: Parameter<Flex>| match parameter {
        Parameter::Vector(vector) => vector.into_data(),
        Parameter::Matrix(matrix) => matrix.into_data(),
    };
    let numbers = |parameter| of(parameter).into_vec::<f32>().expect("32-bit numbers");
    policy.parameters().into_iter().flat_map(numbers).collect()
}

#[test]
fn several_devices_learn_what_one_learns() {
    let folder = model();
    let model = folder.path();
    let plain = LoraConfig::all(4, 8.0);
    let base = Decoder::<Flex>::from_folder(model, FloatDType::F32, &FlexDevice).expect("loads");
    let adapter = Adapter::new(&plain, base.config(), 1, &FlexDevice).expect("valid");
    let settings = SftSettings {
        learning_rate: 1e-3,
        ..settings()
    };
    for start in [whole(model), Policy::Adapted { base, adapter }] {
        for further in [1, 2, 5] {
            let mut alone = trainer(start.clone(), settings);
            let copies = vec![start.clone(); further];
            let mut together = trainer(start.clone(), settings).on(Replicas::new(copies).expect("threads"));
            for _ in 0..6 {
                let (one, other) = (alone.step().expect("finite"), together.step().expect("finite"));
                assert_eq!((one.step, one.tokens), (other.step, other.tokens));
                let gap = (one.loss - other.loss).abs();
                assert!(gap < 1e-5, "step {}: {} {}", one.step, one.loss, other.loss);
                let gap = (one.gradient_norm - other.gradient_norm).abs();
                assert!(
                    gap < 1e-5 * one.gradient_norm.max(1.0),
                    "step {}: {gap}",
                    one.step
                );
            }
            let [one, other] = [&alone, &together].map(|trainer| numbers(trainer.policy()));
            assert_ne!(one, numbers(&start), "something was learned");
            let gaps = one.iter().zip(&other).map(|(one, other)| (one - other).abs());
            let gap = gaps.fold(0.0, f32::max);
            assert!(gap < 1e-5, "{further} further devices: {gap}");
        }
    }
}

#[test]
fn what_goes_wrong_on_one_device_ends_the_step_on_all() {
    let folder = model();
    let start = whole(folder.path());
    let broken = {
        let not_a_number = |parameter| match parameter {
            Parameter::Vector(vector) => Parameter::Vector(vector * f32::NAN),
            Parameter::Matrix(matrix) => Parameter::Matrix(matrix),
        };
        let base = Decoder::<Flex>::from_folder(folder.path(), FloatDType::F32, &FlexDevice).expect("loads");
        let adapter = Adapter::new(&LoraConfig::all(4, 8.0), base.config(), 1, &FlexDevice).expect("valid");
        let base = base.with(base.parameters().into_iter().map(not_a_number));
        Policy::Adapted { base, adapter }
    };
    let sound = adapted(folder.path());
    let mut together = trainer(sound.clone(), settings()).on(Replicas::new(vec![broken]).expect("threads"));
    let refused = together.step().expect_err("one of the losses is no number");
    assert!(matches!(refused, RequestError::NotFinite { .. }), "{refused}");
    assert_eq!(numbers(together.policy()), numbers(&sound), "nothing was changed");
    // And whoever learns next is not kept waiting.
    let mut next = trainer(start.clone(), settings()).on(Replicas::new(vec![start]).expect("threads"));
    next.step().expect("finite");
}
