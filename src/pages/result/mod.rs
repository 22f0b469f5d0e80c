//! The page to take the result away from: one sentence, the prompt, and what the held-out examples
//! say about it.

mod by_example;
mod costs;
mod differences;
mod held_out;
mod other_run;
mod prompt;
mod so_far;
mod story;
mod take_away;
mod trade_off;
mod verdict;

use leptos::prelude::*;

use self::by_example::ByExamplePlate;
use self::costs::CostsPlate;
use self::differences::SeedPlate;
use self::held_out::HeldOutPlate;
use self::other_run::OtherRunPlate;
use self::prompt::PromptPlate;
use self::so_far::SoFar;
use self::story::StoryPlate;
use self::trade_off::TradeOffPlate;
use self::verdict::Verdict;
use crate::components::{Deferred, RunHead, RunNotices, page_title, with_run};
use crate::live::Run;
use crate::run::outcome::Outcome;

/// The result of the run its address names.
#[component]
pub fn ResultPage() -> impl IntoView {
    with_run(|run| view! { <ResultOf run/> })
}

#[component]
fn ResultOf(run: Run) -> impl IntoView {
    page_title(move || {
        let name = run
            .record
            .with(|record| record.as_ref().map(|record| record.name.clone()));
        format!("Result of {}", name.unwrap_or_default())
    });
    let outcome = Memo::new(move |_| run.read(|folded| Outcome::new(&folded.state)));
    let ended = Memo::new(move |_| outcome.with(Option::is_some));
    let measured = Memo::new(move |_| {
        outcome.with(|outcome| {
            outcome
                .as_ref()
                .is_some_and(|outcome| outcome.rows.iter().any(|row| row.best.is_some()))
        })
    });
    view! {
        <RunHead run/>
        <RunNotices run/>
        <Show when=move || ended.get() fallback=move || view! { <SoFar run/> }>
            <Verdict run outcome/>
        </Show>
        <div class="g g-result">
            <PromptPlate run/>
            <div class="stack">
                <Show when=move || measured.get()>
                    <HeldOutPlate outcome/>
                    <SeedPlate run/>
                    <OtherRunPlate run/>
                </Show>
                <CostsPlate run letter=Signal::derive(move || if measured.get() { "E" } else { "B" })/>
            </div>
        </div>
        <Show when=move || measured.get()>
            <Deferred>
                <ByExamplePlate run/>
            </Deferred>
        </Show>
        <Deferred>
            <StoryPlate run letter=Signal::derive(move || if measured.get() { "G" } else { "C" })/>
        </Deferred>
        <Deferred>
            <TradeOffPlate run letter=Signal::derive(move || if measured.get() { "H" } else { "D" })/>
        </Deferred>
    }
}
