//! Paired differences of each run's best prompt against the first run's, on held-out examples.

use capo_core::estimate::Estimate;
use capo_core::reading::comparison::{Difference, PromptOf, comparable, differences};
use capo_core::reading::measured::is_no_search;
use capo_core::run_state::RunState;
use capo_core::workload::Split;
use leptos::prelude::*;

use crate::charts::interval::{Interval, IntervalData};
use crate::charts::unit::Unit;
use crate::format;
use crate::run::paired;
use crate::run::studied::Shown as _;

/// A run against the first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pair {
    /// The run's name.
    pub(super) name: String,
    /// Its differences, or why there are none, as a sentence.
    pub(super) rows: Result<Vec<PairRow>, String>,
}

/// One metric of a pair.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PairRow {
    /// The run's minus the first's.
    pub(super) difference: Difference,
    /// The first run's mean.
    first: Option<Estimate>,
    /// The run's mean.
    other: Option<Estimate>,
}

/// A named run.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    pub(super) state: &'a RunState,
}

/// A run against the first.
pub(super) fn pair(first: Named<'_>, other: Named<'_>) -> Pair {
    Pair {
        name: other.name.to_owned(),
        rows: rows(first, other),
    }
}

fn rows(first: Named<'_>, other: Named<'_>) -> Result<Vec<PairRow>, String> {
    comparable(other.state, first.state).map_err(|why| {
        format!(
            "{} and {} are not comparable: {why}. Their lines above show different things.",
            other.name, first.name
        )
    })?;
    let best = |run: Named<'_>| {
        let finished = run.state.finished();
        let finished = finished.filter(|finished| !finished.evaluation.is_empty());
        let best = finished.and_then(|finished| Some((finished.best?, finished.evaluation.clone())));
        best.ok_or_else(|| {
            if is_no_search(run.state) {
                return format!(
                    "{} searched nothing: it measured a prompt that was given to it.",
                    run.name
                );
            }
            format!("{} has no held-out figures yet.", run.name)
        })
    };
    let ((ours, our_means), (theirs, their_means)) = (best(other)?, best(first)?);
    let found = differences(
        PromptOf {
            state: other.state,
            candidate: ours,
        },
        PromptOf {
            state: first.state,
            candidate: theirs,
        },
        Split::Evaluate,
    );
    let row = |difference: Difference| PairRow {
        first: their_means.get(difference.metric.name()).copied(),
        other: our_means.get(difference.metric.name()).copied(),
        difference,
    };
    Ok(found.metrics.into_iter().map(row).collect())
}

/// The greatest distance from zero of any interval of a metric, so that all its rows share an axis.
fn reach(pairs: &[Pair], metric: &str) -> f64 {
    let rows = pairs.iter().filter_map(|pair| pair.rows.as_ref().ok()).flatten();
    rows.filter(|row| row.difference.metric.name() == metric)
        .flat_map(|row| {
            let paired = &row.difference.paired;
            let ends = paired.interval.map(|interval| [interval.low, interval.high]);
            ends.into_iter().flatten().chain([paired.mean])
        })
        .map(f64::abs)
        .fold(0.0, f64::max)
}

/// The table of differences against the first run.
#[component]
pub(super) fn Pairs(
    /// The first run's name.
    first: Signal<String>,
    pairs: Memo<Vec<Pair>>,
) -> impl IntoView {
    let body = move || pairs.with(|pairs| pairs.iter().map(|pair| rows_of(pair, pairs)).collect_view());
    view! {
        <section class="plate" aria-labelledby="pairs-title">
            <header>
                <h2 class="pt" id="pairs-title">
                    <span>"Differences from " {first}</span>
                </h2>
                <span class="now">"best prompts, held-out examples"</span>
            </header>
            <div class="scroll" tabindex="0" role="group" aria-label="Paired differences, scrolls sideways">
                <table class="mid">
                    <thead>
                        <tr>
                            <th scope="col">"Run"</th>
                            <th scope="col">"Metric"</th>
                            <th scope="col" class="num">
                                "First run"
                            </th>
                            <th scope="col" class="num">
                                "This run"
                            </th>
                            <th scope="col" class="num">
                                "Difference"
                            </th>
                            <th scope="col" class="num">
                                "95% interval"
                            </th>
                            <th scope="col" class="col-interval">
                                "Lower, higher"
                                <small>"square: difference, line: interval"</small>
                            </th>
                            <th scope="col">"Reading"</th>
                        </tr>
                    </thead>
                    <tbody>{body}</tbody>
                </table>
            </div>
            <p class="reading">
                "Paired by example: each difference is this run's value minus the first run's on the same held-out \
                 example. An interval that holds zero shows no clear difference."
            </p>
        </section>
    }
}

fn rows_of(pair: &Pair, pairs: &[Pair]) -> AnyView {
    let name = pair.name.clone();
    match &pair.rows {
        Err(why) => {
            let why = why.clone();
            view! {
                <tr>
                    <th scope="row">{name}</th>
                    <td colspan="7" class="quiet">
                        {why}
                    </td>
                </tr>
            }
            .into_any()
        }
        Ok(rows) => {
            let rows = rows.iter().map(|row| metric_row(&name, row, pairs));
            rows.collect_view().into_any()
        }
    }
}

fn metric_row(name: &str, row: &PairRow, pairs: &[Pair]) -> impl IntoView + use<> {
    let metric = &row.difference.metric;
    let quantity = metric.quantity();
    let mean = |estimate: Option<Estimate>| {
        estimate.map_or_else(
            || format::NOTHING.to_owned(),
            |estimate| quantity.estimate(&estimate),
        )
    };
    let paired = &row.difference.paired;
    let drawn = paired.interval.map(|interval| IntervalData {
        name: metric.label(),
        unit: Unit(quantity),
        difference: paired.mean,
        low: interval.low,
        high: interval.high,
        reach: reach(pairs, metric.name()),
    });
    let drawn = drawn.map(|data| view! { <Interval data=Signal::stored(data)/> });
    view! {
        <tr>
            <th scope="row">{name.to_owned()}</th>
            <td>{metric.label()}</td>
            <td class="num">{mean(row.first)}</td>
            <td class="num">{mean(row.other)}</td>
            <td class="num">{paired::mean(&row.difference)}</td>
            <td class="num">{paired::interval(&row.difference)}</td>
            <td class="col-interval">{drawn}</td>
            <td class="nw">{paired::words(row.difference.verdict())}</td>
        </tr>
    }
}

#[cfg(test)]
mod tests {
    use capo_core::journal::{CandidateEvent, Event, Origin};

    use super::*;
    use crate::run::fixture;

    #[test]
    fn the_same_run_twice_does_not_differ() {
        let state = fixture::finished();
        let named = |name| Named { name, state: &state };
        let rows = pair(named("A"), named("B")).rows.unwrap();
        assert_eq!(rows.len(), 4);
        for row in &rows {
            assert_eq!(row.difference.paired.mean, 0.0);
            assert_eq!(paired::words(row.difference.verdict()), "no clear difference");
            assert_eq!(row.first, row.other);
        }
    }

    #[test]
    fn what_cannot_be_paired_says_why() {
        let finished = fixture::finished();
        let fewer = fixture::fold(&fixture::events(
            |study| {
                study.workload.insert("evaluate".into(), 5.into());
            },
            None,
        ));
        let events = fixture::events(|_| {}, None);
        let unfinished = fixture::fold(&events[..events.len() - 1]);
        let why = |state| {
            let first = Named {
                name: "A",
                state: &finished,
            };
            pair(first, Named { name: "B", state }).rows.unwrap_err()
        };
        let words = why(&fewer);
        assert!(
            words.starts_with("B and A are not comparable: the held-out examples of `desk` differ (5 and 8"),
            "{words}"
        );
        assert_eq!(why(&unfinished), "B has no held-out figures yet.");

        let given = events.iter().find_map(|event| match event {
            Event::Candidate(candidate) => Some(CandidateEvent {
                origin: Origin::Given,
                ..candidate.clone()
            }),
            _ => None,
        });
        let check = fixture::fold(&[events[0].clone(), Event::Candidate(given.unwrap())]);
        assert_eq!(
            why(&check),
            "B searched nothing: it measured a prompt that was given to it."
        );
    }
}
