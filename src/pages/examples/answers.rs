//! Answers of two prompts to an example, side by side.

use std::rc::Rc;

use capo_core::ids::CandidateId;
use capo_core::journal::RolloutEvent;
use capo_core::llm::Message as Said;
use leptos::html::H3;
use leptos::prelude::*;
use leptos_router::components::A;

use super::Side;
use super::notes::Noted;
use crate::components::{DiffText, TryAgain, hold_focus};
use crate::diff::{Change, PromptDiff};
use crate::live::Folded;
use crate::pages::candidate::{held_out_rollout, held_out_trace};

/// The longest answer, in bytes, whose words are compared: of much longer ones that takes seconds.
const COMPARED: usize = 20_000;

/// The example that is open, on which both prompts were measured.
#[derive(Clone, PartialEq)]
pub(super) struct Opened {
    pub(super) example: String,
    /// Its workload, where there are several.
    pub(super) workload: Option<String>,
    pub(super) prompts: [CandidateId; 2],
    pub(super) sides: [Side; 2],
}

/// The answers of both prompts, with the words in which they differ.
#[component]
pub(super) fn Answers<H>(
    opened: Opened,
    /// What is noted of both, but in a report.
    noted: Option<Noted>,
    /// The page without it.
    close: H,
) -> impl IntoView
where
    H: Fn() -> String + Send + Sync + 'static,
{
    let title = NodeRef::<H3>::new();
    hold_focus(title, ".viewport tbody a");
    let heading = format!("Example {}", opened.example);
    let again = RwSignal::new(0_u32);
    let asked = opened.clone();
    let read = LocalResource::new(move || {
        again.track();
        let asked = asked.clone();
        async move {
            let read = async |side: usize| {
                let Side { run, name } = &asked.sides[side];
                let read =
                    held_out_rollout(*run, asked.prompts[side], &asked.example, asked.workload.clone());
                read.await.map_err(|why| format!("{name}: {why}"))
            };
            Ok::<_, String>([read(0).await?, read(1).await?])
        }
    });
    let body = move || match read.get() {
        None => view! { <p class="quiet" role="status">"Reading the answers."</p> }.into_any(),
        Some(Ok(rollouts)) => both(&opened, noted, &rollouts).into_any(),
        Some(Err(what)) => {
            view! { <TryAgain what again=move |()| again.update(|again| *again += 1)/> }.into_any()
        }
    };
    view! {
        <section class="answers stack close" aria-labelledby="answers-title">
            <div class="row spread">
                <h3 id="answers-title" tabindex="-1" node_ref=title>
                    {heading}
                </h3>
                <A href=close scroll=false>
                    "Close answers"
                </A>
            </div>
            {body}
        </section>
    }
}

fn both(opened: &Opened, noted: Option<Noted>, rollouts: &[Rc<RolloutEvent>; 2]) -> impl IntoView + use<> {
    let answers = rollouts.each_ref().map(|rollout| rollout.trace.answer().trim());
    let are_kept = rollouts.iter().all(|rollout| !rollout.without_trace);
    let are_short = answers.iter().all(|answer| answer.len() <= COMPARED);
    let diff = (are_kept && are_short).then(|| PromptDiff::new(answers[0], answers[1]));
    let words = match &diff {
        Some(diff) => diff.words(),
        None if are_kept => "These answers are too long for their words to be compared here.".to_owned(),
        None => String::new(),
    };
    let repeated = opened.sides.iter().any(|side| {
        let repeats = |folded: &Folded| Some(folded.state.study()?.study.study.repeats);
        side.run.peek(repeats) > Some(1)
    });
    let repeated = repeated.then_some(" Figures are means over repeats; these are the answers of the first.");
    let questions = rollouts.each_ref().map(|rollout| question(rollout));
    // One that was kept without its trace says nothing of it.
    let question = questions.into_iter().flatten().next();
    let question = question.filter(|asked| questions.iter().flatten().all(|one| one == asked));
    let question = question.map(|question| {
        let question = question.to_owned();
        view! {
            <details class="fold">
                <summary>"What was asked"</summary>
                <div class="prompt inset">{question}</div>
            </details>
        }
    });
    let column = |side: usize| {
        let Side { run, name } = &opened.sides[side];
        let (name, with) = (name.clone(), format!(" with {name}"));
        let prompt = opened.prompts[side];
        let trace = held_out_trace(&run.id(), prompt, &opened.example, opened.workload.clone());
        let quiet = |words: &'static str| view! { <p class="quiet small">{words}</p> }.into_any();
        let shown = match answers[side] {
            _ if rollouts[side].without_trace => quiet("The journal was made without traces."),
            "" => quiet("No answer in words."),
            answer => {
                let diff = diff.clone().unwrap_or_else(|| PromptDiff::new(answer, answer));
                let without = [Change::Inserted, Change::Deleted][side];
                view! { <div class="prompt snug"><DiffText diff without/></div> }.into_any()
            }
        };
        view! {
            <div class="answer">
                <h4>{name}</h4>
                {shown}
                <p class="note">
                    <A href=trace>"Whole conversation" <span class="sr">{with}</span></A>
                </p>
                {noted.map(|noted| noted.thumbs(opened, side))}
            </div>
        }
    };
    view! {
        {question}
        <div class="g g-2">{[0, 1].map(column)}</div>
        <p class="reading">{words} {repeated}</p>
        {noted.map(|noted| noted.fields(opened))}
    }
}

/// What a conversation begins with.
fn question(rollout: &RolloutEvent) -> Option<&str> {
    rollout.trace.messages.iter().find_map(|message| match message {
        Said::User { content } => Some(content.as_str()),
        _ => None,
    })
}
