//! The lineage: columns are rounds, curves lead from parents to children.

use std::collections::{BTreeMap, HashMap, HashSet};

use leptos::prelude::*;

use super::{
    figure::TableData,
    keyed::keyed,
    labels::{Anchor, Label, Labels},
    marks::{FAINT, Mark, Marks, STRONG, Shape, Weight, columns, verdict},
    roving::{Chart, Roving},
    scale::{percent, round_name, round_title},
    unit::{Unit, fixed, short},
};
use crate::format::Quantity;

/// The height of one row of marks in pixels, and the least height of the whole.
const ROW: usize = 36;
const LEAST_HEIGHT: usize = 120;
/// The least distance of two rounds in rem: room for a mark and its number.
const ROUND: u32 = 5;
/// The room left of the first column and right of the last, where the numbers stand, 0 to 1.
const MARGINS: (f64, f64) = (0.037, 0.12);

/// What the lineage shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineageData {
    /// The objective's name, as "success".
    pub objective: String,
    /// What the objective is counted in.
    pub unit: Unit,
    /// The last round with a column of its own.
    pub last_round: u32,
    /// The candidates, parents before their children, and rewrites that gave none.
    pub nodes: Vec<LineageNode>,
    /// The candidate whose ancestors are drawn as the course.
    pub selected: Option<String>,
}

impl LineageData {
    /// Where the selected candidate stands from left to right, 0 to 1.
    pub fn across(&self) -> Option<f64> {
        let selected = self.selected.as_ref()?;
        let node = self.nodes.iter().find(|node| node.id == *selected)?;
        Some(across(node.round, self.last_round))
    }
}

/// One candidate of the lineage, or a rewrite that gave none.
#[derive(Clone, Debug, PartialEq)]
pub struct LineageNode {
    /// The candidate, or what tells the rewrite from all others.
    pub id: String,
    /// The candidate it was rewritten from; none for the seed.
    pub parent: Option<String>,
    /// The round that wrote it; 0 for the seed.
    pub round: u32,
    /// Its objective; none while it is evaluated.
    pub objective: Option<f64>,
    /// Whether it keeps all thresholds.
    pub feasible: bool,
    /// Whether it is in the final pool.
    pub in_pool: bool,
    /// Why there is no candidate; none where there is one.
    pub reason: Option<String>,
}

/// A curve from a parent to a child, or a part of the course.
#[derive(Clone, Debug, PartialEq)]
struct Curve {
    child: String,
    path: String,
    is_course: bool,
}

/// Columns of candidates by round. Wider than a phone: lay it in a region that scrolls sideways.
#[component]
pub fn LineageTree(
    /// What it shows.
    #[prop(into)]
    data: Signal<LineageData>,
    /// Its reading in one sentence.
    #[prop(into)]
    label: Signal<String>,
    /// Called with the id of a candidate to select.
    #[prop(optional, into)]
    on_open: Option<Callback<String>>,
) -> impl IntoView {
    let places = Memo::new(move |_| data.with(places));
    let height = Memo::new(move |_| {
        data.with(|data| rows(data).values().map(Vec::len).max().unwrap_or(0) * ROW)
            .max(LEAST_HEIGHT)
    });
    let curves = Memo::new(move |_| data.with(|data| places.with(|places| curves(data, places))));
    let marks = Memo::new(move |_| data.with(|data| places.with(|places| marks(data, places))));
    let numbers = Memo::new(move |_| data.with(|data| places.with(|places| numbers(data, places))));
    let roving = Roving::over(Signal::derive(move || marks.with(|marks| columns(marks))));
    let column = |(round, x): (u32, f64)| {
        let x = percent(x);
        view! {
            <line class="c-grid" x1=x.clone() x2=x.clone() y1="0%" y2="100%" />
            <text class="c-tick" x=x y="100%" dy="15" text-anchor="middle">
                {round_name(round)}
            </text>
        }
    };
    let rounds = move || {
        let last = data.with(|data| data.last_round);
        (0..=last)
            .map(|round| column((round, across(round, last))))
            .collect_view()
    };
    let drawn = keyed(
        curves.into(),
        |curve| curve.child.clone(),
        |curve| {
            view! {
                <path
                    class=move || if curve.with(|curve| curve.is_course) { "c-course" } else { "c-lin" }
                    d=move || curve.with(|curve| curve.path.clone())
                    fill="none"
                    vector-effect="non-scaling-stroke"
                />
            }
        },
    );
    view! {
        <Chart label=label roving=roving on_open=on_open>
            <div
                class="plot last lineage"
                style:--width=move || data.with(|data| format!("{}rem", ROUND * data.last_round))
                style:--height=move || format!("{}px", height.get())
            >
                <svg>
                    <g aria-hidden="true">
                        {rounds} <text class="c-axis" x="50%" y="100%" dy="30" text-anchor="middle">
                            "round in which the prompt was written"
                        </text> <svg viewBox="0 0 1000 1000" preserveAspectRatio="none">
                            {drawn}
                        </svg>
                    </g>
                    <Marks marks=marks roving=roving />
                    <g aria-hidden="true">
                        <Labels labels=numbers />
                    </g>
                </svg>
            </div>
        </Chart>
    }
}

/// The lineage's data as a table, one row per candidate or rewrite that gave none.
pub fn lineage_table(data: &LineageData) -> TableData {
    let mut table = TableData::with_headers(&["Prompt", "Round", "Parent", &data.objective, "Gate", "Pool"]);
    let dash = || "–".to_owned();
    let row = |node: &LineageNode| {
        vec![
            node.reason.as_ref().map_or_else(|| short(&node.id), |_| dash()),
            round_name(node.round),
            node.parent.as_deref().map_or_else(dash, short),
            node.objective
                .map_or_else(dash, |objective| data.unit.value(objective)),
            match (&node.reason, node.objective) {
                (Some(reason), _) => format!("no child: {reason}"),
                (None, Some(_)) => verdict(node.feasible).to_owned(),
                (None, None) => dash(),
            },
            if node.in_pool {
                "in pool".to_owned()
            } else {
                dash()
            },
        ]
    };
    table.rows = data.nodes.iter().map(row).collect();
    table
}

fn across(round: u32, last: u32) -> f64 {
    let width = 1.0 - MARGINS.0 - MARGINS.1;
    MARGINS.0 + width * f64::from(round) / f64::from(last.max(1))
}

/// The candidates of each round from top to bottom: those of one parent together, in their parents' order.
fn rows(data: &LineageData) -> BTreeMap<u32, Vec<&LineageNode>> {
    let mut rows: BTreeMap<u32, Vec<&LineageNode>> = BTreeMap::new();
    for node in &data.nodes {
        rows.entry(node.round).or_default().push(node);
    }
    let mut heights: HashMap<&str, f64> = HashMap::new();
    for nodes in rows.values_mut() {
        let height = |node: &LineageNode| {
            node.parent
                .as_deref()
                .and_then(|parent| heights.get(parent))
                .copied()
                .unwrap_or(0.0)
        };
        nodes.sort_by(|a, b| height(a).total_cmp(&height(b)));
        let middle = (nodes.len() as f64 - 1.0) / 2.0;
        for (row, node) in nodes.iter().enumerate() {
            heights.insert(&node.id, row as f64 - middle);
        }
    }
    rows
}

/// The place of every candidate; each round's column is centred.
fn places(data: &LineageData) -> HashMap<String, (f64, f64)> {
    let rows = rows(data);
    let most = rows.values().map(Vec::len).max().unwrap_or(1) as f64;
    rows.into_iter()
        .flat_map(|(round, nodes)| {
            let x = across(round, data.last_round);
            let middle = (nodes.len() as f64 - 1.0) / 2.0;
            nodes
                .into_iter()
                .enumerate()
                .map(move |(row, node)| (node.id.clone(), (x, 0.5 + (row as f64 - middle) / most)))
        })
        .collect()
}

/// The selected candidate and all its ancestors.
fn ancestors(data: &LineageData) -> HashSet<&str> {
    let parents: HashMap<&str, &str> = data
        .nodes
        .iter()
        .filter_map(|node| Some((node.id.as_str(), node.parent.as_deref()?)))
        .collect();
    let mut ancestors = HashSet::new();
    let mut current = data.selected.as_deref();
    while let Some(id) = current
        && ancestors.insert(id)
    {
        current = parents.get(id).copied();
    }
    ancestors
}

/// Curves in thousandths of the plot, the course last so that it lies on top.
fn curves(data: &LineageData, places: &HashMap<String, (f64, f64)>) -> Vec<Curve> {
    let ancestors = ancestors(data);
    let curve = |node: &LineageNode| {
        let (x0, y0) = places.get(node.parent.as_deref()?)?;
        let (x1, y1) = places.get(&node.id)?;
        let bend = (x1 - x0) * 0.48;
        let [x0, y0, x1, y1, from, to] = [*x0, *y0, *x1, *y1, x0 + bend, x1 - bend].map(|at| at * 1000.0);
        Some(Curve {
            child: node.id.clone(),
            path: format!("M{x0:.1} {y0:.1}C{from:.1} {y0:.1} {to:.1} {y1:.1} {x1:.1} {y1:.1}"),
            is_course: ancestors.contains(node.id.as_str()),
        })
    };
    let mut curves: Vec<_> = data.nodes.iter().filter_map(curve).collect();
    curves.sort_by_key(|curve| curve.is_course);
    curves
}

fn is_strong(node: &LineageNode, ancestors: &HashSet<&str>) -> bool {
    node.in_pool || ancestors.contains(node.id.as_str())
}

fn marks(data: &LineageData, places: &HashMap<String, (f64, f64)>) -> Vec<Mark> {
    let ancestors = ancestors(data);
    let mark = |node: &LineageNode| {
        let (x, y) = places.get(&node.id).copied()?;
        let is_strong = is_strong(node, &ancestors);
        let shape = match (&node.reason, node.objective) {
            (Some(_), _) => Shape::Cross,
            (None, Some(_)) => Shape::of(node.feasible),
            (None, None) => Shape::Ring,
        };
        Some(Mark {
            key: node.id.clone(),
            id: node.reason.is_none().then(|| node.id.clone()),
            column: node.round,
            x,
            y,
            shift: 0.0,
            shape,
            weight: if is_strong { Weight::Strong } else { Weight::Faint },
            radius: if is_strong { STRONG } else { FAINT + 0.4 },
            ringed: data.selected.as_deref() == Some(&node.id),
            sentence: sentence(data, node),
        })
    };
    data.nodes.iter().filter_map(mark).collect()
}

fn sentence(data: &LineageData, node: &LineageNode) -> String {
    if let Some(reason) = &node.reason {
        let parent = node.parent.as_deref().map(short).unwrap_or_default();
        let round = round_title(node.round);
        return format!("{round}: a rewrite of {parent} gave no child ({reason}).");
    }
    let measured = node.objective.map_or_else(
        || "not yet decided".to_owned(),
        |objective| {
            format!(
                "{} {}, {}",
                data.objective,
                data.unit.value(objective),
                verdict(node.feasible)
            )
        },
    );
    let parent = node
        .parent
        .as_deref()
        .map(|parent| format!(", written from {}", short(parent)))
        .unwrap_or_default();
    let pool = if node.in_pool { ", in the final pool" } else { "" };
    format!(
        "{}, {}: {measured}{parent}{pool}.",
        round_title(node.round),
        short(&node.id)
    )
}

/// The objective beside each mark, without its unit, and the name of the selected one.
fn numbers(data: &LineageData, places: &HashMap<String, (f64, f64)>) -> Vec<Label> {
    let ancestors = ancestors(data);
    let number = |node: &LineageNode| {
        let (x, y) = places.get(&node.id).copied()?;
        let objective = node.objective?;
        let number = match data.unit {
            Unit(Quantity::Rate) => fixed(objective * 100.0, 1),
            unit => unit.value(objective),
        };
        let is_selected = data.selected.as_deref() == Some(&node.id);
        let (class, dx, text) = if is_selected {
            ("c-label acc", 14.0, format!("{number} {}", short(&node.id)))
        } else if is_strong(node, &ancestors) {
            ("c-label b", 9.0, number)
        } else {
            ("c-label dim", 9.0, number)
        };
        Some(Label {
            class,
            x,
            y,
            dx,
            dy: 4.0,
            anchor: Anchor::Start,
            text,
        })
    };
    data.nodes.iter().filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, parent: Option<&str>, round: u32, in_pool: bool) -> LineageNode {
        LineageNode {
            id: id.to_owned(),
            parent: parent.map(ToOwned::to_owned),
            round,
            objective: Some(0.5),
            feasible: in_pool,
            in_pool,
            reason: None,
        }
    }

    fn data() -> LineageData {
        LineageData {
            objective: "success".to_owned(),
            unit: Unit(Quantity::Rate),
            last_round: 2,
            nodes: vec![
                node("seed", None, 0, false),
                node("a", Some("seed"), 1, false),
                node("b", Some("seed"), 1, true),
                node("c", Some("b"), 2, true),
                node("d", Some("a"), 2, false),
            ],
            selected: Some("c".to_owned()),
        }
    }

    #[test]
    fn children_stand_in_the_order_of_their_parents() {
        let data = data();
        let ids: Vec<_> = rows(&data)[&2].iter().map(|node| node.id.as_str()).collect();
        assert_eq!(ids, ["d", "c"]);
        let places = places(&data);
        assert_eq!(places["seed"].1, 0.5);
        assert!(places["a"].1 < places["b"].1);
    }

    #[test]
    fn the_course_leads_from_the_seed_to_the_selected_prompt() {
        let data = data();
        let course: Vec<_> = curves(&data, &places(&data))
            .into_iter()
            .filter(|curve| curve.is_course)
            .map(|curve| curve.child)
            .collect();
        assert_eq!(course, ["b", "c"]);
        let strong = marks(&data, &places(&data))
            .into_iter()
            .filter(|mark| mark.weight == Weight::Strong);
        assert_eq!(
            strong.map(|mark| mark.key).collect::<Vec<_>>(),
            ["seed", "b", "c"]
        );
    }

    #[test]
    fn a_rewrite_without_a_child_stands_beside_its_siblings_with_its_reason() {
        let mut data = data();
        data.nodes.push(LineageNode {
            objective: None,
            reason: Some("it is empty".to_owned()),
            ..node("2-a-1", Some("a"), 2, false)
        });
        let ids: Vec<_> = rows(&data)[&2].iter().map(|node| node.id.as_str()).collect();
        assert_eq!(ids, ["d", "2-a-1", "c"]);
        let places = places(&data);
        let mark = marks(&data, &places).pop().unwrap();
        assert_eq!(
            (mark.id, mark.shape, mark.weight),
            (None, Shape::Cross, Weight::Faint)
        );
        assert_eq!(
            mark.sentence,
            "Round 2: a rewrite of a gave no child (it is empty)."
        );
        assert_eq!(numbers(&data, &places).len(), 5);
        let row = lineage_table(&data).rows.pop().unwrap();
        assert_eq!(row, ["–", "2", "a", "–", "no child: it is empty", "–"]);
    }

    #[test]
    fn a_cycle_in_a_broken_journal_ends() {
        let mut data = data();
        data.nodes[0].parent = Some("c".to_owned());
        assert_eq!(ancestors(&data).len(), 3);
    }
}
