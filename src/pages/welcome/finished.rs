//! A finished run of the built-in study, for the picture on the first page.
//!
//! `finished.json` is made by this file's test: `CAPO_BLESS=1 cargo test -p capo-web --lib finished`.

use serde::{Deserialize, Serialize};

use crate::charts::map::{MapData, MapPoint};
use crate::charts::unit::Unit;
use crate::format::Quantity;

/// What a finished run left on its map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct FinishedRun {
    /// Prompts in order of appearance.
    prompts: Vec<Prompt>,
    /// From the seed to the best prompt, as positions among the prompts.
    course: Vec<usize>,
}

/// One prompt of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Prompt {
    id: String,
    parent: Option<usize>,
    round: u32,
    /// In [0, 1].
    objective: f64,
    worst_residual: f64,
    feasible: bool,
}

impl FinishedRun {
    /// The run that came with this build.
    ///
    /// # Errors
    /// Never: a test reads it.
    pub(super) fn shipped() -> serde_json::Result<Self> {
        serde_json::from_str(include_str!("finished.json"))
    }

    pub(super) fn map(&self) -> MapData {
        let id = |place: usize| self.prompts.get(place).map(|prompt| prompt.id.clone());
        let points = self.prompts.iter().map(|prompt| MapPoint {
            id: prompt.id.clone(),
            parent: prompt.parent.and_then(id),
            round: prompt.round,
            objective: prompt.objective,
            worst_residual: prompt.worst_residual,
            feasible: prompt.feasible,
        });
        MapData {
            objective: "success".into(),
            unit: Unit(Quantity::Rate),
            axis: "success, %".into(),
            points: points.collect(),
            course: self.course.iter().filter_map(|place| id(*place)).collect(),
            best_name: "best prompt".into(),
        }
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use std::rc::Rc;

    use capo_core::arena::RunOptions;
    use capo_core::ids::CandidateId;
    use capo_core::journal::{Journal, MemoryJournal};
    use capo_core::problem::Problem;
    use capo_core::study::{Format, Study};
    use capo_models::Builder;
    use capo_workloads::files::MemoryFiles;
    use futures::executor::block_on;

    use super::*;
    use crate::run::map::Map;

    fn measured() -> Result<FinishedRun, Box<dyn std::error::Error>> {
        let study = Study::parse(include_str!("../../../studies/help-desk.toml"), Format::Toml)?;
        let workloads = capo_workloads::build(&study.workload, &MemoryFiles::new(), study.study.seed)?;
        let keys = std::collections::BTreeMap::new();
        let models = Builder::new(&keys).seed(study.study.seed).build(&study.models)?;
        let problem = Problem::new(study, workloads)?;
        let journal = Journal::create(Box::new(MemoryJournal::new()));
        let run = capo_core::optimize(problem, journal, Rc::new(models), RunOptions::default());
        let outcome = block_on(run)?;
        let map = Map::new(outcome.journal.state());
        let position = |id: &CandidateId| map.places.iter().position(|place| place.scored.candidate == *id);
        let three = |value: f64| (value * 1e3).round() / 1e3;
        Ok(FinishedRun {
            prompts: map
                .places
                .iter()
                .map(|place| Prompt {
                    id: place.scored.candidate.to_string()[..6].to_owned(),
                    parent: place.parents.first().and_then(position),
                    round: place.round,
                    objective: three(place.scored.objective.mean),
                    worst_residual: three(place.worst_residual.unwrap_or_default()),
                    feasible: place.scored.feasible,
                })
                .collect(),
            course: map.course.iter().filter_map(position).collect(),
        })
    }

    #[test]
    fn the_finished_run_is_what_the_study_gives() {
        let measured = measured().unwrap();
        if std::env::var_os("CAPO_BLESS").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/pages/welcome/finished.json");
            std::fs::write(path, serde_json::to_string(&measured).unwrap() + "\n").unwrap();
        }
        let shipped = FinishedRun::shipped().unwrap();
        assert_eq!(shipped, measured, "run this test once with CAPO_BLESS=1");
        let best = &shipped.prompts[*shipped.course.last().unwrap()];
        assert!(best.feasible, "the picture shows a course that ends on the water");
    }
}
