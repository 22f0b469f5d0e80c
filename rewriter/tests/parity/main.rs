//! The rewriter against numbers made with PyTorch, transformers and PEFT.

mod fixture;
mod generation;
mod logits;
mod lora;
mod sampling;
mod tokenizer;
