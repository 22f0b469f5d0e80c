//! The split of tasks: which are searched on, and which are held out.

use indexmap::{IndexMap, IndexSet};
use sha2::{Digest, Sha256};

use super::settings::{DomainName, SplitRule, Tau2Settings};
use super::shift;
use crate::embeddings::Embeddings;
use crate::settings::BuildError;

/// Ids of the tasks of both splits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Splits {
    pub(super) optimize: Vec<String>,
    pub(super) evaluate: Vec<String>,
}

/// The benchmark's named lists of tasks.
pub(super) type Lists = IndexMap<String, Vec<String>>;

/// Draws the splits from the lists. `text` says what a task is about, by its id.
pub(super) fn draw(
    settings: &Tau2Settings,
    lists: &Lists,
    embeddings: Option<&Embeddings>,
    text: impl Fn(&str) -> Result<String, BuildError>,
) -> Result<Splits, BuildError> {
    check_settings(settings, lists)?;
    let mut splits = match settings.split {
        SplitRule::Benchmark => {
            if settings.tasks.is_some() {
                return Err(BuildError::setting(
                    "workload.tasks",
                    "the benchmark's own split has its own tasks; leave `tasks` out, or write split = \"drawn\"",
                ));
            }
            let optimize = list(settings, lists, "train", "workload.split")?;
            let evaluate = list(settings, lists, "test", "workload.split")?;
            if let Some(both) = evaluate.iter().find(|id| optimize.contains(id)) {
                return Err(BuildError::setting(
                    "workload.split",
                    format!("split_tasks.json has the task `{both}` in both of its lists `train` and `test`"),
                ));
            }
            Splits { optimize, evaluate }
        }
        SplitRule::Drawn => by_share(settings, lists)?,
        SplitRule::ClusterShift => {
            let Splits { optimize, evaluate } = by_share(settings, lists)?;
            let clusters = shift::clusters(settings, &optimize, &evaluate, embeddings, text)?;
            Splits {
                optimize: shift::farthest(clusters),
                evaluate,
            }
        }
    };
    for (ids, count, key) in [
        (&mut splits.optimize, settings.optimize, "workload.optimize"),
        (&mut splits.evaluate, settings.evaluate, "workload.evaluate"),
    ] {
        let available = ids.len();
        match count {
            Some(count) if count > available => {
                return Err(BuildError::setting(
                    key,
                    format!("{count} tasks are asked for, but the split has {available}"),
                ));
            }
            Some(count) => ids.truncate(count),
            None => {}
        }
        if ids.is_empty() {
            return Err(BuildError::setting(key, "the split has no task"));
        }
    }
    Ok(splits)
}

/// Refuses settings that do not fit each other or the lists.
pub(super) fn check_settings(settings: &Tau2Settings, lists: &Lists) -> Result<(), BuildError> {
    if let Some(unknown) = settings
        .exclude
        .iter()
        .find(|id| !lists.values().flatten().any(|known| known == *id))
    {
        return Err(BuildError::setting(
            "workload.exclude",
            format!("no list of split_tasks.json has a task `{unknown}`"),
        ));
    }
    let of_shift = [
        ("clusters", settings.clusters.is_some()),
        ("embeddings", settings.embeddings.is_some()),
    ];
    if let Some((key, _)) = of_shift.iter().find(|(_, is_set)| *is_set)
        && settings.split != SplitRule::ClusterShift
    {
        return Err(BuildError::setting(
            format!("workload.{key}"),
            format!("only split = \"cluster-shift\" makes clusters; leave `{key}` out"),
        ));
    }
    Ok(())
}

/// So many of the tasks as the share says, which the seed draws.
pub(super) fn by_share(settings: &Tau2Settings, lists: &Lists) -> Result<Splits, BuildError> {
    let tasks = settings.tasks.as_deref().unwrap_or("base");
    let mut optimize = shuffled(list(settings, lists, tasks, "workload.tasks")?, settings.seed);
    let evaluate = optimize.split_off(share(settings.domain, optimize.len()));
    Ok(Splits { optimize, evaluate })
}

/// The tasks of a list that are not left out, each once. `key` asks for the list.
fn list(settings: &Tau2Settings, lists: &Lists, name: &str, key: &str) -> Result<Vec<String>, BuildError> {
    let ids = lists.get(name).ok_or_else(|| {
        let known: Vec<&str> = lists.keys().map(String::as_str).collect();
        BuildError::setting(
            key,
            format!(
                "split_tasks.json has no list `{name}`; there are {}",
                known.join(", ")
            ),
        )
    })?;
    let kept: IndexSet<&String> = ids.iter().filter(|id| !settings.exclude.contains(id)).collect();
    Ok(kept.into_iter().cloned().collect())
}

/// How many of `all` tasks are searched on: 74 of 94 for airline, as the paper writes, 74 of 114 for the others, rounded.
fn share(domain: DomainName, all: usize) -> usize {
    let (optimize, of) = match domain {
        DomainName::Airline => (74, 94),
        DomainName::Retail | DomainName::Telecom => (74, 114),
    };
    (all * optimize + of / 2) / of
}

/// By the SHA-256 of seed and id, so that a task left out leaves the others in the same order.
fn shuffled(mut ids: Vec<String>, seed: u64) -> Vec<String> {
    ids.sort_by_cached_key(|id| {
        let mut hash = Sha256::new();
        hash.update(seed.to_le_bytes());
        hash.update(id.as_bytes());
        <[u8; 32]>::from(hash.finalize())
    });
    ids
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;

    fn lists(count: usize) -> IndexMap<String, Vec<String>> {
        let ids = |range: std::ops::Range<usize>| range.map(|id| id.to_string()).collect();
        [
            ("base".to_owned(), ids(0..count)),
            ("train".to_owned(), ids(0..3)),
            ("test".to_owned(), ids(3..5)),
        ]
        .into()
    }

    fn settings(more: &serde_json::Value) -> Tau2Settings {
        let mut all = json!({ "domain": "airline", "data": "tau2", "split": "drawn" });
        all.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    fn draw(settings: &Tau2Settings, lists: &IndexMap<String, Vec<String>>) -> Result<Splits, BuildError> {
        // Of three kinds; every sixth task is of the last.
        super::draw(settings, lists, None, |id| {
            let wish = match id.parse::<u32>().map(|id| id % 6) {
                Ok(0..=2) => "cancel a flight and get the money back",
                Ok(3 | 4) => "add a bag to a reservation",
                _ => "complain about a delay",
            };
            Ok(format!("You want to {wish}."))
        })
    }

    #[test]
    fn the_drawn_split_keeps_its_share() {
        for (domain, all, optimize) in [
            ("airline", 94, 74),
            ("airline", 50, 39),
            ("retail", 114, 74),
            ("telecom", 114, 74),
        ] {
            let splits = draw(&settings(&json!({ "domain": domain })), &lists(all)).unwrap();
            assert_eq!(
                (splits.optimize.len(), splits.evaluate.len()),
                (optimize, all - optimize)
            );
            let both: HashSet<&String> = splits.optimize.iter().chain(&splits.evaluate).collect();
            assert_eq!(both.len(), all);
        }
    }

    #[test]
    fn the_seed_draws_and_a_task_left_out_moves_no_other() {
        let of = |more| draw(&settings(&more), &lists(50)).unwrap();
        assert_eq!(of(json!({})), of(json!({ "seed": 0 })));
        assert_ne!(of(json!({})), of(json!({ "seed": 1 })));
        let whole = of(json!({}));
        let left_out = whole.optimize[5].clone();
        let rest = of(json!({ "exclude": [left_out] }));
        let order: Vec<&String> = whole
            .optimize
            .iter()
            .chain(&whole.evaluate)
            .filter(|id| **id != left_out)
            .collect();
        assert_eq!(
            rest.optimize.iter().chain(&rest.evaluate).collect::<Vec<_>>(),
            order
        );
    }

    #[test]
    fn the_benchmarks_own_lists_are_taken_in_their_order_unless_another_split_is_asked_for() {
        let mut settings = settings(&json!({ "optimize": 2 }));
        settings.split = SplitRule::default();
        let splits = draw(&settings, &lists(5)).unwrap();
        assert_eq!(splits.optimize, ["0", "1"]);
        assert_eq!(splits.evaluate, ["3", "4"]);
    }

    #[test]
    fn a_shift_holds_out_what_is_drawn_and_searches_on_a_part_of_the_rest() {
        for more in [
            json!({}),
            json!({ "seed": 3 }),
            json!({ "exclude": ["4", "9"] }),
            json!({ "evaluate": 5 }),
        ] {
            let of = |split| {
                let mut settings = settings(&more);
                settings.split = split;
                draw(&settings, &lists(50)).unwrap()
            };
            let (drawn, shift) = (of(SplitRule::Drawn), of(SplitRule::ClusterShift));
            assert_eq!(shift.evaluate, drawn.evaluate, "{more}");
            assert!(shift.optimize.len() < drawn.optimize.len(), "{more}");
            let mut rest = drawn.optimize.iter();
            let in_order = shift.optimize.iter().all(|id| rest.any(|other| other == id));
            assert!(in_order, "{more}");
        }
    }

    #[test]
    fn counts_shorten_a_shift_and_choose_no_other_cluster() {
        let of = |more| draw(&settings(&more), &lists(50)).unwrap();
        let whole = of(json!({ "split": "cluster-shift" }));
        let short = of(json!({ "split": "cluster-shift", "optimize": 3, "evaluate": 1 }));
        assert_eq!(short.optimize, whole.optimize[..3]);
        assert_eq!(short.evaluate, whole.evaluate[..1]);
    }

    #[test]
    fn what_cannot_be_drawn_is_said() {
        for (more, message) in [
            (
                json!({ "optimize": 40 }),
                "workload.optimize: 40 tasks are asked for, but the split has 39",
            ),
            (
                json!({ "split": "benchmark", "tasks": "full" }),
                "workload.tasks: the benchmark's own split has its own tasks; leave `tasks` out, or write split = \"drawn\"",
            ),
            (
                json!({ "tasks": "full" }),
                "workload.tasks: split_tasks.json has no list `full`; there are base, train, test",
            ),
            (
                json!({ "exclude": ["x"] }),
                "workload.exclude: no list of split_tasks.json has a task `x`",
            ),
            (
                json!({ "clusters": 3 }),
                "workload.clusters: only split = \"cluster-shift\" makes clusters; leave `clusters` out",
            ),
            (
                json!({ "split": "benchmark", "clusters": 3 }),
                "workload.clusters: only split = \"cluster-shift\" makes clusters; leave `clusters` out",
            ),
            (
                json!({ "split": "cluster-shift", "clusters": 1 }),
                "workload.clusters: must be 2 to 19, half of the 39 tasks that are not held out, not 1",
            ),
            (
                json!({ "split": "cluster-shift", "clusters": 20 }),
                "workload.clusters: must be 2 to 19, half of the 39 tasks that are not held out, not 20",
            ),
            (
                json!({ "split": "cluster-shift", "clusters": 4 }),
                "workload.clusters: 4 clusters are asked for, but the tasks that are not held out have 3 different texts",
            ),
            (
                json!({ "split": "cluster-shift", "tasks": "train" }),
                "workload.split: clusters need 4 tasks that are not held out, and there are 2",
            ),
            (
                json!({ "evaluate": 0 }),
                "workload.evaluate: the split has no task",
            ),
        ] {
            let error = draw(&settings(&more), &lists(50)).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
