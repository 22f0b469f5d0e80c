//! Refusals of a `capo` that was built without the learned rewriter.

use std::ffi::OsString;

use super::failure::Failure;

/// The learned rewriter: needs a `capo` that was built with the feature `train`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Anything {
    /// Whatever a `capo` with the feature takes.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    arguments: Vec<OsString>,
}

impl Anything {
    /// Says how to build what is missing.
    pub(crate) fn refused(&self) -> Failure {
        let command = self.arguments.first().map(|command| command.to_string_lossy());
        Failure::new(format!(
            "`{}` needs the learned rewriter, which this `capo` was built without.\n\
             Build it with: cargo build --release -p capo-server --features train",
            command.unwrap_or_default()
        ))
    }
}
