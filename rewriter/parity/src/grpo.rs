//! Advantages, objectives and one step of each variant.

use std::collections::BTreeMap;

use burn_autodiff::Autodiff;
use burn_tensor::backend::Backend;
use burn_tensor::{DType, Tensor, TensorData};
use capo_rewriter::backend::PolicyBackend;
use capo_rewriter::decoder::Decoder;
use capo_rewriter::grpo::{
    AdvantageScale, Completions, Evidence, Normalisation, Objective, RatioLevel, advantages,
};
use capo_rewriter::lora::{Adapter, Mode};
use capo_rewriter::optimizer::{Gradient, Optimizer};
use serde::Deserialize;

use crate::fixture::{Adapted, LOGITS, Largest, Optim, Reference, assert_norm, numbers, unpadded};

#[derive(Deserialize)]
struct File {
    model: String,
    adapter: String,
    group_size: usize,
    prompt_ids: Vec<Vec<u32>>,
    prompt_mask: Vec<Vec<u8>>,
    completion_ids: Vec<Vec<u32>>,
    completion_mask: Vec<Vec<u8>>,
    rewards: Vec<f64>,
    advantages: BTreeMap<String, Vec<f32>>,
    current_logps: Vec<Vec<f32>>,
    entropy: Vec<Vec<f32>>,
    ref_logps: Vec<Vec<f32>>,
    old_logps: Vec<Vec<f32>>,
    ref_logps_t07: Vec<Vec<f32>>,
    old_logps_t07: Vec<Vec<f32>>,
    optim: Optim,
    variants: Vec<Variant>,
}

#[derive(Deserialize)]
struct Variant {
    name: String,
    ratio_level: String,
    eps_low: f64,
    eps_high: f64,
    delta: Option<f64>,
    beta: f64,
    temperature: f64,
    advantage: String,
    old: String,
    norm: String,
    max_completion_length: Option<usize>,
    loss: f32,
    grad_norm: f64,
    stats: BTreeMap<String, f32>,
    per_token_loss: Vec<Vec<f32>>,
    per_token_kl: Vec<Vec<f32>>,
    per_token_ratio: Vec<Vec<f32>>,
    param_l2_after1: f64,
    grad_file: Option<String>,
    params_after1_file: Option<String>,
}

impl File {
    fn completions(&self) -> Completions {
        Completions::new(
            &unpadded(&self.prompt_ids, &self.prompt_mask),
            &unpadded(&self.completion_ids, &self.completion_mask),
        )
        .expect("as many completions as prompts")
    }

    /// The log-probabilities of the sampling policy and of the reference.
    fn given(&self, temperature: f64) -> [&[Vec<f32>]; 2] {
        if temperature == 1.0 {
            [&self.old_logps, &self.ref_logps]
        } else {
            [&self.old_logps_t07, &self.ref_logps_t07]
        }
    }
}

impl Variant {
    fn objective(&self) -> Objective {
        Objective {
            ratio_level: match self.ratio_level.as_str() {
                "token" => RatioLevel::Token,
                "sequence" => RatioLevel::Sequence,
                other => panic!("ratio level {other}"),
            },
            clip_low: self.eps_low,
            clip_high: self.eps_high,
            ratio_ceiling: self.delta,
            kl_weight: self.beta,
        }
    }

    fn normalisation(&self) -> Normalisation {
        match (self.norm.as_str(), self.max_completion_length) {
            ("sequence_mean", _) => Normalisation::SequenceMean,
            ("token_mean", _) => Normalisation::TokenMean,
            ("constant", Some(longest)) => Normalisation::Constant(longest),
            (other, _) => panic!("normalisation {other}"),
        }
    }
}

fn tensor<B: Backend>(rows: &[Vec<f32>], device: &B::Device) -> Tensor<B, 2> {
    let data = TensorData::new(rows.concat(), [rows.len(), rows[0].len()]);
    Tensor::from_data(data, (device, DType::F32))
}

/// Advantages of rewards under every scale.
pub fn group_advantages<B: PolicyBackend>(reference: &Reference<B>) {
    let file: File = reference.read("grpo.json");
    let groups: Vec<_> = file
        .rewards
        .chunks(file.group_size)
        .map(<[f64]>::to_vec)
        .collect();
    for (name, expected) in &file.advantages {
        let scale = match name.as_str() {
            "group" => AdvantageScale::Group,
            "group_population" => AdvantageScale::GroupPopulation,
            "batch" => AdvantageScale::Batch,
            "none" => AdvantageScale::None,
            other => panic!("advantage {other}"),
        };
        let found: Vec<_> = advantages(&groups, scale)
            .expect("finite rewards")
            .concat()
            .iter()
            .map(|number| *number as f32)
            .collect();
        Largest::new(format!("advantages {name}"), 1e-5).compare_all(&found, expected);
    }
}

/// Log-probabilities of completions with and without the adapter, and their entropy.
pub fn completion_logprobs<B: PolicyBackend>(reference: &Reference<B>) {
    let file: File = reference.read("grpo.json");
    let Adapted { model, adapter, .. } = reference.adapted(&file.model, &file.adapter);
    let completions = file.completions();
    let logprobs = |adapter: Option<&Adapter<B>>, temperature| {
        numbers(
            completions
                .logprobs(&model, adapter, temperature)
                .expect("valid rows"),
        )
    };
    let mut largest = Largest::new("GRPO: log-probabilities", LOGITS);
    largest.compare_all(&logprobs(Some(&adapter), 1.0), &file.current_logps.concat());
    largest.compare_all(&logprobs(None, 1.0), &file.ref_logps.concat());
    largest.compare_all(&logprobs(None, 0.7), &file.ref_logps_t07.concat());

    let (rows, longest) = (completions.lengths().len(), completions.longest());
    let scores = model
        .score(completions.tokens(), &completions.cells(), Some(&adapter), 1.0)
        .expect("valid rows");
    let entropy = completions
        .rectangle(scores.entropy())
        .expect("one for each token");
    assert_eq!(entropy.dims(), [rows, longest]);
    Largest::new("GRPO: entropy", LOGITS).compare_all(&numbers(entropy), &file.entropy.concat());
}

/// Losses, statistics, gradients and parameters of one step of every variant.
pub fn policy_steps<B: PolicyBackend>(reference: &Reference<B>) {
    let file: File = reference.read("grpo.json");
    let start = reference.adapted(&file.model, &file.adapter);
    let device = &reference.device;
    let decoder = Decoder::<Autodiff<B>>::from_inner(&start.model);
    let completions = file.completions();
    let lengths = completions.lengths();
    for variant in &file.variants {
        let what = format!("GRPO {}", variant.name);
        let learning = Adapter::<Autodiff<B>>::trainable(&start.adapter, Mode::Evaluation);
        let policy = completions
            .logprobs(&decoder, Some(&learning), variant.temperature)
            .expect("valid rows");
        let [old, base] = file.given(variant.temperature);
        let evidence = Evidence {
            policy,
            sampled: (variant.old == "given").then(|| tensor(old, device)),
            reference: Some(tensor(base, device)),
        };
        let objective = variant.objective();
        let advantages = &file.advantages[&variant.advantage];
        let weights = variant.normalisation().weights(lengths).expect("valid");
        let loss = objective
            .loss(&evidence, lengths, advantages, &weights)
            .expect("valid");

        Largest::of_losses(format!("{what}: loss"))
            .compare(numbers(loss.total.clone().inner())[0], variant.loss);
        let kl = loss.kl.clone().expect("there is a reference");
        for (name, found, expected) in [
            ("token losses", &loss.tokens, &variant.per_token_loss),
            ("divergences", &kl, &variant.per_token_kl),
            ("ratios", &loss.ratios, &variant.per_token_ratio),
        ] {
            Largest::of_losses(format!("{what}: {name}"))
                .compare_all(&numbers(found.clone().inner()), &expected.concat());
        }
        let statistics = objective.statistics(&loss, lengths, advantages).expect("valid");
        assert_eq!(statistics.tokens, lengths.iter().sum::<usize>(), "{what}");
        let mut stats = Largest::of_losses(format!("{what}: statistics"));
        for (name, expected) in &variant.stats {
            let found = match name.as_str() {
                "kl_mean" => statistics.kl_mean,
                "clip_low" => statistics.clip_low,
                "clip_high" => statistics.clip_high,
                "ratio_mean" => statistics.ratio_mean,
                "ratio_min" => statistics.ratio_min,
                "ratio_max" => statistics.ratio_max,
                other => panic!("statistic {other}"),
            };
            stats.compare(found as f32, *expected);
        }
        drop(stats);

        let gradient = Gradient::of(&loss.total, &learning);
        assert_norm(numbers(gradient.norm())[0], variant.grad_norm, &what);
        if let Some(name) = &variant.grad_file {
            start.compare_gradient(&gradient, name);
        }
        let step = Optimizer::new(file.optim.settings(), &start.adapter)
            .step(&start.adapter, gradient, file.optim.lr)
            .expect("a finite gradient");
        assert_norm(step.gradient_norm as f32, variant.grad_norm, &what);
        let after = step.parameters;
        let squares: f64 = after
            .matrices()
            .flat_map(|matrix| numbers(matrix.clone()))
            .map(|number| f64::from(number).powi(2))
            .sum();
        assert_norm(
            squares.sqrt() as f32,
            variant.param_l2_after1,
            &format!("{what}: parameters"),
        );
        if let Some(name) = &variant.params_after1_file {
            start.compare_parameters(&after, name, 2.0 * file.optim.lr);
        }
    }
}
