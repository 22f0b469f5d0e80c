//! Runs of one study under several methods and seeds, method by method.

use capo_core::budget::Budget;
use capo_core::estimate::Estimate;
use capo_core::journal::Status;
use capo_core::reading::feasibility::Feasibility;
use capo_core::reading::progress::Progress;
use capo_core::run_state::RunState;
use capo_core::study::Study;

use crate::charts::bands::{BandLine, BandPoint};
use crate::charts::unit::Unit;
use crate::format;
use crate::live::{Pause, Phase};
use crate::run::outcome;
use crate::run::series::RoundPoint;

/// A method, and the places of its runs among those compared.
pub(super) type Group = (String, Vec<usize>);

/// The runs of these studies by method, in the order in which methods come first: where the studies differ in method, its
/// settings and seed alone. A budget may have been raised since. Runs whose study is not known are in no group.
pub(super) fn by_method(studies: &[Option<Study>]) -> Option<Vec<Group>> {
    let shared = studies.iter().flatten().next().map(without_method)?;
    if studies
        .iter()
        .flatten()
        .any(|study| without_method(study) != shared)
    {
        return None;
    }
    let mut groups: Vec<Group> = Vec::new();
    for (place, study) in studies.iter().enumerate() {
        let Some(study) = study else { continue };
        let method = &study.study.method;
        match groups.iter_mut().find(|(of, _)| of == method) {
            None => groups.push((method.clone(), vec![place])),
            Some((_, places)) => {
                let mut others = places.iter().filter_map(|other| studies[*other].as_ref());
                let is_another_seed =
                    others.all(|other| other.method == study.method && other.study.seed != study.study.seed);
                if !is_another_seed {
                    return None;
                }
                places.push(place);
            }
        }
    }
    let runs = groups.iter().map(|(_, places)| places.len());
    (runs.sum::<usize>() > 1).then_some(groups)
}

fn without_method(study: &Study) -> Study {
    let mut shared = study.clone();
    shared.budget = Budget::default();
    shared.method.clear();
    let search = &mut shared.study;
    (search.name, search.method, search.seed) = <_>::default();
    // What a method that takes no batches does without.
    (search.batch, search.batch_growth) = (None, None);
    // A journal holds what a relative threshold came to.
    for constraint in &mut shared.constraints {
        if constraint.relative_to_seed.is_some() {
            constraint.threshold = None;
        }
    }
    shared
}

/// Whether a run counts among those of its method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// As far as it has come.
    Going,
    /// To its end.
    Ended,
    /// Not: it failed, was stopped, or cannot be read.
    LeftOut,
}

/// What a run is doing, in a word or two.
pub(super) fn doing(phase: &Phase, ended: Option<Status>) -> (&'static str, Standing) {
    match (phase, ended) {
        (Phase::Running | Phase::Pausing | Phase::InAnotherTab, _) => ("running", Standing::Going),
        (Phase::Queued(_), _) => ("queued", Standing::Going),
        (Phase::Failed(_), _) => ("broke off", Standing::LeftOut),
        (Phase::Unreadable(_), _) => ("not readable", Standing::LeftOut),
        (Phase::Paused(why), _) if *why != Pause::Stopped => ("paused", Standing::Going),
        (_, Some(status @ (Status::Failed | Status::Stopped))) => (outcome::ended(status), Standing::LeftOut),
        (_, Some(status)) => (outcome::ended(status), Standing::Ended),
        // It never began.
        (Phase::Paused(_), None) => (outcome::ended(Status::Stopped), Standing::LeftOut),
        (_, None) => ("not finished", Standing::Going),
    }
}

/// A run of a method.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) seed: u64,
    /// What it is doing, in a word or two.
    pub(super) doing: &'static str,
    pub(super) standing: Standing,
    /// The objective of the best prompt that is feasible on the search examples, after so many rollouts, in order.
    pub(super) course: Vec<(u64, f64)>,
    /// What it has come to and spent.
    pub(super) progress: Progress,
    /// What it returned; none before it has ended.
    pub(super) returned: Option<Returned>,
}

/// The prompt that a run returned.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Returned {
    pub(super) prompt: String,
    pub(super) feasibility: Feasibility,
    /// Its objective on the held-out examples; none where it was not measured there.
    pub(super) held_out: Option<f64>,
}

impl Returned {
    /// That of a run which has ended.
    pub(super) fn of(state: &RunState) -> Option<Self> {
        let finished = state.finished()?;
        let objective = &state.study()?.study.objective.metric;
        Some(Self {
            prompt: state.candidate(&finished.best?)?.prompt.to_string(),
            feasibility: Feasibility::of(state, finished),
            held_out: finished.evaluation.get(objective).map(|estimate| estimate.mean),
        })
    }
}

/// See [`Entry::course`]. The seed is measured before the first round closes.
pub(super) fn course(state: &RunState, rounds: &[RoundPoint]) -> Vec<(u64, f64)> {
    let closed = rounds.iter().filter_map(|point| {
        let spent = state
            .spent_by_round()
            .get((point.round as usize).checked_sub(1)?)?;
        Some((spent.rollouts, point.best_feasible.as_ref()?.objective.mean))
    });
    closed.collect()
}

impl Entry {
    /// Its objective after so many rollouts: one that has ended keeps it.
    fn after(&self, rollouts: u64) -> Option<f64> {
        let is_known = self.standing == Standing::Ended || rollouts <= self.progress.rollouts;
        let mut before = self.course.iter().rev().filter(|_| is_known);
        before.find(|(at, _)| *at <= rollouts).map(|(_, value)| *value)
    }

    /// The objective of what it returned: held out, or on the search examples where nothing is.
    pub(super) fn reached(&self, held_out: bool) -> Option<f64> {
        let returned = self.returned.as_ref()?;
        if held_out {
            returned.held_out
        } else {
            self.progress.best
        }
    }
}

/// The runs of a method, seed by seed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lane {
    /// Its name on screens.
    pub(super) method: String,
    pub(super) entries: Vec<Entry>,
}

impl Lane {
    /// Those that are not left out.
    fn counted(&self) -> impl Iterator<Item = &Entry> {
        let entries = self.entries.iter();
        entries.filter(|entry| entry.standing != Standing::LeftOut)
    }

    /// What those returned that have ended.
    pub(super) fn returned(&self) -> impl Iterator<Item = &Returned> {
        self.counted().filter_map(|entry| entry.returned.as_ref())
    }

    /// The mean over its seeds, and the lowest and the highest, by rollouts.
    pub(super) fn line(&self) -> BandLine {
        let courses = self.counted().flat_map(|entry| &entry.course);
        let mut at: Vec<u64> = courses.map(|(rollouts, _)| *rollouts).collect();
        // From there on it is not known of a run that goes on.
        at.extend(self.counted().map(|entry| entry.progress.rollouts + 1));
        at.sort_unstable();
        at.dedup();
        let end = self.counted().map(|entry| entry.progress.rollouts).max();
        let end = end.unwrap_or_default();
        let point = |rollouts: u64| {
            let values: Vec<f64> = self.counted().filter_map(|entry| entry.after(rollouts)).collect();
            let estimate = Estimate::of(&values)?;
            Some(BandPoint {
                rollouts: rollouts as f64,
                mean: estimate.mean,
                low: values.iter().copied().fold(f64::INFINITY, f64::min),
                high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                n: estimate.n,
            })
        };
        BandLine {
            name: self.method.clone(),
            points: at.into_iter().filter(|at| *at <= end).filter_map(point).collect(),
            end: end as f64,
        }
    }

    /// How many of its runs have ended.
    pub(super) fn ended(&self) -> usize {
        let entries = self.entries.iter();
        entries.filter(|entry| entry.standing == Standing::Ended).count()
    }

    /// What is to be said beside [`Lane::reached`]: that it is of fewer runs than have ended, or of prompts over a threshold.
    pub(super) fn caveat(&self, held_out: bool) -> Option<String> {
        let measured = self.counted().filter(|entry| entry.reached(held_out).is_some());
        let prompts: Vec<&Returned> = measured.filter_map(|entry| entry.returned.as_ref()).collect();
        let over = prompts.iter().filter(|prompt| !prompt.feasibility.is_borne_out());
        let (of, ended, over) = (prompts.len(), self.ended(), over.count());
        let few = (1..ended).contains(&of).then(|| format!("{of} of {ended} seeds"));
        let over = (over > 0).then(|| format!("{over} over a threshold"));
        let words: Vec<String> = few.into_iter().chain(over).collect();
        (!words.is_empty()).then(|| format!("({})", words.join(", ")))
    }

    /// The objective of what its runs returned, with the standard error over seeds.
    pub(super) fn reached(&self, held_out: bool) -> Option<Estimate> {
        let reached: Vec<f64> = self
            .counted()
            .filter_map(|entry| entry.reached(held_out))
            .collect();
        Estimate::of(&reached)
    }

    /// Of its runs that have ended, the one whose prompt holds and reaches most.
    pub(super) fn best(&self, held_out: bool) -> Option<(&Entry, &Returned)> {
        let ended = self.counted();
        let ended = ended.filter_map(|entry| Some((entry, entry.returned.as_ref()?)));
        let key = |(entry, returned): &(&Entry, &Returned)| {
            (
                returned.feasibility.is_borne_out(),
                entry.reached(held_out).unwrap_or_default(),
            )
        };
        ended.max_by(|one, other| {
            let ((holds, reached), (also, most)) = (key(one), key(other));
            holds.cmp(&also).then(reached.total_cmp(&most))
        })
    }

    /// What its runs are doing: "2 finished, 1 queued".
    pub(super) fn doing(&self) -> String {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for entry in &self.entries {
            match counts.iter_mut().find(|(doing, _)| *doing == entry.doing) {
                Some((_, count)) => *count += 1,
                None => counts.push((entry.doing, 1)),
            }
        }
        let words = counts.iter().map(|(doing, count)| format!("{count} {doing}"));
        words.collect::<Vec<_>>().join(", ")
    }
}

/// What runs have spent together, those that are left out with them.
pub(super) fn spent<'a>(entries: impl Iterator<Item = &'a Entry>) -> Progress {
    let nothing = Progress {
        usd: Some(0.0),
        ..Progress::default()
    };
    entries.fold(nothing, |sum, Entry { progress, .. }| Progress {
        rollouts: sum.rollouts + progress.rollouts,
        calls: sum.calls + progress.calls,
        tokens: sum.tokens + progress.tokens,
        usd: sum.usd.zip(progress.usd).map(|(sum, usd)| sum + usd),
        ..sum
    })
}

/// Where the lines end, the highest first, and which runs they leave out.
pub(super) fn reading(lanes: &[Lane], unit: Unit) -> String {
    let lines: Vec<BandLine> = lanes.iter().map(Lane::line).collect();
    let mut ends: Vec<(&BandLine, &BandPoint)> = lines
        .iter()
        .filter_map(|line| Some((line, line.points.last()?)))
        .collect();
    ends.sort_by(|a, b| b.1.mean.total_cmp(&a.1.mean));
    let end = |(line, point): &(&BandLine, &BandPoint)| {
        let (rollouts, mean) = (format::count(line.end as u64), unit.value(point.mean));
        let seeds = format::counted(point.n, "seed");
        format!("{} {mean} ({seeds}, {rollouts} rollouts)", line.name)
    };
    let without = lines.iter().filter(|line| line.points.is_empty());
    let without = without.map(|line| format!("{} none yet", line.name));
    let ends: Vec<String> = ends.iter().map(end).chain(without).collect();
    let drawn = format!(
        "Mean over seeds of the best prompt so far that is feasible on the search examples: {}. Bands reach from the \
         lowest to the highest seed; a seed without such a prompt is in neither.",
        ends.join(", ")
    );
    let left_out = lanes.iter().flat_map(|lane| {
        let entries = lane.entries.iter();
        let left_out = entries.filter(|entry| entry.standing == Standing::LeftOut);
        left_out.map(|entry| format!("{}, seed {} ({})", lane.method, entry.seed, entry.doing))
    });
    match &left_out.collect::<Vec<_>>()[..] {
        [] => drawn,
        left_out => {
            let left_out = left_out.join("; ");
            format!("{drawn} Left out of lines, bands and means, not of what was spent: {left_out}.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Quantity;
    use crate::run::fixture;
    use crate::run::series::Series;

    fn study(method: &str, seed: u64) -> Study {
        let mut study = crate::studies::help_desk().unwrap();
        (study.study.method, study.study.seed) = (method.to_owned(), seed);
        study.method.clear();
        study
    }

    fn entry(seed: u64, standing: Standing, rollouts: u64, course: &[(u64, f64)]) -> Entry {
        Entry {
            id: seed.to_string(),
            seed,
            doing: match standing {
                Standing::Going => "running",
                Standing::Ended => "finished",
                Standing::LeftOut => "failed",
            },
            standing,
            course: course.to_vec(),
            progress: Progress {
                rollouts,
                usd: Some(0.5),
                ..Progress::default()
            },
            returned: None,
        }
    }

    #[test]
    fn runs_of_one_study_are_grouped_by_method_where_seeds_differ() {
        let race = |change: &dyn Fn(&mut [Study; 4])| {
            let of = |(method, seed)| study(method, seed);
            let mut race = [("capo", 0), ("gepa", 0), ("capo", 1), ("gepa", 1)].map(of);
            change(&mut race);
            race.map(Some)
        };
        let mut all = race(&|race| race[3].budget.rollouts = Some(9));
        let groups = by_method(&all).unwrap();
        assert_eq!(groups, [("capo".into(), vec![0, 2]), ("gepa".into(), vec![1, 3])]);
        assert_eq!(by_method(&all[..2]).unwrap().len(), 2, "one seed each");
        assert_eq!(by_method(&all[..1]), None);
        // One was deleted.
        all[0] = None;
        let groups = by_method(&all).unwrap();
        assert_eq!(groups, [("gepa".into(), vec![1, 3]), ("capo".into(), vec![2])]);
        let other = race(&|race| race[1].constraints[0].threshold = Some(0.1));
        assert_eq!(by_method(&other), None, "another study");
        let twice = race(&|race| race[2].study.seed = 0);
        assert_eq!(by_method(&twice), None, "a seed twice");
    }

    #[test]
    fn a_line_is_the_mean_of_what_is_known_and_its_band_from_lowest_to_highest() {
        let lane = Lane {
            method: "GEPA".into(),
            entries: vec![
                entry(0, Standing::Ended, 90, &[(10, 0.4), (30, 0.6)]),
                entry(1, Standing::Ended, 100, &[(20, 0.8)]),
                entry(2, Standing::Going, 40, &[(40, 0.1)]),
                entry(3, Standing::LeftOut, 70, &[(5, 1.0)]),
            ],
        };
        let line = lane.line();
        let of = |rollouts: f64| {
            *line
                .points
                .iter()
                .rfind(|point| point.rollouts <= rollouts)
                .unwrap()
        };
        assert_eq!((of(10.0).mean, of(10.0).n), (0.4, 1));
        assert_eq!((of(40.0).low, of(40.0).high, of(40.0).n), (0.1, 0.8, 3));
        assert!((of(100.0).mean - 0.7).abs() < 1e-12 && of(100.0).n == 2);
        assert_eq!(line.end, 100.0);
        assert_eq!(lane.doing(), "2 finished, 1 running, 1 failed");
        let spent = spent(lane.entries.iter());
        assert_eq!((spent.rollouts, spent.usd), (300, Some(2.0)));
        let words = reading(&[lane], Unit(Quantity::Rate));
        assert!(words.contains("GEPA 70.0% (two seeds, 100 rollouts)"), "{words}");
        assert!(words.ends_with("spent: GEPA, seed 3 (failed)."), "{words}");
        let none = Lane {
            method: "MOPO".into(),
            entries: vec![entry(0, Standing::Ended, 90, &[])],
        };
        assert!(reading(&[none], Unit(Quantity::Rate)).contains("MOPO none yet."));
    }

    #[test]
    fn a_mean_says_of_how_many_seeds_it_is_and_how_many_prompts_are_over_a_threshold() {
        let mut lane = Lane {
            method: "GEPA".into(),
            entries: (0..3).map(|seed| entry(seed, Standing::Ended, 9, &[])).collect(),
        };
        assert_eq!((lane.ended(), lane.caveat(true)), (3, None), "there is no mean");
        for (entry, holds) in lane.entries[..2].iter_mut().zip([true, false]) {
            entry.returned = Some(Returned {
                prompt: "Be kind.".into(),
                feasibility: Feasibility {
                    search: true,
                    held_out: Some(holds),
                    certified: None,
                },
                held_out: Some(0.5),
            });
        }
        assert_eq!(
            lane.caveat(true).as_deref(),
            Some("(2 of 3 seeds, 1 over a threshold)")
        );
        lane.entries.truncate(1);
        assert_eq!(lane.caveat(true), None);
    }

    #[test]
    fn a_run_is_read_as_far_as_it_went() {
        let state = fixture::finished();
        let course = course(&state, &Series::new(&state).unwrap().rounds);
        assert!(course.windows(2).all(|pair| pair[0].0 < pair[1].0) && course.len() <= 3);
        assert!(course.last().unwrap().0 <= state.ledger().rollouts());
        let returned = Returned::of(&state).unwrap();
        assert!(returned.held_out.is_some() && !returned.prompt.is_empty());
        let ended = Some(Status::Feasible);
        assert_eq!(doing(&Phase::Resting, ended), ("finished", Standing::Ended));
        assert_eq!(doing(&Phase::Queued(None), None), ("queued", Standing::Going));
        let paused = Phase::Paused(Pause::Asked);
        assert_eq!(doing(&paused, None), ("paused", Standing::Going));
        let never_begun = Phase::Paused(Pause::Stopped);
        assert_eq!(doing(&never_begun, None), ("stopped", Standing::LeftOut));
        let failed = Phase::Failed(String::new());
        assert_eq!(doing(&failed, None), ("broke off", Standing::LeftOut));
    }
}
