//! Every provider over real HTTP on loopback: what is sent, what is read, what happens when it
//! fails.

#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod batches;
mod embeddings;
mod failures;
mod probe;
mod server;
mod vllm;
mod waits;
mod wires;
