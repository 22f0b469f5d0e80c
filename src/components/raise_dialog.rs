//! Raising the budget that stopped a run.

use capo_core::budget::Budget;
use capo_core::study::{Format, Study};
use leptos::html::Dialog;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use wasm_bindgen_futures::spawn_local;

use super::Message;
use crate::format;
use crate::frame::keys::TabKeys;
use crate::live::{Run, Runs};
use crate::storage::{Progress, RunRecord, Storage, StorageError};

/// The fields of the dialog as they are typed; empty for no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Typed {
    rollouts: String,
    calls: String,
    tokens: String,
    usd: String,
}

impl Typed {
    fn of(budget: &Budget) -> Self {
        let whole = |limit: Option<u64>| limit.map(|limit| limit.to_string()).unwrap_or_default();
        Self {
            rollouts: whole(budget.rollouts),
            calls: whole(budget.calls),
            tokens: whole(budget.tokens),
            usd: budget.usd.map(|usd| usd.to_string()).unwrap_or_default(),
        }
    }

    /// The budget they mean; seconds stay as they were, since a resumed run counts them anew.
    fn read(&self, former: &Budget, spent: &Spent) -> Result<Budget, String> {
        let budget = Budget {
            rollouts: whole("rollouts", &self.rollouts)?,
            calls: whole("model calls", &self.calls)?,
            tokens: whole("tokens", &self.tokens)?,
            usd: dollars(&self.usd)?,
            seconds: former.seconds,
        };
        for (what, limit, spent) in [
            ("rollouts", budget.rollouts, spent.rollouts),
            ("model calls", budget.calls, spent.calls),
            ("tokens", budget.tokens, spent.tokens),
        ] {
            if limit.is_some_and(|limit| limit <= spent) {
                return Err(format!(
                    "{} {what} are spent already. Write more than that, or clear the field for no limit.",
                    format::count(spent)
                ));
            }
        }
        match (budget.usd, spent.usd) {
            (Some(limit), Some(spent)) if limit <= spent => Err(format!(
                "{} are spent already. Write more than that, or clear the field for no limit.",
                format::dollars(Some(spent))
            )),
            _ => Ok(budget),
        }
    }
}

/// What a run has spent, as far as it is known here.
#[derive(Debug, Clone, Default)]
struct Spent {
    rollouts: u64,
    calls: u64,
    tokens: u64,
    usd: Option<f64>,
}

impl Spent {
    fn of(known: Option<Run>, progress: &Progress) -> Self {
        let listed = Self {
            rollouts: progress.rollouts,
            usd: progress.usd,
            ..Self::default()
        };
        known.map_or(listed.clone(), |run| {
            run.peek(|folded| {
                let total = folded.state.ledger().usage().total();
                Self {
                    rollouts: folded.state.ledger().rollouts().max(listed.rollouts),
                    calls: total.calls,
                    tokens: total.input_tokens + total.output_tokens,
                    usd: total.usd.or(listed.usd),
                }
            })
        })
    }
}

fn whole(what: &str, typed: &str) -> Result<Option<u64>, String> {
    let typed = typed.trim().replace(',', "");
    if typed.is_empty() {
        return Ok(None);
    }
    match typed.parse() {
        Ok(0) => Err(format!(
            "A budget of 0 {what} runs nothing. Clear the field for no limit."
        )),
        Ok(limit) => Ok(Some(limit)),
        Err(_) => Err(format!("“{typed}” is no number of {what}. Write digits only.")),
    }
}

fn dollars(typed: &str) -> Result<Option<f64>, String> {
    let typed = typed.trim().trim_start_matches('$');
    if typed.is_empty() {
        return Ok(None);
    }
    match typed.parse::<f64>() {
        Ok(limit) if limit.is_finite() && limit > 0.0 => Ok(Some(limit)),
        Ok(0.0) => Err("A budget of $0 runs nothing. Clear the field for no limit.".to_owned()),
        _ => Err(format!("“{typed}” is no number of dollars.")),
    }
}

/// The study with another budget, as TOML.
fn with_budget(study: &str, typed: &Typed, spent: &Spent) -> Result<String, String> {
    let mut study = Study::parse(study, Format::Toml).map_err(|error| error.to_string())?;
    study.budget = typed.read(&study.budget, spent)?;
    let study = study.checked().and_then(|study| study.to_toml());
    study.map_err(|error| error.to_string())
}

/// Asks for a higher budget and goes on with it.
#[component]
pub fn RaiseDialog(
    /// The run as it is listed; set to open the dialog.
    raised: RwSignal<Option<RunRecord>>,
) -> impl IntoView {
    let runs = expect_context::<Runs>();
    let keys = expect_context::<TabKeys>();
    let navigate = use_navigate();
    let node = NodeRef::<Dialog>::new();
    let typed = RwSignal::new(Typed::default());
    let failed = RwSignal::new(None::<String>);
    Effect::new(move |_| {
        let (Some(record), Some(dialog)) = (raised.get(), node.get()) else {
            return;
        };
        let study = Study::parse(&record.study, Format::Toml).ok();
        typed.set(study.map(|study| Typed::of(&study.budget)).unwrap_or_default());
        failed.set(None);
        // Fails only when it is open already.
        let _ = dialog.show_modal();
    });
    let close = move || {
        // The page may have been left by then.
        if let Some(dialog) = node.try_get_untracked().flatten() {
            dialog.close();
        }
    };
    let go_on = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let Some(id) = raised.with_untracked(|record| Some(record.as_ref()?.id.clone())) else {
            return;
        };
        let (typed, navigate) = (typed.get_untracked(), navigate.clone());
        spawn_local(async move {
            match raise(runs, &id, &typed).await {
                Ok(()) => {
                    close();
                    runs.resume(&id, &keys.now());
                    navigate(&format!("/run/{id}"), NavigateOptions::default());
                }
                Err(message) => {
                    // As above.
                    let _ = failed.try_set(Some(message));
                }
            }
        });
    };
    let spent = move || {
        let progress = raised.get()?.progress;
        Some(format!(
            "Spent so far: {} rollouts, {}. What was answered is kept and not paid for again. Empty means no limit.",
            format::count(progress.rollouts),
            format::dollars(progress.usd)
        ))
    };
    let field = move |id: &'static str,
                      label: &'static str,
                      read: fn(&Typed) -> &String,
                      write: fn(&mut Typed, String)| {
        view! {
            <div class="field">
                <label for=id>{label}</label>
                <input
                    id=id
                    type="text"
                    inputmode="decimal"
                    placeholder="no limit"
                    prop:value=move || typed.with(|typed| read(typed).clone())
                    on:input=move |event| typed.update(|typed| write(typed, event_target_value(&event)))
                />
            </div>
        }
    };
    view! {
        <dialog
            node_ref=node
            aria-labelledby="raise-title"
            on:close=move |_| raised.set(None)
        >
            <form on:submit=go_on>
                <header>
                    <h2 id="raise-title">"Raise the budget"</h2>
                </header>
                <p>{spent}</p>
                {field("raise-rollouts", "Rollouts", |typed| &typed.rollouts, |typed, to| typed.rollouts = to)}
                {field("raise-calls", "Model calls", |typed| &typed.calls, |typed, to| typed.calls = to)}
                {field("raise-tokens", "Tokens", |typed| &typed.tokens, |typed, to| typed.tokens = to)}
                {field("raise-dollars", "Dollars", |typed| &typed.usd, |typed, to| typed.usd = to)}
                {move || failed.get().map(|what| view! { <Message what/> })}
                <footer>
                    <button type="button" on:click=move |_| close()>
                        "Cancel"
                    </button>
                    <button type="submit">"Go on with this budget"</button>
                </footer>
            </form>
        </dialog>
    }
}

/// Writes the higher budget into the study that the run goes on with.
async fn raise(runs: Runs, id: &str, typed: &Typed) -> Result<(), String> {
    let failed = |error: StorageError| error.to_string();
    let storage = Storage::open().await.map_err(failed)?;
    let gone = "This run is no longer in this browser.";
    let record = storage.run(id).await.map_err(failed)?.ok_or(gone)?;
    let study = with_budget(&record.study, typed, &Spent::of(runs.known(id), &record.progress))?;
    let record = storage.change_run(id, |record| record.study = study);
    let record = record.await.map_err(failed)?.ok_or(gone)?;
    if let Some(known) = runs.known(id) {
        known.set_study(record, storage.files(id).await.map_err(failed)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_budget_is_written_into_the_study() {
        let study = crate::studies::help_desk().unwrap().to_toml().unwrap();
        let typed = Typed {
            rollouts: "8,000".into(),
            usd: "$2.50".into(),
            ..Typed::default()
        };
        let raised = with_budget(&study, &typed, &Spent::default()).unwrap();
        let raised = Study::parse(&raised, Format::Toml).unwrap();
        assert_eq!(raised.budget.rollouts, Some(8000));
        assert_eq!(raised.budget.usd, Some(2.5));
        assert_eq!(raised.budget.calls, None);
        let former = Study::parse(&study, Format::Toml).unwrap();
        assert_eq!(raised.identity(), former.identity());
    }

    #[test]
    fn what_is_no_budget_is_said() {
        let typed = |rollouts: &str, usd: &str| Typed {
            rollouts: rollouts.into(),
            usd: usd.into(),
            ..Typed::default()
        };
        let said = |typed: Typed| typed.read(&Budget::default(), &Spent::default()).unwrap_err();
        assert!(said(typed("0", "")).contains("Clear the field"));
        assert!(said(typed("many", "")).contains("Write digits only"));
        assert!(said(typed("", "-3")).contains("no number of dollars"));
        let none = typed(" ", "")
            .read(&Budget::default(), &Spent::default())
            .unwrap();
        assert!(none.is_unlimited());
        let spent = Spent {
            rollouts: 400,
            usd: Some(1.5),
            ..Spent::default()
        };
        for (rollouts, usd) in [("300", ""), ("400", ""), ("", "1.5")] {
            let refused = typed(rollouts, usd).read(&Budget::default(), &spent).unwrap_err();
            assert!(refused.contains("spent already"), "{refused}");
        }
        assert!(typed("401", "2").read(&Budget::default(), &spent).is_ok());
    }
}
