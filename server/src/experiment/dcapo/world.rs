//! Searches of a study, with simulated models or with a policy as the rewriter.

use std::path::Path;
use std::rc::Rc;

use burn_flex::Flex;
use capo_core::Outcome as Ended;
use capo_core::arena::Learner;
use capo_core::budget::Budget;
use capo_core::evaluate::Evaluation;
use capo_core::journal::{FileJournal, Fsync, Journal, MemoryJournal, Status};
use capo_core::llm::{Llm, Role};
use capo_core::study::{FeedbackForm, Rounds, Study};
use capo_core::workload::Split;
use capo_models::prices::PriceTable;
use capo_models::{Environment, serving};
use capo_rewriter::local::LocalRewriter;
use serde_json::json;

use super::DcapoError;
use crate::experiment::{Outcome, RunRecord, fresh};
use crate::session::{Session, SessionError, StudyFile, Wires, block_on};

/// How a policy is asked for rewrites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asking {
    /// Depth D: rewrites in a row, each of the last one's child.
    pub depth: u32,
    /// What it is told of its parent.
    pub form: FeedbackForm,
}

/// How far a search goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Extent {
    /// Rounds T of a search.
    pub rounds: u32,
    /// Parents of a round.
    pub parents: usize,
    /// Children of each parent.
    pub children: u32,
}

impl Extent {
    /// A study of this extent.
    fn apply(self, study: &mut Study) {
        study.study.rounds = Rounds::Count(self.rounds);
        study.method.insert("parents".into(), json!(self.parents));
        study.method.insert("children".into(), json!(self.children));
    }
}

/// Characters of the feedback where a policy reads trajectories itself: excerpts, one dialogue for each issue. Whole
/// ones would take a context several times as long, and training as much longer.
pub(super) const EXCERPTS: usize = 900;

/// A study that searches are made of.
pub(super) struct World<'a> {
    base: &'a StudyFile,
}

impl<'a> World<'a> {
    pub(super) fn new(base: &'a StudyFile) -> Self {
        Self { base }
    }

    /// The study with another seed and form of feedback, without a budget.
    fn study(&self, seed: u64, form: FeedbackForm, extent: Extent) -> Study {
        let mut study = self.base.study.clone();
        study.study.seed = seed;
        study.feedback.form = form;
        if form == FeedbackForm::Trajectory {
            study.feedback.cases = 1;
            study.feedback.max_characters = EXCERPTS;
        }
        study.budget = Budget::default();
        extent.apply(&mut study);
        study
    }

    /// A search by the simulated rewriter, of `capo` or of `dcapo` with more than one depth, over a journal in a file.
    pub(super) fn simulated(
        &self,
        seed: u64,
        asking: Asking,
        extent: Extent,
        journal: &Path,
    ) -> Result<(), DcapoError> {
        let mut study = self.study(seed, asking.form, extent);
        if asking.depth > 1 {
            study.study.method = "dcapo".into();
            study.method.insert("depth".into(), json!(asking.depth));
        } else {
            study.study.method = "capo".into();
            study.method.shift_remove("depth");
        }
        let journal = FileJournal::open(journal, Fsync::Never)
            .map_err(|error| SessionError::journal(journal, error))?;
        self.run(study, journal, None)?;
        Ok(())
    }

    /// A search by `dcapo` with a policy as the rewriter, which learns if there is a learner.
    pub(super) fn learned(
        &self,
        seed: u64,
        asking: Asking,
        extent: Extent,
        rewriter: Rc<LocalRewriter<Flex>>,
        learner: Option<Rc<dyn Learner>>,
    ) -> Result<Ended, DcapoError> {
        self.dcapo(seed, asking, extent, Some((rewriter, learner)))
    }

    /// A search by `dcapo` with a frozen policy as the rewriter, or with the study's own: what it returned and what it
    /// started from, on the examples searched on, held-out and fresh ones.
    pub(super) fn measured(
        &self,
        seed: u64,
        asking: Asking,
        extent: Extent,
        rewriter: Option<Rc<LocalRewriter<Flex>>>,
    ) -> Result<(Measured, Measured), DcapoError> {
        let policy = rewriter.map(|rewriter| (rewriter as Rc<dyn Llm>, None));
        let outcome = self.dcapo(seed, asking, extent, policy)?;
        let run = RunRecord::of("", seed, outcome.journal.state());
        let mut run = run.filter(|run| run.complete).ok_or_else(|| DcapoError::Search {
            seed,
            reason: "nothing was measured on held-out examples; give the study's workload some".into(),
        })?;
        let file = StudyFile {
            study: self.study(seed, asking.form, extent),
            ..self.base.clone()
        };
        let truths = fresh::Truths::default();
        fresh::measure(&file, &mut run, fresh::ROLLOUTS, None, None, &truths, None)?;
        Measured::of_run(run).ok_or_else(|| DcapoError::Search {
            seed,
            reason: "nothing was measured on fresh examples; its workload makes none".into(),
        })
    }

    fn dcapo(
        &self,
        seed: u64,
        asking: Asking,
        extent: Extent,
        policy: Option<Policy>,
    ) -> Result<Ended, DcapoError> {
        let mut study = self.study(seed, asking.form, extent);
        study.study.method = "dcapo".into();
        study.method.insert("depth".into(), json!(asking.depth));
        let journal = Journal::create(Box::new(MemoryJournal::new()));
        self.run(study, journal, policy)
    }

    fn run(&self, mut study: Study, journal: Journal, policy: Option<Policy>) -> Result<Ended, DcapoError> {
        let seed = study.study.seed;
        if policy.is_some()
            && let Some((_, critic)) = serving(Role::Critic, &study.models)
        {
            // A policy criticises nothing: whoever did before it goes on with that.
            let critic = critic.clone();
            study.models.insert(Role::Critic, critic);
        }
        let file = StudyFile {
            study,
            ..self.base.clone()
        };
        let (keys, prices) = (&Environment, PriceTable::shipped());
        let session = match policy {
            None => Session::new(&file, keys, prices)?,
            Some((rewriter, learner)) => {
                Session::with_rewriter(&file, keys, prices, Wires::default(), rewriter, learner)?
            }
        };
        let outcome = block_on(session.optimize(journal)).map_err(DcapoError::Runtime)??;
        match outcome.finished.status {
            Status::Feasible | Status::Infeasible => Ok(outcome),
            status => Err(DcapoError::Search {
                seed,
                reason: outcome
                    .finished
                    .reason
                    .clone()
                    .unwrap_or_else(|| format!("{status:?}")),
            }),
        }
    }

    /// What a prompt measures on held-out examples, each `repeats` times.
    pub(super) fn held_out(&self, seed: u64, repeats: u32, prompt: &str) -> Result<Evaluation, DcapoError> {
        let mut file = self.base.clone();
        file.study.study.seed = seed;
        file.study.study.repeats = repeats;
        file.study.budget = Budget::default();
        let session = Session::new(&file, &Environment, PriceTable::shipped())?;
        let journal = Journal::create(Box::new(MemoryJournal::new()));
        let measured = session.evaluate(journal, prompt, Split::Evaluate);
        let evaluation = block_on(measured).map_err(DcapoError::Runtime)??;
        match &evaluation.halt {
            None => Ok(evaluation),
            Some(halt) => Err(DcapoError::Search {
                seed,
                reason: halt.to_string(),
            }),
        }
    }
}

/// A prompt on the examples of a search.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Measured {
    /// On those searched on; none of the seed prompt.
    pub optimize: Option<Outcome>,
    /// On held-out ones.
    pub held_out: Outcome,
    /// On fresh ones.
    pub fresh: Outcome,
}

impl Measured {
    /// What a search returned and what it started from; `None` unless everything was measured.
    fn of_run(run: RunRecord) -> Option<(Self, Self)> {
        let returned = Self {
            optimize: run.optimize,
            held_out: run.evaluate?,
            fresh: run.fresh?,
        };
        let start = Self {
            optimize: None,
            held_out: run.seed_prompt?,
            fresh: run.seed_prompt_fresh?,
        };
        Some((returned, start))
    }
}

/// A rewriter, and what it learns by if it learns.
type Policy = (Rc<dyn Llm>, Option<Rc<dyn Learner>>);
