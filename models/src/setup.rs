//! From a study and its workloads to what a run needs of them: everybody who is asked has a model, and the models'
//! tables read.

use std::rc::Rc;

use capo_core::arena::{Clock, RunOptions};
use capo_core::control::Control;
use capo_core::journal::EarlierRuns;
use capo_core::llm::Role;
use capo_core::notice::Observer;
use capo_core::problem::Problem;
use capo_core::study::{Study, StudyError};
use capo_core::workload::Workload;
use indexmap::IndexMap;

use crate::error::BuildError;
use crate::pace::pace;
use crate::roles::{check_batch, check_roles, roles};
use crate::spec::ModelSpec;

/// A study joined with its workloads, and the models that it names.
pub struct Setup {
    /// The study with its workloads.
    pub problem: Problem,
    /// The tables `[models.ROLE]`, read.
    pub specs: IndexMap<Role, ModelSpec>,
}

/// Why a study cannot be run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SetupError {
    /// It asks of its workloads or its method what they cannot give.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// A table of its models does not read, or somebody who is asked has none.
    #[error(transparent)]
    Models(#[from] BuildError),
}

impl Setup {
    /// Joins a study with its workloads. No key is needed and nothing is asked yet.
    ///
    /// # Errors
    /// What is wrong with the study, or with which of its models.
    pub fn new(study: Study, workloads: Vec<Rc<dyn Workload>>) -> Result<Self, SetupError> {
        let problem = Problem::new(study, workloads)?;
        let asked = roles(&problem)?;
        check_roles(&asked, &problem.study().models)?;
        let read = |(&role, table)| match ModelSpec::parse(table) {
            Ok(spec) => Ok((role, spec)),
            Err(message) => Err(BuildError::Spec { role, message }),
        };
        let specs: IndexMap<Role, ModelSpec> = problem
            .study()
            .models
            .iter()
            .map(read)
            .collect::<Result<_, _>>()?;
        check_batch(&problem, &asked, &specs)?;
        Ok(Self { problem, specs })
    }

    /// How a run of it is carried out: `started_at` is now as RFC 3339 in UTC, `control` steers the run, and
    /// `observer` is told of its waits.
    pub fn options(
        &self,
        started_at: String,
        clock: Rc<dyn Clock>,
        control: Control,
        observer: Observer,
    ) -> RunOptions {
        let pace = pace(&self.specs);
        RunOptions {
            concurrency: pace.concurrency,
            attempts: pace.attempts,
            started_at,
            clock,
            control,
            observer: Some(observer),
            earlier: EarlierRuns::default(),
        }
    }
}
