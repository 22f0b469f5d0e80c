//! Journals as any other program sees them: files of JSON lines.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// The whole lines of a journal, oldest first. A last line without its newline is not yet
/// written, and left out.
///
/// # Panics
/// When the file cannot be read, or a whole line is not JSON.
pub fn events(journal: &Path) -> Vec<Value> {
    let bytes = fs::read(journal).unwrap_or_else(|error| panic!("{}: {error}", journal.display()));
    // A killed program may have stopped writing in the midst of a character.
    let whole = bytes
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |end| end + 1);
    let text =
        std::str::from_utf8(&bytes[..whole]).unwrap_or_else(|error| panic!("{}: {error}", journal.display()));
    text.split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'))
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// The events of one kind.
pub fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

/// What must be equal between two runs of one study, however often either was interrupted: every
/// round with its scores, multipliers and pool, and the result. Times and spend are left out.
pub fn outcome(events: &[Value]) -> Vec<Value> {
    events
        .iter()
        .filter(|event| event["event"] == "round" || event["event"] == "finished")
        .cloned()
        .map(|mut event| {
            if let Some(fields) = event.as_object_mut() {
                fields.remove("usage");
            }
            event
        })
        .collect()
}
