//! Lists whose items keep their elements and change in place.

use std::collections::HashMap;

use leptos::prelude::*;

/// Draws each item once per key and hands it a memo of its latest value, so that a changed item updates
/// its own attributes and keeps its element, its focus and its transition. Keys are unique.
pub(super) fn keyed<T, V>(
    items: Signal<Vec<T>>,
    key: fn(&T) -> String,
    draw: impl Fn(Memo<T>) -> V + Clone + Send + 'static,
) -> impl IntoView
where
    T: Clone + PartialEq + Send + Sync + 'static,
    V: IntoView + 'static,
{
    let by_key = Memo::new(move |_| {
        items.with(|items| {
            items
                .iter()
                .map(|item| (key(item), item.clone()))
                .collect::<HashMap<String, T>>()
        })
    });
    view! {
        <For
            each=move || items.get()
            key=key
            children=move |first| {
                let own_key = key(&first);
                draw(Memo::new(move |last: Option<&T>| {
                    by_key
                        .with(|by_key| by_key.get(&own_key).cloned())
                        .or_else(|| last.cloned())
                        .unwrap_or_else(|| first.clone())
                }))
            }
        />
    }
}
