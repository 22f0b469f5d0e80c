//! Paired differences in words.

use capo_core::reading::comparison::{Difference, Verdict};

use super::studied::Shown as _;

/// What an interval says, in words.
pub fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoClearDifference => "no clear difference",
    }
}

/// The mean difference: "−40.0 pts".
pub fn mean(difference: &Difference) -> String {
    difference.metric.quantity().difference(difference.paired.mean)
}

/// The interval: "−62.5 to −17.5"; an en dash of one example.
pub fn interval(difference: &Difference) -> String {
    let quantity = difference.metric.quantity();
    difference.paired.interval.map_or_else(
        || crate::format::NOTHING.to_owned(),
        |interval| {
            let (low, high) = (interval.low, interval.high);
            format!(
                "{} to {}",
                quantity.bare_difference(low),
                quantity.bare_difference(high)
            )
        },
    )
}
