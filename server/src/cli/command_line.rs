//! The command that carries a run on, as a person would type it.

use std::path::Path;

use super::layout::quoted;

/// A command line under construction.
#[derive(Debug)]
pub(super) struct CommandLine(String);

impl CommandLine {
    /// `capo COMMAND STUDY`.
    pub(super) fn new(command: &str, study: &Path) -> Self {
        Self(format!("capo {command} {}", quoted(&study.to_string_lossy())))
    }

    /// `--NAME VALUE`, where there is a value.
    pub(super) fn option<T: ToString>(mut self, name: &str, value: Option<T>) -> Self {
        if let Some(value) = value {
            self.0.extend([" --", name, " ", &quoted(&value.to_string())]);
        }
        self
    }

    /// [`CommandLine::option`] with a path.
    pub(super) fn path(self, name: &str, path: Option<&Path>) -> Self {
        self.option(name, path.map(Path::to_string_lossy))
    }

    /// `--NAME VALUE` of each that has a value.
    #[cfg(feature = "train")]
    pub(super) fn options<T: ToString>(
        self,
        options: impl IntoIterator<Item = (&'static str, Option<T>)>,
    ) -> Self {
        options
            .into_iter()
            .fold(self, |line, (name, value)| line.option(name, value))
    }

    /// `--NAME PATH…` where there are any, which must come last.
    pub(super) fn paths(mut self, name: &str, paths: &[std::path::PathBuf]) -> Self {
        if !paths.is_empty() {
            self.0.extend([" --", name]);
        }
        for path in paths {
            self.0.extend([" ", &quoted(&path.to_string_lossy())]);
        }
        self
    }

    /// `--NAME`, where it is given.
    pub(super) fn flag(mut self, name: &str, given: bool) -> Self {
        if given {
            self.0.extend([" --", name]);
        }
        self
    }
}

impl std::fmt::Display for CommandLine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}
