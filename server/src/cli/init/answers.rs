//! Prompts at a terminal for what nobody said on the command line.

use std::ffi::OsStr;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use capo_models::ModelSpec;
use capo_workloads::data::Look;
use capo_workloads::files::Files as _;
use serde_json::json;

use crate::cli::chats::Chats;
use crate::cli::failure::Failure;
use crate::files::{Reach, StudyFolder};
use crate::terminal::harmless;

/// Whether a person can be asked.
pub(super) fn at_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// What is given, or else what a person at a terminal answers, who is asked again where `read` says what is wrong with it.
/// Where nobody can be asked, the usual is `assumed`.
pub(super) fn chosen<T>(
    given: Option<&str>,
    question: &str,
    (option, usual): (&str, &str),
    assumed: &mut Vec<String>,
    mut read: impl FnMut(&str) -> Result<T, String>,
) -> Result<T, Failure> {
    if given.is_none() && !at_terminal() {
        assumed.push(format!("{option} {usual}"));
    }
    if given.is_some() || !at_terminal() {
        let read = read(given.unwrap_or(usual));
        return read.map_err(|problem| Failure::usage(format!("{option}: {problem}")));
    }
    loop {
        write!(io::stderr(), "{question} [{usual}] ")?;
        let mut line = String::new();
        if io::stdin().read_line(&mut line)? == 0 {
            writeln!(io::stderr())?;
            return Err(Failure::usage(format!(
                "the answers end here; say it with {option}"
            )));
        }
        let answer = line.trim();
        match read(if answer.is_empty() { usual } else { answer }) {
            Ok(chosen) => return Ok(chosen),
            Err(problem) => writeln!(io::stderr(), "{}", harmless(&problem))?,
        }
    }
}

/// What `[models.agent]` holds of a model that is typed as PROVIDER/MODEL.
pub(super) fn model(typed: &str) -> Result<(String, String), String> {
    let (provider, name) = typed.split_once('/').unwrap_or((typed, ""));
    let mut table = json!({ "provider": provider });
    if !name.is_empty() {
        table["model"] = json!(name);
    }
    let spec = ModelSpec::parse(&table)?;
    if spec.model.is_none() && spec.provider.get().model.is_none() {
        return Err(format!("write it as PROVIDER/MODEL: which model of {provider}?"));
    }
    Ok((provider.to_owned(), name.to_owned()))
}

/// A file of examples that a person names; none of `usual` rows that are not there yet.
pub(super) fn examples_at(typed: &str, usual: &str) -> Result<Option<PathBuf>, String> {
    let path = Path::new(typed);
    let name = path.file_name().filter(|_| path.is_file());
    let Some(name) = name.map(OsStr::to_string_lossy) else {
        let is_usual = typed == usual && !path.exists();
        return is_usual
            .then_some(None)
            .ok_or_else(|| format!("there is no file {typed}"));
    };
    let bytes = StudyFolder::of(path, Reach::Anywhere).read(&name);
    let bytes = bytes.map_err(|error| error.to_string())?;
    if Chats::read(&bytes).is_none() {
        Look::at_table(&name, &bytes, usize::MAX).map_err(|error| error.to_string())?;
    }
    Ok(Some(path.to_owned()))
}
