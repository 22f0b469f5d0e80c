//! What a `capo` without the learned rewriter says when it is asked for one.

use std::ffi::OsString;

use super::failure::Failure;

/// The learned rewriter: needs a `capo` that was built with the feature `train`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Anything {
    /// Whatever a `capo` with the feature takes.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

impl Anything {
    /// Says how to build what is missing.
    pub(crate) fn refused(&self) -> Failure {
        let again = if self.arguments.is_empty() {
            ""
        } else {
            ", then run the same command"
        };
        Failure::new(format!(
            "this `capo` was built without the learned rewriter.\n\
             Build it with: cargo build --release -p capo-server --features train{again}"
        ))
    }
}
