//! The form of prices: what tokens cost, where no table of prices knows it.

use capo_core::llm::Role;
use capo_core::study::Study;
use capo_models::serving;
use leptos::prelude::*;
use serde_json::{Map, Value};

use super::credentials::provider_of;
use super::field::{Number, NumberField};
use super::form::Form;
use super::models::{ROLES, role_name};
use super::place::Place;
use super::problem::Problem;
use crate::studies::unpriced;

/// The key of a model's table.
const PRICE: &str = "price";
/// What of it is asked for, and how it is called.
const PARTS: [(&str, &str); 2] = [("input", "Tokens read"), ("output", "Tokens written")];

/// What a part of a price is called.
pub(super) fn name(part: &str) -> &'static str {
    let known = PARTS.into_iter().find(|(known, _)| *known == part);
    known.map_or("Price", |(_, name)| name)
}

/// Whether a key of the study is a part of a price.
pub(super) fn is_price(key: &str) -> bool {
    let mut parts = key.rsplit('.');
    parts.next().is_some() && parts.next() == Some(PRICE)
}

/// The roles whose own model is elsewhere and has a price that nobody knows or one that is stated, and those of
/// `before` that still have the same model: the last digit of a price may be deleted.
fn roles(study: &Study, before: &[(Role, String)]) -> Vec<(Role, String)> {
    let asked = ROLES.into_iter().filter_map(|role| {
        let table = study.models.get(&role)?;
        let provider = provider_of(table).filter(|provider| !provider.in_process)?;
        let named = (role, table["model"].as_str().or(provider.model)?.to_owned());
        let wanted = table.get(PRICE).is_some() || unpriced(table).is_some() || before.contains(&named);
        wanted.then_some(named)
    });
    asked.collect()
}

/// Dollars that a run may spend unless somebody says otherwise.
const USUAL_LIMIT: f64 = 5.0;

/// The usual limit of dollars, where some model is elsewhere and the prices of all such are known.
pub(super) fn usual_limit(study: &Study) -> Option<f64> {
    let tables = study.models.values();
    let mut priced = tables
        .filter_map(|table| Some((table, provider_of(table)?)))
        .filter(|(_, provider)| !provider.in_process)
        .map(|(table, provider)| {
            (table["model"].is_string() || provider.model.is_some()) && unpriced(table).is_none()
        })
        .peekable();
    (priced.peek().is_some() && priced.all(|is_priced| is_priced)).then_some(USUAL_LIMIT)
}

/// That dollars cannot be counted: a budget of them would end the run with its first call.
pub(super) fn without_price(study: &Study, asked: &[Role]) -> Option<Problem> {
    study.budget.usd?;
    let mut tables = asked
        .iter()
        .filter_map(|role| Some(serving(*role, &study.models)?.1));
    let model = tables.find_map(unpriced)?;
    Some(Problem {
        key: "budget.usd".into(),
        message: format!(
            "The price of {model} is unknown, so dollars cannot be counted. State below what its tokens cost, or \
             clear this field."
        ),
    })
}

/// Prices of which one half is stated.
pub(super) fn half_stated(study: &Study) -> Vec<Problem> {
    let of_role = |(role, table): (&Role, &Value)| {
        let price = table.get(PRICE)?.as_object()?;
        let (missing, name) = PARTS.into_iter().find(|(part, _)| !price.contains_key(*part))?;
        Some(Problem {
            key: Place::Model(*role).path(&format!("{PRICE}.{missing}")),
            message: format!(
                "State the price of {} too, 0 if they cost nothing.",
                name.to_lowercase()
            ),
        })
    };
    study.models.iter().filter_map(of_role).collect()
}

/// A part of a role's price.
fn number(role: Role, part: &'static str, name: &str) -> Number {
    Number::new(
        &Place::Model(role).path(&format!("{PRICE}.{part}")),
        name,
        move |study| Place::Model(role).table(study)?.get(PRICE)?.get(part)?.as_f64(),
        move |study, value| {
            let place = Place::Model(role);
            let price = place.table(study).and_then(|table| table.get(PRICE));
            let mut price: Map<String, Value> = price.and_then(Value::as_object).cloned().unwrap_or_default();
            match value {
                Some(value) => price.insert(part.to_owned(), value.into()),
                None => price.shift_remove(part),
            };
            let price = (!price.is_empty()).then_some(Value::Object(price));
            place.set(study, PRICE, price);
        },
    )
    .in_unit("$ per million", 1.0)
    .at_least(0.0)
    .optional("unknown")
}

/// Fields for the prices that no table knows.
#[component]
pub(super) fn Prices() -> impl IntoView {
    let form = expect_context::<Form>();
    let wanted = Memo::new(move |before: Option<&Vec<(Role, String)>>| {
        let before = before.map(Vec::as_slice).unwrap_or_default();
        form.draft.with(|draft| roles(&draft.study, before))
    });
    // The fields of a role stay whatever its model is called: a name is typed letter by letter.
    let of_role = move |role: Role| {
        let model = move || {
            wanted.with(|wanted| {
                let named = wanted.iter().find(|(of, _)| *of == role);
                named.map(|(_, model)| model.clone())
            })
        };
        let fields = PARTS
            .map(|(part, name)| view! { <NumberField number=number(role, part, name)/> })
            .collect_view();
        view! {
            <fieldset>
                <legend>"Price of " {model} ", " {role_name(role).to_lowercase()}</legend>
                <div class="fields">{fields}</div>
            </fieldset>
        }
    };
    view! {
        <For
            each=move || wanted.get().into_iter().map(|(role, _)| role)
            key=|role| *role
            let(role)
        >
            {of_role(role)}
        </For>
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn study(agent: Value) -> Study {
        let mut study = crate::studies::help_desk().unwrap();
        study.budget.usd = Some(1.0);
        study.models.insert(Role::Agent, agent);
        study
    }

    fn own(price: Option<Value>) -> Value {
        let mut table =
            json!({ "provider": "openai-compatible", "model": "mine", "base_url": "http://localhost:1" });
        if let Some(price) = price {
            table[PRICE] = price;
        }
        table
    }

    #[test]
    fn a_budget_of_dollars_wants_a_price() {
        let asked = [Role::Agent, Role::Critic];
        let problem = without_price(&study(own(None)), &asked).unwrap();
        assert!(problem.message.contains("price of mine"), "{}", problem.message);
        let stated = study(own(Some(json!({ "input": 1.0, "output": 2.0 }))));
        assert_eq!(without_price(&stated, &asked), None);
        assert_eq!(roles(&stated, &[]), [(Role::Agent, "mine".to_owned())]);
        let listed = study(json!({ "provider": "openai", "model": "gpt-4o-mini" }));
        assert_eq!(without_price(&listed, &asked), None);
        assert!(roles(&listed, &[]).is_empty());
        // A price that was stated may be deleted, digit by digit.
        let before = [(Role::Agent, "gpt-4o-mini".to_owned())];
        assert_eq!(roles(&listed, &before), before);
        // OpenRouter says in its answers what they cost.
        let reported = study(json!({ "provider": "openrouter", "model": "somebody/some-model" }));
        assert_eq!(without_price(&reported, &asked), None);
        let mut unbounded = study(own(None));
        unbounded.budget.usd = None;
        assert_eq!(without_price(&unbounded, &asked), None);
    }

    #[test]
    fn known_prices_have_a_usual_limit() {
        let limit = |table: Value| usual_limit(&study(table));
        assert_eq!(
            limit(json!({ "provider": "openai", "model": "gpt-4o-mini" })),
            Some(USUAL_LIMIT)
        );
        let price = json!({ "input": 1.0, "output": 2.0 });
        assert_eq!(limit(own(Some(price))), Some(USUAL_LIMIT));
        for table in [
            own(None),
            json!({ "provider": "openai" }),
            json!({ "provider": "openai", "model": "gpt-5-foo" }),
            json!({ "provider": "simulated" }),
        ] {
            assert_eq!(limit(table), None);
        }
    }

    #[test]
    fn half_a_price_is_none() {
        let half = study(own(Some(json!({ "input": 1.0 }))));
        let problems = half_stated(&half);
        assert_eq!(problems[0].key, "models.agent.price.output");
    }
}
