//! Parent → child pairs from the journals of runs: what supervised fine-tuning learns from.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use capo_core::ids::{CandidateId, Round};
use capo_core::journal::{Event, FileJournal, JournalError, LineId, RoundEvent, StoreError};
use capo_core::methods;
use capo_core::run_state::RunState;
use capo_core::score::Score;
use capo_core::study::{FeedbackForm, Study, StudyError, Table};
use capo_core::templates::{ObjectiveFacts, RewriteFacts, WeightedConstraint};
use indexmap::IndexMap;
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
    /// Whether the child was admitted to the next pool.
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
        /// From 1.
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
        "no training pair is left of {rewrites} rewrites in {journals} journals: {childless} gave no child, {unfinished} belong to unfinished rounds, {no_gain} have no ΔJ above {min_gain}, {duplicates} are duplicates, {held_out} are held out; give more journals, or change the filter",
        rewrites = .tally.rewrites, journals = .tally.journals, childless = .tally.childless,
        unfinished = .tally.unfinished, no_gain = .tally.no_gain, duplicates = .tally.duplicates,
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
    let mut reader = Reader::new(path);
    FileJournal::read(path, |line, event| reader.take(line, event)).map_err(|why| match why {
        JournalError::Store(why) => PairsError::Store(why),
        JournalError::Line { line, reason } => reader.wrong(line, reason),
        other => reader.wrong(1, other.to_string()),
    })?;
    let Some(study) = reader.state.study().map(|event| event.study.clone()) else {
        return Err(reader.wrong(1, "the journal is empty".into()));
    };
    if !has_rewrites(&study.study.method, &study.method).map_err(|why| reader.wrong(1, why.to_string()))? {
        return Err(PairsError::NoRewrites {
            path: path.to_owned(),
            method: study.study.method,
            others: methods_with_rewrites(),
        });
    }
    tally.journals += 1;
    tally.rewrites += reader.rewrites;
    tally.childless += reader.childless;
    tally.unfinished += reader.open.len();
    Ok(RunPairs {
        study,
        rounds: reader.state.rounds().len(),
        pairs: reader.pairs,
    })
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

/// The fold that finds pairs.
struct Reader<'a> {
    path: &'a Path,
    state: RunState,
    /// By metric, as far as they are frozen.
    thresholds: IndexMap<String, f64>,
    /// Rewrites of the round under way that gave a child, with their lines.
    open: Vec<(usize, Rewrite)>,
    pairs: Vec<Pair>,
    rewrites: usize,
    childless: usize,
}

struct Rewrite {
    round: Round,
    parent: CandidateId,
    draft: Option<CandidateId>,
    child: CandidateId,
}

impl<'a> Reader<'a> {
    fn new(path: &'a Path) -> Self {
        Self {
            path,
            state: RunState::default(),
            thresholds: IndexMap::new(),
            open: Vec::new(),
            pairs: Vec::new(),
            rewrites: 0,
            childless: 0,
        }
    }

    fn wrong(&self, line: usize, reason: String) -> PairsError {
        let path = self.path.to_owned();
        PairsError::Line { path, line, reason }
    }

    fn take(&mut self, line: usize, event: Event) -> Result<(), JournalError> {
        let refuse = |(line, reason)| JournalError::Line { line, reason };
        self.state
            .apply(&event, line as LineId)
            .map_err(|reason| refuse((line, reason)))?;
        match event {
            Event::Study(study) => {
                let constraints = study.study.constraints.into_iter();
                self.thresholds = constraints
                    .filter_map(|constraint| Some((constraint.metric, constraint.threshold?)))
                    .collect();
            }
            Event::Steer(steer) => self.thresholds.extend(steer.thresholds.into_iter().flatten()),
            Event::Rewrite(event) => {
                self.rewrites += 1;
                match event.child {
                    Some(child) => self.open.push((
                        line,
                        Rewrite {
                            round: event.round,
                            parent: event.parent,
                            draft: event.draft,
                            child,
                        },
                    )),
                    None => self.childless += 1,
                }
            }
            Event::Round(round) => {
                let of_round = |(_, rewrite): &mut (usize, Rewrite)| rewrite.round == round.round;
                let made: Vec<_> = self.open.extract_if(.., of_round).collect();
                for (line, rewrite) in made {
                    let pair = self
                        .pair(line, &rewrite, &round)
                        .map_err(|reason| refuse((line, reason)))?;
                    self.pairs.push(pair);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The pair of a rewrite whose round is complete, or what the journal lacks for it.
    fn pair(&self, line: usize, rewrite: &Rewrite, round: &RoundEvent) -> Result<Pair, String> {
        let Rewrite {
            parent, draft, child, ..
        } = *rewrite;
        let (from, to) = (score(round, parent)?, score(round, child)?);
        let evidence = draft.unwrap_or(parent);
        let seen = score(round, evidence)?;
        let request = RewriteFacts {
            objective: ObjectiveFacts {
                metric: self.study()?.objective.metric.clone(),
                value: seen.objective,
            },
            constraints: self.constraints(round, seen)?,
            prompt: self.prompt(parent)?,
            draft: draft.map(|draft| self.prompt(draft)).transpose()?,
            feedback: self.feedback(evidence, round.round)?,
        };
        Ok(Pair {
            request,
            child: self.prompt(child)?,
            parent_lagrangian: from.lagrangian,
            child_lagrangian: to.lagrangian,
            retained: round.retained.contains(&child),
            place: Place {
                journal: self.path.to_owned(),
                line,
                round: round.round,
            },
        })
    }

    fn study(&self) -> Result<&Study, String> {
        let study = self.state.study().ok_or("a rewrite before the study")?;
        Ok(&study.study)
    }

    fn prompt(&self, id: CandidateId) -> Result<String, String> {
        let candidate = self.state.candidate(&id);
        let candidate = candidate.ok_or_else(|| format!("candidate {} was never introduced", id.short()))?;
        Ok(candidate.prompt.to_string())
    }

    fn feedback(&self, parent: CandidateId, round: Round) -> Result<String, String> {
        match self.state.critique(parent, round) {
            Some(feedback) => Ok(feedback.to_string()),
            None if self.study()?.feedback.form == FeedbackForm::None => Ok(String::new()),
            // The first rewrites of a run of `dcapo` are made before there is any evidence.
            None if round == 0 && self.study()?.study.method == "dcapo" => Ok(String::new()),
            None => Err(format!(
                "the rewrite of {} in round {round} has no critique above it",
                parent.short()
            )),
        }
    }

    /// The constraints in force in a round with somebody's costs, in the study's order.
    fn constraints(&self, round: &RoundEvent, of: &Score) -> Result<Vec<WeightedConstraint>, String> {
        let constraints = self.study()?.constraints.iter();
        constraints
            .filter_map(|constraint| {
                let multiplier = *round.multipliers.get(&constraint.metric)?;
                Some((constraint.metric.clone(), multiplier))
            })
            .map(|(metric, multiplier)| {
                let threshold = self.thresholds.get(&metric);
                let cost = of.costs.get(&metric);
                Ok(WeightedConstraint {
                    cost: *cost.ok_or_else(|| format!("`{metric}` was not measured"))?,
                    threshold: *threshold.ok_or_else(|| format!("`{metric}` has no threshold"))?,
                    multiplier,
                    metric,
                })
            })
            .collect()
    }
}

fn score(round: &RoundEvent, id: CandidateId) -> Result<&Score, String> {
    let missing = || format!("round {} has no score of candidate {}", round.round, id.short());
    round.scores.get(&id).ok_or_else(missing)
}
