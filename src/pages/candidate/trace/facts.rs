//! Measurements, time and cost of one rollout.

use capo_core::journal::RolloutEvent;
use capo_core::metric::{MetricSpec, PROMPT_LENGTH};
use capo_core::usage::RoleUsage;
use leptos::prelude::*;

use crate::format::{self, Quantity, count, dollars};
use crate::run::outcome::who;

/// The metric of a workload that measures how long answers take; of others the models' seconds stand in.
const LATENCY: &str = "latency";

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fact {
    pub name: String,
    pub value: String,
    pub note: String,
}

/// A table of facts; the caption is read out only.
pub(super) fn facts_table(caption: &'static str, facts: Vec<Fact>) -> AnyView {
    let row = |fact: Fact| {
        view! {
            <tr>
                <th scope="row">{fact.name}</th>
                <td class="num">{fact.value}</td>
                <td class="quiet">{fact.note}</td>
            </tr>
        }
    };
    let rows = facts.into_iter().map(row).collect_view();
    view! {
        <table class="facts">
            <caption class="sr">{caption}</caption>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

/// Measurements, seconds, dollars and tokens of a rollout of a workload that measures these metrics.
pub(super) fn measured(rollout: &RolloutEvent, metrics: &[MetricSpec]) -> Vec<Fact> {
    let total = rollout.usage.total();
    let calls = |usage: &RoleUsage| match usage.calls {
        1 => "one model call".to_owned(),
        calls => format!("{} model calls", count(calls)),
    };
    let mut facts: Vec<Fact> = metrics
        .iter()
        .filter(|spec| spec.name != PROMPT_LENGTH)
        .filter_map(|spec| {
            let value = *rollout.measurements.get(&spec.name)?;
            let quantity = Quantity::of(spec);
            Some(Fact {
                name: format::label(&spec.name),
                value: quantity.measurement(spec, value),
                note: match quantity {
                    Quantity::Ratio => spec.unit.clone(),
                    Quantity::Seconds if spec.name == LATENCY => calls(&total),
                    _ => String::new(),
                },
            })
        })
        .collect();
    if metrics.iter().all(|spec| spec.name != LATENCY) {
        facts.push(Fact {
            name: format::label(LATENCY),
            value: Quantity::Seconds.value(total.seconds),
            note: calls(&total),
        });
    }
    facts.push(Fact {
        name: "Cost".into(),
        value: dollars(total.usd),
        note: tokens(&total),
    });
    if rollout.usage.iter().count() > 1 {
        facts.extend(rollout.usage.iter().map(|(role, usage)| Fact {
            name: format!("of it {}", who(role).to_lowercase()),
            value: dollars(usage.usd),
            note: format!("{}, {}", calls(&usage), tokens(&usage)),
        }));
    }
    facts
}

/// "6,204 tokens in, 296 out".
fn tokens(usage: &RoleUsage) -> String {
    format!(
        "{} tokens in, {} out",
        count(usage.input_tokens),
        count(usage.output_tokens)
    )
}
