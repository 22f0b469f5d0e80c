//! A new journal that starts from a round of another.

use std::collections::HashSet;

use super::event::{Branch, Event, Origin, SteerEvent, StudyEvent};
use super::reader::{JournalError, parse_line};
use crate::ids::Round;
use crate::workload::Split;

/// The lines of a journal that shares everything before `round` with another one and pays for
/// nothing of it again: later rollouts of the prompts they share come along too, for what a prompt
/// measures depends on no threshold. Not so later repeats beyond the study's own: a round's means
/// run over all repeats above it, and which of them the branch will ask for is its own affair.
/// `changes` (thresholds, multipliers, budget) take effect when
/// the branch goes on.
///
/// ```
/// # mod tiny { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tiny/mod.rs")); }
/// # use std::rc::Rc;
/// # use capo_core::{arena::RunOptions, optimize};
/// # use futures::executor::block_on;
/// use capo_core::journal::{Journal, MemoryJournal, SteerEvent, branch};
///
/// # let store = MemoryJournal::new();
/// # let journal = Journal::create(Box::new(store.clone()));
/// # block_on(optimize(tiny::problem(tiny::STUDY)?, journal, Rc::new(tiny::Tiny), RunOptions::default()))?;
/// # let finished_run = store.lines().to_vec();
/// let stricter = SteerEvent {
///     thresholds: Some([("handovers".to_owned(), 0.1)].into()),
///     ..SteerEvent::default()
/// };
/// let lines = branch(&finished_run, 1, stricter)?;
///
/// let store = MemoryJournal::from_lines(lines.clone());
/// let journal = Journal::open(Box::new(store), (0..).zip(lines).map(Ok))?;
/// assert_eq!(journal.state().rounds().len(), 1); // round 0 is shared
/// assert_eq!(journal.state().ledger().rollouts(), 0); // and was paid for elsewhere
/// let outcome = block_on(optimize(tiny::problem(tiny::STUDY)?, journal, Rc::new(tiny::Tiny), RunOptions::default()))?;
/// assert_eq!(outcome.journal.state().rounds()[1].multipliers["handovers"], 2.0);
/// assert!((outcome.journal.state().rounds()[1].next_multipliers["handovers"] - 1.6).abs() < 1e-12);
/// # Ok::<(), capo_core::RunError>(())
/// ```
///
/// # Errors
/// A line that does not parse, a round that the other journal never reached, or changes that are
/// impossible.
pub fn branch<L: AsRef<str>>(
    lines: impl IntoIterator<Item = L>,
    round: Round,
    changes: SteerEvent,
) -> Result<Vec<String>, JournalError> {
    let mut kept = Vec::new();
    let mut study: Option<Box<StudyEvent>> = None;
    let mut shared = HashSet::new();
    let (mut reached, mut number) = (0, 0);
    for line in lines {
        let line = line.as_ref();
        number += 1;
        let before = reached < round;
        let keep = match parse_line(line, number)? {
            Event::Study(event) => {
                study = Some(event);
                true
            }
            Event::Candidate(event) if before || event.origin == Origin::Seed => shared.insert(event.id),
            Event::Rollout(event) => {
                let repeats = study.as_ref().map_or(1, |study| study.study.study.repeats);
                let further = event.split == Split::Optimize && event.repeat >= repeats;
                shared.contains(&event.candidate) && (before || !further)
            }
            Event::Round(event) => {
                reached = event.round + 1;
                before
            }
            Event::Learned(event) => event.round < round,
            // What failed or ended elsewhere says nothing about this run.
            Event::Failure(_) | Event::Finished(_) => false,
            _ => before,
        };
        if keep {
            kept.push(line.to_owned());
        }
    }
    if reached < round {
        return Err(JournalError::NoSuchRound { reached, round });
    }
    let study = study.ok_or_else(|| JournalError::Line {
        line: 1,
        reason: "the journal is empty".into(),
    })?;
    let from = study.id.clone();
    let steer = SteerEvent {
        round,
        branch: Some(Branch { from, round }),
        ..changes
    };
    steer.check(&study.study)?;
    let steer = serde_json::to_string(&Event::Steer(steer)).map_err(|error| JournalError::Line {
        line: number,
        reason: error.to_string(),
    })?;
    kept.push(steer);
    Ok(kept)
}
