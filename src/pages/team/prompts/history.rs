//! The moves of a label.

use capo_api::LabelMoved;
use leptos::prelude::*;
use leptos_router::components::A;

use super::place::{Move, Page};
use crate::format::NOTHING;
use crate::pages::team::list::{Earlier, List, Listing, when};
use crate::team::Server;

/// Lists them, the latest first, with the way back to where the label was.
#[component]
pub(super) fn History(page: Page, label: String) -> impl IntoView {
    let title = format!("History of {label}");
    let label = StoredValue::new(label);
    let (place, earlier) = (page.place(), page.place());
    let key = |moved: &LabelMoved| moved.number.to_string();
    let listing = Listing::new(key, async move |server: Server| {
        let label = label.get_value();
        server
            .label_history(&place.project, &place.prompt, &label, None)
            .await
    });
    let read = async move |server: Server, last: LabelMoved| {
        let (label, before) = (label.get_value(), Some(last.number));
        server
            .label_history(&earlier.project, &earlier.prompt, &label, before)
            .await
    };
    let cells = move |moved: LabelMoved| {
        let version = move |number: Option<u64>| match number {
            Some(number) => view! { <A href=page.place().version(number)>{number}</A> }.into_any(),
            None => NOTHING.into_any(),
        };
        let back = move || {
            let former = moved.from?;
            let is_elsewhere = page.on(&label.get_value()) != Some(former);
            (page.may_write() && is_elsewhere).then(|| view! { <Back page label=label.get_value() former/> })
        };
        vec![
            when(moved.at),
            version(moved.from),
            version(moved.to),
            moved.actor.into_any(),
            back.into_any(),
        ]
    };
    let columns = &["When", "From version", "To version", "By", ""];
    view! {
        <List id="history" title listing columns empty="Nothing yet." cells>
            <Earlier listing is_end=|moved| moved.number == 1 read/>
        </List>
    }
}

#[component]
fn Back(page: Page, label: String, former: u64) -> impl IntoView {
    let ask = move |_| {
        let label = label.clone();
        page.asked.set(Some(Move { label, to: former }));
    };
    view! {
        <button type="button" class="link" aria-haspopup="dialog" on:click=ask>
            "Move back"
            <span class="sr">" to version " {former}</span>
        </button>
    }
}
