//! Several methods and seeds of one study, begun together and compared.

use std::collections::BTreeSet;
use std::time::Duration;

use capo_core::methods;
use capo_core::study::Study;
use leptos::ev::SubmitEvent;
use leptos::html::Dialog;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use serde_json::Value;
use wasm_bindgen_futures::spawn_local;

use super::asking::Forecasted;
use super::cost;
use super::draft::Draft;
use super::form::Form;
use super::on_server::OnServer;
use super::prices;
use super::problem::Problem;
use super::readiness;
use super::start::new_run;
use crate::components::{FieldError, Message, close_dialog, open_dialog};
use crate::format;
use crate::keys::Keys;
use crate::live::{NewRun, Run, Runs};

/// Seeds of each method unless another number is typed, and at most.
const SEEDS: (u64, u64) = (3, 10);

/// The button that asks which methods and how many seeds, and the dialog.
#[component]
pub(super) fn Race(
    /// Where the runs go.
    on_server: OnServer,
    /// Whether the study itself cannot run.
    cannot_run: Signal<bool>,
) -> impl IntoView {
    let node = NodeRef::<Dialog>::new();
    let (is_open, sending) = (RwSignal::new(false), RwSignal::new(false));
    let ask = move |_| {
        is_open.set(true);
        // Once its fields are there.
        request_animation_frame(move || open_dialog(node));
    };
    view! {
        <button type="button" disabled=move || cannot_run.get() aria-describedby="start-why" on:click=ask>
            "Race methods…"
        </button>
        <dialog
            node_ref=node
            aria-labelledby="race-title"
            on:close=move |_| is_open.set(false)
            on:cancel=move |event: web_sys::Event| {
                if sending.get_untracked() {
                    event.prevent_default();
                }
            }
        >
            <Show when=move || is_open.get()>
                <Asked node on_server sending/>
            </Show>
        </dialog>
    }
}

/// A method that is offered.
#[derive(Clone, Copy)]
struct Offer {
    entry: &'static methods::Entry,
    /// What a run of it takes at most.
    forecast: RwSignal<Forecasted>,
    /// What of the study does not fit it, in words.
    unfit: Memo<Option<String>>,
}

impl Offer {
    fn new(form: Form, on_server: OnServer, entry: &'static methods::Entry) -> Self {
        let study = Memo::new(move |_| {
            let with_keys = on_server.project().is_none();
            form.draft
                .with(|draft| variant(form, draft, entry.name, 0, with_keys))
        });
        let forecast = RwSignal::new(None);
        Effect::new(move |_| {
            forecast.set(None);
            let toml = study.with(|study| study.as_ref().ok()?.to_toml().ok());
            if let Some(toml) = toml {
                let files = form.draft.with_untracked(|draft| draft.files.clone());
                form.asking.forecast_other(toml, files, forecast);
            }
        });
        Self {
            entry,
            forecast,
            unfit: Memo::new(move |_| {
                let unfit = study.with(|study| study.as_ref().err().cloned());
                unfit.or_else(|| forecast.with(|forecast| refused(forecast.as_ref()?)))
            }),
        }
    }
}

/// Why a study with this forecast is not worth a run, in words.
fn refused(forecast: &Result<Value, String>) -> Option<String> {
    match forecast {
        Ok(forecast) => forecast["too_small"].as_str().map(str::to_owned),
        Err(message) => Some(Problem::of_text(message).message),
    }
}

#[component]
fn Asked(
    node: NodeRef<Dialog>,
    on_server: OnServer,
    /// Whether the runs are on their way to the server.
    sending: RwSignal<bool>,
) -> impl IntoView {
    let (form, runs) = (expect_context::<Form>(), expect_context::<Runs>());
    let navigate = use_navigate();
    let own = form
        .draft
        .with_untracked(|draft| draft.study.study.method.clone());
    let offers: Vec<Offer> = methods::ALL
        .iter()
        .map(|entry| Offer::new(form, on_server, entry))
        .collect();
    let of_methods = StoredValue::new(offers.clone());
    let ticked = RwSignal::new(BTreeSet::from([own.clone()]));
    let chosen = Memo::new(move |_| {
        let mut chosen = ticked.get();
        of_methods.with_value(|offers| {
            for offer in offers.iter().filter(|offer| offer.unfit.with(Option::is_some)) {
                chosen.remove(offer.entry.name);
            }
        });
        chosen
    });
    let typed = RwSignal::new(SEEDS.0.to_string());
    let failed = RwSignal::new(None::<String>);
    let seeds = Memo::new(move |_| typed.with(|typed| seeds(typed)));
    let count = move || chosen.with(BTreeSet::len) * seeds.get().map_or(0, |seeds| seeds as usize);
    let method = move |Offer { entry, unfit, .. }| {
        let choose = move |event| {
            let is_chosen = event_target_checked(&event);
            ticked.update(|ticked| {
                ticked.remove(entry.name);
                if is_chosen {
                    ticked.insert(entry.name.to_owned());
                }
            });
        };
        view! {
            <label class="choice">
                <input
                    type="checkbox"
                    value=entry.name
                    prop:checked=move || chosen.with(|chosen| chosen.contains(entry.name))
                    disabled=move || unfit.with(Option::is_some)
                    on:change=choose
                />
                <span>
                    {entry.title} <span class="note">" · " {entry.summary}</span>
                    {move || {
                        unfit.get().map(|why| view! { <span class="note is-i">" Does not fit: " {why}</span> })
                    }}
                </span>
            </label>
        }
    };
    let spend = move || {
        let seeds = seeds.get().ok().filter(|_| count() > 1)?;
        let forecasts: Option<Vec<Value>> = of_methods.with_value(|offers| {
            let all = offers
                .iter()
                .filter(|offer| chosen.with(|chosen| chosen.contains(offer.entry.name)));
            all.map(|offer| offer.forecast.get()?.ok()).collect()
        });
        let together = cost::together(&forecasts?, seeds);
        Some(format!("{together}: the sum of what each run takes at most."))
    };
    let start = move |event: SubmitEvent| {
        event.prevent_default();
        let Ok(seeds) = seeds.get_untracked() else { return };
        if sending.get_untracked() || untrack(count) < 2 {
            return;
        }
        // Prices may have changed without a field that was left.
        form.bound_dollars();
        let project = untrack(|| on_server.project());
        let all = match untrack(|| on_server.gone()) {
            Some(gone) => Err(gone),
            None => chosen.with_untracked(|chosen| all(form, &own, chosen, seeds, project.is_none())),
        };
        let moment = on_server.moment();
        let (all, start_at) = match all.and_then(|all| Ok((all, moment?))) {
            Ok(ready) => ready,
            Err(message) => return failed.set(Some(message)),
        };
        failed.set(None);
        sending.set(true);
        let navigate = navigate.clone();
        let compare = move |ids: Vec<String>| {
            close_dialog(node);
            let address = format!("/compare?runs={}", ids.join(","));
            // In a task of its own, so that neither is long.
            set_timeout(
                move || navigate(&address, NavigateOptions::default()),
                Duration::ZERO,
            );
        };
        let Some(project) = project else {
            let begun = runs.begin_in_turn(all, move || form.keys.now());
            return compare(begun.iter().map(Run::id).collect());
        };
        spawn_local(async move {
            let mut ids = Vec::new();
            for new in all {
                match runs.begin_on_server(&project, new, start_at.clone()).await {
                    Ok(run) => ids.push(run.id()),
                    Err(why) => {
                        // The page may be left by then.
                        let _ = sending.try_set(false);
                        let begun = format::counted(ids.len(), "run");
                        failed.try_set(Some(format!("{why} Begun before: {begun}, listed under Runs.")));
                        return;
                    }
                }
            }
            if sending.try_set(false).is_none() {
                compare(ids);
            }
        });
    };
    view! {
        <form on:submit=start novalidate>
            <header>
                <h2 id="race-title">"Race methods"</h2>
            </header>
            <p>
                "Every method with every seed is a run of its own, with the study’s settings as far as a method has them. \
                 In this browser two work at once, and the others wait. They are compared by method, with what all spend."
            </p>
            <fieldset class="field">
                <legend>"Methods"</legend>
                {offers.into_iter().map(method).collect_view()}
            </fieldset>
            <div class="field narrow">
                <label for="race-seeds">"Seeds of each"</label>
                <input
                    id="race-seeds"
                    inputmode="numeric"
                    prop:value=move || typed.get()
                    aria-invalid=move || seeds.with(Result::is_err).then_some("true")
                    aria-describedby="race-seeds-wrong"
                    on:input=move |event| typed.set(event_target_value(&event))
                />
                <FieldError id="race-seeds-wrong" wrong=Signal::derive(move || seeds.get().err())/>
            </div>
            <p class="reading">{spend}</p>
            {move || failed.get().map(|what| view! { <Message what/> })}
            <footer>
                <button type="button" disabled=move || sending.get() on:click=move |_| close_dialog(node)>
                    "Cancel"
                </button>
                <button
                    type="submit"
                    class="primary"
                    disabled=move || { count() < 2 }
                    aria-disabled=move || sending.get().then_some("true")
                >
                    {move || match count() {
                        _ if sending.get() => "Sending them to the server…".to_owned(),
                        0 | 1 => "Start two runs or more".to_owned(),
                        count => format!("Start {count} runs"),
                    }}
                </button>
            </footer>
        </form>
    }
}

/// The number of seeds that was typed.
fn seeds(typed: &str) -> Result<u64, String> {
    let typed = format::typed::whole(typed)?.map(|typed| typed as u64);
    let within = typed.filter(|typed| (1..=SEEDS.1).contains(typed));
    within.ok_or_else(|| format!("Type a number of seeds, 1 to {}.", SEEDS.1))
}

/// The study with another method, `further` seeds after its own.
///
/// # Errors
/// What of it does not fit the method, in words.
fn variant(form: Form, draft: &Draft, method: &str, further: u64, with_keys: bool) -> Result<Study, String> {
    let study = with_method(draft, method, further)?;
    let asked = form.measured.with(|measured| measured.asked(&study));
    let unpriced = prices::without_price(&study, &asked).filter(|_| !draft.has_usual_limit);
    if let Some(problem) = unpriced {
        return Err(problem.message);
    }
    match &readiness::lacking(form, &study, with_keys)[..] {
        [] => Ok(study),
        missing => Err(format!("{}.", format::listed(missing))),
    }
}

fn with_method(draft: &Draft, method: &str, further: u64) -> Result<Study, String> {
    let mut draft = draft.clone();
    if draft.study.study.method != method {
        draft.take_method(method);
    }
    draft.study.study.seed = draft.study.study.seed.saturating_add(further);
    draft.checked().map_err(|problems| {
        let messages = problems.into_iter().map(|problem| problem.message);
        messages.collect::<Vec<_>>().join(" ")
    })
}

/// The runs of these methods, the study's `own` first, seed by seed.
fn all(
    form: Form,
    own: &str,
    chosen: &BTreeSet<String>,
    seeds: u64,
    with_keys: bool,
) -> Result<Vec<NewRun>, String> {
    let draft = form.draft.get_untracked();
    let in_list = methods::ALL.iter().filter(|entry| chosen.contains(entry.name));
    let (first, others): (Vec<_>, Vec<_>) = in_list.partition(|entry| entry.name == own);
    let run = |further: u64, entry: &methods::Entry| {
        let study = untrack(|| variant(form, &draft, entry.name, further, with_keys));
        let study = study.map_err(|why| format!("{}: {why}", entry.title))?;
        // The keys are those of the moment at which it begins.
        let new = new_run(&study, draft.named_files(), Keys::new(), None)?;
        Ok(NewRun {
            name: format!("{}, {}, seed {}", new.name, entry.title, study.study.seed),
            ..new
        })
    };
    let entries: Vec<_> = first.into_iter().chain(others).collect();
    (0..seeds)
        .flat_map(|further| entries.iter().map(move |entry| (further, *entry)))
        .map(|(further, entry)| run(further, entry))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_method_gets_the_study_s_settings_and_its_own_seed_or_says_what_does_not_fit() {
        let draft = Draft::new().unwrap();
        let own = with_method(&draft, "capo", 2).unwrap();
        assert_eq!((own.study.seed, &own.method["pool"]), (2, &3.into()));
        let other = with_method(&draft, "gepa", 0).unwrap();
        assert_eq!(other.study.method, "gepa");
        assert_eq!(other.budget, draft.study.budget);
        let mut unfit = draft.clone();
        unfit.study.method.insert("parents".into(), 0.into());
        assert!(with_method(&unfit, "capo", 0).unwrap_err().contains("Parents"));
        assert!(with_method(&unfit, "gepa", 0).is_ok());
    }

    #[test]
    fn what_a_forecast_alone_finds_does_not_fit() {
        let small = json!({ "rollouts": 9, "too_small": "It is too small." });
        assert_eq!(refused(&Ok(small)).as_deref(), Some("It is too small."));
        let wrong = Err("budget: needs `usd`".to_owned());
        assert_eq!(refused(&wrong).as_deref(), Some("Needs usd."));
        assert_eq!(refused(&Ok(json!({ "rollouts": 9 }))), None);
    }

    #[test]
    fn seeds_are_one_to_ten() {
        assert_eq!(seeds(" 4 "), Ok(4));
        for wrong in ["", "0", "11", "2.5", "many"] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }
}
