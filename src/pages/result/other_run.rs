//! Against another run on the same examples.

use capo_core::reading::comparison::{self, Difference, PromptOf};
use capo_core::reading::feasibility::Feasibility;
use capo_core::reading::metrics;
use capo_core::run_state::RunState;
use capo_core::workload::Split;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::components::A;
use leptos_router::hooks::{use_navigate, use_query_map};

use super::differences::Differences;
use crate::components::Plate;
use crate::format::{self, listed};
use crate::live::{Phase, Run, Runs};
use crate::run::outcome::Outcome;
use crate::run::studied::Shown as _;
use crate::storage::{RunRecord, is_report};

/// The name of the other run in the address.
const WITH: &str = "with";

/// What comparing came to.
#[derive(Debug, Clone, PartialEq)]
enum Compared {
    Reading(usize, usize),
    /// Why the two cannot be compared.
    Not(String),
    Differences(Vec<Difference>, Other),
}

/// The other run's prompt.
#[derive(Debug, Clone, PartialEq)]
struct Other {
    address: String,
    id: String,
    /// "scored higher on the search examples (78.4%)".
    scored: String,
    feasibility: Feasibility,
    /// "human requests 55.0% held out, threshold 35%"; empty when all are kept.
    missed: String,
}

/// Paired differences to a run that is chosen from those kept here.
#[component]
pub(super) fn OtherRunPlate(
    run: Run,
    /// The letter of the plate.
    letter: Signal<&'static str>,
) -> impl IntoView {
    let runs = expect_context::<Runs>();
    let query = use_query_map();
    let chosen = Memo::new(move |_| query.with(|query| query.get(WITH)));
    let kept = LocalResource::new(move || {
        runs.cleared();
        runs.kept()
    });
    let list = move || {
        let own = run.id();
        // Without a list there is nothing to choose, and the plate says so.
        let kept = kept.get().and_then(Result::ok).unwrap_or_default();
        kept.runs
            .into_iter()
            .filter(|record| record.id != own)
            .collect::<Vec<_>>()
    };
    let other = Memo::new(move |_| chosen.get().map(|id| runs.show(&id)));
    let compared = Memo::new(move |_| other.get().map(|other| compared(run, other)));
    let differences = Memo::new(move |_| match compared.get() {
        Some(Compared::Differences(differences, _)) => differences,
        _ => Vec::new(),
    });
    view! {
        <Plate
            letter
            title=|| "Against another run"
            beside=move || view! { <Choice run chosen records=Signal::derive(list)/> }
        >
            <Show when=move || differences.with(|differences| !differences.is_empty())>
                <Differences differences name="Differences to the other run"/>
            </Show>
            {move || compared.get().map(|compared| view! { <Remark compared/> })}
        </Plate>
    }
}

#[component]
fn Choice(run: Run, chosen: Memo<Option<String>>, records: Signal<Vec<RunRecord>>) -> impl IntoView {
    let navigate = use_navigate();
    let choose = Callback::new(move |id: String| {
        let own = format!("/run/{}/result", run.id());
        let address = if id.is_empty() {
            own
        } else {
            format!("{own}?{WITH}={id}")
        };
        let options = NavigateOptions {
            scroll: false,
            ..NavigateOptions::default()
        };
        navigate(&address, options);
    });
    let option = move |record: RunRecord| {
        let id = record.id.clone();
        let words = format!("{}, {}", record.name, record.about);
        view! {
            <option value=record.id prop:selected=move || chosen.with(|chosen| chosen.as_ref() == Some(&id))>
                {words}
            </option>
        }
    };
    view! {
        <Show
            when=move || records.with(|records| !records.is_empty())
            fallback=|| {
                let place = if is_report() { "report" } else { "browser" };
                view! { <span class="note">"No other run in this " {place} "."</span> }
            }
        >
            <select
                class="auto"
                aria-label="Run to compare with"
                on:change=move |event| choose.run(event_target_value(&event))
            >
                <option value="" prop:selected=move || chosen.with(Option::is_none)>
                    "Choose a run"
                </option>
                {move || records.get().into_iter().map(option).collect_view()}
            </select>
        </Show>
    }
}

#[component]
fn Remark(compared: Compared) -> impl IntoView {
    match compared {
        Compared::Reading(read, of) => view! {
            <p class="quiet small" role="status">
                "reading the other journal, " {read} " of " {of} " parts"
            </p>
        }
        .into_any(),
        Compared::Not(why) => view! { <p class="reading">{why}</p> }.into_any(),
        Compared::Differences(differences, other) => {
            let none = differences
                .is_empty()
                .then_some("Nothing was measured on the whole held-out split in both runs. ");
            let but = if other.feasibility.holds() { "and" } else { "but" };
            let verdict = format!(" {}, {but} {}", other.scored, other.feasibility.words());
            let missed = (!other.missed.is_empty()).then(|| format!(": {}", other.missed));
            view! {
                <p class="reading">
                    {none} "This run’s best prompt minus the other’s. The other run’s prompt "
                    <A href=other.address attr:class="id">{other.id}</A> {verdict} {missed} "."
                </p>
            }
            .into_any()
        }
    }
}

fn compared(run: Run, other: Run) -> Compared {
    match other.phase.get() {
        Phase::Opening(read, of) => return Compared::Reading(read, of),
        Phase::Unreadable(message) => {
            return Compared::Not(format!("The other run cannot be read: {message}"));
        }
        _ => {}
    }
    if run == other {
        return Compared::Not("A run is not compared with itself.".into());
    }
    run.read(|here| {
        other.read(|there| {
            let (here, there) = (&here.state, &there.state);
            if let Err(why) = comparison::comparable(here, there) {
                return Compared::Not(format!("These runs cannot be compared: {why}."));
            }
            let best = |state: &RunState| state.finished().and_then(|finished| finished.best);
            let (Some(ours), Some(theirs)) = (best(here), best(there)) else {
                return Compared::Not("The other run has no held-out figures: it has not ended.".into());
            };
            let first = PromptOf {
                state: here,
                candidate: ours,
            };
            let second = PromptOf {
                state: there,
                candidate: theirs,
            };
            let differences = comparison::differences(first, second, Split::Evaluate).metrics;
            match describe(here, there, &other.id()) {
                Some(described) => Compared::Differences(differences, described),
                None => Compared::Not("The other run has no held-out figures.".into()),
            }
        })
    })
}

fn describe(here: &RunState, there: &RunState, run: &str) -> Option<Other> {
    let id = there.finished()?.best?;
    let objective = metrics::objective(there)?;
    let score = |state: &RunState| {
        let finished = state.finished()?;
        finished.final_scores.get(&finished.best?).cloned()
    };
    let theirs = score(there)?;
    let against = score(here).map(|ours| theirs.objective.total_cmp(&ours.objective));
    let how = match against {
        Some(std::cmp::Ordering::Greater) => "scored higher",
        Some(std::cmp::Ordering::Less) => "scored lower",
        Some(std::cmp::Ordering::Equal) => "scored the same",
        None => "was measured",
    };
    let outcome = Outcome::new(there)?;
    let missed: Vec<String> = outcome
        .rows
        .iter()
        .filter(|row| row.is_kept() == Some(false))
        .filter_map(|row| {
            let (quantity, threshold) = (row.metric.quantity(), row.threshold?);
            Some(format!(
                "{} {} held out, threshold {}",
                row.metric.phrase(),
                quantity.against(row.best?.mean, threshold),
                quantity.threshold(threshold)
            ))
        })
        .collect();
    Some(Other {
        address: format!("/run/{run}/candidate/{id}"),
        id: format::id(&id),
        scored: format!(
            "{how} on the search examples ({} {})",
            objective.phrase(),
            objective.quantity().value(theirs.objective)
        ),
        feasibility: Feasibility::of(there, there.finished()?),
        missed: listed(&missed),
    })
}
