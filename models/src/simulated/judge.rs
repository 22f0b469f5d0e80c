//! The simulated judge: grades an answer against a reference or rubric by what the words share.

use super::luck::Luck;
use super::parameters::Parameters;
use super::review;
use super::text;

/// Answers a request to grade.
///
/// Merit is the share of the reference's content words that the answer holds; where there is no
/// reference, whether there is a substantial answer that bears on the question. Noise is added by
/// the model's carelessness. The answer takes the form the request asks for: a JSON object, a
/// verdict, or a number on the stated scale.
pub(super) fn answer(request: &str, parameters: &Parameters, luck: Luck) -> String {
    let luck = luck.named("judge").named(request);
    let lower = request.to_lowercase();
    let given = part(request, &["answer", "response", "output", "candidate"]).unwrap_or_default();
    let reference = part(request, &["reference", "gold", "expected", "ideal", "rubric"]).unwrap_or_default();
    let question = part(request, &["question", "input", "task", "prompt", "message"]).unwrap_or_default();
    let merit = if given.trim().is_empty() {
        0.0
    } else if reference.is_empty() {
        0.5 + 0.5 * shared(question, given)
    } else {
        shared(reference, given)
    };
    let merit = (merit + 0.25 * (1.0 - parameters.competence) * luck.bell()).clamp(0.0, 1.0);
    let (worst, best) = scale(&lower);
    let score = worst + merit * (best - worst);
    let score = if (best - worst).abs() > 1.0 {
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

/// The part of a request called one of the names: in a tag, or under a heading or label.
fn part<'a>(request: &'a str, names: &[&str]) -> Option<&'a str> {
    for name in names {
        if let Some(inside) = review::block(request, name) {
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
/// `from 0 to 10`; 0 and 1 when it states none.
fn scale(lower: &str) -> (f64, f64) {
    let number = |text: &str| text.trim_matches('.').parse::<f64>().ok();
    let of_number = |character: &char| character.is_ascii_digit() || matches!(character, '.' | '-');
    for separator in [" to ", "–", " and ", "-"] {
        for (at, _) in lower.match_indices(separator) {
            let before: String = lower[..at].chars().rev().take_while(of_number).collect();
            let before: String = before.chars().rev().collect();
            let after: String = lower[at + separator.len()..]
                .chars()
                .take_while(of_number)
                .collect();
            if let (Some(worst), Some(best)) = (number(&before), number(&after))
                && worst != best
                && (best - worst).abs() <= 100.0
            {
                return (worst, best);
            }
        }
    }
    (0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grade(request: &str) -> String {
        answer(request, Parameters::named("sim-large").unwrap(), Luck::new(0))
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
            scale("grade with a number from 1 to 5; 5 is the best"),
            (1.0, 5.0)
        );
        assert_eq!(scale("a number from 5 to 1"), (5.0, 1.0));
        assert_eq!(scale("from 0 to 1."), (0.0, 1.0));
        assert_eq!(scale("grade it"), (0.0, 1.0));
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
