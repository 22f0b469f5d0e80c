//! Plate B: the prompt, word by word against another one.

use capo_core::ids::CandidateId;
use capo_core::run_state::RunState;
use leptos::prelude::*;

use super::address::{NOTHING, PARENT, SEED};
use super::page::{Page, Parts};
use crate::components::{DiffText, Plate};
use crate::diff::PromptDiff;
use crate::format::{self, Quantity};
use crate::run::pool::Row;
use crate::run::rounds;
use crate::run::studied::Shown as _;

/// What is shown of a prompt.
#[derive(Debug, Clone, PartialEq)]
enum PromptView {
    Alone(String),
    Against(PromptDiff),
}

/// The selected prompt.
#[component]
pub(super) fn PromptPlate(page: Page) -> impl IntoView {
    let shown = Memo::new(move |_| {
        let (this, other) = (page.selected.get()?, page.other.get());
        page.run.peek(|folded| shown(&folded.state, this, other))
    });
    let unit = move || page.row(|parts, row| lengths(parts, row, page.other.get()));
    let text = move || {
        shown.with(|shown| {
            shown.as_ref().map(|shown| match shown {
                PromptView::Alone(text) => text.clone().into_any(),
                PromptView::Against(diff) => view! { <DiffText diff=diff.clone()/> }.into_any(),
            })
        })
    };
    let counted = move || {
        shown.with(|shown| match shown {
            Some(PromptView::Against(diff)) => Some(diff.words()),
            _ => None,
        })
    };
    view! {
        <Plate
            letter="B"
            title=move || view! { "Prompt " <span class="unit">{unit}</span> }
            beside=move || view! { <Against page/> }
        >
            <div class="prompt snug">{text}</div>
            {move || counted().map(|words| view! { <p class="reading">{words}</p> })}
        </Plate>
    }
}

fn shown(state: &RunState, this: CandidateId, other: Option<CandidateId>) -> Option<PromptView> {
    let text = |id: &CandidateId| state.candidate(id).map(|candidate| &candidate.prompt);
    let this = text(&this)?;
    Some(match other.and_then(|other| text(&other)) {
        Some(other) => PromptView::Against(PromptDiff::new(other, this)),
        None => PromptView::Alone(this.to_string()),
    })
}

/// "1.70k characters, parent 2.51k".
fn lengths(parts: &Parts, row: &Row, other: Option<CandidateId>) -> String {
    let thousands = |characters: usize| Quantity::Thousands.value(characters as f64 / 1000.0);
    let own = format!("{} characters", thousands(row.characters));
    let other = other.and_then(|other| parts.rows.get(&other));
    match other {
        Some(other) => {
            let who = relation(parts, row, other.candidate);
            format!("{own}, {who} {}", thousands(other.characters))
        }
        None => own,
    }
}

/// What another prompt is to this one: "parent", "seed", or its id.
pub(super) fn relation(parts: &Parts, row: &Row, other: CandidateId) -> String {
    if row.parents.contains(&other) {
        "parent".into()
    } else if parts.seed == Some(other) {
        "seed".into()
    } else {
        format::id(&other)
    }
}

/// An entry of the list of prompts to compare with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Choice {
    value: String,
    words: String,
}

/// What to compare with: first the near ones, then any.
fn choices(parts: &Parts, row: &Row) -> (Vec<Choice>, Vec<Choice>) {
    let choice = |value: &str, words: String| Choice {
        value: value.to_owned(),
        words,
    };
    let mut near = Vec::new();
    for (place, parent) in row.parents.iter().enumerate() {
        let words = format!("parent {}", format::id(parent));
        near.push(match place {
            0 => choice(PARENT, words),
            _ => choice(&parent.to_string(), words),
        });
    }
    if let Some(seed) = parts
        .seed
        .filter(|seed| *seed != row.candidate && !row.parents.contains(seed))
    {
        near.push(choice(SEED, format!("seed {}", format::id(&seed))));
    }
    near.push(choice(NOTHING, "nothing".into()));
    let objective = parts.metrics.first();
    let any = |other: &Row| {
        let value = objective.and_then(|metric| {
            let estimate = other.estimates.get(metric.name())?;
            Some(format!(", {}", metric.quantity().value(estimate.mean)))
        });
        let words = format!(
            "{}, round {}{}",
            format::id(&other.candidate),
            rounds::name(other.round),
            value.unwrap_or_default()
        );
        choice(&other.candidate.to_string(), words)
    };
    let others = parts.rows.values();
    let far = others
        .filter(|other| {
            let id = other.candidate;
            id != row.candidate && !row.parents.contains(&id) && parts.seed != Some(id)
        })
        .map(any)
        .collect();
    (near, far)
}

/// The value of the list that the address means.
fn chosen(page: Page) -> String {
    let asked = page.address.with(|address| address.against.clone());
    let other = page.other.get();
    match (asked.as_deref(), other) {
        (_, None) => NOTHING.into(),
        (None | Some(PARENT), Some(_)) => PARENT.into(),
        (Some(_), Some(other)) => page
            .row(|parts, row| {
                if row.parents.first() == Some(&other) {
                    PARENT.to_owned()
                } else if parts.seed == Some(other) {
                    SEED.to_owned()
                } else {
                    other.to_string()
                }
            })
            .unwrap_or_default(),
    }
}

/// Goes on to the next near prompt to compare with.
pub(super) fn turn(page: Page) {
    let near = untrack(|| page.row(|parts, row| choices(parts, row).0)).unwrap_or_default();
    let current = untrack(|| chosen(page));
    let at = near.iter().position(|choice| choice.value == current);
    let next = at.map_or(0, |at| (at + 1) % near.len().max(1));
    if let Some(next) = near.get(next) {
        page.go(|address| address.compare(&next.value));
    }
}

#[component]
fn Against(page: Page) -> impl IntoView {
    let choices = Memo::new(move |_| page.row(choices).unwrap_or_default());
    let current = Memo::new(move |_| chosen(page));
    let option = move |choice: Choice| {
        let value = choice.value.clone();
        view! {
            <option value=choice.value prop:selected=move || current.with(|current| *current == value)>
                {choice.words}
            </option>
        }
    };
    let far = move || {
        let far = choices.with(|(_, far)| far.clone());
        (!far.is_empty()).then(|| {
            view! { <optgroup label="Any other prompt">{far.into_iter().map(option).collect_view()}</optgroup> }
        })
    };
    view! {
        <label class="row tight note">
            "against "
            <select
                class="auto"
                aria-label="Compare with"
                on:change=move |event| {
                    let value = event_target_value(&event);
                    page.go(|address| address.compare(&value));
                }
            >
                {move || choices.with(|(near, _)| near.clone()).into_iter().map(option).collect_view()}
                {far}
            </select>
        </label>
    }
}
