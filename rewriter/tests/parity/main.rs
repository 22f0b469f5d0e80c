//! The rewriter against numbers made with PyTorch, transformers and PEFT.

mod fixture;
mod generation;
mod grpo;
mod logits;
mod lora;
mod sampling;
mod sft;
mod tokenizer;
