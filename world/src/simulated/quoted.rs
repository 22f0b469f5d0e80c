//! The prompts that a request quotes: in tags, fences, fields, after labels, or in a list with scores.

use super::asking::is_of;
use super::labels::{is_prompt_tag, labelled_prompts};
use super::text::blocks;

/// The prompt that a request is about, with what stands before and after it; `None` when it quotes none.
pub(super) fn split_at_prompt<'a>(system: &str, request: &'a str) -> Option<[&'a str; 3]> {
    let prompt = current_prompt(system, request)?;
    let (before, rest) = request.split_at(prompt.as_ptr() as usize - request.as_ptr() as usize);
    let (prompt, after) = rest.split_at(prompt.len());
    Some([before, prompt, after])
}

/// The prompt that a request is about: where it stands, however it is quoted.
fn current_prompt<'a>(system: &str, request: &'a str) -> Option<&'a str> {
    let tagged = |tags: &[&str]| {
        let mut quoted = tags.iter().flat_map(|tag| blocks(request, tag));
        quoted.find(|text| !is_mention(text))
    };
    in_fields(request).or_else(|| tagged(&TAGS)).or_else(|| {
        let labelled = labelled_prompts(system, request).into_iter().next();
        // What a labelled prompt quotes below its first line is its own.
        let is_apart = |quoted: &&str| {
            let inside = |labelled: &str| (quoted.as_ptr() as usize).checked_sub(labelled.as_ptr() as usize);
            let before = labelled.and_then(|labelled| labelled.get(..inside(labelled)?));
            before.is_none_or(|before| !before.trim().contains('\n'))
        };
        let quoted = tagged(&["instruction", "instructions"])
            .or_else(|| in_fence(request))
            .or_else(|| in_quotation_marks(request))
            .or_else(|| best_of_list(request))
            .or_else(|| in_named_tag(request));
        quoted.filter(is_apart).or(labelled)
    })
}

const TAGS: [&str; 4] = ["prompt", "PROMPT", "current_prompt", "current_instruction"];

/// Whether a text between tags shows that they are mentioned and quote nothing, as in "between <prompt> and </prompt>" or "starting with <prompt> and
/// ending with </prompt>", or stand around what is to be filled in, as in "<prompt>{the new prompt}</prompt>".
pub(super) fn is_mention(text: &str) -> bool {
    let text = text.trim();
    let stands_in = |(open, close): (char, char)| text.starts_with(open) && text.ends_with(close);
    let is_blank = [('{', '}'), ('[', ']'), ('<', '>')].into_iter().any(stands_in) && !text.contains('"');
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
    // A sentence may speak of fences, as in "within ``` blocks".
    let opens = |after: &str| !after.lines().next().unwrap_or_default().contains([' ', '`']);
    let mut rest = request;
    while let Some((at, _)) = rest.match_indices("```").find(|(at, _)| opens(&rest[at + 3..])) {
        let (_, after) = rest[at..].split_once('\n')?;
        let end = after.find("\n```")?;
        if rest[..at].trim_end().lines().last().is_some_and(announces) {
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
    let names = opened.map(|(name, _)| name).filter(|name| is_prompt_tag(name));
    let mut quoted = names.take(9).flat_map(|name| blocks(request, name));
    quoted.find(|text| !is_mention(text)).map(str::trim)
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
pub(super) fn prompts<'a>(needed: usize, system: &str, instruction: &'a str) -> Vec<&'a str> {
    let tagged = tagged_prompts(instruction);
    // Where two are needed a single prompt in tags beside labels is one made earlier, shown as an example.
    if tagged.len() >= needed {
        return tagged;
    }
    let labelled = labelled_prompts(system, instruction);
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

/// What a request says itself, with a mark where it quotes a prompt.
pub(super) fn own_words(system: &str, request: &str) -> String {
    let prompts = labelled_prompts(system, request).into_iter();
    let prompts = prompts.chain(current_prompt(system, request));
    prompts.fold(request.to_owned(), |own, prompt| own.replace(prompt, "(…)"))
}

/// A text without what it quotes in tags, but for those around what is wanted, and in fences that quote something.
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
    let parts: Vec<&str> = own.split("\n```").collect();
    let is_outside = |at: usize| at.is_multiple_of(2) || at + 1 == parts.len();
    let outside = parts.iter().enumerate().filter_map(|(at, part)| {
        // A fence around what is to be filled in is asked for.
        let is_wanted = || part.split_once('\n').is_some_and(|(_, text)| is_mention(text));
        if is_outside(at) {
            Some(*part)
        } else {
            is_wanted().then_some("```")
        }
    });
    outside.collect::<Vec<_>>().join("\n")
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
            assert_eq!(prompts(needed, "", &request), [BRIEF, CAREFUL], "{request}");
        }
        let one = format!("Paraphrase the prompt.\nPrompt: {BRIEF}\nOutput:");
        assert_eq!(prompts(1, "", &one), [BRIEF]);
        let tagged = format!("Paraphrase this prompt:\n<prompt>\n{BRIEF}\n</prompt>");
        assert_eq!(prompts(1, "", &tagged), [BRIEF]);
        assert_eq!(prompts(1, "", "Mutate the prompt."), [""; 0]);
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
            format!("Current prompt: {BRIEF}\n\nPlease make it kinder, and write an improved\nprompt."),
            format!("Prompt: {BRIEF} Improve it.\n\nReturn only the new prompt."),
            format!("Prompt: \"{BRIEF}\" Rewrite it."),
            format!("System prompt:\n{BRIEF}\n\n<feedback>\nIt is curt.\n</feedback>\n\nImprove it."),
            format!("Here is the prompt:\n{BRIEF}\nProblems:\n- It is curt.\n"),
            format!("## Candidate prompt\n{BRIEF}\n\nImprove the prompt."),
            format!("Agent prompt:\n{BRIEF}\n\nWhat went wrong:\nIt is curt.\n"),
            format!("Seed prompt: {BRIEF}\nPut the new prompt between <new> and </new>."),
            format!("Current instructions: {BRIEF}\n\n## Errors\nThey leave."),
            format!(
                "Instruction: Rewrite the prompt.\nThe old prompt: {BRIEF}\n\nReply with the new prompt."
            ),
            format!("Instruction: {BRIEF}\n\nReturn the new prompt within ``` blocks."),
            format!("Return it within ``` blocks.\n\nCurrent prompt:\n```\n{BRIEF}\n```\n"),
            format!("I wrote this. My current prompt is:\n{BRIEF}\n\nBut it gets the following wrong:\nHi"),
        ] {
            assert_eq!(current_prompt("", &request), Some(BRIEF), "{request}");
        }
        let inner = "My prompt is: \"Say \"Hi\" to all.\" Improve it.";
        assert_eq!(current_prompt("", inner), Some("Say \"Hi\" to all."));
        for own in [
            "Be brief.\nFollow the instructions:\n```\ncheck\n```",
            "<role>\nclerk\n</role>\n<instructions>\nBe exact.\n</instructions>",
            "Be kind.\nSay this prompt:\n\"\"\"\nHi\n\"\"\"",
        ] {
            let request = format!("Improve it.\nCurrent prompt:\n{own}\n\nFeedback:\nCurt.");
            assert_eq!(current_prompt("", &request), Some(own), "{request}");
        }
        for request in [
            "Write a poem between <prompt> and </prompt>.",
            "My delivery instructions are: leave it at the door.",
            "## Instructions\nWrite a letter.\n\n## Letter\nDear all,",
        ] {
            assert_eq!(current_prompt("", request), None, "{request}");
        }
    }
}
