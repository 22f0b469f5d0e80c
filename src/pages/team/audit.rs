//! The audit log.

use std::rc::Rc;

use capo_api::{ClientError, EntryShown};
use leptos::prelude::*;

use super::form::Refused;
use super::list::{List, Listing, when};
use crate::team::{Asking, Server};

/// Who did what, the latest first, and whatever is done on this page from here on.
#[component]
pub(super) fn AuditLog<R>(
    /// Reads the latest lines, or those before one of an id.
    read: R,
) -> impl IntoView
where
    R: AsyncFn(Server, Option<i64>) -> Result<Vec<EntryShown>, ClientError> + 'static,
{
    let asking = Asking::default();
    let read = Rc::new(read);
    let latest = read.clone();
    let key = |entry: &EntryShown| entry.id.to_string();
    let listing = Listing::new(key, async move |server: Server| latest(server, None).await);
    let first = Memo::new(move |_| listing.rows().last().map(|entry| entry.id));
    // The line before which there is none.
    let very_first = RwSignal::new(None::<i64>);
    let read = StoredValue::new_local(read);
    let earlier = move |_| {
        let (read, first) = (read.get_value(), first.get_untracked());
        let request = async move |server: Server| read(server, first).await;
        asking.send(request, move |more: Vec<EntryShown>| {
            if more.is_empty() {
                very_first.set(first);
            }
            listing.change(|rows| rows.extend(more));
        });
    };
    let cells = |entry: EntryShown| {
        let action = view! { <code>{entry.action}</code> };
        let (who, whom) = (entry.actor.into_any(), entry.subject.into_any());
        let from = if entry.imported {
            format!("another server {}", entry.address)
        } else {
            entry.address
        };
        vec![who, action.into_any(), whom, from.into_any(), when(entry.at)]
    };
    let end = move || match first.get() {
        None => ().into_any(),
        first if first == very_first.get() => {
            view! { <p class="note" role="status">"That is the first line."</p> }.into_any()
        }
        Some(_) => view! {
            <div class="row">
                <button type="button" aria-disabled=move || asking.disabled() on:click=earlier>
                    "Earlier"
                </button>
            </div>
        }
        .into_any(),
    };
    view! {
        <List id="audit" title="Audit log" listing columns=&["Who", "Did", "To", "From", "When"] empty="Nothing yet." cells>
            <Refused asking/>
            {end}
        </List>
    }
}
