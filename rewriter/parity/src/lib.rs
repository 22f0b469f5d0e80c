//! The rewriter against numbers made with PyTorch, transformers and PEFT, on any backend. Each check
//! prints the largest differences that it met. Checks are what tests call: a check panics where a difference is more
//! than accepted, and where a reference file or model is missing or does not read, which it names.

mod fixture;
mod generation;
mod grpo;
mod logits;
mod lora;
mod sampling;
mod sft;
mod tokenizer;

use capo_rewriter::backend::PolicyBackend;

pub use fixture::Reference;
pub use generation::{adapted_rows_alone_and_in_a_batch, greedy_answers, rows_alone_and_in_a_batch};
pub use grpo::{completion_logprobs, group_advantages, policy_steps};
pub use logits::logits;
pub use lora::{adapted_logits, coarse_logits};
pub use sampling::sampling_distributions;
pub use sft::supervised_steps;
pub use tokenizer::tokens_and_chat_texts;

/// A check by its name.
pub type Check<B> = (&'static str, fn(&Reference<B>));

/// The checks of what a device computes, in 32 bits.
pub fn device_checks<B: PolicyBackend>() -> [Check<B>; 8] {
    [
        ("logits", logits),
        ("adapted logits", adapted_logits),
        ("greedy answers", greedy_answers),
        ("rows alone and in a batch", rows_alone_and_in_a_batch),
        (
            "adapted rows alone and in a batch",
            adapted_rows_alone_and_in_a_batch,
        ),
        ("log-probabilities of completions", completion_logprobs),
        ("supervised steps", supervised_steps),
        ("policy steps", policy_steps),
    ]
}
