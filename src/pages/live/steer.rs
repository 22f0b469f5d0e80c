//! Thresholds and multipliers, changed by hand while the run goes on.

use capo_core::journal::SteerEvent;
use indexmap::IndexMap;
use leptos::prelude::*;

use super::overview::{Overview, Parts};
use crate::charts::unit::Unit;
use crate::components::{FieldError, Plate, Term, Track, use_forbidden};
use crate::format::{self, Quantity};
use crate::live::{Ordered, Phase, Run};
use crate::run::studied::Shown as _;
use crate::run::word::Word;

/// What one slider changes.
#[derive(Debug, Clone, PartialEq)]
struct Knob {
    metric: String,
    name: String,
    unit: Unit,
    /// The value in force.
    now: f64,
    /// Where the slider ends.
    most: f64,
    /// The lowest cost that the pool has reached.
    lowest: Option<f64>,
}

/// Sliders for thresholds and multipliers, applied at the next round boundary.
#[component]
pub(super) fn Steer(run: Run, overview: Overview) -> impl IntoView {
    let overview = overview.apart();
    let letter = overview.letter(2);
    let thresholds = Memo::new(move |_| overview.read(thresholds).unwrap_or_default());
    let multipliers = Memo::new(move |_| overview.read(multipliers).unwrap_or_default());
    let forbidden = use_forbidden(run);
    let can = Memo::new(move |_| {
        forbidden.with(Option::is_none)
            && matches!(run.phase.get(), Phase::Running)
            && overview.read(|parts| parts.goes_on).unwrap_or(false)
    });
    let applies = move || {
        if !can.get() {
            return match run.phase.get() {
                _ if forbidden.with(Option::is_some) => "by editors of its project".to_owned(),
                Phase::InAnotherTab => "in the tab where the run goes on".to_owned(),
                _ => "while the run goes on".to_owned(),
            };
        }
        let next = run.read(|folded| folded.state.rounds().len()) + 2;
        format!("applies when round {next} starts")
    };
    view! {
        <Plate
            letter
            title=|| {
                view! { "Steer " <span class="unit">"thresholds and multipliers " <Term word=Word::LAMBDA/></span> }
            }
            beside=move || view! { <span class="now quiet">{applies}</span> }
        >
            <fieldset class="steer" disabled=move || !can.get()>
                <div class="head">"Thresholds"</div>
                <For each=move || thresholds.get() key=|knob| knob.metric.clone() let(knob)>
                    <Slider run kind=Kind::Threshold knobs=thresholds metric=knob.metric/>
                </For>
                <div class="head">"Multipliers"</div>
                <For each=move || multipliers.get() key=|knob| knob.metric.clone() let(knob)>
                    <Slider run kind=Kind::Multiplier knobs=multipliers metric=knob.metric/>
                </For>
            </fieldset>
            <FieldError wrong=Signal::derive(move || run.not_done(Ordered::Change))/>
            <Pending run thresholds multipliers/>
        </Plate>
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Threshold,
    Multiplier,
}

impl Kind {
    fn of(self, change: &SteerEvent) -> Option<&IndexMap<String, f64>> {
        match self {
            Self::Threshold => change.thresholds.as_ref(),
            Self::Multiplier => change.multipliers.as_ref(),
        }
    }

    fn change(self, metric: &str, value: f64) -> SteerEvent {
        let one = Some(IndexMap::from([(metric.to_owned(), value)]));
        match self {
            Self::Threshold => SteerEvent {
                thresholds: one,
                ..SteerEvent::default()
            },
            Self::Multiplier => SteerEvent {
                multipliers: one,
                ..SteerEvent::default()
            },
        }
    }

    /// What one is on screen.
    fn scale(self, knob: &Knob) -> f64 {
        match self {
            Self::Threshold if knob.unit.0 == Quantity::Rate => 100.0,
            Self::Threshold | Self::Multiplier => 1.0,
        }
    }

    fn write(self, knob: &Knob, value: f64) -> String {
        match self {
            Self::Threshold => knob.unit.typed(value),
            Self::Multiplier => format::multiplier(value),
        }
    }
}

/// What may be typed, as shown.
fn allowed(most: f64) -> String {
    if most.is_finite() {
        format!("Write a number from 0 to {most}.")
    } else {
        "Write a number of 0 or more.".to_owned()
    }
}

fn thresholds(parts: &Parts) -> Vec<Knob> {
    let knobs = parts.drawn.series.constraints.iter().filter_map(|of| {
        let now = of.threshold()?;
        let unit = Unit(of.metric.quantity());
        let (_, bound) = unit.natural_bounds();
        Some(Knob {
            metric: of.metric.name().to_owned(),
            name: of.metric.label(),
            unit,
            now,
            most: bound.min(2.0 * now.max(of.lowest.unwrap_or(0.0)).max(0.05)),
            lowest: of.lowest,
        })
    });
    knobs.collect()
}

fn multipliers(parts: &Parts) -> Vec<Knob> {
    let knobs = parts.drawn.series.constraints.iter().filter_map(|of| {
        Some(Knob {
            metric: of.metric.name().to_owned(),
            name: of.metric.phrase(),
            unit: Unit(of.metric.quantity()),
            now: of.next_multiplier?,
            most: parts.drawn.series.cap.unwrap_or_else(|| 2.0 * of.peak().max(1.0)),
            lowest: None,
        })
    });
    knobs.collect()
}

#[component]
fn Slider(run: Run, kind: Kind, knobs: Memo<Vec<Knob>>, metric: String) -> impl IntoView {
    let metric = StoredValue::new(metric);
    let knob = Memo::new(move |_| {
        knobs.with(|knobs| {
            knobs
                .iter()
                .find(|knob| metric.with_value(|name| knob.metric == *name))
                .cloned()
        })
    });
    let waits = Memo::new(move |_| {
        run.pending.with(|pending| {
            let change = kind.of(pending.as_ref()?)?;
            metric.with_value(|name| change.get(name).copied())
        })
    });
    // What the pointer holds right now, before it lets go.
    let held = RwSignal::new(None::<f64>);
    let value = Signal::derive(move || {
        held.get()
            .or_else(|| waits.get())
            .or_else(|| knob.with(|knob| Some(knob.as_ref()?.now)))
    });
    let written = Signal::derive(move || {
        knob.with(|knob| {
            knob.as_ref()
                .zip(value.get())
                .map(|(knob, value)| kind.write(knob, value))
        })
    });
    let most = Signal::derive(move || knob.with(|knob| knob.as_ref().map_or(1.0, |knob| knob.most)));
    let id = format!(
        "steer-{}-{}",
        if kind == Kind::Threshold { "t" } else { "m" },
        metric.get_value()
    );
    let let_go = move |value| {
        held.set(None);
        run.steer(kind.change(&metric.get_value(), value));
    };
    // What is being typed stays, whatever changes meanwhile.
    let text = RwSignal::new(None::<String>);
    let wrong = RwSignal::new(None::<String>);
    let message = format!("{id}-error");
    let described = message.clone();
    let typed = move |event: web_sys::Event| {
        let bare = event_target_value(&event);
        // Written as they stand on screen, units are no mistake.
        let number = format::typed::number(bare.trim_start_matches('$').trim_end_matches(['k', 's', ' ']));
        let scale = knob.with_untracked(|knob| knob.as_ref().map_or(1.0, |knob| kind.scale(knob)));
        let value = number.ok().flatten().map(|number| number / scale);
        let most = if kind == Kind::Multiplier {
            most.get_untracked()
        } else {
            f64::INFINITY
        };
        let natural = knob.with_untracked(|knob| {
            knob.as_ref()
                .map_or(f64::INFINITY, |knob| knob.unit.natural_bounds().1)
        });
        let most = most.min(natural);
        match value.filter(|value| (0.0..=most).contains(value)) {
            Some(value) => {
                text.set(None);
                run.steer(kind.change(&metric.get_value(), value));
            }
            None => wrong.set(Some(allowed(most * scale))),
        }
    };
    let lowest = move || {
        knob.with(|knob| {
            let knob = knob.as_ref()?;
            let lowest = knob.lowest?;
            let place = format!("{:.2}%", 100.0 * (lowest / knob.most).clamp(0.0, 1.0));
            Some(view! {
                <svg>
                    <svg x=place.clone() y="0" overflow="visible">
                        <path d="M0 0L3 4L-3 4Z" fill="var(--ink-3)"/>
                    </svg>
                    <text class="c-tick" x=place y="0%" dy="14" text-anchor="middle">
                        "lowest " {knob.unit.value(lowest)}
                    </text>
                </svg>
            })
        })
    };
    let name = move || knob.with(|knob| knob.as_ref().map(|knob| knob.name.clone()));
    view! {
        <label for=id.clone()>
            {(kind == Kind::Multiplier).then(|| view! { <span class="math">"λ"</span> " " })} {name}
        </label>
        <Track id=id most value written moved=move |value| held.set(Some(value)) let_go=let_go/>
        <input
            type="text"
            class="num"
            class:changed=move || waits.get().is_some()
            inputmode="decimal"
            autocomplete="off"
            aria-label=move || {
                let sign = if kind == Kind::Multiplier { "λ " } else { "" };
                name().map(|name| format!("{sign}{name}, as a number"))
            }
            aria-invalid=move || wrong.with(Option::is_some).then_some("true")
            aria-describedby=move || wrong.with(Option::is_some).then(|| described.clone())
            prop:value=move || text.get().or_else(|| written.get())
            on:input=move |event| {
                wrong.set(None);
                text.set(Some(event_target_value(&event)));
            }
            on:change=typed
        />
        <div class="tick" aria-hidden="true">{lowest}</div>
        <FieldError id=message wrong/>
    }
}

/// What waits for the next round, and a way back.
#[component]
fn Pending(run: Run, thresholds: Memo<Vec<Knob>>, multipliers: Memo<Vec<Knob>>) -> impl IntoView {
    let waiting = move |kind: Kind, knobs: Memo<Vec<Knob>>| {
        knobs.with(|knobs| {
            run.pending.with(|pending| {
                let change = pending.as_ref().and_then(|pending| kind.of(pending));
                let named = change.into_iter().flatten().filter_map(|(metric, value)| {
                    let knob = knobs.iter().find(|knob| knob.metric == *metric)?;
                    let name = if kind == Kind::Multiplier {
                        format!("λ {}", knob.name)
                    } else {
                        knob.name.clone()
                    };
                    Some(format!(
                        "{name} {} → {}",
                        kind.write(knob, knob.now),
                        kind.write(knob, *value)
                    ))
                });
                named.collect::<Vec<_>>()
            })
        })
    };
    let all = move || {
        let mut all = waiting(Kind::Threshold, thresholds);
        all.extend(waiting(Kind::Multiplier, multipliers));
        all
    };
    view! {
        <Show when=move || !all().is_empty()>
            <div class="pending" role="status">
                <div class="row spread">
                    <span>
                        <b>"Pending: "</b>
                        {move || all().join(", ")}
                    </span>
                    <button type="button" class="link" on:click=move |_| run.withdraw()>
                        "Undo"
                    </button>
                </div>
                <span class="note">
                    "“Lowest” marks what the pool has reached; a threshold below it may drive its multiplier to \
                     the cap."
                </span>
            </div>
        </Show>
    }
}
