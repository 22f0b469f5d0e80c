//! The simulated judge: grades an answer against a reference or rubric by what the words share.

use super::parameters::Parameters;
use super::random::Draw;
use super::text;

/// What a request calls the answer to be graded.
const ANSWER: [&str; 4] = ["answer", "response", "output", "candidate"];
/// What a request calls the measure of a good answer.
const REFERENCE: [&str; 5] = ["reference", "gold", "expected", "ideal", "rubric"];
/// What a request calls that which was to be answered.
const QUESTION: [&str; 5] = ["question", "input", "task", "prompt", "message"];

/// Answers a request to grade.
///
/// Merit is the share of the reference's content words that the answer holds; where there is no
/// reference, whether there is a substantial answer that bears on the question. Noise is added by
/// the model's carelessness. The answer takes the form the request asks for: a JSON object, a
/// verdict, or a number on the stated scale.
pub(super) fn answer(request: &str, parameters: &Parameters, draw: Draw) -> String {
    let draw = draw.named("judge").named(request);
    let lower = request.to_lowercase();
    let given = part(request, &ANSWER).unwrap_or_default();
    let reference = part(request, &REFERENCE).unwrap_or_default();
    let question = part(request, &QUESTION).unwrap_or_default();
    let merit = if given.trim().is_empty() {
        0.0
    } else if reference.is_empty() {
        0.5 + 0.5 * shared(question, given)
    } else {
        shared(reference, given)
    };
    let merit = (merit + 0.25 * (1.0 - parameters.competence) * draw.bell()).clamp(0.0, 1.0);
    let (worst, best) = scale(request);
    let score = worst + merit * (best - worst);
    let score = if lower.contains("no grade between") {
        if merit >= 0.5 { best } else { worst }
    } else if (best - worst).abs() > 1.0 {
        score.round()
    } else {
        (score * 100.0).round() / 100.0
    };
    if lower.contains("json") {
        let key = ["score", "grade", "rating", "verdict"]
            .into_iter()
            .find(|key| lower.contains(&format!("\"{key}\"")))
            .unwrap_or("score");
        return serde_json::json!({ key: score, "reason": "By what the answer shares with what was asked." })
            .to_string();
    }
    for (good, bad) in [("pass", "fail"), ("yes", "no"), ("correct", "incorrect")] {
        if lower.contains(&format!("{good} or {bad}")) || lower.contains(&format!("\"{good}\" or \"{bad}\""))
        {
            let word = if merit >= 0.5 { good } else { bad };
            return if request.contains(&good.to_uppercase()) {
                word.to_uppercase()
            } else {
                word.to_owned()
            };
        }
    }
    if lower.contains("score:") {
        format!("Score: {score}")
    } else {
        score.to_string()
    }
}

/// A conversation and the statements about it, where a request consists of them.
pub(super) fn statements(request: &str) -> Option<(&str, &str)> {
    let (conversation, rest) = request
        .trim()
        .strip_prefix("<conversation>")?
        .split_once("</conversation>")?;
    let statements = rest.trim_start().strip_prefix("<statements>")?;
    Some((conversation, statements.strip_suffix("</statements>")?))
}

/// A verdict on each numbered statement: it holds when most of its content words stand in the conversation,
/// but for the model's carelessness.
pub(super) fn check(conversation: &str, statements: &str, parameters: &Parameters, draw: Draw) -> String {
    let draw = draw.named("check").named(statements);
    let results: Vec<serde_json::Value> = statements
        .lines()
        .filter_map(|line| line.trim().split_once(". "))
        .filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()))
        .enumerate()
        .map(|(place, (_, statement))| {
            let careless = 0.25 * (1.0 - parameters.competence) * draw.at(place).bell();
            let met = shared(statement, conversation) + careless >= 0.5;
            serde_json::json!({ "reason": "By the words that the conversation shares with it.", "met": met })
        })
        .collect();
    serde_json::json!({ "results": results }).to_string()
}

/// The part of a request called one of the names: in a tag, or under a heading or label.
fn part<'a>(request: &'a str, names: &[&str]) -> Option<&'a str> {
    for name in names {
        if let Some(inside) = text::block(request, name) {
            return Some(inside);
        }
    }
    let mut found: Option<usize> = None;
    let mut offset = 0;
    for line in request.split_inclusive('\n') {
        let trimmed = line.trim();
        let label = trimmed.trim_start_matches('#').trim_start().to_lowercase();
        let heading = trimmed.starts_with('#') || trimmed.ends_with(':');
        if let Some(start) = found {
            if heading {
                return Some(request[start..offset].trim());
            }
        } else if heading && names.iter().any(|name| label.contains(name)) {
            found = Some(offset + line.len());
        } else if let Some((before, after)) = trimmed.split_once(": ")
            && names.iter().any(|name| before.eq_ignore_ascii_case(name))
        {
            return Some(after);
        }
        offset += line.len();
    }
    found.map(|start| request[start..].trim())
}

/// Share of the content words of `wanted` that stand in `given`.
fn shared(wanted: &str, given: &str) -> f64 {
    let content = |text: &str| -> Vec<String> {
        text::words(text)
            .into_iter()
            .map(|word| word.text)
            .filter(|word| word.len() > 3 || word.bytes().any(|byte| byte.is_ascii_digit()))
            .collect()
    };
    let wanted = content(wanted);
    if wanted.is_empty() {
        return 0.5;
    }
    let given = content(given);
    wanted.iter().filter(|word| given.contains(word)).count() as f64 / wanted.len() as f64
}

/// The grades of the worst and the best answer, where a request states a scale such as `1 to 5` or
/// `from 0 to 10`; 0 and 1 when it states none. Numbers in what the request quotes are no scale.
fn scale(request: &str) -> (f64, f64) {
    // From the clearest word for a scale to the vaguest.
    const CUES: [&str; 9] = [
        "scale",
        "number from",
        "number between",
        "score",
        "grade",
        "rating",
        "rate",
        "points",
        "mark",
    ];
    let untagged = without_tagged(&request.to_lowercase());
    let (own, under_labels) = by_labels(&untagged);
    let find = |sentences: &[&str]| {
        CUES.iter().find_map(|cue| {
            let about = sentences.iter().filter(|sentence| names(sentence, cue));
            about.copied().find_map(range)
        })
    };
    // A request may end with a word to the judge below the last thing it quotes.
    let addressed: Vec<&str> = under_labels
        .into_iter()
        .filter(|sentence| {
            [
                "grade",
                "rate",
                "score",
                "give",
                "reply",
                "return",
                "answer with",
                "use",
            ]
            .iter()
            .any(|verb| sentence.starts_with(verb))
        })
        .collect();
    find(&own).or_else(|| find(&addressed)).unwrap_or((0.0, 1.0))
}

/// Whether a cue stands in a text at the beginning of a word.
fn names(text: &str, cue: &str) -> bool {
    text.match_indices(cue)
        .any(|(at, _)| !text[..at].ends_with(char::is_alphanumeric))
}

/// A text without what stands between `<name>` and `</name>`.
fn without_tagged(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        kept.push_str(before);
        let quoted = after.split_once('>').and_then(|(name, inside)| {
            let is_name = !name.is_empty()
                && name
                    .chars()
                    .all(|character| character.is_alphanumeric() || matches!(character, '_' | '-'));
            let (_, after) = inside.split_once(&format!("</{name}>")).filter(|_| is_name)?;
            Some(after)
        });
        rest = quoted.unwrap_or(after);
        // What was cut out parts two sentences.
        kept.push(if quoted.is_some() { '\n' } else { '<' });
    }
    kept.push_str(rest);
    kept
}

/// The sentences of a request that are its own, and those that stand under a heading or label that
/// announces something quoted.
fn by_labels(text: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut own, mut quoted) = (Vec::new(), Vec::new());
    let mut in_quote = false;
    for line in text.lines() {
        let line = line.trim();
        let heading = line
            .strip_prefix('#')
            .map(|rest| rest.trim_start_matches('#').trim());
        let label = heading.or_else(|| {
            let (label, _) = line.split_once(':')?;
            (label.split_whitespace().count() <= 3).then_some(label)
        });
        if let Some(label) = label {
            let has = |names: &[&str]| names.iter().any(|name| label.contains(name));
            // "Score the answer:" announces no answer.
            let announces = (has(&QUESTION) || has(&ANSWER) || has(&REFERENCE))
                && !["grade", "rate", "rating", "score", "scale"]
                    .iter()
                    .any(|cue| names(label, cue));
            if announces || heading.is_some() || line.ends_with(':') {
                in_quote = announces;
            }
        }
        let sentences = text::sentence_ranges(line).into_iter();
        let sentences = sentences.map(|(start, end)| &line[start..end]);
        if in_quote {
            quoted.extend(sentences);
        } else {
            own.extend(sentences);
        }
    }
    (own, quoted)
}

/// The first two numbers of a lower-case sentence that are the ends of a range.
fn range(sentence: &str) -> Option<(f64, f64)> {
    let number = |text: &str| text.trim_matches('.').parse::<f64>().ok();
    let of_number = |character: &char| character.is_ascii_digit() || matches!(character, '.' | '-');
    for separator in [" to ", "–", " and ", "-"] {
        for (at, _) in sentence.match_indices(separator) {
            let before: String = sentence[..at].chars().rev().take_while(of_number).collect();
            let before: String = before.chars().rev().collect();
            let after: String = sentence[at + separator.len()..]
                .chars()
                .take_while(of_number)
                .collect();
            if let (Some(worst), Some(best)) = (number(&before), number(&after))
                && worst != best
                && (best - worst).abs() <= 100.0
            {
                return Some((worst, best));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_checked_one_by_one() {
        let request = "<conversation>\nAgent: The refund of 30 dollars goes to the gift \
            card.\n</conversation>\n\n<statements>\n1. The agent says that the refund goes to the gift card.\n2. The \
            agent books a hotel near the airport.\n</statements>";
        let model = Parameters::named("sim-large").unwrap();
        let (conversation, asked) = statements(request).unwrap();
        let verdict = check(conversation, asked, model, Draw::new(1));
        let verdict: serde_json::Value = serde_json::from_str(&verdict).unwrap();
        assert_eq!(verdict["results"][0]["met"], true);
        assert_eq!(verdict["results"][1]["met"], false);
        assert_eq!(verdict["results"].as_array().unwrap().len(), 2);
    }

    fn grade(request: &str) -> String {
        answer(request, Parameters::named("sim-large").unwrap(), Draw::new(0))
    }

    #[test]
    fn a_good_answer_gets_more_than_a_bad_one() {
        let request = |given: &str| {
            format!(
                "Grade the answer on a scale of 1 to 5.\n\n## Reference\nThe parcel arrives on Thursday 19 March.\n\n## Answer\n{given}\n"
            )
        };
        let good: f64 = grade(&request("Your parcel arrives on Thursday, 19 March."))
            .parse()
            .unwrap();
        let bad: f64 = grade(&request("I like tea.")).parse().unwrap();
        assert!(good >= 4.0 && bad <= 2.0, "{good} {bad}");
    }

    #[test]
    fn a_stated_scale_is_used_in_its_direction() {
        assert_eq!(
            scale("Grade with a number from 1 to 5; 5 is the best"),
            (1.0, 5.0)
        );
        assert_eq!(scale("a number from 5 to 1"), (5.0, 1.0));
        assert_eq!(scale("from 0 to 1."), (0.0, 1.0));
        assert_eq!(scale("grade it"), (0.0, 1.0));
    }

    #[test]
    fn numbers_in_what_is_quoted_are_no_scale() {
        let rubric = "Names the delivery time of 3 to 5 days. A score of 2 to 4 points is shown.";
        for (request, expected) in [
            (
                format!("<rubric>\n{rubric}\n</rubric>\n\nGrade with a number from 1 to 10; 10 is the best."),
                (1.0, 10.0),
            ),
            (
                format!(
                    "Grade the answer on a scale of 0 to 10.\n\n## Rubric\n{rubric}\n\n## Answer\nI score 7 to 9."
                ),
                (0.0, 10.0),
            ),
            (
                format!("Reference: {rubric}\nAnswer: 3 to 5 days.\n\nScale:\nGrade from 1 to 4."),
                (1.0, 4.0),
            ),
            (
                format!(
                    "## Reference\n{rubric}\n\n## Answer\nIt takes 3-5 days.\n\nGive a grade between 1 and 7."
                ),
                (1.0, 7.0),
            ),
            (
                "You grade answers about shipping, which takes 3 to 5 days. Rate on a 1-6 scale.".to_owned(),
                (1.0, 6.0),
            ),
            ("Score the answer: 1 to 5.".to_owned(), (1.0, 5.0)),
            (
                "Grade how accurate it is. It must generate 3 to 5 remarks.".to_owned(),
                (0.0, 1.0),
            ),
            (
                format!("Grade the answer.\n<rubric>{rubric}</rubric>\n<answer>3 to 5</answer>"),
                (0.0, 1.0),
            ),
        ] {
            assert_eq!(scale(&request), expected, "{request}");
        }
    }

    #[test]
    fn a_quoted_range_does_not_stretch_the_grade() {
        let request = "You grade one answer against a rubric.\n<rubric>\nSays that delivery takes 30 to 50 days.\n</rubric>\nGrade with a number from 1 to 5.\n<answer>\nDelivery takes 30 to 50 days.\n</answer>";
        let grade: f64 = grade(request).parse().unwrap();
        assert!((4.0..=5.0).contains(&grade), "{grade}");
    }

    #[test]
    fn the_form_asked_for_is_kept() {
        assert_eq!(
            grade("Answer PASS or FAIL.\n\n## Reference\nblue whale\n\n## Answer\na blue whale"),
            "PASS"
        );
        let json = grade("Reply with JSON {\"score\": 0 to 1}.\n\n## Answer\n");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&json).unwrap()["score"],
            0.0
        );
    }
}
