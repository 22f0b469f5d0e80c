//! Runs as this tab knows them: folded, started, steered.

mod begun;
mod benchmark;
mod fold;
mod following;
mod importing;
mod keeping;
mod mirroring;
mod opening;
mod orders;
mod phase;
mod replay;
mod run;
mod runs;
pub mod sending;
mod server_events;
mod server_phase;
mod session;
mod steering;
mod to_server;
mod worker;
mod worker_messages;

pub use begun::Begun;
pub use benchmark::keep_benchmark;
pub use fold::Folded;
pub use importing::sweep;
pub use orders::Ordered;
pub use phase::{Pause, Phase};
pub use replay::Replay;
pub use run::{Inherited, Refusal, Run};
pub use runs::{NewRun, Runs, fresh_id};
pub use worker::{WorkerHandle, document_meta, prepare_worker, written};
