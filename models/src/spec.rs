//! The tables `[models.ROLE]` of a study.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};

use capo_core::llm::RewriteForm;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_aux::serde_introspection::serde_introspect;
use serde_json::Value;

use crate::effort::ReasoningEffort;
use crate::limiter::MOST_IN_BATCH;
use crate::prices::Price;
use crate::providers::{LOCAL, PROVIDERS, Provider};

/// The most calls under way at once where a table does not say.
pub(crate) const CONCURRENCY: usize = 16;

/// Who answers a role, and how it is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// Who serves the model.
    pub provider: ProviderName,
    /// The model, by the provider's name for it. Needed by every provider but `simulated`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The variable that holds the key, when it is not the provider's usual one. The name, never
    /// the key itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Where the API is, when it is not the provider's usual place. Needed by
    /// `openai-compatible`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Sampling temperature, from 0 to 2; the provider's own default unless stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// The most tokens one answer may have, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<NonZeroU32>,
    /// How hard a reasoning model thinks before it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// How long one try may take, in seconds: 120 unless stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.001))]
    pub timeout_seconds: Option<f64>,
    /// The most calls under way at once: 16 unless stated. Fewer are made while the provider asks
    /// to slow down. For a local rewriter the rewrites that are drawn together: 64 unless stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<NonZeroUsize>,
    /// Whether calls are handed to the provider in batches, at half the price and answered within a day. For the agent
    /// of a study whose rollouts are one call of it, such as those of a table. `concurrency` is then the most calls of a
    /// batch, 10000 unless stated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub batch: bool,
    /// How often a failed call is tried again: 5 times unless stated, 0 for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// After how many failed tries in a row, over all calls (tries under way together count once),
    /// the model is given up: 50 unless stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abort_after: Option<NonZeroU32>,
    /// Further HTTP headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, HeaderText>,
    /// How the model is asked for a rewrite: `learned` for one that was trained on this one task and is told the
    /// facts alone; `instructed` unless stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite_form: Option<RewriteForm>,
    /// What tokens cost, when the price table does not know or is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Simulated models only: how many real seconds a simulated second takes, 0 unless stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub latency: Option<f64>,
    /// Simulated models only: the seed of their random draws, the study's unless stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl ModelSpec {
    /// Reads one table, without a look at what its provider refuses.
    ///
    /// # Errors
    ///
    /// Says which key is unknown (with the nearest known one), or which value is out of range.
    pub fn read(table: &Value) -> Result<Self, String> {
        if let Some(table) = table.as_object() {
            let known = serde_introspect::<Self>();
            if let Some(key) = table.keys().find(|key| !known.contains(&key.as_str())) {
                return Err(unknown(key, "key", known.iter().copied()));
            }
        }
        let spec: Self = match table {
            Value::Object(table) => capo_core::study::read_table(table)?,
            other => return Err(format!("expected a table, found {other}")),
        };
        spec.check()?;
        Ok(spec)
    }

    /// Whether this process serves it from weights of its own.
    pub fn is_local(&self) -> bool {
        self.provider.get().name == LOCAL
    }

    /// The most calls under way at once.
    pub(crate) fn most_calls(&self) -> usize {
        let usual = if self.batch { MOST_IN_BATCH } else { CONCURRENCY };
        self.concurrency.map_or(usual, usize::from)
    }

    /// What a listed price is to be multiplied by.
    pub(crate) fn share_of_price(&self) -> f64 {
        let in_batch = self.provider.get().batch_price.filter(|_| self.batch);
        in_batch.unwrap_or(1.0)
    }

    fn check(&self) -> Result<(), String> {
        let ranges = [
            ("temperature", self.temperature, 0.0, 2.0),
            ("timeout_seconds", self.timeout_seconds, 0.001, 86_400.0),
            ("latency", self.latency, 0.0, 1_000.0),
        ];
        for (name, value, least, most) in ranges {
            if value.is_some_and(|value| !(least..=most).contains(&value)) {
                return Err(format!("`{name}` must lie between {least} and {most}"));
            }
        }
        if self.model.as_deref().is_some_and(|model| model.trim().is_empty()) {
            return Err("`model` is empty".to_owned());
        }
        if let Some(price) = &self.price {
            price.check()?;
        }
        let provider = self.provider.get();
        for (name, given) in self.misplaced(provider) {
            if given {
                return Err(format!("`{name}` means nothing for provider `{}`", provider.name));
            }
        }
        if self.batch && self.timeout_seconds.is_some() {
            return Err("`timeout_seconds` means nothing beside `batch`".to_owned());
        }
        Ok(())
    }

    /// The keys that mean something only for some providers, and whether each is given for another one.
    fn misplaced(&self, provider: &Provider) -> Vec<(&'static str, bool)> {
        let is_simulated = provider.in_process && provider.model.is_some();
        let of_http = [
            ("api_key_env", self.api_key_env.is_some()),
            ("base_url", self.base_url.is_some()),
            ("reasoning_effort", self.reasoning_effort.is_some()),
            ("timeout_seconds", self.timeout_seconds.is_some()),
            ("retries", self.retries.is_some()),
            ("abort_after", self.abort_after.is_some()),
            ("headers", !self.headers.is_empty()),
            ("rewrite_form", self.rewrite_form.is_some()),
        ];
        let of_drawn = [
            ("temperature", self.temperature.is_some()),
            ("max_tokens", self.max_tokens.is_some()),
        ];
        let of_simulated = [("latency", self.latency.is_some()), ("seed", self.seed.is_some())];
        let mut misplaced = Vec::new();
        if provider.batch_price.is_none() {
            misplaced.push(("batch", self.batch));
        }
        if provider.in_process {
            misplaced.extend(of_http);
        }
        if is_simulated {
            misplaced.extend(of_drawn);
        } else {
            misplaced.extend(of_simulated);
        }
        if self.is_local() {
            misplaced.push(("price", self.price.is_some()));
        }
        misplaced
    }
}

/// The JSON schema of a `[models.ROLE]` table.
pub fn schema() -> Schema {
    schemars::schema_for!(ModelSpec)
}

/// Says that `given` is no known `what`, and which one may have been meant.
fn unknown<'a>(given: &str, what: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let nearest = known
        .clone()
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 3))
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((_, name)) => format!("unknown {what} `{given}`; did you mean `{name}`?"),
        None => {
            format!(
                "unknown {what} `{given}`; known are {}",
                known.collect::<Vec<_>>().join(", ")
            )
        }
    }
}

/// A provider that exists, written by its name.
#[derive(Clone, Copy)]
pub struct ProviderName(&'static Provider);

impl ProviderName {
    /// The provider called `name`.
    pub fn find(name: &str) -> Option<Self> {
        PROVIDERS.iter().find(|provider| provider.name == name).map(Self)
    }

    /// The provider.
    pub fn get(self) -> &'static Provider {
        self.0
    }
}

impl PartialEq for ProviderName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl std::fmt::Debug for ProviderName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name)
    }
}

impl Serialize for ProviderName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name)
    }
}

impl<'de> Deserialize<'de> for ProviderName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        Self::find(&name).ok_or_else(|| {
            let names = PROVIDERS.iter().map(|provider| provider.name);
            serde::de::Error::custom(unknown(&name, "provider", names))
        })
    }
}

impl JsonSchema for ProviderName {
    fn schema_name() -> Cow<'static, str> {
        "Provider".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
        json_schema!({ "type": "string", "enum": names })
    }
}

/// The value of a header: a text, or the variable that holds a secret one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "write a text, or { env = \"VARIABLE\" }")]
pub enum HeaderText {
    /// The value itself.
    Text(String),
    /// Where the value is.
    Variable(HeaderVariable),
}

/// The variable that holds a header's value, written `{ env = "NAME" }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeaderVariable {
    /// The variable's name.
    pub env: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(table: &Value) -> String {
        ModelSpec::parse(table).unwrap_err()
    }

    #[test]
    fn the_example_of_the_design_reads() {
        let table: Value = toml::from_str(
            r#"
            provider = "openai"
            model = "gpt-5-mini"
            api_key_env = "OPENAI_API_KEY"
            max_tokens = 2000
            reasoning_effort = "low"
            retries = 0
            headers = { "X-Team" = "search", "X-Gate" = { env = "GATE_KEY" } }
            price = { input = 0.25, output = 2 }
            "#,
        )
        .unwrap();
        let spec = ModelSpec::parse(&table).unwrap();
        assert_eq!(spec.provider.get().name, "openai");
        let warm = json!({ "provider": "openai", "model": "gpt-4.1-mini", "temperature": 1 });
        assert_eq!(ModelSpec::parse(&warm).unwrap().temperature, Some(1.0));
        assert_eq!(spec.retries, Some(0));
        let gate = HeaderVariable {
            env: "GATE_KEY".to_owned(),
        };
        assert_eq!(spec.headers["X-Gate"], HeaderText::Variable(gate));
        let again = serde_json::to_value(&spec).unwrap();
        assert_eq!(ModelSpec::parse(&again).unwrap(), spec);
    }

    #[test]
    fn a_simulated_model_needs_no_name() {
        assert!(ModelSpec::parse(&json!({ "provider": "simulated", "latency": 0.1 })).is_ok());
    }

    #[test]
    fn mistakes_are_named_with_what_was_meant() {
        let table = json!({ "provider": "openai", "model": "m", "temprature": 1 });
        assert_eq!(
            error(&table),
            "unknown key `temprature`; did you mean `temperature`?"
        );
        let table = json!({ "provider": "antropic", "model": "m" });
        assert!(error(&table).contains("did you mean `anthropic`?"));
        let table = json!({ "provider": "openai", "model": "m", "temperature": 3 });
        assert_eq!(error(&table), "`temperature` must lie between 0 and 2");
        let table = json!({ "provider": "openai", "model": "m", "concurrency": 0 });
        assert_eq!(
            error(&table),
            "`concurrency`: expected a whole number of at least 1, found 0"
        );
        for (key, value, words) in [
            (
                "temperature",
                json!("hot"),
                "`temperature`: expected a number, found the text \"hot\"",
            ),
            (
                "retries",
                json!(-1),
                "`retries`: expected a whole number of at least 0, found -1",
            ),
            (
                "max_tokens",
                json!(1.5),
                "`max_tokens`: expected a whole number of at least 1, found 1.5",
            ),
            ("model", json!(4), "`model`: expected a text, found 4"),
            ("headers", json!([]), "`headers`: expected a table, found a list"),
            ("price", json!({ "input": 1 }), "missing field `output`"),
            (
                "headers",
                json!({ "X-Gate": { "env": 3 } }),
                "`headers.X-Gate`: write a text, or { env = \"VARIABLE\" }",
            ),
            (
                "reasoning_effort",
                json!("hihg"),
                "`reasoning_effort`: unknown value `hihg`, expected one of `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, \
                 `max`; did you mean `high`?",
            ),
            (
                "rewrite_form",
                json!("x"),
                "`rewrite_form`: unknown value `x`, expected `instructed` or `learned`",
            ),
        ] {
            let mut table = json!({ "provider": "openai", "model": "m" });
            table[key] = value;
            assert_eq!(error(&table), words);
        }
        let table = json!({ "provider": "openai", "model": "m", "price": { "input": -1, "output": 1 } });
        assert!(error(&table).contains("`price.input`"));
        let table = json!({ "provider": "openai", "model": "m", "seed": 1 });
        assert_eq!(error(&table), "`seed` means nothing for provider `openai`");
        let table = json!({ "provider": "gemini", "model": "m", "batch": true });
        assert_eq!(error(&table), "`batch` means nothing for provider `gemini`");
        let table = json!({ "provider": "openai", "model": "m", "batch": true, "timeout_seconds": 4 });
        assert_eq!(error(&table), "`timeout_seconds` means nothing beside `batch`");
        let table = json!({ "provider": "simulated", "base_url": "http://x" });
        assert_eq!(error(&table), "`base_url` means nothing for provider `simulated`");
        let table = json!({ "provider": "simulated", "temperature": 1 });
        assert_eq!(
            error(&table),
            "`temperature` means nothing for provider `simulated`"
        );
        let table = json!({ "provider": "local", "model": "runs/desk-0.sft", "retries": 1 });
        assert_eq!(error(&table), "`retries` means nothing for provider `local`");
        let table = json!({ "provider": "local", "model": "m", "price": { "input": 1, "output": 1 } });
        assert_eq!(error(&table), "`price` means nothing for provider `local`");
        let table =
            json!({ "provider": "local", "model": "runs/desk-0.sft", "temperature": 1, "max_tokens": 9 });
        assert!(ModelSpec::parse(&table).is_ok());
    }

    #[test]
    fn the_schema_names_every_provider_and_key() {
        let schema = serde_json::to_value(schema()).unwrap();
        let text = schema.to_string();
        for provider in PROVIDERS {
            assert!(text.contains(provider.name), "{}", provider.name);
        }
        assert_eq!(schema["additionalProperties"], false);
        let described: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(serde_introspect::<ModelSpec>(), described);
    }
}
