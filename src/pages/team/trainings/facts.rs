//! The facts of a training: how and on what it learns.

use capo_api::{TrainingShown, TrainingStart};
use leptos::prelude::*;
use leptos_router::components::A;

use super::{address, words};
use crate::components::{Message, When};
use crate::storage::mirror_id;

fn fact(name: &'static str, what: impl IntoView) -> impl IntoView {
    view! {
        <tr>
            <th scope="row">{name}</th>
            <td>{what}</td>
        </tr>
    }
}

/// What it learns from, what it starts from, and where it stands.
#[component]
pub(super) fn Facts(#[prop(into)] training: Signal<Option<TrainingShown>>) -> impl IntoView {
    let facts = move || {
        let now = training.get()?;
        let search = now.run.as_ref().map(|run| {
            let link = view! { <A href=format!("/run/{}", mirror_id(run))>"The run in which it searches and learns"</A> };
            fact("Search", link)
        });
        let learns_from = (!now.runs.is_empty()).then(|| {
            let run = |run: String| {
                let address = format!("/run/{}", mirror_id(&run));
                view! { <A href=address attr:class="id">{words::short(&run).to_owned()}</A> " " }
            };
            fact("Runs", now.runs.clone().into_iter().map(run).collect_view())
        });
        let start = words::start(&now.start);
        let start = match &now.start {
            TrainingStart::Training { training, .. } => {
                view! { <A href=address(&now.project, training)>{start}</A> }.into_any()
            }
            _ => start.into_any(),
        };
        Some(view! {
            <table class="facts">
                <tbody>
                    {fact("State", view! { {words::state(&now)} ", since " <When at=now.touched_at.clone()/> })}
                    {fact("Learns from", words::kind(now.kind))}
                    {search}
                    {learns_from}
                    {fact("Starts from", start)}
                    {fact("Started by", now.started_by.clone())}
                </tbody>
            </table>
            {now.error.clone().map(|what| view! { <Message what/> })}
        })
    };
    view! {
        <section class="plate" aria-labelledby="the-training" aria-live="polite">
            <header>
                <h2 class="pt" id="the-training">"The training"</h2>
            </header>
            {facts}
        </section>
    }
}
