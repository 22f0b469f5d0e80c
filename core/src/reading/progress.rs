//! Progress: what lists show of a run, so that no journal need be read for it.

use serde::{Deserialize, Serialize};

use crate::journal::run_state::RunState;
use crate::study::score::Score;

/// The numbers of a run so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// Objective of the best prompt so far and whether it is feasible, by round as on screens (0 is
    /// the seed).
    pub by_round: Vec<(f64, bool)>,
    /// Objective of the best prompt, in [0, 1].
    pub best: Option<f64>,
    /// Whether it satisfies all constraints.
    pub feasible: bool,
    /// Constraints whose multiplier is at its cap.
    pub at_cap: Vec<String>,
    /// Rollouts made.
    pub rollouts: u64,
    /// Model calls made.
    pub calls: u64,
    /// Tokens read and written.
    pub tokens: u64,
    /// US dollars; `None` where a price is unknown.
    pub usd: Option<f64>,
}

/// When lines of a journal came: numbers of lines, each with the seconds that the run had gone on for by then.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Times(Vec<(u64, f64)>);

/// Two times closer than this, in seconds, are one; and than this share of the whole.
const CLOSE: (f64, f64) = (0.5, 0.002);

impl Times {
    /// Notes that a line came after so many seconds.
    pub fn note(&mut self, line: u64, seconds: f64) {
        let apart = CLOSE.0.max(CLOSE.1 * seconds);
        if self.0.last().is_none_or(|(_, last)| seconds - last >= apart) {
            self.0.push((line, seconds));
        }
    }

    /// When a line came, as closely as it was noted.
    pub fn of(&self, line: u64) -> Option<f64> {
        let after = self.0.partition_point(|(noted, _)| *noted <= line);
        self.0.get(after.checked_sub(1)?).map(|(_, seconds)| *seconds)
    }

    /// The last line that a time was noted of.
    pub fn last_line(&self) -> Option<u64> {
        self.0.last().map(|(line, _)| *line)
    }

    /// Seconds in all.
    pub fn last(&self) -> f64 {
        self.0.last().map_or(0.0, |(_, seconds)| *seconds)
    }
}

impl Progress {
    /// The numbers of a run so far.
    pub fn of(state: &RunState) -> Self {
        let rounds = state.rounds();
        let seed = state.candidates().next().map(|(id, _)| *id);
        let of_seed = seed.and_then(|seed| rounds.first()?.scores.get(&seed));
        let leaders = rounds
            .iter()
            .filter_map(|round| round.scores.get(round.best.first()?));
        let by_round: Vec<(f64, bool)> = of_seed
            .into_iter()
            .chain(leaders)
            .map(|score| (score.objective, score.feasible))
            .collect();
        let best = match state.finished() {
            Some(finished) => finished.best.and_then(|best| finished.final_scores.get(&best)),
            None => best_so_far(state),
        };
        let spent = state.ledger().usage().total();
        Self {
            best: best.map(|score| score.objective),
            feasible: best.is_some_and(|score| score.feasible),
            at_cap: at_cap(state),
            rollouts: state.ledger().rollouts(),
            calls: spent.calls,
            tokens: spent.tokens(),
            usd: spent.usd,
            by_round,
        }
    }
}

/// The feasible score of the highest objective, else the leader of the last round.
fn best_so_far(state: &RunState) -> Option<&Score> {
    let scores = state.rounds().iter().flat_map(|round| round.scores.values());
    let feasible = scores.filter(|score| score.feasible);
    let last = state.rounds().last()?;
    feasible
        .max_by(|a, b| a.objective.total_cmp(&b.objective))
        .or_else(|| last.scores.get(last.best.first()?))
}

/// Constraints whose multiplier ended the last round at λ_max.
fn at_cap(state: &RunState) -> Vec<String> {
    let cap = state
        .study()
        .and_then(|started| started.study.method.get("lambda_max"))
        .and_then(serde_json::Value::as_f64);
    let (Some(cap), Some(last)) = (cap, state.rounds().last()) else {
        return Vec::new();
    };
    let capped = last
        .next_multipliers
        .iter()
        .filter(|(_, multiplier)| **multiplier >= cap);
    capped.map(|(metric, _)| metric.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_time_that_was_noted_last() {
        let mut times = Times::default();
        for (line, seconds) in [(0, 0.0), (3, 0.1), (5, 1.0), (9, 1.2), (20, 4.0)] {
            times.note(line, seconds);
        }
        assert_eq!(
            [0, 3, 5, 9, 19, 20, 99].map(|line| times.of(line)),
            [0.0, 0.0, 1.0, 1.0, 1.0, 4.0, 4.0].map(Some)
        );
        assert_eq!(times.last(), 4.0);
        assert_eq!(Times::default().of(3), None);
    }
}
