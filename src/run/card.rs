//! A prompt in short, for the card beside its mark.

use capo_core::ids::CandidateId;
use capo_core::reading::metrics::StudiedMetric;
use capo_core::run_state::RunState;

use super::line::Line;
use super::overview::Overview;
use super::pool::Gate;
use super::rounds::ScreenRound;
use crate::diff::PromptDiff;

/// Lines of a prompt that are its head.
const HEAD: usize = 3;

/// What a card says of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// The round on screen in which it was written; 0 for the seed.
    pub round: ScreenRound,
    /// What it says about the thresholds.
    pub gate: Gate,
    /// Its first lines.
    pub head: String,
    /// What it was made from, and an excerpt of what it changed of that.
    pub changed: Option<(CandidateId, PromptDiff)>,
    /// The objective, and every cost against its threshold.
    pub lines: Vec<Line>,
}

impl Card {
    /// Of a prompt of the run, as the run stood when it was seen.
    pub fn new(state: &RunState, seen: &Overview, id: CandidateId) -> Option<Self> {
        let row = seen.pool.rows.iter().find(|row| row.candidate == id)?;
        let prompt = &*state.candidate(&id)?.prompt;
        let mut lines = prompt.trim().lines();
        let mut head: Vec<&str> = lines.by_ref().take(HEAD).collect();
        head.extend(lines.next().map(|_| "…"));
        let parent = row.parents.first();
        let changed = parent.and_then(|parent| {
            let before = state.candidate(parent)?;
            Some((*parent, PromptDiff::new(&before.prompt, prompt).excerpt()))
        });
        let line = |metric: &StudiedMetric, threshold| {
            Line::of(metric, row.estimates.get(metric.name()).copied(), threshold)
        };
        let constraints = seen.series.constraints.iter();
        let costs = constraints.map(|of| line(&of.metric, of.threshold()));
        Some(Self {
            round: row.round,
            gate: row.gate,
            head: head.join("\n"),
            changed,
            lines: std::iter::once(line(&seen.series.objective, None))
                .chain(costs)
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use capo_core::reading::lineage;

    use super::*;
    use crate::run::fixture::finished;
    use crate::run::overview::Overviews;

    #[test]
    fn a_card_says_what_a_prompt_begins_with_changed_and_measured() {
        let state = finished();
        let seen = Overviews::default().after(1, &state).unwrap();
        let best = state.finished().unwrap().best.unwrap();
        let card = Card::new(&state, &seen, best).unwrap();
        assert!(
            state
                .candidate(&best)
                .unwrap()
                .prompt
                .starts_with(card.head.trim_end_matches('…'))
        );
        assert!(card.head.lines().count() <= HEAD + 1);
        let (parent, diff) = card.changed.unwrap();
        assert_eq!(Some(&parent), lineage::course(&state, best).iter().nth_back(1));
        assert!(!diff.is_empty());
        assert_eq!(card.gate, Gate::Feasible);
        let said = card.lines.iter().map(|line| (line.metric.as_str(), line.kept));
        let said: Vec<_> = said.collect();
        assert_eq!(
            said,
            [
                ("Success", None),
                ("Human requests", Some(true)),
                ("Excess tools", Some(true)),
                ("Prompt length", Some(true)),
            ]
        );
        assert_eq!(card.lines[1].threshold, "≤ 40%");

        let seed = lineage::seed(&state).unwrap();
        let card = Card::new(&state, &seen, seed).unwrap();
        assert_eq!((card.round, card.changed), (0, None));
        assert!(Card::new(&state, &seen, CandidateId::of("unknown")).is_none());
    }
}
