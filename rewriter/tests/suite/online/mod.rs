//! A policy that learns while it searches: from nothing to answers, and from answers to better ones.

mod elsewhere;
mod letters;
mod stopped;

use std::num::NonZeroUsize;
use std::path::Path;
use std::rc::Rc;
use std::sync::OnceLock;

use burn_flex::{Flex, FlexDevice};
use burn_tensor::FloatDType;
use capo_core::arena::{Learner, Models, RunOptions};
use capo_core::journal::{Event, FinishedEvent, Journal, LearnedEvent, MemoryJournal};
use capo_core::llm::{Llm, Role};
use capo_core::templates::{ObjectiveFacts, RewriteFacts, WeightedConstraint};
use capo_core::{RunError, optimize};
use capo_rewriter::checkpoint::{Checkpoints, Identity, Retention};
use capo_rewriter::decoder::Decoder;
use capo_rewriter::fine_tuning::{SftExample, SftSettings, SftTrainer};
use capo_rewriter::local::{Drawing, LocalRewriter};
use capo_rewriter::lora::{Adapter, LoraConfig};
use capo_rewriter::optimizer::AdamW;
use capo_rewriter::policy::Policy;
use capo_rewriter::pool_grpo::{GrpoLearner, GrpoSettings};
use capo_rewriter::remote_generation::{RemoteGeneration, Sampler};
use capo_rewriter::replicas::Replicas;
use capo_rewriter::stop::Stop;
use capo_rewriter::template::RewriteTemplate;
use capo_rewriter::tiny_qwen3::TinyQwen3Config;
use capo_rewriter::token_sampling::Sampling;
use capo_rewriter::tokenizer::Tokenizer;
use futures::executor::block_on;
use serde_json::json;
use tempfile::TempDir;

use crate::training::numbers;
use elsewhere::{Call, Server};

/// Longest rewrite, the token that ends it included.
const ROOM: usize = 5;

/// Three letters of which any may be an `a`.
fn words() -> Vec<String> {
    let letters = ["a", "b", "c", "d"];
    let pairs = letters
        .iter()
        .flat_map(|one| letters.map(|two| format!("{one}{two}")));
    pairs
        .flat_map(|pair| letters.map(|three| format!("{pair}{three}")))
        .collect()
}

fn load(folder: &Path) -> Policy<Flex> {
    Policy::Whole(Decoder::from_folder(folder, FloatDType::F32, &FlexDevice).expect("loads"))
}

fn examples(template: &RewriteTemplate) -> Vec<SftExample> {
    let words = words();
    let asked = words.iter().cycle().skip(7).step_by(5);
    words
        .iter()
        .zip(asked)
        .map(|(child, prompt)| {
            let facts = RewriteFacts {
                objective: ObjectiveFacts {
                    metric: "share_of_a".into(),
                    value: 0.333,
                },
                constraints: vec![WeightedConstraint {
                    metric: "prompt_length".into(),
                    cost: 0.003,
                    threshold: 5.0,
                    multiplier: 1.0,
                }],
                prompt: prompt.clone(),
                draft: None,
                feedback: String::new(),
            };
            let example = template.example(&facts, child, ROOM).expect("fits");
            (example.prompt.tokens, example.completion)
        })
        .collect()
}

/// A model over bytes that answers with three letters, made once.
fn model() -> &'static TempDir {
    static MODEL: OnceLock<TempDir> = OnceLock::new();
    MODEL.get_or_init(|| {
        let [start, trained] = [(); 2].map(|()| TempDir::new().expect("a folder"));
        let config = TinyQwen3Config {
            hidden: 32,
            layers: 1,
            heads: 2,
            kv_heads: 1,
            head_dim: 16,
            intermediate: 64,
            context: 512,
            tied: true,
        };
        let tokenizer = Tokenizer::of_bytes().expect("builds");
        config.write(start.path(), &tokenizer, 5).expect("writes");
        let template = RewriteTemplate::from_folder(start.path()).expect("reads");
        let settings = SftSettings {
            epochs: 15,
            learning_rate: 1e-2,
            weight_decay: 0.0,
            ..SftSettings::default()
        };
        let mut trainer =
            SftTrainer::new(load(start.path()), examples(&template), Vec::new(), settings).expect("valid");
        while trainer.steps() < trainer.total_steps() {
            trainer.step().expect("finite");
        }
        let folder = trained.path().join("model");
        trainer.policy().save(&folder, start.path()).expect("writes");
        trained
    })
}

fn settings() -> GrpoSettings {
    GrpoSettings {
        learning_rate: 3e-3,
        optimizer: AdamW {
            weight_decay: 0.0,
            ..AdamW::default()
        },
        pass_tokens: 2048,
        ..GrpoSettings::default()
    }
}

struct ModelsWithLearner {
    rewriter: Rc<LocalRewriter<Flex>>,
    learner: Option<Rc<GrpoLearner<Flex>>>,
}

impl Models for ModelsWithLearner {
    fn model(&self, role: Role) -> Rc<dyn Llm> {
        assert_eq!(role, Role::Rewriter, "nobody else is asked");
        self.rewriter.clone()
    }

    fn learner(&self) -> Option<Rc<dyn Learner>> {
        self.learner.clone().map(|learner| learner as Rc<dyn Learner>)
    }
}

/// A run of so many rounds over a journal, with checkpoints and samples in a folder.
fn run(
    rounds: u32,
    lines: Vec<String>,
    folder: &Path,
    is_learning: bool,
) -> (Result<Rc<FinishedEvent>, RunError>, Vec<String>) {
    let way = Way {
        is_learning,
        ..Way::default()
    };
    run_of(&whole(), way, rounds, lines, folder)
}

/// The whole model, that learns.
fn whole() -> Policy<Flex> {
    load(&model().path().join("model"))
}

/// How a run is made.
#[derive(Clone, Copy)]
struct Way<'a> {
    is_learning: bool,
    /// Who draws the rewrites.
    server: Option<&'a Rc<Server>>,
    /// Devices that learn.
    devices: usize,
    kl_weight: f64,
    /// Tokens kept free for a rewrite.
    room: usize,
    /// Rewrites drawn together.
    max_batch: usize,
    /// What ends it before its time.
    stop: Option<&'a Stop>,
}

impl Default for Way<'_> {
    fn default() -> Self {
        Self {
            is_learning: true,
            server: None,
            devices: 1,
            kl_weight: 0.0,
            room: ROOM,
            max_batch: Drawing::default().max_batch,
            stop: None,
        }
    }
}

fn drawn_by(server: &Rc<Server>) -> Way<'_> {
    Way {
        server: Some(server),
        ..Way::default()
    }
}

/// A run of a policy.
fn run_of(
    policy: &Policy<Flex>,
    way: Way<'_>,
    rounds: u32,
    lines: Vec<String>,
    folder: &Path,
) -> (Result<Rc<FinishedEvent>, RunError>, Vec<String>) {
    let source = model().path().join("model");
    let drawing = Drawing {
        sampling: Sampling::default(),
        max_new_tokens: way.room,
        max_batch: way.max_batch,
    };
    let template = RewriteTemplate::from_folder(&source).expect("reads");
    let mut rewriter = LocalRewriter::new("local/nano", policy.clone(), template, drawing)
        .keeping_samples(&folder.join("samples.jsonl"))
        .expect("reads")
        .stopped_by(way.stop.cloned().unwrap_or_default());
    if let Some(server) = way.server {
        let elsewhere = RemoteGeneration::new(Rc::clone(server) as Rc<dyn Sampler>, folder.join("served"));
        rewriter = rewriter.drawn_elsewhere(elsewhere, &source).expect("an adapter");
    }
    let rewriter = Rc::new(rewriter);
    let identity = Identity::of_model(&source, json!("letters"), json!(null)).expect("reads");
    let retention = Retention {
        last: NonZeroUsize::MIN,
        best: false,
    };
    let checkpoints = Checkpoints::open(&folder.join("checkpoints"), identity, retention).expect("opens");
    let mut settings = settings();
    settings.objective.kl_weight = way.kl_weight;
    let learner = GrpoLearner::new(rewriter.clone(), settings, checkpoints, source).expect("valid");
    let learner = learner.on(Replicas::new(vec![policy.clone(); way.devices - 1]).expect("threads"));
    let store = MemoryJournal::from_lines(lines.clone());
    let journal = Journal::open(Box::new(store.clone()), (0..).zip(lines).map(Ok)).expect("opens");
    let models = ModelsWithLearner {
        rewriter,
        learner: way.is_learning.then(|| Rc::new(learner)),
    };
    let outcome = block_on(optimize(
        letters::problem(rounds),
        journal,
        Rc::new(models),
        RunOptions::default(),
    ));
    let lines = store.lines().to_vec();
    (outcome.map(|outcome| outcome.finished), lines)
}

fn learned(lines: &[String]) -> Vec<LearnedEvent> {
    let event = |line: &String| serde_json::from_str(line).expect("an event");
    lines
        .iter()
        .filter_map(|line| match event(line) {
            Event::Learned(learned) => Some(learned),
            _ => None,
        })
        .collect()
}

fn same(one: &[LearnedEvent], other: &[LearnedEvent]) {
    same_within(1e-6, one, other);
}

fn same_within(tolerance: f64, one: &[LearnedEvent], other: &[LearnedEvent]) {
    assert_eq!(one.len(), other.len());
    for (one, other) in one.iter().zip(other) {
        for (name, figure) in &one.figures {
            if ["tokens_per_second", "peak_memory_bytes"].contains(&name.as_str()) {
                continue;
            }
            let found = other.figures[name];
            assert!(
                (figure - found).abs() <= tolerance,
                "round {} {name}: {figure} {found}",
                one.round
            );
        }
    }
}

#[test]
fn rewards_rise() {
    let folder = TempDir::new().expect("a folder");
    let (finished, lines) = run(14, Vec::new(), folder.path(), true);
    finished.expect("runs");
    let learned = learned(&lines);
    assert_eq!(learned.len(), 14);
    let rewards: Vec<f64> = learned.iter().map(|learned| learned.figures["reward"]).collect();
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (before, after) = (mean(&rewards[..3]), mean(&rewards[11..]));
    println!("mean share of a: {before:.3} before, {after:.3} after");
    assert!(after > before + 0.2, "{rewards:?}");
    for name in [
        "loss",
        "gradient_norm",
        "ratio",
        "tokens",
        "gain",
        "entropy",
        "completion_tokens",
    ] {
        assert!(learned[0].figures.contains_key(name), "{name}");
    }
    assert!(
        (learned[0].figures["ratio"] - 1.0).abs() < 1e-3,
        "what drew them is what learns"
    );
}

#[test]
fn a_run_that_is_killed_goes_on_as_if_it_had_not_been() {
    let whole = TempDir::new().expect("a folder");
    let (finished, lines) = run(4, Vec::new(), whole.path(), true);
    let finished = finished.expect("runs");
    let rounds: Vec<usize> = (0..)
        .zip(&lines)
        .filter(|(_, line)| line.starts_with("{\"event\":\"round\""))
        .map(|(place, _)| place)
        .collect();
    // After two rounds; in the midst of the third; between a round and its update; and between the update
    // and its line.
    for (kept, checkpointed) in [
        (rounds[1] + 2, 2),
        (rounds[2] - 3, 2),
        (rounds[2] + 1, 2),
        (rounds[2] + 1, 3),
    ] {
        let folder = TempDir::new().expect("a folder");
        let before = lines[..kept].to_vec();
        // The files of a run that got so far, and no further.
        let (_, made) = run(checkpointed, Vec::new(), folder.path(), true);
        assert_eq!(learned(&made).len() as u32, checkpointed);
        if kept > rounds[1] + 2 && checkpointed == 2 {
            copy_samples(&before, folder.path());
        }
        let (resumed, after) = run(4, before, folder.path(), true);
        let resumed = resumed.expect("runs");
        assert_eq!((&resumed.reason, resumed.best), (&None, finished.best), "{kept}");
        same(&learned(&lines), &learned(&after));
    }
}

#[test]
fn rewrites_drawn_a_few_at_a_time_are_those_drawn_together() {
    let [together, few] = [64, 3].map(|max_batch| {
        let folder = TempDir::new().expect("a folder");
        let way = Way {
            max_batch,
            ..Way::default()
        };
        let (finished, lines) = run_of(&whole(), way, 2, Vec::new(), folder.path());
        (finished.expect("runs").best, learned(&lines))
    });
    assert_eq!(together.0, few.0);
    same_within(1e-4, &together.1, &few.1);
}

#[test]
fn requests_without_room_give_no_child_and_no_update() {
    let folder = TempDir::new().expect("a folder");
    let way = Way {
        room: 500,
        ..Way::default()
    };
    let (finished, lines) = run_of(&whole(), way, 2, Vec::new(), folder.path());
    assert_eq!(finished.expect("runs").reason, None);
    let refused = lines
        .iter()
        .filter(|line| line.contains("exceed the model's context of 512"));
    assert_eq!(
        refused.count(),
        16,
        "eight rewrites of the seed prompt in each of two rounds"
    );
    let learned = learned(&lines);
    assert_eq!(learned.len(), 2);
    for learned in &learned {
        let figure = |name: &str| learned.figures.get(name).copied();
        assert_eq!((figure("rewrites"), figure("children")), (Some(8.0), Some(0.0)));
        assert_eq!(
            (figure("training_samples"), figure("prompt_tokens")),
            (Some(0.0), None)
        );
    }
}

/// Draws the samples of a journal's last rewrites once more, as the process did that was killed.
fn copy_samples(lines: &[String], folder: &Path) {
    let third = TempDir::new().expect("a folder");
    for file in ["checkpoints", "samples.jsonl"] {
        copy(&folder.join(file), &third.path().join(file));
    }
    let round = lines
        .iter()
        .position(|line| line.contains("\"event\":\"learned\",\"round\":1"));
    let until = round.map_or(lines.len(), |place| place + 1);
    let (drawn, _) = run(4, lines[..until].to_vec(), third.path(), false);
    drawn.expect("runs");
    copy(&third.path().join("samples.jsonl"), &folder.join("samples.jsonl"));
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        std::fs::create_dir_all(to).expect("a folder");
        for entry in std::fs::read_dir(from).expect("a folder") {
            let entry = entry.expect("an entry");
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        std::fs::copy(from, to).expect("copied");
    }
}

#[test]
fn a_rewrite_whose_tokens_are_lost_is_named_and_nothing_is_learned() {
    let folder = TempDir::new().expect("a folder");
    let (_, lines) = run(2, Vec::new(), folder.path(), true);
    let round = lines
        .iter()
        .rposition(|line| line.starts_with("{\"event\":\"round\""))
        .expect("a round");
    let other = TempDir::new().expect("a folder");
    let (_, made) = run(1, Vec::new(), other.path(), true);
    assert_eq!(learned(&made).len(), 1);
    let (finished, _) = run(2, lines[..=round].to_vec(), other.path(), true);
    let reason = finished.expect("runs").reason.clone().expect("a reason");
    assert!(reason.contains("round 1: the tokens of a rewrite"), "{reason}");
}

/// The model with a fresh adapter, and a server of the same model.
fn adapted() -> (Policy<Flex>, Rc<Server>) {
    let source = model().path().join("model");
    let base = Decoder::from_folder(&source, FloatDType::F32, &FlexDevice).expect("loads");
    let adapter = Adapter::new(&LoraConfig::all(4, 8.0), base.config(), 6, &FlexDevice).expect("valid");
    (Policy::Adapted { base, adapter }, Rc::new(Server::new(&source)))
}

#[test]
fn what_is_drawn_elsewhere_teaches_what_it_teaches_when_drawn_here() {
    let [here, there] = [(); 2].map(|()| TempDir::new().expect("a folder"));
    let (policy, server) = adapted();
    let (finished, drawn_here) = run_of(&policy, Way::default(), 3, Vec::new(), here.path());
    let best = finished.expect("runs").best;
    let (finished, drawn_there) = run_of(&policy, drawn_by(&server), 3, Vec::new(), there.path());
    assert_eq!(finished.expect("runs").best, best);
    let (here, mut drawn) = (learned(&drawn_here), learned(&drawn_there));
    for learned in &mut drawn {
        let surprise = learned.figures.shift_remove("surprise").expect("is told");
        let entropy = learned.figures["entropy"];
        assert!(
            (surprise - entropy).abs() < 0.5 * entropy,
            "of its own draws: {surprise} {entropy}"
        );
    }
    assert!(
        here.iter()
            .any(|learned| learned.figures["training_samples"] > 0.0)
    );
    // Log-probabilities are computed in rows of one length and not token by token.
    same_within(1e-4, &here, &drawn);

    let calls = server.calls.borrow();
    let exchanges: Vec<_> = calls.iter().filter(|call| **call != Call::Draw).collect();
    assert_eq!(exchanges, [&Call::Serve(0), &Call::Serve(1), &Call::Serve(2)]);
    assert!(calls.len() > exchanges.len());
    assert_eq!(calls.first(), Some(&Call::Serve(0)), "before anything is drawn");
    let left: Vec<_> = std::fs::read_dir(there.path().join("served"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(left, ["step-00000002"], "the former ones are removed");
}

#[test]
fn a_training_that_goes_on_serves_the_adapter_it_stopped_with() {
    let [whole, folder] = [(); 2].map(|()| TempDir::new().expect("a folder"));
    let (policy, server) = adapted();
    let (finished, lines) = run_of(&policy, drawn_by(&server), 3, Vec::new(), whole.path());
    finished.expect("runs");
    // The server refuses the second round's adapter: nothing is drawn from the former one.
    let (_, mut refusing) = adapted();
    Rc::get_mut(&mut refusing).expect("nobody else's").refuses = Some(1);
    let (finished, before) = run_of(&policy, drawn_by(&refusing), 3, Vec::new(), folder.path());
    let reason = finished.expect("ends").reason.clone().expect("a reason");
    assert!(reason.contains("no room for an adapter"), "{reason}");
    assert_eq!(learned(&before).len(), 1);
    let asked = refusing.calls.borrow();
    let refused = asked
        .iter()
        .position(|call| *call == Call::Serve(1))
        .expect("asked");
    assert!(!asked[refused..].contains(&Call::Draw), "{asked:?}");

    let (_, server) = adapted();
    let unfinished = before
        .into_iter()
        .filter(|line| !line.contains("\"event\":\"finished\""));
    let (finished, after) = run_of(&policy, drawn_by(&server), 3, unfinished.collect(), folder.path());
    finished.expect("runs");
    assert_eq!(server.calls.borrow().first(), Some(&Call::Serve(1)));
    same(&learned(&lines), &learned(&after));
}

#[test]
fn whole_models_are_not_drawn_from_elsewhere() {
    let source = model().path().join("model");
    let (_, server) = adapted();
    let template = RewriteTemplate::from_folder(&source).expect("reads");
    let rewriter = LocalRewriter::new("local/nano", whole(), template, Drawing::default());
    let elsewhere = RemoteGeneration::new(server, source.join("served"));
    let refused = rewriter
        .drawn_elsewhere(elsewhere, &source)
        .err()
        .expect("refused");
    assert!(refused.to_string().contains("without --full"), "{refused}");
}

#[test]
fn several_devices_learn_from_rounds_what_one_learns() {
    for (policy, kl_weight) in [(whole(), 0.0), (adapted().0, 0.1)] {
        let trained = |devices| {
            let folder = TempDir::new().expect("a folder");
            let way = Way {
                devices,
                kl_weight,
                ..Way::default()
            };
            let (finished, lines) = run_of(&policy, way, 3, Vec::new(), folder.path());
            finished.expect("runs");
            let checkpoint = folder.path().join("checkpoints/step-00000003/policy");
            let learned_policy = policy.load(&checkpoint).expect("reads");
            (learned(&lines), numbers(&learned_policy))
        };
        let (alone, one) = trained(1);
        assert!(
            alone
                .iter()
                .any(|learned| learned.figures["training_samples"] > 2.0)
        );
        let (together, other) = trained(3);
        same_within(1e-4, &alone, &together);
        let gaps = one.iter().zip(&other).map(|(one, other)| (one - other).abs());
        let gap = gaps.fold(0.0, f32::max);
        assert!(gap < 1e-5, "{gap}");
        assert_ne!(one, numbers(&policy), "something was learned");
    }
}
