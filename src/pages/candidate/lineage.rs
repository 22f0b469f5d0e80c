//! Plate A: who comes from whom.

use capo_core::ids::CandidateId;
use capo_core::reading::metrics::StudiedMetric;
use leptos::html::Div;
use leptos::prelude::*;

use super::address::Address;
use super::page::{Page, Parts};
use crate::charts::figure::Figure;
use crate::charts::lineage::{LineageData, LineageNode, LineageTree, lineage_table};
use crate::charts::unit::Unit;
use crate::components::Words;
use crate::format::{self, Quantity, counted};
use crate::run::childless::Childless;
use crate::run::pool::{Place, Row};
use crate::run::sentence::Sentence;
use crate::run::studied::Shown as _;

/// The tree of prompts; the course leads to the selected one.
#[component]
pub(super) fn LineagePlate(page: Page) -> impl IntoView {
    let data = Memo::new(move |_| {
        let selected = page.selected.get();
        page.read(|parts| data(parts, selected)).unwrap_or_default()
    });
    let reading = Memo::new(move |_| page.row(reading).unwrap_or_default());
    let unit = move || {
        let unit = page
            .read(|parts| parts.metrics.first().map(beside_mark))
            .flatten();
        let has_crosses = page.read(|parts| !parts.childless.is_empty()) == Some(true);
        format!(
            "number beside a mark: {} · ● feasible on search ◇ not{}",
            unit.unwrap_or_default(),
            if has_crosses { " × no child" } else { "" }
        )
    };
    let now = move || {
        let selected = page.selected.get();
        selected.map(|selected| view! { <b class="id">{format::id(&selected)}</b> " selected" })
    };
    let region = NodeRef::<Div>::new();
    // Wider than a phone: opened where the selected prompt is, and left where somebody moved it as it grows.
    Effect::new(move |shown: Option<Option<CandidateId>>| {
        let (selected, shown) = (page.selected.get(), shown.flatten());
        let (Some(region), Some(across)) = (region.get(), data.with(LineageData::across)) else {
            return None;
        };
        if shown.is_some() && shown == selected {
            return shown;
        }
        request_animation_frame(move || {
            let (whole, seen) = (f64::from(region.scroll_width()), f64::from(region.client_width()));
            let left = across * whole - seen / 2.0;
            region.set_scroll_left(left.clamp(0.0, (whole - seen).max(0.0)) as i32);
        });
        selected
    });
    let table = Signal::derive(move || {
        let mut table = data.with(lineage_table);
        let links = |parts: &Parts, address: &Address| {
            let link = |id: &CandidateId| (format::id(id), address.select(&id.to_string()).href());
            parts.rows.keys().map(link).collect()
        };
        let links = page
            .address
            .with(|address| page.read(|parts| links(parts, address)));
        table.links = links.unwrap_or_default();
        table
    });
    let open = Callback::new(move |id: String| page.go(|address| address.select(&id)));
    view! {
        <Figure
            letter="A"
            name="Lineage"
            unit=Signal::derive(unit)
            now=now
            reading=move || view! { <Words sentence=reading.get()/> }
            table=table
        >
            <div
                class="scroll"
                tabindex="0"
                role="group"
                aria-label="Lineage, scrolls sideways"
                node_ref=region
            >
                <LineageTree data=data label=Signal::derive(move || reading.get().to_string()) on_open=open/>
            </div>
        </Figure>
    }
}

/// "success, %".
fn beside_mark(objective: &StudiedMetric) -> String {
    match objective.quantity().unit(&objective.spec) {
        unit if unit.is_empty() => objective.phrase(),
        unit => format!("{}, {unit}", objective.phrase()),
    }
}

fn data(parts: &Parts, selected: Option<CandidateId>) -> LineageData {
    let Some(objective) = parts.metrics.first() else {
        return LineageData::default();
    };
    let node = |row: &Row| LineageNode {
        id: row.candidate.to_string(),
        parent: row.parents.first().map(ToString::to_string),
        round: row.round,
        objective: row
            .lagrangian
            .and_then(|_| row.estimates.get(objective.name()))
            .map(|estimate| estimate.mean),
        feasible: row.gate == crate::run::pool::Gate::Feasible,
        in_pool: row.place == Place::InPool,
        reason: None,
    };
    let cross = |childless: &Childless| LineageNode {
        id: format!("{}-{}-{}", childless.round, childless.parent, childless.index),
        parent: Some(childless.parent.to_string()),
        round: childless.round,
        objective: None,
        feasible: false,
        in_pool: false,
        reason: Some(childless.reason.clone()),
    };
    let rows = parts.rows.values().map(node);
    let nodes: Vec<LineageNode> = rows.chain(parts.childless.iter().map(cross)).collect();
    LineageData {
        objective: objective.phrase(),
        unit: Unit(objective.quantity()),
        last_round: nodes.iter().map(|node| node.round).max().unwrap_or(0),
        nodes,
        selected: selected.map(|selected| selected.to_string()),
    }
}

fn reading(parts: &Parts, row: &Row) -> Sentence {
    let pool = if parts.finished { "final pool" } else { "pool" };
    let count = format::count(parts.rows.len() as u64);
    let noun = if parts.rows.len() == 1 {
        "prompt"
    } else {
        "prompts"
    };
    let sentence = Sentence::new(format!(
        "{count} {noun}. Strong marks are the {pool} and the ancestors of "
    ))
    .prompt(row.candidate);
    let mut rewrites = 0;
    let mut above = Some(row);
    while let Some(parent) = above.and_then(|row| parts.rows.get(row.parents.first()?)) {
        rewrites += 1;
        above = Some(parent);
        // No course is longer than there are prompts.
        if rewrites > parts.rows.len() {
            break;
        }
    }
    if rewrites == 0 {
        return sentence.text(", which is the seed prompt.");
    }
    let parent = row.parents.first().and_then(|parent| parts.rows.get(parent));
    let which = if rewrites == 1 {
        "which"
    } else {
        "the last of which"
    };
    let length = parent
        .map(|parent| length(which, parent.characters, row.characters))
        .unwrap_or_default();
    sentence.text(format!(
        "; it descends from the seed through {}{length}.",
        counted(rewrites, "rewrite")
    ))
}

/// ", the last of which shortened its parent by 32.4%"; nothing of a change below a tenth.
fn length(which: &str, parent: usize, child: usize) -> String {
    let change = child as f64 / parent.max(1) as f64 - 1.0;
    if change.abs() < 0.1 {
        return String::new();
    }
    let verb = if change < 0.0 { "shortened" } else { "lengthened" };
    format!(
        ", {which} {verb} its parent by {}",
        Quantity::Rate.value(change.abs())
    )
}

#[cfg(test)]
mod tests {
    use super::length;

    #[test]
    fn small_changes_of_length_are_not_worth_a_word() {
        assert_eq!(length("which", 1000, 1050), "");
        assert_eq!(
            length("which", 1000, 676),
            ", which shortened its parent by 32.4%"
        );
        assert_eq!(
            length("which", 300, 600),
            ", which lengthened its parent by 100.0%"
        );
    }
}
