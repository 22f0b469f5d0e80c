//! The page to take the result away from: one sentence, the prompt, and what the held-out examples
//! say about it.

mod costs;
mod differences;
mod held_out;
mod other_model;
mod other_run;
mod prompt;
mod so_far;
mod story;
mod take_away;
mod trade_off;
mod verdict;

use capo_core::reading::comparison;
use capo_core::workload::Split;
use leptos::prelude::*;

pub use self::other_model::CheckPlate;

use self::costs::CostsPlate;
use self::differences::SeedPlate;
use self::held_out::HeldOutPlate;
use self::other_run::OtherRunPlate;
use self::prompt::{Best, PromptPlate};
use self::so_far::SoFar;
use self::story::StoryPlate;
use self::trade_off::TradeOffPlate;
use self::verdict::Verdict;
use crate::components::{Deferred, RunHead, RunNotices, page_title, plate_letter, with_run};
use crate::live::Run;
use crate::pages::examples::{ByExamplePlate, Side};
use crate::run::by_example::ByExample;
use crate::run::outcome::Outcome;
use crate::run::story::story;

/// The letter of a plate that comes after so many others, and after those of `more` that are shown.
fn letter<const N: usize>(others: usize, more: [Memo<bool>; N]) -> Signal<&'static str> {
    Signal::derive(move || {
        let shown = more.iter().filter(|shown| shown.get()).count();
        plate_letter(others + shown)
    })
}

/// The result of the run its address names.
#[component]
pub fn ResultPage() -> impl IntoView {
    with_run(|run| match untrack(|| run.check()) {
        None => view! { <ResultOf run/> }.into_any(),
        Some(_) => view! {
            <RunHead run/>
            <RunNotices run/>
            <CheckPlate check=run/>
            <CostsPlate run letter=letter(1, [])/>
        }
        .into_any(),
    })
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
    let differences = Memo::new(move |_| {
        run.read(|folded| comparison::best_minus_seed(&folded.state, Split::Evaluate).metrics)
    });
    let pairs = Memo::new(move |_| run.read(|folded| ByExample::seed_and_best(&folded.state)));
    let sides = Memo::new(move |_| {
        let best = run.read(|folded| Best::of(folded).map(|best| best.called()));
        ["seed", best.unwrap_or("best prompt")].map(|name| Side {
            run,
            name: name.to_owned(),
        })
    });
    let steps = Memo::new(move |_| {
        let told = run.read(|folded| Some(story(&folded.state, folded.state.finished()?.best?)));
        told.unwrap_or_default()
    });
    // Of the plates that are not always there; what is far down is read when its turn comes.
    let differs = Memo::new(move |_| measured.get() && differences.with(|found| !found.is_empty()));
    let paired = Memo::new(move |_| measured.get() && pairs.with(Option::is_some));
    let told = Memo::new(move |_| steps.with(|steps| !steps.is_empty()));
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
                    <HeldOutPlate run outcome/>
                    <SeedPlate differences letter=letter(2, [])/>
                    <OtherRunPlate run letter=letter(2, [differs])/>
                </Show>
                <CostsPlate run letter=letter(1, [measured, differs, measured])/>
            </div>
        </div>
        <Show when=move || measured.get()>
            <Deferred>
                <ByExamplePlate sides found=pairs letter=letter(4, [differs]) page=format!("/run/{}/result", run.id())/>
            </Deferred>
        </Show>
        <Deferred>
            <StoryPlate run steps letter=letter(2, [measured, differs, measured, paired])/>
        </Deferred>
        <Deferred>
            <TradeOffPlate
                run
                letter=move |place: usize| letter(2 + place, [measured, differs, measured, paired, told])
            />
        </Deferred>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_letter_is_left_out_where_a_plate_is() {
        let owner = Owner::new();
        owner.set();
        let [yes, no] = [true, false].map(|shown| Memo::new(move |_| shown));
        assert_eq!(letter(2, [yes, yes, yes, yes, yes]).get_untracked(), "H");
        assert_eq!(letter(2, [yes, no, yes, no, no]).get_untracked(), "E");
        assert_eq!(letter(2, [no, no, no, no, yes]).get_untracked(), "D");
    }
}
