//! The pool as a table.

use std::cmp::Ordering;

use capo_core::ids::CandidateId;
use capo_core::metric::PROMPT_LENGTH;
use capo_core::reading::metrics::StudiedMetric;
use leptos::prelude::*;
use leptos_router::components::A;

use super::overview::{Overview, Parts};
use crate::components::{Gate as GateMark, Plate, Spacer, Term, Toggle, Viewport, Window};
use crate::format::{self, NOTHING};
use crate::live::Run;
use crate::run::pool::{Gate, Place, Row};
use crate::run::studied::Shown as _;
use crate::run::word::Word;

/// Columns beside the prompt's and those of metrics: gate, J, characters, round, parents, state.
const OTHER_COLUMNS: usize = 6;

/// What the table is sorted by.
#[derive(Debug, Clone, PartialEq, Eq)]
enum By {
    Lagrangian,
    Metric(String),
    Characters,
    Round,
}

/// A column, and from which end.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Order {
    by: By,
    descending: bool,
}

impl Order {
    /// What is better comes first: the higher J and objective, the lower cost and length.
    fn best_first(by: By, objective: &str) -> Self {
        let descending = match &by {
            By::Lagrangian | By::Round => true,
            By::Metric(metric) => metric == objective,
            By::Characters => false,
        };
        Self { by, descending }
    }

    /// After a press on a column: another column from its better end, the same one from the other.
    fn pressed(&self, by: By, objective: &str) -> Self {
        if self.by == by {
            Self {
                by,
                descending: !self.descending,
            }
        } else {
            Self::best_first(by, objective)
        }
    }

    fn key(&self, row: &Row) -> Option<f64> {
        match &self.by {
            By::Lagrangian => row.lagrangian,
            By::Metric(metric) => row.estimates.get(metric).map(|estimate| estimate.mean),
            By::Characters => Some(row.characters as f64),
            By::Round => Some(f64::from(row.round)),
        }
    }

    /// Sorts rows; what has no value comes last from either end.
    fn sort(&self, rows: &mut [&Row]) {
        rows.sort_by(|a, b| match (self.key(a), self.key(b)) {
            (Some(a), Some(b)) if self.descending => b.total_cmp(&a),
            (Some(a), Some(b)) => a.total_cmp(&b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        });
    }
}

/// The pool, or every prompt of the run.
#[component]
pub(super) fn PoolPlate(run: Run, overview: Overview) -> impl IntoView {
    let overview = overview.apart();
    let all = RwSignal::new(false);
    let order = RwSignal::new(Order::best_first(By::Lagrangian, ""));
    let letter = overview.letter(3);
    let about = move || overview.read(about);
    let metrics = Memo::new(move |_| overview.read(metrics).unwrap_or_default());
    // The length that a threshold limits has a column already.
    let counts =
        Memo::new(move |_| metrics.with(|metrics| metrics.iter().all(|one| one.name != PROMPT_LENGTH)));
    let rows = Memo::new(move |_| {
        overview
            .read(|parts| order.with(|order| rows(parts, all.get(), order)))
            .unwrap_or_default()
    });
    let waiting = move || {
        overview
            .read(|parts| parts.drawn.pool.waiting)
            .filter(|waiting| *waiting > 0 && !all.get())
    };
    let window = Window::over(Signal::derive(move || rows.with(Vec::len)));
    let drawn = move || window.rows(rows, |row| row.candidate);
    let columns = move || metrics.with(Vec::len) + OTHER_COLUMNS - usize::from(!counts.get());
    let everything = move || overview.read(|parts| parts.drawn.pool.rows.len());
    view! {
        <Plate
            letter
            title=move || {
                view! { <Term word=Word::POOL shown="Pool"/> " " <span class="unit">{about}</span> }
            }
            beside=move || {
                view! {
                    <span class="now">
                        <span class="seg" role="group" aria-label="Show">
                            <Toggle chosen=all this=false>"This round"</Toggle>
                            <Toggle chosen=all this=true>"All " {everything}</Toggle>
                        </span>
                    </span>
                }
            }
        >
            <Viewport window name="Pool, scrolls both ways">
                <table class="sticky-1" aria-rowcount=move || rows.with(Vec::len) + 1>
                    <thead>
                        <tr>
                            <th scope="col">"Prompt"</th>
                            <th scope="col">"Gate" <small>"on search examples"</small></th>
                            <Sorted order overview this=By::Lagrangian>
                                <span class="math">"J"</span>
                            </Sorted>
                            <For each=move || metrics.get() key=Clone::clone let(metric)>
                                <Sorted order overview this=By::Metric(metric.name.clone())>
                                    {metric.label.clone()} <small>{metric.note.clone()}</small>
                                </Sorted>
                            </For>
                            <Show when=move || counts.get()>
                                <Sorted order overview this=By::Characters>"Characters"</Sorted>
                            </Show>
                            <Sorted order overview this=By::Round>"Round"</Sorted>
                            <th scope="col">"Parents"</th>
                            <th scope="col">"State"</th>
                        </tr>
                    </thead>
                    <tbody>
                        {window.table_spacer(Spacer::Above)}
                        <For each=drawn key=|candidate| *candidate let(candidate)>
                            <TableRow run rows candidate/>
                        </For>
                        {window.table_spacer(Spacer::Below)}
                        {move || {
                            waiting()
                                .map(|waiting| {
                                    view! {
                                        <tr>
                                            <th scope="row">{waiting} " more"</th>
                                            <td colspan=columns class="quiet">
                                                "written by the rewriter, waiting to be evaluated"
                                            </td>
                                        </tr>
                                    }
                                })
                        }}
                    </tbody>
                </table>
            </Viewport>
        </Plate>
    }
}

/// "6 kept, 4 of 8 children of round 5 so far".
fn about(parts: &Parts) -> String {
    let pool = &parts.drawn.pool;
    let kept = format!("{} kept", pool.kept);
    // J weighs costs by multipliers that move from round to round.
    let under = match parts.drawn.series.constraints.is_empty() {
        true => String::new(),
        false if parts.goes_on => format!(
            ", J under the multipliers of round {}",
            parts.drawn.series.closed() + 1
        ),
        false => ", J under the last multipliers".to_owned(),
    };
    if pool.children == 0 {
        return kept + &under;
    }
    format!(
        "{kept}, {} of {} children of round {} so far{under}",
        pool.measured, pool.children, pool.round
    )
}

/// A column for a metric.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Column {
    name: String,
    label: String,
    note: String,
}

fn metrics(parts: &Parts) -> Vec<Column> {
    let series = &parts.drawn.series;
    let column = |metric: &StudiedMetric, threshold: Option<f64>| {
        let unit = metric.quantity().unit(&metric.spec);
        let limit = threshold.map(|threshold| format!(", {}", metric.quantity().limit(threshold)));
        Column {
            name: metric.name().to_owned(),
            label: metric.label(),
            note: format!("{unit} ± SE{}", limit.unwrap_or_default()),
        }
    };
    let constraints = series
        .constraints
        .iter()
        .map(|of| column(&of.metric, of.threshold()));
    std::iter::once(column(&series.objective, None))
        .chain(constraints)
        .collect()
}

/// A row as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct RowView {
    candidate: CandidateId,
    leading: bool,
    /// None while it is measured; examples measured and in all then.
    feasible: Option<bool>,
    progress: Option<(usize, usize)>,
    lagrangian: String,
    /// Value, error, and whether it is over its threshold, by metric.
    values: Vec<Option<(String, String, bool)>>,
    /// None where a column of a threshold says it.
    characters: Option<String>,
    round: String,
    parents: Vec<CandidateId>,
    state: &'static str,
}

fn rows(parts: &Parts, all: bool, order: &Order) -> Vec<RowView> {
    let pool = &parts.drawn.pool;
    let best = parts.drawn.map.best;
    let mut rows: Vec<&Row> = if all {
        pool.rows.iter().collect()
    } else {
        // Once the run has ended, the best one is there, whichever pool it was in.
        let is_best = |row: &&Row| !parts.goes_on && best == Some(row.candidate) && row.place == Place::Left;
        pool.of_now().chain(pool.rows.iter().filter(is_best)).collect()
    };
    order.sort(&mut rows);
    rows.into_iter().map(|row| shown(parts, row, best)).collect()
}

fn shown(parts: &Parts, row: &Row, best: Option<CandidateId>) -> RowView {
    let series = &parts.drawn.series;
    let value = |metric: &StudiedMetric, threshold: Option<f64>| {
        let estimate = row.estimates.get(metric.name())?;
        let over = row.missed.iter().any(|missed| missed == metric.name());
        let quantity = metric.quantity();
        let value = match threshold {
            Some(threshold) if over => quantity.bare_against(estimate.mean, threshold),
            _ => quantity.bare(estimate.mean),
        };
        let error = (estimate.standard_error > 0.0).then(|| quantity.error(estimate.standard_error));
        Some((value, error.unwrap_or_default(), over))
    };
    let constraints = series
        .constraints
        .iter()
        .map(|of| value(&of.metric, of.threshold()));
    let (feasible, progress) = match row.gate {
        Gate::Feasible => (Some(true), None),
        Gate::NotFeasible => (Some(false), None),
        Gate::Undecided(progress) => (None, Some((progress.done, progress.of))),
    };
    RowView {
        candidate: row.candidate,
        leading: best == Some(row.candidate),
        feasible,
        progress,
        lagrangian: row
            .lagrangian
            .map_or_else(|| NOTHING.to_owned(), format::lagrangian),
        values: std::iter::once(value(&series.objective, None))
            .chain(constraints)
            .collect(),
        characters: series
            .constraint(PROMPT_LENGTH)
            .is_none()
            .then(|| format::count(row.characters as u64)),
        round: crate::run::rounds::name(row.round),
        parents: row.parents.clone(),
        state: match row.place {
            _ if !parts.goes_on && best == Some(row.candidate) => "best prompt",
            Place::InPool => "in pool",
            Place::NewChild => "new child",
            Place::Evaluating(_) => "evaluating",
            Place::Waiting => "waiting",
            Place::Left => "left the pool",
        },
    }
}

#[component]
fn Sorted(order: RwSignal<Order>, overview: Overview, this: By, children: Children) -> impl IntoView {
    let mine = this.clone();
    let direction = move || {
        order.with(|order| {
            (order.by == mine).then_some(if order.descending {
                "descending"
            } else {
                "ascending"
            })
        })
    };
    let press = move |_| {
        let objective = untrack(|| overview.read(|parts| parts.drawn.series.objective.name().to_owned()));
        order.update(|order| *order = order.pressed(this.clone(), &objective.unwrap_or_default()));
    };
    view! {
        <th scope="col" class="num" aria-sort=direction>
            <button type="button" class="sort" on:click=press>
                <span>{children()}</span>
            </button>
        </th>
    }
}

#[component]
fn TableRow(run: Run, rows: Memo<Vec<RowView>>, candidate: CandidateId) -> impl IntoView {
    let address = move |candidate: CandidateId| format!("/run/{}/candidate/{candidate}", run.id());
    // The row goes before its memo when it is no longer drawn: what it showed last stays until then.
    let row = Memo::new(move |last: Option<&Option<RowView>>| {
        let found = rows.with(|rows| rows.iter().find(|row| row.candidate == candidate).cloned());
        found.or_else(|| last.cloned().flatten())
    });
    let leading = move || row.with(|row| row.as_ref().is_some_and(|row| row.leading));
    let parents = Memo::new(move |_| row.with(|row| row.as_ref().map(|row| row.parents.clone())));
    let parents = move || {
        let link = |parent: CandidateId| {
            view! { <A href=address(parent) attr:class="id">{format::id(&parent)}</A> " " }
        };
        parents
            .get()
            .unwrap_or_default()
            .into_iter()
            .map(link)
            .collect_view()
    };
    view! {
        <tr class:pick=leading>
            <th scope="row">
                <A href=address(candidate) attr:class="id">{format::id(&candidate)}</A>
            </th>
            {move || row.get().map(figures)}
            <td>{parents}</td>
            <td>{move || row.with(|row| row.as_ref().map(|row| row.state))}</td>
        </tr>
    }
}

/// The cells from the gate to the round.
fn figures(row: RowView) -> impl IntoView {
    let gate = match (row.feasible, row.progress) {
        (Some(feasible), _) => view! { <GateMark feasible=feasible/> }.into_any(),
        (None, Some((done, of))) => {
            view! { <span class="gate"><span class="m w"></span>{done} " of " {of}</span> }.into_any()
        }
        (None, None) => NOTHING.into_any(),
    };
    let evaluating = row.feasible.is_none();
    let cell = move |value: Option<(String, String, bool)>| match value {
        Some((value, error, over)) => view! {
            <td class="num" class:is-i=over>
                {over.then(|| view! { <span class="m i"></span> })}
                {value}
                {(!error.is_empty()).then(|| view! { <span class="quiet">" ± " {error}</span> })}
            </td>
        }
        .into_any(),
        None if evaluating => view! { <td class="num"><span class="skel"></span></td> }.into_any(),
        None => view! { <td class="num">{NOTHING}</td> }.into_any(),
    };
    view! {
        <td>{gate}</td>
        <td class="num">{row.lagrangian}</td>
        {row.values.into_iter().map(cell).collect_view()}
        {row.characters.map(|characters| view! { <td class="num">{characters}</td> })}
        <td class="num">{row.round}</td>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::fixture::finished;
    use crate::run::pool::Pool;

    #[test]
    fn a_column_begins_at_its_better_end_and_a_second_press_turns_it() {
        let order = Order::best_first(By::Lagrangian, "success");
        assert!(order.descending);
        let cost = order.pressed(By::Metric("excess_tools".into()), "success");
        assert!(!cost.descending);
        assert!(
            cost.pressed(By::Metric("excess_tools".into()), "success")
                .descending
        );
        assert!(order.pressed(By::Metric("success".into()), "success").descending);
        assert!(!order.pressed(By::Characters, "success").descending);
    }

    #[test]
    fn rows_are_sorted_as_the_arrow_says() {
        let pool = Pool::whole(&finished());
        for by in [
            By::Lagrangian,
            By::Metric("excess_tools".into()),
            By::Characters,
            By::Round,
        ] {
            let up = Order {
                by,
                descending: false,
            };
            let down = up.pressed(up.by.clone(), "success");
            for order in [up, down] {
                let mut rows: Vec<&Row> = pool.rows.iter().collect();
                order.sort(&mut rows);
                let keys: Vec<f64> = rows.iter().filter_map(|row| order.key(row)).collect();
                assert_eq!(keys.len(), pool.rows.len());
                let follows = |pair: &[f64]| {
                    let (first, next) = if order.descending { (1, 0) } else { (0, 1) };
                    pair[first] <= pair[next]
                };
                assert!(keys.windows(2).all(follows), "{order:?}: {keys:?}");
            }
        }
    }
}
