//! Limits on what members, projects and keys may consume in a day.

use capo_api::{DailyLimits, LimitScope, LimitsShown};
use leptos::prelude::*;

use super::super::form::{Field, Form, Line, Pick};
use super::super::list::{List, Listing};
use super::super::removal::Removal;
use super::written;
use crate::format::{NOTHING, count, dollars};
use crate::team::{Asking, Server};

/// All scopes, in the order in which limits are listed and chosen.
pub(super) const SCOPES: [LimitScope; 3] = [LimitScope::Key, LimitScope::Project, LimitScope::Member];

/// What a scope is called.
pub(super) fn word(scope: LimitScope) -> &'static str {
    match scope {
        LimitScope::Key => "key",
        LimitScope::Project => "project",
        LimitScope::Member => "member",
    }
}

fn means(scope: LimitScope) -> &'static str {
    match scope {
        LimitScope::Key => "key: all that use it together",
        LimitScope::Project => "project: all its members together",
        LimitScope::Member => "member: one person",
    }
}

/// Lists them, sets and lifts them.
#[component]
pub(super) fn Limits() -> impl IntoView {
    let id = |limits: &LimitsShown| format!("{} {}", word(limits.scope), limits.name);
    let listing = Listing::new(id, async |server: Server| {
        let mut all = server.limits().await?;
        // What was lifted says nothing.
        all.retain(|shown| shown.limits != DailyLimits::default());
        Ok(all)
    });
    let cells = move |shown: LimitsShown| {
        let gone = listing.without(&shown);
        let LimitsShown { scope, name, .. } = shown.clone();
        let of = format!("the limits of the {} {name}", word(scope));
        let shown = listing.row(shown);
        let usd = move || {
            shown
                .with(|shown| shown.limits.usd)
                .map_or(NOTHING.into(), |usd| dollars(Some(usd)))
        };
        let requests = move || {
            shown
                .with(|shown| shown.limits.requests)
                .map_or(NOTHING.into(), count)
        };
        let lifted = name.clone();
        let remove =
            async move |server: Server| server.set_limits(scope, &lifted, &DailyLimits::default()).await;
        let consequence = "Other limits that apply stay.";
        let button = view! { <Removal words=("Lift", "Lifting…") of consequence remove gone/> };
        vec![
            view! { <code>{name}</code> }.into_any(),
            word(scope).into_any(),
            usd.into_any(),
            requests.into_any(),
            button.into_any(),
        ]
    };
    let asking = Asking::default();
    let [name, usd, requests] = std::array::from_fn(|_| Line::default());
    let scope = RwSignal::new(LimitScope::Key);
    let pick = move |picked| scope.set(picked);
    let submit = move || {
        let named = name.read(|text| match text.trim() {
            "" => Err("Write whose limits they are.".to_owned()),
            name => Ok(name.to_owned()),
        });
        let (usd, requests) = (usd.read(written::dollars), requests.read(written::requests));
        let (Some(of), Some(usd), Some(requests)) = (named, usd, requests) else {
            return;
        };
        let (scope, limits) = (scope.get_untracked(), DailyLimits { usd, requests });
        let request = async move |server: Server| server.set_limits(scope, &of, &limits).await;
        asking.send(request, move |()| name.clear());
    };
    let columns = &["Whose", "Which is a", "Dollars a day", "Requests a day", ""];
    let empty = "None: whoever may use a key may do so without end.";
    view! {
        <List id="limits" title="Limits a day (UTC)" listing columns empty cells>
            <h3>"Set limits"</h3>
            <Form asking words=("Set the limits", "Setting them…") submit>
                <Pick label="Limits of a" id="limit-scope" all=&SCOPES means picked=scope pick/>
                <Field id="limit-name" label="Whose" line=name note="The name of the key, project or member."/>
                <Field id="limit-usd" label="Dollars a day" line=usd note="Empty: no limit. With one, models without a known price are refused."/>
                <Field id="limit-requests" label="Requests a day" line=requests note="Empty: no limit."/>
            </Form>
        </List>
    }
}
