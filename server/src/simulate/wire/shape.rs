//! Answers brought into the form a request asks for, as far as that is honest.

use capo_core::llm::{ChatResponse, Finish};
use serde_json::{Value, json};

use super::{Form, ResponseForm};
use crate::simulate::refusal::Refusal;

/// Cuts an answer of a model that heeds no wishes at a number of output tokens, in proportion to its characters, as a
/// provider does: a text that ran into the limit calls no tools any more. Time and tokens shrink with it.
pub(in crate::simulate) fn cut(response: &mut ChatResponse, max_tokens: u64) {
    let written = response.usage.output_tokens;
    if written <= max_tokens {
        return;
    }
    let share = max_tokens as f64 / written as f64;
    if let Some(text) = &mut response.message.content {
        let keep = (text.chars().count() as f64 * share) as usize;
        if let Some((end, _)) = text.char_indices().nth(keep) {
            text.truncate(end);
        }
    }
    response.message.tool_calls.clear();
    response.finish = Finish::Length;
    response.usage.output_tokens = max_tokens;
    response.usage.seconds *= share;
}

/// Ends the answer where a stop sequence begins, and makes sure that it calls a tool or is the JSON
/// that was asked for. Models here answer in words; what they would not have said is not made up.
///
/// # Errors
/// When the answer is not what was asked for.
pub(in crate::simulate) fn shape(response: &mut ChatResponse, form: &Form) -> Result<(), Refusal> {
    end_before(response, &form.stop);
    let calls = !response.message.tool_calls.is_empty();
    // What ran into a limit may lack anything, with a provider as well.
    if response.finish == Finish::Length {
        return Ok(());
    }
    if form.must_call && !calls {
        return Err(Refusal::field(
            "tool_choice",
            "The model would answer with text here, and cannot be made to call a tool; let `tool_choice` be auto.",
        ));
    }
    let text = response.message.content.as_deref().unwrap_or_default();
    let object = || match serde_json::from_str(text.trim()) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    };
    if calls {
        return Ok(());
    }
    let fits = match &form.response {
        ResponseForm::Text => true,
        ResponseForm::Json => object().is_some(),
        ResponseForm::Schema { required, text: key } => {
            let has_all = object().is_some_and(|object| required.iter().all(|key| object.contains_key(key)));
            if let (false, Some(key)) = (has_all, key) {
                response.message.content = Some(json!({ key: text }).to_string());
                return Ok(());
            }
            has_all
        }
    };
    if fits {
        return Ok(());
    }
    Err(Refusal::field(
        "response_format",
        "The model answers in words here, not with this JSON, and nothing is made up for it: leave `response_format` \
         out, or ask a real model.",
    ))
}

/// Ends an answer before the first of these sequences. Tokens and time shrink in proportion, and
/// what would have come after the text does not come.
fn end_before(response: &mut ChatResponse, sequences: &[String]) {
    let Some(text) = &mut response.message.content else {
        return;
    };
    let ends = sequences.iter().filter_map(|sequence| text.find(sequence));
    let Some(end) = ends.min() else {
        return;
    };
    let share = text[..end].chars().count() as f64 / text.chars().count().max(1) as f64;
    text.truncate(end);
    response.message.tool_calls.clear();
    response.finish = Finish::Stop;
    response.usage.output_tokens = (response.usage.output_tokens as f64 * share).ceil() as u64;
    response.usage.seconds *= share;
}
