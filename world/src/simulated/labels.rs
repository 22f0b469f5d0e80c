//! The prompts that a request quotes after labels.

use super::asking::{asks_for_prompt, is_of};
use super::quoted::{NAMING, begins_order, is_name, names_prompt};

/// The prompts after labels such as `Prompt 1:`, up to the next label, step of the instruction or paragraph that asks for
/// something. A label that comes again, as after an example, counts where it stands last.
pub(super) fn labelled_prompts(instruction: &str) -> Vec<&str> {
    let mut found: Vec<(String, &str)> = Vec::new();
    let mut open: Option<(String, usize)> = None;
    let mut offset = 0;
    for line in instruction.split_inclusive('\n') {
        let is_apart = instruction[..offset].ends_with("\n\n")
            && open
                .as_ref()
                .is_some_and(|(_, start)| !instruction[*start..offset].trim().is_empty());
        let label = Label::of(&instruction[offset..], is_apart);
        if label.is_some()
            && let Some((name, start)) = open.take()
        {
            note(&mut found, name, instruction[start..offset].trim());
        }
        if let Some(Label::Prompt { name, length }) = label {
            open = Some((name, offset + length));
        }
        offset += line.len();
    }
    if let Some((name, start)) = open {
        note(&mut found, name, instruction[start..].trim());
    }
    found.into_iter().map(|(_, prompt)| prompt).collect()
}

/// Keeps a prompt under its label's name, in place of an earlier one. An instruction may be for who reads the request.
fn note<'a>(found: &mut Vec<(String, &'a str)>, name: String, prompt: &'a str) {
    if !(prompt.is_empty() || name == "instruction" && asks_for_prompt(prompt)) {
        found.retain(|(known, _)| *known != name);
        found.push((name, prompt));
    }
}

/// A line that begins a part of a request.
enum Label {
    /// A prompt follows after `length` bytes of the line.
    Prompt { name: String, length: usize },
    /// Something else follows.
    Other,
}

impl Label {
    /// What the rest of a request begins with, which may stand apart from a prompt, after an empty line.
    fn of(rest: &str, is_apart: bool) -> Option<Self> {
        let line = rest.lines().next().unwrap_or_default();
        let lower = line.to_lowercase();
        // "2. Mutate the prompt generated in step 1"
        let step = lower
            .split_once(". ")
            .is_some_and(|(number, _)| number.trim().parse::<u8>().is_ok());
        let is_step = step && STEPS.iter().any(|word| lower.contains(word));
        let is_bare_step = lower
            .trim()
            .strip_suffix('.')
            .is_some_and(|number| number.parse::<u8>().is_ok());
        if is_step
            || is_bare_step
            || asks_for_answer(&lower)
            || names_prompt(&lower) && asks_for_prompt(line)
            || is_apart && begins_order(rest)
        {
            return Some(Self::Other);
        }
        // `<feedback>`, `## Feedback`, `Feedback:`
        let tag = lower.trim().strip_prefix('<').and_then(|tag| tag.split_once('>'));
        let label = lower.split_once(':');
        let heading = lower.starts_with('#');
        let name = match tag.or(label) {
            Some((name, _)) => name,
            None if heading => lower.as_str(),
            None => return None,
        };
        let words: Vec<&str> = name
            .split(|character: char| !character.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        let words = words.strip_prefix(&["here", "is"]).unwrap_or(&words);
        let names = |known: &str| words.iter().any(|word| is_of(known, word));
        let is_alone = tag.is_some() || heading || lower.trim().ends_with(':');
        let is_of_prompt = names(NOUNS) || *words == ["instruction"] || is_name(&words.join(" "));
        if words.len() <= 3
            && (names(ABOUT_PROMPTS) || is_apart && is_alone && !names(NOUNS) && !names(IN_PROMPTS))
        {
            return Some(Self::Other);
        }
        if tag.is_some() || !is_of_prompt || words.len() > 4 {
            return None;
        }
        let length = line.find(':')? + 1;
        let known = |word: &&str| {
            is_of(NAMING, word)
                || is_of("parent first second basic input a b", word)
                || word.parse::<u8>().is_ok()
        };
        Some(if words.iter().all(known) {
            Self::Prompt {
                name: words.join(" "),
                length,
            }
        } else {
            Self::Other
        })
    }
}

/// What the steps of an instruction are about, where they are no part of a prompt.
const STEPS: [&str; 4] = ["prompt", "mutate", "crossover", "different parts"];

/// What labels of prompts, and of what is made from them, speak of.
const NOUNS: &str = "prompt parent input output";

/// The words of labels under which something is told about a prompt.
const ABOUT_PROMPTS: &str = "feedback critique example examples error errors task score problem problems issue issues \
                             failure failures complaint complaints weakness weaknesses mistake mistakes evidence";

/// The words of labels that prompts themselves have.
const IN_PROMPTS: &str = "rule rules steps guidelines style tone format policy tools instructions role notes";

/// A request without its labelled prompts, for who looks for what is wanted.
pub(super) fn without_labelled_prompts(request: &str) -> String {
    labelled_prompts(request)
        .into_iter()
        .fold(request.to_owned(), |text, prompt| text.replace(prompt, ""))
}

/// Whether a line in lower case says what is to be answered: "Return the new prompt in the following format".
fn asks_for_answer(line: &str) -> bool {
    const WANTED: &[&str] = &["```", "prompt", "instruction", "variation", "version", "format"];
    let mut words = line.split_whitespace();
    let verb = words.next().unwrap_or_default();
    let wanted = if is_of("return provide generate write wrap put", verb) {
        WANTED
    } else if is_of("answer respond reply", verb)
        && words.next().is_some_and(|word| is_of("with in as using", word))
    {
        // A prompt itself may say in which format to answer.
        &WANTED[..5]
    } else {
        return false;
    };
    words.any(|word| wanted.iter().any(|text| word.contains(text)))
}
