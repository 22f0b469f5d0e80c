//! Prices of tokens: the shipped table, a user's own, and the sum for one call.

use capo_core::study::read_toml;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The table this build ships.
const SHIPPED: &str = include_str!("prices.toml");

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens read.
    #[schemars(range(min = 0.0))]
    pub input: f64,
    /// Tokens written, reasoning included.
    #[schemars(range(min = 0.0))]
    pub output: f64,
    /// Tokens read from the provider's cache; as `input` unless stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub cached_input: Option<f64>,
    /// Tokens read and written into the provider's cache, where that costs more; as `input` unless stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub cache_write: Option<f64>,
}

/// Of the tokens read, those that a provider's cache has to do with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cached {
    /// Read from the cache.
    pub read: u64,
    /// Written into it.
    pub written: u64,
}

impl Price {
    /// Nothing costs anything.
    pub const FREE: Self = Self {
        input: 0.0,
        output: 0.0,
        cached_input: None,
        cache_write: None,
    };

    /// Whether every token is free, so that a call is known to cost nothing whatever it consumed.
    pub fn is_free(&self) -> bool {
        self.input == 0.0
            && self.output == 0.0
            && self.cached_input.unwrap_or(0.0) == 0.0
            && self.cache_write.unwrap_or(0.0) == 0.0
    }

    /// Dollars for one call. `cached` tokens are part of `input` tokens.
    pub fn of(&self, input: u64, cached: Cached, output: u64) -> f64 {
        let read = cached.read.min(input);
        let written = cached.written.min(input - read);
        [
            (input - read - written, self.input),
            (read, self.cached_input.unwrap_or(self.input)),
            (written, self.cache_write.unwrap_or(self.input)),
            (output, self.output),
        ]
        .into_iter()
        .map(|(tokens, price)| tokens as f64 * price)
        .sum::<f64>()
            / 1e6
    }

    /// A share of the price, as of calls in batches.
    pub(crate) fn share(&self, share: f64) -> Self {
        Self {
            input: share * self.input,
            output: share * self.output,
            cached_input: self.cached_input.map(|price| share * price),
            cache_write: self.cache_write.map(|price| share * price),
        }
    }

    /// Refuses negative and non-finite prices.
    pub(crate) fn check(&self) -> Result<(), String> {
        let parts = [
            ("input", Some(self.input)),
            ("output", Some(self.output)),
            ("cached_input", self.cached_input),
            ("cache_write", self.cache_write),
        ];
        for (name, value) in parts {
            if value.is_some_and(|value| !value.is_finite() || value < 0.0) {
                return Err(format!("`price.{name}` must be a finite number of at least 0"));
            }
        }
        Ok(())
    }
}

/// Prices by provider and model.
///
/// An entry's `model` names a model exactly, or, ending in `*`, every model that starts so. A
/// dated snapshot of a model (`gpt-5-mini-2025-08-07`, `claude-haiku-4-5-20251001`, `…-latest`)
/// costs what the model costs unless it has an entry of its own. Where several entries fit, the
/// longest wins; a model that no entry fits has no known price.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceTable {
    /// When the prices were read, as `YYYY-MM-DD`.
    pub date: String,
    #[serde(default)]
    price: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    provider: String,
    model: String,
    input: f64,
    output: f64,
    cached_input: Option<f64>,
    cache_write: Option<f64>,
}

impl Entry {
    fn price(&self) -> Price {
        Price {
            input: self.input,
            output: self.output,
            cached_input: self.cached_input,
            cache_write: self.cache_write,
        }
    }

    fn fits(&self, provider: &str, model: &str) -> bool {
        self.provider == provider
            && match self.model.strip_suffix('*') {
                Some(start) => model.starts_with(start),
                None => model
                    .strip_prefix(self.model.as_str())
                    .is_some_and(names_snapshot),
            }
    }
}

/// Whether `suffix` of a model's name only says which snapshot of the model it is: nothing,
/// `-latest`, or a date or build number of at least three digits. Shorter numbers are versions
/// (`claude-opus-4` and `claude-opus-4-5` are two models with two prices).
fn names_snapshot(suffix: &str) -> bool {
    if suffix.is_empty() || suffix == "-latest" {
        return true;
    }
    let Some(number) = suffix.strip_prefix(['-', '@']) else {
        return false;
    };
    let parts: Vec<&str> = number.split('-').collect();
    parts[0].len() >= 3
        && parts.len() <= 3
        && parts
            .iter()
            .all(|part| part.len() >= 2 && part.chars().all(|c| c.is_ascii_digit()))
}

/// A price table that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the price table does not read: {0}")]
pub struct PriceTableError(String);

impl PriceTable {
    /// The table this build ships.
    pub fn shipped() -> Self {
        Self::parse(SHIPPED).expect("a test reads the shipped table")
    }

    /// Reads a table in TOML: a `date` and `[[price]]` entries with `provider`, `model`, `input`,
    /// `output`, if cached tokens are cheaper `cached_input`, and if those written into a cache cost more
    /// `cache_write`, in dollars per million tokens.
    ///
    /// # Errors
    ///
    /// Names the line, or the entry with a negative or non-finite price.
    pub fn parse(text: &str) -> Result<Self, PriceTableError> {
        let table: Self = read_toml(text).map_err(PriceTableError)?;
        for entry in &table.price {
            entry.price().check().map_err(|message| {
                PriceTableError(format!("{}/{}: {message}", entry.provider, entry.model))
            })?;
        }
        Ok(table)
    }

    /// This table with the entries of `other` before its own, so that they win.
    #[must_use]
    pub fn overridden_by(mut self, other: Self) -> Self {
        self.date = other.date;
        self.price.splice(0..0, other.price);
        self
    }

    /// What a model costs, if anyone knows.
    pub fn get(&self, provider: &str, model: &str) -> Option<Price> {
        // The exact name first, then the longest; of equals the earlier entry.
        self.price
            .iter()
            .rev()
            .filter(|entry| entry.fits(provider, model))
            .max_by_key(|entry| (entry.model == model, entry.model.len()))
            .map(Entry::price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entries: &[(&str, f64)]) -> PriceTable {
        let entries: Vec<String> = entries
            .iter()
            .map(|(model, input)| {
                format!(
                    "[[price]]\nprovider = \"p\"\nmodel = \"{model}\"\ninput = {input:?}\n\
                     output = 1.0\n"
                )
            })
            .collect();
        let entries = entries.concat();
        PriceTable::parse(&format!("date = \"2026-01-01\"\n{entries}")).unwrap()
    }

    #[test]
    fn the_shipped_table_reads_and_knows_the_usual_models() {
        let table = PriceTable::parse(SHIPPED).unwrap();
        assert_eq!(table, PriceTable::shipped());
        assert!(table.price.len() >= 24);
        let price = table.get("openai", "gpt-5-mini-2025-08-07").unwrap();
        assert_eq!((price.input, price.output), (0.25, 2.0));
        for (provider, model) in [
            ("anthropic", "claude-haiku-4-5-20251001"),
            ("gemini", "gemini-2.5-flash"),
            ("mistral", "mistral-small-latest"),
            ("openai", "text-embedding-3-small"),
            ("gemini", "gemini-embedding-001"),
            ("openrouter", "openai/gpt-5-mini"),
        ] {
            assert!(table.get(provider, model).is_some(), "{provider}/{model}");
        }
        assert!(table.get("ollama", "qwen3:8b").unwrap().is_free());
        assert!(
            table.get("openai", "gpt-99").is_none(),
            "unknown is unknown, not 0"
        );
        assert!(table.get("openai-compatible", "gpt-5-mini").is_none());
        let keys: std::collections::HashSet<_> = table
            .price
            .iter()
            .map(|entry| (&entry.provider, &entry.model))
            .collect();
        assert_eq!(keys.len(), table.price.len(), "no model twice");
    }

    #[test]
    fn a_snapshot_costs_what_its_model_costs_and_another_version_does_not() {
        let table = table(&[
            ("opus-4", 15.0),
            ("opus-4-5", 5.0),
            ("m-2025-01-01", 3.0),
            ("m", 2.0),
        ]);
        let input = |model: &str| table.get("p", model).map(|price| price.input);
        assert_eq!(input("opus-4"), Some(15.0));
        assert_eq!(input("opus-4-20250514"), Some(15.0));
        assert_eq!(input("opus-4-5-20251101"), Some(5.0));
        assert_eq!(input("opus-4-6"), None);
        assert_eq!(input("m-2025-01-01"), Some(3.0));
        assert_eq!(input("m-2025-02-02"), Some(2.0));
        assert_eq!(input("m-001"), Some(2.0));
        assert_eq!(input("m-mini"), None);
        assert_eq!(input("m-latest"), Some(2.0));
    }

    #[test]
    fn a_users_table_wins() {
        let both = table(&[("m", 1.0), ("n", 2.0)]).overridden_by(table(&[("m", 9.0), ("x*", 4.0)]));
        assert_eq!(both.get("p", "m").unwrap().input, 9.0);
        assert_eq!(both.get("p", "n").unwrap().input, 2.0);
        assert_eq!(both.get("p", "xyz").unwrap().input, 4.0);
    }

    #[test]
    fn a_bad_table_is_refused() {
        assert!(PriceTable::parse("date = 1").is_err());
        let date = PriceTable::parse("date = 2026-01-01").unwrap_err().to_string();
        assert!(
            date.ends_with("`date`: expected a text, found a date or a time; put it in quotes"),
            "{date}"
        );
        let error = PriceTable::parse(
            "date = \"d\"\n[[price]]\nprovider = \"p\"\nmodel = \"m\"\ninput = -1\noutput = 0",
        );
        assert!(error.unwrap_err().to_string().contains("p/m: `price.input`"));
    }

    #[test]
    fn cached_tokens_cost_less() {
        let price = Price {
            input: 2.0,
            output: 10.0,
            cached_input: Some(0.5),
            cache_write: Some(2.5),
        };
        let read = Cached {
            read: 400_000,
            written: 0,
        };
        assert!((price.of(1_000_000, read, 100_000) - (1.2 + 0.2 + 1.0)).abs() < 1e-12);
        let both = Cached {
            written: 200_000,
            ..read
        };
        assert!((price.of(1_000_000, both, 0) - (0.8 + 0.2 + 0.5)).abs() < 1e-12);
        let plain = Price {
            cached_input: None,
            cache_write: None,
            ..price
        };
        assert!((plain.of(1_000_000, both, 0) - 2.0).abs() < 1e-12);
        let claimed = Cached {
            read: u64::MAX,
            written: u64::MAX,
        };
        assert!((price.of(1_000_000, claimed, 0) - 0.5).abs() < 1e-12);
    }
}
