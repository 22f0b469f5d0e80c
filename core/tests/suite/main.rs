//! Whole searches over a small world, in one program: what they share is compiled once.

mod agent_script;
mod bad_luck;
mod baselines;
mod certify;
mod durability;
mod evaluator;
mod failures;
mod gepa;
mod journal_file;
#[allow(dead_code, reason = "it is a program")]
#[path = "../../examples/ladder.rs"]
mod ladder;
mod learning;
mod pilot;
mod reuse;
mod search;
mod starts;
mod study_file;
#[allow(dead_code, unreachable_pub, reason = "it is written for all who include it")]
#[path = "../tiny/mod.rs"]
mod tiny;
mod verification;
#[path = "../world/mod.rs"]
mod world;
mod wrong_inputs;
