//! The returned prompt on the held-out examples under another model.

use std::cmp::Reverse;

use capo_core::journal::Status;
use capo_core::llm::Role;
use capo_core::reading::examples::Examples;
use capo_core::study::Study;
use capo_core::workload::Split;
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use leptos_router::components::A;
use wasm_bindgen_futures::spawn_local;

use super::differences::Differences;
use super::held_out::HeldOutTable;
use crate::components::{Message, RunTag};
use crate::live::{NewRun, Phase, Run, Runs};
use crate::pages::study::{OtherModel, OtherModelTable};
use crate::run::check;
use crate::storage::{Check, is_report};
use crate::studies::has_own_agent;
use crate::worker::protocol::DataFiles;

/// What was measured under other models, and the form to measure under one more.
#[component]
pub(super) fn OtherModels(run: Run) -> impl IntoView {
    let runs = expect_context::<Runs>();
    let begun = RwSignal::new(Vec::<String>::new());
    let kept = LocalResource::new(move || runs.kept());
    let checks = move || {
        // Without a list there are those that were begun here.
        let mut kept = kept.get().and_then(Result::ok).unwrap_or_default().runs;
        let own = run.id();
        kept.retain(|record| record.check.as_ref().is_some_and(|check| check.of == own));
        kept.sort_by_key(|record| Reverse(record.created as u64));
        let mut ids: Vec<String> = begun.get();
        let known = kept.into_iter().map(|record| record.id);
        let others: Vec<String> = known.filter(|id| !ids.contains(id)).collect();
        ids.extend(others);
        ids
    };
    let asking = RwSignal::new(None::<DataFiles>);
    let failed = RwSignal::new(None::<String>);
    let ask = move |_| {
        spawn_local(async move {
            let opened = runs.begun(run).await;
            // The page may be left by then.
            let _ = failed.try_set(opened.as_ref().err().cloned());
            let _ = asking.try_set(opened.ok().map(|opened| opened.files));
        });
    };
    let begin = Callback::new(move |new: NewRun| {
        let id = runs.begin(new).id();
        begun.update(|begun| begun.insert(0, id));
        asking.set(None);
    });
    let form = move || {
        let files = asking.get()?;
        let study = run.peek(|folded| check::study(&folded.state))?;
        Some(view! { <CheckForm run study files begin/> })
    };
    // What the server runs stays there, and an agent of one's own is no model.
    let may = !is_report()
        && !run.is_on_server()
        && run.peek(|folded| {
            folded
                .state
                .study()
                .is_some_and(|begun| !has_own_agent(&begun.study))
        });
    may.then(|| {
        view! {
            <For each=checks key=Clone::clone let(id)>
                <Checked check=runs.show(&id) of=run/>
            </For>
            <div class="row">
                <Show when=move || asking.with(Option::is_none)>
                    <button type="button" on:click=ask>
                        "Check this prompt on another model…"
                    </button>
                </Show>
            </div>
            {move || failed.get().map(|what| view! { <Message what/> })}
            {form}
        }
    })
}

/// Which model, on how many examples, and what that is expected to take.
#[component]
fn CheckForm(run: Run, study: Study, files: DataFiles, begin: Callback<NewRun>) -> impl IntoView {
    let other = OtherModel::of(study, files);
    let (all, prompt) = run.peek(|folded| {
        let state = &folded.state;
        let best = state
            .finished()
            .and_then(|finished| state.candidate(&finished.best?));
        let prompt = best.map(|best| best.prompt.to_string()).unwrap_or_default();
        (Examples::whole(state, Split::Evaluate).len(), prompt)
    });
    let prompt = StoredValue::new(prompt);
    let typed = RwSignal::new(all.to_string());
    let failed = RwSignal::new(None::<String>);
    let check = move || {
        let examples = typed.with(|typed| typed.trim().parse::<usize>());
        let examples = examples.ok().filter(|examples| (1..=all).contains(examples));
        examples
            .map(|examples| Check {
                of: run.id(),
                prompt: prompt.get_value(),
                examples,
            })
            .ok_or_else(|| format!("Type a whole number of held-out examples, 1 to {all}."))
    };
    let words = Memo::new(move |_| {
        let (study, check) = (other.study()?, check()?);
        Ok(run
            .read(|folded| check::expected(&folded.state, &study, &check))
            .unwrap_or_default())
    });
    let new = move || -> Result<NewRun, String> {
        let (mut study, check) = untrack(|| Ok::<_, String>((other.study()?, check()?)))?;
        study.budget = run.peek(|folded| check::budget(&folded.state, &study, &check));
        let study = study.checked().map_err(|error| error.to_string())?;
        let model = study
            .models
            .get(&Role::Agent)
            .and_then(|table| table["model"].as_str());
        let name = format!("{} on {}", run.name(), model.unwrap_or("another model"));
        Ok(NewRun {
            name,
            check: Some(check),
            ..other.new_run(&study)?
        })
    };
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        match new() {
            Ok(new) => begin.run(new),
            Err(why) => failed.set(Some(why)),
        }
    };
    view! {
        <form class="stack close" aria-label="Check on another model" novalidate on:submit=submit>
            <OtherModelTable other/>
            <div class="field">
                <label for="check-examples">"Held-out examples"</label>
                <input
                    id="check-examples"
                    class="num"
                    type="number"
                    min="1"
                    max=all
                    prop:value=move || typed.get()
                    on:input=move |event| typed.set(event_target_value(&event))
                />
            </div>
            <p class="note" role="status">{move || words.get().unwrap_or_else(|why: String| why)}</p>
            <div class="row">
                <button type="submit" disabled=move || words.with(Result::is_err)>
                    "Check the prompt"
                </button>
            </div>
            {move || failed.get().map(|what| view! { <Message what/> })}
        </form>
    }
}

/// What a check has come to, in the terms of the table of its run.
#[component]
pub fn Checked(
    /// The check.
    check: Run,
    /// The run whose prompt it measures, where that is shown.
    #[prop(optional)]
    of: Option<Run>,
) -> impl IntoView {
    let asked = Memo::new(move |_| check.check());
    let is_measured =
        Memo::new(move |_| matches!(check.status(), Some(Status::Feasible | Status::Infeasible)));
    let rows = Memo::new(move |_| {
        let rows = asked.with(|asked| {
            let asked = asked.as_ref().filter(|_| is_measured.get())?;
            Some(check.read(|folded| check::rows(&folded.state, asked)))
        });
        rows.unwrap_or_default()
    });
    let differences = Memo::new(move |_| {
        let differences = asked.with(|asked| {
            let (asked, of) = (asked.as_ref().filter(|_| is_measured.get())?, of?);
            Some(check.read(|here| of.read(|there| check::differences(&here.state, &there.state, asked))))
        });
        differences.unwrap_or_default()
    });
    let progress = move || {
        asked.with(|asked| check.read(|folded| Some(check::progress(&folded.state, asked.as_ref()?))))
    };
    let name = move || {
        check
            .record
            .with(|record| record.as_ref().map(|record| record.name.clone()))
    };
    let examples = move || asked.with(|asked| asked.as_ref().map_or(0, |asked| asked.examples));
    let failed = move || match check.phase.get() {
        Phase::Failed(what) | Phase::Unreadable(what) => Some(view! { <Message what/> }),
        _ => None,
    };
    view! {
        <div class="row">
            <h3>
                <A href=format!("/run/{}", check.id())>{name}</A>
            </h3>
            <RunTag run=check/>
        </div>
        <p class="note" role="status">
            {progress}
        </p>
        {failed}
        <Show when=move || is_measured.get()>
            <HeldOutTable rows examples=Signal::derive(examples) name=Signal::derive(move || name().unwrap_or_default())/>
        </Show>
        <Show when=move || differences.with(|differences| !differences.is_empty())>
            <p class="reading">"Under this model minus under the run’s own:"</p>
            <Differences differences name="Differences to the run’s own model"/>
        </Show>
    }
}
