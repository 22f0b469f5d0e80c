//! Plate A: the prompt itself.

use capo_core::ids::CandidateId;
use capo_core::reading::metrics;
use capo_core::run_state::RunState;
use leptos::prelude::*;
use leptos_router::components::A;

use super::take_away::TakeAway;
use crate::components::{Copy, Plate, PushToTeam, Words};
use crate::format::{self, Quantity, counted};
use crate::live::{Folded, Run};
use crate::pages::team::AddToPrompts;
use crate::run::map::Map;
use crate::run::sentence::Sentence;
use crate::run::studied::Shown as _;
use crate::run::word::Word;
use crate::run_link::link;

/// The prompt to take away.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Best {
    pub id: CandidateId,
    pub text: String,
    title: &'static str,
    feasible: bool,
    length: String,
    /// Why this one.
    chosen: Sentence,
}

impl Best {
    /// The returned prompt of a run that has ended, else the best feasible one so far, else the one
    /// closest to being so.
    pub(super) fn of(folded: &Folded) -> Option<Self> {
        let (state, seen) = (&folded.state, folded.overview()?);
        let map = &seen.map;
        let finished = state.finished();
        let id = match finished {
            Some(finished) => finished.best,
            None => map.best.or_else(|| map.closest()).or(map.seed),
        }?;
        let feasible = map.place(id).is_some_and(|place| place.scored.feasible);
        let candidate = state.candidate(&id)?;
        Some(Self {
            title: match (finished.is_some(), feasible) {
                (true, true) => "Best prompt, feasible on the search examples",
                (true, false) => "Closest prompt, not feasible on the search examples",
                (false, true) => "Best prompt so far, feasible on the search examples",
                (false, false) => "Closest prompt so far, not feasible on the search examples",
            },
            feasible,
            length: format!(
                "{} characters",
                Quantity::Thousands.value(candidate.characters as f64 / 1000.0)
            ),
            text: candidate.prompt.to_string(),
            chosen: chosen(state, map, id, feasible),
            id,
        })
    }

    /// What it is within a sentence.
    pub(super) fn called(&self) -> &'static str {
        if self.feasible {
            "best prompt"
        } else {
            "closest prompt"
        }
    }
}

/// "Chosen among six prompts feasible on the search examples by “success” there, 75.7%; tied with
/// 095d71, it has the higher J."
fn chosen(state: &RunState, map: &Map, id: CandidateId, feasible: bool) -> Sentence {
    let Some((objective, place)) = metrics::objective(state).zip(map.place(id)) else {
        return Sentence::default();
    };
    let value = place.scored.objective.mean;
    let shown = objective.quantity().value(value);
    if !feasible {
        return Sentence::new(format!(
            "By “{}” it reaches {shown} on the search examples.",
            objective.phrase()
        ));
    }
    let mut tied = map
        .places
        .iter()
        .filter(|other| other.scored.feasible && other.scored.candidate != id)
        .filter(|other| other.scored.objective.mean == value);
    let name = objective.phrase();
    let sentence = Sentence::new(match map.feasible() {
        1 => format!("The only prompt feasible on the search examples: “{name}” {shown} there"),
        many => {
            let among = counted(many, "prompt");
            format!("Chosen among {among} feasible on the search examples by “{name}” there, {shown}")
        }
    });
    match tied.next() {
        Some(other) if other.scored.lagrangian < place.scored.lagrangian => sentence
            .text("; tied with ")
            .prompt(other.scored.candidate)
            .text(", it has the higher ")
            .symbol(Word::J)
            .text("."),
        _ => sentence.text("."),
    }
}

/// The prompt with its ways out.
#[component]
pub(super) fn PromptPlate(run: Run) -> impl IntoView {
    let best = Memo::new(move |_| run.read(Best::of));
    let read = move |read: fn(&Best) -> String| best.with(|best| best.as_ref().map(read));
    let best_id = Signal::derive(move || best.with(|best| Some(best.as_ref()?.id)));
    let title = move || best.with(|best| best.as_ref().map_or("Prompt", |best| best.title));
    let inside = move || {
        best.with(|best| {
            let address = format!("/run/{}/candidate/{}", run.id(), best.as_ref()?.id);
            Some(view! { <A href=address>"Lineage and traces"</A> })
        })
    };
    let chosen = move || {
        let sentence = best.with(|best| best.as_ref().map(|best| best.chosen.clone()));
        sentence.map(|sentence| view! { <Words sentence/> })
    };
    view! {
        <Plate
            letter="A"
            row=true
            title=move || {
                view! {
                    {title} " "
                    <Show when=move || best.with(Option::is_some)>
                        <span class="unit">
                            <span class="id" title=move || read(|best| best.id.to_string())>
                                {move || read(|best| format::id(&best.id))}
                            </span>
                            ", " {move || read(|best| best.length.clone())}
                        </span>
                    </Show>
                }
            }
            beside=move || {
                view! {
                    <Show
                        when=move || best.with(Option::is_some)
                        fallback=|| view! { <span class="note">"none yet"</span> }
                    >
                        <div class="row">
                            <Copy
                                text=Signal::derive(move || read(|best| best.text.clone()))
                                words="Copy prompt"
                                spoken="The prompt is on the clipboard."
                                otherwise="Select the text, or download it."
                                primary=true
                            />
                            <TakeAway run best/>
                            <RunLink run/>
                            <PushToTeam run/>
                            <AddToPrompts run best=best_id/>
                        </div>
                    </Show>
                }
            }
        >
            <div class="prompt" tabindex="-1" id="prompt-text">
                {move || read(|best| best.text.clone())}
            </div>
            <p class="reading">{chosen} " " {inside}</p>
        </Plate>
    }
}

/// A button that copies the address which carries the run, where one can.
#[component]
fn RunLink(run: Run) -> impl IntoView {
    let ended = Memo::new(move |_| run.read(|folded| folded.state.finished().is_some()));
    let link = LocalResource::new(move || {
        ended.track();
        link(run)
    });
    let link = Signal::derive(move || link.get().flatten());
    view! {
        <Show when=move || link.with(Option::is_some)>
            <Copy
                text=link
                words="Copy link"
                spoken="A link that carries the run is on the clipboard."
                otherwise="Download the page in one file."
            />
        </Show>
    }
}
