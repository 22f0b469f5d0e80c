//! The sentences of the log.

use std::collections::HashSet;

use capo_core::ids::{CandidateId, Round};
use capo_core::journal::{EffectName, FailureEvent, FinishedEvent, RoundEvent, Status, SteerEvent};
use capo_core::llm::{FailureKind, Role};
use capo_core::methods;
use capo_core::reading::metrics::{self, StudiedMetric};
use capo_core::reading::{in_force, standing};
use capo_core::run_state::{Candidate, RunState};
use capo_models::ProviderName;

use super::{Failure, Stand};
use crate::format::{self, count, counted, number_word};
use crate::run::map::Map;
use crate::run::readings;
use crate::run::rounds::{on_screen, written_in};
use crate::run::sentence::Sentence;
use crate::run::studied::Shown as _;
use crate::run::word::Word;

/// "Round 5: four parents drawn, eight children written."
pub(super) fn opened(round: Round, state: &RunState, failures: &[Failure]) -> (Sentence, Sentence) {
    let children: Vec<&Candidate> = children(round, state).map(|(_, candidate)| candidate).collect();
    let parents: HashSet<&CandidateId> = children.iter().flat_map(|child| &child.parents).collect();
    let plural = if children.len() == 1 { "child" } else { "children" };
    let headline = format!(
        "Round {}: {} drawn, {} {plural} written.",
        on_screen(round),
        counted(parents.len(), "parent"),
        number_word(children.len())
    );
    let of_round =
        |failure: &&Failure| matches!(failure.of, EffectName::Rewrite { round: of, .. } if of == round);
    let unusable = failures
        .iter()
        .filter(of_round)
        .filter(|failure| failure.kind == FailureKind::Malformed);
    let detail = match unusable.count() {
        0 => Sentence::default(),
        1 => Sentence::new("One answer of the rewriter could not be used and was asked for again."),
        more => Sentence::new(format!(
            "{} answers of the rewriter could not be used and were asked for again.",
            format::label(&number_word(more))
        )),
    };
    (Sentence::new(headline), detail)
}

fn children(round: Round, state: &RunState) -> impl Iterator<Item = (&CandidateId, &Candidate)> {
    let candidates = state.candidates();
    candidates.filter(move |(_, candidate)| written_in(candidate) == on_screen(round))
}

/// "Child 4 of 8 evaluated: 332034, success 56.8%, human requests 36.5% over 35%."
pub(super) fn evaluated(
    candidate: CandidateId,
    round: Round,
    evaluated: &HashSet<CandidateId>,
    state: &RunState,
) -> Option<Sentence> {
    let scored = standing::standing(state, candidate, &methods::multipliers_now(state))?;
    let objective = metrics::objective(state)?;
    let of = children(round, state).count();
    let done = children(round, state)
        .filter(|(id, _)| evaluated.contains(*id))
        .count();
    let limits = in_force::limits(state, Some(round));
    let missed: Vec<String> = scored
        .missed(&limits)
        .filter_map(|name| {
            let (metric, cost) = (metrics::named(state, name)?, scored.costs.get(name)?);
            Some(over(&metric, cost.mean, limits.get(name)?.threshold))
        })
        .collect();
    let verdict = if missed.is_empty() {
        "feasible on the search examples".to_owned()
    } else {
        missed.join(", ")
    };
    let sentence = Sentence::new(format!("Child {done} of {of} evaluated: ")).prompt(candidate);
    Some(sentence.text(format!(
        ", {}, {verdict}.",
        value(&objective, scored.objective.mean)
    )))
}

fn over(metric: &StudiedMetric, cost: f64, threshold: f64) -> String {
    let quantity = metric.quantity();
    format!(
        "{} {} over {}",
        metric.phrase(),
        quantity.against(cost, threshold),
        quantity.threshold(threshold)
    )
}

/// "success 73.0%"
fn value(metric: &StudiedMetric, mean: f64) -> String {
    format!("{} {}", metric.phrase(), metric.quantity().value(mean))
}

/// "Round 4 closed. First prompt feasible on the search examples: c95e03, success 73.0%." and how the multipliers moved.
pub(super) fn closed(round: &RoundEvent, first_feasible: bool, state: &RunState) -> (Sentence, Sentence) {
    let mut headline = Sentence::new(format!("Round {} closed.", on_screen(round.round)));
    let feasible = round.scores.iter().filter(|(_, score)| score.feasible);
    let best_feasible = feasible.max_by(|(_, a), (_, b)| a.objective.total_cmp(&b.objective));
    let objective = metrics::objective(state);
    if let (true, Some((id, score)), Some(objective)) = (first_feasible, best_feasible, &objective) {
        let first = Sentence::new("First prompt feasible on the search examples: ").prompt(*id);
        headline = headline.then(first.text(format!(", {}.", value(objective, score.objective))));
    } else if let Some((best, score)) = round
        .best
        .first()
        .and_then(|id| Some((*id, round.scores.get(id)?)))
    {
        let best = Sentence::new("Best by ").symbol(Word::J).text(" ").prompt(best);
        let reached = objective.map_or_else(String::new, |objective| {
            format!(", {}", value(&objective, score.objective))
        });
        let gate = if score.feasible {
            "feasible on the search examples"
        } else {
            "not feasible on the search examples"
        };
        headline = headline.then(best.text(format!("{reached}, {gate}.")));
    }
    (headline, multipliers(round, state))
}

fn multipliers(round: &RoundEvent, state: &RunState) -> Sentence {
    let cap = in_force::cap(state);
    let moved: Vec<String> = round
        .next_multipliers
        .iter()
        .map(|(metric, next)| {
            let before = round.multipliers.get(metric).copied();
            let (from, to) = (before.map(format::multiplier), format::multiplier(*next));
            let at_cap = if cap.is_some_and(|cap| *next >= cap) {
                ", at cap"
            } else {
                ""
            };
            match from.filter(|from| *from != to) {
                Some(from) => format!("{} {from} → {to}{at_cap}", format::phrase(metric)),
                None => format!("{} {to}{at_cap}", format::phrase(metric)),
            }
        })
        .collect();
    if moved.is_empty() {
        Sentence::default()
    } else {
        Sentence::new(format!("Multipliers: {}.", moved.join(", ")))
    }
}

/// What a person changed, a sentence each.
pub(super) fn steer(event: &SteerEvent, state: &RunState) -> Vec<Sentence> {
    let round = on_screen(event.round);
    let mut said = Vec::new();
    for (metric, threshold) in event.thresholds.iter().flatten() {
        let Some(metric) = metrics::named(state, metric) else {
            continue;
        };
        said.push(Sentence::new(format!(
            "You set the threshold of {} to {}, from round {round}.",
            metric.phrase(),
            metric.quantity().threshold(*threshold)
        )));
    }
    for (metric, multiplier) in event.multipliers.iter().flatten() {
        let (metric, multiplier) = (format::phrase(metric), format::multiplier(*multiplier));
        let sentence = Sentence::new("You set ").symbol(Word::LAMBDA);
        said.push(sentence.text(format!(" {metric} to {multiplier}, from round {round}.")));
    }
    if let Some(budget) = &event.budget {
        let bounds = [
            budget.rollouts.map(|bound| format!("{} rollouts", count(bound))),
            budget.calls.map(|bound| format!("{} calls", count(bound))),
            budget
                .tokens
                .map(|bound| format!("{} tokens", format::tokens(bound))),
            budget.usd.map(|bound| format::dollars(Some(bound))),
            budget.seconds.map(format::span),
        ];
        let bounds: Vec<String> = bounds.into_iter().flatten().collect();
        said.push(Sentence::new(if bounds.is_empty() {
            "You lifted the budget.".to_owned()
        } else {
            format!("You set the budget to {}.", format::listed(&bounds))
        }));
    }
    if event.pause {
        said.push(Sentence::new(format!("Paused before round {round}.")));
    }
    if event.stop {
        said.push(Sentence::new(format!(
            "You ended the search before round {round}."
        )));
    }
    if let Some(branch) = &event.branch {
        let from: String = branch.from.chars().take(6).collect();
        said.push(Sentence::new(format!(
            "Branched from study {from}: everything before round {} comes from there and was paid there.",
            on_screen(branch.round)
        )));
    }
    said
}

/// What people changed while a run went on, in a sentence each; pauses and the place it branched at change nothing.
pub fn changed_by_hand(state: &RunState) -> String {
    let changes = state.steers().iter().map(|event| SteerEvent {
        pause: false,
        branch: None,
        ..event.clone()
    });
    let said: Vec<String> = changes
        .flat_map(|event| steer(&event, state))
        .map(|sentence| sentence.to_string())
        .collect();
    said.join(" ")
}

/// "Went on from round 4; 2,146 rollouts taken from the journal, none repeated."
pub(super) fn resumed(stand: Stand) -> Sentence {
    let place = if stand.goes_on {
        format!("from round {}", on_screen(stand.closed))
    } else {
        format!("after round {}", stand.closed)
    };
    let rollouts = match stand.rollouts {
        1 => "1 rollout".to_owned(),
        many => format!("{} rollouts", count(many)),
    };
    Sentence::new(format!(
        "Went on {place}; {rollouts} taken from the journal, none repeated."
    ))
}

/// The held-out evaluation begins.
pub(super) fn evaluating(examples: usize) -> Sentence {
    let examples = counted(examples, "held-out example");
    Sentence::new(format!(
        "The search is over. Measuring the best prompt on {examples}."
    ))
}

pub(super) fn testing(examples: usize) -> Sentence {
    let examples = counted(examples, "example");
    Sentence::new(format!(
        "The search is over. Testing the safest prompts on {examples} kept for it."
    ))
}

/// How the run ended, and what was kept.
pub(super) fn finished(event: &FinishedEvent, state: &RunState) -> (Sentence, Sentence) {
    let reason = event.reason.as_deref().unwrap_or_default();
    let detail = if reason.is_empty() {
        Sentence::default()
    } else {
        Sentence::new(format!("{}.", format::capitalized(reason.trim_end_matches('.'))))
    };
    match event.status {
        Status::Feasible => (Sentence::new("Finished.").then(best(event, state)), detail),
        Status::Infeasible => {
            let closest = readings::closest(state, &Map::new(state));
            (Sentence::new("Finished.").then(closest), detail)
        }
        Status::Budget => {
            let usd = state.budget().usd.filter(|_| reason.contains('$'));
            let usd = usd.map(|usd| format::dollars(Some(usd)));
            let (why, to_do) = match usd {
                // Nothing says what a call costs: not a dollar of it may have been spent.
                Some(usd) if reason.contains("cannot be kept") => (
                    format!("The budget of {usd} cannot be kept."),
                    "Go on without one of dollars.",
                ),
                Some(usd) => (format!("The budget of {usd} is spent."), "Raise it to go on."),
                None => ("The budget is spent.".to_owned(), "Raise it to go on."),
            };
            let kept = format!("{why} Best so far is kept. {to_do}");
            (Sentence::new(kept), detail)
        }
        Status::Stopped => (
            Sentence::new("Stopped. What was answered is counted and kept."),
            Sentence::default(),
        ),
        Status::Failed => (
            Sentence::new(
                "Ended by a failure. Resume to try again: nothing is asked anew that stands in the journal.",
            ),
            detail,
        ),
    }
}

fn best(event: &FinishedEvent, state: &RunState) -> Sentence {
    let found = event.best.and_then(|best| {
        let score = event.final_scores.get(&best)?;
        let objective = metrics::objective(state)?;
        let sentence = Sentence::new("Best prompt, feasible on the search examples: ").prompt(best);
        Some(sentence.text(format!(", {}.", value(&objective, score.objective))))
    });
    found.unwrap_or_default()
}

/// A failure of an effect, told once however often it came in a row.
pub(super) fn failure(event: &FailureEvent, times: usize, state: &RunState) -> Sentence {
    let role = match event.of {
        EffectName::Rollout { .. } => Role::Agent,
        EffectName::Critique { .. } => Role::Critic,
        EffectName::Rewrite { .. } => Role::Rewriter,
    };
    let who = provider(role, state);
    let what = match event.kind {
        FailureKind::RateLimit => format!("{who} asked to wait"),
        FailureKind::Timeout => format!("{who} gave no answer in time"),
        FailureKind::Provider => format!("{who} failed or refused"),
        FailureKind::Unreachable => format!("{who} could not be reached"),
        FailureKind::Authentication => format!("{who} refused the key"),
        FailureKind::ContextLength => "A request did not fit the model’s context".to_owned(),
        FailureKind::Malformed => match role {
            Role::Rewriter => "An answer of the rewriter could not be used".to_owned(),
            Role::Critic => "An answer of the critic could not be used".to_owned(),
            _ => "An answer could not be used".to_owned(),
        },
        FailureKind::Tool => "A tool of the workload failed".to_owned(),
        FailureKind::Stopped => "The run ended in the middle of a call".to_owned(),
    };
    let times = match times {
        1 => String::new(),
        2 => ", twice".to_owned(),
        more => format!(", {} times", number_word(more)),
    };
    Sentence::new(format!("{what}{times}."))
}

/// Who serves a role, as people know them.
fn provider(role: Role, state: &RunState) -> String {
    let models = state.study().map(|event| &event.study.models);
    let mut asked = Some(role);
    while let Some(role) = asked {
        if let Some(table) = models.and_then(|models| models.get(&role)) {
            let name = table.get("provider").and_then(serde_json::Value::as_str);
            let known = name.and_then(ProviderName::find);
            return match known.map(ProviderName::get) {
                Some(here) if here.in_process => format!("The {} model", here.name),
                Some(provider) if provider.base_url.is_some() => provider.title.to_owned(),
                // Somebody's own.
                _ => "The server".to_owned(),
            };
        }
        asked = role.fallback();
    }
    "The workload".to_owned()
}
