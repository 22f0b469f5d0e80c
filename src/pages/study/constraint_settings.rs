//! Settings of a constraint that most people leave as they are.

use capo_core::study::{Constraint, Study};
use leptos::prelude::*;

use super::field::{Number, NumberField};
use super::form::Form;
use crate::format;

/// Scale and first round of each constraint.
#[component]
pub(super) fn ConstraintSettings() -> impl IntoView {
    let form = expect_context::<Form>();
    let metrics = form.memo(|study| {
        let metrics = study
            .constraints
            .iter()
            .map(|constraint| constraint.metric.clone());
        metrics.collect::<Vec<_>>()
    });
    view! {
        <Show when=move || metrics.with(|metrics| !metrics.is_empty())>
            <details>
                <summary>"More settings of the constraints"</summary>
                <div class="stack">
                    <For each=move || metrics.get() key=Clone::clone let(metric)>
                        <fieldset>
                            <legend>{format::label(&metric)}</legend>
                            <div class="fields wide">
                                <NumberField
                                    number=scale(&metric)
                                    explanation="What counts as one over the threshold: the difference is divided by it before multipliers see it."
                                />
                                <NumberField
                                    number=from_round(&metric)
                                    explanation="The round in which it begins to count, numbered from 0; later than 0 for constraints that come one after another."
                                />
                            </div>
                        </fieldset>
                    </For>
                </div>
            </details>
        </Show>
    }
}

fn scale(metric: &str) -> Number {
    of(
        metric,
        "scale",
        "Scale",
        |constraint| constraint.scale,
        |constraint, value| {
            constraint.scale = value;
        },
    )
    .optional("the metric’s own")
}

fn from_round(metric: &str) -> Number {
    of(
        metric,
        "from_round",
        "From round",
        |constraint| Some(f64::from(constraint.from_round)),
        |constraint, value| constraint.from_round = value.unwrap_or_default() as u32,
    )
    .counted()
    .optional("the first")
}

fn of(
    metric: &str,
    key: &str,
    label: &str,
    read: fn(&Constraint) -> Option<f64>,
    write: fn(&mut Constraint, Option<f64>),
) -> Number {
    let (own, changed) = (metric.to_owned(), metric.to_owned());
    Number::new(
        &format!("constraint.{metric}.{key}"),
        label,
        move |study: &Study| {
            let mut all = study.constraints.iter();
            all.find(|constraint| constraint.metric == own).and_then(read)
        },
        move |study, value| {
            let mut all = study.constraints.iter_mut();
            if let Some(constraint) = all.find(|constraint| constraint.metric == changed) {
                write(constraint, value);
            }
        },
    )
}
