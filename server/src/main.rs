//! The `capo` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    capo_server::cli::main()
}
