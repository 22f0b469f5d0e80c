//! The version shown, and the one that it is compared with.

use capo_api::PRODUCTION;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_navigate, use_query_map};

use super::place::Page;

/// What stands in the address for no other version.
const NOTHING: &str = "nothing";

/// The version that the address means, the newest unless it names one.
pub(super) fn selected(page: Page) -> Memo<Option<u64>> {
    let query = use_query_map();
    Memo::new(move |_| {
        let asked = query.with(|query| query.get("version"));
        asked
            .and_then(|asked| asked.parse().ok())
            .or_else(|| page.newest())
    })
}

/// The version that it is compared with.
pub(super) fn other(page: Page, this: u64) -> Memo<Option<u64>> {
    let query = use_query_map();
    Memo::new(move |_| {
        let asked = query.with(|query| query.get("against"));
        compared(this, page.on(PRODUCTION), asked.as_deref())
    })
}

/// Unless another one is asked for, the version that `production` is on, else the one before.
fn compared(this: u64, production: Option<u64>, asked: Option<&str>) -> Option<u64> {
    let near = production
        .filter(|production| *production != this)
        .or_else(|| this.checked_sub(1));
    let other = match asked {
        Some(NOTHING) => None,
        Some(asked) => asked.parse().ok().or(near),
        None => near,
    };
    other.filter(|other| *other != this && *other > 0)
}

/// A list of versions to compare with.
#[component]
pub(super) fn Against(page: Page, this: u64, other: Memo<Option<u64>>) -> impl IntoView {
    let navigate = use_navigate();
    let change = move |event| {
        let address = format!(
            "{}&against={}",
            page.place().version(this),
            event_target_value(&event)
        );
        let options = NavigateOptions {
            scroll: false,
            ..NavigateOptions::default()
        };
        navigate(&address, options);
    };
    let option = move |number: u64| {
        let labels = page.prompt.with(|prompt| {
            let labels = prompt.iter().flat_map(|prompt| &prompt.labels);
            let on = labels.filter(|(_, on)| **on == number);
            on.map(|(label, _)| label.clone()).collect::<Vec<_>>()
        });
        let labels = (!labels.is_empty()).then(|| format!(", {}", labels.join(", ")));
        view! {
            <option value=number.to_string() prop:selected=move || other.get() == Some(number)>
                "version " {number} {labels}
            </option>
        }
    };
    let options = move || {
        let numbers = (1..=page.newest().unwrap_or_default()).rev();
        numbers
            .filter(|number| *number != this)
            .map(option)
            .collect_view()
    };
    view! {
        <label class="row tight note">
            "against "
            <select class="auto" on:change=change>
                {options}
                <option value=NOTHING prop:selected=move || other.get().is_none()>
                    "nothing"
                </option>
            </select>
        </label>
    }
}

#[cfg(test)]
mod tests {
    use super::compared;

    #[test]
    fn what_production_is_on_is_compared_with_first() {
        assert_eq!(compared(3, Some(1), None), Some(1));
        assert_eq!(compared(3, Some(3), None), Some(2), "the one before");
        assert_eq!(compared(3, None, None), Some(2));
        assert_eq!(compared(1, None, None), None, "there is none before");
        assert_eq!(compared(3, Some(1), Some("nothing")), None);
        assert_eq!(compared(3, Some(1), Some("2")), Some(2));
        assert_eq!(compared(3, Some(1), Some("x")), Some(1));
    }
}
