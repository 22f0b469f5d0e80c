//! The page that looks inside: where a prompt comes from, what it changed and why, and every single
//! conversation behind its numbers.

mod address;
mod changed;
mod failures;
mod feedback;
mod heat;
mod lineage;
mod page;
mod prompt;
mod trace;

use capo_core::ids::CandidateId;
use capo_core::workload::Split;
use leptos::prelude::*;
use leptos_router::components::A;

use self::address::{Address, TraceAddress};
use self::changed::ChangedPlate;
use self::failures::FailuresPlate;
use self::feedback::FeedbackPlate;
use self::heat::HeatPlate;
use self::lineage::LineagePlate;
use self::page::Page;
use self::prompt::PromptPlate;
use self::trace::Drawer;
pub(super) use self::trace::held_out_rollout;
use crate::components::{Deferred, PinnedPrompts, Pins, RunHead, RunNotices, page_title, with_run};
use crate::format;
use crate::frame::shortcuts::use_shortcut;
use crate::live::Run;

/// The candidates of the run its address names.
#[component]
pub fn CandidatePage() -> impl IntoView {
    bleed();
    with_run(|run| view! { <Candidates run/> })
}

/// Where the first rollout of a prompt on a held-out example is read. Its workload is named where there are several.
pub(super) fn held_out_trace(
    run: &str,
    candidate: CandidateId,
    example: &str,
    workload: Option<String>,
) -> String {
    let address = Address {
        run: run.to_owned(),
        candidate: Some(candidate.to_string()),
        against: None,
        trace: Some(TraceAddress::first(example.to_owned(), workload, Split::Evaluate)),
    };
    address.href()
}

/// The page goes to the edges of the window as long as the caller lives.
fn bleed() {
    const CLASS: &str = "bleed";
    let list = || document().get_element_by_id("main").map(|main| main.class_list());
    if let Some(list) = list() {
        // Neither fails for a name without blanks.
        let _ = list.add_1(CLASS);
    }
    on_cleanup(move || {
        if let Some(list) = list() {
            let _ = list.remove_1(CLASS);
        }
    });
}

#[component]
fn Candidates(run: Run) -> impl IntoView {
    let page = Page::of(run);
    let pins = Pins::of(run, RwSignal::new(None));
    page_title(move || {
        let name = run
            .record
            .with(|record| record.as_ref().map(|record| record.name.clone()))
            .unwrap_or_default();
        match page.selected.get() {
            Some(selected) => format!("{} of {name}", format::id(&selected)),
            None => format!("Candidates of {name}"),
        }
    });
    let next = move |step: isize| {
        let next = page.selected.get_untracked().and_then(|selected| {
            page.read(|parts| {
                let at = parts.rows.get_index_of(&selected)?.checked_add_signed(step)?;
                parts.rows.get_index(at).map(|(id, _)| *id)
            })
            .flatten()
        });
        if let Some(next) = next {
            page.go(|address| address.select(&next.to_string()));
        }
    };
    let step = move |step: isize| {
        if page.address.with_untracked(|address| address.trace.is_some()) {
            trace::step(page, step);
        } else {
            next(step);
        }
    };
    use_shortcut(
        "[",
        "previous prompt, or previous example of the open trace",
        move || step(-1),
    );
    use_shortcut("]", "next prompt, or next example of the open trace", move || {
        step(1);
    });
    use_shortcut("d", "compare with the parent, the seed, nothing", move || {
        prompt::turn(page);
    });
    let tracing = Memo::new(move |_| page.address.with(|address| address.trace.is_some()));
    let known = Memo::new(move |_| page.selected.get().is_some());
    let open = move || tracing.get() && known.get();
    view! {
        <div class="with-drawer" class:open=open>
            <div class="leftcol">
                <RunHead run/>
                <RunNotices run/>
                <Show when=move || known.get() fallback=move || view! { <Unknown page/> }>
                    <LineagePlate page/>
                    <PinnedPrompts pins/>
                    <div class="g g-2">
                        <PromptPlate page/>
                        <div class="stack">
                            <ChangedPlate page/>
                            <FeedbackPlate page/>
                            <FailuresPlate page/>
                        </div>
                    </div>
                    <Deferred>
                        <HeatPlate page/>
                    </Deferred>
                </Show>
            </div>
            <Show when=open>
                <Drawer page/>
            </Show>
        </div>
    }
}

/// In place of the plates when there is nothing to select.
#[component]
fn Unknown(page: Page) -> impl IntoView {
    let asked = move || page.address.with(|address| address.candidate.clone());
    move || match asked() {
        Some(asked) => {
            let short: String = asked.chars().take(12).collect();
            let all = page
                .address
                .with(|address| format!("/run/{}/candidate", address.run));
            view! {
                <p class="empty">
                    "This run has no prompt " <span class="id">{short}</span> ". " <A href=all>"Its best prompt"</A>
                </p>
            }
            .into_any()
        }
        None => view! { <p class="empty">"No prompt yet. The seed prompt comes first."</p> }.into_any(),
    }
}
