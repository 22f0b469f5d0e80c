//! Tables and plots of the searches.

use super::case::CASES;
use super::inequality::{ALL, GAP, GAP_OF_PROBLEM, Inequality, RECURSION, Sides};
use super::oracle::{ALIGNMENT, CONTRACTION, LENGTH, RESIDUAL, VARIANCE};
use super::problem::{CAP, Problem, SMOOTHNESS, STRONG_CONCAVITY, saddle};
use super::search::{ROUNDS, Round};
use crate::experiment::ColumnKind::{Estimate as Mean, Number, Text};
use crate::experiment::{Axis, Cell, Column, ColumnKind, Figure, Panel, Point, Report, Series, Table};

/// The T of the table; both sides at every T are in `report.json`.
const SHOWN: [usize; 8] = [1, 2, 5, 10, 20, 50, 100, 200];
/// Rounds between points of a plot, and the first one: before it bounds leave the page.
const EVERY: usize = 10;

/// The report of the searches of every case.
pub(super) fn report(searches: &[Vec<Vec<Round>>]) -> Report {
    Report {
        tables: vec![
            gaps(&searches[0]),
            inequalities(&searches[0]),
            assumptions(searches),
        ],
        figures: vec![figure(searches)],
    }
}

fn columns<const N: usize>(named: [(&str, ColumnKind); N]) -> Vec<Column> {
    named.map(|(name, kind)| Column::new(name, kind)).into()
}

/// The gap beside its bound.
fn gaps(seeds: &[Vec<Round>]) -> Table {
    let mut table = Table::new("gap", "The gap beside its bound").over_seeds(seeds.len());
    table.columns = columns([("T", Text), (GAP.measured, Mean), ("bound", Number)]);
    let terms = GAP.terms.iter().map(|term| Column::new(term.name, Number));
    table.columns.extend(terms);
    let sides = GAP.sides(seeds);
    for t in SHOWN {
        let (gap, bound) = (sides.measured[t - 1], sides.bound(t - 1));
        let mut row = vec![
            Cell::text(t.to_string()),
            Cell::Estimate(gap),
            Cell::number(bound),
        ];
        row.extend(sides.terms.iter().map(|term| Cell::number(term[t - 1])));
        table.push(row);
    }
    let seeds = seeds.len();
    table.notes = vec![
        format!(
            "Means over {seeds} seeds ± one standard error. Averages are weighted by β; they are no prompt."
        ),
        constants(),
    ];
    table
}

/// The problem in numbers.
fn constants() -> String {
    let (problem, (point, multipliers)) = (CASES[0].problem(), saddle());
    let (bound, diameter) = (problem.constraint_bound(), CASES[0].squared_diameter().sqrt());
    let (range, objective) = (problem.range(), Problem::means(point).objective);
    let multipliers: Vec<&f64> = multipliers.values().collect();
    format!(
        "μ = {STRONG_CONCAVITY}, L = {SMOOTHNESS}, G_g = {bound:.3}, D_Λ = {diameter:.3}, B_max = {range:.3}, κ = \
         {ALIGNMENT}, ν = {LENGTH}, σ_d² = {VARIANCE:.4}, ρ = {CONTRACTION}, η = {RESIDUAL:.3}, ζ = {:.2}, θ* = \
         {point:.2?}, λ* = {multipliers:.2?}, R(θ*) = {objective:.3}.",
        CASES[0].extraction(),
    )
}

/// Every inequality under the assumptions.
fn inequalities(seeds: &[Vec<Round>]) -> Table {
    let mut table = Table::new("inequalities", "Every inequality under the assumptions");
    table.columns = columns([
        ("inequality", Text),
        ("bounded", Text),
        ("at the last T", Number),
        ("bound", Number),
        ("largest share of the bound", Number),
        ("T above", Text),
        ("seeds × T above", Text),
    ]);
    for inequality in ALL {
        let sides = inequality.sides(seeds);
        let (at, (above, share)) = (sides.measured.len() - 1, sides.exceeded());
        table.push(vec![
            Cell::text(inequality.label),
            Cell::text(inequality.measured),
            Cell::number(sides.measured[at].mean),
            Cell::number(sides.bound(at)),
            Cell::number(share),
            Cell::text(above.to_string()),
            Cell::text(inequality.exceeded_by_seed(seeds).to_string()),
        ]);
    }
    table.notes = vec![format!(
        "All are stated for means, which are compared at each of {ROUNDS} T. (A) with its own δ_t follows for each seed, too; \
         the recursion does not, since only the mean rewrite ascends. π is the share of the seeds in which noise pruned the \
         best of the expanded pool.",
    )];
    table
}

/// Each assumption broken in turn.
fn assumptions(searches: &[Vec<Vec<Round>>]) -> Table {
    let mut table = Table::new("assumptions", "Each assumption broken in turn").over_seeds(searches[0].len());
    table.columns = columns([
        ("search", Text),
        ("broken", Text),
        ("still applies", Text),
        ("gap", Mean),
        ("bound", Number),
        ("T above", Text),
        ("gap, Λ of the problem", Mean),
        ("T above, Λ of the problem", Text),
        ("T above, recursion", Text),
        ("violation", Mean),
    ]);
    let mut unseen = Vec::new();
    for (case, seeds) in CASES.iter().zip(searches) {
        let sides = [GAP, GAP_OF_PROBLEM, RECURSION].map(|one| one.sides(seeds));
        let above = sides.each_ref().map(|sides| sides.exceeded().0);
        if above == [0; 3] {
            unseen.push(case.name);
        }
        let [gap, of_problem, _] = sides;
        let last = gap.measured.len() - 1;
        let violations: Vec<f64> = seeds.iter().map(|rounds| rounds[last].violation).collect();
        table.push(vec![
            Cell::text(case.name),
            Cell::text(case.broken),
            Cell::text(case.applies),
            Cell::Estimate(gap.measured[last]),
            Cell::number(gap.bound(last)),
            Cell::text(above[0].to_string()),
            Cell::Estimate(of_problem.measured[last]),
            Cell::text(above[1].to_string()),
            Cell::text(above[2].to_string()),
            Cell::mean(&violations),
        ]);
    }
    table.notes = vec![
        format!(
            "At T = {ROUNDS}. Above: in how many of the {ROUNDS} T the mean exceeds the bound that the assumptions promise. Λ \
             of the problem is [0, {CAP}]³, where its saddle point lies; the first gap is over the Λ that the search is held \
             to. Violation: by how much the average exceeds a threshold at most."
        ),
        format!("No bound was exceeded: {}.", unseen.join(", ")),
    ];
    table
}

/// Measured and bound under the assumptions, and where each is broken in the inequality that it is about.
fn figure(searches: &[Vec<Vec<Round>>]) -> Figure {
    let concerned = [&GAP, &GAP, &GAP, &RECURSION, &GAP_OF_PROBLEM, &GAP];
    let of_pool = panel(
        "as assumed, the pool's gap after a round",
        &RECURSION,
        &searches[0],
    );
    let cases = CASES.iter().zip(searches).zip(concerned);
    let others = cases.map(|((case, seeds), inequality)| panel(case.name, inequality, seeds));
    Figure {
        name: "gap".into(),
        title: "Measured and bound".into(),
        caption: "Measured: mean over seeds ± one standard error. The terms of the bound are stacked: the highest line is the \
                  bound.\nGap of the averages, of the biased rewriter the pool's, of the low cap over the Λ of the problem."
            .into(),
        panels: std::iter::once(of_pool).chain(others).collect(),
    }
}

/// What is bounded, and the terms of the bound one upon the other.
fn panel(title: &str, inequality: &Inequality, seeds: &[Vec<Round>]) -> Panel {
    let sides = inequality.sides(seeds);
    let mut panel = Panel::new(title, Axis::Values { label: "T".into() }, "gap");
    let measured = |at: usize| sides.measured[at];
    panel.series = vec![series("measured", 0, &sides, &|at, x| {
        Point::estimate(x, measured(at))
    })];
    let first = if inequality.label == GAP.label {
        1
    } else {
        1 + GAP.terms.len()
    };
    for (which, term) in inequality.terms.iter().enumerate() {
        let below = |at: usize, terms: usize| sides.terms[..terms].iter().map(|term| term[at]).sum::<f64>();
        let band = |at, x| Point {
            interval: (below(at, which), below(at, which + 1)),
            ..Point::exact(x, below(at, which + 1))
        };
        panel.series.push(series(term.name, first + which, &sides, &band));
    }
    panel
}

/// A line through every tenth T.
fn series(label: &str, style: usize, sides: &Sides, point: &dyn Fn(usize, f64) -> Point) -> Series {
    let shown = (EVERY..=sides.measured.len()).step_by(EVERY);
    Series {
        label: label.into(),
        style,
        joined: true,
        points: shown.map(|t| point(t - 1, t as f64)).collect(),
    }
}
