//! Plate C: what the prompt changed.

use capo_core::ids::CandidateId;
use capo_core::reading::metrics::StudiedMetric;
use leptos::prelude::*;

use super::page::{Page, Parts};
use super::prompt::relation;
use crate::components::{Gate as GateMark, Plate};
use crate::format::{self, NOTHING, label};
use crate::run::line::Line;
use crate::run::pool::{Gate, Row};
use crate::run::sentence::Sentence;
use crate::run::studied::Shown as _;
use crate::run::word::Word;

/// A metric of two prompts, in words.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Compared {
    this: Line,
    other: String,
    change: String,
}

/// Objective and costs of the selected prompt beside those of the other.
#[component]
pub(super) fn ChangedPlate(page: Page) -> impl IntoView {
    let other = move || page.other.get();
    let lines = Memo::new(move |_| {
        page.row(|parts, row| lines(parts, row, other()))
            .unwrap_or_default()
    });
    let examples = move || page.row(examples);
    let title = move || match other() {
        Some(_) => "What it changed",
        None => "What it measured",
    };
    let heading = move || {
        other().map(|other| {
            let who = page
                .row(|parts, row| relation(parts, row, other))
                .unwrap_or_default();
            let id = format::id(&other);
            let who = if who == id {
                "Other".to_owned()
            } else {
                label(&who)
            };
            view! {
                <th scope="col" class="num">{who} <small class="id">{id}</small></th>
            }
        })
    };
    let change = move || other().map(|_| view! { <th scope="col" class="num">"Change"</th> });
    let this = move || page.selected.get().map(|selected| format::id(&selected));
    let reading = move || page.row(|parts, row| reading(parts, row, other()));
    view! {
        <Plate letter="C" title=move || title>
            <div class="scroll" tabindex="0" role="group" aria-label="What it changed, scrolls sideways">
                <table>
                    <thead>
                        <tr>
                            <th scope="col">{examples}</th>
                            {heading}
                            <th scope="col" class="num">"This" <small class="id">{this}</small></th>
                            {change}
                            <th scope="col" class="num">"Threshold"</th>
                            <th scope="col">"Gate"</th>
                        </tr>
                    </thead>
                    <tbody>
                        <For each=move || lines.get() key=Clone::clone let(line)>
                            <LineRow line/>
                        </For>
                    </tbody>
                </table>
            </div>
            <p class="reading">
                {move || reading().map(|sentence| view! { <crate::components::Words sentence/> })}
            </p>
        </Plate>
    }
}

#[component]
fn LineRow(line: Compared) -> impl IntoView {
    let compared = !line.change.is_empty();
    let this = line.this;
    view! {
        <tr>
            <th scope="row">{this.metric}</th>
            {compared.then(|| view! { <td class="num">{line.other}</td> })}
            <td class="num"><b>{this.value}</b></td>
            {compared.then(|| view! { <td class="num">{line.change}</td> })}
            <td class="num quiet">{this.threshold}</td>
            <td class="nw">{this.kept.map(|feasible| view! { <GateMark feasible/> })}</td>
        </tr>
    }
}

/// "74 search examples", or how many of them so far.
fn examples(_: &Parts, row: &Row) -> String {
    if let Gate::Undecided(progress) = row.gate {
        return format!("{} of {} search examples", progress.done, progress.of);
    }
    let n = row.estimates.values().map(|estimate| estimate.n).max();
    format!("{} search examples", n.unwrap_or(0))
}

fn lines(parts: &Parts, row: &Row, other: Option<CandidateId>) -> Vec<Compared> {
    let beside = other.and_then(|other| parts.rows.get(&other));
    let line = |metric: &StudiedMetric| {
        let of = |row: &Row| row.estimates.get(metric.name()).copied();
        let threshold = parts.limits.get(metric.name()).map(|limit| limit.threshold);
        let this = of(row);
        let (was, change) = match beside.map(of) {
            Some(was) => {
                let change = this
                    .zip(was)
                    .map(|(this, was)| metric.quantity().difference(this.mean - was.mean));
                let was = Line::of(metric, was, threshold).value;
                (was, change.unwrap_or_else(|| NOTHING.to_owned()))
            }
            None => (String::new(), String::new()),
        };
        Compared {
            this: Line::of(metric, this, threshold),
            other: was,
            change,
        }
    };
    parts.metrics.iter().map(line).collect()
}

/// "J rose from +0.894 to +1.417 under the last multipliers."
fn reading(parts: &Parts, row: &Row, other: Option<CandidateId>) -> Sentence {
    let Some(this) = row.lagrangian else {
        return Sentence::new("It is being measured; means move until every example has an answer.");
    };
    let symbol = Sentence::default().symbol(Word::J);
    let under = if parts.finished {
        "under the last multipliers"
    } else {
        "under the multipliers as they stand"
    };
    let before = other
        .and_then(|other| parts.rows.get(&other))
        .and_then(|other| other.lagrangian);
    let Some(before) = before else {
        return symbol.text(format!(" is {} {under}.", format::lagrangian(this)));
    };
    let verb = match this.total_cmp(&before) {
        std::cmp::Ordering::Greater => "rose",
        std::cmp::Ordering::Less => "fell",
        std::cmp::Ordering::Equal => {
            return symbol.text(format!(" is {} of both.", format::lagrangian(this)));
        }
    };
    symbol.text(format!(
        " {verb} from {} to {} {under}.",
        format::lagrangian(before),
        format::lagrangian(this)
    ))
}
