//! Prompts that take several passes.

use burn_flex::Flex;
use burn_tensor::FloatDType;
use capo_rewriter::cache::KvCache;
use capo_rewriter::decoder::Decoder;
use capo_rewriter::error::RequestError;
use capo_rewriter::generate::{Completion, Generation, GenerationRow};
use capo_rewriter::token_sampling::{Sampling, logprob};
use capo_rewriter::tokens::{Padding, Tokens};
use serde_json::json;

use super::load;
use super::model::ModelFiles;

/// Accepted between two orders of the same sums.
const ROUNDING: f32 = 1e-4;

/// A model of a long context; with a window, which must be seen across passes.
fn models() -> [Decoder<Flex>; 2] {
    let plain = ModelFiles::new().configure(&json!({ "max_position_embeddings": 2048 }));
    let windowed = ModelFiles::new().without_head_norms().configure(&json!({
        "model_type": "mistral", "max_position_embeddings": 2048, "sliding_window": 600,
    }));
    [plain, windowed].map(|files| load(files.write().path()).expect("loads"))
}

fn text(start: u32, length: u32) -> Vec<u32> {
    (0..length)
        .map(|index| (start + index * index * 7 + index / 3) % 32)
        .collect()
}

/// Siblings that part after 700 tokens, and a prompt of its own; one, two and three passes long.
fn prompts() -> Vec<Vec<u32>> {
    let common = text(3, 700);
    vec![
        [&common[..], &text(5, 5)].concat(),
        [&common[..], &text(9, 430)].concat(),
        text(17, 1030),
    ]
}

fn generate(model: &Decoder<Flex>, prompts: &[Vec<u32>], share_prefixes: bool) -> Vec<Completion> {
    let rows: Vec<_> = (0..)
        .zip(prompts)
        .map(|(seed, prompt)| GenerationRow {
            prompt: prompt.clone(),
            seed,
        })
        .collect();
    let settings = Generation {
        sampling: Sampling::default(),
        max_new_tokens: 12,
        stop_tokens: vec![],
        share_prefixes,
    };
    model.generate(None, &rows, &settings).expect("valid")
}

fn assert_alike(found: &[Completion], expected: &[Completion]) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.tokens, expected.tokens);
        for (one, other) in found.logprobs.iter().zip(&expected.logprobs) {
            assert!((one - other).abs() < ROUNDING, "{one} {other}");
        }
    }
}

#[test]
fn long_prompts_are_answered_alike_shared_alone_and_in_one_pass() {
    for model in models() {
        let prompts = prompts();
        let shared = generate(&model, &prompts, true);
        assert_alike(&generate(&model, &prompts, false), &shared);
        let alone: Vec<_> = prompts[..1]
            .iter()
            .flat_map(|prompt| generate(&model, std::slice::from_ref(prompt), true))
            .collect();
        assert_alike(&alone, &shared);

        for (prompt, answer) in prompts.iter().zip(&shared) {
            let whole = [&prompt[..], &answer.tokens].concat();
            let tokens = Tokens::padded(&[whole], Padding::Left);
            let hidden = model.hidden(&tokens, None, None).expect("valid");
            let before = hidden.narrow(1, prompt.len() - 1, answer.tokens.len());
            let logits: Vec<f32> = model
                .logits(before.flatten(0, 1))
                .into_data()
                .into_vec()
                .expect("32-bit numbers");
            for ((logits, token), found) in logits.chunks(32).zip(&answer.tokens).zip(&answer.logprobs) {
                let expected = logprob(logits, *token, 1.0);
                assert!((found - expected).abs() < ROUNDING, "{found} {expected}");
            }
        }
    }
}

#[test]
fn long_rows_are_scored_as_in_one_pass() {
    for model in models() {
        let rows = [text(3, 1100), text(9, 700)];
        let tokens = Tokens::padded(&rows, Padding::Left);
        // The last tokens of both rows, and those around the first pass's end.
        let cells: Vec<_> = (505..520).chain(1090..1100).chain(1600..1610).collect();
        let scores = model.score(&tokens, &cells, None, 1.0).expect("valid");
        let found: Vec<f32> = scores.logprobs().into_data().into_vec().expect("32-bit numbers");
        let hidden = model.hidden(&tokens, None, None).expect("valid");
        let logits: Vec<f32> = model
            .logits(hidden.flatten(0, 1))
            .into_data()
            .into_vec()
            .expect("32-bit numbers");
        for (cell, found) in cells.iter().zip(found) {
            let before = &logits[(cell - 1) * 32..][..32];
            let expected = logprob(before, tokens.ids()[*cell], 1.0);
            assert!((found - expected).abs() < ROUNDING, "{cell}: {found} {expected}");
        }
    }
}

#[test]
fn a_cache_beyond_the_context_is_refused_before_it_is_made() {
    let [model, _] = models();
    // As much as no machine has.
    for (rows, capacity) in [(1 << 40, 2049), (1, usize::MAX)] {
        let made = KvCache::<Flex>::new(model.config(), rows, capacity, FloatDType::F32, &model.device());
        let refused = made.map(|_| ()).expect_err("must be refused");
        assert_eq!(
            refused,
            RequestError::CacheCapacity {
                capacity,
                context: 2048
            }
        );
    }
    let empty = KvCache::<Flex>::new(model.config(), 0, 8, FloatDType::F32, &model.device());
    assert_eq!(empty.map(|_| ()), Err(RequestError::EmptyBatch));
    let rows = [GenerationRow {
        prompt: vec![1; 2],
        seed: 0,
    }];
    let settings = Generation {
        sampling: Sampling::GREEDY,
        max_new_tokens: usize::MAX,
        stop_tokens: vec![],
        share_prefixes: true,
    };
    let refused = model.generate(None, &rows, &settings);
    assert!(matches!(refused, Err(RequestError::ContextOverflow { .. })));
}
