//! Plate D: what the critic said and what the rewriter made of it.

use capo_core::ids::{CandidateId, Round};
use capo_core::journal::{EffectName, Origin};
use capo_core::methods;
use capo_core::reading::metrics::{self, StudiedMetric};
use capo_core::reading::{in_force, lineage};
use capo_core::run_state::{RunState, Unusable};
use leptos::prelude::*;

use super::page::Page;
use crate::components::{Plate, Words};
use crate::format::{self, counted, listed};
use crate::run::rounds::{on_screen, written_in};
use crate::run::sentence::Sentence;
use crate::run::studied::Shown as _;
use crate::run::word::Word;

/// A part of the critic's words, under what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Section {
    about: Sentence,
    words: String,
}

/// How the selected prompt came to be.
#[derive(Debug, Clone, PartialEq)]
struct Written {
    sections: Vec<Section>,
    answer: Sentence,
    /// The rewriter's first answer, when it could not be used, and why.
    refused: Option<(String, String)>,
}

/// What the critic said of the selected prompt itself, and what came of that.
#[derive(Debug, Clone, PartialEq)]
struct Received {
    heading: String,
    sections: Vec<Section>,
    answer: Sentence,
}

/// Feedback that led to the selected prompt, and that it was given itself.
#[component]
pub(super) fn FeedbackPlate(page: Page) -> impl IntoView {
    let written = Memo::new(move |_| {
        let selected = page.selected.get()?;
        page.run.read(|folded| written(&folded.state, selected))
    });
    let received = Memo::new(move |_| {
        let selected = page.selected.get();
        page.run.read(|folded| {
            selected
                .map(|selected| received(&folded.state, selected))
                .unwrap_or_default()
        })
    });
    let own = move || written.get().map(|written| view! { <WrittenView written/> });
    view! {
        <Plate
            letter="D"
            title=|| {
                view! {
                    "Feedback to the rewriter " <span class="unit">"by the critic, from the parent’s traces"</span>
                }
            }
        >
            {own}
            {move || received.get().into_iter().map(|received| view! { <ReceivedView received/> }).collect_view()}
        </Plate>
    }
}

#[component]
fn WrittenView(written: Written) -> impl IntoView {
    let refused = written.refused.map(|(answer, reason)| {
        view! {
            <details class="fold">
                <summary>"First answer, which could not be used"</summary>
                <p class="note">{reason}</p>
                <div class="prompt inset">{answer}</div>
            </details>
        }
    });
    view! {
        <Sections sections=written.sections/>
        <p class="reading">
            <Words sentence=written.answer/>
        </p>
        {refused}
    }
}

#[component]
fn ReceivedView(received: Received) -> impl IntoView {
    view! {
        <details class="fold">
            <summary>{received.heading}</summary>
            <Sections sections=received.sections/>
            <p class="reading">
                <Words sentence=received.answer/>
            </p>
        </details>
    }
}

#[component]
fn Sections(sections: Vec<Section>) -> impl IntoView {
    let section = |section: Section| {
        view! {
            <div>
                <dt>
                    <Words sentence=section.about among_many=true/>
                </dt>
                <dd>{section.words}</dd>
            </div>
        }
    };
    (!sections.is_empty())
        .then(|| view! { <dl class="feedback">{sections.into_iter().map(section).collect_view()}</dl> })
}

fn written(state: &RunState, id: CandidateId) -> Option<Written> {
    let candidate = state.candidate(&id)?;
    let parent = candidate.parents.first().copied();
    let told = |answer: &str| Written {
        sections: Vec::new(),
        answer: Sentence::new(answer),
        refused: None,
    };
    let Some(parent) = parent.filter(|_| candidate.origin == Origin::Rewrite) else {
        return Some(told(match candidate.origin {
            Origin::Seed => "The search starts from this prompt; no feedback led to it.",
            Origin::Rewrite | Origin::Crossover => "It combines its parents; no feedback led to it.",
            Origin::Paraphrase => "It says the same as its parent in other words; no feedback led to it.",
            Origin::Injected => "The thresholds were written into the seed prompt; no feedback led to it.",
            Origin::Given => "A person wrote it; no feedback led to it.",
            Origin::From => "An earlier run found it, and the search starts from it too.",
        }));
    };
    let round = candidate.round;
    let feedback = state.critique(parent, round);
    let index = index(state, round, parent, id);
    let unusable = index.and_then(|index| state.unusable(&EffectName::Rewrite { round, parent, index }));
    Some(Written {
        sections: feedback.map_or_else(Vec::new, |feedback| sections(state, parent, round, &feedback)),
        answer: answer(state, id, unusable.is_some()),
        refused: unusable.map(|Unusable { answer, reason }| (answer.clone(), reason.clone())),
    })
}

/// Which of the parent's rewrites in a round gave this child.
fn index(state: &RunState, round: Round, parent: CandidateId, child: CandidateId) -> Option<u32> {
    (0..)
        .map_while(|index| Some((index, state.rewrite(round, parent, index)?)))
        .find_map(|(index, rewritten)| (rewritten.child == Some(child)).then_some(index))
}

/// "Rewriter's answer: accepted at the first try, child 3 of 8 in round 6."
fn answer(state: &RunState, id: CandidateId, second: bool) -> Sentence {
    let Some(round) = state.candidate(&id).map(written_in) else {
        return Sentence::default();
    };
    let siblings: Vec<CandidateId> = state
        .candidates()
        .filter(|(_, candidate)| written_in(candidate) == round)
        .map(|(id, _)| *id)
        .collect();
    let place = siblings.iter().position(|other| *other == id).unwrap_or(0) + 1;
    let tried = if second { "second" } else { "first" };
    Sentence::new(format!(
        "Rewriter’s answer: accepted at the {tried} try, child {place} of {} in round {round}.",
        siblings.len()
    ))
}

fn received(state: &RunState, id: CandidateId) -> Vec<Received> {
    let rounds = 0..=state.rounds().len() as Round;
    rounds
        .filter_map(|round| {
            let feedback = state.critique(id, round)?;
            Some(Received {
                heading: format!(
                    "What the critic said of this prompt in round {}",
                    on_screen(round)
                ),
                sections: sections(state, id, round, &feedback),
                answer: children(state, round, id),
            })
        })
        .collect()
}

/// "It gave b13ed8 and 970704. One rewrite gave no child: …"
fn children(state: &RunState, round: Round, parent: CandidateId) -> Sentence {
    let rewrites: Vec<_> = (0..)
        .map_while(|index| state.rewrite(round, parent, index))
        .collect();
    let children: Vec<CandidateId> = rewrites.iter().filter_map(|rewritten| rewritten.child).collect();
    let mut sentence = match children.len() {
        0 => Sentence::new("No child came of it"),
        _ => Sentence::new("It led to "),
    };
    for (place, child) in children.iter().enumerate() {
        if place > 0 {
            sentence = sentence.text(if place + 1 == children.len() {
                " and "
            } else {
                ", "
            });
        }
        sentence = sentence.prompt(*child);
    }
    sentence = sentence.text(".");
    let reasons: Vec<&str> = rewrites
        .iter()
        .filter_map(|rewritten| rewritten.reason.as_deref())
        .collect();
    if reasons.is_empty() {
        return sentence;
    }
    sentence.text(format!(
        " Without a child: {} ({}).",
        counted(reasons.len(), "rewrite"),
        listed(&reasons)
    ))
}

/// The critic's words, unchanged, parted where a line begins with a metric's name.
fn sections(state: &RunState, parent: CandidateId, round: Round, feedback: &str) -> Vec<Section> {
    let metrics = metrics::of_study(state);
    let mut sections: Vec<Section> = Vec::new();
    let mut known = None;
    for line in feedback.lines() {
        let begins = metrics.iter().find(|metric| begins_with(line, metric));
        if let Some(metric) = begins.filter(|metric| known != Some(metric.name())) {
            known = Some(metric.name());
            sections.push(Section {
                about: about(state, parent, round, metric),
                words: String::new(),
            });
        }
        if sections.is_empty() {
            sections.push(Section {
                about: lineage::seed(state)
                    .filter(|seed| *seed == parent)
                    .map_or_else(|| Sentence::new("On "), |_| Sentence::new("On the seed prompt "))
                    .prompt(parent),
                words: String::new(),
            });
        }
        if let Some(section) = sections.last_mut() {
            section.words += line;
            section.words.push('\n');
        }
    }
    for section in &mut sections {
        section.words = section.words.trim().to_owned();
    }
    sections.retain(|section| !section.words.is_empty());
    sections
}

/// Whether a line, signs of a list or of emphasis aside, begins with the metric's name.
fn begins_with(line: &str, metric: &StudiedMetric) -> bool {
    let sign = |character: char| !character.is_alphabetic();
    let line = line.trim_start_matches(sign).to_lowercase();
    let after = line
        .strip_prefix("objective")
        .or_else(|| line.strip_prefix("constraint"))
        .map_or(line.as_str(), |rest| rest.trim_start_matches(sign));
    [metric.name().to_lowercase(), metric.phrase()]
        .iter()
        .any(|name| {
            let rest = after.strip_prefix(name.as_str());
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
        })
}

/// "Human requests · 37.8%, 2.8 pts over · λ 3.73", of the parent in its round.
fn about(state: &RunState, parent: CandidateId, round: Round, metric: &StudiedMetric) -> Sentence {
    let closed = state.rounds().get(round as usize);
    let score = closed.and_then(|closed| closed.scores.get(&parent));
    let quantity = metric.quantity();
    if !metric.is_constraint() {
        let value = score.map(|score| format!(" {}", quantity.value(score.objective)));
        return Sentence::new(format!(
            "Objective · {}{}",
            metric.phrase(),
            value.unwrap_or_default()
        ));
    }
    let limits = in_force::limits(state, Some(round));
    let cost = score.and_then(|score| score.costs.get(metric.name()));
    let standing = cost.zip(limits.get(metric.name())).map(|(cost, limit)| {
        let side = if limit.is_satisfied(*cost) {
            "under"
        } else {
            "over"
        };
        let distance = quantity.distance(cost - limit.threshold);
        format!(
            " · {}, {distance} {side}",
            quantity.against(*cost, limit.threshold)
        )
    });
    let sentence = Sentence::new(metric.label() + &standing.unwrap_or_default());
    match methods::multipliers(state, round).get(metric.name()) {
        Some(multiplier) => sentence
            .text(" · ")
            .symbol(Word::LAMBDA)
            .text(format!(" {}", format::multiplier(*multiplier))),
        None => sentence,
    }
}
