//! The header of a run: where it is, what it has spent, what can be done with it.

use std::time::Duration;

use capo_core::budget::Budget;
use capo_core::reading::phase::Phase as Doing;
use capo_core::run_state::RunState;
use capo_models::expected::{Expected, Figure};
use capo_models::prices::PriceTable;
use capo_models::{ProviderName, Wait};
use leptos::prelude::*;

use super::actions::Actions;
use crate::charts::ruler::{RoundRuler, RulerData};
use crate::components::{RunNav, RunTag, Term, every};
use crate::format;
use crate::live::{Folded, Phase, Run};
use crate::run::overview::Overview;
use crate::run::word::Word;
use crate::storage::{ServerRun, is_report};
use crate::studies;

/// Name and state, the ruler of rounds, meters of what was spent, and the actions.
#[component]
pub fn RunBar(run: Run) -> impl IntoView {
    let name = move || {
        run.record
            .with(|record| record.as_ref().map(|record| record.name.clone()))
    };
    let about = move || {
        run.record.with(|record| {
            let record = record.as_ref()?;
            let about = [studies::method_name(&record.method), record.about.clone()];
            let whose = record.server.as_ref().map(ServerRun::whose);
            let parts: Vec<String> = about.into_iter().chain(whose).collect();
            Some(parts.join(" · "))
        })
    };
    view! {
        <section class="runbar" aria-label="Run">
            <div>
                <h1>{name}</h1>
                <div class="sub">
                    <RunTag run/>
                    <span>{about}</span>
                </div>
                <RunNav run/>
            </div>
            <Course run/>
            <Meters run/>
            <Show when=|| !is_report()>
                <Actions run/>
            </Show>
        </section>
    }
}

/// The ruler of rounds and a sentence about this moment.
#[component]
fn Course(run: Run) -> impl IntoView {
    let data = Memo::new(move |_| {
        run.read(|folded| folded.overview().map(|seen| ruler(&seen)))
            .unwrap_or_default()
    });
    let sentence = Memo::new(move |_| {
        run.read(|folded| folded.overview().map(|seen| moment(&seen, folded, run)))
            .unwrap_or_default()
    });
    let expected = Memo::new(move |_| {
        let waits = matches!(run.phase.get(), Phase::Paused(_) | Phase::Resting);
        run.read(|folded| (waits && run.check().is_none()).then(|| expected(&folded.state)))
            .flatten()
    });
    view! {
        <div>
            <Show when=move || run.check().is_none()>
                <RoundRuler data=data label=sentence/>
                <p class="note moment">{sentence}</p>
            </Show>
            <Waits run/>
            <div role="status">{move || expected.get().map(|words| view! { <p class="note">{words}</p> })}</div>
        </div>
    }
}

/// What the whole study is expected to take, by a run of which nothing but the seed prompt is measured.
fn expected(state: &RunState) -> Option<String> {
    if !state.rounds().is_empty() || state.finished().is_some() {
        return None;
    }
    let expected = Expected::of(state, &state.budget(), &PriceTable::shipped())?;
    Some(format!(
        "By {}, the whole study is expected to take {} rollouts, {} calls, {} tokens, {} and {}. Critiques and rewrites \
         are estimated from the lengths of prompts; nothing that was measured is paid again.",
        format::counted(expected.measured as usize, "rollout"),
        format::count(expected.rollouts),
        expected.calls.text(|calls| format::count(calls.round() as u64)),
        expected
            .tokens
            .text(|tokens| format::tokens(tokens.round() as u64)),
        unless_unknown(
            expected.usd,
            |usd| format::dollars(Some(usd)),
            "number of dollars"
        ),
        unless_unknown(expected.seconds, format::span, "time"),
    ))
}

fn unless_unknown(figure: Option<Figure>, write: fn(f64) -> String, what: &str) -> String {
    figure.map_or_else(|| format!("an unknown {what}"), |figure| figure.text(write))
}

/// Who is waited for, as long as somebody is. Its place is kept, so that nothing below moves.
#[component]
fn Waits(run: Run) -> impl IntoView {
    // Seconds pass without anything being heard.
    let tick = RwSignal::new(());
    every(|| Some(Duration::from_secs(1)), move || tick.set(()));
    let words = Memo::new(move |_| {
        tick.track();
        let (wait, until) = run.waits()?;
        let left = (until - js_sys::Date::now()) / 1000.0;
        // The call is made again by then, or given up: whoever waits anew says so anew.
        if left <= 0.0 {
            return None;
        }
        let wait = Wait {
            seconds: left.ceil(),
            provider: who(&wait.provider),
            ..wait
        };
        Some(format!(
            "{}. Nothing was counted as a score.",
            format::capitalized(&wait.to_string())
        ))
    });
    let goes_on = move || matches!(run.phase.get(), Phase::Running | Phase::Pausing);
    view! {
        <p class="note waits" role="status">
            {move || words.get().filter(|_| goes_on())}
        </p>
    }
}

/// A provider as people know it.
fn who(provider: &str) -> String {
    let known = ProviderName::find(provider);
    known.map_or_else(|| provider.to_owned(), |known| known.get().title.to_owned())
}

fn ruler(seen: &Overview) -> RulerData {
    let closed = seen.series.closed();
    let share = match seen.now.phase {
        Doing::Evaluating { child, of, examples } => {
            let of_child = examples.done as f64 / examples.of.max(1) as f64;
            ((child as f64 - 1.0 + of_child) / of as f64).clamp(0.0, 1.0)
        }
        _ => 0.0,
    };
    RulerData {
        last_round: seen.series.last_round(),
        children: seen.pool.children as u32,
        done: f64::from(closed) + share,
    }
}

/// "Round 5 of 6 · evaluating child 5 of 8, example 31 of 74 · 41 min so far, about 18 min left".
fn moment(seen: &Overview, folded: &Folded, run: Run) -> String {
    let goes_on = matches!(
        run.phase.get(),
        Phase::Running | Phase::Pausing | Phase::InAnotherTab
    );
    let running = goes_on && !matches!(seen.now.phase, Doing::Ended(_));
    let (planned, closed) = (seen.now.planned, seen.series.closed());
    let mut parts = if running {
        vec![seen.now.round_words(), seen.now.phase_words()]
    } else {
        vec![match planned {
            Some(planned) => format!("{closed} of {planned} rounds"),
            None => format::counted(closed as usize, "round"),
        }]
    };
    let elapsed = run.elapsed() / 1000.0;
    if elapsed >= 1.0 {
        let so_far = if running {
            format!("{} so far", format::span(elapsed))
        } else {
            format!("in {}", format::span(elapsed))
        };
        let left = run.inherited().filter(|_| running).and_then(|before| {
            let took = elapsed - before.elapsed / 1000.0;
            if let Some(planned) = planned {
                let here = (closed as usize).saturating_sub(before.rounds);
                return (here > 0 && closed < planned)
                    .then(|| took / here as f64 * f64::from(planned - closed));
            }
            let (spent, here) = folded.spent(&before.consumed);
            until_spent(took, here, spent)
        });
        parts.push(match left {
            Some(left) => format!("{so_far}, {} left", format::about(left)),
            None => so_far,
        });
    }
    parts.join(" · ")
}

/// The least share of the budget from which the time is told that the rest takes.
const TOLD_FROM: f64 = 0.05;

/// Seconds until the budget is spent, when this session took so many for its share of what is `spent`.
fn until_spent(took: f64, here: f64, spent: f64) -> Option<f64> {
    (here >= TOLD_FROM && spent < 1.0).then(|| took / here * (1.0 - spent))
}

#[derive(Clone, PartialEq)]
struct Meter {
    name: &'static str,
    spent: String,
    of: Option<String>,
    share: Option<f64>,
    left: String,
}

impl Meter {
    fn new(name: &'static str, spent: f64, limit: Option<f64>, write: impl Fn(f64) -> String) -> Self {
        Self {
            name,
            spent: write(spent),
            of: limit.map(&write),
            share: limit.map(|limit| (spent / limit).min(1.0)),
            left: match limit {
                Some(limit) => format!("{} left", write((limit - spent).max(0.0))),
                None => "no limit set".into(),
            },
        }
    }
}

fn meters(state: &RunState) -> [Meter; 4] {
    let Budget {
        rollouts,
        calls,
        tokens,
        usd,
        ..
    } = state.budget();
    let total = state.ledger().usage().total();
    let counted = |value: f64| format::count(value as u64);
    let limit = |limit: Option<u64>| limit.map(|limit| limit as f64);
    let mut dollars = Meter::new("Dollars", total.usd.unwrap_or_default(), usd, |usd| {
        format::dollars(Some(usd))
    });
    if total.usd.is_none() {
        dollars.spent = format::dollars(None);
    }
    [
        Meter::new(
            "Rollouts",
            state.ledger().rollouts() as f64,
            limit(rollouts),
            counted,
        ),
        Meter::new("Model calls", total.calls as f64, limit(calls), counted),
        Meter::new("Tokens", total.tokens() as f64, limit(tokens), |tokens| {
            format::tokens(tokens as u64)
        }),
        dollars,
    ]
}

/// What was spent against the budget.
#[component]
fn Meters(run: Run) -> impl IntoView {
    let meters = Memo::new(move |_| run.read(|folded| meters(&folded.state)));
    let figures = |meter: Meter| {
        let share = format!("{:.1}%", 100.0 * meter.share.unwrap_or_default());
        let of = meter.of.map(|of| view! { <small>" / " {of}</small> });
        view! {
            <dd class="v">{meter.spent} {of}</dd>
            <dd class="bar" aria-hidden="true">
                <i style:--share=share></i>
            </dd>
            <dd class="s">{meter.left}</dd>
        }
    };
    let meter = |place: usize| {
        let name = match meters.with_untracked(|all| all[place].name) {
            "Rollouts" => view! { <Term word=Word::ROLLOUT shown="Rollouts"/> }.into_any(),
            name => name.into_any(),
        };
        view! {
            <div class="meter" class:unlimited=move || meters.with(|all| all[place].share.is_none())>
                <dt>{name}</dt>
                {move || figures(meters.with(|all| all[place].clone()))}
            </div>
        }
    };
    view! { <dl class="meters" aria-label="Spend against budget">{[0, 1, 2, 3].map(meter)}</dl> }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_what_this_session_spent() {
        assert_eq!(until_spent(60.0, 0.25, 0.5), Some(120.0));
        assert_eq!(until_spent(60.0, 0.04, 0.5), None, "too little to tell");
        assert_eq!(until_spent(60.0, 0.5, 1.0), None);
    }
}
