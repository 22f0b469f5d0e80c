//! The price of a model call: what one try consumed, and what that cost.

use capo_core::llm::CallUsage;
use rig_core::completion::Usage;
use serde_json::Value;

use crate::prices::{Cached, Price, PriceTable};
use crate::providers::Provider;

/// Where the price of a call comes from: what the study states, else what the provider reports,
/// else the price table, of which calls in batches cost a share ([`Provider::batch_price`]).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallPrice {
    pub(crate) stated: Option<Price>,
    pub(crate) listed: Option<Price>,
    /// Whether the provider says in its answers what they cost.
    pub(crate) reported: bool,
}

/// Consumption that cost nothing.
pub(crate) const NOTHING: CallUsage = CallUsage {
    input_tokens: 0,
    output_tokens: 0,
    usd: Some(0.0),
    seconds: 0.0,
};

/// Whether it can be known what a model's calls cost that states no price of its own: a table lists it, or its
/// provider says in its answers what they cost.
pub fn is_priced(provider: &Provider, model: &str, prices: &PriceTable) -> bool {
    CallPrice::of(provider, model, None, prices).is_known()
}

impl CallPrice {
    /// What prices the calls of a provider's model under the price that a study states.
    pub(crate) fn of(provider: &Provider, model: &str, stated: Option<Price>, prices: &PriceTable) -> Self {
        Self {
            stated,
            listed: prices.get(provider.name, model),
            reported: provider.reports_cost,
        }
    }

    /// The same where a listed price is to be multiplied by `share`. What a study states is what its calls cost.
    pub(crate) fn with_share(self, share: f64) -> Self {
        Self {
            listed: self.listed.map(|price| price.share(share)),
            ..self
        }
    }

    /// What an answer consumed. `document` is the provider's reply, in which some say what they
    /// charged.
    pub(crate) fn answer(&self, usage: &Usage, document: &Value, seconds: f64) -> CallUsage {
        let reported = document
            .pointer("/usage/cost")
            .and_then(Value::as_f64)
            .filter(|cost| *cost >= 0.0);
        let counted = usage.input_tokens.is_some() || usage.output_tokens.is_some();
        let input_tokens = usage.input_tokens.unwrap_or(0);
        let output_tokens = usage.output_tokens.unwrap_or(0);
        let cached = Cached {
            read: usage.cached_input_tokens.unwrap_or(0),
            written: usage.cache_creation_input_tokens.unwrap_or(0),
        };
        let listed = self.listed.filter(|price| counted || price.is_free());
        let usd = match (self.stated.filter(|price| counted || price.is_free()), reported) {
            (Some(price), _) => Some(price.of(input_tokens, cached, output_tokens)),
            (None, Some(reported)) => Some(reported),
            (None, None) => listed.map(|price| price.of(input_tokens, cached, output_tokens)),
        };
        CallUsage {
            input_tokens,
            output_tokens,
            usd,
            seconds,
        }
    }

    /// What an answer that does not read consumed: the counts that can still be found in it, else
    /// an estimate of four characters to a token, since it was generated and is charged for.
    pub(crate) fn unreadable(&self, asked_characters: usize, body: &[u8], seconds: f64) -> CallUsage {
        let text = String::from_utf8_lossy(body);
        // Anthropic counts what its cache has to do with beside the other input.
        let written = count(&text, &["cache_creation_input_tokens"]);
        let read = count(&text, &["cache_read_input_tokens"]);
        let input = count(&text, &["prompt_tokens", "input_tokens", "promptTokenCount"]);
        let mut usage = Usage::new()
            .input_tokens(
                input
                    .unwrap_or(asked_characters as u64 / 4)
                    .saturating_add(written.unwrap_or(0))
                    .saturating_add(read.unwrap_or(0)),
            )
            .output_tokens(
                count(
                    &text,
                    &["completion_tokens", "output_tokens", "candidatesTokenCount"],
                )
                .unwrap_or(text.chars().count() as u64 / 4),
            );
        usage.cache_creation_input_tokens = written;
        usage.cached_input_tokens = read;
        self.answer(&usage, &Value::Null, seconds)
    }

    /// What a try consumed that was not waited for to its end: the question at four characters to a
    /// token. It was sent and may be charged for, where writing into a cache has a price of its own at
    /// that; what was generated nobody can tell. Unknown, not 0, without a price.
    pub(crate) fn unanswered(&self, asked_characters: usize, seconds: f64) -> CallUsage {
        let asked = asked_characters as u64 / 4;
        let mut usage = Usage::new().input_tokens(asked).output_tokens(0);
        // Costs as any input where no price of it is stated.
        usage.cache_creation_input_tokens = Some(asked);
        self.answer(&usage, &Value::Null, seconds)
    }

    /// Whether it can be known what an answer costs.
    pub(crate) fn is_known(&self) -> bool {
        self.stated.is_some() || self.listed.is_some() || self.reported
    }
}

/// The last number in `text` under one of `names`, without parsing the rest.
fn count(text: &str, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| {
        let (_, after) = text.rsplit_once(&format!("\"{name}\""))?;
        let digits = after.trim_start().strip_prefix(':')?.trim_start();
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().ok()
    })
}

/// Two tries together; `seconds` are those of both.
pub(crate) fn sum(a: CallUsage, b: CallUsage) -> CallUsage {
    CallUsage {
        // A server may claim any number of tokens.
        input_tokens: a.input_tokens.saturating_add(b.input_tokens),
        output_tokens: a.output_tokens.saturating_add(b.output_tokens),
        usd: a.usd.zip(b.usd).map(|(a, b)| a + b),
        seconds: a.seconds + b.seconds,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PRICE: Price = Price {
        input: 1.0,
        output: 10.0,
        cached_input: Some(0.1),
        cache_write: None,
    };

    fn usage() -> Usage {
        Usage::new()
            .input_tokens(1_000)
            .output_tokens(100)
            .cached_input_tokens(500)
    }

    fn call_price(stated: Option<Price>, listed: Option<Price>) -> CallPrice {
        CallPrice {
            stated,
            listed,
            reported: false,
        }
    }

    fn dollars(stated: Option<Price>, listed: Option<Price>, document: &Value) -> Option<f64> {
        call_price(stated, listed).answer(&usage(), document, 1.0).usd
    }

    #[test]
    fn stated_before_reported_before_listed() {
        let reported = json!({ "usage": { "cost": 0.5 } });
        let listed = 500e-6 + 50e-6 + 1000e-6;
        assert!((dollars(Some(PRICE), None, &reported).unwrap() - listed).abs() < 1e-12);
        assert_eq!(dollars(None, Some(PRICE), &reported), Some(0.5));
        assert!((dollars(None, Some(PRICE), &Value::Null).unwrap() - listed).abs() < 1e-12);
        assert_eq!(
            dollars(None, None, &Value::Null),
            None,
            "unknown is unknown, not 0"
        );
    }

    #[test]
    fn an_impossible_charge_is_no_report() {
        for cost in [json!(-0.5), json!("0.5"), json!(null)] {
            let reported = json!({ "usage": { "cost": cost } });
            assert_eq!(dollars(None, None, &reported), None, "{reported}");
        }
    }

    #[test]
    fn uncounted_tokens_cost_something_unknown_unless_all_are_free() {
        let silent = Usage::new();
        let listed = |price| call_price(None, Some(price));
        assert_eq!(listed(PRICE).answer(&silent, &Value::Null, 1.0).usd, None);
        assert_eq!(
            listed(Price::FREE).answer(&silent, &Value::Null, 1.0).usd,
            Some(0.0)
        );
    }

    #[test]
    fn a_try_without_an_answer_costs_its_question() {
        let of = |listed| call_price(None, listed).unanswered(4_000, 2.0);
        assert_eq!(
            (of(Some(PRICE)).input_tokens, of(Some(PRICE)).usd),
            (1_000, Some(1e-3))
        );
        assert_eq!(of(None).usd, None);
        let dearer = Price {
            cache_write: Some(1.25),
            ..PRICE
        };
        assert_eq!(of(Some(dearer)).usd, Some(1.25e-3));
    }

    #[test]
    fn claims_beyond_counting_are_summed_to_the_most_there_is() {
        let claimed = CallUsage {
            input_tokens: u64::MAX,
            output_tokens: u64::MAX,
            ..NOTHING
        };
        assert_eq!(sum(claimed, claimed).input_tokens, u64::MAX);
    }

    #[test]
    fn an_unreadable_answer_counts_what_anthropics_cache_had_to_do_with() {
        let price = Price {
            cache_write: Some(2.0),
            ..PRICE
        };
        let cut = br#"{"content":[{"te","usage":{"input_tokens":10,"cache_creation_input_tokens":2000,"cache_read_input_tokens":1000,"output_tokens":7"#;
        let usage = call_price(Some(price), None).unreadable(4_000, cut, 2.0);
        assert_eq!((usage.input_tokens, usage.output_tokens), (3_010, 7));
        let dollars = (10.0 + 2.0 * 2_000.0 + 0.1 * 1_000.0 + 10.0 * 7.0) / 1e6;
        assert!((usage.usd.unwrap() - dollars).abs() < 1e-12);
    }

    #[test]
    fn an_unreadable_answer_is_counted() {
        let call_price = call_price(Some(PRICE), None);
        let cut = br#"{"choices":[{"mess","usage":{"prompt_tokens": 40,"completion_tokens":7"#;
        let usage = call_price.unreadable(4_000, cut, 2.0);
        assert_eq!((usage.input_tokens, usage.output_tokens), (40, 7));
        let usage = call_price.unreadable(4_000, b"{\"choices\": [[[[[", 2.0);
        assert_eq!((usage.input_tokens, usage.output_tokens), (1_000, 4));
        assert!(usage.usd.unwrap() > 0.0);
    }
}
