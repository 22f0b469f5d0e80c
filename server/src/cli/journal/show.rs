//! `capo journal show`.

use std::path::Path;

use capo_core::ids::CandidateId;
use capo_core::journal::{RoundEvent, StudyEvent};
use capo_core::reading::certificates;
use capo_core::reading::examples::Examples;
use capo_core::reading::feasibility::all_sat;
use capo_core::reading::in_force;
use capo_core::reading::measured::{self, estimate};
use capo_core::run_state::RunState;
use capo_core::summary::{Failures, Saved};
use capo_core::workload::Split;
use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::cli::failure::{Ending, Failure, print, print_json};
use crate::cli::layout::{NOTHING, count, counted, fitted, number, prompt, yes_no};
use crate::cli::report;
use crate::recorded::RecordedRun;
use capo_core::table::Table;

pub(super) fn run(path: &Path, json: bool) -> Result<Ending, Failure> {
    let run = RecordedRun::read(path)?;
    if json {
        print_json(&fold(&run))?;
    } else {
        print(&overview(&run))?;
    }
    Ok(Ending::Done)
}

/// The fold over the journal.
fn fold(run: &RecordedRun) -> Value {
    let state = &run.state;
    let candidates: Vec<Value> = state
        .candidates()
        .map(|(id, candidate)| {
            json!({
                "id": id, "round": candidate.round, "origin": candidate.origin, "parents": candidate.parents,
                "characters": candidate.characters, "prompt": &*candidate.prompt,
                "optimize": means(run, id, Split::Optimize), "evaluate": means(run, id, Split::Evaluate),
            })
        })
        .collect();
    let failed_tries: IndexMap<String, u64> = state
        .failures()
        .iter()
        .map(|(kind, count)| (kind.to_string(), *count))
        .collect();
    let ledger = state.ledger();
    json!({
        "journal": run.path.display().to_string(), "lines": run.lines,
        "study": run.study.study, "id": run.study.id, "schema": run.study.schema,
        "started_at": run.study.started_at, "version": run.study.version,
        "thresholds": in_force::thresholds(state, None), "budget": state.budget(),
        "candidates": candidates, "rounds": state.rounds(), "steers": state.steers(),
        "failed_tries": failed_tries, "failures": Failures::of(state),
        "rollouts": { "search": ledger.search_rollouts, "evaluation": ledger.evaluation_rollouts },
        "usage": { "search": ledger.search_usage(), "evaluation": ledger.evaluation_usage() },
        "reused": Saved::of(ledger.reused()),
        "finished": state.finished().map(|finished| &**finished),
    })
}

/// Estimates of the study's metrics on a split, where the prompt was measured on all of it.
fn means(run: &RecordedRun, id: &CandidateId, split: Split) -> Value {
    let measured = |metric: &str| Some((metric.to_owned(), json!(estimate(&run.state, id, metric, split)?)));
    report::metrics(&run.study)
        .filter_map(measured)
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn overview(run: &RecordedRun) -> String {
    let (state, study) = (&run.state, &run.study);
    let evaluated = measured::evaluated(state);
    let tested = certificates::given(state);
    let search = &study.study.study;
    let mut text = format!(
        "{}: {}, seed {}, started {}\n{} in {}, study {}\n",
        search.name,
        search.method,
        search.seed,
        study.started_at,
        counted(run.lines as u64, "line"),
        run.path.display(),
        &study.id[..study.id.len().min(8)],
    );
    text += &format!(
        "{} for the search, {} held out\n",
        counted(Examples::whole(state, Split::Optimize).len() as u64, "example"),
        counted(Examples::whole(state, Split::Evaluate).len() as u64, "example"),
    );
    for steer in state.steers() {
        if let Some(branch) = &steer.branch {
            text += &format!(
                "branched off another run of study {} at round {}\n",
                &branch.from[..branch.from.len().min(8)],
                branch.round
            );
        }
    }
    text += &match state.finished() {
        Some(finished) => match &finished.reason {
            Some(reason) => format!("{}: {reason}\n", report::verdict(state, finished)),
            None => format!("{}\n", report::verdict(state, finished)),
        },
        None if !evaluated.is_empty() => format!(
            "{} measured by `capo evaluate`; nothing was searched\n",
            counted(evaluated.len() as u64, "prompt")
        ),
        None if !tested.is_empty() => format!(
            "{} tested by `capo certify`; nothing was searched\n",
            counted(tested.len() as u64, "prompt")
        ),
        None => "it has not ended: run or resume it with `capo optimize`\n".to_owned(),
    };
    if !state.rounds().is_empty() {
        text += &format!("\n{}", rounds(state, study));
    }
    for certificate in &tested {
        text += &format!("\n{}", report::certificate(certificate));
    }
    for (split, examples) in [
        (Split::Optimize, "examples of the search"),
        (Split::Evaluate, "held-out examples"),
    ] {
        // A search measures its result alone on the held-out ones, and says so at its end.
        if evaluated.is_empty() && split == Split::Optimize {
            text += &format!("\n{}", candidates(run, split));
        } else if evaluated.iter().any(|id| measured::is_measured(state, id, split)) {
            text += &format!("\nOn the {examples}\n{}", candidates(run, split));
        }
    }
    let failures: Vec<String> = state
        .failures()
        .iter()
        .map(|(kind, number)| format!("{kind} {}", count(*number)))
        .collect();
    if !failures.is_empty() {
        text += &format!("\nFailed tries: {}\n", failures.join(", "));
        if let Some(last) = state.last_failure() {
            text += &format!("The last one: {}\n", last.message);
        }
    }
    text += &format!(
        "\n{}{}",
        report::failures(Failures::of(state).as_ref()),
        report::spend(state)
    );
    if let Some(id) = state.finished().and_then(|finished| finished.best)
        && let Some(best) = state.candidate(&id)
    {
        text += &format!(
            "\n{}",
            prompt(&format!("Best prompt {}", id.short()), &best.prompt)
        );
    }
    text
}

/// One line for each round: its best candidate and the multipliers it ranked by.
fn rounds(state: &RunState, study: &StudyEvent) -> String {
    let constraints: Vec<&str> = study
        .study
        .constraints
        .iter()
        .map(|constraint| constraint.metric.as_str())
        .collect();
    let heading = ["Round", "scored", "best", "objective", "J", "feasible on search"].map(str::to_owned);
    let lambdas = constraints.iter().map(|metric| format!("λ {metric}"));
    let mut grid = Table::new(heading.into_iter().chain(lambdas));
    for round in state.rounds() {
        let best = round
            .best
            .first()
            .and_then(|id| Some((id, round.scores.get(id)?)));
        let mut cells = vec![round.round.to_string(), round.scores.len().to_string()];
        match best {
            Some((id, score)) => cells.extend([
                id.short(),
                number(score.objective),
                number(score.lagrangian),
                yes_no(score.feasible),
            ]),
            None => cells.extend([NOTHING; 4].map(str::to_owned)),
        }
        cells.extend(constraints.iter().map(|metric| lambda(round, metric)));
        grid.row(cells);
    }
    fitted(&grid, 0)
}

fn lambda(round: &RoundEvent, metric: &str) -> String {
    round
        .multipliers
        .get(metric)
        .map_or_else(|| NOTHING.to_owned(), |value| format!("{value:.2}"))
}

/// One line for each candidate with its means on a split.
fn candidates(run: &RecordedRun, split: Split) -> String {
    let heading = ["Candidate", "round", "origin", "parent", "characters"].map(str::to_owned);
    let metrics: Vec<&str> = report::metrics(&run.study).collect();
    let last = match split {
        Split::Optimize => "feasible on search",
        Split::Evaluate => "holds held out",
    };
    let last = [last.to_owned()];
    let names = metrics.iter().map(|metric| (*metric).to_owned());
    let mut grid = Table::new(heading.into_iter().chain(names).chain(last));
    let limits = in_force::thresholds(&run.state, None);
    for (id, candidate) in run.state.candidates() {
        let mut cells = vec![
            id.short(),
            candidate.round.to_string(),
            format!("{:?}", candidate.origin).to_lowercase(),
            candidate
                .parents
                .first()
                .map_or_else(|| NOTHING.to_owned(), CandidateId::short),
            count(candidate.characters as u64),
        ];
        let mean = |metric: &str| Some(estimate(&run.state, id, metric, split)?.mean);
        cells.extend(
            metrics
                .iter()
                .map(|metric| mean(metric).map_or_else(|| NOTHING.to_owned(), number)),
        );
        let measured = mean(metrics[0]).and_then(|_| all_sat(&limits, mean));
        cells.push(measured.map_or_else(|| NOTHING.to_owned(), yes_no));
        grid.row(cells);
    }
    fitted(&grid, 0)
}
