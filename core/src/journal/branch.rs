//! A new journal that starts from a round of another.

use super::event::{Branch, Event, SteerEvent};
use super::reader::{JournalError, parse_line};
use crate::ids::Round;

/// The lines of a journal that shares everything before `round` with another one and pays for
/// nothing of it again. `changes` (thresholds, multipliers, budget) take effect when the branch
/// goes on.
///
/// # Errors
/// A line that does not parse, or a round that the other journal never reached.
pub fn branch<L: AsRef<str>>(
    lines: impl IntoIterator<Item = L>,
    round: Round,
    changes: SteerEvent,
) -> Result<Vec<String>, JournalError> {
    let mut kept = Vec::new();
    let mut from = String::new();
    let (mut reached, mut number) = (0, 0);
    for line in lines {
        let line = line.as_ref();
        number += 1;
        if reached == round && number > 1 {
            break;
        }
        match parse_line(line, number)? {
            Event::Study(study) => from.clone_from(&study.id),
            Event::Round(event) => reached = event.round + 1,
            // What failed or ended elsewhere says nothing about this run.
            Event::Failure(_) | Event::Finished(_) => continue,
            _ => {}
        }
        kept.push(line.to_owned());
    }
    if reached < round {
        return Err(JournalError::NoSuchRound { reached, round });
    }
    let steer = SteerEvent {
        round,
        branch: Some(Branch { from, round }),
        ..changes
    };
    let steer = serde_json::to_string(&Event::Steer(steer)).map_err(|error| JournalError::Line {
        line: number,
        reason: error.to_string(),
    })?;
    kept.push(steer);
    Ok(kept)
}
