//! The final choice among the prompts that a search measured: rules side by side, each with the truth about what it
//! takes.

use capo_core::estimate::{Estimate, mean_of};
use capo_core::score::{Choosable, choice};
use capo_core::study::Study;
use indexmap::IndexMap;

use super::caution::{CAUTIOUS, set};
use super::record::{Outcome, RunRecord, Runs, Visited};
use super::sweep::{fresh, fresh_columns, fresh_note, share};
use super::table::{Cell, Column, ColumnKind, Table};
use super::{Experiment, Report, SHIPPED_HELP_DESK, Variant};

/// Rules for the final choice, on the same searches.
pub(super) const CHOICE: Experiment = Experiment {
    name: "choice",
    title: "The final choice",
    explanation: "Every prompt that a rule takes is measured on fresh examples, and others that the search measured on \
                  all of its examples until one holds by a margin, so that all rules for the final choice are compared \
                  on the same searches, the paper's and the study's own with caution: the paper's rule, one that asks a predictive probability of holding, one that chooses on half \
                  of the examples and judges on the other half, one that shrinks means towards those of all prompts, \
                  which share their examples, and one that measures prompts near a threshold a second time.",
    study: SHIPPED_HELP_DESK,
    least_constraints: 1,
    truth_of: Some(next),
    vary,
    report,
};

/// What a probable choice asks.
const PROBABILITY: f64 = CAUTIOUS.1;

/// The place of the one to hand over; `None` where there is nothing to choose among.
type Rule = fn(&Pool) -> Option<usize>;

/// The rules, in the table's order.
const RULES: [(&str, Rule); 6] = [
    ("the paper's rule", |pool| pool.choose(pool.plain(), 0.0)),
    ("p = 0.8", |pool| pool.choose(pool.plain(), PROBABILITY)),
    ("cross-fitted", cross_fitted),
    ("means shrunk, p = 0.8", shrunk),
    ("second repeats near a threshold", |pool| {
        pool.choose(pool.repeated(), 0.0)
    }),
    ("second repeats near a threshold, p = 0.8", |pool| {
        pool.choose(pool.repeated(), PROBABILITY)
    }),
];

fn vary(base: &Study) -> Vec<Variant> {
    vec![
        Variant::of(base, "paper", "the paper's, κ = 0", Study::use_paper_preset),
        Variant::of(base, "shipped", "the study's, κ = 1.64", |study| {
            set(study, CAUTIOUS);
        }),
    ]
}

/// What a rule may choose among.
struct Pool<'a> {
    visited: &'a [Visited],
    objective: &'a str,
    thresholds: &'a IndexMap<String, f64>,
    /// Examples held out.
    held_out: usize,
}

impl<'a> Pool<'a> {
    fn of(record: &'a RunRecord, objective: &'a str) -> Self {
        Self {
            visited: &record.searched.visited,
            objective,
            thresholds: &record.thresholds,
            held_out: record.searched.held_out,
        }
    }

    /// What was measured, by place and metric.
    fn plain(&self) -> impl Fn(usize, &str) -> Option<Estimate> {
        |place, metric| self.visited[place].estimate(metric)
    }

    /// The same, with what was measured twice where it was.
    fn repeated(&self) -> impl Fn(usize, &str) -> Option<Estimate> {
        |place, metric| match &self.visited[place].repeated {
            Some(estimates) => estimates.get(metric).copied(),
            None => self.visited[place].estimate(metric),
        }
    }

    /// What the final choice takes by these means, of those that are feasible with this probability at least.
    fn choose(&self, mean: impl Fn(usize, &str) -> Option<Estimate>, probability: f64) -> Option<usize> {
        choice((0..self.visited.len()).filter_map(|place| {
            let (mut is_feasible, mut holds) = (true, 1.0_f64);
            for (metric, threshold) in self.thresholds {
                let cost = mean(place, metric)?;
                is_feasible &= cost.mean <= *threshold;
                holds = holds.min(cost.probability_at_most(*threshold, self.held_out));
            }
            Some(Choosable {
                candidate: place,
                passes: is_feasible && holds >= probability,
                objective: mean(place, self.objective)?.mean,
                probability: holds,
            })
        }))
    }
}

/// Chooses on every second example and keeps the choice if the others bear it out, and the other way round; of two that
/// are borne out the one of the higher objective where it was not chosen. Where none is, the likeliest to hold.
fn cross_fitted(pool: &Pool) -> Option<usize> {
    let half = |place: usize, metric: &str, odd: usize| {
        let values = pool.visited[place].values.get(metric)?.iter();
        Estimate::of(&values.skip(odd).step_by(2).copied().collect::<Vec<_>>())
    };
    let holds = |place: usize, odd: usize| {
        pool.thresholds
            .iter()
            .all(|(metric, threshold)| half(place, metric, odd).is_some_and(|cost| cost.mean <= *threshold))
    };
    let judged = |odd: usize| {
        let place = pool.choose(|place, metric| half(place, metric, odd), 0.0)?;
        let other = 1 - odd;
        let objective = half(place, pool.objective, other)?.mean;
        (holds(place, odd) && holds(place, other)).then_some((place, objective))
    };
    let borne_out = [judged(0), judged(1)].into_iter().flatten();
    let best = borne_out
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(place, _)| place);
    best.or_else(|| pool.choose(pool.plain(), 1.0))
}

/// Empirical Bayes (Efron and Morris 1973) on what distinguishes the prompts: all share their examples, so that each
/// one's distance to the mean of all is known better than its own mean.
fn shrunk(pool: &Pool) -> Option<usize> {
    let metrics = pool.thresholds.keys().map(String::as_str).chain([pool.objective]);
    let by_metric: IndexMap<&str, Vec<Estimate>> = metrics
        .map(|metric| {
            let values: Option<Vec<&[f64]>> = pool
                .visited
                .iter()
                .map(|visited| visited.values.get(metric).map(Vec::as_slice))
                .collect();
            Some((metric, shrink(&values?)?))
        })
        .collect::<Option<_>>()?;
    pool.choose(
        |place, metric| by_metric.get(metric)?.get(place).copied(),
        PROBABILITY,
    )
}

/// The posterior mean of each prompt from its values by example; `None` unless all have equally many.
fn shrink(values: &[&[f64]]) -> Option<Vec<Estimate>> {
    let n = values.first()?.len();
    if values.iter().any(|of| of.len() != n) {
        return None;
    }
    let of_example = |example: usize| mean_of(values.iter().map(move |of| of[example]));
    let common: Vec<f64> = (0..n).map(of_example).collect::<Option<_>>()?;
    let shared = Estimate::of(&common)?;
    let distances: Vec<Estimate> = values
        .iter()
        .map(|of| {
            Estimate::of(
                &of.iter()
                    .zip(&common)
                    .map(|(own, all)| own - all)
                    .collect::<Vec<_>>(),
            )
        })
        .collect::<Option<_>>()?;
    let variance = |estimate: &Estimate| estimate.standard_error.powi(2);
    let between = mean_of(distances.iter().map(|distance| distance.mean.powi(2)))?;
    let signal = (between - mean_of(distances.iter().map(variance))?).max(0.0);
    let posterior = |distance: &Estimate| {
        let noise = variance(distance);
        let weight = if noise > 0.0 {
            signal / (signal + noise)
        } else {
            1.0
        };
        Estimate {
            mean: shared.mean + weight * distance.mean,
            standard_error: (variance(&shared) + weight * noise).sqrt(),
            n,
        }
    };
    Some(distances.iter().map(posterior).collect())
}

/// Whether it holds on fresh examples, each cost by the standard error that the search knew it with.
fn holds_by_a_margin(visited: &Visited, fresh: &Outcome, thresholds: &IndexMap<String, f64>) -> bool {
    thresholds.iter().all(|(metric, threshold)| {
        let margin = visited.estimate(metric).map(|cost| cost.standard_error);
        fresh
            .cost(metric)
            .zip(margin)
            .is_some_and(|(cost, margin)| cost + margin <= *threshold)
    })
}

/// Whether a prompt of a search is known to hold by a margin.
fn is_possible(record: &RunRecord) -> bool {
    record.searched.visited.iter().any(|visited| {
        let fresh = visited.fresh.as_ref();
        fresh.is_some_and(|fresh| holds_by_a_margin(visited, fresh, &record.thresholds))
    })
}

/// Standard errors above a threshold from which on the search says clearly enough that a prompt does not hold by a margin.
const CLEAR: f64 = 4.0;

/// What rules take, then, until a prompt is known to hold by a margin, the one likeliest to, if any may.
fn next(record: &RunRecord, objective: &str) -> Option<usize> {
    let (pool, visited) = (Pool::of(record, objective), &record.searched.visited);
    let is_unknown = |place: &usize| visited[*place].fresh.is_none();
    let taken = RULES.iter().find_map(|(_, rule)| rule(&pool).filter(is_unknown));
    taken.or_else(|| {
        let worst = |place: usize| (visited[place].excess(&record.thresholds), place);
        let others = (0..visited.len()).filter(is_unknown).map(worst);
        let others = others.filter(|(excess, _)| *excess <= CLEAR && !is_possible(record));
        others.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, place)| place)
    })
}

/// A search, what a rule takes of it, and whether any of its prompts holds by a margin.
struct Chosen<'a> {
    fresh: Option<&'a Outcome>,
    possible: bool,
}

fn chosen<'a>(record: &'a RunRecord, objective: &str, rule: fn(&Pool) -> Option<usize>) -> Chosen<'a> {
    let taken = rule(&Pool::of(record, objective));
    Chosen {
        fresh: taken.and_then(|place| record.searched.visited[place].fresh.as_ref()),
        possible: is_possible(record),
    }
}

fn report(runs: &Runs) -> Report {
    let mut table = Table::new("summary", "Fresh results by rule").over_seeds(runs.seeds());
    table.columns = [
        Column::new("search", ColumnKind::Text),
        Column::new("final choice", ColumnKind::Text),
    ]
    .into_iter()
    .chain(fresh_columns())
    .chain([
        Column::new("a prompt holds by one SE", ColumnKind::Share),
        Column::new("AllSat, fresh, of those", ColumnKind::Share),
    ])
    .collect();
    let objective = &runs.base.objective.metric;
    let mut visited = runs.records.iter().flat_map(|record| &record.searched.visited);
    let is_measured = visited.any(|visited| visited.fresh.is_some());
    for variant in runs.variants {
        for (label, rule) in RULES {
            let of_rule: Vec<Chosen> = runs
                .of(variant)
                .filter(|_| is_measured)
                .map(|record| chosen(record, objective, rule))
                .collect();
            let possible = of_rule.iter().filter(|chosen| chosen.possible);
            let cells = [Cell::text(&variant.label), Cell::text(label)]
                .into_iter()
                .chain(fresh(of_rule.iter().map(|chosen| chosen.fresh)))
                .chain([
                    share(of_rule.iter().map(|chosen| chosen.possible)),
                    share(possible.map(|chosen| chosen.fresh.is_some_and(|fresh| fresh.all_sat))),
                ]);
            table.push(cells.collect());
        }
    }
    table.notes.push(fresh_note(runs.base, runs.records));
    table.notes.push(
        "A prompt holds by one SE when each of its costs on fresh examples is below its threshold by at least the standard \
         error that the search knew the cost with."
            .into(),
    );
    Report {
        tables: vec![table],
        figures: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixture;

    fn visited(success: &[f64], calls: &[f64]) -> Visited {
        Visited {
            prompt: String::new(),
            values: [
                ("success".to_owned(), success.to_vec()),
                ("calls".to_owned(), calls.to_vec()),
            ]
            .into(),
            repeated: None,
            fresh: None,
        }
    }

    fn with_pool<T>(visited: &[Visited], test: impl Fn(&Pool) -> T) -> T {
        test(&Pool {
            visited,
            objective: "success",
            thresholds: &[("calls".to_owned(), 1.0)].into(),
            held_out: 100,
        })
    }

    #[test]
    fn the_edge_is_the_papers_choice_and_room_the_probable_one() {
        let edge = visited(&[1.0; 8], &[0.0, 2.0, 0.0, 2.0, 0.0, 2.0, 0.0, 2.0]);
        let inside = visited(&[0.5; 8], &[0.0, 0.5, 0.0, 0.5, 0.0, 0.5, 0.0, 0.5]);
        let over = visited(&[1.0; 8], &[3.0; 8]);
        let all = [over, edge, inside];
        assert_eq!(with_pool(&all, |pool| pool.choose(pool.plain(), 0.0)), Some(1));
        assert_eq!(with_pool(&all, |pool| pool.choose(pool.plain(), 0.8)), Some(2));
        assert_eq!(
            with_pool(&all[..1], |pool| pool.choose(pool.plain(), 0.8)),
            Some(0),
            "the likeliest"
        );
        assert!(all[1].is_near(&[("calls".to_owned(), 1.0)].into()));
        assert!(!all[2].is_near(&[("calls".to_owned(), 1.0)].into()));
    }

    #[test]
    fn no_more_truth_is_asked_for_than_the_table_needs() {
        for (seed, measured) in [(0, vec![3]), (2, vec![3, 2])] {
            let known = fixture::record("paper", seed, 0.0);
            let mut record = known.clone();
            for visited in &mut record.searched.visited {
                visited.fresh = None;
            }
            let mut asked = Vec::new();
            while let Some(place) = next(&record, "success") {
                record.searched.visited[place].fresh = known.searched.visited[place].fresh.clone();
                asked.push(place);
            }
            assert_eq!(asked, measured, "seed {seed}");
            for (label, rule) in RULES {
                let of = |record| chosen(record, "success", rule);
                let (part, all) = (of(&record), of(&known));
                assert_eq!(part.fresh, all.fresh, "{label}");
                assert_eq!(part.possible, all.possible, "{label}");
            }
        }
    }

    #[test]
    fn a_choice_that_the_other_half_refutes_is_dropped() {
        // Feasible on even examples alone, and on the whole, but not on odd ones.
        let lucky = visited(&[1.0; 8], &[0.0, 1.9, 0.0, 1.9, 0.0, 1.9, 0.0, 1.9]);
        let steady = visited(&[0.5; 8], &[0.9; 8]);
        assert_eq!(with_pool(&[lucky, steady], cross_fitted), Some(1));
    }

    #[test]
    fn noise_is_shrunk_and_what_all_examples_agree_on_is_not() {
        // Two prompts that differ by the luck of an example, and one that differs on each.
        let (a, b) = ([1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0]);
        let alike = shrink(&[&a, &b]).unwrap();
        assert_eq!((alike[0].mean, alike[1].mean), (0.5, 0.5));
        let (low, high) = ([0.0, 1.0, 0.0, 1.0], [2.0, 3.0, 2.0, 3.0]);
        let apart = shrink(&[&low, &high]).unwrap();
        assert_eq!((apart[0].mean, apart[1].mean), (0.5, 2.5));
        assert!(shrink(&[&low, &[1.0]]).is_none());
    }
}
