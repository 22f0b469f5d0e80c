//! The result of a run, for people.

use std::fmt::Display;

use capo_core::certificate::{Certificate, Test, Verdict};
use capo_core::estimate::Estimate;
use capo_core::ids::CandidateId;
use capo_core::journal::{FinishedEvent, Origin, Status, StudyEvent};
use capo_core::reading::examples::Examples;
use capo_core::reading::feasibility::{Feasibility, all_sat};
use capo_core::reading::{in_force, lineage, measured};
use capo_core::run_state::{Reused, RunState};
use capo_core::statistics::{Interval, fewest_examples};
use capo_core::summary::Failures;
use capo_core::usage::{RoleUsage, Usage};
use capo_core::workload::Split;
use indexmap::IndexMap;

use super::layout::{NOTHING, count, counted, dollars, estimate, fitted, number, prompt, signed, yes_no};
use capo_core::table::Table;

/// Seed against best on both splits, the prompt, the spend, and where the journal is.
pub(crate) fn result(state: &RunState, finished: &FinishedEvent, journal: &dyn Display) -> String {
    let Some(study) = state.study() else {
        return String::new();
    };
    let mut text = format!("{}\n\n", headline(state, study, finished));
    text += &tables(state, finished, study);
    if let Some(probability) = finished.probability {
        text += &likelihood(probability, study.study.study.choice_probability);
    }
    for certificate in &finished.certificates {
        text += &self::certificate(certificate);
    }
    text += &failures(Failures::of(state).as_ref());
    if !finished.multipliers.is_empty() {
        let each = finished
            .multipliers
            .iter()
            .map(|(metric, value)| format!("{metric} {value:.2}"));
        text += &format!(
            "Multipliers at the end: {}\n\n",
            each.collect::<Vec<_>>().join(", ")
        );
    }
    if let Some((id, best)) = finished.best.and_then(|id| Some((id, state.candidate(&id)?))) {
        let origin = match best.origin {
            Origin::Seed => "the seed prompt itself".to_owned(),
            Origin::From => "of an earlier run".to_owned(),
            _ => format!("from round {}", best.round),
        };
        text += &prompt(&format!("Best prompt {}, {origin}", id.short()), &best.prompt);
        text.push('\n');
    }
    text += &spend(state);
    text += &format!("\nJournal: {journal}\n");
    text
}

/// How probably the best prompt keeps its thresholds, and whether that is as probably as was asked for.
fn likelihood(probability: f64, demanded: f64) -> String {
    let asked = if probability < demanded {
        format!("; no prompt reaches the {demanded} that were asked for")
    } else {
        String::new()
    };
    format!(
        "On further examples the best prompt keeps each threshold with a predictive probability of at least \
         {probability:.3}{asked}.\n\n"
    )
}

/// A certificate: its verdict, and each constraint with its bounds.
pub(crate) fn certificate(certificate: &Certificate) -> String {
    let (one, all) = (100.0 * certificate.confidence, certificate.constraints.len());
    let mut grid = Table::new([
        "",
        "at most",
        "measured",
        "below, this one",
        "below, all at once",
        "verdict",
        "test",
    ]);
    let bound = |bound: Option<f64>| bound.map_or_else(|| NOTHING.to_owned(), number);
    for (metric, finding) in &certificate.constraints {
        grid.row([
            metric.clone(),
            number(finding.threshold),
            bound(finding.mean),
            bound(finding.upper),
            bound(finding.simultaneous),
            word(finding.verdict).to_owned(),
            match finding.test {
                Test::Known => "known of the prompt".to_owned(),
                Test::Binomial => format!("exact binomial, p = {:.4}", finding.p),
                Test::Betting => format!("betting, p = {:.4}", finding.p),
                Test::None => finding.reason.clone().unwrap_or_default(),
            },
        ]);
    }
    format!(
        "Prompt {}: {}\n{}Bounds hold at {one} %, each by itself, or all {all} at once. The verdict needs no correction: a \
         prompt is certified where each constraint is.\n\n",
        certificate.candidate.short(),
        certificate.sentence(),
        fitted(&grid, 2),
    )
}

/// The ends of an interval, each as `shown` has it.
pub(crate) fn interval(interval: Option<Interval>, shown: fn(f64) -> String) -> String {
    interval.map_or_else(
        || NOTHING.to_owned(),
        |interval| format!("[{}, {}]", shown(interval.low), shown(interval.high)),
    )
}

/// What a star beside a difference means.
pub(crate) fn star(confidence: f64) -> String {
    format!(
        "(* where the interval leaves zero out and a permutation test agrees, {} examples at least)\n",
        fewest_examples(confidence),
    )
}

/// A verdict in words.
pub(crate) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Certified => "certified",
        Verdict::Refuted => "refuted",
        Verdict::Undecided => "not decided",
    }
}

fn headline(state: &RunState, study: &StudyEvent, finished: &FinishedEvent) -> String {
    let search = &study.study.study;
    let verdict = verdict(state, finished);
    let rounds = counted(state.rounds().len() as u64, "round");
    format!(
        "{}: {verdict} after {rounds} of {}, seed {}",
        search.name, search.method, search.seed
    )
}

/// How a run ended, in words; of a search that found something, on what it is feasible.
pub(crate) fn verdict(state: &RunState, finished: &FinishedEvent) -> String {
    match finished.status {
        Status::Feasible | Status::Infeasible => {
            let feasibility = Feasibility::of(state, finished);
            if feasibility.search || feasibility.holds() {
                return format!("the best prompt {}", feasibility.words());
            }
            "no prompt is feasible on the search examples"
        }
        Status::Budget => "the budget is spent",
        Status::Stopped => "stopped",
        Status::Failed => "failed",
    }
    .into()
}

fn tables(state: &RunState, finished: &FinishedEvent, study: &StudyEvent) -> String {
    let seed = lineage::seed(state);
    let on = |candidate: Option<CandidateId>| -> IndexMap<String, Estimate> {
        let estimate = |metric: &str| {
            Some((
                metric.to_owned(),
                measured::estimate(state, &candidate?, metric, Split::Optimize)?,
            ))
        };
        metrics(study).filter_map(estimate).collect()
    };
    let mut text = format!(
        "On the {} the search used\n",
        counted(Examples::whole(state, Split::Optimize).len() as u64, "example")
    );
    text += &table(state, study, &on(seed), &on(finished.best));
    let held_out = counted(
        Examples::whole(state, Split::Evaluate).len() as u64,
        "held-out example",
    );
    if finished.evaluation.is_empty() {
        text += &format!("\nNot measured on the {held_out}.\n\n");
    } else {
        text += &format!("\nOn the {held_out}, which the search never saw\n");
        text += &table(state, study, &finished.seed_evaluation, &finished.evaluation);
        text.push('\n');
    }
    text
}

/// What could not be measured, a line for each kind; nothing where all was.
pub(crate) fn failures(failures: Option<&Failures>) -> String {
    let sentences = failures.map_or_else(Vec::new, Failures::sentences);
    if sentences.is_empty() {
        return String::new();
    }
    sentences.join("\n") + "\n\n"
}

/// The metrics of a study, its objective first.
pub(crate) fn metrics(study: &StudyEvent) -> impl Iterator<Item = &str> {
    let constraints = study
        .study
        .constraints
        .iter()
        .map(|constraint| constraint.metric.as_str());
    std::iter::once(study.study.objective.metric.as_str()).chain(constraints)
}

/// Seed and best side by side, with thresholds and slack.
fn table(
    state: &RunState,
    study: &StudyEvent,
    seed: &IndexMap<String, Estimate>,
    best: &IndexMap<String, Estimate>,
) -> String {
    let thresholds = in_force::thresholds(state, None);
    let mut grid = Table::new(["", "at most", "seed prompt", "best prompt", "slack", "satisfied"]);
    let shown = |values: &IndexMap<String, Estimate>, metric: &str| {
        values.get(metric).map_or_else(|| NOTHING.to_owned(), estimate)
    };
    for metric in metrics(study) {
        let threshold = thresholds.get(metric);
        let slack = threshold
            .zip(best.get(metric))
            .map(|(threshold, best)| threshold - best.mean);
        grid.row([
            metric.to_owned(),
            threshold.map_or_else(String::new, |threshold| number(*threshold)),
            shown(seed, metric),
            shown(best, metric),
            slack.map_or_else(String::new, signed),
            slack.map_or_else(String::new, |slack| yes_no(slack >= 0.0)),
        ]);
    }
    let all = |values: &IndexMap<String, Estimate>| {
        let all = all_sat(&thresholds, |metric| Some(values.get(metric)?.mean));
        all.map_or_else(|| NOTHING.to_owned(), yes_no)
    };
    if !study.study.constraints.is_empty() {
        grid.row(["all satisfied".to_owned(), String::new(), all(seed), all(best)]);
    }
    fitted(&grid, 2)
}

/// What search and held-out evaluation consumed, apart, by role.
pub(crate) fn spend(state: &RunState) -> String {
    let ledger = state.ledger();
    let mut grid = Table::new(["Spent", "rollouts", "calls", "tokens in", "tokens out", "dollars"]);
    let mut part = |name: &str, rollouts: u64, usage: &Usage| {
        grid.row(line(name.to_owned(), Some(rollouts), usage.total()));
        for (role, share) in usage.iter() {
            grid.row(line(format!("  {role}"), None, share));
        }
    };
    part("search", ledger.search_rollouts, ledger.search_usage());
    part(
        "held-out evaluation",
        ledger.evaluation_rollouts,
        ledger.evaluation_usage(),
    );
    grid.row(line(
        "total".to_owned(),
        Some(ledger.rollouts()),
        ledger.usage().total(),
    ));
    fitted(&grid, 0) + &reused(ledger.reused())
}

/// What was taken over from earlier runs, in a line; nothing where nothing was.
pub(crate) fn reused(reused: &Reused) -> String {
    if reused.effects() == 0 {
        return String::new();
    }
    let cost = reused.usage.total();
    format!(
        "Reused from earlier runs, which had paid {} for {}: {}, {}, {}\n",
        match cost.usd {
            Some(_) => dollars(cost.usd),
            None => "an unknown price".into(),
        },
        counted(cost.calls, "call"),
        counted(reused.rollouts, "rollout"),
        counted(reused.critiques, "critique"),
        counted(reused.rewrites, "rewrite"),
    )
}

fn line(name: String, rollouts: Option<u64>, usage: RoleUsage) -> [String; 6] {
    [
        name,
        rollouts.map(count).unwrap_or_default(),
        count(usage.calls),
        count(usage.input_tokens),
        count(usage.output_tokens),
        dollars(usage.usd),
    ]
}
