//! What the critic's and the rewriter's requests hold, read by their headings as a model would.

/// A metric that a request speaks about.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Issue {
    /// The metric's name.
    pub(super) metric: String,
    /// Signed and scaled distance to the threshold for a constraint (positive is violated); the
    /// distance to 1 for the objective.
    pub(super) residual: f64,
    /// The multiplier; 1 for the objective.
    pub(super) weight: f64,
    /// Whether this is the objective.
    pub(super) objective: bool,
}

/// What a request to criticise or rewrite a prompt holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Review<'a> {
    /// The objective first, then the constraints, as far as the request states them.
    pub(super) issues: Vec<Issue>,
    /// The prompt under review.
    pub(super) prompt: &'a str,
    /// The most characters the new prompt may have.
    pub(super) max_characters: Option<usize>,
    /// The critic's words or traces; empty when there are none.
    pub(super) feedback: &'a str,
    /// Which of several variants is asked for, from 1.
    pub(super) variant: usize,
}

/// Reads a request. `None` when it holds no prompt between `<prompt>` and `</prompt>`.
pub(super) fn read(request: &str) -> Option<Review<'_>> {
    let prompt = block(request, "prompt")?;
    let prompt_start = prompt.as_ptr() as usize - request.as_ptr() as usize;
    let before = &request[..prompt_start];
    let after = &request[prompt_start + prompt.len()..];
    let measured = section(after, &["measured", "scores", "results", "goal"])
        .or_else(|| section(before, &["goal", "measured", "scores", "results"]))
        .unwrap_or(before);
    let feedback =
        section(after, &["feedback", "evidence", "failures", "errors", "critique"]).unwrap_or_default();
    let feedback = if matches!(feedback.trim(), "(none)" | "none" | "None") {
        ""
    } else {
        feedback.trim()
    };
    Some(Review {
        issues: measured.lines().filter_map(issue).collect(),
        prompt,
        max_characters: number_after(measured, "at most")
            .filter(|limit| *limit >= 1.0)
            .map(|limit| limit as usize),
        feedback,
        variant: number_after(after, "variant").map_or(1, |number| number.max(1.0) as usize),
    })
}

/// The text between the first `<name>` and the next `</name>`, without the line breaks around it.
pub(super) fn block<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    blocks(text, name).into_iter().next()
}

/// The texts between each `<name>` and the next `</name>`.
pub(super) fn blocks<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(&open) {
        let Some((inside, after)) = after.split_once(&close) else {
            break;
        };
        found.push(inside.trim_matches('\n'));
        rest = after;
    }
    found
}

/// The text under the first `## heading` that holds one of the words, up to the next `## `.
fn section<'a>(text: &'a str, words: &[&str]) -> Option<&'a str> {
    for word in words {
        let mut start = None;
        let mut offset = 0;
        for line in text.split_inclusive('\n') {
            if let Some(heading) = line.strip_prefix("## ") {
                match start {
                    Some(start) => return Some(&text[start..offset]),
                    None if heading.to_lowercase().contains(word) => start = Some(offset + line.len()),
                    None => {}
                }
            }
            offset += line.len();
        }
        if let Some(start) = start {
            return Some(&text[start..]);
        }
    }
    None
}

/// Reads a line such as ``- `calls` ≤ 1.050: now 1.300, residual +0.250 (violated), weight 1.40``.
fn issue(line: &str) -> Option<Issue> {
    let lower = line.to_lowercase();
    let metric = line.split('`').nth(1)?.to_owned();
    let objective =
        lower.contains("maximi") || lower.contains("objective") || lower.contains("higher is better");
    let residual = if objective {
        let value = number_after(&lower, "now").or_else(|| number_after(&lower, ":"))?;
        (1.0 - value).clamp(0.0, 1.0)
    } else {
        number_after(&lower, "residual").or_else(|| {
            let cost = number_after(&lower, "now").or_else(|| number_after(&lower, "mean"))?;
            let threshold = number_after(&lower, "threshold").or_else(|| number_after(&lower, "≤"))?;
            Some(cost - threshold)
        })?
    };
    Some(Issue {
        metric,
        residual,
        weight: number_after(&lower, "weight").unwrap_or(1.0),
        objective,
    })
}

/// The first number after a word, with at most a few other characters between.
pub(super) fn number_after(text: &str, word: &str) -> Option<f64> {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(word) {
        let trimmed = after
            .trim_start_matches(|character: char| !character.is_ascii_digit() && !"+-\n".contains(character));
        let skipped = after.len() - trimmed.len();
        let length = trimmed
            .char_indices()
            .find(|&(index, character)| {
                !(character.is_ascii_digit() || character == '.' || (index == 0 && "+-".contains(character)))
            })
            .map_or(trimmed.len(), |(index, _)| index);
        if skipped <= 12
            && let Ok(number) = trimmed[..length].trim_end_matches('.').parse()
        {
            return Some(number);
        }
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const REWRITE: &str = "You improve the system prompt of an AI agent.\n\n## Deployment\nA shop.\n\n## Goal\nMaximise `success` (now 0.450, weight 1.00) subject to:\n- `human_requests` ≤ 0.350 calls per dialogue: now 0.600, residual +0.250 (violated), weight 2.20\n- `prompt_length` ≤ 5.000 thousand characters: now 0.120, residual -1.220 (satisfied), weight 0.00\nThe new prompt may have at most 5000 characters; the current one has 120.\n\n## Current system prompt\n<prompt>\nYou are kind.\nBe brief.\n</prompt>\n\n## Feedback\nToo many handovers.\n\n## Your answer\nThis is variant 2 of 3. Return it between <prompt> and </prompt>.";

    #[test]
    fn a_rewriting_request_is_understood() {
        let review = read(REWRITE).unwrap();
        assert_eq!(review.prompt, "You are kind.\nBe brief.");
        assert_eq!(review.feedback, "Too many handovers.");
        assert_eq!((review.max_characters, review.variant), (Some(5000), 2));
        let [success, handovers, length] = &review.issues[..] else {
            panic!("{:?}", review.issues)
        };
        assert!(success.objective && (success.residual - 0.55).abs() < 1e-9);
        assert_eq!((handovers.residual, handovers.weight), (0.25, 2.2));
        assert_eq!((length.residual, length.weight), (-1.22, 0.0));
    }

    #[test]
    fn no_feedback_is_empty() {
        let request = REWRITE.replace("Too many handovers.", "(none)");
        assert_eq!(read(&request).unwrap().feedback, "");
    }

    #[test]
    fn a_request_without_a_prompt_is_none() {
        assert_eq!(read("Write me a poem."), None);
    }

    #[test]
    fn numbers_are_found_after_their_word() {
        assert_eq!(
            number_after("residual -0.25 (satisfied)", "residual"),
            Some(-0.25)
        );
        assert_eq!(number_after("weight: 3.", "weight"), Some(3.0));
        assert_eq!(number_after("no weight here", "weight"), None);
    }
}
