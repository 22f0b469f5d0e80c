//! The method section: the method and its hyperparameters, explained.

use capo_core::methods;
use capo_core::study::{LARGEST_CAUTION, LARGEST_CHOICE_PROBABILITY, Rounds, UntilBudget};
use leptos::prelude::*;
use leptos_router::components::A;
use serde_json::Value;

use super::confirm::ConfirmFields;
use super::feedback::FeedbackFields;
use super::field::{Number, NumberField};
use super::fold::Folded;
use super::form::Form;
use super::place::Place;
use super::setting_field::SettingField;
use super::settings::{Setting, settings};
use crate::format;
use crate::schemas;
use crate::studies;

/// The keys of a method that most people look at; the others wait under "More settings".
const FIRST: [&str; 8] = [
    "parents",
    "children",
    "pool",
    "beta",
    "lambda_max",
    "gamma",
    "k",
    "weight",
];

/// Method, hyperparameters, seed.
#[component]
pub(super) fn MethodSection() -> impl IntoView {
    let form = expect_context::<Form>();
    let method = form.memo(|study| study.study.method.clone());
    let lead = || {
        view! {
            "A new study goes on until the budget is spent, with batches that grow and a smaller pool than the paper’s. "
            <A href="/dynamics">"What the settings do"</A>
        }
    };
    let options = methods::ALL
        .iter()
        .map(|entry| {
            let shown = format!("{}: {}", entry.title, entry.summary);
            view! {
                <option value=entry.name prop:selected=move || method.with(|method| method == entry.name)>
                    {shown}
                </option>
            }
        })
        .collect_view();
    let change = move |event| form.renew(|draft| draft.take_method(&event_target_value(&event)));
    let paper = move |_| {
        form.renew(|draft| {
            draft.study.use_paper_preset();
            for key in [
                "study.rounds",
                "study.caution",
                "study.choice_probability",
                "method.pool",
            ] {
                draft.wrong.remove(key);
            }
        });
    };
    let set = form.memo(|study| {
        let rounds = studies::rounds(study).map(|rounds| format::counted(rounds as usize, "round"));
        let rounds = rounds.unwrap_or_else(|| "until the budget is spent".to_owned());
        format!("{}, {rounds}", studies::method_name(&study.study.method))
    });
    let fields = move || method.with(|method| hyperparameters(method));
    view! {
        <Folded title="Method" set lead=lead>
            <div class="field narrow">
                <label for="method">"Method"</label>
                <select id="method" on:change=change>
                    {options}
                </select>
            </div>
            {fields}
            <UntilBudgetChoice/>
            <div class="row">
                <button type="button" on:click=paper>
                    "The paper’s settings"
                </button>
                <span class="note">"Counted rounds, its batches and pool, no caution."</span>
            </div>
            <FeedbackFields/>
            <ConfirmFields/>
        </Folded>
    }
}

/// The fields of a method, and what each of them does.
fn hyperparameters(method: &str) -> impl IntoView + use<> {
    let described = settings(schemas::method(method));
    let (first, more): (Vec<Setting>, Vec<Setting>) = described
        .iter()
        .cloned()
        .partition(|setting| FIRST.contains(&setting.key.as_str()));
    let field = |setting: Setting| view! { <SettingField place=Place::Method setting/> };
    let rows = described.into_iter().map(explained).collect_view();
    let more = more.into_iter().map(field).collect_view();
    let caution = Number::new(
        "study.caution",
        "Caution",
        |study| Some(study.study.caution),
        |study, value| study.study.caution = value.unwrap_or_default(),
    )
    .at_least(0.0)
    .at_most(LARGEST_CAUTION);
    let probability = Number::new(
        "study.choice_probability",
        "Choice probability",
        |study| Some(study.study.choice_probability),
        |study, value| study.study.choice_probability = value.unwrap_or_default(),
    )
    .at_least(0.0)
    .at_most(LARGEST_CHOICE_PROBABILITY);
    view! {
        <div class="fields">
            <NumberField number=rounds()/>
            {first.into_iter().map(field).collect_view()}
            <NumberField number=Number::new(
                    "study.seed",
                    "Seed",
                    |study| Some(study.study.seed as f64),
                    |study, value| study.study.seed = value.unwrap_or_default() as u64,
                )
                .counted()/>
        </div>
        <details>
            <summary>"More settings"</summary>
            <div class="fields">
                {more}
                <NumberField number=caution/>
                <NumberField number=probability/>
            </div>
        </details>
        <details>
            <summary>"What each of these does"</summary>
            <div class="scroll" tabindex="0" role="group" aria-label="Settings explained, scrolls sideways">
                <table class="facts">
                    <thead>
                        <tr>
                            <th scope="col">"Setting"</th>
                            <th scope="col">"What it does"</th>
                            <th scope="col" class="num">"Paper"</th>
                        </tr>
                    </thead>
                    <tbody>
                        <tr>
                            <th scope="row">"Rounds"</th>
                            <td>"How often prompts are rewritten and multipliers move."</td>
                            <td class="num">"6"</td>
                        </tr>
                        <tr>
                            <th scope="row">"Seed"</th>
                            <td>"Every random choice of the search follows from it."</td>
                            <td class="num"></td>
                        </tr>
                        {rows}
                        <tr>
                            <th scope="row">"Caution"</th>
                            <td>
                                "Standard errors that costs are taken for larger, wherever prompts are compared, multipliers moved and rewriters told."
                            </td>
                            <td class="num">"0"</td>
                        </tr>
                        <tr>
                            <th scope="row">"Choice probability"</th>
                            <td>
                                "How probably the costs of the prompt returned are to stay within the thresholds on new examples."
                            </td>
                            <td class="num">"0"</td>
                        </tr>
                    </tbody>
                </table>
            </div>
        </details>
    }
}

fn explained(setting: Setting) -> impl IntoView {
    let default = match setting.default {
        Some(Value::String(word)) => word,
        Some(value) => value.to_string(),
        None => "all".into(),
    };
    view! {
        <tr>
            <th scope="row">{format::setting(&setting.key)}</th>
            <td>{setting.explanation}</td>
            <td class="num">{default}</td>
        </tr>
    }
}

fn rounds() -> Number {
    Number::new(
        "study.rounds",
        "Rounds",
        |study| studies::rounds(study).map(f64::from),
        |study, value| {
            study.study.rounds = value.map_or(Rounds::Open(UntilBudget::UntilBudget), |value| {
                Rounds::Count(value as u32)
            });
        },
    )
    .counted()
    .optional("until the budget is spent")
}

/// Whether the search goes on until the budget is spent, whatever the number of rounds.
#[component]
fn UntilBudgetChoice() -> impl IntoView {
    let form = expect_context::<Form>();
    let open = form.memo(|study| matches!(study.study.rounds, Rounds::Open(_)));
    let change = move |event| {
        let rounds = if event_target_checked(&event) {
            Rounds::Open(UntilBudget::UntilBudget)
        } else {
            Rounds::default()
        };
        form.renew(|draft| {
            draft.wrong.remove("study.rounds");
            draft.study.study.rounds = rounds;
        });
    };
    view! {
        <label class="choice">
            <input type="checkbox" prop:checked=move || open.get() on:change=change/>
            <span>"Go on until the budget is spent, however many rounds that takes"</span>
        </label>
    }
}
