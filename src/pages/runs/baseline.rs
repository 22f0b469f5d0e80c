//! The run that others are measured against: one of each project, and one of this browser's own.

use std::collections::BTreeSet;

use leptos::prelude::*;

use crate::format::Quantity;
use crate::storage::{RunRecord, keep_choice, kept_choice};

/// Where this browser keeps which runs these are: their ids, parted by commas.
const KEPT: &str = "capo.baselines";

/// What a run is listed under: its project, or this browser.
fn place(run: &RunRecord) -> Option<&str> {
    run.server.as_ref().map(|server| server.project.as_str())
}

/// Ids of the runs that others are measured against. Copies are the same.
#[derive(Clone, Copy)]
pub(super) struct Baselines(RwSignal<BTreeSet<String>>);

impl Baselines {
    /// Those that this browser keeps.
    pub(super) fn kept() -> Self {
        let ids = kept_choice(KEPT).unwrap_or_default();
        let ids = ids.split(',').filter(|id| !id.is_empty());
        Self(RwSignal::new(ids.map(str::to_owned).collect()))
    }

    /// The one among `all` that a run is measured against.
    pub(super) fn of<'a>(
        self,
        run: &RunRecord,
        mut all: impl Iterator<Item = &'a RunRecord>,
    ) -> Option<&'a RunRecord> {
        self.0
            .with(|ids| all.find(|other| ids.contains(&other.id) && place(other) == place(run)))
    }

    /// All of them, without telling the caller of changes; none where the page is left.
    pub(super) fn now(self) -> BTreeSet<String> {
        self.0.try_get_untracked().unwrap_or_default()
    }

    /// Makes a run one in place of the former, or none any more.
    pub(super) fn turn(self, id: &str, former: Option<&RunRecord>) {
        self.change(|ids| {
            let was = former.is_some_and(|former| ids.remove(&former.id) && former.id == id);
            if !was {
                ids.insert(id.to_owned());
            }
        });
    }

    /// Makes a run none any more.
    pub(super) fn forget(self, id: &str) {
        self.change(|ids| {
            ids.remove(id);
        });
    }

    fn change(self, change: impl FnOnce(&mut BTreeSet<String>)) {
        // The page may be left by then.
        let _ = self.0.try_update(|ids| {
            change(ids);
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            keep_choice(KEPT, Some(&ids.join(",")));
        });
    }
}

/// How a run stands to the baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Against {
    /// It is the baseline.
    Itself,
    /// How much more it reached and spent, in words; nothing where that cannot be said.
    Other {
        best: Option<String>,
        spent: Option<String>,
    },
}

impl Against {
    pub(super) fn new(run: &RunRecord, baseline: &RunRecord) -> Self {
        if run.id == baseline.id {
            return Self::Itself;
        }
        let (here, there) = (&run.progress, &baseline.progress);
        let differ = |quantity: Quantity, here: Option<f64>, there: Option<f64>| {
            Some(quantity.difference(here? - there?))
        };
        let same = !run.objective.is_empty() && run.objective == baseline.objective;
        let has_spent = here.rollouts > 0 && there.rollouts > 0;
        Self::Other {
            best: differ(Quantity::Rate, here.best, there.best).filter(|_| same),
            spent: differ(Quantity::Dollars, here.usd, there.usd).filter(|_| has_spent),
        }
    }

    /// The difference in the objective.
    pub(super) fn best(self) -> Option<String> {
        match self {
            Self::Itself => None,
            Self::Other { best, .. } => best,
        }
    }

    /// The difference in dollars.
    pub(super) fn spent(self) -> Option<String> {
        match self {
            Self::Itself => None,
            Self::Other { spent, .. } => spent,
        }
    }
}

#[cfg(test)]
mod tests {
    use capo_core::reading::progress::{Progress, Times};

    use super::*;
    use crate::storage::RunStatus;

    fn run(id: &str, best: Option<f64>, usd: Option<f64>) -> RunRecord {
        RunRecord {
            pilot: None,
            check: None,
            id: id.into(),
            name: String::new(),
            method: "capo".into(),
            about: String::new(),
            objective: "success".into(),
            status: RunStatus::Running,
            study: String::new(),
            created: 0.0,
            touched: 0.0,
            progress: Progress {
                best,
                usd,
                rollouts: 1,
                ..Progress::default()
            },
            times: Times::default(),
            server: None,
            notes: <_>::default(),
        }
    }

    #[test]
    fn what_a_run_reached_and_spent_stands_against_the_baseline() {
        let baseline = run("a", Some(0.7), Some(1.0));
        assert_eq!(Against::new(&baseline, &baseline), Against::Itself);
        let other = |run: &RunRecord| {
            let against = Against::new(run, &baseline);
            (against.clone().best(), against.spent())
        };
        let words = |words: &str| Some(words.to_owned());
        let better = run("b", Some(0.735), Some(0.6));
        assert_eq!(other(&better), (words("+3.5 pts"), words("−$0.40")));
        assert_eq!(other(&run("c", None, None)), (None, None), "nothing is known yet");
        let mut elsewhere = better;
        elsewhere.objective = "reward".into();
        assert_eq!(other(&elsewhere).0, None, "another objective");
    }
}
