//! The words of a status line.

use capo_core::budget::Budget;
use capo_core::journal::RoundEvent;
use capo_core::run_state::RunState;
use capo_core::study::Rounds;

use super::Work;
use crate::cli::layout::{NOTHING, count, counted, dollars, number};

/// What stands between two parts of a line.
const BETWEEN: &str = " · ";

/// What a status line says, most important first: round, rollouts and dollars against the budget,
/// feasible or not with the best objective, failures, calls, tokens, multipliers.
pub(super) fn parts(state: &RunState, budget: &Budget, work: Work) -> Vec<String> {
    let rounds = state.rounds();
    let ledger = state.ledger();
    let usage = ledger.usage().total();
    let against = |limit: Option<String>| limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
    let mut parts = Vec::new();
    if work == Work::Search {
        let of = match state.study().map(|event| event.study.study.rounds) {
            Some(Rounds::Count(of)) => format!("/{of}"),
            _ => String::new(),
        };
        parts.push(format!("round {}{of}", rounds.len()));
    }
    parts.extend([
        format!(
            "{}{} rollouts",
            count(ledger.rollouts()),
            against(budget.rollouts.map(count))
        ),
        format!(
            "{}{}",
            dollars(usage.usd),
            against(budget.usd.map(|usd| dollars(Some(usd))))
        ),
    ]);
    if ledger.reused().rollouts > 0 {
        parts.push(format!("{} reused", count(ledger.reused().rollouts)));
    }
    if work == Work::Search {
        parts.push(standing(rounds));
    }
    let failures: u64 = state.failures().values().sum();
    if failures > 0 {
        parts.push(counted(failures, "failure"));
    }
    parts.push(format!(
        "{}{} calls",
        count(usage.calls),
        against(budget.calls.map(count))
    ));
    if let Some(tokens) = budget.tokens {
        let spent = usage.tokens();
        parts.push(format!("{} of {} tokens", count(spent), count(tokens)));
    }
    if let Some(round) = rounds.last() {
        parts.push(multipliers(round));
    }
    parts
}

/// The parts that fit so many columns, in their order; one that does not is left out whole, and the
/// first is cut.
pub(super) fn fitting(parts: &[String], columns: usize) -> String {
    let mut line = String::new();
    for part in parts {
        if line.is_empty() {
            line = part.chars().take(columns).collect();
        } else if width(&line) + width(BETWEEN) + width(part) <= columns {
            line += BETWEEN;
            line += part;
        }
    }
    line
}

/// All parts in one line.
pub(super) fn whole(parts: &[String]) -> String {
    parts.join(BETWEEN)
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// The best feasible objective so far, as the rounds scored it.
fn standing(rounds: &[RoundEvent]) -> String {
    let best = rounds
        .iter()
        .flat_map(|round| round.scores.values())
        .filter(|score| score.feasible)
        .map(|score| score.objective)
        .max_by(f64::total_cmp);
    match best {
        Some(objective) => format!("feasible on search at {}", number(objective)),
        None if rounds.is_empty() => "no round yet".into(),
        None => "not feasible on search yet".into(),
    }
}

fn multipliers(round: &RoundEvent) -> String {
    let each = round
        .next_multipliers
        .iter()
        .map(|(metric, value)| format!("{metric} {value:.2}"));
    let all: Vec<String> = each.collect();
    if all.is_empty() {
        "no constraints".into()
    } else {
        format!("λ {}", all.join(", "))
    }
}

/// What one round came to.
pub(super) fn of_round(round: &RoundEvent, state: &RunState) -> String {
    let best = round
        .best
        .first()
        .and_then(|id| Some((id, round.scores.get(id)?)));
    let best = best.map_or_else(
        || NOTHING.to_owned(),
        |(id, score)| {
            let feasible = if score.feasible {
                "feasible on search"
            } else {
                "not feasible on search"
            };
            format!(
                "best {} objective {} ({feasible})",
                id.short(),
                number(score.objective)
            )
        },
    );
    let rollouts = counted(state.ledger().rollouts(), "rollout");
    let reused = match state.ledger().reused().rollouts {
        0 => String::new(),
        reused => format!(", {} reused", count(reused)),
    };
    format!(
        "round {}: {best} · {} · {rollouts}{reused}",
        round.round,
        multipliers(round)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out_whole() {
        let parts = ["round 1/6", "12 rollouts", "λ human_requests 0.82", "$0.01"].map(str::to_owned);
        for (columns, expected) in [
            (80, "round 1/6 · 12 rollouts · λ human_requests 0.82 · $0.01"),
            (40, "round 1/6 · 12 rollouts · $0.01"),
            (12, "round 1/6"),
            (4, "roun"),
        ] {
            let line = fitting(&parts, columns);
            assert_eq!(line, expected);
            assert!(width(&line) <= columns);
        }
    }
}
