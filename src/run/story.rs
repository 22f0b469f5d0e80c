//! The history of a prompt: every rewrite on the way from where its search began.

use capo_core::ids::CandidateId;
use capo_core::journal::Origin;
use capo_core::reading::metrics::{self, StudiedMetric};
use capo_core::reading::{in_force, lineage};
use capo_core::run_state::RunState;
use capo_core::score::{Limits, Score};

use super::rounds::written_in;
use super::sentence::Sentence;
use super::studied::Shown as _;
use crate::diff::PromptDiff;
use crate::format;

/// A rewrite.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What was rewritten.
    pub parent: CandidateId,
    /// What came of it.
    pub child: CandidateId,
    /// "Round 2: f36b0b became 432e82."
    pub heading: Sentence,
    /// What the critic said before it; empty where no feedback led to it.
    pub said: String,
    /// What that did to the objective and to every cost, on the examples of its round.
    pub figures: String,
}

impl Step {
    /// What it changed of the prompt.
    pub fn diff(&self, state: &RunState) -> Option<PromptDiff> {
        let [before, after] = [self.parent, self.child].map(|prompt| state.candidate(&prompt));
        Some(PromptDiff::new(&before?.prompt, &after?.prompt))
    }

    /// What is rewritten by it, of the first one.
    pub fn begins_with(&self, state: &RunState) -> &'static str {
        match state.candidate(&self.parent).map(|parent| parent.origin) {
            Some(Origin::Seed) => "the seed",
            Some(Origin::From) => "a prompt of an earlier run",
            _ => "a prompt without a parent",
        }
    }
}

/// The rewrites that led to a prompt, the first one first.
pub fn story(state: &RunState, to: CandidateId) -> Vec<Step> {
    let course = lineage::course(state, to);
    let steps = course.windows(2).filter_map(|pair| step(state, pair[0], pair[1]));
    steps.collect()
}

fn step(state: &RunState, parent: CandidateId, child: CandidateId) -> Option<Step> {
    let after = state.candidate(&child)?;
    let round = after.round;
    let draft = state
        .rewrites()
        .find(|((of, ..), rewritten)| *of == round && rewritten.child == Some(child))
        .and_then(|(_, rewritten)| rewritten.draft);
    // The parent may have been criticised for a sibling's sake.
    let said = state.critique(draft.unwrap_or(parent), round);
    let said = said.filter(|_| after.origin == Origin::Rewrite);
    let limits = in_force::limits(state, Some(round));
    let closed = state.rounds().get(round as usize);
    let score = |id: CandidateId| closed.and_then(|closed| closed.scores.get(&id));
    let figures = score(parent).zip(score(child)).map(|(was, is)| {
        let metrics = metrics::of_study(state);
        let changes = metrics
            .iter()
            .filter_map(|metric| change(metric, was, is, &limits));
        let changes: Vec<String> = changes.collect();
        format!("{}.", format::capitalized(&changes.join("; ")))
    });
    Some(Step {
        parent,
        child,
        heading: Sentence::new(format!("Round {}: ", written_in(after)))
            .prompt(parent)
            .text(" became ")
            .prompt(child)
            .text("."),
        said: said.map_or_else(String::new, |said| said.trim().to_owned()),
        figures: figures.unwrap_or_default(),
    })
}

/// "human requests 41.0% → 36.0% (−5.0 pts, threshold 35%)".
fn change(metric: &StudiedMetric, was: &Score, is: &Score, limits: &Limits) -> Option<String> {
    let of = |score: &Score| {
        if metric.is_constraint() {
            score.costs.get(metric.name()).copied()
        } else {
            Some(score.objective)
        }
    };
    let (was, is) = (of(was)?, of(is)?);
    let quantity = metric.quantity();
    let difference = quantity.difference(is - was);
    let (is, against) = match limits.get(metric.name()) {
        Some(limit) => (
            quantity.against(is, limit.threshold),
            format!(", threshold {}", quantity.threshold(limit.threshold)),
        ),
        None => (quantity.value(is), String::new()),
    };
    Some(format!(
        "{} {} → {is} ({difference}{against})",
        metric.phrase(),
        quantity.value(was)
    ))
}

#[cfg(test)]
mod tests {
    use capo_core::journal::Event;

    use super::*;
    use crate::diff::Change;
    use crate::run::fixture::{events, finished, fold};

    #[test]
    fn every_rewrite_on_the_way_is_told_with_what_it_did() {
        let state = finished();
        let best = state.finished().unwrap().best.unwrap();
        let course = lineage::course(&state, best);
        let story = story(&state, best);
        assert!(course.len() > 1);
        assert_eq!(story.len(), course.len() - 1);
        for (step, child) in story.iter().zip(&course[1..]) {
            assert!(
                step.heading.to_string().contains(&format::id(child)),
                "{}",
                step.heading
            );
            let diff = step.diff(&state).unwrap();
            let kept = diff.segments.iter();
            let kept = kept.filter(|segment| segment.change != Change::Deleted);
            let text: String = kept.map(|segment| segment.text.as_str()).collect();
            assert_eq!(text, *state.candidate(child).unwrap().prompt);
            assert!(!step.said.is_empty(), "{}", step.heading);
            assert!(
                step.figures.starts_with("Success ") && step.figures.contains("prompt length "),
                "{}",
                step.figures
            );
        }
        let seed = lineage::seed(&state).unwrap();
        assert_eq!(story[0].begins_with(&state), "the seed");
        assert!(super::story(&state, seed).is_empty());
    }

    #[test]
    fn a_story_may_begin_with_a_prompt_of_an_earlier_run() {
        let mut events = events(|_| {}, None);
        for event in &mut events {
            if let Event::Candidate(candidate) = event
                && candidate.origin == Origin::Seed
            {
                candidate.origin = Origin::From;
            }
        }
        let state = fold(&events);
        let story = story(&state, state.finished().unwrap().best.unwrap());
        assert_eq!(story[0].begins_with(&state), "a prompt of an earlier run");
    }

    #[test]
    fn what_its_parent_was_told_led_to_no_paraphrase() {
        let mut events = events(|_| {}, None);
        for event in &mut events {
            if let Event::Candidate(candidate) = event
                && candidate.origin == Origin::Rewrite
            {
                candidate.origin = Origin::Paraphrase;
            }
        }
        let state = fold(&events);
        let story = story(&state, state.finished().unwrap().best.unwrap());
        assert!(!story.is_empty());
        assert!(story.iter().all(|step| step.said.is_empty()));
    }
}
