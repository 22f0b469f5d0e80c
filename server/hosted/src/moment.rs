//! Moments, as documents write them.

/// A moment in milliseconds since 1970.
///
/// # Errors
/// That it is none, in words.
pub fn millis(moment: &str) -> Result<i64, String> {
    let parsed = moment.parse::<jiff::Timestamp>();
    parsed.map(jiff::Timestamp::as_millisecond).map_err(|_| {
        format!("`{moment}` is no moment as RFC 3339 writes them, such as 2026-11-26T18:00:00Z.")
    })
}
