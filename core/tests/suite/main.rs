//! Whole searches over a small world, in one program: what they share is compiled once.

mod agent_script;
mod certify;
mod durability;
mod evaluator;
mod failures;
mod journal_file;
mod learning;
mod pilot;
mod reuse;
mod search;
mod study_file;
#[allow(dead_code, unreachable_pub, reason = "it is written for all who include it")]
#[path = "../tiny/mod.rs"]
mod tiny;
mod verification;
#[path = "../world/mod.rs"]
mod world;
