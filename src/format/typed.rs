//! Numbers as people type them, and as they stand in a field.

/// The number a text stands for; none for a blank one. Commas may part thousands, a percent sign may
/// follow.
///
/// # Errors
/// What is wrong with it and what to do.
pub fn number(text: &str) -> Result<Option<f64>, String> {
    let text = text.trim().trim_end_matches('%').trim().replace('−', "-");
    if text.is_empty() {
        return Ok(None);
    }
    let bare = without_commas(&text).ok_or("Write decimals with a point, such as 1.05.")?;
    match bare.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Some(number)),
        _ => Err(format!("“{text}” is not a number.")),
    }
}

/// Like [`number`], for what is counted.
///
/// # Errors
/// As [`number`], and when it is no whole number of at least 0.
pub fn whole(text: &str) -> Result<Option<f64>, String> {
    match number(text)? {
        Some(number) if number < 0.0 || number.fract() != 0.0 || number > MOST => {
            Err("Write a whole number of 0 or more.".into())
        }
        number => Ok(number),
    }
}

/// The largest whole number below which all are exact.
const MOST: f64 = 9_007_199_254_740_992.0;

/// How a number stands in a field: all its digits, commas between the thousands of what is counted.
pub fn text(value: Option<f64>, counted: bool) -> String {
    match value {
        None => String::new(),
        Some(value) if counted => super::count(value as u64),
        // Multiplying by a hundred may leave a last digit that nobody typed.
        Some(value) => ((value * 1e9).round() / 1e9).to_string(),
    }
}

/// The text without the commas between its thousands; none when they stand elsewhere.
fn without_commas(text: &str) -> Option<String> {
    if !text.contains(',') {
        return Some(text.to_owned());
    }
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let mut groups = whole.split(',');
    let first = groups.next()?.trim_start_matches('-');
    let right =
        !first.is_empty() && first.len() <= 3 && groups.all(|group| group.len() == 3) && !rest.contains(',');
    right.then(|| text.replace(',', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (typed, read) in [
            ("35", Some(35.0)),
            (" 35 %", Some(35.0)),
            ("1.05", Some(1.05)),
            ("20,000", Some(20_000.0)),
            ("1,234,567.5", Some(1_234_567.5)),
            ("−0.5", Some(-0.5)),
            ("  ", None),
        ] {
            assert_eq!(number(typed).unwrap(), read, "{typed}");
        }
        assert!(number("1,05").unwrap_err().contains("point"));
        assert!(number("many").unwrap_err().contains("not a number"));
        assert!(number("inf").is_err());
    }

    #[test]
    fn counts_are_whole() {
        assert_eq!(whole("4,000").unwrap(), Some(4000.0));
        assert!(whole("1.5").is_err());
        assert!(whole("-1").is_err());
    }

    #[test]
    fn fields_show_the_digits_that_were_typed() {
        assert_eq!(text(Some(0.37 * 100.0), false), "37");
        assert_eq!(text(Some(1.3), false), "1.3");
        assert_eq!(text(Some(20_000.0), true), "20,000");
        assert_eq!(text(None, true), "");
    }
}
