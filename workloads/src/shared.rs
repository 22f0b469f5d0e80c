//! What tests read: recorded cases and public data kept outside the repository, and the guides'
//! code blocks.

use std::path::PathBuf;

use serde_json::Value;

/// The file's text; `None`, said aloud, where the data are absent. They must be there when `CI`
/// is set.
pub(crate) fn text(path: &str) -> Option<String> {
    let root = std::env::var_os("CAPO_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    );
    let file = root.join(path);
    match std::fs::read_to_string(&file) {
        Ok(text) => Some(text),
        Err(error) => {
            assert!(
                std::env::var_os("CI").is_none(),
                "shared data are needed in CI: {}: {error}",
                file.display()
            );
            eprintln!("skipped: no shared data ({})", file.display());
            None
        }
    }
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
