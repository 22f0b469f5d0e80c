//! The help desk of the simulated world as a kind of workload.

use std::rc::Rc;

use capo_core::study::Table;
use capo_world::desk::{ALL_TASKS, BATCH, Desk, DeskSettings};
use schemars::Schema;
use serde_json::Value;

use crate::files::Files;
use crate::kind::{Kind, Making, reseeded};
use crate::settings::{BuildError, Settings, Workloads, names, schema};

pub(crate) const KIND: Kind = Kind {
    summary: "A bicycle shop’s customers want orders, returns, exchanges and repairs; the agent talks to them and \
              acts through tools. Every task knows the right outcome.",
    failed: Some("{\"error\":"),
    shown_as_share: &[("human_requests", "calls per dialogue")],
    drawn,
    fresh,
    ..Kind::new(
        "desk",
        "Help desk",
        include_str!("../../studies/help-desk.toml"),
        || names::<DeskSettings>().to_vec(),
    )
};

pub(crate) const MAKING: Making = Making::by(build);

pub(crate) fn settings_schema() -> Schema {
    schema::<DeskSettings>()
}

fn number_of(settings: &Table, key: &str, usual: usize) -> usize {
    let set = settings.get(key).and_then(Value::as_u64);
    set.map_or(usual, |set| set as usize)
}

/// Where the tasks end that settings draw from.
fn end(settings: &Table) -> usize {
    let usual = DeskSettings::default();
    let asked =
        number_of(settings, "optimize", usual.optimize) + number_of(settings, "evaluate", usual.evaluate);
    number_of(settings, "skip", usual.skip) + asked.max(BATCH)
}

/// The split of another seed, of other tasks; none where there are no others.
fn drawn(settings: &Table, number: u64) -> Option<Table> {
    let mut drawn = reseeded(settings, number);
    if number > 0 {
        let skip = number_of(settings, "skip", DeskSettings::default().skip);
        let tasks = end(settings) - skip;
        // Half of all tasks are left for fresh ones.
        let others = ((ALL_TASKS / 2).saturating_sub(skip) / tasks).saturating_sub(1);
        let stretch = 1 + (number as usize - 1).checked_rem(others)?;
        drawn.insert("skip".into(), (skip + stretch * tasks).into());
    }
    Some(drawn)
}

/// One of the stretches of tasks behind those that the settings draw from.
fn fresh(settings: &Table, examples: u32, number: u64) -> Option<Table> {
    // Building draws one more, to search on.
    let (end, stretch) = (end(settings).max(ALL_TASKS / 2), examples as usize + 1);
    let stretches = ALL_TASKS.saturating_sub(end) / stretch;
    let skip = end + (number as usize).checked_rem(stretches)? * stretch;
    let mut fresh = settings.clone();
    for (key, value) in [("optimize", 1), ("evaluate", examples as usize), ("skip", skip)] {
        fresh.insert(key.into(), value.into());
    }
    Some(fresh)
}

fn build(mut settings: Settings, _: &dyn Files, _: u64) -> Result<Workloads, BuildError> {
    let own: DeskSettings = settings.take()?;
    settings.finish()?;
    let desk = Desk::new(own).map_err(|error| BuildError::Kind(error.to_string()))?;
    Ok(vec![Rc::new(desk)])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use capo_core::workload::Split;
    use serde_json::json;

    use super::*;
    use crate::files::MemoryFiles;

    fn of(settings: &Table, split: Split) -> HashSet<String> {
        let workloads = crate::build(settings, &MemoryFiles::new(), 0).unwrap();
        workloads[0].examples(split).iter().cloned().collect()
    }

    fn settings(more: &Value) -> Table {
        let more = more.as_object().unwrap().clone().into_iter();
        more.chain([("kind".into(), "desk".into())]).collect()
    }

    #[test]
    fn fresh_tasks_are_in_no_drawn_split_and_others_for_another_number() {
        for more in [
            json!({}),
            json!({ "optimize": 900, "evaluate": 300, "seed": 4 }),
            json!({ "skip": 60 }),
        ] {
            let settings = settings(&more);
            let mut fresh_tasks = HashSet::new();
            for number in 0..100 {
                let fresh = of(&fresh(&settings, 1000, number).unwrap(), Split::Evaluate);
                assert_eq!(fresh.len(), 1000);
                fresh_tasks.extend(fresh);
            }
            assert_eq!(fresh_tasks.len(), 100_000, "{more}");
            for number in [0, 1, 57, 99] {
                let drawn = drawn(&settings, number).unwrap();
                for split in [Split::Optimize, Split::Evaluate] {
                    assert!(fresh_tasks.is_disjoint(&of(&drawn, split)), "{more}, {number}");
                }
            }
        }
    }

    #[test]
    fn each_number_draws_from_tasks_of_its_own_and_0_the_given_split() {
        let settings = settings(&json!({ "optimize": 200, "evaluate": 50, "seed": 7 }));
        assert_eq!(drawn(&settings, 0).as_ref(), Some(&settings));
        let mut tasks = HashSet::new();
        for number in 0..40 {
            let drawn = drawn(&settings, number).unwrap();
            tasks.extend(of(&drawn, Split::Optimize));
            tasks.extend(of(&drawn, Split::Evaluate));
        }
        assert_eq!(tasks.len(), 40 * 250);
    }

    #[test]
    fn where_all_tasks_are_asked_for_none_is_fresh() {
        let all = settings(&json!({ "optimize": ALL_TASKS - 10, "evaluate": 10 }));
        assert_eq!(fresh(&all, 1000, 3), None);
        assert_eq!(drawn(&all, 1), None);
        let half = settings(&json!({ "optimize": ALL_TASKS / 4 + 10, "evaluate": 10 }));
        assert_eq!(drawn(&half, 1), None, "the only stretch is its own");
        assert_eq!(drawn(&half, 0), Some(half));
    }
}
