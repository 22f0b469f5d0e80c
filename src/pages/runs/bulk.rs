//! Actions on selected runs.

use leptos::html::Dialog;
use leptos::prelude::*;
use leptos_router::components::A;

use super::actions::export;
use super::listed::Listed;
use super::questions::{DeleteDialog, RenameDialog};
use crate::components::open_dialog;
use crate::live::Runs;

/// The header of the list: what is selected and what can be done with it, and the search.
#[component]
pub(super) fn Bulk(
    listed: Listed,
    /// Told what went wrong.
    said: RwSignal<Option<String>>,
) -> impl IntoView {
    let runs = expect_context::<Runs>();
    let rename = NodeRef::<Dialog>::new();
    let delete = NodeRef::<Dialog>::new();
    let name = RwSignal::new(String::new());
    let ask_name = move |_| {
        let chosen = untrack(|| listed.chosen()).into_iter().next();
        name.set(chosen.map(|run| run.name).unwrap_or_default());
        open_dialog(rename);
    };
    let count = Memo::new(move |_| listed.selected.with(std::collections::BTreeSet::len));
    let may = Memo::new(move |_| listed.chosen().iter().all(|run| listed.may_order(run)));
    // That of the first, if there is one, and whether it is selected too.
    let baseline = Memo::new(move |_| {
        let chosen = listed.chosen();
        let baseline = listed.baseline(chosen.first()?)?;
        let is_chosen = chosen.contains(&baseline);
        Some((baseline.id, is_chosen))
    });
    let is_apart = move || baseline.with(|baseline| matches!(baseline, Some((_, false))));
    let is_baseline = move || baseline.with(|baseline| matches!(baseline, Some((_, true))));
    let turn = move |_| {
        if let Some(run) = untrack(|| listed.chosen()).first() {
            listed.turn_baseline(run);
        }
    };
    // Differences are against the first.
    let address = move |first: Option<String>| {
        let others = listed.chosen().into_iter().map(|run| run.id);
        let others = others.filter(|id| Some(id) != first.as_ref());
        let ids: Vec<String> = first.iter().cloned().chain(others).collect();
        format!("/compare?runs={}", ids.join(","))
    };
    let compare = move || {
        let first = baseline.get().filter(|(_, is_chosen)| *is_chosen);
        address(first.map(|(id, _)| id))
    };
    let against = move || address(baseline.get().map(|(id, _)| id));
    let hint = move || match count.get() {
        0 if listed.is_empty() => "",
        _ if !may.get() => "Editors of a run’s project rename and delete it.",
        0 => "Select runs to compare, export, rename or delete them.",
        1 => "Select another one to compare them.",
        _ => "",
    };
    view! {
        <header class="row spread">
            <div class="row bulk">
                <Show when=move || { count.get() > 0 }>
                    <b role="status">{count} " selected"</b>
                    <Show when=move || { count.get() > 1 }>
                        <A href=compare attr:class="button">
                            "Compare " {count} " runs"
                        </A>
                    </Show>
                    <Show when=is_apart>
                        <A href=against attr:class="button">
                            "Compare with the baseline"
                        </A>
                    </Show>
                    <Show when=move || count.get() == 1>
                        <button type="button" on:click=turn>
                            {move || if is_baseline() { "Clear baseline" } else { "Set as baseline" }}
                        </button>
                    </Show>
                    <button type="button" on:click=move |_| export(runs, listed.chosen(), said)>
                        "Export"
                    </button>
                    <Show when=move || count.get() == 1 && may.get()>
                        <button type="button" on:click=ask_name>
                            "Rename…"
                        </button>
                    </Show>
                    <Show when=move || may.get()>
                        <button type="button" on:click=move |_| open_dialog(delete)>
                            "Delete…"
                        </button>
                    </Show>
                </Show>
                <span class="note">{hint}</span>
            </div>
            <div class="row">
                <label class="sr" for="find-run">
                    "Find a run by name"
                </label>
                <input
                    id="find-run"
                    class="search"
                    type="search"
                    placeholder="Find by name"
                    prop:value=move || listed.looked_for.get()
                    on:input=move |event| listed.looked_for.set(event_target_value(&event))
                />
            </div>
        </header>
        <RenameDialog listed said node=rename name/>
        <DeleteDialog listed said node=delete/>
    }
}
