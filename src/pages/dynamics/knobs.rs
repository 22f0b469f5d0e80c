//! Controls: sliders and lists, marked where the two sides differ.

use capo_core::dual::DualStepName;
use leptos::prelude::*;

use super::setting::Setting;
use crate::format::{self, Quantity};

/// A slider over one number of a setting.
pub(super) struct Knob {
    pub(super) key: &'static str,
    symbol: &'static str,
    index: &'static str,
    name: &'static str,
    /// Least, most, step.
    pub(super) range: [f64; 3],
    show: fn(f64) -> String,
    pub(super) read: fn(&Setting) -> f64,
    pub(super) write: fn(&mut Setting, f64),
    /// Whether the dual step reads it.
    applies: fn(DualStepName) -> bool,
}

fn always(_: DualStepName) -> bool {
    true
}

fn moves(step: DualStepName) -> bool {
    step != DualStepName::Fixed
}

fn has_step_size(step: DualStepName) -> bool {
    matches!(step, DualStepName::Subgradient | DualStepName::Count)
}

fn is_pid(step: DualStepName) -> bool {
    step == DualStepName::Pid
}

fn whole(value: f64) -> String {
    format::decimals(value, 0)
}

fn tenths(value: f64) -> String {
    format::decimals(value, 1)
}

fn hundredths(value: f64) -> String {
    format::decimals(value, 2)
}

fn rate(share: f64) -> String {
    Quantity::Rate.threshold(share)
}

/// Sliders a line each: key, symbol and index, name, range, how a value is shown, where it stands, whether the dual step reads
/// it, and how it is read where that is not as it stands.
macro_rules! knobs {
    (@read $setting:ident, $field:expr) => { |$setting| $field };
    (@read $setting:ident, $field:expr, $read:expr) => { |$setting| $read };
    ($setting:ident => $(
        $key:literal $symbol:literal $index:literal $name:literal, $range:expr, $show:ident, $field:expr, $applies:ident
            $(, $read:expr)?;
    )*) => {
        [$(Knob {
            key: $key,
            symbol: $symbol,
            index: $index,
            name: $name,
            range: $range,
            show: $show,
            read: knobs!(@read $setting, $field $(, $read)?),
            write: |$setting, value| $field = value,
            applies: $applies,
        }),*]
    };
}

/// Every slider in order.
pub(super) const KNOBS: [Knob; 10] = knobs! { setting =>
    "tools" "τ" "" "excess tools", [0.1, 3.0, 0.1], tenths, setting.tools, always;
    "requests" "τ" "" "human requests", [0.0, 0.8, 0.01], rate, setting.requests, always;
    "beta" "β" "" "dual step size", [0.5, 12.0, 0.5], tenths, setting.beta, has_step_size;
    "proportional" "K" "p" "proportional", [0.0, 10.0, 0.5], tenths, setting.gains[0], is_pid;
    "integral" "K" "i" "integral", [0.0, 10.0, 0.5], tenths, setting.gains[1], is_pid;
    "derivative" "K" "d" "derivative", [0.0, 10.0, 0.5], tenths, setting.gains[2], is_pid;
    "start" "λ" "0" "start", [0.0, 10.0, 0.5], tenths, setting.lambda_init, always, setting.lambda_init.min(setting.lambda_max);
    "cap" "λ" "max" "cap", [1.0, 20.0, 1.0], whole, setting.lambda_max, moves;
    "gamma" "γ" "" "selection", [0.0, 4.0, 0.1], tenths, setting.gamma, always;
    "noise" "σ" "" "noise", [0.0, 1.0, 0.05], hundredths, setting.noise, always;
};

/// The dual steps whose hyperparameters have a slider here.
pub(super) const STEPS: [DualStepName; 4] = [
    DualStepName::Subgradient,
    DualStepName::Pid,
    DualStepName::Count,
    DualStepName::Fixed,
];

/// The most candidates that the dual step averages over here: k0.
pub(super) const MOST_AVERAGED: usize = 4;

/// All controls of one side.
#[component]
pub(super) fn Knobs(
    /// "A" or "B".
    letter: &'static str,
    /// What is turned.
    setting: RwSignal<Setting>,
    /// The other side's.
    other: RwSignal<Setting>,
) -> impl IntoView {
    let step = Memo::new(move |_| setting.with(|setting| setting.step));
    let sliders = move || {
        let shown = KNOBS.iter().filter(|knob| (knob.applies)(step.get()));
        shown
            .map(|knob| view! { <Slider letter knob setting other/> })
            .collect_view()
    };
    let averaged = move || {
        let option = |best: usize| {
            let chosen = move || setting.with(|setting| setting.best == best);
            view! {
                <option value=best.to_string() prop:selected=chosen>
                    {format!("best {best}")}
                </option>
            }
        };
        (1..=MOST_AVERAGED).map(option).collect_view()
    };
    let steps = STEPS.iter().map(|&name| {
        let chosen = move || step.get() == name;
        let words = match name {
            DualStepName::Pid => "PID".to_owned(),
            other => other.to_string(),
        };
        view! {
            <option value=name.to_string() prop:selected=chosen>
                {words}
            </option>
        }
    });
    let steps = steps.collect_view();
    let differs = move |read: fn(&Setting, &Setting) -> bool| {
        move || setting.with(|setting| other.with(|other| read(setting, other)))
    };
    let best_id = format!("{letter}-best");
    let step_id = format!("{letter}-step");
    view! {
        <div class="knobs">
            {sliders}
            <div class="knob" class:diff=differs(|one, other| one.best != other.best)>
                <label for=best_id.clone()>
                    <span>
                        <span class="math">"k"<sub>"0"</sub></span>
                        " averaged over"
                    </span>
                </label>
                <select
                    id=best_id
                    on:change=move |event| {
                        if let Ok(best) = event_target_value(&event).parse() {
                            setting.update(|setting| setting.best = best);
                        }
                    }
                >
                    {averaged}
                </select>
            </div>
            <div class="knob" class:diff=differs(|one, other| one.step != other.step)>
                <label for=step_id.clone()>
                    <span>"Dual step"</span>
                </label>
                <select
                    id=step_id
                    on:change=move |event| {
                        let chosen = event_target_value(&event);
                        let named = |name: &&DualStepName| name.to_string() == chosen;
                        if let Some(name) = STEPS.iter().find(named) {
                            setting.update(|setting| setting.step = *name);
                        }
                    }
                >
                    {steps}
                </select>
            </div>
        </div>
    }
}

#[component]
fn Slider(
    letter: &'static str,
    knob: &'static Knob,
    setting: RwSignal<Setting>,
    other: RwSignal<Setting>,
) -> impl IntoView {
    let id = format!("{letter}-{}", knob.key);
    let value = Memo::new(move |_| setting.with(knob.read));
    let differs = move || value.get() != other.with(knob.read);
    let [least, most, step] = knob.range.map(|end| end.to_string());
    let index = (!knob.index.is_empty()).then(|| view! { <sub>{knob.index}</sub> });
    let turned = move |event| {
        if let Ok(value) = event_target_value(&event).parse() {
            setting.update(|setting| (knob.write)(setting, value));
        }
    };
    view! {
        <div class="knob" class:diff=differs>
            <label for=id.clone()>
                <span>
                    <span class="math">{knob.symbol} {index}</span>
                    " "
                    {knob.name}
                </span>
                <output for=id.clone()>{move || (knob.show)(value.get())}</output>
            </label>
            // The value comes last: a range that is not set yet would clip it.
            <input
                type="range"
                id=id
                min=least
                max=most
                step=step
                prop:value=move || value.get().to_string()
                on:input=turned
            />
        </div>
    }
}
