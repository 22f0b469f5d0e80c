//! Bodies of requests: what they ask for, and what the gateway adds.

use capo_models::providers::Provider;
use serde_json::{Map, Value, json};

use crate::dialect::{Operation, Route};
use crate::problem::Problem;
use crate::text;

/// The most tokens that an answer may have when neither the request nor the key's rule says so.
pub const DEFAULT_MAX_OUTPUT: u64 = 8192;

/// The fields of `generationConfig` that are passed on.
const GENERATION_CONFIG: &str = "candidateCount frequencyPenalty logprobs maxOutputTokens presencePenalty
    responseJsonSchema responseLogprobs responseMimeType responseSchema seed stopSequences temperature thinkingConfig
    topK topP";

impl Operation {
    /// The fields of a body that are passed on. Any other is refused, since it may name another model, price, place of
    /// input or number of answers (`models`, `service_tier`, `previous_response_id`, `best_of`).
    fn fields(self) -> &'static str {
        match self {
            Self::Chat => {
                "chat_template_kwargs frequency_penalty logit_bias logprobs max_completion_tokens max_tokens messages
                min_p model n parallel_tool_calls presence_penalty prompt_cache_key random_seed reasoning
                reasoning_effort repetition_penalty response_format safe_prompt seed stop stream stream_options
                temperature tool_choice tools top_k top_logprobs top_p user verbosity"
            }
            Self::Responses => {
                "include input instructions max_output_tokens model parallel_tool_calls prompt_cache_key reasoning
                store stream temperature text tool_choice tools top_logprobs top_p truncation user"
            }
            Self::Embeddings => "dimensions encoding_format input model output_dimension user",
            Self::Messages => {
                "cache_control max_tokens messages metadata model output_config stop_sequences stream system
                temperature thinking tool_choice tools top_k top_p"
            }
            Self::Generate | Self::GenerateStream => {
                "contents generationConfig safetySettings systemInstruction toolConfig tools"
            }
            Self::EmbedBatch => "requests",
            Self::Models => "",
        }
    }

    /// The fields that may hold the most tokens of one answer; the first one is set where none is.
    fn max_fields(self, provider: &Provider) -> &'static [&'static str] {
        match self {
            Self::Chat if provider.max_tokens == "max_completion_tokens" => {
                &["max_completion_tokens", "max_tokens"]
            }
            Self::Chat => &["max_tokens", "max_completion_tokens"],
            Self::Responses => &["max_output_tokens"],
            Self::Messages => &["max_tokens"],
            Self::Generate | Self::GenerateStream => &["maxOutputTokens"],
            Self::Embeddings | Self::EmbedBatch | Self::Models => &[],
        }
    }
}

/// A body of known fields, all of it text.
#[derive(Debug)]
pub(crate) struct Body {
    fields: Map<String, Value>,
    pub(crate) operation: Operation,
    /// The model asked for.
    pub(crate) model: String,
}

impl Body {
    /// Reads a body.
    ///
    /// # Errors
    /// It is no JSON object, has other fields, holds what is not text, or names no model or two.
    pub(crate) fn read(bytes: &[u8], route: &Route) -> Result<Self, Problem> {
        let operation = route.operation;
        let body: Value = serde_json::from_slice(bytes).map_err(|_| Problem::of_body("", "is no JSON"))?;
        text::only(&body, operation.fields(), "")?;
        if let Some(config) = body.get("generationConfig").filter(|config| !config.is_null()) {
            text::only(config, GENERATION_CONFIG, "/generationConfig")?;
        }
        let named = body.get("model").and_then(Value::as_str);
        let model = if route.model.is_empty() {
            named.unwrap_or_default()
        } else {
            &route.model
        };
        if model.is_empty() {
            return Err(Problem::of_body("/model", "is missing"));
        }
        // Gemini's bodies name the model of each embedding again.
        let requests = body.get("requests").and_then(Value::as_array);
        let again = requests
            .into_iter()
            .flatten()
            .filter_map(|request| request.get("model"));
        if again.into_iter().any(|named| *named != format!("models/{model}")) {
            return Err(Problem::of_body("/requests", "names another model than the path"));
        }
        let model = model.to_owned();
        let Value::Object(fields) = body else {
            unreachable!("`only` refuses what is no object");
        };
        text::check(&fields)?;
        Ok(Self {
            fields,
            operation,
            model,
        })
    }

    /// The settings of an answer.
    fn settings(&mut self) -> &mut Map<String, Value> {
        if !matches!(self.operation, Operation::Generate | Operation::GenerateStream) {
            return &mut self.fields;
        }
        let config = self.fields.entry("generationConfig").or_insert(Value::Null);
        if config.is_null() {
            *config = json!({});
        }
        config.as_object_mut().expect("`read` refuses what is no object")
    }

    /// A count among the settings, `None` if absent.
    fn count(&mut self, name: &str) -> Result<Option<u64>, Problem> {
        let value = self.settings().get(name).filter(|value| !value.is_null());
        let refused = || Problem::of_body(&format!("/{name}"), "must be a whole number of at least 0");
        value.map(|value| value.as_u64().ok_or_else(refused)).transpose()
    }

    /// The most tokens of all answers together. If the body states no maximum, it is told `default`; `None` if there is
    /// no default either.
    ///
    /// # Errors
    /// When a maximum or the number of answers is no whole number.
    pub(crate) fn bound_output(
        &mut self,
        provider: &Provider,
        default: Option<u64>,
    ) -> Result<Option<u64>, Problem> {
        let [first, ..] = *self.operation.max_fields(provider) else {
            return Ok(Some(0));
        };
        let answers = self
            .count("n")?
            .or(self.count("candidateCount")?)
            .unwrap_or(1)
            .max(1);
        let mut most = None;
        for name in self.operation.max_fields(provider) {
            most = most.max(self.count(name)?);
        }
        // Servers that know `max_tokens` alone ignore other names for it.
        let is_missing = first == "max_tokens" && self.count(first)?.is_none();
        let told = if is_missing {
            most.or(default)
        } else {
            default.filter(|_| most.is_none())
        };
        if let Some(told) = told {
            self.settings().insert(first.to_owned(), json!(told));
        }
        Ok(most.or(default).map(|most| most.saturating_mul(answers)))
    }

    /// The body to send. A streamed chat is asked for its usage where it tells it no other way. The body is written anew,
    /// so that what was checked is what the provider reads: a field that was given twice is sent once.
    pub(crate) fn into_bytes(mut self, provider: &Provider) -> Vec<u8> {
        if self.operation == Operation::Chat {
            self.fields.shift_remove("stream_options");
            if self.fields.get("stream") == Some(&Value::Bool(true)) && provider.usage_on_request {
                let options = json!({ "include_usage": true });
                self.fields.insert("stream_options".to_owned(), options);
            }
        }
        Value::Object(self.fields).to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use capo_models::ProviderName;

    use super::*;

    fn provider(name: &str) -> &'static Provider {
        ProviderName::find(name).expect("a provider").get()
    }

    /// Reads a body; `m` is the model in the paths of Gemini's API.
    fn body(operation: &str, body: &str) -> Result<Body, Problem> {
        let (operation, model) = match operation {
            "chat" => (Operation::Chat, ""),
            "responses" => (Operation::Responses, ""),
            "embeddings" => (Operation::Embeddings, ""),
            "messages" => (Operation::Messages, ""),
            "generate" => (Operation::Generate, "m"),
            _ => (Operation::EmbedBatch, "m"),
        };
        let (path, model) = (String::new(), model.to_owned());
        Body::read(
            body.as_bytes(),
            &Route {
                operation,
                path,
                model,
            },
        )
    }

    #[test]
    fn the_output_is_bounded_by_the_largest_maximum_times_the_answers() {
        for line in r#"chat None {"model":"m"}
            chat Some(21) {"model":"m","max_tokens":5,"max_completion_tokens":7,"n":3}
            chat Some(7) {"model":"m","max_tokens":7,"max_completion_tokens":5,"n":null}
            chat Some(18446744073709551615) {"model":"m","max_tokens":9,"n":18446744073709551615}
            responses Some(5) {"model":"m","max_output_tokens":5}
            messages Some(5) {"model":"m","max_tokens":5}
            generate Some(10) {"generationConfig":{"maxOutputTokens":5,"candidateCount":2}}
            generate None {"generationConfig":null}
            embeddings Some(0) {"model":"m"}
            chat 422 {"model":"m","max_tokens":-1}
            chat 422 {"model":"m","n":"3"}
            generate 422 {"generationConfig":{"maxOutputTokens":1.5}}"#
            .lines()
        {
            let [operation, expected, text] = [0, 1, 2].map(|i| line.trim().splitn(3, ' ').nth(i).unwrap());
            let bound = body(operation, text)
                .unwrap()
                .bound_output(provider("openai"), None);
            let bound = bound.map_or_else(|problem| problem.status.to_string(), |bound| format!("{bound:?}"));
            assert_eq!(bound, expected, "{line}");
        }
    }

    #[test]
    fn a_default_maximum_and_the_question_for_usage_are_set_where_the_provider_reads_them() {
        for line in r#"chat openai {"model":"m"} {"model":"m","max_completion_tokens":9}
            chat mistral {"model":"m","stream":true} {"model":"m","stream":true,"max_tokens":9}
            chat ollama {"model":"m","stream":true} {"model":"m","stream":true,"max_tokens":9,"stream_options":{"include_usage":true}}
            chat openai {"model":"m","max_tokens":5,"stream_options":{"include_usage":true}} {"model":"m","max_tokens":5}
            chat openai {"model":"dear","model":"m","n":9,"n":1,"max_tokens":5} {"model":"m","n":1,"max_tokens":5}
            responses openai {"model":"m"} {"model":"m","max_output_tokens":9}
            messages anthropic {"model":"m"} {"model":"m","max_tokens":9}
            generate gemini {} {"generationConfig":{"maxOutputTokens":9}}
            embeddings openai {"model":"m"} {"model":"m"}"#
            .lines()
        {
            let [operation, name, given, sent] = [0, 1, 2, 3].map(|i| line.trim().split(' ').nth(i).unwrap());
            let mut body = body(operation, given).unwrap();
            body.bound_output(provider(name), Some(9)).unwrap();
            assert_eq!(String::from_utf8(body.into_bytes(provider(name))).unwrap(), sent);
        }
    }

    #[test]
    fn unknown_fields_and_other_models_are_refused() {
        for line in r#"chat  []
            chat  {
            chat /model {"messages":[]}
            chat /model {"model":["m"]}
            chat /models {"model":"m","models":["dear"]}
            chat /messages/0/audio {"model":"m","messages":[{"role":"assistant","audio":{"id":"a"}}]}
            chat /service_tier {"model":"m","service_tier":"priority"}
            responses /previous_response_id {"model":"m","previous_response_id":"a"}
            generate /cachedContent {"cachedContent":"a"}
            generate /generationConfig/max_output_tokens {"generationConfig":{"max_output_tokens":9}}
            generate /generationConfig {"generationConfig":7}
            embed /requests {"requests":[{"model":"models/m"},{"model":"models/dear"}]}"#
            .lines()
        {
            let [operation, at, text] = [0, 1, 2].map(|i| line.trim().splitn(3, ' ').nth(i).unwrap());
            assert_eq!(
                body(operation, text).unwrap_err().members["pointer"],
                at,
                "{line}"
            );
        }
    }
}
