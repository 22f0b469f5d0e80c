//! Raising the budget that stopped a run.

use capo_api::RunOrder;
use capo_core::budget::Budget;
use capo_core::reading::progress::Progress;
use capo_core::study::{Format, Study};
use leptos::html::Dialog;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::spawn_local;

use super::{FieldError, Message, close_dialog};
use crate::format;
use crate::frame::keys::TabKeys;
use crate::live::{Run, Runs};
use crate::storage::{RunRecord, Storage, server_id};
use crate::studies;

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
    fn read(&self, former: &Budget, spent: &Spent) -> Result<Budget, Refused> {
        let budget = Budget {
            rollouts: whole(ROLLOUTS, "rollouts", &self.rollouts)?,
            calls: whole(CALLS, "model calls", &self.calls)?,
            tokens: whole(TOKENS, "tokens", &self.tokens)?,
            usd: dollars(&self.usd)?,
            seconds: former.seconds,
        };
        for (field, what, limit, spent) in [
            (ROLLOUTS, "rollouts", budget.rollouts, spent.rollouts),
            (CALLS, "model calls", budget.calls, spent.calls),
            (TOKENS, "tokens", budget.tokens, spent.tokens),
        ] {
            if limit.is_some_and(|limit| limit <= spent) {
                return Err(Refused::at(
                    field,
                    format!(
                        "{} {what} are spent already. Write more than that, or clear the field for no limit.",
                        format::count(spent)
                    ),
                ));
            }
        }
        match (budget.usd, spent.usd) {
            (Some(_), None) => Err(Refused::at(
                DOLLARS,
                "What was spent so far has no known price, so dollars cannot be counted: the run would end at once. \
                 Clear this field.",
            )),
            (Some(limit), Some(spent)) if limit <= spent => Err(Refused::at(
                DOLLARS,
                format!(
                    "{} are spent already. Write more than that, or clear the field for no limit.",
                    format::dollars(Some(spent))
                ),
            )),
            _ => Ok(budget),
        }
    }
}

/// The fields by their ids.
const ROLLOUTS: &str = "raise-rollouts";
const CALLS: &str = "raise-calls";
const TOKENS: &str = "raise-tokens";
const DOLLARS: &str = "raise-dollars";

/// Why the run does not go on with this budget.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refused {
    /// The id of the field that it is about, if of one.
    field: Option<&'static str>,
    message: String,
}

impl Refused {
    fn at(field: &'static str, message: impl Into<String>) -> Self {
        Self {
            field: Some(field),
            message: message.into(),
        }
    }
}

impl<T: ToString> From<T> for Refused {
    fn from(error: T) -> Self {
        Self {
            field: None,
            message: error.to_string(),
        }
    }
}

/// What a run has spent, as far as it is known here.
#[derive(Debug, Clone)]
struct Spent {
    rollouts: u64,
    calls: u64,
    tokens: u64,
    /// `None` where a price is unknown.
    usd: Option<f64>,
}

impl Spent {
    fn of(known: Option<Run>, listed: &Progress) -> Self {
        // What the list has is of the last round.
        let folded = known
            .and_then(|run| run.peek(|folded| (folded.lines() > 0).then(|| Progress::of(&folded.state))));
        let progress = folded.as_ref().unwrap_or(listed);
        let nothing = progress.rollouts == 0 && progress.calls == 0;
        Self {
            rollouts: progress.rollouts,
            calls: progress.calls,
            tokens: progress.tokens,
            usd: progress.usd.or(nothing.then_some(0.0)),
        }
    }
}

fn whole(field: &'static str, what: &str, typed: &str) -> Result<Option<u64>, Refused> {
    let typed = typed.trim().replace(',', "");
    if typed.is_empty() {
        return Ok(None);
    }
    match typed.parse() {
        Ok(0) => Err(Refused::at(
            field,
            format!("A budget of 0 {what} runs nothing. Clear the field for no limit."),
        )),
        Ok(limit) => Ok(Some(limit)),
        Err(_) => Err(Refused::at(
            field,
            format!("“{typed}” is no number of {what}. Write digits only."),
        )),
    }
}

fn dollars(typed: &str) -> Result<Option<f64>, Refused> {
    let typed = typed.trim().trim_start_matches('$');
    if typed.is_empty() {
        return Ok(None);
    }
    match typed.parse::<f64>() {
        Ok(limit) if limit.is_finite() && limit > 0.0 => Ok(Some(limit)),
        Ok(0.0) => Err(Refused::at(
            DOLLARS,
            "A budget of $0 runs nothing. Clear the field for no limit.",
        )),
        _ => Err(Refused::at(
            DOLLARS,
            format!("“{typed}” is no number of dollars."),
        )),
    }
}

/// The study with another budget, as TOML.
fn with_budget(study: &str, typed: &Typed, spent: &Spent) -> Result<String, Refused> {
    let mut study = Study::parse(study, Format::Toml)?;
    study.budget = typed.read(&study.budget, spent)?;
    if study.budget.usd.is_some()
        && let Some(model) = studies::first_unpriced(&study)
    {
        return Err(Refused::at(
            DOLLARS,
            format!(
                "The price of {model} is unknown, so dollars cannot be counted: the run would end at its next call. \
                 Clear this field."
            ),
        ));
    }
    Ok(study.checked()?.to_toml()?)
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
    let failed = RwSignal::new(None::<Refused>);
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
    let close = move || close_dialog(node);
    let go_on = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let Some(id) = raised.with_untracked(|record| Some(record.as_ref()?.id.clone())) else {
            return;
        };
        let (typed, navigate) = (typed.get_untracked(), navigate.clone());
        spawn_local(async move {
            let raised = if server_id(&id).is_some() {
                raise_on_server(runs, &id, &typed).await
            } else {
                let raised = raise(runs, &id, &typed).await;
                raised.map(|()| {
                    runs.resume(&id, &keys.now());
                })
            };
            match raised {
                Ok(()) => {
                    close();
                    navigate(&format!("/run/{id}"), NavigateOptions::default());
                }
                Err(refused) => {
                    // As above.
                    let field = refused.field;
                    let _ = failed.try_set(Some(refused));
                    if let Some(Ok(field)) = field.and_then(field_of) {
                        // One that is gone has no focus to take.
                        let _ = field.focus();
                    }
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
        let wrong = Memo::new(move |_| {
            failed.with(|failed| {
                let of_field = failed.as_ref().filter(|refused| refused.field == Some(id));
                of_field.map(|refused| refused.message.clone())
            })
        });
        let message = format!("{id}-error");
        let described = message.clone();
        view! {
            <div class="field">
                <label for=id>{label}</label>
                <input
                    id=id
                    type="text"
                    inputmode="decimal"
                    placeholder="no limit"
                    aria-invalid=move || wrong.with(Option::is_some).then_some("true")
                    aria-describedby=move || wrong.with(Option::is_some).then(|| described.clone())
                    prop:value=move || typed.with(|typed| read(typed).clone())
                    on:input=move |event| typed.update(|typed| write(typed, event_target_value(&event)))
                />
                <FieldError id=message wrong/>
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
                {field(ROLLOUTS, "Rollouts", |typed| &typed.rollouts, |typed, to| typed.rollouts = to)}
                {field(CALLS, "Model calls", |typed| &typed.calls, |typed, to| typed.calls = to)}
                {field(TOKENS, "Tokens", |typed| &typed.tokens, |typed, to| typed.tokens = to)}
                {field(DOLLARS, "Dollars", |typed| &typed.usd, |typed, to| typed.usd = to)}
                {move || {
                    failed
                        .get()
                        .filter(|refused| refused.field.is_none())
                        .map(|refused| view! { <Message what=refused.message/> })
                }}
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

/// The field of an id.
fn field_of(id: &str) -> Option<Result<web_sys::HtmlElement, web_sys::Element>> {
    document().get_element_by_id(id).map(JsCast::dyn_into)
}

/// Has the server go on under the study with the higher budget.
async fn raise_on_server(runs: Runs, id: &str, typed: &Typed) -> Result<(), Refused> {
    let run = runs.get(id);
    let record = run.record.get_untracked();
    let record = record.ok_or("This run is not read yet. Try again in a moment.")?;
    let study = with_budget(&record.study, typed, &Spent::of(Some(run), &record.progress))?;
    run.give(RunOrder::Resume { study: Some(study) }).await?;
    Ok(())
}

/// Writes the higher budget into the study that the run goes on with.
async fn raise(runs: Runs, id: &str, typed: &Typed) -> Result<(), Refused> {
    let storage = Storage::open().await?;
    let gone = "This run is no longer in this browser.";
    let record = storage.run(id).await?.ok_or(gone)?;
    let study = with_budget(&record.study, typed, &Spent::of(runs.known(id), &record.progress))?;
    let record = storage.change_run(id, |record| record.study = study);
    let record = record.await?.ok_or(gone)?;
    if let Some(known) = runs.known(id) {
        known.set_study(record, storage.files(id).await?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Spent = Spent {
        rollouts: 0,
        calls: 0,
        tokens: 0,
        usd: Some(0.0),
    };

    #[test]
    fn a_raised_budget_is_written_into_the_study() {
        let study = crate::studies::help_desk().unwrap().to_toml().unwrap();
        let typed = Typed {
            rollouts: "8,000".into(),
            usd: "$2.50".into(),
            ..Typed::default()
        };
        let raised = with_budget(&study, &typed, &NOTHING).unwrap();
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
        let said = |typed: Typed| typed.read(&Budget::default(), &NOTHING).unwrap_err().message;
        assert!(said(typed("0", "")).contains("Clear the field"));
        assert!(said(typed("many", "")).contains("Write digits only"));
        assert!(said(typed("", "-3")).contains("no number of dollars"));
        let none = typed(" ", "").read(&Budget::default(), &NOTHING).unwrap();
        assert!(none.is_unlimited());
        let spent = Spent {
            rollouts: 400,
            usd: Some(1.5),
            ..NOTHING
        };
        for (rollouts, usd) in [("300", ""), ("400", ""), ("", "1.5")] {
            let refused = typed(rollouts, usd).read(&Budget::default(), &spent).unwrap_err();
            assert!(refused.message.contains("spent already"), "{refused:?}");
            assert_eq!(
                refused.field,
                Some(if usd.is_empty() { ROLLOUTS } else { DOLLARS })
            );
        }
        assert!(typed("401", "2").read(&Budget::default(), &spent).is_ok());
    }

    #[test]
    fn what_the_list_knows_to_be_spent_is_not_offered_again() {
        let listed = Progress {
            rollouts: 40,
            calls: 90,
            tokens: 7_000,
            usd: Some(0.5),
            ..Progress::default()
        };
        let spent = Spent::of(None, &listed);
        for (calls, tokens, field) in [("90", "", CALLS), ("", "7,000", TOKENS)] {
            let typed = Typed {
                calls: calls.into(),
                tokens: tokens.into(),
                ..Typed::default()
            };
            let refused = typed.read(&Budget::default(), &spent).unwrap_err();
            assert_eq!(refused.field, Some(field));
        }
        assert_eq!(Spent::of(None, &Progress::default()).usd, Some(0.0));
    }

    #[test]
    fn dollars_are_refused_where_they_cannot_be_counted() {
        let dollars = Typed {
            usd: "5".into(),
            ..Typed::default()
        };
        let mut study = crate::studies::help_desk().unwrap();
        let unknown = Spent {
            rollouts: 3,
            usd: None,
            ..NOTHING
        };
        let refused = dollars.read(&study.budget, &unknown).unwrap_err();
        assert!(refused.message.contains("no known price"), "{refused:?}");
        let own = serde_json::json!({ "provider": "openai-compatible", "model": "mine", "base_url": "http://localhost:1" });
        study.models.insert(capo_core::llm::Role::Agent, own);
        let study = study.to_toml().unwrap();
        let refused = with_budget(&study, &dollars, &NOTHING).unwrap_err();
        assert_eq!(refused.field, Some(DOLLARS));
        assert!(
            refused.message.contains("price of mine is unknown"),
            "{refused:?}"
        );
    }
}
