//! Logits and log-probabilities of whole sequences.

use std::collections::BTreeMap;

use capo_rewriter::backend::PolicyBackend;
use capo_rewriter::token_sampling::logprob;
use capo_rewriter::tokens::{Padding, Tokens};
use serde::Deserialize;

use crate::fixture::{Input, LOGITS, Largest, Reference, numbers};

#[derive(Deserialize)]
struct File {
    models: BTreeMap<String, Model>,
}

#[derive(Deserialize)]
struct Model {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    #[serde(flatten)]
    input: Input,
    position_ids: Vec<Vec<u32>>,
    logits: Vec<Vec<Option<Vec<f32>>>>,
    argmax: Vec<Vec<Option<usize>>>,
    sum: Vec<Vec<Option<f64>>>,
    sum_sq: Vec<Vec<Option<f64>>>,
    first8: Vec<Vec<Option<Vec<f32>>>>,
    last8: Vec<Vec<Option<Vec<f32>>>>,
    next_logprob: Vec<Vec<Option<f32>>>,
}

/// Logits of every model: one token, one sequence, several with padding on either side.
pub fn logits<B: PolicyBackend>(reference: &Reference<B>) {
    let file: File = reference.read("logits.json");
    for (name, expected) in &file.models {
        let model = reference.decoder(name);
        let vocabulary = model.config().vocabulary;
        for case in &expected.cases {
            let what = format!("{name} {}", case.name);
            let padding = if case.input.attention_mask.iter().all(|row| row.last() == Some(&1)) {
                Padding::Left
            } else {
                Padding::Right
            };
            let tokens = Tokens::padded(&case.input.rows(), padding);
            let (rows, columns) = (tokens.rows(), tokens.columns());
            let hidden = model.hidden(&tokens, None, None).expect("a valid input");
            let logits = numbers(model.logits(hidden.flatten(0, 1)));

            let mut whole = Largest::new(format!("{what}: logits"), LOGITS);
            let mut sums = Largest::new(format!("{what}: sums"), 2e-2);
            let mut next = (columns > 1).then(|| Largest::new(format!("{what}: log-probabilities"), LOGITS));
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                let cell = row * columns + column;
                let found = &logits[cell * vocabulary..][..vocabulary];
                assert_eq!(
                    tokens.real()[cell],
                    case.input.attention_mask[row][column] == 1,
                    "{what}"
                );
                if !tokens.real()[cell] {
                    continue;
                }
                assert_eq!(tokens.positions()[cell], case.position_ids[row][column], "{what}");
                if let Some(expected) = &case.logits[row][column] {
                    whole.compare_all(found, expected);
                }
                if let (Some(first), Some(last)) = (&case.first8[row][column], &case.last8[row][column]) {
                    whole.compare_all(&found[..first.len()], first);
                    whole.compare_all(&found[vocabulary - last.len()..], last);
                }
                if let Some(expected) = case.argmax[row][column] {
                    let best = found.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                    assert_eq!(
                        found.iter().position(|logit| *logit == best),
                        Some(expected),
                        "{what}"
                    );
                }
                let sum: f64 = found.iter().map(|logit| f64::from(*logit)).sum();
                let squares: f64 = found.iter().map(|logit| f64::from(*logit).powi(2)).sum();
                if let (Some(expected), Some(expected_squares)) =
                    (case.sum[row][column], case.sum_sq[row][column])
                {
                    sums.compare(sum as f32, expected as f32);
                    assert!(
                        (squares / expected_squares - 1.0).abs() < 1e-4,
                        "{what}: sum of squares"
                    );
                }
                if let Some(Some(expected)) = case.next_logprob[row].get(column) {
                    let token = tokens.ids()[cell + 1];
                    if let Some(next) = &mut next {
                        next.compare(logprob(found, token, 1.0), *expected);
                    }
                }
            }
        }
    }
}
