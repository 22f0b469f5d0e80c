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

use crate::embedder::table_of_vectors;
use crate::error::BuildError;
use crate::pace::pace;
use crate::roles::{check_batch, check_roles, roles};
use crate::spec::ModelSpec;
use crate::table_checks::check_written;

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
        check_vectors(problem.study(), &asked)?;
        let read = |(&role, table)| {
            let spec = ModelSpec::parse(table);
            match spec.and_then(|spec| check_written(role, &spec).map(|()| spec)) {
                Ok(spec) => Ok((role, spec)),
                Err(message) => Err(BuildError::Spec { role, message }),
            }
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
            starts: Vec::new(),
        }
    }
}

/// Refuses a model of vectors that makes none, or that nobody asks.
fn check_vectors(study: &Study, asked: &[Role]) -> Result<(), SetupError> {
    if asked.contains(&Role::Embeddings) {
        table_of_vectors(&study.models)?;
    } else if study.models.contains_key(&Role::Embeddings) && !study.keeps_vectors() {
        let problem = "nobody asks for vectors: no metric of a table is a `similarity`, and no file keeps them \
                       (`workload.embeddings`); take the table out";
        return Err(StudyError::invalid("models.embeddings", problem).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture::{STUDY, problem};

    fn checked(asked: &[Role], study: &str) -> String {
        let problem = problem(study);
        check_vectors(problem.study(), asked)
            .err()
            .map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn a_model_of_vectors_must_make_some_for_somebody() {
        let with = |provider: &str| format!("{STUDY}\n[models.embeddings]\nprovider = {}", json!(provider));
        let asked = [Role::Agent, Role::Embeddings];
        assert_eq!(checked(&asked, &with("simulated")), "");
        let none = "models.embeddings: provider `anthropic` has no models that make vectors";
        assert!(checked(&asked, &with("anthropic")).starts_with(none));
        let idle = "`models.embeddings`: nobody asks for vectors";
        assert!(checked(&asked[..1], &with("simulated")).starts_with(idle));
        let kept = with("openai").replace("[prompt]", "embeddings = \"vectors.jsonl\"\n[prompt]");
        assert_eq!(checked(&asked[..1], &kept), "");
        let absent = check_roles(&asked, &problem(STUDY).study().models)
            .unwrap_err()
            .to_string();
        assert_eq!(
            absent,
            "no model for the role `embeddings`: add a table [models.embeddings]"
        );
    }
}
