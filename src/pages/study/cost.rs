//! The cost estimate: what a study can cost, before it runs.

use std::collections::BTreeSet;

use capo_core::llm::Role;
use capo_core::study::Study;
use capo_models::serving;
use leptos::prelude::*;
use serde_json::Value;

use super::form::Form;
use super::preview::Preview;
use crate::format::{self, NOTHING};
use crate::studies;

/// Tokens that an answer is taken to have before one was given, which is about 300 words.
const ANSWER: f64 = 400.0;
/// Characters that a token stands for.
const CHARACTERS: f64 = 4.0;

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    name: &'static str,
    most: String,
    /// Whether the budget is what bounds it.
    by_budget: bool,
}

/// The bounds of a run.
#[component]
pub(super) fn Cost() -> impl IntoView {
    let form = expect_context::<Form>();
    // What was known is shown until something new is.
    let forecast = Memo::new(
        move |before: Option<&Option<Value>>| match form.asking.forecast.get() {
            Some(Ok(forecast)) => Some(forecast),
            Some(Err(_)) => None,
            None if form.problems.with(|problems| !problems.is_empty()) => None,
            None => before.cloned().flatten(),
        },
    );
    let candidates = Memo::new(move |_| form.draft.with(|draft| candidates(&draft.study)));
    let rows = move || {
        let lines = forecast.with(|forecast| lines(forecast.as_ref(), candidates.get()));
        lines
            .into_iter()
            .map(|line| {
                let budget = line
                    .by_budget
                    .then(|| view! { <br/> <span class="note">"budget"</span> });
                view! {
                    <tr>
                        <th scope="row">{line.name}</th>
                        <td class="num">
                            {line.most}
                            {budget}
                        </td>
                    </tr>
                }
            })
            .collect_view()
    };
    let reading = move || forecast.with(|forecast| forecast.as_ref().map(reading));
    view! {
        <table>
            <thead>
                <tr>
                    <th scope="col">
                        <span class="sr">"What"</span>
                    </th>
                    <th scope="col" class="num">
                        "At most"
                    </th>
                </tr>
            </thead>
            <tbody>{rows}</tbody>
        </table>
        <p class="reading">{reading}</p>
    }
}

/// Candidates a search measures at most, the seed included; none without a bound.
fn candidates(study: &capo_core::study::Study) -> Option<u64> {
    let rounds = crate::studies::rounds(study)?;
    let method = capo_core::methods::build(&study.study.method, &study.method).ok()?;
    Some(method.at_most(rounds).candidates)
}

fn lines(forecast: Option<&Value>, candidates: Option<u64>) -> Vec<Line> {
    let known = |path: &str| forecast.and_then(|forecast| forecast.pointer(path));
    let bound = |value: Option<&Value>, write: &dyn Fn(f64) -> String| match (forecast, value) {
        (None, _) => NOTHING.to_owned(),
        (Some(_), value) => value
            .and_then(Value::as_f64)
            .map_or_else(|| "no bound".to_owned(), write),
    };
    let cut = |name: &str| {
        known("/cut_by")
            .and_then(Value::as_array)
            .is_some_and(|names| names.iter().any(|cut| cut == name))
    };
    let count = |value: f64| format::count(value as u64);
    let tokens = |value: f64| format::tokens(value as u64);
    let dollars = |value: f64| format::dollars(Some(value));
    let line = |name, most, by_budget| Line {
        name,
        most,
        by_budget,
    };
    let written = candidates.map_or_else(|| "no bound".to_owned(), format::count);
    vec![
        line(
            "Candidates",
            if forecast.is_some() {
                written
            } else {
                NOTHING.to_owned()
            },
            false,
        ),
        line(
            "Rollouts, search",
            bound(known("/without_budget/search_rollouts"), &count),
            false,
        ),
        line(
            "Rollouts, held out",
            bound(known("/without_budget/evaluation_rollouts"), &count),
            false,
        ),
        line(
            "Rollouts in all",
            bound(known("/rollouts"), &count),
            cut("rollouts"),
        ),
        line("Model calls", bound(known("/calls"), &count), cut("calls")),
        line("Tokens", bound(known("/budget/tokens"), &tokens), cut("tokens")),
        line("Dollars", bound(known("/usd"), &dollars), cut("usd")),
        line(
            "Time",
            bound(known("/budget/seconds"), &format::span),
            cut("seconds"),
        ),
    ]
}

/// What studies with these forecasts take at most together, each so many times.
pub(super) fn together(forecasts: &[Value], times: u64) -> String {
    let bound = |of: &str, words: &str| {
        let most: Option<f64> = forecasts.iter().map(|forecast| forecast[of].as_f64()).sum();
        match most.map(|most| most * times as f64) {
            None => format!("{words} without a bound"),
            Some(usd) if of == "usd" => format::dollars(Some(usd)),
            Some(most) => format!("{} {words}", format::count(most as u64)),
        }
    };
    let bounds = [
        ("rollouts", "rollouts"),
        ("calls", "model calls"),
        ("usd", "dollars"),
    ];
    let bounds = bounds.map(|(of, words)| bound(of, words));
    format!("Together at most {}", format::listed(&bounds))
}

/// About how many dollars it takes to measure the seed prompt on so many examples, where each is one call of everybody who is
/// asked; none where that is not so, where a price is unknown, and where there is nothing to pay.
pub(super) fn of_pilot(study: &Study, roles: &[Role], rows: &Preview, examples: usize) -> Option<f64> {
    capo_workloads::of(&study.workload).filter(|kind| kind.one_call)?;
    let prompt = study.prompt.text.as_ref().map_or(0, |text| text.chars().count());
    let read = (prompt as f64 + rows.characters as f64 / rows.count as f64) / CHARACTERS;
    let of_role = |role| {
        let price = studies::price(serving(role, &study.models)?.1)?;
        Some(read * price.input + ANSWER * price.output)
    };
    let each: Option<f64> = roles.iter().copied().map(of_role).sum();
    each.map(|each| examples as f64 * each / 1e6)
        .filter(|usd| *usd > 0.0)
}

/// What the bounds mean, in a sentence or two.
fn reading(forecast: &Value) -> String {
    let number = |path: &str| forecast.pointer(path).and_then(Value::as_u64);
    let mut sentences = Vec::new();
    let all = number("/without_budget/calls");
    if let (Some(all), Some(most)) = (all, number("/budget/calls"))
        && most < all
    {
        sentences.push(format!(
            "If every example took all the steps it may, the study would need {} calls; the budget stops it at {}, \
             keeps the journal and the best prompt so far.",
            format::count(all),
            format::count(most)
        ));
    } else if all.is_some() {
        sentences.push(
            "This is reached only if every example takes all the steps it may; a usual run takes far fewer calls."
                .into(),
        );
    } else {
        sentences.push("The search goes on until the budget is spent.".into());
    }
    sentences.extend(forecast["too_small"].as_str().map(str::to_owned));
    if forecast["calls_all_known"] == false {
        sentences.push("Calls of the agent behind the endpoint are counted as it reports them.".into());
    }
    let priced = forecast["by_role"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, role)| role["price"].is_null());
    let unknown: BTreeSet<&str> = priced.filter_map(|(_, role)| role["model"].as_str()).collect();
    let unknown: Vec<&str> = unknown.into_iter().collect();
    if !unknown.is_empty() {
        sentences.push(format!(
            "The price of {} is unknown: state it under Budget to bound the dollars.",
            format::listed(&unknown)
        ));
    }
    sentences.join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pages::study::draft::Draft;

    fn forecast() -> Value {
        json!({
            "rollouts": 3114, "calls": 20000, "usd": null, "calls_all_known": true, "cut_by": ["calls"],
            "by_role": { "agent": { "calls": 37000, "model": "ollama/qwen3", "price": null } },
            "without_budget": { "search_rollouts": 3034, "evaluation_rollouts": 80, "calls": 37400 },
            "budget": { "calls": 20000 },
        })
    }

    #[test]
    fn bounds_say_what_sets_them() {
        let lines = lines(Some(&forecast()), Some(41));
        let find = |name: &str| lines.iter().find(|line| line.name == name).unwrap();
        assert_eq!(find("Candidates").most, "41");
        assert_eq!(
            (find("Model calls").most.as_str(), find("Model calls").by_budget),
            ("20,000", true)
        );
        assert_eq!(find("Dollars").most, "no bound");
        assert_eq!(find("Rollouts, search").most, "3,034");
    }

    #[test]
    fn runs_together_take_the_sum_of_what_each_takes_at_most() {
        let priced = |rollouts: Option<u64>| json!({ "rollouts": rollouts, "calls": 10, "usd": 0.5 });
        assert_eq!(
            together(&[forecast(), priced(Some(86))], 4),
            "Together at most 12,800 rollouts, 80,040 model calls and dollars without a bound"
        );
        assert_eq!(
            together(&[priced(None), priced(Some(9))], 3),
            "Together at most rollouts without a bound, 60 model calls and $3.00"
        );
    }

    #[test]
    fn a_pilot_s_dollars_are_told_where_each_example_is_one_call_of_a_known_price() {
        let mut draft = Draft::new().unwrap();
        // A cell may have several lines.
        let row = format!("\"{}\n{}\",a\n", "x".repeat(60), "y".repeat(59));
        let rows = Preview::of("rows.csv", &format!("question,a\n{}", row.repeat(11))).unwrap();
        let about = |draft: &Draft| of_pilot(&draft.study, &[Role::Agent], &rows, 5);
        let with = |draft: &mut Draft, agent: Value| {
            draft.study.models = [(Role::Agent, agent)].into_iter().collect();
        };
        let priced = json!({ "provider": "openai", "model": "m", "price": { "input": 1.0, "output": 10.0 } });
        with(&mut draft, priced.clone());
        assert_eq!(
            about(&draft),
            None,
            "how many calls a dialogue takes nobody knows"
        );
        draft.take_kind("table");
        draft.study.prompt.text = Some("x".repeat(278));
        // 101 tokens are read and 400 written, five times.
        let usd = about(&draft).unwrap();
        assert!((usd - 5.0 * (101.0 + 4000.0) / 1e6).abs() < 1e-9, "{usd}");
        with(&mut draft, json!({ "provider": "openai", "model": "a-new-one" }));
        assert_eq!(about(&draft), None);
        with(&mut draft, json!({ "provider": "simulated" }));
        assert_eq!(about(&draft), None);
    }

    #[test]
    fn nothing_is_claimed_before_it_is_known() {
        assert!(lines(None, Some(41)).iter().all(|line| line.most == NOTHING));
    }

    #[test]
    fn the_reading_names_what_is_unknown() {
        let words = reading(&forecast());
        assert!(words.contains("37,400 calls"), "{words}");
        assert!(words.contains("ollama/qwen3 is unknown"), "{words}");
    }
}
