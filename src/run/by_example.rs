//! The best prompt beside the seed prompt, one held-out example after another.

use std::cmp::Ordering;

use capo_core::ids::CandidateId;
use capo_core::metric::PROMPT_LENGTH;
use capo_core::reading::examples::Examples;
use capo_core::reading::measured;
use capo_core::reading::metrics::{self, StudiedMetric};
use capo_core::reading::{in_force, lineage};
use capo_core::run_state::RunState;
use capo_core::workload::Split;

use super::studied::Shown as _;

/// What became of an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExampleChange {
    /// Its objective rose.
    Better,
    /// Its objective fell.
    Worse,
    /// Only its costs changed.
    OtherCosts,
    /// Nothing changed.
    Same,
}

impl ExampleChange {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::OtherCosts => "other costs",
            Self::Same => "the same",
        }
    }
}

/// An example as both prompts did it.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Its id.
    pub example: String,
    /// What became of it.
    pub fate: ExampleChange,
    /// What was measured with the seed and with the best prompt, by metric, means over repeats.
    pub values: Vec<[Option<f64>; 2]>,
    /// The constraints whose thresholds it is over by itself with the best prompt.
    pub over: Vec<String>,
}

/// Every held-out example of the workload that measures the objective.
#[derive(Debug, Clone, PartialEq)]
pub struct ByExample {
    /// The best prompt.
    pub best: CandidateId,
    /// The workload, where there are several.
    pub workload: Option<String>,
    /// The objective, then the constraints that differ from example to example.
    pub metrics: Vec<StudiedMetric>,
    /// In the order of the split.
    pub pairs: Vec<Pair>,
    /// Examples that one of the prompts was not measured on.
    pub missing: usize,
}

impl ByExample {
    /// Both prompts of a run that has ended; `None` where they are one, or not measured on held-out examples.
    pub fn best_and_seed(state: &RunState) -> Option<Self> {
        let best = state.finished()?.best?;
        let seed = lineage::seed(state).filter(|seed| *seed != best)?;
        let objective = metrics::objective(state)?;
        let mut metrics = metrics::of_study(state);
        metrics.retain(|metric| metric.workload == objective.workload && metric.name() != PROMPT_LENGTH);
        let workloads = &state.study()?.workloads;
        let (name, record) = workloads.get_index(usize::from(objective.workload))?;
        let whole = Examples::whole(state, Split::Evaluate);
        let positions = whole.places.get(usize::from(objective.workload))?;
        let measured: Vec<[Vec<Option<f64>>; 2]> = metrics
            .iter()
            .map(|metric| [seed, best].map(|prompt| measured::values(state, &prompt, metric, &whole)))
            .collect();
        let thresholds = in_force::thresholds(state, None);
        let pair = |(place, position): (usize, &usize)| {
            let at = |of_metric: &[Vec<Option<f64>>; 2]| {
                [0, 1].map(|prompt: usize| of_metric[prompt].get(place).copied().flatten())
            };
            let values: Vec<[Option<f64>; 2]> = measured.iter().map(at).collect();
            let over = metrics.iter().zip(&values).filter(|(metric, [_, best])| {
                let threshold = thresholds.get(metric.name());
                best.zip(threshold)
                    .is_some_and(|(best, threshold)| best > *threshold)
            });
            Some(Pair {
                example: record.split(Split::Evaluate).get(*position)?.clone(),
                fate: fate(&values)?,
                over: over.map(|(metric, _)| metric.phrase()).collect(),
                values,
            })
        };
        let pairs: Vec<Pair> = positions.iter().enumerate().filter_map(pair).collect();
        (!pairs.is_empty()).then(|| Self {
            best,
            workload: (workloads.len() > 1).then(|| name.clone()),
            metrics,
            missing: positions.len() - pairs.len(),
            pairs,
        })
    }

    /// All of it as a table in CSV.
    ///
    /// # Errors
    /// When it is not written, in words.
    pub fn csv(&self) -> Result<String, String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut head = ["example", "result", "over by itself"]
            .map(str::to_owned)
            .to_vec();
        for metric in &self.metrics {
            head.extend(["seed", "best"].map(|prompt| inert(format!("{} {prompt}", metric.name()))));
        }
        writer.write_record(&head).map_err(|error| error.to_string())?;
        for pair in &self.pairs {
            let mut row = vec![
                inert(pair.example.clone()),
                pair.fate.word().to_owned(),
                inert(pair.over.join("; ")),
            ];
            let values = pair.values.iter().flatten();
            row.extend(values.map(|value| value.map_or_else(String::new, |value| value.to_string())));
            writer.write_record(&row).map_err(|error| error.to_string())?;
        }
        let bytes = writer.into_inner().map_err(|error| error.to_string())?;
        String::from_utf8(bytes).map_err(|error| error.to_string())
    }
}

/// Words of a stranger as a cell that no spreadsheet takes for a formula.
fn inert(words: String) -> String {
    if words.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{words}")
    } else {
        words
    }
}

/// The objective comes first; `None` where one of the prompts has none.
fn fate(values: &[[Option<f64>; 2]]) -> Option<ExampleChange> {
    let [seed, best] = *values.first()?;
    Some(match best?.total_cmp(&seed?) {
        Ordering::Greater => ExampleChange::Better,
        Ordering::Less => ExampleChange::Worse,
        Ordering::Equal if values.iter().any(|[seed, best]| seed != best) => ExampleChange::OtherCosts,
        Ordering::Equal => ExampleChange::Same,
    })
}

#[cfg(test)]
mod tests {
    use capo_core::journal::Event;
    use capo_core::reading::comparison;

    use super::*;
    use crate::run::fixture::{events, finished, fold};

    #[test]
    fn examples_add_up_to_the_difference_that_the_result_tells() {
        let state = finished();
        let mut found = ByExample::best_and_seed(&state).unwrap();
        assert_eq!((found.pairs.len(), found.missing), (8, 0));
        let differences = comparison::best_minus_seed(&state, Split::Evaluate).metrics;
        for (place, metric) in found.metrics.iter().enumerate() {
            let changes = found.pairs.iter().map(|pair| {
                let [seed, best] = pair.values[place];
                best.unwrap() - seed.unwrap()
            });
            let mean = changes.sum::<f64>() / found.pairs.len() as f64;
            let told = differences
                .iter()
                .find(|difference| difference.metric.name() == metric.name());
            assert!(
                (mean - told.unwrap().paired.mean).abs() < 1e-9,
                "{}",
                metric.name()
            );
        }
        let csv = found.csv().unwrap();
        assert_eq!(csv.lines().count(), 9);
        assert!(
            csv.starts_with("example,result,over by itself,success seed,success best,"),
            "{csv}"
        );
        found.pairs[0].example = "=1+1".into();
        assert!(found.csv().unwrap().contains("\n'=1+1,"));
    }

    #[test]
    fn an_example_that_one_prompt_lacks_is_counted() {
        let mut events = events(|_| {}, None);
        let held_out =
            |event: &Event| matches!(event, Event::Rollout(rollout) if rollout.split == Split::Evaluate);
        let last = events.iter().rposition(held_out).unwrap();
        events.remove(last);
        let found = ByExample::best_and_seed(&fold(&events)).unwrap();
        assert_eq!((found.pairs.len(), found.missing), (7, 1));
    }

    #[test]
    fn the_objective_decides_before_costs_do() {
        let of = |values: [[f64; 2]; 2]| fate(&values.map(|pair| pair.map(Some)));
        assert_eq!(of([[0.0, 1.0], [0.0, 1.0]]), Some(ExampleChange::Better));
        assert_eq!(of([[1.0, 0.0], [1.0, 0.0]]), Some(ExampleChange::Worse));
        assert_eq!(of([[1.0, 1.0], [0.0, 1.0]]), Some(ExampleChange::OtherCosts));
        assert_eq!(of([[1.0, 1.0], [1.0, 1.0]]), Some(ExampleChange::Same));
        assert_eq!(fate(&[[Some(1.0), None]]), None);
    }
}
