//! A new journal that starts from a round of another.

use std::collections::HashSet;

use super::event::{Branch, EffectName, Event, Origin, SteerEvent, StudyEvent};
use super::reader::{JournalError, parse_line};
use super::run_state::RunState;
use crate::study::ids::{CandidateId, Round};
use crate::study::workload::Split;

/// The lines of a journal that shares everything before `round` with another one and pays for
/// nothing of it again: later rollouts of the prompts they share come along too, for what a prompt
/// measures depends on no threshold. Not so later repeats beyond the study's own: a round's means
/// run over all repeats above it, and which of them the branch will ask for is its own affair. Which tests had begun on the
/// study's reserve comes along, since no journal undoes a test.
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
/// A line that does not parse or lacks its trace, a round that the other journal never reached, or changes that are
/// impossible.
pub fn branch<L: AsRef<str>>(
    lines: impl IntoIterator<Item = L>,
    round: Round,
    changes: SteerEvent,
) -> Result<Vec<String>, JournalError> {
    let mut kept = Vec::new();
    let mut study: Option<Box<StudyEvent>> = None;
    let mut shared = HashSet::new();
    let mut seed = None;
    let mut failures = Failures::default();
    let mut state = RunState::default();
    let (mut reached, mut number) = (0, 0);
    for line in lines {
        let line = line.as_ref();
        number += 1;
        let before = reached < round;
        let event = parse_line(line, number)?;
        let applied = state.apply(&event, number as u64);
        applied.map_err(|reason| JournalError::Line { line: number, reason })?;
        let keep = match event {
            Event::Study(event) => {
                study = Some(event);
                true
            }
            Event::Candidate(event) if before || matches!(event.origin, Origin::Seed | Origin::From) => {
                if event.origin == Origin::Seed {
                    seed = Some(event.id);
                }
                shared.insert(event.id)
            }
            Event::Rollout(event) if event.without_trace => return Err(JournalError::WithoutTraces),
            Event::Rollout(event) => {
                let repeats = study.as_ref().map_or(1, |study| study.study.study.repeats);
                let further = event.split == Split::Optimize && event.repeat >= repeats;
                let keep = shared.contains(&event.candidate) && (before || !further);
                if keep && event.failed.is_some() {
                    kept.extend(failures.take(&event.candidate, Some(event.example.as_str())));
                }
                keep
            }
            Event::Discard(event) if before => {
                kept.extend(failures.take(&event.candidate, None));
                true
            }
            // What the seed prompt fails on may be left out of thresholds that are relative to it.
            Event::LeaveOut(event) if before || (reached == 0 && seed == Some(event.candidate)) => {
                kept.extend(failures.take(&event.candidate, Some(event.example.as_str())));
                true
            }
            Event::Failure(event) => {
                failures.hold(event.of, line);
                false
            }
            Event::Round(event) => {
                reached = event.round + 1;
                before
            }
            Event::Learned(event) => event.round < round,
            // What ended elsewhere says nothing about this run, and what is waited for there is that one's.
            Event::Finished(_) | Event::Batch(_) => false,
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
    let tests = state.tests().cloned().map(|mut tests| {
        let own = tests
            .prompts
            .iter()
            .take_while(|one| shared.contains(*one))
            .count();
        tests.spent |= own < tests.prompts.len();
        tests.prompts.truncate(own);
        tests
    });
    let steer = SteerEvent {
        round,
        branch: Some(Branch { from, round, tests }),
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

/// Lines about rollouts that failed: they come along with what was decided on them, and else say nothing
/// about another run.
#[derive(Default)]
struct Failures {
    held: Vec<(CandidateId, String, String)>,
}

impl Failures {
    fn hold(&mut self, of: EffectName, line: &str) {
        if let EffectName::Rollout {
            candidate, example, ..
        } = of
        {
            self.held.push((candidate, example, line.to_owned()));
        }
    }

    /// The lines about a prompt, on one example or on any.
    fn take(&mut self, candidate: &CandidateId, example: Option<&str>) -> Vec<String> {
        let is_of = |(of, on, _): &(CandidateId, String, String)| {
            of == candidate && example.is_none_or(|example| on == example)
        };
        let taken = self
            .held
            .iter()
            .filter(|held| is_of(held))
            .map(|(.., line)| line.clone())
            .collect();
        self.held.retain(|held| !is_of(held));
        taken
    }
}
