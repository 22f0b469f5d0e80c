//! Rate limits: what a provider's headers say about waiting.
//!
//! | header | meaning | said by |
//! |---|---|---|
//! | `retry-after` | seconds, or an HTTP date (RFC 9110 §10.2.3) | most |
//! | `retry-after-ms` | milliseconds | OpenAI, Azure |
//! | `x-ratelimit-remaining-*` with `x-ratelimit-reset-*` | what is left, and for how long it must last, as `6m0s` or seconds | OpenAI, Groq, vLLM gateways |
//! | `anthropic-ratelimit-*-remaining` with `anthropic-ratelimit-*-reset` | the same, reset as RFC 3339 time | Anthropic |
//! | `x-ratelimit-remaining` with `x-ratelimit-reset` | the same, reset as milliseconds since 1970 | OpenRouter |

use std::time::{Duration, SystemTime};

use http::HeaderMap;

/// How long to wait before the next call, if the headers say so. `now` is time since 1970.
///
/// A `retry-after` decides alone; otherwise the longest reset among those of which nothing is
/// left.
pub(crate) fn wait(headers: &HeaderMap, now: Duration) -> Option<Duration> {
    retry_after(headers, now).or_else(|| exhausted(headers, now))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn retry_after(headers: &HeaderMap, now: Duration) -> Option<Duration> {
    if let Some(milliseconds) = text(headers, "retry-after-ms").and_then(|ms| seconds(ms, 1e-3)) {
        return Some(milliseconds);
    }
    let value = text(headers, "retry-after")?;
    seconds(value, 1.0).or_else(|| httpdate::parse_http_date(value).ok().map(|date| until(date, now)))
}

/// The longest reset among the allowances that are used up.
fn exhausted(headers: &HeaderMap, now: Duration) -> Option<Duration> {
    headers
        .iter()
        .filter_map(|(name, left)| {
            let name = name.as_str();
            let limits = name.starts_with("x-ratelimit-") || name.starts_with("anthropic-ratelimit-");
            let used_up = left.to_str().is_ok_and(|left| left.trim() == "0");
            (limits && used_up && name.contains("remaining"))
                .then(|| text(headers, &name.replace("remaining", "reset")))?
        })
        .filter_map(|value| reset(value, now))
        .max()
}

/// A reset in any of the spellings in use.
fn reset(value: &str, now: Duration) -> Option<Duration> {
    /// Numbers from here on are moments (2001 in seconds since 1970), not spans.
    const MOMENT: f64 = 1e9;
    if let Ok(number) = value.parse::<f64>() {
        let seconds = match number {
            moment if moment >= MOMENT * 1e3 => moment / 1e3 - now.as_secs_f64(),
            moment if moment >= MOMENT => moment - now.as_secs_f64(),
            span => span,
        };
        return Duration::try_from_secs_f64(seconds.max(0.0)).ok();
    }
    humantime::parse_duration(value)
        .ok()
        .or_else(|| humantime::parse_rfc3339(value).ok().map(|date| until(date, now)))
}

fn seconds(value: &str, unit: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(value.parse::<f64>().ok()? * unit).ok()
}

fn until(date: SystemTime, now: Duration) -> Duration {
    date.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .saturating_sub(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2025-01-01T00:00:00Z.
    const NOW: Duration = Duration::from_hours(482_136);

    fn waited(headers: &[(&'static str, &str)]) -> Option<f64> {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect();
        wait(&headers, NOW).map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn retry_after_in_each_spelling() {
        assert_eq!(waited(&[("retry-after", "7")]), Some(7.0));
        assert_eq!(waited(&[("retry-after", "0.5")]), Some(0.5));
        assert_eq!(
            waited(&[("retry-after", "Wed, 01 Jan 2025 00:01:30 GMT")]),
            Some(90.0)
        );
        assert_eq!(
            waited(&[("retry-after", "Wed, 01 Jan 2020 00:00:00 GMT")]),
            Some(0.0)
        );
        assert_eq!(
            waited(&[("retry-after-ms", "250"), ("retry-after", "9")]),
            Some(0.25)
        );
        assert_eq!(waited(&[("retry-after", "soon")]), None);
        assert_eq!(waited(&[("retry-after", "-3")]), None);
        assert_eq!(waited(&[]), None);
    }

    #[test]
    fn an_allowance_that_is_used_up_says_when_it_returns() {
        assert_eq!(
            waited(&[
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "6m0s"),
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "20ms"),
            ]),
            Some(360.0)
        );
        assert_eq!(
            waited(&[
                ("anthropic-ratelimit-input-tokens-remaining", "0"),
                ("anthropic-ratelimit-input-tokens-reset", "2025-01-01T00:00:12Z"),
            ]),
            Some(12.0)
        );
        assert_eq!(
            waited(&[
                ("x-ratelimit-remaining", "0"),
                ("x-ratelimit-reset", "1735689605000")
            ]),
            Some(5.0)
        );
    }

    #[test]
    fn fractions_of_a_second_in_a_span_are_read() {
        for (span, seconds) in [("7.66s", 7.66), ("2m59.5s", 179.5), ("1h0m0.25s", 3600.25)] {
            let headers = [
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", span),
            ];
            assert_eq!(waited(&headers), Some(seconds), "{span}");
        }
    }

    #[test]
    fn an_allowance_that_is_left_says_nothing() {
        assert_eq!(
            waited(&[
                ("x-ratelimit-remaining-requests", "3"),
                ("x-ratelimit-reset-requests", "1s"),
            ]),
            None
        );
        assert_eq!(waited(&[("x-ratelimit-remaining-requests", "0")]), None);
    }
}
