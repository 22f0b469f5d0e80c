//! Examples kept aside to test the prompts that the search found.

use capo_core::metric::PROMPT_LENGTH;
use capo_core::reading::certify;
use capo_core::study::certificate::{Confirm, MOST_EXAMPLES};
use capo_core::study::{Constraint, Study};
use leptos::prelude::*;

use super::field::{Number, NumberField};
use super::form::Form;
use super::labels::label;
use super::measured::Measured;
use crate::format;

/// What is kept for a test when it is asked for, at most; half of what is held out.
const EXAMPLES: usize = 100;

/// The `[confirm]` table.
#[component]
pub(super) fn ConfirmFields() -> impl IntoView {
    let form = expect_context::<Form>();
    let is_on = form.memo(|study| study.confirm.is_some());
    let toggle = move |event| {
        let asked = event_target_checked(&event);
        let held_out = form.measured.with_untracked(|measured| measured.evaluate);
        form.renew(|draft| {
            draft.forget_wrong("confirm.");
            draft.study.confirm = asked.then(|| Confirm::of((held_out / 2).clamp(1, EXAMPLES)));
        });
    };
    let examples = || {
        Number::new(
            "confirm.examples",
            &label("confirm.examples"),
            |study| Some(study.confirm.as_ref()?.examples as f64),
            |study, value| {
                if let (Some(confirm), Some(value)) = (&mut study.confirm, value) {
                    confirm.examples = value as usize;
                }
            },
        )
        .counted()
        .at_least(1.0)
        .at_most(MOST_EXAMPLES as f64)
    };
    let confidence = || {
        Number::new(
            "confirm.confidence",
            &label("confirm.confidence"),
            |study| Some(study.confirm.as_ref()?.confidence),
            |study, value| {
                if let (Some(confirm), Some(value)) = (&mut study.confirm, value) {
                    confirm.confidence = value;
                }
            },
        )
        .in_unit("%", 100.0)
        .at_least(50.0)
        .at_most(99.9)
    };
    let unbounded = Memo::new(move |_| {
        form.draft.with(|draft| {
            form.measured
                .with(|measured| without_largest(&draft.study, measured))
        })
    });
    let bounds = move || {
        let of_metric = |metric: String| view! { <NumberField number=bound(metric)/> };
        unbounded.get().into_iter().map(of_metric).collect_view()
    };
    let reach = move || {
        let sentences = form
            .draft
            .with(|draft| form.measured.with(|measured| reached(&draft.study, measured)));
        sentences
            .into_iter()
            .map(|sentence| view! { <li>{sentence}</li> })
            .collect_view()
    };
    view! {
        <label class="choice">
            // How many there are to keep is known a moment after the page.
            <input
                type="checkbox"
                prop:checked=move || is_on.get()
                disabled=move || !is_on.get() && form.measured.with(|measured| measured.evaluate == 0)
                on:change=toggle
            />
            <span>
                "At the end, test the safest prompts on held-out examples kept for it: certified, refuted or not decided"
            </span>
        </label>
        <Show when=move || is_on.get()>
            <div class="fields">
                <NumberField number=examples()/>
                <NumberField number=confidence()/>
                {bounds}
            </div>
            <ul class="note">{reach}</ul>
        </Show>
    }
}

/// The largest value that a metric can have.
fn bound(metric: String) -> Number {
    let key = format!("confirm.bounds.{metric}");
    let read = metric.clone();
    Number::new(
        &key,
        &label(&key),
        move |study| study.confirm.as_ref()?.bounds.get(&read).copied(),
        move |study, value| {
            let Some(confirm) = &mut study.confirm else { return };
            match value {
                Some(value) => {
                    confirm.bounds.insert(metric.clone(), value);
                }
                None => {
                    confirm.bounds.shift_remove(&metric);
                }
            }
        },
    )
    .at_least(0.0)
    .optional("not known")
}

/// The constrained metrics that have no largest value of their own.
fn without_largest(study: &Study, measured: &Measured) -> Vec<String> {
    let constrained = study
        .constraints
        .iter()
        .filter_map(|constraint| measured.metric(&constraint.metric));
    let open = constrained.filter(|metric| metric.max.is_none() && metric.name != PROMPT_LENGTH);
    open.map(|metric| metric.name.clone()).collect()
}

/// What the test can certify of each constraint.
fn reached(study: &Study, measured: &Measured) -> Vec<String> {
    let Some(confirm) = study.confirm.as_ref().filter(|confirm| confirm.examples > 0) else {
        return Vec::new();
    };
    let unbounded = without_largest(study, measured);
    let of_constraint = |constraint: &Constraint| {
        let (metric, threshold) = (measured.metric(&constraint.metric)?, constraint.threshold?);
        let name = format::phrase(&metric.name);
        if unbounded.contains(&metric.name) && !confirm.bounds.contains_key(&metric.name) {
            return Some(format!(
                "{name} can be certified once its largest value is stated."
            ));
        }
        let reach = certify::reach(metric, threshold, confirm, study.study.repeats);
        Some(reach.sentence(&name, threshold, confirm.examples))
    };
    study.constraints.iter().filter_map(of_constraint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::study::draft::Draft;

    #[test]
    fn the_form_says_what_a_test_can_certify_and_asks_for_the_bounds_it_lacks() {
        let draft = Draft::new().unwrap();
        let mut study = draft.study;
        let measured = Measured::of(&study.workload, &draft.files, 0);
        assert_eq!(without_largest(&study, &measured), ["excess_tools"]);
        assert!(reached(&study, &measured).is_empty(), "nothing is tested");

        study.confirm = Some(Confirm::of(40));
        let told = reached(&study, &measured);
        assert_eq!(
            told[0],
            "human requests ≤ 0.37 is certified by at most 9 of 40 examples."
        );
        assert!(
            told[1].ends_with("can be certified once its largest value is stated."),
            "{}",
            told[1]
        );
        study
            .confirm
            .as_mut()
            .unwrap()
            .bounds
            .insert("excess_tools".into(), 9.0);
        let told = reached(&study, &measured);
        assert!(
            told[1].contains(" ≤ 1.25 is certified by a mean of at most 0."),
            "{}",
            told[1]
        );
    }
}
