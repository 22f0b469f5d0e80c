//! Usage in an answer, or in an event of one: tokens, text and its end.

use capo_models::prices::Cached;
use serde_json::Value;

use crate::dialect::{Operation, is_word_of};

/// Tokens as far as the provider has reported them. Providers that report while they stream report sums so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Reported {
    pub(super) input: Option<u64>,
    pub(super) cached: Cached,
    pub(super) output: Option<u64>,
    /// What the call cost in dollars, where the provider says so.
    pub(super) usd: Option<f64>,
}

/// Where usage stands: at the top, in the response or message that an event wraps, at the top of Gemini's answers.
const PLACES: [&str; 4] = ["/usage", "/response/usage", "/message/usage", "/usageMetadata"];

impl Reported {
    /// Adds what an answer or event reports.
    pub(super) fn read(&mut self, operation: Operation, value: &Value) {
        let mut usage = PLACES.iter().filter_map(|place| value.pointer(place));
        let Some(usage) = usage.find(|usage| usage.is_object()) else {
            return;
        };
        let first = |places: &str| places.split(' ').find_map(|place| usage.pointer(place)?.as_u64());
        let sum = |a: Option<u64>, b: Option<u64>| a.unwrap_or(0).saturating_add(b.unwrap_or(0));
        let mut input = first("/prompt_tokens /input_tokens /promptTokenCount");
        let mut output = first("/completion_tokens /output_tokens");
        let mut read = first("/prompt_tokens_details/cached_tokens /input_tokens_details/cached_tokens");
        let mut written = first("/prompt_tokens_details/cache_write_tokens");
        match operation {
            // Anthropic counts what its cache has to do with beside the other input.
            Operation::Messages => {
                read = first("/cache_read_input_tokens");
                written = first("/cache_creation_input_tokens");
                input = input.map(|input| sum(Some(input), Some(sum(read, written))));
            }
            // Gemini counts thoughts beside the answer, and leaves out counts of 0.
            Operation::Generate | Operation::GenerateStream => {
                read = first("/cachedContentTokenCount");
                output = Some(sum(first("/candidatesTokenCount"), first("/thoughtsTokenCount")));
            }
            _ => {}
        }
        self.input = self.input.max(input);
        self.output = self.output.max(output);
        self.cached.read = self.cached.read.max(read.unwrap_or(0));
        self.cached.written = self.cached.written.max(written.unwrap_or(0));
        self.usd = usage.get("cost").and_then(Value::as_f64).or(self.usd);
    }
}

/// Whether an event is the last one of its answer.
pub(super) fn is_last(event: &Value) -> bool {
    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
    let is_usage_of_chat =
        event["choices"].as_array().is_some_and(Vec::is_empty) && event["usage"].is_object();
    is_word_of(
        "message_stop response.completed response.incomplete response.failed",
        kind,
    ) || is_usage_of_chat
        || event
            .pointer("/candidates/0/finishReason")
            .is_some_and(Value::is_string)
}

/// The fields of events that lead to text, and those that are text.
const TO_TEXT: &str = "candidates choices content delta function functionCall parts tool_calls";
const TEXT: &str =
    "arguments content delta name partial_json reasoning reasoning_content refusal text thinking";

/// The bytes of text that an event adds to the answer; ids, signatures and copies do not count.
pub(super) fn text_bytes(event: &Value) -> u64 {
    let Value::Object(fields) = event else {
        return event
            .as_array()
            .map_or(0, |items| items.iter().map(text_bytes).sum());
    };
    let of = |(name, value): (&String, &Value)| match value {
        Value::String(text) if is_word_of(TEXT, name) => text.len() as u64,
        Value::Object(_) if name == "args" => value.to_string().len() as u64,
        Value::Object(_) | Value::Array(_) if is_word_of(TO_TEXT, name) => text_bytes(value),
        _ => 0,
    };
    fields.iter().map(of).sum()
}
