//! Providers' keys that projects share: what may be asked with them, what that may cost, and what it did.

mod fields;
mod limits;
mod list;
mod of_project;
mod usage;
mod written;

use leptos::prelude::*;

use super::list::Listing;
use crate::team::Server;

pub(super) use of_project::ProjectKeys;

/// Days of which it is shown what was used.
const DAYS: u16 = 30;

/// Keys, limits and what was used, for administrators of the server.
#[component]
pub(super) fn Keys() -> impl IntoView {
    let used = Listing::new(usage::id, async |server: Server| server.usage(DAYS).await);
    view! {
        <list::KeyList used/>
        <limits::Limits/>
        <usage::Usage used/>
    }
}
