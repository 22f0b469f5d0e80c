//! Finding and reading numbers as people write them.

use std::sync::LazyLock;

use regex::Regex;

/// Thousands groups of two or three digits (Western and Indian), no-break and thin spaces as
/// separators, decimals, an exponent.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        [-\u{2212}+]? [$€£]? [-\u{2212}]?
        (?: \d{1,3} (?: ,\d{2,3} )* ,\d{3} \b (?: \.\d+ )?
          | \d{1,3} (?: [\u{a0}\u{2009}\u{202f}]\d{3} )+ \b (?: \.\d+ )?
          | \d+ (?: \.\d+ )?
          | \.\d+ )
        (?: [eE][-+]?\d{1,3} \b )?",
    )
    .expect("a constant pattern")
});

static FRACTION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\\[dt]?frac\s*\{\s*(-?\d+)\s*\}\s*\{\s*(\d+)\s*\}").expect("a constant pattern")
});

static GROUPED_BY_SPACE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b\d{1,3}(?: \d{3})+\b").expect("a constant pattern"));

/// After which the answer stands.
static ANSWER_MARK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)\banswer(?:\s+is\b|\W{0,3}:)").expect("a constant pattern"));

/// The number a reader would take for the answer, see [`super::Extraction::Final`].
pub(super) fn final_value(answer: &str) -> Option<f64> {
    let after_hashes = || {
        answer
            .rsplit_once("####")
            .and_then(|(_, rest)| first(&joined(rest)))
    };
    let in_box = || boxed(answer).and_then(|inside| first(&joined(inside)));
    let after_mark = || {
        ANSWER_MARK
            .find_iter(answer)
            .last()
            .and_then(|mark| first(&joined(&answer[mark.end()..])))
    };
    after_hashes()
        .or_else(in_box)
        .or_else(after_mark)
        .or_else(|| numbers(&fractions(answer)).last().copied())
}

/// Where an answer is announced, a space between groups of three digits separates thousands;
/// elsewhere it may as well separate two numbers.
fn joined(text: &str) -> String {
    let text = fractions(text);
    GROUPED_BY_SPACE
        .replace_all(&text, |digits: &regex::Captures<'_>| digits[0].replace(' ', ""))
        .into_owned()
}

/// LaTeX fractions as `a/b`.
fn fractions(text: &str) -> String {
    FRACTION.replace_all(text, "$1/$2").into_owned()
}

fn first(text: &str) -> Option<f64> {
    numbers(text).first().copied()
}

/// All numbers of a text in order; `a/b` is one number.
fn numbers(text: &str) -> Vec<f64> {
    let mut found: Vec<f64> = Vec::new();
    let mut previous_end = 0;
    for number in NUMBER.find_iter(text) {
        let before = &text[..number.start()];
        let Some(mut value) = read(number.as_str()) else {
            continue;
        };
        // The dash of "5-10" or "step-3" is no sign.
        if before.ends_with(|c: char| c.is_alphanumeric() || c == ')') {
            value = value.abs();
        }
        let divided = !found.is_empty() && text[previous_end..number.start()].trim() == "/";
        match found.last_mut() {
            Some(numerator) if divided && value != 0.0 => *numerator /= value,
            _ => found.push(value),
        }
        previous_end = number.end();
    }
    found
}

fn read(number: &str) -> Option<f64> {
    let plain: String = number
        .chars()
        .filter(|c| !matches!(c, ',' | '$' | '€' | '£' | '\u{a0}' | '\u{2009}' | '\u{202f}'))
        .map(|c| match c {
            '\u{2212}' => Some('-'),
            '0'..='9' | '.' | '-' | '+' | 'e' | 'E' => Some(c),
            other => digit_value(other).and_then(|value| char::from_digit(value, 10)),
        })
        .collect::<Option<_>>()?;
    plain.parse().ok()
}

/// The value of a decimal digit of any script.
pub(super) fn digit_value(c: char) -> Option<u32> {
    static DIGIT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\d$").expect("a constant pattern"));
    let is_digit = |c: char| DIGIT.is_match(c.encode_utf8(&mut [0; 4]));
    if c.is_ascii_digit() || !is_digit(c) {
        return c.to_digit(10);
    }
    // Unicode encodes the decimal digits of a script in order, from zero, ten in a row.
    let run = (0..c as u32)
        .rev()
        .take_while(|&code| char::from_u32(code).is_some_and(is_digit))
        .count();
    u32::try_from(run % 10).ok()
}

/// What stands in the last `\boxed{…}` or `\fbox{…}` with balanced braces, or after the last
/// `\boxed ` up to a `$`.
pub fn boxed(text: &str) -> Option<&str> {
    if let Some((_, rest)) = text.rsplit_once("\\boxed ") {
        return rest.split('$').next();
    }
    let start = text.rfind("\\boxed").or_else(|| text.rfind("\\fbox"))?;
    let open = start + text[start..].find('{')?;
    let mut depth = 0_usize;
    for (index, c) in text[open..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&text[open + 1..open + index]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_as_people_write_them() {
        for (answer, value) in [
            ("#### 72", 72.0),
            ("####$72.00", 72.0),
            ("#### -5 degrees", -5.0),
            ("x = −72", -72.0),
            ("-$5", -5.0),
            ("$-5", -5.0),
            ("It is .5", 0.5),
            ("1,00,000 rupees", 100_000.0),
            ("in all 1\u{202f}234 units", 1234.0),
            ("Answer: 1 234", 1234.0),
            ("range 5-10", 10.0),
            ("It is 1/2", 0.5),
            ("$\\boxed{\\frac{1}{2}}$", 0.5),
            ("7.2e1", 72.0),
            ("٧٢", 72.0),
            ("so 18%.", 18.0),
            ("#### 70\nWait.\n#### 72", 72.0),
            ("#### Final answer\n72 because 2 + 70", 72.0),
            ("\\boxed{18} as in step 3", 18.0),
            ("The answer is 72 dollars in 3 days", 72.0),
            ("**Answer:** 18 (see 3)", 18.0),
            ("first 3, then 4 apples", 4.0),
        ] {
            assert_eq!(final_value(answer), Some(value), "{answer:?}");
        }
        for answer in ["", "no number", "#### ...", "\\boxed{}"] {
            assert_eq!(final_value(answer), None, "{answer:?}");
        }
    }

    #[test]
    fn digits_of_every_script_have_a_value() {
        for (c, value) in [('7', 7), ('٧', 7), ('２', 2), ('९', 9), ('𝟠', 8), ('𝟘', 0)] {
            assert_eq!(digit_value(c), Some(value), "{c}");
        }
        assert_eq!(digit_value('²'), None);
        assert_eq!(digit_value('x'), None);
    }
}
