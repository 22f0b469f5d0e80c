//! The rewriter on the CPU against numbers made with PyTorch, transformers and PEFT.

use burn_flex::{Flex, FlexDevice};
use burn_tensor::FloatDType;
use capo_rewriter_parity::{self as parity, Reference};

/// Skipped where there are no reference files.
fn check(what: impl FnOnce(&Reference<Flex>)) {
    if let Some(folder) = capo_tests::shared::shared("parity/qwen3") {
        what(&Reference {
            folder,
            device: FlexDevice,
        });
    }
}

#[test]
fn parity_of_tokens_and_chat_texts() {
    check(parity::tokens_and_chat_texts);
}

#[test]
fn parity_of_sampling_distributions() {
    check(parity::sampling_distributions);
}

#[test]
fn parity_of_logits() {
    check(parity::logits);
}

#[test]
fn parity_of_adapted_logits() {
    check(parity::adapted_logits);
}

#[test]
fn parity_of_bf16_logits_in_kind() {
    check(|reference| parity::coarse_logits(reference, FloatDType::BF16));
}

#[test]
fn parity_of_greedy_answers() {
    check(parity::greedy_answers);
}

#[test]
fn parity_of_rows_alone_and_in_a_batch() {
    check(parity::rows_alone_and_in_a_batch);
}

#[test]
fn parity_of_adapted_rows_alone_and_in_a_batch() {
    check(parity::adapted_rows_alone_and_in_a_batch);
}

#[test]
fn parity_of_advantages() {
    check(parity::group_advantages);
}

#[test]
fn parity_of_completion_logprobs() {
    check(parity::completion_logprobs);
}

#[test]
fn parity_of_supervised_steps() {
    check(parity::supervised_steps);
}

#[test]
fn parity_of_policy_steps() {
    check(parity::policy_steps);
}
