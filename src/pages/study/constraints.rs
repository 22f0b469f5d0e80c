//! Objective and constraints: what to raise, and what to keep at or under a threshold.

use std::collections::BTreeMap;

use capo_core::metric::{Direction, MetricSpec, PROMPT_LENGTH, prompt_length};
use capo_core::study::{Constraint, Study};
use leptos::ev;
use leptos::prelude::*;

use super::constraint_settings::ConstraintSettings;
use super::field::{Number, NumberField, Wrong, id};
use super::fold::Folded;
use super::form::Form;
use super::labels::label;
use super::measured::Measured;
use super::presets::UsualCosts;
use crate::charts::bullet::{Bullet, BulletData};
use crate::charts::unit::Unit;
use crate::components::removing;
use crate::format::{self, Quantity};

/// A threshold that was set the other way, by metric and way, so that going back and forth loses
/// nothing.
type Others = StoredValue<BTreeMap<(String, bool), f64>>;

/// Where a relative threshold starts: a fifth below the seed prompt.
const BELOW_SEED: f64 = 0.8;

/// Objective and constraints.
#[component]
pub(super) fn GoalsSection() -> impl IntoView {
    let form = expect_context::<Form>();
    let objective = form.memo(|study| study.objective.metric.clone());
    let wrong = form.problem("objective.metric");
    let change = move |event| {
        let metric = event_target_value(&event);
        form.edit(|draft| draft.study.objective.metric = metric);
    };
    let options = move || {
        let metrics = form.measured.with(|measured| {
            let all = measured.towards(Direction::Objective);
            all.map(|metric| metric.name.clone()).collect::<Vec<_>>()
        });
        metrics
            .into_iter()
            .map(|name| {
                let (own, shown) = (name.clone(), format::label(&name));
                view! {
                    <option value=name prop:selected=move || objective.with(|objective| *objective == own)>
                        {shown}
                    </option>
                }
            })
            .collect_view()
    };
    let explanation = move || {
        let metric = objective.get();
        form.measured
            .with(|measured| Some(measured.metric(&metric)?.explanation.clone()))
    };
    let lead = || {
        "One thing to raise, any number of costs to keep at or under a threshold. A mark shows the seed prompt where \
         its cost is known without asking a model."
    };
    let others: Others = StoredValue::new(BTreeMap::new());
    let set = move || {
        form.measured
            .with(|measured| form.draft.with(|draft| aims(&draft.study, measured)))
    };
    view! {
        <Folded title="Objective and constraints" set=Signal::derive(set) lead=lead>
            <div class="fields wide">
                <div class="field">
                    <label for=id("objective.metric")>"Objective, higher is better"</label>
                    <select
                        id=id("objective.metric")
                        aria-invalid=move || wrong.with(Option::is_some).then_some("true")
                        aria-describedby=move || {
                            if wrong.with(Option::is_some) {
                                "objective-note f-objective-metric-error"
                            } else {
                                "objective-note"
                            }
                        }
                        on:change=change
                    >
                        {options}
                    </select>
                    <span class="note" id="objective-note">
                        {explanation}
                    </span>
                    <Wrong key="objective.metric"/>
                </div>
                <Ways others/>
            </div>
            <Constraints/>
            <Add/>
            <UsualCosts/>
            <ConstraintSettings/>
        </Folded>
    }
}

/// "Success, human requests ≤ 37%, excess tools ≤ 80% of the seed’s".
fn aims(study: &Study, measured: &Measured) -> String {
    let limit = |constraint: &Constraint| {
        let quantity = measured
            .metric(&constraint.metric)
            .map_or(Quantity::Ratio, Quantity::of);
        let name = format::phrase(&constraint.metric);
        match (constraint.relative_to_seed, constraint.threshold) {
            (Some(share), _) => format!("{name} {} of the seed’s", Quantity::Rate.limit(share)),
            (None, Some(threshold)) => format!("{name} {}", quantity.limit(threshold)),
            (None, None) => name,
        }
    };
    let mut aims = vec![format::label(&study.objective.metric)];
    aims.extend(study.constraints.iter().map(limit));
    if study.constraints.is_empty() {
        aims.push("no constraints".to_owned());
    }
    aims.join(", ")
}

/// Thresholds as numbers or as shares of the seed prompt's cost.
#[component]
fn Ways(others: Others) -> impl IntoView {
    let form = expect_context::<Form>();
    let all = move |relative: bool| {
        form.draft.with(|draft| {
            let constraints = &draft.study.constraints;
            !constraints.is_empty()
                && constraints
                    .iter()
                    .all(|constraint| constraint.relative_to_seed.is_some() == relative)
        })
    };
    let none = move || form.draft.with(|draft| draft.study.constraints.is_empty());
    let go = move |relative: bool| {
        let measured = form.measured.get_untracked();
        form.renew(|draft| {
            draft.forget_wrong("constraint.");
            for constraint in draft.study.constraints.clone() {
                let was_relative = constraint.relative_to_seed.is_some();
                if was_relative == relative {
                    continue;
                }
                let now = constraint.relative_to_seed.or(constraint.threshold);
                let other = others.try_update_value(|others| {
                    if let Some(now) = now {
                        others.insert((constraint.metric.clone(), was_relative), now);
                    }
                    others.get(&(constraint.metric.clone(), relative)).copied()
                });
                let usual = if relative {
                    BELOW_SEED
                } else {
                    measured.metric(&constraint.metric).map_or(1.0, usual_threshold)
                };
                draft.set_threshold(&constraint.metric, relative, other.flatten().unwrap_or(usual));
            }
        });
    };
    let button = move |relative: bool, name: &'static str| {
        view! {
            <button
                type="button"
                aria-pressed=move || all(relative).to_string()
                disabled=none
                on:click=move |_| go(relative)
            >
                {name}
            </button>
        }
    };
    view! {
        <div class="field">
            <span class="lab" id="thresholds">
                "Thresholds"
            </span>
            <div class="seg" role="group" aria-labelledby="thresholds">
                {button(false, "As numbers")} {button(true, "Relative to the seed")}
            </div>
        </div>
    }
}

/// What a new constraint starts from, until somebody sets it.
fn usual_threshold(metric: &MetricSpec) -> f64 {
    match Quantity::of(metric) {
        Quantity::Rate => 0.35,
        Quantity::Thousands => 5.0,
        Quantity::Seconds => 10.0,
        Quantity::Dollars => 0.01,
        Quantity::Many => 500.0,
        Quantity::Several => 100.0,
        Quantity::Ratio => 1.0,
    }
}

/// The shortest prompt that a threshold may ask for, in thousand characters.
const SHORTEST: f64 = 0.001;

#[component]
fn Constraints() -> impl IntoView {
    let form = expect_context::<Form>();
    let rows = form.memo(|study| {
        let rows = study
            .constraints
            .iter()
            .map(|constraint| (constraint.metric.clone(), constraint.relative_to_seed.is_some()));
        rows.collect::<Vec<_>>()
    });
    view! {
        <Show
            when=move || rows.with(|rows| !rows.is_empty())
            fallback=|| view! { <p class="quiet">"No constraints: the search only raises the objective."</p> }
        >
            <div class="scroll" tabindex="0" role="group" aria-label="Constraints, scroll sideways">
                <table class="mid stackable">
                    <thead>
                        <tr>
                            <th scope="col">"Constraint"</th>
                            <th scope="col" class="col-threshold">
                                "Threshold"
                            </th>
                            <th scope="col" class="col-bullet">
                                "Seed prompt against it"
                            </th>
                            <th scope="col" class="col-remove">
                                <span class="sr">"Remove"</span>
                            </th>
                        </tr>
                    </thead>
                    <tbody>
                        <For each=move || rows.get() key=Clone::clone let((metric, relative))>
                            <Row metric relative/>
                        </For>
                    </tbody>
                </table>
            </div>
        </Show>
    }
}

#[component]
fn Row(metric: String, relative: bool) -> impl IntoView {
    let form = expect_context::<Form>();
    let name = format::label(&metric);
    let named = metric.clone();
    let spec = Memo::new(move |_| form.measured.with(|measured| measured.metric(&named).cloned()));
    let explanation = move || spec.get().map(|spec| spec.explanation);
    // The unit of a metric is known as soon as its workload is; the field is made anew then. A number typed before
    // would come to mean another one.
    let is_known = Memo::new(move |_| form.measured.with(|measured| measured.is_known));
    let own = metric.clone();
    let field = move || {
        let number = threshold(&own, relative, spec.get().as_ref());
        view! { <NumberField number in_table=true before="≤" disabled=!is_known.get()/> }
    };
    let own = metric.clone();
    let bullet = Memo::new(move |_| {
        let spec = spec.get()?;
        form.draft.with(|draft| {
            seen(
                &spec,
                draft.constraint(&own)?.threshold,
                draft.study.prompt.text.as_deref(),
            )
        })
    });
    let shown = move || {
        if bullet.with(Option::is_some) {
            let data = Signal::derive(move || bullet.get().unwrap_or_default());
            view! { <Bullet data captioned=true/> }.into_any()
        } else {
            view! { <span class="quiet">{relative.then_some("measured when the run starts")}</span> }
                .into_any()
        }
    };
    let remove = move |event: ev::MouseEvent| {
        removing(&event, || form.edit(|draft| draft.release(&metric)));
    };
    view! {
        <tr>
            <th scope="row">
                <b>{name.clone()}</b>
                <div class="note">{explanation}</div>
            </th>
            <td class="col-threshold">{field}</td>
            <td class="col-bullet wide">{shown}</td>
            <td class="col-remove">
                <button type="button" class="link" on:click=remove>
                    "Remove"
                    <span class="sr">" " {name}</span>
                </button>
            </td>
        </tr>
    }
}

fn threshold(metric: &str, relative: bool, spec: Option<&MetricSpec>) -> Number {
    let (read, write) = (metric.to_owned(), metric.to_owned());
    let key = format!("constraint.{metric}");
    let number = Number::new(
        &key,
        &label(&key),
        move |study| {
            let constraint = study
                .constraints
                .iter()
                .find(|constraint| constraint.metric == read)?;
            constraint.relative_to_seed.or(constraint.threshold)
        },
        move |study, value| {
            let found = study
                .constraints
                .iter_mut()
                .find(|constraint| constraint.metric == write);
            if let Some(constraint) = found {
                let place = if relative {
                    &mut constraint.relative_to_seed
                } else {
                    &mut constraint.threshold
                };
                *place = value;
            }
        },
    );
    match spec {
        _ if relative => number.in_unit("% of seed", 100.0).at_least(0.0),
        Some(spec) if Quantity::of(spec) == Quantity::Rate => {
            number.in_unit("%", 100.0).at_least(0.0).at_most(100.0)
        }
        // Nobody can do without a prompt.
        Some(spec) if spec.name == PROMPT_LENGTH => number
            .in_unit(&Quantity::of(spec).unit(spec), 1.0)
            .at_least(SHORTEST),
        Some(spec) => number.in_unit(&Quantity::of(spec).unit(spec), 1.0),
        None => number,
    }
}

/// The threshold on its scale, with the seed prompt where its cost follows from its text.
fn seen(spec: &MetricSpec, threshold: Option<f64>, seed: Option<&str>) -> Option<BulletData> {
    let (threshold, quantity) = (threshold?, Quantity::of(spec));
    let value = seed.filter(|_| spec.name == PROMPT_LENGTH).map(prompt_length);
    let reach = match quantity {
        Quantity::Rate => 1.0,
        _ => 1.6 * threshold.max(value.unwrap_or_default()),
    };
    (reach > 0.0).then(|| BulletData {
        name: "seed".into(),
        unit: Unit(quantity),
        value,
        threshold: Some(threshold),
        feasible: value.is_some_and(|value| value <= threshold),
        reach,
        ..BulletData::default()
    })
}

/// One more constraint, of the metrics that are left.
#[component]
fn Add() -> impl IntoView {
    let form = expect_context::<Form>();
    let chosen = RwSignal::new(String::new());
    let left = Memo::new(move |_| {
        form.measured.with(|measured| {
            form.draft.with(|draft| {
                let free = |metric: &&MetricSpec| draft.constraint(&metric.name).is_none();
                let left = measured.towards(Direction::Cost).filter(free);
                left.cloned().collect::<Vec<_>>()
            })
        })
    });
    let named = move || {
        left.with(|left| {
            let named = left
                .iter()
                .find(|metric| chosen.with(|chosen| metric.name == *chosen));
            named.or(left.first()).cloned()
        })
    };
    let add = move |_| {
        if let Some(metric) = untrack(named) {
            form.edit(|draft| draft.constrain(&metric.name, usual_threshold(&metric)));
        }
    };
    let options = move || {
        let option = |metric: MetricSpec| {
            let (unit, shown) = (Quantity::of(&metric).unit(&metric), format::label(&metric.name));
            view! { <option value=metric.name>{shown} " (" {unit} ")"</option> }
        };
        left.get().into_iter().map(option).collect_view()
    };
    let explanation = move || named().map(|metric| metric.explanation);
    view! {
        <Show when=move || left.with(|left| !left.is_empty())>
            <div class="stack close">
                <div class="row">
                    <select
                        class="auto"
                        aria-label="Metric to constrain"
                        aria-describedby="constrain-note"
                        on:change=move |event| chosen.set(event_target_value(&event))
                    >
                        {options}
                    </select>
                    <button type="button" on:click=add>
                        "Add a constraint"
                    </button>
                </div>
                <p class="note" id="constrain-note">
                    {explanation}
                </p>
            </div>
        </Show>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::study::draft::Draft;

    #[test]
    fn what_is_aimed_at_is_said_in_a_line() {
        let mut draft = Draft::new().unwrap();
        let measured = Measured::of(&draft.study.workload, &draft.files, 0);
        assert_eq!(
            aims(&draft.study, &measured),
            "Success, human requests ≤ 37%, excess tools ≤ 1.25, prompt length ≤ 5.0k"
        );
        draft.set_threshold("excess_tools", true, 0.8);
        assert!(aims(&draft.study, &measured).contains("excess tools ≤ 80% of the seed’s"));
        draft.study.constraints.clear();
        assert_eq!(aims(&draft.study, &measured), "Success, no constraints");
    }

    #[test]
    fn the_seed_is_marked_only_where_its_cost_is_known() {
        let length = seen(&MetricSpec::prompt_length(), Some(5.0), Some("abc")).unwrap();
        assert_eq!((length.value, length.feasible), (Some(0.003), true));
        let rate = seen(
            &MetricSpec::event("refusals", "rate", ""),
            Some(0.35),
            Some("abc"),
        )
        .unwrap();
        assert_eq!((rate.value, rate.reach), (None, 1.0));
        assert_eq!(seen(&MetricSpec::prompt_length(), None, Some("abc")), None);
    }
}
