//! The prompts that a request quotes: in tags, fences, fields, after labels, or in a list with scores.

use super::asking::{is_of, means_prompt};
use super::text::{blocks, words};

/// The prompt that a request is about, with what stands before and after it; `None` when it quotes none.
pub(super) fn split_at_prompt(request: &str) -> Option<[&str; 3]> {
    let prompt = current_prompt(request)?;
    let (before, rest) = request.split_at(prompt.as_ptr() as usize - request.as_ptr() as usize);
    let (prompt, after) = rest.split_at(prompt.len());
    Some([before, prompt, after])
}

/// The prompt that a request is about: where it stands, however it is quoted.
fn current_prompt(request: &str) -> Option<&str> {
    in_fields(request)
        .or_else(|| {
            let mut quoted = TAGS.iter().flat_map(|tag| blocks(request, tag));
            quoted.find(|text| !is_mention(text))
        })
        .or_else(|| in_fence(request))
        .or_else(|| in_quotation_marks(request))
        .or_else(|| after_is(request))
        .or_else(|| best_of_list(request))
        .or_else(|| in_named_tag(request))
        .or_else(|| under_heading(request))
        .or_else(|| labelled_prompts(request).into_iter().next())
}

const TAGS: [&str; 6] = [
    "prompt",
    "PROMPT",
    "current_prompt",
    "current_instruction",
    "instruction",
    "instructions",
];

/// Whether a text between tags shows that they are mentioned and quote nothing, as in "between <prompt> and </prompt>" or "starting with <prompt> and
/// ending with </prompt>", or stand around what is to be filled in, as in "<prompt>{the new prompt}</prompt>".
pub(super) fn is_mention(text: &str) -> bool {
    let text = text.trim();
    let is_blank = text.starts_with('{') && text.ends_with('}') && !text.contains('"');
    matches!(text, "" | "and" | "new prompt" | "...")
        || (text.len() < 40 && (text.starts_with("and ") || is_blank))
}

/// What stands around the name of a field in the requests of DSPy's chat adapter, on a line of its own.
const FIELD: (&str, &str) = ("[[ ## ", " ## ]]");

/// What DSPy writes after the last field.
const AFTER_FIELDS: &str = "Respond with the corresponding output fields";

/// The fields of a request, as (name, text).
fn fields(request: &str) -> Vec<(&str, &str)> {
    let request = request
        .rsplit_once(AFTER_FIELDS)
        .map_or(request, |(fields, _)| fields);
    let mut found = Vec::new();
    let mut open: Option<(&str, usize)> = None;
    let mut offset = 0;
    for line in request.split_inclusive('\n') {
        let name = line
            .trim_end()
            .strip_prefix(FIELD.0)
            .and_then(|rest| rest.strip_suffix(FIELD.1));
        if let Some(name) = name
            && let Some((name, start)) = open.replace((name, offset + line.len()))
        {
            found.push((name, request[start..offset].trim()));
        }
        offset += line.len();
    }
    if let Some((name, start)) = open {
        found.push((name, request[start..].trim()));
    }
    found
}

fn in_fields(request: &str) -> Option<&str> {
    // A request of fields begins with one; elsewhere they are quoted.
    if !request.trim_start().starts_with(FIELD.0) {
        return None;
    }
    let mut prompts = fields(request);
    prompts.retain(|(name, text)| names_prompt(name) && !text.is_empty());
    let current = prompts.iter().find(|(name, _)| !name.contains("previous"));
    current.or(prompts.first()).map(|(_, text)| *text)
}

/// Whether a name says that it is a prompt's: `basic_instruction`, `Current prompt`.
pub(super) fn names_prompt(name: &str) -> bool {
    let name = name.to_lowercase();
    name.contains("instruction") || name.contains("prompt")
}

/// The first block between lines of three backticks that is announced as a prompt, or as what is searched in other words.
fn in_fence(request: &str) -> Option<&str> {
    let others = ["variable", "parameter value", "component"];
    let announces = |line: &str| names_prompt(line) || others.iter().any(|name| line.contains(name));
    let mut rest = request;
    while let Some((before, after)) = rest.split_once("```") {
        let (_, after) = after.split_once('\n')?;
        let end = after.find("\n```")?;
        if before.trim_end().lines().last().is_some_and(announces) {
            return Some(after[..end].trim());
        }
        rest = &after[end + "\n```".len()..];
    }
    None
}

/// What stands between three quotation marks that are announced as a prompt's.
fn in_quotation_marks(request: &str) -> Option<&str> {
    let parts: Vec<&str> = request.split("\"\"\"").collect();
    let mut quoted = parts.windows(3).step_by(2);
    let found = quoted.find(|part| part[0].trim_end().lines().last().is_some_and(names_prompt))?;
    Some(found[1].trim())
}

/// What stands in tags with the name of a prompt, as `<original_prompt>`.
fn in_named_tag(request: &str) -> Option<&str> {
    let opened = request.split('<').filter_map(|rest| rest.split_once('>'));
    let names = opened.map(|(name, _)| name).filter(|name| is_name(name));
    let mut quoted = names.take(9).flat_map(|name| blocks(request, name));
    quoted.find(|text| !is_mention(text)).map(str::trim)
}

/// What stands under a heading with the name of a prompt, as `## Current prompt`, up to the next of its rank.
fn under_heading(request: &str) -> Option<&str> {
    let rank = |line: &str| line.len() - line.trim_start_matches('#').len();
    let mut lines = request.split_inclusive('\n');
    let heading = lines.find(|line| rank(line) > 0 && is_name(line.trim_start_matches('#')))?;
    let start = heading.as_ptr() as usize - request.as_ptr() as usize + heading.len();
    let text = lines.take_while(|line| !(1..=rank(heading)).contains(&rank(line)));
    let end = start + text.map(str::len).sum::<usize>();
    Some(request[start..end].trim()).filter(|text| !text.is_empty())
}

/// Whether a tag or heading names the prompt that is there; bare instructions may be for whoever reads the request.
fn is_name(text: &str) -> bool {
    const WORDS: &str = "the my your current original existing initial seed old system lm template under review \
                         prompt variable instruction instructions";
    let text = text.to_lowercase().replace(['_', '-', ':'], " ");
    let nouns = [
        "prompt",
        "variable",
        "current instruction",
        "original instruction",
    ];
    nouns.iter().any(|noun| text.contains(noun)) && text.split_whitespace().all(|word| is_of(WORDS, word))
}

/// What follows "current prompt is:": up to the closing quotation mark, at the end of a line or before a sentence, or
/// else the last there is, where it begins with one; otherwise to the next empty line.
fn after_is(request: &str) -> Option<&str> {
    // Of the same length, so that places in one are places in the other.
    let lower = request.to_ascii_lowercase();
    let at = ["prompt is:", "instruction is:", "instructions are:"]
        .iter()
        .find_map(|label| {
            let (noun, _) = label.split_once(' ')?;
            let (at, _) = lower.match_indices(label).find(|(at, _)| {
                let line = words(lower[..*at].rsplit('\n').next().unwrap_or_default());
                means_prompt(line.last().map_or("", |word| word.text.as_str()), noun)
            })?;
            Some(at + label.len())
        })?;
    let rest = request[at..].trim_start();
    let text = match rest.strip_prefix('"') {
        Some(quoted) => {
            let closes = |at: &usize| {
                let after = &quoted[at + 1..];
                let next = after.trim_start_matches(' ');
                next.is_empty()
                    || next.starts_with(['\n', '\r'])
                    || next.len() < after.len() && next.starts_with(char::is_uppercase)
            };
            let mut marks = quoted.match_indices('"').map(|(at, _)| at);
            let end = marks.find(closes).or_else(|| quoted.rfind('"'));
            &quoted[..end.unwrap_or(quoted.len())]
        }
        None => rest.split_once("\n\n").map_or(rest, |(text, _)| text),
    };
    Some(text.trim()).filter(|text| !text.is_empty())
}

/// Of prompts with their scores, the best: `text:`, the prompt, `score: 61`.
fn best_of_list(request: &str) -> Option<&str> {
    let mut best: Option<(&str, f64)> = None;
    for part in request.split("text:\n").skip(1) {
        let scored = part.split_once("\nscore: ").and_then(|(text, score)| {
            let score = score.split_whitespace().next()?.parse().ok()?;
            Some((text.trim(), score))
        });
        if let Some((text, score)) = scored
            && best.is_none_or(|(_, known)| score >= known)
        {
            best = Some((text, score));
        }
    }
    best.map(|(text, _)| text)
}

/// The prompts a request quotes, of which `needed` are worked with: in numbered or plain tags, or else after labels.
pub(super) fn prompts(needed: usize, instruction: &str) -> Vec<&str> {
    let tagged = tagged_prompts(instruction);
    // Where two are needed a single prompt in tags beside labels is one made earlier, shown as an example.
    if tagged.len() >= needed {
        return tagged;
    }
    let labelled = labelled_prompts(instruction);
    if labelled.len() > tagged.len() {
        labelled
    } else {
        tagged
    }
}

/// The prompts in tags.
fn tagged_prompts(instruction: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for tag in [
        "prompt", "prompt1", "prompt2", "prompt_1", "prompt_2", "parent", "parent1", "parent2", "first",
        "second",
    ] {
        found.extend(
            blocks(instruction, tag)
                .into_iter()
                .filter(|text| !is_mention(text)),
        );
    }
    found
}

/// The prompts after labels such as `Prompt 1:`, up to the next label or step of the instruction. A
/// label that comes again, as after an example, counts where it stands last.
fn labelled_prompts(instruction: &str) -> Vec<&str> {
    let mut found: Vec<(String, &str)> = Vec::new();
    let mut open: Option<(String, usize)> = None;
    let mut offset = 0;
    for line in instruction.split_inclusive('\n') {
        let label = Label::of(line);
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

/// Keeps a prompt under its label's name, in place of an earlier one.
fn note<'a>(found: &mut Vec<(String, &'a str)>, name: String, prompt: &'a str) {
    if !prompt.is_empty() {
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
    fn of(line: &str) -> Option<Self> {
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
        if is_step || is_bare_step || asks_for_answer(&lower) {
            return Some(Self::Other);
        }
        let length = line.find(':')? + 1;
        let before = line[..length].to_lowercase();
        let words: Vec<&str> = before
            .split(|character: char| !character.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        if words.len() <= 3 && words.iter().any(|word| ABOUT_PROMPTS.contains(word)) {
            return Some(Self::Other);
        }
        let of_prompt = |word: &&str| {
            matches!(
                *word,
                "prompt"
                    | "parent"
                    | "first"
                    | "second"
                    | "basic"
                    | "original"
                    | "current"
                    | "input"
                    | "a"
                    | "b"
            ) || word.parse::<u8>().is_ok()
        };
        if !words
            .iter()
            .any(|word| matches!(*word, "prompt" | "parent" | "input" | "output"))
            || words.len() > 4
        {
            None
        } else if words.iter().all(of_prompt) {
            Some(Self::Prompt {
                name: words.join(" "),
                length,
            })
        } else {
            Some(Self::Other)
        }
    }
}

/// What the steps of an instruction are about, where they are no part of a prompt.
const STEPS: [&str; 4] = ["prompt", "mutate", "crossover", "different parts"];

/// The words of labels under which something is told about a prompt.
const ABOUT_PROMPTS: [&str; 8] = [
    "feedback", "critique", "example", "examples", "error", "errors", "task", "score",
];

/// A request without its labelled prompts, for who looks for what is wanted.
pub(super) fn without_labelled_prompts(request: &str) -> String {
    labelled_prompts(request)
        .into_iter()
        .fold(request.to_owned(), |text, prompt| text.replace(prompt, ""))
}

/// A text without what it quotes in tags, but for those around what is wanted, and in fences.
pub(super) fn without_quotations(text: &str) -> String {
    const WANTED: &str = "task goal objective instruction instructions";
    let mut own = "\n".to_owned();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        own.extend([before, " "]);
        let tag = after.split_once('>').filter(|(name, _)| name.len() < 40);
        let closed = tag.and_then(|(name, text)| Some((name, text.split_once(&format!("</{name}>"))?)));
        rest = match closed {
            Some((name, (text, after))) if !is_of(WANTED, name) && !is_mention(text) => after,
            _ => after,
        };
    }
    own.push_str(rest);
    let mut parts: Vec<&str> = own.split("\n```").collect();
    // What nothing closes is no fence.
    let open = if parts.len().is_multiple_of(2) {
        parts.pop()
    } else {
        None
    };
    parts
        .into_iter()
        .step_by(2)
        .chain(open)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Whether a line in lower case says what is to be answered: "Return the new prompt in the following format".
fn asks_for_answer(line: &str) -> bool {
    let mut words = line.split_whitespace();
    matches!(
        words.next(),
        Some("return" | "provide" | "generate" | "write" | "wrap")
    ) && words.any(|word| {
        ["prompt", "instruction", "variation", "format", "version"]
            .iter()
            .any(|text| word.contains(text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRIEF: &str = "Be brief.\n- Never repeat a call.";
    const CAREFUL: &str = "Ask before you change anything.";

    #[test]
    fn prompts_are_found_in_tags_and_after_labels() {
        for (needed, request) in [
            (
                2,
                format!("Combine both.\n<prompt>{BRIEF}</prompt>\n<prompt>{CAREFUL}</prompt>"),
            ),
            (
                2,
                format!(
                    "1. Crossover the following prompts and generate a new prompt:\nPrompt 1: {BRIEF}\nPrompt 2: {CAREFUL}\n2. Mutate the prompt generated in step 1 and put it between <prompt> and </prompt>."
                ),
            ),
            (
                2,
                format!(
                    "Crossover the prompts:\nPrompt 1: Sing.\nPrompt 2: Dance.\nNew prompt: <prompt>Sing and dance.</prompt>\n\nCrossover the prompts:\nPrompt 1: {BRIEF}\nPrompt 2: {CAREFUL}\nNew prompt:"
                ),
            ),
            (
                2,
                format!("Merge the two.\n\n## First parent:\n{BRIEF}\n\n## Second parent:\n{CAREFUL}\n"),
            ),
        ] {
            assert_eq!(prompts(needed, &request), [BRIEF, CAREFUL], "{request}");
        }
        let one = format!("Paraphrase the prompt.\nPrompt: {BRIEF}\nOutput:");
        assert_eq!(prompts(1, &one), [BRIEF]);
        let tagged = format!("Paraphrase this prompt:\n<prompt>\n{BRIEF}\n</prompt>");
        assert_eq!(prompts(1, &tagged), [BRIEF]);
        assert_eq!(prompts(1, "Mutate the prompt."), [""; 0]);
    }

    #[test]
    fn the_prompt_under_review_is_found_however_it_is_quoted() {
        for request in [
            format!("Improve this.\n<prompt>\n{BRIEF}\n</prompt>\nReturn it between <prompt> and </prompt>."),
            format!(
                "I gave an assistant these instructions:\n```\n{BRIEF}\n```\n\nExamples:\n```\nHi\n```\n"
            ),
            format!(
                "[[ ## tip ## ]]\nBe bold\n\n[[ ## basic_instruction ## ]]\n{BRIEF}\n\n[[ ## previous_instructions ## ]]\n"
            ),
            format!("My current prompt is:\n\"{BRIEF}\"\n\nBut it gets \"this\" wrong:\nHi\n"),
            format!("My current prompt is: <PROMPT>{BRIEF}</PROMPT>\nBut it gets this wrong:\nHi\n"),
            format!("The current instruction is:\n{BRIEF}\n\nWrite a better one."),
            format!(
                "Instructions with scores.\ntext:\n{CAREFUL}\nscore: 3\n\ntext:\n{BRIEF}\nscore: 61\n\nWrite a new one."
            ),
            format!("Improve it.\nCurrent prompt: {BRIEF}\nOutput:"),
            format!(
                "Vary it, starting with <prompt> and ending with </prompt>.\n\nInput: {BRIEF}\n\nOutput:"
            ),
            format!(
                "Rephrase it.\nPrompt: {BRIEF}\n\nReturn the new prompt in this format:\n<prompt>new prompt</prompt>"
            ),
            format!("Revise it.\n<original_prompt>\n{BRIEF}\n</original_prompt>\nInput: Hi\nOutput: Yes"),
            format!(
                "Better <VARIABLE> {BRIEF} </VARIABLE>: <NEW_VARIABLE>{{the variable}}</NEW_VARIABLE>, or <prompt>{{yours}}</prompt>."
            ),
            format!("Current prompt:\n\"\"\"\n{BRIEF}\n\"\"\"\nIt is curt."),
            format!("## Instructions\nRevise it.\n\n## Current prompt\n{BRIEF}\n\n## Feedback\nInput: Hi\n"),
            format!("The component being tuned:\n```\n{BRIEF}\n```\n"),
            format!("[[ ## previous_instruction ## ]]\n{BRIEF}\n\n[[ ## feedback ## ]]\nIt is curt."),
            format!("The assistant's instructions are: {BRIEF}\n\nRewrite them."),
            format!("Our delivery instructions are: ring.\nThe instructions are: {BRIEF}\n\nRewrite them."),
            format!("The prompt is: \"{BRIEF}\" Please improve it."),
            format!("My prompt is: \"{BRIEF}\" But it gets \"this\" wrong. Improve it."),
            format!("The prompt is: \"{BRIEF}\" Improve it.\nInput: \"Hi\"\n"),
        ] {
            assert_eq!(current_prompt(&request), Some(BRIEF), "{request}");
        }
        let inner = "My prompt is: \"Say \"Hi\" to all.\" Improve it.";
        assert_eq!(current_prompt(inner), Some("Say \"Hi\" to all."));
        for request in [
            "Write a poem between <prompt> and </prompt>.",
            "My delivery instructions are: leave it at the door.",
            "## Instructions\nWrite a letter.\n\n## Letter\nDear all,",
        ] {
            assert_eq!(current_prompt(request), None, "{request}");
        }
    }
}
