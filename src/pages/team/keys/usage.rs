//! Usage of the keys, by whom and on which day.

use std::collections::BTreeMap;

use capo_api::{LimitScope, UsageShown};
use leptos::prelude::*;

use super::super::list::Listing;
use super::DAYS;
use super::limits::{SCOPES, word};
use crate::format::{capitalized, count, dollars};

/// Milliseconds of a day.
const DAY: f64 = 86_400_000.0;

/// What tells rows apart.
pub(super) fn id(used: &UsageShown) -> String {
    format!("{} {} {}", word(used.scope), used.name, used.day)
}

/// Whether it was used on this day in UTC.
pub(super) fn is_today(used: &UsageShown) -> bool {
    used.day == day(0)
}

/// The day so many days ago, in UTC.
fn day(ago: u16) -> String {
    let at = js_sys::Date::new(&(js_sys::Date::now() - f64::from(ago) * DAY).into());
    String::from(at.to_iso_string()).chars().take(10).collect()
}

/// What one member, project or key used.
#[derive(Debug, Clone, Default, PartialEq)]
struct Sum {
    usd: f64,
    reserved_usd: f64,
    requests: u64,
    /// Dollars by day, of the days on which something was asked.
    by_day: BTreeMap<String, f64>,
}

impl Sum {
    fn add(&mut self, used: &UsageShown) {
        self.usd += used.usd;
        self.reserved_usd += used.reserved_usd;
        self.requests += used.requests;
        *self.by_day.entry(used.day.clone()).or_default() += used.usd;
    }
}

/// Sums of a scope by name, whoever used most first, and the sum of all.
fn sums(used: &[UsageShown], scope: LimitScope) -> (Vec<(String, Sum)>, Sum) {
    let (mut by_name, mut total) = (BTreeMap::<&str, Sum>::new(), Sum::default());
    for used in used.iter().filter(|used| used.scope == scope) {
        by_name.entry(&used.name).or_default().add(used);
        total.add(used);
    }
    let mut rows: Vec<_> = by_name
        .into_iter()
        .map(|(name, sum)| (name.to_owned(), sum))
        .collect();
    rows.sort_by(|(_, one), (_, other)| {
        let dollars = other.usd.total_cmp(&one.usd);
        dollars.then(other.requests.cmp(&one.requests))
    });
    (rows, total)
}

/// A table of the last days, by key, project and member.
#[component]
pub(super) fn Usage(used: Listing<UsageShown>) -> impl IntoView {
    let parts = Memo::new(move |_| {
        let rows = used.rows();
        SCOPES.map(|scope| sums(&rows, scope))
    });
    let bodies = move || {
        let parts = SCOPES.into_iter().zip(parts.get());
        let parts = parts.filter(|(_, (rows, _))| !rows.is_empty());
        parts
            .map(|(scope, (rows, total))| body(scope, rows, &total))
            .collect_view()
    };
    view! {
        <section class="plate" id="usage-plate" aria-labelledby="usage">
            <header>
                <h2 class="pt" id="usage">{format!("Used in the last {DAYS} days")}</h2>
            </header>
            <div class="scroll" tabindex="0" role="group" aria-label="What was used, scrolls sideways">
                <table class="mid listed">
                    <thead>
                        <tr>
                            <th scope="col">"Name"</th>
                            <th scope="col" class="num">"Dollars"</th>
                            <th scope="col" class="num">"Set aside for requests under way"</th>
                            <th scope="col" class="num">"Requests"</th>
                            <th scope="col">"Dollars by day"</th>
                        </tr>
                    </thead>
                    {bodies}
                </table>
            </div>
            {move || used.instead("Nothing yet.")}
        </section>
    }
}

fn body(scope: LimitScope, rows: Vec<(String, Sum)>, total: &Sum) -> AnyView {
    let numbers = |sum: &Sum| {
        [
            dollars(Some(sum.usd)),
            dollars(Some(sum.reserved_usd)),
            count(sum.requests),
        ]
    };
    let row = |(name, sum): (String, Sum)| {
        let cells = numbers(&sum).map(|number| view! { <td class="num">{number}</td> });
        view! {
            <tr>
                <th scope="row">{name.clone()}</th>
                {cells}
                <td><Days name by_day=sum.by_day/></td>
            </tr>
        }
    };
    let sums = numbers(total).map(|number| view! { <td class="num"><b>{number}</b></td> });
    view! {
        <tbody>
            <tr>
                <th scope="rowgroup" colspan="5"><b>{capitalized(&format!("{}s", word(scope)))}</b></th>
            </tr>
            {rows.into_iter().map(row).collect_view()}
            <tr>
                <th scope="row"><b>"Together"</b></th>
                {sums}
                <td></td>
            </tr>
        </tbody>
    }
    .into_any()
}

/// A bar for each day, the earliest at the left.
#[component]
fn Days(name: String, by_day: BTreeMap<String, f64>) -> impl IntoView {
    let most = by_day.values().copied().fold(0.0, f64::max);
    let days = (0..DAYS).rev().map(day).enumerate();
    let bar = |(place, day): (usize, String)| {
        let usd = by_day.get(&day).copied().filter(|usd| *usd > 0.0)?;
        let height = 10.0 * usd / most;
        Some(
            view! { <rect x=place.to_string() y=(10.0 - height).to_string() width="0.8" height=height.to_string()/> },
        )
    };
    let bars = days.filter_map(bar).collect_view();
    let label = format!("{name}: at most {} on one day", dollars(Some(most)));
    view! {
        <div class="mini spark days">
            <svg role="img" aria-label=label viewBox=format!("0 0 {DAYS} 10") preserveAspectRatio="none">
                {bars}
            </svg>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_summed_by_name_and_in_all() {
        let used = |scope, name: &str, day: &str, usd, requests| UsageShown {
            scope,
            name: name.into(),
            day: day.into(),
            usd,
            reserved_usd: 0.5,
            requests,
        };
        let rows = [
            used(LimitScope::Member, "ada", "2026-11-26", 1.0, 2),
            used(LimitScope::Member, "bea", "2026-11-26", 2.0, 1),
            used(LimitScope::Member, "ada", "2026-11-25", 0.25, 3),
            used(LimitScope::Key, "openai", "2026-11-26", 3.0, 3),
        ];
        let (members, total) = sums(&rows, LimitScope::Member);
        let named: Vec<_> = members
            .iter()
            .map(|(name, sum)| (name.as_str(), sum.usd, sum.requests))
            .collect();
        assert_eq!(named, [("bea", 2.0, 1), ("ada", 1.25, 5)]);
        assert_eq!((total.usd, total.reserved_usd, total.requests), (3.25, 1.5, 6));
        assert!(sums(&rows, LimitScope::Project).0.is_empty());
    }
}
