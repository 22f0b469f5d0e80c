//! The form in which a request wants its answer: tags, a fence, fields, JSON or plain text.

use capo_core::llm::ChatRequest;
use serde_json::{Map, Value};

use super::quoted::{is_mention, names_prompt};
use super::request;
use super::router::{self, EDGE};

/// The most texts written for one request, however many it asks for.
const MOST_TEXTS: usize = 16;

/// The words with which JSON is asked for.
const JSON: [&str; 5] = ["in json", "as json", "a json", "within json", "valid json"];

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
        let end = end(router::first_user(request));
        if let Some((open, close)) = described_tags(end) {
            return Self::Tags { open, close };
        }
        let lower = end.to_ascii_lowercase();
        if let Some(at) = JSON.iter().filter_map(|words| lower.rfind(words)).max() {
            let keys = keys(&end[at..]);
            return if keys.is_empty() {
                Self::Array
            } else {
                Self::Object(keys)
            };
        }
        if end.contains("```") && !end.trim_end().ends_with("```") {
            return Self::Fence;
        }
        Self::Plain
    }

    /// How many texts a request asks for: "I wrote 2 different improved prompts".
    pub(super) fn count(request: &ChatRequest) -> usize {
        const TEXTS: [&str; 3] = ["prompts", "reasons", "variations"];
        let words: Vec<String> = end(router::first_user(request))
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

/// The keys of a JSON object that a text shows: `{"prompt": …}`.
fn keys(text: &str) -> Vec<String> {
    let Some((_, shown)) = text.split_once('{') else {
        return Vec::new();
    };
    let is_name = |key: &&str| {
        !key.is_empty()
            && key
                .chars()
                .all(|character| character.is_alphanumeric() || character == '_')
    };
    // What follows the last colon is a value.
    let Some((keys, _)) = shown.rsplit_once("\":") else {
        return Vec::new();
    };
    keys.split("\":")
        .filter_map(|part| part.rsplit_once('"'))
        .map(|(_, key)| key)
        .filter(is_name)
        .map(str::to_owned)
        .collect()
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
                AnswerForm::Object(vec!["reason".into(), "prompt".into()]),
            ),
            ("Write 3 prompts in JSON format, as an array.", AnswerForm::Array),
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
