//! The map as a file.

use leptos::ev::MouseEvent;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::spawn_local;
use web_sys::Element;

use super::overview::{Overview, Parts};
use crate::charts::picture::picture;
use crate::download::{self, Kind};
use crate::format::counted;
use crate::live::{Folded, Run};
use crate::run::outcome::Outcome;

/// Buttons that give the map above them, as it is shown, over what is said of its best prompt.
#[component]
pub(super) fn Pictures(run: Run, overview: Overview) -> impl IntoView {
    let failed = RwSignal::new(None::<String>);
    let offer = move |event: &MouseEvent, is_drawing: bool| {
        let button = event
            .current_target()
            .and_then(|at| at.dyn_into::<Element>().ok());
        let plate = button.and_then(|button| button.closest("figure").ok().flatten());
        let plot = plate.and_then(|plate| plate.query_selector(".plot.map > svg").ok().flatten());
        let told = untrack(|| overview.read(|parts| run.peek(|folded| caption(folded, parts))));
        let made = plot
            .zip(told.flatten())
            .and_then(|(plot, sentence)| picture(&plot, &sentence).ok());
        let study = run.peek(|folded| Some(folded.state.study()?.study.study.name.clone()));
        let name = download::file_name(&study.unwrap_or_default(), None) + "-map";
        spawn_local(async move {
            let offered = match made {
                None => Err("This browser drew no picture of the map.".to_owned()),
                Some((drawing, _)) if is_drawing => download::offer(&name, Kind::Svg, [drawing]),
                Some((drawing, size)) => download::offer_picture(&name, &drawing, size).await,
            };
            // The page may be left by then.
            let _ = failed.try_set(offered.err());
        });
    };
    view! {
        <p class="row note">
            "Picture with a sentence:"
            <button type="button" class="link" on:click=move |event| offer(&event, true)>
                "SVG"
            </button>
            <button type="button" class="link" on:click=move |event| offer(&event, false)>
                "PNG"
            </button>
            {move || failed.get().map(|why| view! { <span class="is-i" role="alert">{why}</span> })}
        </p>
    }
}

/// Study, rounds and best prompt as shown; at the end of a run what that came to on examples it never saw.
fn caption(folded: &Folded, parts: &Parts) -> Option<String> {
    let name = &folded.state.study()?.study.study.name;
    let rounds = counted(parts.drawn.series.closed() as usize, "round");
    let is_end = !parts.is_replayed && parts.drawn.map.best.is_some();
    let outcome = Outcome::new(&folded.state).filter(|_| is_end);
    let best = parts.drawn.best.clone();
    let told = outcome.map_or(best.clone(), |outcome| best.then(outcome.verdict));
    Some(format!("{name} after {rounds}. {told}"))
}
