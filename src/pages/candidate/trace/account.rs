//! What a kind of workload says of a rollout's result: what it is made of, and what was changed on both sides.

use capo_workloads::{Change, Changes, Fact, Side, TraceView};
use leptos::prelude::*;

use super::facts::{self, facts_table};
use crate::format::{NOTHING, count};

/// What the result is made of, and what was changed.
pub(super) fn account(view: TraceView) -> AnyView {
    let fact = |Fact { name, value, note }: Fact| facts::Fact {
        name,
        value: value.unwrap_or_else(|| NOTHING.to_owned()),
        note,
    };
    let facts: Vec<facts::Fact> = view.facts.into_iter().map(fact).collect();
    let facts = (!facts.is_empty()).then(|| facts_table("What the result is made of", facts));
    (facts, view.changes.map(changes_view)).into_any()
}

fn changes_view(changes: Changes) -> AnyView {
    if changes.made.is_empty() {
        return view! { <p class="note">"No state was changed."</p> }.into_any();
    }
    let is_of_agent = |change: &Change| change.side == Side::Agent;
    let (agent, user): (Vec<Change>, Vec<Change>) = changes.made.into_iter().partition(is_of_agent);
    let mut sides = vec![("agent", agent), ("user", user)];
    sides.retain(|(_, changes)| !changes.is_empty());
    let counted = sides
        .iter()
        .map(|(side, changes)| format!("{} on the {side}’s side", count(changes.len() as u64)));
    let mut counted = counted.collect::<Vec<_>>().join(", ");
    if changes.left_out > 0 {
        counted = format!("{counted}, {} more not recorded", count(changes.left_out));
    }
    let lists = sides
        .into_iter()
        .map(|(side, changes)| {
            view! {
                <h3>{format!("On the {side}’s side")}</h3>
                <dl>{changes.into_iter().map(change_view).collect_view()}</dl>
            }
        })
        .collect_view();
    view! {
        <details class="fold changes" open>
            <summary>{format!("State changes: {counted}")}</summary>
            {lists}
        </details>
    }
    .into_any()
}

fn change_view(change: Change) -> AnyView {
    let del = |text: String| view! { <span class="sr">"was "</span><del>{text}</del> };
    let became = match (change.before, change.after) {
        (Some(before), Some(after)) => view! {
            {del(before)}
            <span aria-hidden="true">" → "</span>
            <span class="sr">"is "</span>
            <ins>{after}</ins>
        }
        .into_any(),
        (None, after) => view! { "added " {after} }.into_any(),
        (Some(before), None) => view! { {del(before)} " removed" }.into_any(),
    };
    view! {
        <div>
            <dt>{change.path}</dt>
            <dd>{became}</dd>
        </div>
    }
    .into_any()
}
