//! The form in which a request wants its answer: tags, a fence, fields, JSON or plain text.

use capo_core::llm::ChatRequest;
use serde_json::{Map, Value};

use super::asking::is_of;
use super::quoted::{self, is_mention, names_prompt};
use super::request;
use super::router::{self, EDGE};

/// The most texts written for one request, however many it asks for.
const MOST_TEXTS: usize = 16;

/// The words before "JSON" where it is asked for.
const ASKING: &str = "in as a one within valid with using return output only";

/// How a request wants what it asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerForm {
    /// Each text between an opening and a closing tag.
    Tags {
        /// Such as `<prompt>`.
        open: String,
        /// Such as `</prompt>`.
        close: String,
    },
    /// Between lines of three backticks.
    Fence,
    /// Under headings `[[ ## name ## ]]`, as DSPy's chat adapter reads them.
    Fields(Vec<String>),
    /// A JSON object with these keys.
    Object(Vec<String>),
    /// A JSON array of texts.
    Array,
    /// Nothing but the text.
    Plain,
}

impl AnswerForm {
    /// The form that a request asks for at its end, or, for DSPy's adapters, in its system message.
    pub(super) fn of(request: &ChatRequest) -> Self {
        let system = request::system(request);
        if let Some(names) = output_fields(system) {
            let json = system.contains("Outputs will be a JSON object");
            return if json {
                Self::Object(names)
            } else {
                Self::Fields(names)
            };
        }
        let user = router::first_user(request);
        let own = quoted::own_words(system, user);
        let noun = if own == user { "answer" } else { "prompt" };
        let beginning: String = own.chars().take(EDGE).collect();
        let mut parts = [end(&own), &beginning].into_iter();
        parts
            .find_map(|part| Self::stated(part, noun))
            .unwrap_or(Self::Plain)
    }

    /// The form that a text states for what the noun names.
    fn stated(text: &str, noun: &str) -> Option<Self> {
        if let Some((open, close)) = described_tags(text) {
            return Some(Self::Tags { open, close });
        }
        let is_fence = || quoted::without_quotations(text).contains("```");
        json_form(text, noun).or_else(|| is_fence().then_some(Self::Fence))
    }

    /// How many texts a request asks for: "I wrote 2 different improved prompts".
    pub(super) fn count(request: &ChatRequest) -> usize {
        const TEXTS: [&str; 3] = ["prompts", "reasons", "variations"];
        let own = quoted::own_words(request::system(request), router::first_user(request));
        let words: Vec<String> = end(&own)
            .split_whitespace()
            .map(|word| {
                word.trim_matches(|character: char| !character.is_alphanumeric())
                    .to_lowercase()
            })
            .collect();
        words
            .iter()
            .enumerate()
            .filter_map(|(at, word)| Some((at, word.parse::<usize>().ok()?)))
            .find(|(at, _)| {
                words[at + 1..]
                    .iter()
                    .take(3)
                    .any(|word| TEXTS.contains(&word.as_str()))
            })
            .map_or(1, |(_, count)| count.clamp(1, MOST_TEXTS))
    }

    /// The answer that holds the texts. Where there is one place for a text the first is given.
    pub(super) fn write(&self, texts: &[String]) -> String {
        let first = texts.first().map(String::as_str).unwrap_or_default();
        match self {
            Self::Tags { open, close } => {
                let parts: Vec<String> = texts
                    .iter()
                    .map(|text| format!("{open}\n{text}\n{close}"))
                    .collect();
                parts.join("\n")
            }
            Self::Fence => format!("```\n{first}\n```"),
            Self::Fields(names) => {
                let fields =
                    filled(names, first).map(|(name, text)| format!("[[ ## {name} ## ]]\n{text}\n\n"));
                fields.chain(["[[ ## completed ## ]]".to_owned()]).collect()
            }
            Self::Object(names) => {
                let object: Map<String, Value> = filled(names, first)
                    .map(|(name, text)| (name.to_owned(), text.into()))
                    .collect();
                Value::Object(object).to_string()
            }
            Self::Array => Value::from(texts).to_string(),
            Self::Plain => texts.join("\n\n"),
        }
    }
}

/// Fields with what is said in them: the text where a prompt is asked for, else in the last; some words on the way there
/// in the others.
fn filled<'a>(names: &'a [String], text: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let place = names
        .iter()
        .position(|name| names_prompt(name))
        .unwrap_or(names.len().saturating_sub(1));
    names.iter().enumerate().map(move |(at, name)| {
        let words = if at == place {
            text
        } else {
            "I went through what is given and kept to it."
        };
        (name.as_str(), words)
    })
}

/// What stands at the end of a message, where instructions are.
fn end(text: &str) -> &str {
    let start = text.char_indices().rev().nth(EDGE).map_or(0, |(at, _)| at);
    &text[start..]
}

/// The names of the fields that DSPy's adapters ask for in a system message.
fn output_fields(system: &str) -> Option<Vec<String>> {
    let (_, after) = system.split_once("Your output fields are:")?;
    let list = after
        .split_once("All interactions will be structured")
        .map_or(after, |(list, _)| list);
    let names = list
        .lines()
        .filter_map(|line| line.split_once(". `").and_then(|(_, rest)| rest.split_once('`')))
        .map(|(name, _)| name.to_owned());
    Some(names.collect())
}

/// The last pair of tags that a text speaks of instead of quoting something between them.
fn described_tags(text: &str) -> Option<(String, String)> {
    let mut found = None;
    for (at, _) in text.match_indices('<') {
        let Some(name) = text[at + 1..].split_once('>').map(|(name, _)| name) else {
            continue;
        };
        let is_name = |name: &str| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|character| character.is_alphanumeric() || character == '_')
        };
        if !is_name(name) {
            continue;
        }
        let rest = &text[at + name.len() + 2..];
        let next = rest
            .split_once('<')
            .and_then(|(between, rest)| Some((between, rest.split_once('>')?.0)));
        let Some((between, closing)) = next else { continue };
        let closes = closing.strip_prefix('/') == Some(name) || closing.eq_ignore_ascii_case("end");
        if closes && is_mention(between) {
            found = Some((format!("<{name}>"), format!("<{closing}>")));
        }
    }
    found
}

/// JSON, where a text asks for it, with the most keys that it names, or else a noun.
fn json_form(text: &str, noun: &str) -> Option<AnswerForm> {
    let lower = text.to_ascii_lowercase();
    let is_asked = |at: &usize| {
        let (before, behind) = (
            lower[..*at].split_whitespace().last(),
            &lower[at + "json".len()..],
        );
        let mut next = [":", " object", " format"].iter();
        before.is_some_and(|word| is_of(ASKING, word)) || next.any(|next| behind.starts_with(next))
    };
    let said = lower.match_indices("json").map(|(at, _)| at).filter(is_asked);
    let orders = said.map(|at| &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..]);
    let (order, keys) = orders
        .map(|order| (order, keys(order)))
        .max_by_key(|(_, keys)| keys.len())?;
    let is_array = ["array", "list"].iter().any(|kind| order.contains(kind));
    Some(match (keys.is_empty(), is_array) {
        (true, true) => AnswerForm::Array,
        (true, false) => AnswerForm::Object(vec![noun.to_owned()]),
        (false, _) => AnswerForm::Object(keys),
    })
}

/// The keys of the JSON object that an order shows, `{"prompt": …}`, or lists, "with the keys `reason` and `prompt`".
fn keys(text: &str) -> Vec<String> {
    let text = text.replace(['\'', '`', '“', '”'], "\"");
    let is_name = |key: &&str| {
        !key.is_empty()
            && key
                .chars()
                .all(|character| character.is_alphanumeric() || character == '_')
    };
    let (order, next) = text.split_once("\n\n").unwrap_or((&text, ""));
    let shown = order
        .split_once('{')
        .or_else(|| Some(("", next.strip_prefix('{')?)));
    let found: Vec<&str> = if let Some((_, shown)) = shown {
        // What follows the last colon is a value.
        let keys = shown.rsplit_once("\":").map_or("", |(keys, _)| keys).split("\":");
        keys.filter_map(|part| Some(part.rsplit_once('"')?.1)).collect()
    } else if let Some((_, listed)) = order.split_once(" key").or_else(|| order.split_once(" field")) {
        let listed = listed
            .trim_start_matches('s')
            .split(['.', '\n'])
            .next()
            .unwrap_or_default();
        let named = listed.split_whitespace().take(usize::from(!listed.contains('"')));
        named.chain(listed.split('"').skip(1).step_by(2)).collect()
    } else {
        Vec::new()
    };
    found.into_iter().filter(is_name).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use capo_core::llm::Message;

    use super::*;

    fn asked(text: &str) -> AnswerForm {
        AnswerForm::of(&ChatRequest::new(vec![Message::user(text)]))
    }

    fn tags(open: &str, close: &str) -> AnswerForm {
        AnswerForm::Tags {
            open: open.to_owned(),
            close: close.to_owned(),
        }
    }

    fn object(keys: &[&str]) -> AnswerForm {
        AnswerForm::Object(keys.iter().map(|&key| key.to_owned()).collect())
    }

    #[test]
    fn the_form_is_the_one_that_was_asked_for() {
        for (text, form) in [
            (
                "Return the prompt between <prompt> and </prompt>, and nothing after it.",
                tags("<prompt>", "</prompt>"),
            ),
            (
                "Start it with <new_prompt> and end it with </new_prompt>.",
                tags("<new_prompt>", "</new_prompt>"),
            ),
            (
                "A prompt bracketed with <prompt> and ending it with </prompt> that is new.",
                tags("<prompt>", "</prompt>"),
            ),
            (
                "Format:\n<prompt>new prompt</prompt>",
                tags("<prompt>", "</prompt>"),
            ),
            (
                "<PROMPT>Be kind.</PROMPT>\nWrap each reason with <START> and <END>.",
                tags("<START>", "<END>"),
            ),
            (
                "Each prompt is wrapped with <START> and </START>.",
                tags("<START>", "</START>"),
            ),
            (
                "Provide the new instructions within ``` blocks.",
                AnswerForm::Fence,
            ),
            (
                "Answer in JSON: {\"reason\": \"…\", \"prompt\": \"…\"}",
                object(&["reason", "prompt"]),
            ),
            ("Write 3 prompts in JSON format, as an array.", AnswerForm::Array),
            (
                "Return JSON: {\"why\": \"…\", \"prompt\": \"…\"}\n\nagent calls: get({\"id\": 3})\nAnswer with JSON.",
                object(&["why", "prompt"]),
            ),
            (
                "Respond with a JSON object with the keys \"why\" and `text`.\n\nagent calls: get({\"id\": 3})",
                object(&["why", "text"]),
            ),
            ("Give one JSON object.", object(&["answer"])),
            ("Improve it, using JSON.\nPrompt: Be kind.", object(&["prompt"])),
            (
                "Prompt: Be kind.\n\nImprove it. Output JSON with the key new_prompt.",
                object(&["new_prompt"]),
            ),
            (
                "Prompt: Be kind.\n\nImprove it. Use only JSON:\n\n{'better_prompt': '…'}",
                object(&["better_prompt"]),
            ),
            (
                "Prompt: Be kind.\n\nImprove it in 2 ways. Return JSON, a list.",
                AnswerForm::Array,
            ),
            (
                "Improve it.\nPrompt: Answer in JSON, {\"label\": 1}, within <a> and </a>.",
                AnswerForm::Plain,
            ),
            (
                "Improve it.\nPrompt: Answer in JSON.\n\nReturn the new prompt between <a> and </a>.",
                tags("<a>", "</a>"),
            ),
            (
                "Current prompt:\n```\nBe kind.\n```\n\nReturn only the new prompt.",
                AnswerForm::Plain,
            ),
            (
                "Current prompt:\n```\nBe kind.\n```\n\nReturn it as\n```\n{new prompt}\n```",
                AnswerForm::Fence,
            ),
            ("Input: Be kind.\nOutput:", AnswerForm::Plain),
        ] {
            assert_eq!(asked(text), form, "{text}");
        }
    }

    #[test]
    fn fields_are_read_off_the_system_message() {
        let system = "Your input fields are:\n1. `question` (str):\nYour output fields are:\n1. `reasoning` (str): \n2. `proposed_instruction` (str): An instruction.\nAll interactions will be structured in the following way.";
        let request = ChatRequest::new(vec![
            Message::system(system),
            Message::user("[[ ## question ## ]]\nWhy?"),
        ]);
        let form = AnswerForm::of(&request);
        assert_eq!(
            form,
            AnswerForm::Fields(vec!["reasoning".into(), "proposed_instruction".into()])
        );
        let answer = form.write(&["Be kind.".to_owned()]);
        assert!(
            answer.contains("[[ ## proposed_instruction ## ]]\nBe kind.\n"),
            "{answer}"
        );
        assert!(answer.ends_with("[[ ## completed ## ]]"), "{answer}");
    }

    #[test]
    fn the_number_of_texts_is_read() {
        let count = |text: &str| AnswerForm::count(&ChatRequest::new(vec![Message::user(text)]));
        assert_eq!(count("I wrote 2 different improved prompts."), 2);
        assert_eq!(count("Give 4 reasons why the prompt fails."), 4);
        assert_eq!(count("Write 1000 prompts."), MOST_TEXTS);
        assert_eq!(count("This is variant 2 of 3. Return the prompt."), 1);
        assert_eq!(count("Improve it.\nPrompt: Write 3 prompts for a painter."), 1);
        // The form may be told first.
        let evidence = "agent: hello\n".repeat(99);
        let told = format!("Rewrite the prompt within ``` blocks.\n<prompt>Be kind.</prompt>\n{evidence}");
        assert_eq!(asked(&told), AnswerForm::Fence);
    }

    #[test]
    fn every_form_holds_the_text() {
        let texts = ["Be kind.".to_owned(), "Be \"calm\".".to_owned()];
        assert_eq!(
            tags("<A>", "</A>").write(&texts),
            "<A>\nBe kind.\n</A>\n<A>\nBe \"calm\".\n</A>"
        );
        assert_eq!(AnswerForm::Fence.write(&texts), "```\nBe kind.\n```");
        assert_eq!(AnswerForm::Array.write(&texts), r#"["Be kind.","Be \"calm\"."]"#);
        let object = AnswerForm::Object(vec!["why".into(), "prompt".into()]).write(&texts);
        assert_eq!(
            serde_json::from_str::<Value>(&object).unwrap()["prompt"],
            "Be kind."
        );
    }
}
