//! The distributions that tokens are drawn from.

use capo_rewriter::backend::PolicyBackend;
use capo_rewriter::token_sampling::Sampling;
use serde::Deserialize;

use crate::fixture::{Largest, Reference};

#[derive(Deserialize)]
struct File {
    logits: Vec<Vec<f32>>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    logits_row: usize,
    temperature: f32,
    top_k: usize,
    top_p: f32,
    min_p: f32,
    tokens: Vec<u32>,
    probs: Vec<f32>,
}

/// What is left of a distribution, and how likely each token of it is.
pub fn sampling_distributions<B: PolicyBackend>(reference: &Reference<B>) {
    let file: File = reference.read("sampling.json");
    let mut probabilities = Largest::new("sampling: probabilities", 1e-5);
    for case in &file.cases {
        let sampling = Sampling {
            temperature: case.temperature,
            top_k: case.top_k,
            top_p: case.top_p,
            min_p: case.min_p,
        };
        let mut found = sampling.distribution(&file.logits[case.logits_row]);
        let mut expected: Vec<_> = case
            .tokens
            .iter()
            .copied()
            .zip(case.probs.iter().copied())
            .collect();
        found.sort_by_key(|(token, _)| *token);
        expected.sort_by_key(|(token, _)| *token);
        let ids = |tokens: &[(u32, f32)]| tokens.iter().map(|(token, _)| *token).collect::<Vec<_>>();
        let found: Vec<_> = found
            .into_iter()
            .map(|(token, share)| (token, share as f32))
            .collect();
        assert_eq!(
            ids(&found),
            ids(&expected),
            "{sampling:?} on row {}",
            case.logits_row
        );
        for ((_, found), (_, expected)) in found.iter().zip(&expected) {
            probabilities.compare(*found, *expected);
        }
    }
}
