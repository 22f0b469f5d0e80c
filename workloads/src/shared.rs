//! What tests read: recorded cases and public data kept outside the repository, and the guides'
//! code blocks.

use std::path::PathBuf;

use serde_json::Value;

use crate::files::{FileError, Files};

/// The file's text; `None`, said aloud, where the data are absent.
pub(crate) fn text(path: &str) -> Option<String> {
    let file = capo_tests::shared::shared(path)?;
    let text = std::fs::read_to_string(&file);
    Some(text.unwrap_or_else(|error| panic!("{}: {error}", file.display())))
}

/// The file's lines as JSON.
pub(crate) fn json_lines(path: &str) -> Option<Vec<Value>> {
    let text = text(path)?;
    Some(
        text.lines()
            .map(|line| serde_json::from_str(line).expect("a line of JSON"))
            .collect(),
    )
}

/// The shared folder as the folder of a study.
pub(crate) struct SharedFiles;

impl Files for SharedFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        capo_tests::shared::shared(path)
            .and_then(|file| std::fs::read(file).ok())
            .ok_or_else(|| FileError::NotFound(path.to_owned()))
    }
}

/// The code blocks of a language in a page of `docs/`.
pub(crate) fn guide_blocks(page: &str, language: &str) -> Vec<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(page);
    let guide = std::fs::read_to_string(path).expect("a page of the documentation");
    let fence = format!("```{language}\n");
    guide
        .split(&fence)
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .map(str::to_owned)
        .collect()
}
