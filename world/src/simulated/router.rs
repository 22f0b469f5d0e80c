//! Roles that requests ask the model to play, told from the request's text as a real model would.
//!
//! Instructions stand at the beginning and the end of a message; what is quoted stands between.

use capo_core::llm::ChatRequest;

use super::asking::asks_for_prompt;
use super::request::{self, system, users};
use super::{judge, labels, quoted, tau2_customer};

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Act in a conversation with tools.
    Agent,
    /// Play a customer who may have tools.
    Caller,
    /// Answer one question.
    Answer,
    /// Play a person who talks to an agent.
    User,
    /// Grade an answer.
    Judge,
    /// Say which statements about a conversation hold.
    Checker,
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
pub(super) const EDGE: usize = 700;

/// Whether a request asks for what the simulated models cannot do without a script: to play the agent of a tau2
/// domain.
pub(super) fn is_beyond(request: &ChatRequest) -> bool {
    let has = |name: &str| request.tools.iter().any(|tool| tool.name == name);
    let system = system(request).trim_end();
    has("transfer_to_human_agents") && system.starts_with("<instructions>\n") && system.ends_with("</policy>")
}

/// Tells what a request asks for.
pub(super) fn part(request: &ChatRequest) -> Part {
    if tau2_customer::is_asked(request) {
        return Part::Caller;
    }
    if !request.tools.is_empty() {
        return Part::Agent;
    }
    if system(request).contains("\"results\"") && judge::statements(first_user(request)).is_some() {
        return Part::Checker;
    }
    let system = system(request).to_lowercase();
    if casts_as_customer(&system) {
        return Part::User;
    }
    // Where fields are to be filled in, what is wanted stands in the system message.
    let instruction = request::objective(request::system(request))
        .map_or_else(|| edges(first_user(request)), str::to_owned)
        .to_lowercase();
    let has = |cues: &[&str]| cues.iter().any(|cue| instruction.contains(cue));
    let about_prompts = instruction.contains("prompt") || instruction.contains("instruction");
    if about_prompts
        && has(&[
            "paraphrase",
            "other words",
            "same meaning",
            "semantic meaning",
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
    } else if wants_prompt(request) || wants_first_prompt(first_user(request)) {
        Part::Rewriter
    } else if grading_words(&instruction).or(grading_words(&system)).is_some() {
        Part::Judge
    } else {
        Part::Answer
    }
}

/// Whether a request quotes a prompt and asks in its own words for another one. A system message counts where the prompt
/// is named: it may itself be a prompt that is tried.
fn wants_prompt(request: &ChatRequest) -> bool {
    let system = request::system(request);
    let Some([before, _, after]) = quoted::split_at_prompt(system, first_user(request)) else {
        return false;
    };
    if let Some(objective) = request::objective(system) {
        return asks_for_prompt(objective);
    }
    let own = edges(&quoted::without_quotations(&format!("{before} {after}")));
    let is_named = before.lines().rev().take(2).any(quoted::names_prompt);
    // Who grades is told so first.
    let first = own.trim_start().lines().next().unwrap_or_default();
    let opening = format!("{system}\n{first}");
    (asks_for_prompt(&own) || is_named && asks_for_prompt(system))
        && grading_words(&opening.to_ascii_lowercase()).is_none_or(|at| asks_for_prompt(&opening[..at]))
}

/// Whether a request wants the first prompt there is, and quotes examples only.
pub(super) fn wants_first_prompt(instruction: &str) -> bool {
    let instruction = edges(instruction).to_lowercase();
    ["corresponding prompt that gives", "create diverse system prompts"]
        .iter()
        .any(|cue| instruction.contains(cue))
}

/// Whether a lower-case system message gives the model the part of a customer, as in "You play an
/// impatient customer". One who plays an important part for customers, or works in customer
/// service, is none.
fn casts_as_customer(system: &str) -> bool {
    const CASTINGS: [&[&str]; 10] = [
        &["you", "play"],
        &["you", "are", "playing"],
        &["play", "the", "role", "of"],
        &["play", "the", "part", "of"],
        &["playing", "the", "role", "of"],
        &["act", "as"],
        &["simulate"],
        &["simulating"],
        &["play"],
        &["you", "are"],
    ];
    const PEOPLE: [&str; 6] = ["customer", "user", "caller", "client", "shopper", "buyer"];
    // "A customer service agent" and "the user role" are no customers, nor is who acts "as the user
    // wishes" one.
    const OTHERWISE: [&str; 18] = [
        "service",
        "support",
        "care",
        "success",
        "relations",
        "experience",
        "interface",
        "agent",
        "assistant",
        "role",
        "wants",
        "wishes",
        "asks",
        "expects",
        "requests",
        "would",
        "needs",
        "account",
    ];
    let words: Vec<&str> = system
        .split_whitespace()
        .map(|word| word.trim_matches(|character: char| !character.is_alphanumeric()))
        .collect();
    let has_part = |after: &[&str]| {
        let [article, rest @ ..] = after else {
            return false;
        };
        // One word may describe the person.
        let person = rest.iter().take(2).position(|word| PEOPLE.contains(word));
        matches!(*article, "a" | "an" | "the")
            && person.is_some_and(|at| rest.get(at + 1).is_none_or(|next| !OTHERWISE.contains(next)))
    };
    CASTINGS.iter().any(|casting| {
        words
            .windows(casting.len())
            .enumerate()
            .any(|(at, seen)| seen == *casting && has_part(&words[at + casting.len()..]))
    })
}

/// Where a text in lower case first speaks of grading.
fn grading_words(text: &str) -> Option<usize> {
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
    .filter_map(|cue| text.find(cue))
    .min()
}

/// The first thing the user said, or the empty string.
pub(super) fn first_user(request: &ChatRequest) -> &str {
    users(request).next().unwrap_or_default()
}

/// The beginning and the end of a text, and the end of what is left of it without labelled prompts, which may be long
/// and stand last.
fn edges(text: &str) -> String {
    let count = text.chars().count();
    if count <= 2 * EDGE {
        return text.to_owned();
    }
    let rest = labels::without_labelled_prompts("", text);
    let end_of_rest = rest.chars().count().saturating_sub(EDGE);
    text.chars()
        .take(EDGE)
        .chain([' '])
        .chain(text.chars().skip(count - EDGE))
        .chain([' '])
        .chain(rest.chars().skip(end_of_rest))
        .collect()
}

#[cfg(test)]
mod tests {
    use capo_core::llm::Message;

    use super::*;

    fn told(system: &str) -> Part {
        part(&ChatRequest::new(vec![
            Message::system(system),
            Message::user("How many apples are left?"),
        ]))
    }

    #[test]
    fn quoted_tags_change_no_part() {
        let quoted =
            "<conversation>\nAgent: Hi.\n</conversation>\n\n<statements>\n1. It greets.\n</statements>";
        let asked = |system: &str, user: &str| {
            part(&ChatRequest::new(vec![
                Message::system(system),
                Message::user(user),
            ]))
        };
        let results = "Reply with {\"results\": [...]}.";
        assert_eq!(asked(results, quoted), Part::Checker);
        assert_eq!(asked("Answer the question.", quoted), Part::Answer);
        assert_eq!(asked(results, &format!("Look at this: {quoted}")), Part::Answer);
        let rewrite = format!(
            "Improve the system prompt.\n<prompt>\n{quoted}\n</prompt>\nReturn it between <prompt> and </prompt>."
        );
        assert_eq!(asked("You rewrite prompts.", &rewrite), Part::Rewriter);
        let graded = format!("<task>{quoted}</task>\n<answer>4</answer>");
        assert_eq!(asked("You grade an answer by a rubric.", &graded), Part::Judge);
    }

    #[test]
    fn whoever_quotes_a_prompt_and_asks_for_another_has_it_rewritten() {
        let craft = "You craft prompts. From a prompt and what went wrong you write an improved prompt.";
        let judge = "You grade by a rubric whether an assistant could write an improved prompt.";
        let quoted = "<prompt>Be brief.</prompt>\n<answer>I wrote a new prompt.</answer>";
        let headed = "## Current prompt\nBe brief.\n\n## Feedback\nThe rubric wants reasons.\n\n## Instructions\nPropose better instructions.";
        let span =
            "<VARIABLE> Be brief. </VARIABLE>\nSend the refined variable: <NEW>{the refined variable}</NEW>";
        let delivery = "My delivery instructions are: leave it.\n\nPlease change the delivery instructions.";
        for (system, user, expected) in [
            ("You are a helpful assistant.", headed, Part::Rewriter),
            (
                craft,
                "Prompt:\nBe brief.\n\nErrors:\nNo reasons.",
                Part::Rewriter,
            ),
            (
                "",
                "Improve this.\n<prompt>\nYou grade the answer.\n</prompt>",
                Part::Rewriter,
            ),
            ("", span, Part::Rewriter),
            (
                "You are a helpful assistant",
                "Improve it by the rubric.\n<prompt>Be brief.</prompt>",
                Part::Rewriter,
            ),
            (
                "",
                "The prompt is: \"Be brief.\" Please improve\nthe prompt.\nInput: \"Hi\"\n",
                Part::Rewriter,
            ),
            ("", "Prompt: Be brief. Please rewrite it.", Part::Rewriter),
            (
                "",
                "Here is the prompt:\nBe brief.\n\nWrite a better one.",
                Part::Rewriter,
            ),
            (
                "",
                "System prompt:\nBe brief.\n\nWhat is wrong with this prompt?",
                Part::Critic,
            ),
            (
                "",
                "Agent prompt:\nBe brief.\n\nParaphrase this prompt.",
                Part::Paraphrase,
            ),
            (
                "Be kind.",
                "Instruction: leave it at the door.\n\nPlease change the date.",
                Part::Answer,
            ),
            (
                "",
                "Input: the prompt\nPlease improve my delivery instructions.",
                Part::Answer,
            ),
            (craft, "How many apples are left?", Part::Answer),
            (craft, "Input: cancel it\nOutput:", Part::Answer),
            ("", delivery, Part::Answer),
            ("", "My updated instructions are: deliver at noon.", Part::Answer),
            (
                "",
                "Which is kinder?\n<prompt>Be kind.</prompt>\n```\nRewrite the prompt.\n```",
                Part::Answer,
            ),
            ("Be kind.", quoted, Part::Answer),
            (judge, quoted, Part::Judge),
            ("", "Improve the system prompt.", Part::Answer),
        ] {
            let request = ChatRequest::new(vec![Message::system(system), Message::user(user)]);
            assert_eq!(part(&request), expected, "{system} {user}");
        }
    }

    #[test]
    fn customers_are_played_by_those_who_are_told_to() {
        for system in [
            "You play a customer of Ridgeway Cycles, a bicycle shop.",
            "You play an impatient customer. Stay in this role.",
            "You are playing the role of a customer contacting a help desk.",
            "Play the role of the user.",
            "Act as the user: answer the assistant's questions.",
            "Simulate a user who has lost a parcel.",
            "You are the customer, not the agent.",
        ] {
            assert_eq!(told(system), Part::User, "{system}");
        }
    }

    #[test]
    fn playing_something_else_makes_no_customer() {
        for system in [
            "You play an important role in our school.",
            "You play a key part for the customer. Answer briefly.",
            "You play the piano teacher and answer questions.",
            "You are a customer service agent.",
            "You are a user-friendly assistant.",
            "You are the user's assistant.",
            "You play a customer support agent.",
            "Act as the user wishes.",
        ] {
            assert_eq!(told(system), Part::Answer, "{system}");
        }
    }
}
