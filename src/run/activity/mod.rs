//! The activity log: what happened, in the order it happened.
//!
//! [`Activity::follow`] is fed every event after the fold has taken it in, while a run goes on and
//! while a stored journal is read alike. Lines of a journal carry no time, so entries of a stored
//! run have none.

mod failures;
mod wording;

use std::collections::HashSet;

use capo_core::ids::{CandidateId, Round};
use capo_core::journal::{Event, RolloutEvent, RoundEvent};
use capo_core::reading::examples::Examples;
use capo_core::reading::lineage;
use capo_core::reading::measured;
use capo_core::run_state::RunState;
use capo_core::workload::Split;

use super::rounds::{on_screen, planned, under_way, written_in};
use super::sentence::Sentence;

pub use failures::{Failure, FailureRow, rows as failure_rows};
pub use wording::changed_by_hand;

/// What an entry is about, for the filters above the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A round began or closed.
    Round,
    /// A child was measured.
    Child,
    /// An effect failed. Never an answer, so never a score.
    Failure,
    /// A person changed something.
    Steering,
    /// The run went on, or ended.
    Run,
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Seconds since the run began; `None` when it was read from a stored journal.
    pub at: Option<f64>,
    /// What it is about.
    pub kind: Kind,
    /// What happened.
    pub headline: Sentence,
    /// What followed from it; empty when there is nothing to add.
    pub detail: Sentence,
    /// Whether to read it out when it arrives.
    pub announce: bool,
}

/// The activity log of a run.
#[derive(Debug, Clone, Default)]
pub struct Activity {
    entries: Vec<Entry>,
    failures: Vec<Failure>,
    /// The entry that each failure is told in.
    told_in: Vec<usize>,
    opened: HashSet<Round>,
    evaluated: HashSet<CandidateId>,
    first_feasible: bool,
    held_out: bool,
    tested: bool,
    /// Where the run stood when it ended, until it goes on.
    ended: Option<Stand>,
}

/// How far a run had come.
#[derive(Debug, Clone, Copy)]
struct Stand {
    /// Rounds that were closed.
    closed: Round,
    /// Whether another one was to come.
    goes_on: bool,
    rollouts: u64,
}

impl Stand {
    fn of(state: &RunState) -> Self {
        let closed = state.rounds().len() as Round;
        Self {
            closed,
            goes_on: planned(state).is_none_or(|planned| closed < planned),
            rollouts: state.rollouts().count(),
        }
    }
}

impl Activity {
    /// A log with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// The entries, oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Every failure, oldest first.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// How many entries are of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.entries.iter().filter(|entry| entry.kind == kind).count()
    }

    /// Takes an event in that `state` has taken in already. `at` is seconds since the run began.
    pub fn follow(&mut self, event: &Event, state: &RunState, at: Option<f64>) {
        if let Some(stand) = self.ended
            && !matches!(event, Event::Finished(_))
        {
            self.went_on(stand, at);
        }
        match event {
            Event::Study(_) | Event::Candidate(_) | Event::Batch(_) | Event::Learned(_) => {}
            Event::Critique(critique) => {
                let effect = failures::effect_of_critique(critique);
                self.answered(&effect, "Asked again, then answered.");
            }
            Event::Rollout(rollout) => {
                let outcome = match rollout.failed {
                    None => "Tried again, then answered.",
                    Some(_) => "Given up: it counts as the worst value.",
                };
                self.answered(&rollout.effect(), outcome);
                self.rollout(rollout, state, at);
            }
            Event::Rewrite(rewrite) => {
                let effect = failures::effect_of_rewrite(rewrite);
                let outcome = match rewrite.child {
                    Some(_) => "Asked again, then accepted.",
                    None => "Asked again in vain: the parent has a child less.",
                };
                self.answered(&effect, outcome);
            }
            Event::Failure(failure) => self.failure(failure, state, at),
            Event::Discard(discard) => {
                let headline = Sentence::default()
                    .prompt(discard.candidate)
                    .text(" cannot be run and leaves the search.");
                self.say(at, Kind::Failure, headline, Sentence::new(discard.reason.clone()));
            }
            Event::LeaveOut(left) => {
                let headline =
                    Sentence::new(format!("Example {} is left out for every prompt.", left.example));
                self.say(at, Kind::Failure, headline, Sentence::new(left.reason.clone()));
            }
            Event::Round(round) => self.closed(round, state, at),
            Event::Steer(steer) => {
                for headline in wording::steer(steer, state) {
                    let detail = Sentence::new("Written to the journal as a steer event.");
                    self.say(at, Kind::Steering, headline, detail);
                }
            }
            Event::Finished(finished) => {
                self.ended = Some(Stand::of(state));
                let (headline, detail) = wording::finished(finished, state);
                self.say(at, Kind::Run, headline, detail).announce = true;
            }
        }
    }

    /// Says that a stored run goes on from where it stands: what the journal holds already is not
    /// paid again.
    pub fn resumed(&mut self, state: &RunState, at: Option<f64>) {
        self.went_on(Stand::of(state), at);
    }

    fn went_on(&mut self, stand: Stand, at: Option<f64>) {
        self.ended = None;
        (self.held_out, self.tested) = (false, false);
        self.say(at, Kind::Run, wording::resumed(stand), Sentence::default())
            .announce = true;
    }

    fn say(&mut self, at: Option<f64>, kind: Kind, headline: Sentence, detail: Sentence) -> &mut Entry {
        let place = self.entries.len();
        self.entries.push(Entry {
            at,
            kind,
            headline,
            detail,
            announce: false,
        });
        &mut self.entries[place]
    }

    fn rollout(&mut self, rollout: &RolloutEvent, state: &RunState, at: Option<f64>) {
        if rollout.split == Split::Evaluate {
            if self.tested && self.held_out {
                return;
            }
            let reserve = Examples::reserve(state, usize::MAX);
            let (said, sentence) = if reserve.holds(state, &rollout.workload, &rollout.example) {
                (&mut self.tested, wording::testing(reserve.len()))
            } else {
                let examples = Examples::whole(state, Split::Evaluate).len();
                (&mut self.held_out, wording::evaluating(examples))
            };
            if !std::mem::replace(said, true) {
                self.say(at, Kind::Run, sentence, Sentence::default());
            }
            return;
        }
        let Some(open) = under_way(state) else { return };
        let is_child = state
            .candidate(&rollout.candidate)
            .is_some_and(|candidate| written_in(candidate) == on_screen(open));
        if !is_child {
            return;
        }
        if self.opened.insert(open) {
            let (headline, detail) = wording::opened(open, state, &self.failures);
            self.say(at, Kind::Round, headline, detail);
        }
        if self.evaluated.contains(&rollout.candidate) {
            return;
        }
        let examples = Examples::of_round(state, open);
        if measured::progress(state, &rollout.candidate, &examples).is_whole() {
            self.evaluated.insert(rollout.candidate);
            if let Some(headline) = wording::evaluated(rollout.candidate, open, &self.evaluated, state) {
                self.say(at, Kind::Child, headline, Sentence::default());
            }
        }
    }

    fn closed(&mut self, round: &RoundEvent, state: &RunState, at: Option<f64>) {
        let feasible = round.scores.values().any(|score| score.feasible);
        let of_seed = lineage::seed(state).and_then(|seed| round.scores.get(&seed));
        let seed_was = of_seed.is_some_and(|score| score.feasible);
        let is_first = feasible && !self.first_feasible && !seed_was;
        self.first_feasible |= feasible;
        let (headline, detail) = wording::closed(round, is_first, state);
        self.say(at, Kind::Round, headline, detail).announce = true;
    }
}
