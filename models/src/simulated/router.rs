//! What a request asks the model to be, told from its text as a real model would.
//!
//! Instructions stand at the beginning and the end of a message; what is quoted stands between.

use capo_core::llm::{ChatRequest, Message};

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Act in a conversation with tools.
    Agent,
    /// Answer one question.
    Answer,
    /// Play a person who talks to an agent.
    User,
    /// Grade an answer.
    Judge,
    /// Say what is wrong with a prompt.
    Critic,
    /// Write a better prompt.
    Rewriter,
    /// Join two prompts.
    Crossover,
    /// Say a prompt in other words.
    Paraphrase,
    /// Change a prompt somehow.
    Mutation,
}

/// Characters at each end of a message in which instructions are looked for.
const EDGE: usize = 700;

/// Tells what a request asks for.
pub(super) fn part(request: &ChatRequest) -> Part {
    if !request.tools.is_empty() {
        return Part::Agent;
    }
    let system = system(request).to_lowercase();
    if [
        "you play a",
        "you play the",
        "play the role of a customer",
        "play a customer",
        "act as the user",
        "simulate the user",
        "you are the customer",
    ]
    .iter()
    .any(|cue| system.contains(cue))
    {
        return Part::User;
    }
    let instruction = edges(first_user(request)).to_lowercase();
    let has = |cues: &[&str]| cues.iter().any(|cue| instruction.contains(cue));
    let about_prompts = instruction.contains("prompt") || instruction.contains("instruction");
    let returns_prompt = has(&["<prompt>", "between <prompt> and </prompt>"]);
    if about_prompts
        && has(&[
            "paraphrase",
            "other words",
            "same meaning",
            "reword",
            "rephrase",
            "semantically",
        ])
        && !has(&["feedback"])
    {
        Part::Paraphrase
    } else if about_prompts
        && has(&[
            "crossover",
            "cross over",
            "combine the two",
            "combine these",
            "combine both",
            "merge the two",
            "merge these",
            "parent prompts",
            "two prompts",
        ])
    {
        Part::Crossover
    } else if about_prompts
        && has(&[
            "you review",
            "do not write the new prompt",
            "criticise",
            "criticize",
            "what is wrong with",
            "reasons why the prompt",
            "textual gradient",
        ])
    {
        Part::Critic
    } else if about_prompts && has(&["mutate", "mutation"]) && !has(&["feedback"]) {
        Part::Mutation
    } else if (about_prompts && returns_prompt)
        || has(&[
            "improve the system prompt",
            "rewrite the system prompt",
            "write one new version",
            "improved prompt",
        ])
    {
        Part::Rewriter
    } else if has_grading_words(&instruction) || has_grading_words(&system) {
        Part::Judge
    } else {
        Part::Answer
    }
}

fn has_grading_words(text: &str) -> bool {
    [
        "you grade",
        "grade the",
        "you are a judge",
        "you judge",
        "judge the answer",
        "rate the answer",
        "score the answer",
        "rubric",
        "impartial judge",
        "evaluate the answer",
        "evaluate the response",
    ]
    .iter()
    .any(|cue| text.contains(cue))
}

/// The system message, or the empty string.
pub(super) fn system(request: &ChatRequest) -> &str {
    request
        .messages
        .iter()
        .find_map(|message| match message {
            Message::System { content } => Some(content.as_str()),
            _ => None,
        })
        .unwrap_or_default()
}

/// The first thing the user said, or the empty string.
pub(super) fn first_user(request: &ChatRequest) -> &str {
    users(request).next().unwrap_or_default()
}

/// The last thing the user said, or the empty string.
pub(super) fn last_user(request: &ChatRequest) -> &str {
    users(request).last().unwrap_or_default()
}

fn users(request: &ChatRequest) -> impl Iterator<Item = &str> {
    request.messages.iter().filter_map(|message| match message {
        Message::User { content } => Some(content.as_str()),
        _ => None,
    })
}

/// The beginning and the end of a text.
fn edges(text: &str) -> String {
    let count = text.chars().count();
    if count <= 2 * EDGE {
        return text.to_owned();
    }
    text.chars()
        .take(EDGE)
        .chain([' '])
        .chain(text.chars().skip(count - EDGE))
        .collect()
}
