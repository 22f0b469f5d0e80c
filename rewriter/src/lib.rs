//! The learned rewriter: a decoder in burn, its low-rank adapters, and answers drawn from it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`hub`], [`config`], [`weights`], [`error`] | a model's files: where they come from, how they are read, what can be wrong |
//! | [`tokenizer`], [`chat`] | text to token ids, conversations to text |
//! | [`tokens`], [`decoder`], [`rope`], [`cache`] | one forward pass: what enters, the computation, positions, keys and values |
//! | [`lora`], [`peft`], [`store`] | what learns beside the frozen decoder, and how both are written |
//! | [`token_sampling`], [`generate`] | the next token, and whole answers to a batch of prompts |
//! | [`scores`], [`sft`], [`grpo`] | log-probabilities of given tokens, and the losses made of them |
//! | [`policy`], [`parameters`], [`optimizer`], [`schedule`] | what learns, an adapter or the whole decoder; its gradients, AdamW's steps, and how long they are |
//! | [`replicas`] | several devices that learn from shares of a step |
//! | `decoder::activation_checkpointing` | layers computed again in the backward pass, for less memory |
//! | [`fine_tuning`] | supervised training from pairs to checkpoints |
//! | [`local`], [`pool_grpo`] | the policy as a search's rewriter, and as one that learns from its rounds |
//! | [`remote_generation`] | its rewrites drawn by a server that serves its adapter |
//! | [`stop`] | drawing and learning ended before their time |
//! | [`template`], [`feedback`], [`pairs`] | what the rewriter is asked, how feedback is cut to fit, and what runs teach it |
//! | [`alignment`] | how rewrites and steps agree with the gradient |
//! | [`checkpoint`], [`folder`] | a training kept on disk, and policies found there |
//! | [`engine`], [`device`] | all of this on one device, whatever its backend; which devices there are |
//! | [`memory`], [`flops`] | how much main memory was needed; operations, and what devices can do |
//! | [`tiny_qwen3`], [`random_decoder`] | random weights: small models in a folder, any size on a device |
//! | [`backend`] | what a backend may do better than burn's own operations |

pub mod alignment;
pub mod backend;
pub mod cache;
pub mod chat;
pub mod checkpoint;
pub mod config;
pub mod decoder;
pub mod device;
pub mod engine;
pub mod error;
pub mod feedback;
pub mod fine_tuning;
pub mod flops;
pub mod folder;
pub mod generate;
pub mod grpo;
pub mod hub;
pub mod local;
pub mod lora;
pub mod memory;
pub mod optimizer;
mod out_of_memory;
pub mod pairs;
pub mod parameters;
pub mod peft;
pub mod policy;
pub mod pool_grpo;
pub mod random_decoder;
pub mod remote_generation;
pub mod replicas;
pub mod rope;
pub mod schedule;
pub mod scores;
pub mod sft;
pub mod stop;
pub mod store;
pub mod template;
pub mod tiny_qwen3;
pub mod token_sampling;
pub mod tokenizer;
pub mod tokens;
pub mod weights;
