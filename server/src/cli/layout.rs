//! Numbers and tables for people at a terminal.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};

use capo_core::estimate::Estimate;
use capo_core::table::Table;
use console::Term;

use crate::terminal::{columns, writable};

/// What stands where there is nothing to say.
pub(crate) const NOTHING: &str = "–";

/// A measured value: three decimals, without a sign on zero.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    if text == "-0.000" {
        "0.000".into()
    } else {
        text.replace('-', "−")
    }
}

/// A measured value of any size: three significant digits.
#[cfg(feature = "train")]
pub(crate) fn significant(value: f64) -> String {
    let size = value.abs();
    let text = if size == 0.0 {
        "0".to_owned()
    } else if (1e-3..1e4).contains(&size) {
        let decimals = (2.0 - size.log10().floor()).max(0.0) as usize;
        format!("{value:.decimals$}")
    } else {
        format!("{value:.2e}")
    };
    text.replace('-', "−")
}

/// A difference: like [`number`], with its sign.
pub(crate) fn signed(value: f64) -> String {
    let text = number(value);
    if text.starts_with('−') || text == "0.000" {
        text
    } else {
        format!("+{text}")
    }
}

/// A mean with its standard error, where there is one: not of one example, nor of equal values.
pub(crate) fn estimate(estimate: &Estimate) -> String {
    let mean = number(estimate.mean);
    // Equal values differ from their mean by a rounding error.
    let certain = estimate.standard_error <= 1e-12 * estimate.mean.abs();
    if estimate.n < 2 || certain {
        mean
    } else {
        format!("{mean} ± {}", number(estimate.standard_error))
    }
}

/// A count with commas between thousands.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Dollars; an unknown price says so.
pub(crate) fn dollars(usd: Option<f64>) -> String {
    match usd {
        None => "unknown".into(),
        Some(usd) if usd != 0.0 && usd < 0.1 => format!("${usd:.4}"),
        Some(usd) => format!("${usd:.2}"),
    }
}

pub(crate) fn span(seconds: f64) -> String {
    if seconds < 120.0 {
        format!("{seconds:.0} s")
    } else if seconds < 7200.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
}

/// Yes or no.
pub(crate) fn yes_no(value: bool) -> String {
    if value { "yes" } else { "no" }.into()
}

/// `1 round`, `2 rounds`.
pub(crate) fn counted(value: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(value), if value == 1 { "" } else { "s" })
}

/// A prompt between two rules, so that it can be told from what stands around it.
pub(crate) fn prompt(heading: &str, text: &str) -> String {
    let rule = "─".repeat(72);
    let mut shown = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        shown,
        "{heading} ({})\n{rule}",
        counted(text.chars().count() as u64, "character")
    );
    let _ = writeln!(shown, "{}\n{rule}", text.trim_end_matches('\n'));
    shown
}

/// A table for standard output, in lines that it shows whole. Where it is a terminal, cells are in signs that the person's
/// locale can write before they are put into columns: they may be longer.
pub(crate) fn fitted(table: &Table, indent: usize) -> String {
    let columns = columns(&Term::stdout());
    if io::stdout().is_terminal() {
        let table = table.clone().written(|cell| writable(cell).into_owned());
        return table.within(indent, columns);
    }
    table.within(indent, columns)
}

/// An argument as a shell would need it.
pub(crate) fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(number(-0.0001), "0.000");
        assert_eq!(
            (number(-1.5), signed(0.25), signed(0.0)),
            ("−1.500".into(), "+0.250".into(), "0.000".into())
        );
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [None, Some(0.0), Some(0.0123), Some(12.3)].map(dollars),
            ["unknown", "$0.00", "$0.0123", "$12.30"]
        );
        assert_eq!(counted(1, "round"), "1 round");
    }

    #[test]
    #[cfg(feature = "train")]
    fn values_of_any_size_keep_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (5.192, "5.19"),
            (-0.04621, "−0.0462"),
            (123.4, "123"),
            (-2.5e-7, "−2.50e−7"),
            (0.001, "0.00100"),
        ] {
            assert_eq!(significant(value), text);
        }
    }

    #[test]
    fn only_arguments_that_need_it_are_quoted() {
        assert_eq!(quoted("runs/a-1.jsonl"), "runs/a-1.jsonl");
        assert_eq!(quoted("my study.toml"), "'my study.toml'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
