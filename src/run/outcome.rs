//! The result of a run: the verdict, the held-out table, what it cost.

use capo_core::certificate::Certificate;
use capo_core::estimate::Estimate;
use capo_core::ids::CandidateId;
use capo_core::journal::{FinishedEvent, Status};
use capo_core::llm::Role;
use capo_core::reading::examples::Examples;
use capo_core::reading::feasibility::{self, Feasibility, all_sat};
use capo_core::reading::in_force;
use capo_core::reading::metrics::{self, StudiedMetric};
use capo_core::run_state::RunState;
use capo_core::summary::Failures;
use capo_core::usage::RoleUsage;
use capo_core::workload::Split;
use indexmap::IndexMap;

use super::map::Map;
use super::readings;
use super::sentence::Sentence;
use crate::format::{self, counted, listed, number_word};
use crate::run::studied::Shown as _;

/// A metric of the best prompt and of the seed.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricRow {
    /// The metric, with its unit and direction.
    pub metric: StudiedMetric,
    /// The best prompt's mean; `None` when it was not measured.
    pub best: Option<Estimate>,
    /// The seed prompt's mean.
    pub seed: Option<Estimate>,
    /// τ of a constraint.
    pub threshold: Option<f64>,
}

impl MetricRow {
    /// Threshold minus the best prompt's mean; negative when it is over.
    pub fn slack(&self) -> Option<f64> {
        Some(self.threshold? - self.best?.mean)
    }

    /// Whether the best prompt keeps the threshold, on the exact mean.
    pub fn is_kept(&self) -> Option<bool> {
        Some(self.best?.mean <= self.threshold?)
    }

    /// Whether the mean lies within one standard error of the threshold: a larger sample could
    /// decide otherwise.
    pub fn is_close(&self) -> bool {
        let error = self.best.map_or(0.0, |best| best.standard_error);
        self.slack().is_some_and(|slack| slack.abs() < error)
    }
}

/// The result of a run that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// What stopped it, in words, unless it went its whole way.
    pub reason: Option<String>,
    /// The returned prompt; `None` when not even the seed was measured.
    pub best: Option<CandidateId>,
    /// Objective and constraints on the held-out examples, the objective first.
    pub rows: Vec<MetricRow>,
    /// Whether the best prompt keeps every threshold held out; `None` when that was not measured.
    pub all_sat: Option<bool>,
    /// On what it is feasible.
    pub feasibility: Feasibility,
    /// The prompts that were tested on the examples kept for it, in order.
    pub certificates: Vec<Certificate>,
    /// Number of held-out examples.
    pub examples: usize,
    /// The verdict in a sentence or two.
    pub verdict: Sentence,
    /// What qualifies it: thresholds kept or missed by less than one standard error.
    pub caution: Sentence,
    /// What could not be measured and what became of it, a sentence for each kind.
    pub failures: Vec<String>,
}

impl Outcome {
    /// The result of a run; `None` while it goes on.
    pub fn new(state: &RunState) -> Option<Self> {
        let finished = state.finished()?;
        let thresholds = in_force::thresholds(state, None);
        let rows: Vec<MetricRow> = metrics::of_study(state)
            .into_iter()
            .map(|metric| MetricRow {
                best: finished.evaluation.get(metric.name()).copied(),
                seed: finished.seed_evaluation.get(metric.name()).copied(),
                threshold: thresholds.get(metric.name()).copied(),
                metric,
            })
            .collect();
        let measured = !finished.evaluation.is_empty();
        Some(Self {
            status: finished.status,
            reason: finished.reason.clone(),
            best: finished.best,
            all_sat: all_sat(&thresholds, |metric| Some(finished.evaluation.get(metric)?.mean))
                .filter(|_| measured),
            feasibility: Feasibility::of(state, finished),
            certificates: finished.certificates.clone(),
            examples: Examples::whole(state, Split::Evaluate).len(),
            verdict: verdict(state, &rows, &thresholds),
            caution: caution(&rows),
            failures: Failures::of(state).map_or_else(Vec::new, |failures| failures.sentences()),
            rows,
        })
    }
}

fn verdict(state: &RunState, rows: &[MetricRow], thresholds: &IndexMap<String, f64>) -> Sentence {
    let Some(finished) = state.finished() else {
        return Sentence::default();
    };
    let Some(best) = finished.best else {
        return Sentence::new("Nothing was measured, so there is no prompt to return.");
    };
    let found = match finished.final_scores.get(&best) {
        _ if !finished.certificates.is_empty() => tested(finished),
        Some(score) if score.feasible => Sentence::default(),
        _ => {
            let map = Map::new(state);
            readings::closest(state, &map)
        }
    };
    if finished.evaluation.is_empty() {
        let none = Examples::whole(state, Split::Evaluate).is_empty();
        let why = if none {
            "There are no held-out examples."
        } else {
            "The best prompt was not measured on held-out examples."
        };
        return found.then(Sentence::new(why));
    }
    let seed_is_best = capo_core::reading::lineage::seed(state) == Some(best);
    let subject = if seed_is_best {
        "the seed prompt, which is the best,"
    } else {
        "the best prompt"
    };
    let objective = rows.first();
    let reached = |estimate: Option<&Estimate>, solve: &str| {
        let (row, estimate) = objective.zip(estimate)?;
        let value = row.metric.quantity().value(estimate.mean);
        Some(if row.metric.spec.binary {
            format!("{solve} {value}")
        } else {
            let reach = if solve == "solves" { "reaches" } else { "reached" };
            format!("{reach} {value} by “{}”", row.metric.phrase())
        })
    };
    let mut parts = Vec::new();
    parts.extend(kept(thresholds, &finished.evaluation, "keeps"));
    let solves = reached(objective.and_then(|row| row.best.as_ref()), "solves");
    let of_them = objective.is_some_and(|row| row.metric.spec.binary);
    parts.extend(solves.map(|solves| {
        if of_them {
            format!("{solves} of them")
        } else {
            solves
        }
    }));
    let mut text = format!("On examples it never saw, {subject} {}", listed(&parts));
    if !seed_is_best && !finished.seed_evaluation.is_empty() {
        let mut seed = Vec::new();
        seed.extend(reached(objective.and_then(|row| row.seed.as_ref()), "solved"));
        seed.extend(kept_short(thresholds, &finished.seed_evaluation));
        let seed = listed(&seed);
        text = format!("{text}; the seed prompt {seed}");
    }
    found.then(Sentence::new(text + "."))
}

/// What the tests on examples kept for them came to.
fn tested(finished: &FinishedEvent) -> Sentence {
    let told = feasibility::certificate(finished).or(finished.certificates.last());
    Sentence::new(told.map_or_else(String::new, |certificate| {
        let whose = match (Some(certificate.candidate) == finished.best, certificate.untested) {
            (true, false) => "Test of the best prompt",
            (true, true) => "Best prompt",
            (false, false) => "No prompt was certified; test of the safest",
            (false, true) => "No prompt was certified; the safest",
        };
        format!("{whose}: {}.", certificate.sentence())
    }))
}

fn keeps(thresholds: &IndexMap<String, f64>, estimates: &IndexMap<String, Estimate>) -> usize {
    let kept = |(metric, threshold): &(&String, &f64)| {
        estimates
            .get(*metric)
            .is_some_and(|estimate| estimate.mean <= **threshold)
    };
    thresholds.iter().filter(kept).count()
}

fn kept(
    thresholds: &IndexMap<String, f64>,
    estimates: &IndexMap<String, Estimate>,
    verb: &str,
) -> Option<String> {
    let (kept, all) = (keeps(thresholds, estimates), thresholds.len());
    match (kept, all) {
        (_, 0) => None,
        (1, 1) => Some(format!("{verb} its threshold")),
        (0, 1) => Some("misses its threshold".to_owned()),
        (2, 2) => Some(format!("{verb} both thresholds")),
        (kept, all) if kept == all => Some(format!("{verb} all {} thresholds", number_word(all))),
        (0, all) => Some(format!("{verb} none of {} thresholds", number_word(all))),
        (kept, all) => Some(format!(
            "{verb} {} of {} thresholds",
            number_word(kept),
            number_word(all)
        )),
    }
}

fn kept_short(thresholds: &IndexMap<String, f64>, estimates: &IndexMap<String, Estimate>) -> Option<String> {
    let kept = keeps(thresholds, estimates);
    match (kept, thresholds.len()) {
        (_, 0) => None,
        (1, 1) => Some("kept it".to_owned()),
        (0, 1) => Some("missed it".to_owned()),
        (kept, all) if kept == all => Some("kept all of them".to_owned()),
        (0, _) => Some("kept none".to_owned()),
        (kept, _) => Some(format!("kept {}", number_word(kept))),
    }
}

fn caution(rows: &[MetricRow]) -> Sentence {
    let close: Vec<&MetricRow> = rows.iter().filter(|row| row.is_close()).collect();
    let Some(first) = close.first() else {
        return Sentence::default();
    };
    let others: Vec<String> = close[1..].iter().map(|row| row.metric.phrase()).collect();
    let names = listed(&[vec![first.metric.label()], others].concat());
    let verb = if close.len() == 1 { "is" } else { "are" };
    let side = match (close.iter().all(|row| row.is_kept() == Some(true)), close.len()) {
        (true, _) => "inside",
        (false, 1) => "over",
        (false, _) => "inside or over",
    };
    Sentence::new(format!(
        "{names} {verb} {side} by less than one standard error: a larger sample could decide otherwise."
    ))
}

/// A row of the table of costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Who was asked, and for what: "Task agent, search".
    pub name: String,
    /// What it consumed.
    pub usage: RoleUsage,
}

/// What the run consumed by role, search and held-out evaluation apart where a role took part in
/// both, everything last.
pub fn costs(state: &RunState) -> Vec<Cost> {
    let ledger = state.ledger();
    let (search, held_out) = (ledger.search_usage(), ledger.evaluation_usage());
    let takes_part = |role: Role| held_out.iter().any(|(other, _)| other == role);
    let of_search = search.iter().map(|(role, usage)| Cost {
        name: if takes_part(role) {
            format!("{}, search", who(role))
        } else {
            who(role).to_owned()
        },
        usage,
    });
    let of_evaluation = held_out.iter().map(|(role, usage)| Cost {
        name: format!("{}, held out", who(role)),
        usage,
    });
    let total = Cost {
        name: "All".to_owned(),
        usage: ledger.usage().total(),
    };
    of_search.chain(of_evaluation).chain([total]).collect()
}

/// A role in words.
pub fn who(role: Role) -> &'static str {
    match role {
        Role::Agent => "Task agent",
        Role::User => "User simulator",
        Role::Judge => "Judge",
        Role::Critic => "Critic",
        Role::Rewriter => "Rewriter",
        Role::Embeddings => "Embeddings",
    }
}

/// How a run ended, in words: "finished", "budget reached".
pub fn ended(status: Status) -> &'static str {
    match status {
        Status::Feasible | Status::Infeasible => "finished",
        Status::Budget => "budget reached",
        Status::Stopped => "stopped",
        Status::Failed => "failed",
    }
}

/// What stands beside the verdict: the gate, what qualifies it, and what ended the run early.
pub fn notes(outcome: &Outcome) -> Vec<String> {
    let caution = Some(outcome.caution.to_string()).filter(|caution| !caution.is_empty());
    let early = outcome
        .reason
        .as_ref()
        .map(|reason| reason.trim_end_matches('.'))
        .map(|reason| match outcome.status {
            Status::Feasible | Status::Infeasible => format!("{}.", format::label(reason)),
            Status::Budget | Status::Stopped | Status::Failed => format!("It ended early: {reason}."),
        });
    let failures = outcome.failures.iter().map(|sentence| format!("{sentence}."));
    [gate(outcome), caution, early]
        .into_iter()
        .flatten()
        .chain(failures)
        .collect()
}

/// Thresholds kept on held-out examples, in words: "Every threshold is kept on forty held-out examples."
fn gate(outcome: &Outcome) -> Option<String> {
    let missed: Vec<String> = outcome
        .rows
        .iter()
        .filter(|row| row.is_kept() == Some(false))
        .map(|row| row.metric.phrase())
        .collect();
    Some(if outcome.all_sat? {
        format!(
            "Every threshold is kept on {}.",
            counted(outcome.examples, "held-out example")
        )
    } else {
        format!(
            "Over its threshold on {}: {}.",
            counted(outcome.examples, "held-out example"),
            listed(&missed)
        )
    })
}
