//! The slider of a threshold or a multiplier.

use leptos::prelude::*;

/// A slider that starts at 0, in a hundred round steps or so.
#[component]
pub fn Track(
    /// The id of its element, for a label.
    #[prop(optional, into)]
    id: Option<String>,
    /// Its name where no label gives it one.
    #[prop(optional, into)]
    name: Option<String>,
    /// Where it ends.
    #[prop(into)]
    most: Signal<f64>,
    /// Where it stands.
    #[prop(into)]
    value: Signal<Option<f64>>,
    /// That value as it is read out.
    #[prop(into)]
    written: Signal<Option<String>>,
    /// Called while it moves.
    #[prop(into)]
    moved: Callback<f64>,
    /// Called when it is let go.
    #[prop(optional, into)]
    let_go: Option<Callback<f64>>,
) -> impl IntoView {
    let value_of = |event: web_sys::Event| event_target_value(&event).parse::<f64>().ok();
    let input = move |event| {
        if let Some(value) = value_of(event) {
            moved.run(value);
        }
    };
    let change = move |event| {
        if let Some((let_go, value)) = let_go.zip(value_of(event)) {
            let_go.run(value);
        }
    };
    view! {
        // The value comes last: a range that is not set yet would clip it.
        <input
            id=id
            type="range"
            aria-label=name
            min="0"
            max=move || most.get()
            step=move || step(most.get())
            prop:value=move || value.get().map(|value| value.to_string())
            aria-valuetext=move || written.get()
            on:input=input
            on:change=change
        />
    }
}

/// A round step that leads to the end in a hundred or so.
fn step(most: f64) -> f64 {
    let least = (most / 200.0).max(f64::MIN_POSITIVE);
    let power = 10.0_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let found = steps
        .into_iter()
        .map(|step| step * power)
        .find(|step| *step >= least * (1.0 - 1e-9));
    found.unwrap_or(10.0 * power)
}
