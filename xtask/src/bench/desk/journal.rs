//! What a journal says of the prompts that a search measured, in the order of its lines.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Every prompt with the rollouts and model calls before its first rollout, in that order.
    pub(super) measured: Vec<(String, (u64, u64))>,
    /// Of the prompts that met every threshold on all tasks of the search, the one of the highest objective; of equals the
    /// one that was returned, else the earliest.
    pub(super) best_feasible: Option<String>,
    /// Rollouts and model calls when the first of these had been measured on all of them, its own included.
    pub(super) first_feasible: Option<(u64, u64)>,
    /// Examples held out.
    pub(super) held_out: usize,
    /// Rollouts and model calls of the whole journal, held-out ones left out.
    pub(super) ended: (u64, u64),
}

/// Sums over the rollouts of a prompt.
#[derive(Default)]
struct Sums {
    rollouts: usize,
    by_metric: HashMap<String, f64>,
}

impl Found {
    /// Reads the journal of a search in one workload that `returned` a prompt.
    ///
    /// # Errors
    /// It cannot be read, or a line lacks what lines of its kind have.
    pub(super) fn read(path: &Path, returned: &str) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let lines = BufReader::new(file).lines();
        Self::of(lines.map(|line| Ok(serde_json::from_str(&line?)?)), returned)
            .with_context(|| format!("cannot make sense of {}", path.display()))
    }

    fn of(mut lines: impl Iterator<Item = Result<Value>>, returned: &str) -> Result<Self> {
        let begun = lines.next().context("it is empty")??;
        let study = &begun["study"];
        let objective = text(&study["objective"]["metric"])?;
        let constraints = study["constraint"]
            .as_array()
            .context("the study has no constraints")?;
        let limit = |constraint: &Value| {
            let threshold = constraint["threshold"].as_f64();
            Ok((
                text(&constraint["metric"])?,
                threshold.context("a threshold is open")?,
            ))
        };
        let limits: Vec<(String, f64)> = constraints.iter().map(limit).collect::<Result<_>>()?;
        let mut workloads = begun["workloads"]
            .as_object()
            .into_iter()
            .flat_map(|map| map.values());
        let workload = workloads.next().context("there is no workload")?;
        let count = |split: &str| workload[split].as_array().map(Vec::len);
        let whole = count("optimize").context("there are no examples")?;

        let mut found = Self {
            held_out: count("evaluate").unwrap_or_default(),
            ..Self::default()
        };
        let mut highest = f64::NEG_INFINITY;
        let mut prompts = HashMap::new();
        let mut sums: HashMap<String, Sums> = HashMap::new();
        for line in lines {
            let line = line?;
            let is_of_search = line["event"] != "rollout" || line["split"] == "optimize";
            let before = found.ended;
            if let (Some(usage), true) = (
                line["usage"].as_object(),
                is_of_search && line["event"] != "finished",
            ) {
                let calls = usage.values().filter_map(|role| role["calls"].as_u64());
                found.ended.1 += calls.sum::<u64>();
            }
            if line["event"] == "candidate" {
                prompts.insert(text(&line["id"])?, text(&line["prompt"])?);
            }
            if line["event"] != "rollout" || !is_of_search {
                continue;
            }
            found.ended.0 += 1;
            // What is measured again changes nothing of what was found when.
            if line["repeat"] != 0 {
                continue;
            }
            let candidate = text(&line["candidate"])?;
            let prompt: &String = prompts.get(&candidate).context("a prompt is missing")?;
            if !sums.contains_key(&candidate) {
                found.measured.push((prompt.clone(), before));
            }
            let of_it = sums.entry(candidate).or_default();
            of_it.rollouts += 1;
            for (metric, value) in line["measurements"].as_object().context("nothing was measured")? {
                *of_it.by_metric.entry(metric.clone()).or_default() += value.as_f64().context("no number")?;
            }
            ensure!(of_it.rollouts <= whole, "an example was measured twice");
            let mean = |metric: &str| of_it.by_metric.get(metric).map(|sum| sum / whole as f64);
            let meets =
                |(metric, threshold): &(String, f64)| mean(metric).is_some_and(|cost| cost <= *threshold);
            if of_it.rollouts == whole && limits.iter().all(meets) {
                found.first_feasible.get_or_insert(found.ended);
                let value = mean(&objective).context("the objective was not measured")?;
                if value > highest || (value == highest && prompt == returned) {
                    highest = value;
                    found.best_feasible = Some(prompt.clone());
                }
            }
        }
        Ok(found)
    }
}

fn text(value: &Value) -> Result<String> {
    value
        .as_str()
        .map(str::to_owned)
        .with_context(|| format!("{value} is no text"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rollout(candidate: &str, split: &str, success: f64, transfers: f64) -> Value {
        json!({
            "event": "rollout", "candidate": candidate, "split": split, "repeat": 0,
            "measurements": {"success": success, "transfers": transfers},
            "usage": {"agent": {"calls": 3}, "user": {"calls": 2}},
        })
    }

    fn candidate(id: &str) -> Value {
        json!({"event": "candidate", "id": id, "prompt": format!("prompt {id}")})
    }

    #[test]
    fn prompts_and_the_best_feasible_one_are_found_in_the_order_of_the_lines() {
        let lines = [
            json!({
                "event": "study",
                "study": {
                    "objective": {"metric": "success"},
                    "constraint": [{"metric": "transfers", "threshold": 0.5}],
                },
                "workloads": {"desk": {"optimize": ["1", "2"], "evaluate": ["3"]}},
            }),
            candidate("seed"),
            rollout("seed", "optimize", 1.0, 1.0),
            rollout("seed", "optimize", 1.0, 1.0),
            json!({"event": "rewrite", "usage": {"rewriter": {"calls": 1}}}),
            candidate("half"),
            rollout("half", "optimize", 1.0, 0.0),
            candidate("first"),
            rollout("first", "optimize", 0.0, 0.0),
            rollout("first", "optimize", 0.0, 1.0),
            candidate("best"),
            rollout("best", "optimize", 1.0, 0.0),
            rollout("best", "optimize", 0.0, 0.0),
            candidate("alike"),
            rollout("alike", "optimize", 0.0, 1.0),
            rollout("alike", "optimize", 1.0, 0.0),
            rollout("best", "evaluate", 0.0, 9.0),
            json!({"event": "finished", "usage": {"agent": {"calls": 100}}}),
        ];
        let of = |returned| Found::of(lines.iter().cloned().map(Ok), returned).unwrap();
        let measured = [
            ("seed", (0, 0)),
            ("half", (2, 11)),
            ("first", (3, 16)),
            ("best", (5, 26)),
            ("alike", (7, 36)),
        ];
        let found = Found {
            measured: measured.map(|(id, at)| (format!("prompt {id}"), at)).into(),
            best_feasible: Some("prompt best".to_owned()),
            first_feasible: Some((5, 26)),
            held_out: 1,
            ended: (9, 46),
        };
        assert_eq!(of("prompt seed"), found);
        assert_eq!(of("prompt alike").best_feasible.as_deref(), Some("prompt alike"));
    }

    #[test]
    fn a_journal_without_a_study_is_refused() {
        assert!(Found::of(std::iter::empty(), "").is_err());
        assert!(Found::of([Ok(candidate("a"))].into_iter(), "").is_err());
    }
}
