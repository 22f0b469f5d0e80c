//! A prompt beside another one, one held-out example after another.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use capo_core::ids::CandidateId;
use capo_core::metric::PROMPT_LENGTH;
use capo_core::reading::comparison::PromptOf;
use capo_core::reading::examples::Examples;
use capo_core::reading::metrics::{self, StudiedMetric};
use capo_core::reading::{in_force, measured};
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
    /// What was measured with the first and with the second prompt, by metric, means over repeats.
    pub values: Vec<[Option<f64>; 2]>,
    /// The constraints whose thresholds it is over by itself with the second prompt.
    pub over: Vec<String>,
}

/// Every held-out example of the workload that measures the objective.
#[derive(Debug, Clone, PartialEq)]
pub struct ByExample {
    /// The two prompts.
    pub prompts: [CandidateId; 2],
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
    /// The prompt that a run started from and the one it returned; `None` where they are one, or not measured on held-out examples.
    pub fn seed_and_best(state: &RunState) -> Option<Self> {
        let best = PromptOf::best(state)?;
        let seed = PromptOf::seed(state).filter(|seed| seed.candidate != best.candidate)?;
        Self::of([seed, best])
    }

    /// Two prompts of one run, or of two that are [comparable](capo_core::reading::comparison::comparable), on what both
    /// studies look at. The second one's thresholds count. `None` where no example was measured with both.
    pub fn of(prompts: [PromptOf<'_>; 2]) -> Option<Self> {
        let [first, second] = prompts;
        let objective = metrics::objective(second.state)?;
        let mut metrics = metrics::of_study(second.state);
        metrics.retain(|metric| {
            metric.workload == objective.workload
                && metric.name() != PROMPT_LENGTH
                && metrics::named(first.state, metric.name()).is_some()
        });
        let workloads = &second.state.study()?.workloads;
        let (name, record) = workloads.get_index(usize::from(objective.workload))?;
        let held_out = prompts.map(|of| (of, Examples::whole(of.state, Split::Evaluate)));
        let measured: Vec<[Values; 2]> = metrics
            .iter()
            .map(|metric| {
                held_out
                    .each_ref()
                    .map(|(of, whole)| values(*of, metric.name(), whole))
            })
            .collect();
        let positions: BTreeSet<usize> = measured.first()?.iter().flat_map(Values::keys).copied().collect();
        let thresholds = in_force::thresholds(second.state, None);
        let pair = |position: &usize| {
            let at = |of_metric: &[Values; 2]| {
                let values = of_metric.each_ref();
                values.map(|values| values.get(position).copied().flatten())
            };
            let values: Vec<[Option<f64>; 2]> = measured.iter().map(at).collect();
            let over = metrics.iter().zip(&values).filter(|(metric, [_, second])| {
                let threshold = thresholds.get(metric.name());
                second
                    .zip(threshold)
                    .is_some_and(|(second, threshold)| second > *threshold)
            });
            Some(Pair {
                example: record.split(Split::Evaluate).get(*position)?.clone(),
                fate: fate(&values)?,
                over: over.map(|(metric, _)| metric.phrase()).collect(),
                values,
            })
        };
        let pairs: Vec<Pair> = positions.iter().filter_map(pair).collect();
        (!pairs.is_empty()).then(|| Self {
            prompts: prompts.map(|of| of.candidate),
            workload: (workloads.len() > 1).then(|| name.clone()),
            metrics,
            missing: positions.len() - pairs.len(),
            pairs,
        })
    }

    /// All of it as a table in CSV, with what the prompts are called in the names of its columns. Further columns have a name
    /// and texts by example.
    ///
    /// # Errors
    /// When it is not written, in words.
    pub fn csv(
        &self,
        prompts: [&str; 2],
        further: &[(String, BTreeMap<String, String>)],
    ) -> Result<String, String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut head = ["example", "result", "over by itself"]
            .map(str::to_owned)
            .to_vec();
        for metric in &self.metrics {
            head.extend(prompts.map(|prompt| inert(format!("{} {prompt}", metric.name()))));
        }
        head.extend(further.iter().map(|(name, _)| inert(name.clone())));
        writer.write_record(&head).map_err(|error| error.to_string())?;
        for pair in &self.pairs {
            let mut row = vec![
                inert(pair.example.clone()),
                pair.fate.word().to_owned(),
                inert(pair.over.join("; ")),
            ];
            let values = pair.values.iter().flatten();
            row.extend(values.map(|value| value.map_or_else(String::new, |value| value.to_string())));
            let texts = further.iter().map(|(_, texts)| texts.get(&pair.example));
            row.extend(texts.map(|text| inert(text.cloned().unwrap_or_default())));
            writer.write_record(&row).map_err(|error| error.to_string())?;
        }
        let bytes = writer.into_inner().map_err(|error| error.to_string())?;
        String::from_utf8(bytes).map_err(|error| error.to_string())
    }
}

/// What was measured with a prompt of a metric on each example of its workload, by position in the split.
type Values = BTreeMap<usize, Option<f64>>;

fn values(of: PromptOf<'_>, metric: &str, examples: &Examples) -> Values {
    let Some(metric) = metrics::named(of.state, metric) else {
        return Values::new();
    };
    let places = examples.places.get(usize::from(metric.workload));
    let values = measured::values(of.state, &of.candidate, &metric, examples);
    places.into_iter().flatten().copied().zip(values).collect()
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
    let [first, second] = *values.first()?;
    Some(match second?.total_cmp(&first?) {
        Ordering::Greater => ExampleChange::Better,
        Ordering::Less => ExampleChange::Worse,
        Ordering::Equal if values.iter().any(|[first, second]| first != second) => ExampleChange::OtherCosts,
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
        let mut found = ByExample::seed_and_best(&state).unwrap();
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
        let csv = found.csv(["seed", "best"], &[]).unwrap();
        assert_eq!(csv.lines().count(), 9);
        assert!(
            csv.starts_with("example,result,over by itself,success seed,success best,"),
            "{csv}"
        );
        found.pairs[0].example = "=1+1".into();
        let texts = [("=1+1".to_owned(), "=2, or \n3".to_owned())].into();
        let csv = found.csv(["seed", "best"], &[("note".into(), texts)]).unwrap();
        assert!(csv.lines().next().unwrap().ends_with(",note"), "{csv}");
        assert!(
            csv.contains("\n'=1+1,") && csv.contains(",\"'=2, or \n3\"\n"),
            "{csv}"
        );
    }

    #[test]
    fn two_runs_are_compared_on_what_both_measured_by_the_thresholds_of_the_second() {
        let mut events = events(|_| {}, None);
        let first = fold(&events);
        let best = |state| PromptOf::best(state).unwrap();
        let one = best(&first);
        let held_out = |event: &Event| {
            matches!(event, Event::Rollout(rollout)
                if rollout.split == Split::Evaluate && rollout.candidate == one.candidate)
        };
        events.remove(events.iter().rposition(held_out).unwrap());
        if let Event::Study(begun) = &mut events[0] {
            let constraints = &mut begun.study.constraints;
            constraints.retain(|constraint| constraint.metric == "excess_tools");
            constraints[0].threshold = Some(-1.0);
        }
        let second = fold(&events);
        let two = best(&second);
        let found = ByExample::of([one, two]).unwrap();
        let names: Vec<&str> = found.metrics.iter().map(StudiedMetric::name).collect();
        assert_eq!(names, ["success", "excess_tools"]);
        assert_eq!((found.pairs.len(), found.missing), (7, 1));
        assert_eq!(found.prompts, [one.candidate, two.candidate]);
        assert!(found.pairs.iter().all(|pair| pair.over == ["excess tools"]));
        assert_eq!(ByExample::of([two, one]).unwrap().pairs.len(), 7);
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
