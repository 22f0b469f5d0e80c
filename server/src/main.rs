//! The `capo` binary.

use std::process::ExitCode;

/// A search allocates many small pieces: this saves a sixth of its time. Huge pages would save none, and cost each thread of
/// a run two megabytes.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    capo_server::cli::main()
}
