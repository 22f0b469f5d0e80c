//! Answers with the KV cache.

use std::collections::BTreeMap;

use capo_rewriter::backend::PolicyBackend;
use capo_rewriter::decoder::Decoder;
use capo_rewriter::generate::{Completion, Finish, Generation, GenerationRow};
use capo_rewriter::lora::Adapter;
use capo_rewriter::token_sampling::Sampling;
use serde::Deserialize;
use serde_json::Value;

use crate::fixture::{Input, LOGITS, Largest, Reference, text};

#[derive(Deserialize)]
struct File {
    models: BTreeMap<String, Model>,
}

#[derive(Deserialize)]
struct Model {
    greedy: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    #[serde(flatten)]
    input: Input,
    max_new_tokens: usize,
    eos_token_id: Option<Vec<u32>>,
    output_ids: Vec<Vec<u32>>,
    lengths: Vec<usize>,
    chosen_logprob: Vec<Vec<Option<f32>>>,
}

fn rows(prompts: &[Vec<u32>]) -> Vec<GenerationRow> {
    let row = |(seed, prompt): (u64, &Vec<u32>)| GenerationRow {
        prompt: prompt.clone(),
        seed,
    };
    (0..).zip(prompts).map(row).collect()
}

/// The most likely answers of every model, with their log-probabilities.
pub fn greedy_answers<B: PolicyBackend>(reference: &Reference<B>) {
    let file: File = reference.read("logits.json");
    for (name, expected) in &file.models {
        let model = reference.decoder(name);
        for case in &expected.greedy {
            let what = format!("{name} {}", case.name);
            let settings = Generation {
                sampling: Sampling::GREEDY,
                max_new_tokens: case.max_new_tokens,
                stop_tokens: case.eos_token_id.clone().unwrap_or_default(),
                share_prefixes: true,
            };
            let answers = model
                .generate(None, &rows(&case.input.rows()), &settings)
                .expect("a valid request");
            let mut logprobs = Largest::new(format!("{what}: log-probabilities"), LOGITS);
            for (row, answer) in answers.iter().enumerate() {
                let length = case.lengths[row];
                assert_eq!(answer.tokens, case.output_ids[row][..length], "{what} row {row}");
                let stopped = settings.stop_tokens.contains(&answer.tokens[length - 1]);
                assert_eq!(answer.finish == Finish::Stop, stopped, "{what} row {row}");
                let expected: Vec<_> = case.chosen_logprob[row]
                    .iter()
                    .copied()
                    .map_while(|number| number)
                    .collect();
                logprobs.compare_all(&answer.logprobs, &expected);
            }
        }
    }
}

/// Prompts of one model: two families of siblings and two on their own, eight rows.
fn family<B: PolicyBackend>(model: &Decoder<B>) -> Vec<Vec<u32>> {
    let vocabulary = model.config().vocabulary as u32;
    let text =
        |start: u32, length: u32| (0..length).map(move |index| (start + index * index * 7) % vocabulary);
    let common: Vec<_> = text(3, 20).collect();
    let other: Vec<_> = text(101, 9).collect();
    let with = |prefix: &[u32], end: &[u32]| [prefix, end].concat();
    vec![
        common.clone(),
        common.clone(),
        with(&common, &[5, 6]),
        with(&common, &[9, 1, 2, 8]),
        other.clone(),
        other,
        text(55, 1).collect(),
        text(77, 31).collect(),
    ]
}

fn assert_same(one: &[Completion], other: &[Completion], what: &str) {
    assert_eq!(one.len(), other.len(), "{what}");
    for (row, (one, other)) in one.iter().zip(other).enumerate() {
        assert_eq!(one.tokens, other.tokens, "{what}, row {row}");
        assert_eq!(one.finish, other.finish, "{what}, row {row}");
        for (one, other) in one.logprobs.iter().zip(&other.logprobs) {
            assert!((one - other).abs() < LOGITS, "{what}, row {row}: {one} {other}");
        }
    }
}

/// Neither the other rows of a batch nor sharing prefixes changes a row's sample.
fn assert_invariant<B: PolicyBackend>(model: &Decoder<B>, adapter: Option<&Adapter<B>>, what: &str) {
    let rows = rows(&family(model));
    let settings = Generation {
        sampling: Sampling {
            temperature: 1.2,
            top_k: 60,
            top_p: 0.95,
            min_p: 0.01,
        },
        max_new_tokens: 40,
        // Frequent enough that rows leave the batch at different times.
        stop_tokens: (0..model.config().vocabulary as u32).step_by(29).collect(),
        share_prefixes: true,
    };
    let generate = |rows: &[GenerationRow], settings: &Generation| {
        model.generate(adapter, rows, settings).expect("a valid request")
    };
    let together = generate(&rows, &settings);
    let lengths: Vec<_> = together.iter().map(|answer| answer.tokens.len()).collect();
    assert!(
        lengths.iter().any(|length| *length != lengths[0]),
        "{what}: {lengths:?}"
    );
    assert_ne!(
        together[0].tokens, together[1].tokens,
        "{what}: seeds make siblings differ"
    );

    let unshared = Generation {
        share_prefixes: false,
        ..settings.clone()
    };
    assert_same(
        &generate(&rows, &unshared),
        &together,
        &format!("{what}: prefixes not shared"),
    );
    for size in [1, 2] {
        let parts: Vec<_> = rows
            .chunks(size)
            .flat_map(|part| generate(part, &settings))
            .collect();
        assert_same(&parts, &together, &format!("{what}: by {size}"));
    }
}

/// Samples of every model: eight rows together, by two and by one.
pub fn rows_alone_and_in_a_batch<B: PolicyBackend>(reference: &Reference<B>) {
    let file: File = reference.read("logits.json");
    for name in file.models.keys() {
        assert_invariant(&reference.decoder(name), None, name);
    }
}

/// Samples of an adapted model: eight rows together, by two and by one.
pub fn adapted_rows_alone_and_in_a_batch<B: PolicyBackend>(reference: &Reference<B>) {
    let file: Value = reference.read("lora.json");
    let adapted = reference.adapted(text(&file, "model"), text(&file, "adapter"));
    assert_invariant(&adapted.model, Some(&adapted.adapter), "adapted");
}
