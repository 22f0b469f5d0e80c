//! Failures, and what was done about them. A failure is never a score.

use capo_core::ids::CandidateId;
use capo_core::journal::{CritiqueEvent, EffectName, FailureEvent, RewriteEvent};
use capo_core::llm::FailureKind;
use capo_core::run_state::RunState;

use super::{Activity, Kind, wording};
use crate::run::sentence::Sentence;

/// A failed try of an effect.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The effect that failed, by what it was for.
    pub of: EffectName,
    /// What kind of failure.
    pub kind: FailureKind,
    /// What went wrong; redacted.
    pub message: String,
    /// What came of the effect in the end; `None` while it was not answered.
    pub outcome: Option<&'static str>,
}

impl Failure {
    /// The prompt it happened to.
    pub fn candidate(&self) -> CandidateId {
        match self.of {
            EffectName::Rollout { candidate, .. } | EffectName::Critique { candidate, .. } => candidate,
            EffectName::Rewrite { parent, .. } => parent,
        }
    }
}

/// Failures of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureRow {
    /// The kind in words: "Rate limit".
    pub kind: String,
    /// How many.
    pub times: usize,
    /// What was done about them, a sentence for each way it went.
    pub done: String,
}

/// Failures by kind, most first, those of one prompt or of all.
pub fn rows(failures: &[Failure], of: Option<CandidateId>) -> Vec<FailureRow> {
    let mut kinds: Vec<FailureKind> = Vec::new();
    let chosen: Vec<&Failure> = failures
        .iter()
        .filter(|failure| of.is_none_or(|of| failure.candidate() == of))
        .collect();
    for failure in &chosen {
        if !kinds.contains(&failure.kind) {
            kinds.push(failure.kind);
        }
    }
    let row = |kind: FailureKind| {
        let of_kind = || chosen.iter().filter(|failure| failure.kind == kind);
        let mut done: Vec<&str> = Vec::new();
        for outcome in of_kind().map(|failure| failure.outcome.unwrap_or("Not answered yet.")) {
            if !done.contains(&outcome) {
                done.push(outcome);
            }
        }
        FailureRow {
            kind: crate::format::label(&kind.to_string()),
            times: of_kind().count(),
            done: done.join(" "),
        }
    };
    let mut rows: Vec<FailureRow> = kinds.into_iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.times));
    rows
}

impl Activity {
    /// Tells of a failure. The same kind of failure right after another is told in the same entry.
    pub(super) fn failure(&mut self, event: &FailureEvent, state: &RunState, at: Option<f64>) {
        let repeats = self
            .told_in
            .last()
            .zip(self.failures.last())
            .filter(|(entry, last)| **entry + 1 == self.entries.len() && last.kind == event.kind)
            .map(|(entry, _)| *entry);
        self.failures.push(Failure {
            of: event.of.clone(),
            kind: event.kind,
            message: event.message.clone(),
            outcome: None,
        });
        let entry = repeats.unwrap_or_else(|| {
            let entry = self.say(at, Kind::Failure, Sentence::default(), Sentence::default());
            entry.announce = true;
            self.entries.len() - 1
        });
        self.told_in.push(entry);
        let times = self.told_in.iter().filter(|told| **told == entry).count();
        self.entries[entry].headline = wording::failure(event, times, state);
        self.tell_outcome(entry);
    }

    /// Notes that an effect was answered after all.
    pub(super) fn answered(&mut self, effect: &EffectName, outcome: &'static str) {
        let mut entries = Vec::new();
        for (failure, entry) in self.failures.iter_mut().zip(&self.told_in) {
            if failure.outcome.is_none() && failure.of == *effect {
                failure.outcome = Some(outcome);
                entries.push(*entry);
            }
        }
        for entry in entries {
            self.tell_outcome(entry);
        }
    }

    fn tell_outcome(&mut self, entry: usize) {
        let told = self.failures.iter().zip(&self.told_in);
        let told: Vec<&Failure> = told
            .filter(|(_, told)| **told == entry)
            .map(|(told, _)| told)
            .collect();
        let Some(last) = told.last() else { return };
        let open = told.iter().any(|failure| failure.outcome.is_none());
        let outcome = if open { None } else { last.outcome };
        let message = Sentence::new(format!("{}.", last.message.trim_end_matches('.')));
        self.entries[entry].detail = message
            .then(outcome.map_or_else(Sentence::default, Sentence::new))
            .then(Sentence::new("Nothing was counted as a score."));
    }
}

pub(super) fn effect_of_rewrite(event: &RewriteEvent) -> EffectName {
    EffectName::Rewrite {
        round: event.round,
        parent: event.parent,
        index: event.index,
    }
}

pub(super) fn effect_of_critique(event: &CritiqueEvent) -> EffectName {
    EffectName::Critique {
        candidate: event.candidate,
        round: event.round,
    }
}
