//! The returned prompt on the held-out examples under another model.

use std::cmp::Reverse;
use std::time::Duration;

use capo_core::ids::CandidateId;
use capo_core::journal::Status;
use capo_core::llm::Role;
use capo_core::reading::comparison::Difference;
use capo_core::reading::examples::Examples;
use capo_core::run_state::RunState;
use capo_core::study::Study;
use capo_core::workload::Split;
use leptos::ev::SubmitEvent;
use leptos::html::H3;
use leptos::prelude::*;
use leptos_router::components::A;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::spawn_local;
use web_sys::HtmlElement;

use super::differences::Differences;
use super::held_out::HeldOutTable;
use crate::components::{FieldError, Message, Plate, RunTag, hold_focus};
use crate::format::typed::whole;
use crate::live::{NewRun, Phase, Run, Runs};
use crate::pages::study::{OtherModel, OtherModelTable};
use crate::run::check;
use crate::storage::{Check, is_report};
use crate::studies::has_own_agent;
use crate::worker::protocol::DataFiles;

/// The id of a check's heading.
fn heading(check: &str) -> String {
    format!("check-{check}")
}

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
        if asking.with_untracked(Option::is_some) {
            return asking.set(None);
        }
        spawn_local(async move {
            let opened = runs.begun(run).await;
            // The page may be left by then.
            let _ = failed.try_set(opened.as_ref().err().cloned());
            let _ = asking.try_set(opened.ok().map(|opened| opened.files));
        });
    };
    let begin = Callback::new(move |new: NewRun| {
        let id = runs.begin(new).id();
        let heading = heading(&id);
        begun.update(|begun| begun.insert(0, id));
        asking.set(None);
        let focus = move || {
            let heading = document().get_element_by_id(&heading);
            if let Some(Ok(heading)) = heading.map(JsCast::dyn_into::<HtmlElement>) {
                // One that is gone by now takes no focus.
                let _ = heading.focus();
            }
        };
        // What shows it is drawn in tasks of its own.
        set_timeout(focus, Duration::ZERO);
    });
    let form = move || {
        let files = asking.get()?;
        let study = run.peek(|folded| check::study(&folded.state))?;
        Some(view! { <CheckForm run study files asking begin/> })
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
                // It stays, so that the focus can come back to it.
                <button
                    type="button"
                    id="check-prompt"
                    aria-expanded=move || asking.with(Option::is_some).to_string()
                    on:click=ask
                >
                    "Check this prompt on another model…"
                </button>
            </div>
            {move || failed.get().map(|what| view! { <Message what/> })}
            {form}
        }
    })
}

/// Which model, on how many examples, and what that is expected to take.
#[component]
fn CheckForm(
    run: Run,
    study: Study,
    files: DataFiles,
    asking: RwSignal<Option<DataFiles>>,
    begin: Callback<NewRun>,
) -> impl IntoView {
    let title = NodeRef::<H3>::new();
    hold_focus(title, "#check-prompt");
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
        let examples = typed.with(|typed| whole(typed)).ok().flatten();
        let examples = examples.map(|examples| examples as usize);
        let examples = examples.filter(|examples| (1..=all).contains(examples));
        examples
            .map(|examples| Check {
                of: run.id(),
                prompt: prompt.get_value(),
                examples,
            })
            .ok_or_else(|| format!("Type a whole number of held-out examples, 1 to {all}."))
    };
    let wrong = Memo::new(move |_| check().err());
    let words = Memo::new(move |_| {
        let (study, check) = (other.study()?, check().map_err(|_| String::new())?);
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
        <form class="stack close" aria-labelledby="check-title" novalidate on:submit=submit>
            <h3 id="check-title" tabindex="-1" node_ref=title>
                "Check on another model"
            </h3>
            <OtherModelTable other/>
            <div class="field">
                <label for="check-examples">"Held-out examples"</label>
                <input
                    id="check-examples"
                    class="num"
                    inputmode="numeric"
                    aria-invalid=move || wrong.with(Option::is_some).then_some("true")
                    aria-describedby="check-examples-wrong"
                    prop:value=move || typed.get()
                    on:input=move |event| typed.set(event_target_value(&event))
                />
                <FieldError id="check-examples-wrong" wrong/>
            </div>
            <p class="note">{move || words.get().unwrap_or_else(|why: String| why)}</p>
            <div class="row">
                <button type="submit" disabled=move || words.with(Result::is_err)>
                    "Check the prompt"
                </button>
                <button type="button" on:click=move |_| asking.set(None)>
                    "Cancel"
                </button>
            </div>
            {move || failed.get().map(|what| view! { <Message what/> })}
        </form>
    }
}

/// A check on a page of its own: whose prompt it measures, and what it has come to.
#[component]
pub fn CheckPlate(check: Run) -> impl IntoView {
    let runs = expect_context::<Runs>();
    let asked = untrack(|| check.check());
    asked.map(|asked| {
        let (of, id) = (runs.show(&asked.of), CandidateId::of(&asked.prompt));
        let (run, prompt) = (
            format!("/run/{}", asked.of),
            format!("/run/{}/candidate/{id}", asked.of),
        );
        let name = move || of.record.with(|record| Some(record.as_ref()?.name.clone()));
        let origin = move || {
            if of.is_unreadable() {
                return format!("{} of a run that is not in this browser any more.", id.short()).into_any();
            }
            view! { <A href=prompt.clone()>{id.short()}</A> " of " <A href=run.clone()>{name}</A> "." }
                .into_any()
        };
        view! {
            <Plate letter="A" title=|| "Held-out evaluation">
                <p class="note">"It measures prompt " {origin}</p>
                <Checked check of/>
            </Plate>
        }
    })
}

/// What a check has come to, in the terms of the table of its run.
#[component]
fn Checked(
    check: Run,
    /// The run whose prompt it measures.
    of: Run,
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
    let differences = move |read: fn(&RunState, &RunState, &Check) -> Vec<Difference>| {
        Memo::new(move |_| {
            let differences = asked.with(|asked| {
                let asked = asked.as_ref().filter(|_| is_measured.get())?;
                Some(check.read(|here| of.read(|there| read(&here.state, &there.state, asked))))
            });
            differences.unwrap_or_default()
        })
    };
    let to_own = differences(check::differences);
    let to_seed = differences(|state, _, asked| check::against_seed(state, asked));
    let earlier = Memo::new(move |_| {
        asked.with(|asked| of.read(|folded| check::earlier(&folded.state, asked.as_ref()?)))
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
            <h3 id=heading(&check.id()) tabindex="-1">
                <A href=format!("/run/{}", check.id())>{name}</A>
            </h3>
            <RunTag run=check/>
        </div>
        <p class="note">{progress}</p>
        {move || {
            let earlier = earlier.get()?.short();
            Some(view! { <p class="note">"It measured " {earlier} ", an earlier prompt of the run."</p> })
        }}
        {failed}
        <Show when=move || is_measured.get()>
            <HeldOutTable rows examples=Signal::derive(examples) name=Signal::derive(move || name().unwrap_or_default())/>
        </Show>
        <Show when=move || to_own.with(|differences| !differences.is_empty())>
            <p class="reading">"Under this model minus under the run’s own, on the same examples:"</p>
            <Differences differences=to_own name="Differences to the run’s own model"/>
        </Show>
        <Show when=move || to_seed.with(|differences| !differences.is_empty())>
            <p class="reading">"Under this model, the prompt minus the seed prompt:"</p>
            <Differences differences=to_seed name="Differences to the seed prompt under this model"/>
        </Show>
    }
}
