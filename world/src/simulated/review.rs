//! Reading of the critic's and the rewriter's requests, as a model would: by their headings, else by what stands
//! before and after the prompt.

use super::{labels, quoted};

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
    /// Whether the request states what the prompt measured.
    pub(super) is_measured: bool,
}

/// Reads a request, with the system message before it. `None` when it quotes no prompt.
pub(super) fn read<'a>(system: &str, request: &'a str) -> Option<Review<'a>> {
    let [before, prompt, after] = quoted::split_at_prompt(system, request)?;
    let measured = section(after, &["measured", "scores", "results", "goal"])
        .or_else(|| section(before, &["goal", "measured", "scores", "results"]))
        .unwrap_or(before);
    let mut issues: Vec<Issue> = measured.lines().filter_map(issue).collect();
    let sections = ["feedback", "evidence", "failures", "errors", "critique"];
    // A request without measurements tells what is wrong in words of its own, on one side of the prompt.
    let mut sides = [after, before].into_iter();
    let told = sides
        .find(|side| side.lines().any(labels::tells_of_prompt))
        .unwrap_or(after);
    let feedback = match section(after, &sections) {
        Some(feedback) if !issues.is_empty() => feedback.trim(),
        None if !issues.is_empty() => "",
        _ => told.trim(),
    };
    let is_measured = !issues.is_empty();
    if !is_measured {
        issues = implied_issues(told);
    }
    Some(Review {
        issues,
        prompt,
        max_characters: number_after(measured, "at most")
            .filter(|limit| *limit >= 1.0)
            .map(|limit| limit as usize),
        feedback: if matches!(feedback, "(none)" | "none" | "None") {
            ""
        } else {
            feedback
        },
        variant: number_after(after, "variant").map_or(1, |number| number.max(1.0) as usize),
        is_measured,
    })
}

impl<'a> Review<'a> {
    /// Of a prompt that is to be made better by what a request tells, in whatever words.
    pub(super) fn of(prompt: &'a str, evidence: &'a str) -> Self {
        Self {
            issues: implied_issues(evidence),
            prompt,
            max_characters: None,
            feedback: evidence,
            variant: 1,
            is_measured: false,
        }
    }
}

/// What a request without measurements of a prompt is about: that tasks be done right, half of which are taken to fail,
/// and every quantity that its examples state with a limit, as in `human_requests: 1 (limit 0.37)`.
fn implied_issues(evidence: &str) -> Vec<Issue> {
    let mut issues = vec![Issue {
        metric: "success".to_owned(),
        residual: 0.5,
        weight: 1.0,
        objective: true,
    }];
    let mut counts: Vec<f64> = Vec::new();
    for line in evidence.lines() {
        let lower = line.to_lowercase();
        let limit = ["limit", "threshold", "at most", "allowed"]
            .iter()
            .find_map(|word| number_after(&lower, word));
        let named = line.trim_start_matches(['-', '*', ' ']).split_once([':', '=']);
        let (Some(limit), Some((name, value))) = (limit, named) else {
            continue;
        };
        let name = name.trim().trim_matches('`');
        let is_name = name.len() < 40 && name.chars().all(|c| c.is_alphanumeric() || "_- ".contains(c));
        let value = value
            .split_whitespace()
            .next()
            .and_then(|value| value.parse::<f64>().ok());
        let (true, Some(value)) = (is_name, value) else {
            continue;
        };
        let excess = value - limit;
        match issues.iter().position(|issue| issue.metric == name) {
            // The mean over the examples.
            Some(at) if at > 0 => {
                counts[at - 1] += 1.0;
                issues[at].residual += (excess - issues[at].residual) / counts[at - 1];
            }
            Some(_) => {}
            None => {
                counts.push(1.0);
                issues.push(Issue {
                    metric: name.to_owned(),
                    residual: excess,
                    weight: 1.0,
                    objective: false,
                });
            }
        }
    }
    issues
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
        let review = read("", REWRITE).unwrap();
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
        assert_eq!(read("", &request).unwrap().feedback, "");
    }

    #[test]
    fn a_request_without_a_prompt_is_none() {
        assert_eq!(read("", "Write me a poem."), None);
    }

    #[test]
    fn a_request_in_other_words_is_understood() {
        let request = "I provided an assistant with the following instructions to perform a task for me:\n```\nBe kind.\n```\n\nExamples:\n```\n# Example 1\n## Feedback\nhuman_requests: 1 (limit 0.37)\n# Example 2\n## Feedback\nhuman_requests: 0 (limit 0.37)\nexcess_tools: 3 (limit 1.25)\n```\nWrite a new instruction within ``` blocks.";
        let review = read("", request).unwrap();
        assert_eq!(review.prompt, "Be kind.");
        assert!(review.feedback.contains("# Example 2"));
        let [success, handovers, tools] = &review.issues[..] else {
            panic!("{:?}", review.issues)
        };
        assert!(success.objective);
        assert!((handovers.residual - 0.13).abs() < 1e-9, "{handovers:?}");
        assert!((tools.residual - 1.75).abs() < 1e-9, "{tools:?}");
    }

    #[test]
    fn feedback_may_stand_before_the_prompt() {
        let request = "Feedback:\nhuman_requests: 2 (limit 1)\n\nRevise the prompt.\nPrompt: Be kind.\n\nReturn the new prompt.";
        let review = read("", request).unwrap();
        assert_eq!((review.prompt, review.issues.len()), ("Be kind.", 2));
        assert!(review.feedback.contains("human_requests"), "{}", review.feedback);
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
