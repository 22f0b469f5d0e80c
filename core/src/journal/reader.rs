//! From lines to events.

use super::event::Event;
use super::{SCHEMA, StoreError};
use crate::study::{StudyError, suggest};

/// A journal that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// A line is not what it must be.
    #[error("journal line {line}: {reason}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The journal belongs to another study.
    #[error("this journal belongs to another study; choose another journal file, or undo these changes:\n{}", .0.join("\n"))]
    OtherStudy(Vec<String>),
    /// A branch from a round that was never reached.
    #[error("the journal ends after {reached} rounds, so nothing can branch off at round {round}")]
    NoSuchRound {
        /// Complete rounds.
        reached: u32,
        /// The round asked for.
        round: u32,
    },
    /// Nothing goes on from a journal that [`slim()`](super::slim()) was made of.
    #[error(
        "this journal was made without traces, which a critic reads, so nothing goes on from it; use the whole one"
    )]
    WithoutTraces,
    /// Impossible changes for a branch.
    #[error(transparent)]
    Changes(#[from] StudyError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Parses one line.
///
/// # Errors
/// The reason in words, naming a newer schema as such.
pub fn parse_line(line: &str, number: usize) -> Result<Event, JournalError> {
    let refuse = |reason: String| JournalError::Line { line: number, reason };
    if number == 1 {
        #[derive(serde::Deserialize)]
        struct Header {
            event: String,
            #[serde(default)]
            schema: u32,
        }
        let header: Header = serde_json::from_str(line).map_err(|error| {
            refuse(format!(
                "not a Capo journal: its first line must be a `study` event ({})",
                suggest(&error.to_string())
            ))
        })?;
        if header.event != "study" {
            return Err(refuse(format!(
                "the first line must be a `study` event, but is a `{}` event",
                header.event
            )));
        }
        if header.schema == 0 {
            return Err(refuse(format!(
                "not a Capo journal: its first line states no schema from 1 to {SCHEMA}"
            )));
        }
        if header.schema > SCHEMA {
            return Err(refuse(format!(
                "written in schema {} by a newer Capo; this one reads schemas up to {SCHEMA}. Update Capo to open it",
                header.schema
            )));
        }
    }
    serde_json::from_str(line).map_err(|error| refuse(suggest(&error.to_string())))
}
