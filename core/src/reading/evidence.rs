//! Evidence: what speaks for one prompt of a run, to be kept beside the prompt when the run is gone.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::journal::Status;
use crate::journal::run_state::RunState;
use crate::reading::examples::Examples;
use crate::reading::feasibility::{Feasibility, certificate_of};
use crate::reading::metrics::{self, StudiedMetric};
use crate::reading::{in_force, lineage, measured};
use crate::study::certificate::Certificate;
use crate::study::estimate::Estimate;
use crate::study::ids::CandidateId;
use crate::study::metric::MetricSpec;
use crate::study::workload::Split;

/// A prompt on held-out examples, beside the seed prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Name of the study.
    pub study: String,
    /// How the run ended.
    pub status: Status,
    /// The metric that the run raises.
    pub objective: String,
    /// What was measured in which units, the objective first, then the constraints.
    #[serde(default)]
    pub metrics: Vec<MetricSpec>,
    /// Thresholds at the end of the run, by metric.
    pub thresholds: IndexMap<String, f64>,
    /// Held-out estimates of the prompt by metric, the objective first, then the constraints; empty where it was not
    /// measured on all held-out examples.
    pub evaluation: IndexMap<String, Estimate>,
    /// The same of the seed prompt.
    pub seed_evaluation: IndexMap<String, Estimate>,
    /// On what the prompt is feasible.
    pub feasibility: Feasibility,
    /// Whether it may be called feasible, see [`Feasibility::holds`].
    pub holds: bool,
    /// Its test on the examples kept for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,
    /// Whether the journal came from elsewhere: its numbers follow from its lines, and nobody here knows who was asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub measured_elsewhere: bool,
}

impl Evidence {
    /// What a run says of a prompt; `None` until it has ended.
    pub fn of(state: &RunState, prompt: &CandidateId) -> Option<Self> {
        let (study, finished) = (&state.study()?.study, state.finished()?);
        let (metrics, examples) = (metrics::all(state), Examples::whole(state, Split::Evaluate));
        let held_out = |prompt: &CandidateId| -> IndexMap<String, Estimate> {
            let estimate = |metric: &StudiedMetric| {
                let estimate = measured::complete(state, prompt, metric, &examples)?;
                Some((metric.name().to_owned(), estimate))
            };
            metrics.iter().filter_map(estimate).collect()
        };
        let evaluation = held_out(prompt);
        let feasibility = Feasibility::of_prompt(state, finished, prompt, &evaluation);
        Some(Self {
            study: study.study.name.clone(),
            status: finished.status,
            objective: study.objective.metric.clone(),
            thresholds: in_force::thresholds(state, None),
            seed_evaluation: lineage::seed(state).as_ref().map(held_out).unwrap_or_default(),
            evaluation,
            holds: feasibility.holds(),
            feasibility,
            certificate: certificate_of(finished, prompt).cloned(),
            measured_elsewhere: false,
            metrics: metrics.into_iter().map(|metric| metric.spec).collect(),
        })
    }

    /// Whether the prompt keeps the threshold of a metric on the held-out examples; `None` where it has none, or was not
    /// measured there.
    pub fn keeps(&self, metric: &str) -> Option<bool> {
        let (estimate, threshold) = self.evaluation.get(metric).zip(self.thresholds.get(metric))?;
        Some(estimate.mean <= *threshold)
    }
}
