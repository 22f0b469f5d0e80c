//! Plain numbers: signs, digits, dollars and counts.

/// What stands where there is nothing to say.
pub const NOTHING: &str = "–";

/// A number with so many decimals, a true minus, and no sign on zero; [`NOTHING`] unless finite.
///
/// ```
/// use capo_web::format::decimals;
///
/// assert_eq!(decimals(-0.066, 2), "−0.07");
/// assert_eq!(decimals(-0.001, 2), "0.00");
/// assert_eq!(decimals(f64::NAN, 2), "–");
/// ```
pub fn decimals(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    let text = format!("{:.digits$}", value.abs());
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let text = with_commas(&text);
    if value < 0.0 && !is_zero {
        format!("−{text}")
    } else {
        text
    }
}

/// [`decimals`] with a plus before what is above zero.
pub fn signed(value: f64, digits: usize) -> String {
    let text = decimals(value, digits);
    let above_zero = text.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if above_zero && !text.starts_with('−') {
        format!("+{text}")
    } else {
        text
    }
}

/// A multiplier λ: two decimals.
pub fn multiplier(value: f64) -> String {
    decimals(value, 2)
}

/// A Lagrangian score J: sign and three decimals.
pub fn lagrangian(value: f64) -> String {
    signed(value, 3)
}

/// A normalised residual (cost − τ)/s: sign and two decimals.
pub fn residual(value: f64) -> String {
    signed(value, 2)
}

/// US dollars: two decimals, four below one cent; "unknown" without a price, which is never $0.
pub fn dollars(usd: Option<f64>) -> String {
    let Some(usd) = usd.filter(|usd| usd.is_finite()) else {
        return "unknown".to_owned();
    };
    let digits = if usd != 0.0 && usd.abs() < 0.01 { 4 } else { 2 };
    let text = decimals(usd, digits);
    match text.strip_prefix('−') {
        Some(amount) => format!("−${amount}"),
        None => format!("${text}"),
    }
}

/// A count with commas between thousands.
pub fn count(value: u64) -> String {
    with_commas(&value.to_string())
}

/// Tokens: as [`count`] below 100,000, then in k with one decimal, from a million in M with two.
pub fn tokens(value: u64) -> String {
    match value {
        0..100_000 => count(value),
        // What would round to 1,000.0k is a million already.
        100_000..999_950 => format!("{}k", decimals(value as f64 / 1e3, 1)),
        _ => format!("{}M", decimals(value as f64 / 1e6, 2)),
    }
}

/// Commas between the thousands of an unsigned number's digits.
fn with_commas(text: &str) -> String {
    let whole = text.find('.').unwrap_or(text.len());
    let mut grouped = String::with_capacity(text.len() + whole / 3);
    for (index, digit) in text[..whole].chars().enumerate() {
        if index > 0 && (whole - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + &text[whole..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_true_and_zero_has_none() {
        assert_eq!(lagrangian(0.93), "+0.930");
        assert_eq!(residual(-0.074), "−0.07");
        assert_eq!(residual(-0.004), "0.00");
        assert_eq!(residual(0.004), "0.00");
        assert_eq!(multiplier(3.987), "3.99");
        assert_eq!(residual(f64::INFINITY), NOTHING);
        assert_eq!(decimals(-12_345.67, 1), "−12,345.7");
    }

    #[test]
    fn dollars_below_a_cent_have_four_decimals_and_unknown_is_no_zero() {
        assert_eq!(dollars(Some(4.438)), "$4.44");
        assert_eq!(dollars(Some(0.0021)), "$0.0021");
        assert_eq!(dollars(Some(0.0)), "$0.00");
        assert_eq!(dollars(Some(-1234.5)), "−$1,234.50");
        assert_eq!(dollars(None), "unknown");
    }

    #[test]
    fn tokens_are_counted_out_below_a_hundred_thousand() {
        assert_eq!(count(9_840), "9,840");
        assert_eq!(tokens(99_999), "99,999");
        assert_eq!(tokens(196_600), "196.6k");
        assert_eq!(tokens(999_949), "999.9k");
        assert_eq!(tokens(999_950), "1.00M");
        assert_eq!(tokens(7_010_000), "7.01M");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
    }
}
