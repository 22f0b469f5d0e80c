//! Whole searches over a small world, in one program: what they share is compiled once.

mod durability;
mod failures;
mod journal_file;
mod learning;
mod search;
mod study_file;
mod verification;
#[path = "../world/mod.rs"]
mod world;
