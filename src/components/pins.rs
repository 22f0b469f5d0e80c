//! The cards of a run's marks, and two prompts pinned from them to be compared.

use std::sync::Arc;

use capo_core::ids::CandidateId;
use capo_core::reading::measured::Progress;
use leptos::prelude::*;
use leptos_router::components::A;

use super::{DiffText, Gate as GateMark, removing, unique_id};
use crate::charts::card::Cards;
use crate::charts::scale::round_title;
use crate::diff::PromptDiff;
use crate::format;
use crate::live::Run;
use crate::run::card::Card;
use crate::run::line::Line;
use crate::run::overview::Overview;
use crate::run::pool::Gate;

/// Pinned prompts of a run, two at most, the earlier first.
#[derive(Clone, Copy)]
pub struct Pins {
    run: Run,
    /// The run as it stood when it is replayed.
    replayed: RwSignal<Option<Arc<Overview>>>,
    pinned: RwSignal<Vec<CandidateId>>,
}

impl Pins {
    /// Gives cards to the marks of all charts below the caller.
    pub fn of(run: Run, replayed: RwSignal<Option<Arc<Overview>>>) -> Self {
        let pins = Self {
            run,
            replayed,
            pinned: RwSignal::default(),
        };
        let of = Callback::new(move |id: String| {
            let id: CandidateId = id.parse().ok()?;
            Some(view! { <CardView pins id/> }.into_any())
        });
        let pin = Callback::new(move |id: String| {
            if let Ok(id) = id.parse() {
                pins.turn(id);
            }
        });
        provide_context(Cards::new(of, pin));
        pins
    }

    fn turn(self, id: CandidateId) {
        self.pinned.update(|pinned| turn(pinned, id));
    }

    fn holds(self, id: CandidateId) -> bool {
        self.pinned.with(|pinned| pinned.contains(&id))
    }

    fn address(self, id: CandidateId) -> String {
        format!("/run/{}/candidate/{id}", self.run.id())
    }
}

/// Pins a prompt in place of the first of two, or unpins it.
fn turn(pinned: &mut Vec<CandidateId>, id: CandidateId) {
    let before = pinned.len();
    pinned.retain(|other| *other != id);
    if pinned.len() == before {
        pinned.push(id);
        if before == 2 {
            pinned.remove(0);
        }
    }
}

/// What the card of a prompt says.
#[component]
fn CardView(pins: Pins, id: CandidateId) -> impl IntoView {
    let card = Memo::new(move |_| {
        pins.run.read(|folded| {
            let seen = pins.replayed.get().or_else(|| folded.overview())?;
            Card::new(&folded.state, &seen, id)
        })
    });
    view! {
        <header>
            // Enter and the space bar on the mark do the same: a chart stays one stop of the Tab key.
            <A href=pins.address(id) attr:class="id" attr:tabindex="-1">{format::id(&id)}</A>
            {move || card.get().map(|card| view! { <span>{round_title(card.round)}</span> {verdict(card.gate)} })}
            <button type="button" tabindex="-1" on:click=move |_| pins.turn(id)>
                {move || if pins.holds(id) { "Unpin" } else { "Pin" }}
                <kbd aria-hidden="true">"space"</kbd>
            </button>
        </header>
        {move || card.get().map(words)}
    }
}

fn verdict(gate: Gate) -> impl IntoView {
    let feasible = match gate {
        Gate::Undecided(Progress { done, of }) => {
            return format!("{done} of {of} search examples").into_any();
        }
        Gate::Feasible => true,
        Gate::NotFeasible => false,
    };
    view! { <span><GateMark feasible/> " on search"</span> }.into_any()
}

fn words(card: Card) -> impl IntoView {
    let line = |line: Line| {
        view! {
            <tr>
                <th scope="row">{line.metric}</th>
                <td class="num"><b>{line.value}</b></td>
                <td class="num quiet">{line.threshold}</td>
                <td>{line.kept.map(|feasible| view! { <GateMark feasible/> })}</td>
            </tr>
        }
    };
    let changed = card.changed.map(|(parent, diff)| {
        let words = diff.words();
        view! {
            <p class="note">"Against its parent " <span class="id">{format::id(&parent)}</span> ". " {words}</p>
            <div class="prompt inset"><DiffText diff/></div>
        }
    });
    view! {
        <p class="prompt head">{card.head}</p>
        <table><tbody>{card.lines.into_iter().map(line).collect_view()}</tbody></table>
        {changed}
    }
}

/// The pinned prompts, and two of them word by word; it lasts when cards are closed.
#[component]
pub fn PinnedPrompts(pins: Pins) -> impl IntoView {
    let title = StoredValue::new(unique_id("pinned"));
    let pinned = move || pins.pinned.get();
    let said = move || {
        let names: Vec<String> = pinned().iter().map(format::id).collect();
        match &names[..] {
            [] => String::new(),
            [one] => format!("{one} is pinned. Pin another prompt, and the two are compared here."),
            names => format!(
                "{} are pinned, and compared below the charts.",
                format::listed(names)
            ),
        }
    };
    let diff = move || {
        let [old, new] = pinned()[..] else { return None };
        pins.run.peek(|folded| {
            let text = |id| Some(&folded.state.candidate(&id)?.prompt);
            Some(PromptDiff::new(text(old)?, text(new)?))
        })
    };
    let compared = move || {
        let diff = diff()?;
        let words = diff.words();
        Some(view! {
            <div class="prompt snug"><DiffText diff/></div>
            <p class="reading">{words}</p>
        })
    };
    view! {
        <span class="sr" role="status">{said}</span>
        <Show when=move || pins.pinned.with(|pinned| !pinned.is_empty())>
            <section class="plate pinned" aria-labelledby=title.get_value()>
                <header class="row">
                    <h2 class="pt" id=title.get_value()>"Pinned prompts"</h2>
                    <div class="row" id="pinned-prompts">
                        <For each=pinned key=|id| *id let(id)>
                            <A href=pins.address(id) attr:class="id">{format::id(&id)}</A>
                            <button
                                type="button"
                                aria-label=format!("Unpin {}", format::id(&id))
                                on:click=move |event| removing(&event, || pins.turn(id))
                            >
                                "Unpin"
                            </button>
                        </For>
                    </div>
                </header>
                {move || compared().map_or_else(
                    || view! { <p class="reading" aria-hidden="true">{said}</p> }.into_any(),
                    IntoAny::into_any,
                )}
            </section>
        </Show>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_pinned_last_stay() {
        let [a, b, c] = ["a", "b", "c"].map(CandidateId::of);
        let mut pinned = Vec::new();
        for id in [a, b, c] {
            turn(&mut pinned, id);
        }
        assert_eq!(pinned, [b, c]);
        turn(&mut pinned, b);
        assert_eq!(pinned, [c]);
    }
}
