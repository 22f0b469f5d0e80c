//! Parent → child pairs from the journals of runs: what supervised fine-tuning learns from.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use capo_core::ids::{CandidateId, Round};
use capo_core::journal::{FileJournal, JournalError, LineId, StoreError};
use capo_core::methods;
use capo_core::reading::in_force;
use capo_core::reading::rewrites::{ScoredRewrite, rewrites};
use capo_core::run_state::RunState;
use capo_core::study::{Study, StudyError, Table};
use capo_core::templates::{ObjectiveFacts, RewriteFacts, WeightedConstraint};
use serde::{Deserialize, Serialize};

use crate::error::RequestError;

/// Which pairs are learned from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PairSettings {
    /// Only pairs whose ΔJ is greater are kept; 0 keeps the successful ones.
    pub min_gain: f64,
    /// Share of the parents in [0, 1) whose pairs are held out from training.
    pub held_out: f64,
}

impl Default for PairSettings {
    fn default() -> Self {
        Self {
            min_gain: 0.0,
            held_out: 0.1,
        }
    }
}

impl PairSettings {
    /// # Errors
    ///
    /// [`RequestError::Setting`] names the setting outside its range.
    pub fn check(&self) -> Result<(), RequestError> {
        if !self.min_gain.is_finite() {
            return Err(RequestError::Setting {
                name: "min_gain",
                value: self.min_gain,
                range: "a finite number",
            });
        }
        if !(0.0..1.0).contains(&self.held_out) {
            return Err(RequestError::Setting {
                name: "held_out",
                value: self.held_out,
                range: "a share in [0, 1)",
            });
        }
        Ok(())
    }
}

/// A rewrite of a complete round, with what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// What the child was made from: parent, feedback, thresholds, λ_t, the parent's measurements.
    pub request: RewriteFacts,
    /// The child's text.
    pub child: String,
    /// J(parent) under λ_t.
    pub parent_lagrangian: f64,
    /// J(child) under λ_t.
    pub child_lagrangian: f64,
    /// Whether the child was kept in the next pool.
    pub retained: bool,
    /// Where the rewrite stands.
    pub place: Place,
}

impl Pair {
    /// ΔJ = J(child) − J(parent), both under λ_t.
    pub fn gain(&self) -> f64 {
        self.child_lagrangian - self.parent_lagrangian
    }
}

/// A line of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The journal's file.
    pub journal: PathBuf,
    /// From 1.
    pub line: usize,
    /// The round.
    pub round: Round,
}

/// How many rewrites were seen, and what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Journals read.
    pub journals: usize,
    /// Rewrites seen; all others are a part of them.
    pub rewrites: usize,
    /// Gave no child.
    pub childless: usize,
    /// Belong to a round that was not completed, so that nothing was scored.
    pub unfinished: usize,
    /// Gave a child, or improved on one, that could not be run or was turned down on a part of the examples.
    pub discarded: usize,
    /// ΔJ is not above the setting.
    pub no_gain: usize,
    /// Have parent, draft, feedback and child of an earlier one.
    pub duplicates: usize,
    /// Kept for training.
    pub training: usize,
    /// Kept apart from training.
    pub held_out: usize,
}

/// Why there are no pairs to learn from.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PairsError {
    /// A line is not what it must be.
    #[error("{path} line {line}: {reason}", path = .path.display())]
    Line {
        /// The journal's file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A run of a method without a rewriter.
    #[error("{path} is a run of `{method}`, which rewrites nothing: take runs of {others}", path = .path.display())]
    NoRewrites {
        /// The journal's file.
        path: PathBuf,
        /// The study's method.
        method: String,
        /// The methods that do.
        others: String,
    },
    /// Nothing is left to learn from.
    #[error(
        "no training pair is left of {rewrites} rewrites in {journals} journals: {childless} gave no child, {unfinished} belong to unfinished rounds, {discarded} led to prompts that were not measured whole, {no_gain} have no ΔJ above {min_gain}, {duplicates} are duplicates, {held_out} are held out; give more journals, or change the filter",
        rewrites = .tally.rewrites, journals = .tally.journals, childless = .tally.childless,
        unfinished = .tally.unfinished, discarded = .tally.discarded, no_gain = .tally.no_gain, duplicates = .tally.duplicates,
        held_out = .tally.held_out
    )]
    NothingLeft {
        /// What was seen.
        tally: Tally,
        /// The setting.
        min_gain: f64,
    },
    /// A setting is outside its range.
    #[error(transparent)]
    Setting(#[from] RequestError),
}

/// Pairs for training and for measuring it.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairs {
    /// To be learned, in the order of the journals; not empty.
    pub training: Vec<Pair>,
    /// Of other parents than those of training.
    pub held_out: Vec<Pair>,
    /// What was seen.
    pub tally: Tally,
}

impl Pairs {
    /// Reads the journals of runs, in the order given, and keeps the pairs that the settings want,
    /// of equal ones the first.
    ///
    /// # Errors
    ///
    /// A setting outside its range, a journal that does not read or is of a method without
    /// rewrites, and [`PairsError::NothingLeft`] when there is nothing to train on.
    pub fn read<P: AsRef<Path>>(journals: &[P], settings: &PairSettings) -> Result<Self, PairsError> {
        settings.check()?;
        let mut tally = Tally::default();
        let mut seen = HashSet::new();
        let (mut training, mut held_out) = (Vec::new(), Vec::new());
        for path in journals {
            for pair in read_journal(path.as_ref(), &mut tally)? {
                if pair.gain() <= settings.min_gain {
                    tally.no_gain += 1;
                } else if !seen.insert(key(&pair)) {
                    tally.duplicates += 1;
                } else if is_held_out(&pair.request.prompt, settings.held_out) {
                    held_out.push(pair);
                } else {
                    training.push(pair);
                }
            }
        }
        (tally.training, tally.held_out) = (training.len(), held_out.len());
        if training.is_empty() {
            let min_gain = settings.min_gain;
            return Err(PairsError::NothingLeft { tally, min_gain });
        }
        Ok(Self {
            training,
            held_out,
            tally,
        })
    }
}

/// Whether the pairs of a parent are held out: its hash, as a number in [0, 1), is below `share`. It
/// depends on the parent's text alone, so that no parent is on both sides, whatever else is read.
pub fn is_held_out(parent: &str, share: f64) -> bool {
    let hash = CandidateId::of(parent);
    let head = hash.bytes()[..8]
        .iter()
        .fold(0_u64, |head, byte| head << 8 | u64::from(*byte));
    // The upper 53 bits, which a float holds exactly.
    ((head >> 11) as f64) / ((1_u64 << 53) as f64) < share
}

/// Parent, feedback and child.
fn key(pair: &Pair) -> [CandidateId; 4] {
    let request = &pair.request;
    let draft = request.draft.as_deref().unwrap_or_default();
    [&request.prompt, draft, &request.feedback, &pair.child].map(CandidateId::of)
}

/// What a journal tells of rewrites.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPairs {
    /// The study, as the journal begins with it.
    pub study: Study,
    /// Rounds that were completed.
    pub rounds: usize,
    /// Their rewrites that gave a child, in the journal's order.
    pub pairs: Vec<Pair>,
}

/// All rewrites of a journal's complete rounds that gave a child, in its order. `tally` counts what
/// was seen.
///
/// # Errors
///
/// The journal does not read, or is of a method without rewrites.
pub fn read_journal(path: &Path, tally: &mut Tally) -> Result<Vec<Pair>, PairsError> {
    Ok(read_run(path, tally)?.pairs)
}

/// Like [`read_journal`], with the study and how far the run got.
///
/// # Errors
///
/// As [`read_journal`].
pub fn read_run(path: &Path, tally: &mut Tally) -> Result<RunPairs, PairsError> {
    let wrong = |line, reason| PairsError::Line {
        path: path.to_owned(),
        line,
        reason,
    };
    let mut state = RunState::default();
    FileJournal::read(path, |line, event| {
        let applied = state.apply(&event, line as LineId);
        applied.map_err(|reason| JournalError::Line { line, reason })
    })
    .map_err(|why| match why {
        JournalError::Store(why) => PairsError::Store(why),
        JournalError::Line { line, reason } => wrong(line, reason),
        other => wrong(1, other.to_string()),
    })?;
    let Some(study) = state.study().map(|event| event.study.clone()) else {
        return Err(wrong(1, "the journal is empty".into()));
    };
    if !has_rewrites(&study.study.method, &study.method).map_err(|why| wrong(1, why.to_string()))? {
        return Err(PairsError::NoRewrites {
            path: path.to_owned(),
            method: study.study.method,
            others: methods_with_rewrites(),
        });
    }
    let found = rewrites(&state).map_err(|missing| wrong(missing.line as usize, missing.reason))?;
    tally.journals += 1;
    tally.rewrites += found.len();
    tally.childless += found.childless;
    tally.discarded += found.discarded;
    tally.unfinished += found.unfinished;
    let pairs = found.scored.iter().map(|rewrite| {
        let line = rewrite.line as usize;
        let request = request(&state, &study, rewrite).map_err(|reason| wrong(line, reason))?;
        Ok(Pair {
            request,
            child: prompt(&state, rewrite.child),
            parent_lagrangian: rewrite.parent_score.lagrangian,
            child_lagrangian: rewrite.child_score.lagrangian,
            retained: rewrite.round.retained.contains(&rewrite.child),
            place: Place {
                journal: path.to_owned(),
                line,
                round: rewrite.round.round,
            },
        })
    });
    Ok(RunPairs {
        pairs: pairs.collect::<Result<_, PairsError>>()?,
        rounds: state.rounds().len(),
        study,
    })
}

/// What the rewriter was told, as the journal has it.
fn request(state: &RunState, study: &Study, rewrite: &ScoredRewrite<'_>) -> Result<RewriteFacts, String> {
    let round = rewrite.round;
    let thresholds = in_force::thresholds(state, Some(round.round));
    // The constraints in force in the round, in the study's order.
    let constraints = study.constraints.iter().filter_map(|constraint| {
        let multiplier = *round.multipliers.get(&constraint.metric)?;
        Some((&constraint.metric, multiplier))
    });
    let constraints = constraints.map(|(metric, multiplier)| {
        let cost = rewrite.evidence_score.costs.get(metric);
        let threshold = thresholds.get(metric);
        Ok(WeightedConstraint {
            cost: *cost.ok_or_else(|| format!("`{metric}` was not measured"))?,
            threshold: *threshold.ok_or_else(|| format!("`{metric}` has no threshold"))?,
            multiplier,
            metric: metric.clone(),
        })
    });
    let feedback = state.critique(rewrite.evidence(), round.round);
    Ok(RewriteFacts {
        objective: ObjectiveFacts {
            metric: study.objective.metric.clone(),
            value: rewrite.evidence_score.objective,
        },
        constraints: constraints.collect::<Result<_, String>>()?,
        prompt: prompt(state, rewrite.parent),
        draft: rewrite.draft.map(|draft| prompt(state, draft)),
        // What has no critique in the journal was rewritten without feedback.
        feedback: feedback.map_or_else(String::new, |feedback| feedback.to_string()),
    })
}

/// A candidate's text. The fold takes no rewrite in whose candidates it does not know.
fn prompt(state: &RunState, id: CandidateId) -> String {
    let candidate = state.candidate(&id);
    candidate.map_or_else(String::new, |candidate| candidate.prompt.to_string())
}

/// Whether runs of a method have rewrites.
fn has_rewrites(method: &str, settings: &Table) -> Result<bool, StudyError> {
    Ok(methods::build(method, settings)?.at_most(1).rewrites > 0)
}

fn methods_with_rewrites() -> String {
    let names = methods::ALL.iter().map(|entry| entry.name);
    let rewriting = names.filter(|name| has_rewrites(name, &Table::new()).unwrap_or(false));
    rewriting.collect::<Vec<_>>().join(", ")
}
