//! The best prompts of two of the runs, example by example.

use capo_core::reading::comparison::{PromptOf, comparable};
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_navigate, use_query_map};

use crate::live::Run;
use crate::pages::examples::{ByExamplePlate, Side};
use crate::run::by_example::ByExample;

/// The name in the address of the run whose examples stand beside the first one's.
const WITH: &str = "with";

/// The best prompt of the first run beside that of another one, example by example.
#[component]
pub(super) fn BesideFirst(
    chosen: StoredValue<Vec<Run>>,
    names: Memo<Vec<String>>,
    letter: Signal<&'static str>,
) -> impl IntoView {
    let (query, navigate) = (use_query_map(), use_navigate());
    let run = move |place: usize| chosen.with_value(|chosen| chosen[place]);
    let name = move |place: usize| names.with(|names| names[place].clone());
    // Of the runs that can be compared by example, with their places.
    let all = Memo::new(move |_| {
        let places = 1..chosen.with_value(Vec::len);
        let found = places.filter_map(|place| Some((place, by_example(run(0), run(place))?)));
        found.collect::<Vec<(usize, ByExample)>>()
    });
    let shown = Memo::new(move |_| {
        let asked = query.with(|query| query.get(WITH));
        all.with(|all| {
            let asked = all.iter().find(|(place, _)| Some(run(*place).id()) == asked);
            asked.or(all.first()).cloned()
        })
    });
    let found = Memo::new(move |_| shown.get().map(|(_, found)| found));
    let other = move || shown.with(|shown| shown.as_ref().map_or(0, |(place, _)| *place));
    let sides = Memo::new(move |_| {
        [0, other()].map(|place| Side {
            run: run(place),
            name: name(place),
        })
    });
    let choose = Callback::new(move |id: String| {
        let runs = query.with_untracked(|query| query.get("runs").unwrap_or_default());
        let options = NavigateOptions {
            scroll: false,
            ..NavigateOptions::default()
        };
        navigate(&format!("/compare?runs={runs}&{WITH}={id}"), options);
    });
    let option = move |place: usize| {
        view! {
            <option value=run(place).id() prop:selected=move || other() == place>
                {move || name(place)}
            </option>
        }
    };
    let choice = move || {
        let places: Vec<usize> = all.with(|all| all.iter().map(|(place, _)| *place).collect());
        (places.len() > 1).then(|| {
            view! {
                <select
                    class="auto"
                    aria-label="Run beside the first"
                    on:change=move |event| choose.run(event_target_value(&event))
                >
                    {places.into_iter().map(option).collect_view()}
                </select>
            }
        })
    };
    view! { <ByExamplePlate sides found letter page="/compare" choice=move || choice/> }
}

/// The best prompts of two runs that have ended, where these may be compared.
fn by_example(first: Run, other: Run) -> Option<ByExample> {
    first.read(|first| {
        other.read(|other| {
            comparable(&other.state, &first.state).ok()?;
            ByExample::of([PromptOf::best(&first.state)?, PromptOf::best(&other.state)?])
        })
    })
}
