//! Reasoning effort, in its provider's terms.

use rig_core::catalog::{Catalog, ModelSpec as Known};
use rig_core::completion::Reasoning;
use rig_core::providers::registry::ProviderId;

use crate::effort::ReasoningEffort;
use crate::providers::Provider;
use crate::spec::ModelSpec;

/// The thinking tokens of an effort for models that take a budget and no effort: those that Google's API documents for
/// `reasoning_effort` of Gemini 2.5. Each is within every such model's bounds.
fn budget(effort: ReasoningEffort) -> Option<u32> {
    match effort {
        ReasoningEffort::Minimal | ReasoningEffort::Low => Some(1_024),
        ReasoningEffort::Medium => Some(8_192),
        ReasoningEffort::High => Some(24_576),
        ReasoningEffort::None | ReasoningEffort::Xhigh | ReasoningEffort::Max => None,
    }
}

/// What a model is asked for.
pub(crate) fn reasoning(provider: &Provider, model: &str, effort: ReasoningEffort) -> Reasoning {
    match budget(effort) {
        Some(tokens) if (provider.takes_budget)(provider, model, effort) => Reasoning::Budget { tokens },
        _ => effort.into(),
    }
}

/// Whether a table asks for thinking that a number of tokens bounds.
pub(crate) fn thinks_within_a_budget(spec: &ModelSpec) -> bool {
    let reasoning = spec
        .model
        .as_deref()
        .zip(spec.reasoning_effort)
        .map(|(model, effort)| reasoning(spec.provider.get(), model, effort));
    matches!(reasoning, Some(Reasoning::Budget { .. }))
}

/// What the catalogue says of a model, if it knows it.
pub(crate) fn known(provider: &Provider, model: &str) -> Option<&'static Known> {
    let provider = provider.catalogue.and_then(ProviderId::catalog)?;
    Catalog::builtin().find(provider, model)
}

/// Whether nobody needs to ask whether a model thinks: it does not.
pub(crate) fn never_thinks(provider: &Provider, model: &str) -> bool {
    provider
        .without_thinking
        .iter()
        .any(|begin| model.starts_with(begin))
}

/// Whether the catalogue says of a model that it thinks within a number of tokens, and knows no efforts.
pub(crate) fn takes_budget_alone(provider: &Provider, model: &str) -> bool {
    known(provider, model)
        .is_some_and(|known| known.reasoning.levels.is_empty() && known.reasoning.budget.is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(provider: &str, model: &str, effort: &str) -> Result<Reasoning, String> {
        let table = json!({ "provider": provider, "model": model, "reasoning_effort": effort });
        let spec = ModelSpec::parse(&table)?;
        Ok(reasoning(
            spec.provider.get(),
            model,
            spec.reasoning_effort.unwrap(),
        ))
    }

    #[test]
    fn a_temperature_is_refused_where_the_model_takes_none() {
        let parsed = |provider: &str, model: &str, temperature: f64, effort: Option<&str>| {
            let mut table = json!({ "provider": provider, "model": model, "temperature": temperature });
            if let Some(effort) = effort {
                table["reasoning_effort"] = json!(effort);
            }
            ModelSpec::parse(&table).map(drop)
        };
        for (provider, model, temperature, effort, said) in [
            (
                "openai",
                "gpt-5-mini",
                1.0,
                None,
                "openai/gpt-5-mini takes no `temperature`; leave it out",
            ),
            (
                "openai",
                "gpt-5.1",
                0.5,
                Some("low"),
                "reasoning_effort = \"none\"",
            ),
            ("openai", "gpt-5.1", 0.5, None, "reasoning_effort = \"none\""),
            (
                "anthropic",
                "claude-opus-4-8",
                0.5,
                None,
                "takes no `temperature`",
            ),
            ("anthropic", "claude-sonnet-4-5", 1.5, None, "from 0 to 1"),
        ] {
            let error = parsed(provider, model, temperature, effort).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        for (provider, model, temperature, effort) in [
            ("openai", "gpt-5.1", 0.5, Some("none")),
            ("openai", "gpt-4.1-mini", 2.0, None),
            ("openai", "gpt-99", 2.0, None),
            ("anthropic", "claude-sonnet-4-5", 1.0, None),
            ("gemini", "gemini-2.5-flash", 2.0, None),
            ("openai-compatible", "gpt-5-mini", 1.0, None),
        ] {
            let mut outcome = parsed(provider, model, temperature, effort);
            if let Err(error) = &outcome
                && error.contains("base_url")
            {
                outcome = Ok(());
            }
            assert_eq!(outcome, Ok(()), "{provider}/{model}");
        }
    }

    fn tokens(tokens: u32) -> Reasoning {
        Reasoning::Budget { tokens }
    }

    #[test]
    fn models_that_take_a_budget_get_one_for_every_effort_they_can_have() {
        for model in [
            "gemini-2.5-pro",
            "gemini-2.5-flash",
            "gemini-2.5-flash-lite",
            "gemini-2.5-flash-preview-09-2025",
            "models/gemini-2.5-flash",
            "Gemini-2.5-Flash",
        ] {
            assert_eq!(of("gemini", model, "minimal").unwrap(), tokens(1_024));
            assert_eq!(of("gemini", model, "low").unwrap(), tokens(1_024));
            assert_eq!(of("gemini", model, "medium").unwrap(), tokens(8_192));
            assert_eq!(of("gemini", model, "high").unwrap(), tokens(24_576));
        }
        for model in [
            "claude-sonnet-4-5",
            "claude-haiku-4-5-20251001",
            "claude-opus-4-1",
        ] {
            assert_eq!(of("anthropic", model, "low").unwrap(), tokens(1_024));
            assert_eq!(of("anthropic", model, "high").unwrap(), tokens(24_576));
        }
        assert_eq!(of("gemini", "gemini-2.5-flash", "none"), Ok(Reasoning::Off));
        assert!(of("anthropic", "claude-3-5-haiku-latest", "none").is_ok());
        assert!(matches!(
            of("gemini", "gemini-3-flash-preview", "low"),
            Ok(Reasoning::Effort(_))
        ));
        assert!(matches!(
            of("anthropic", "claude-opus-4-6", "high"),
            Ok(Reasoning::Effort(_))
        ));
        assert!(matches!(
            of("openai", "gpt-5-mini", "low"),
            Ok(Reasoning::Effort(_))
        ));
    }

    #[test]
    fn efforts_that_a_model_cannot_have_are_refused_with_their_table() {
        for (provider, model, effort) in [
            ("gemini", "gemini-2.5-pro", "none"),
            ("gemini", "gemini-2.5-flash", "max"),
            ("gemini", "gemini-3-pro", "medium"),
            ("anthropic", "claude-sonnet-4-5", "minimal"),
            ("anthropic", "claude-sonnet-4-5", "xhigh"),
            ("anthropic", "claude-3-5-haiku-latest", "high"),
            ("anthropic", "claude-3-opus-20240229", "low"),
        ] {
            let refusal = of(provider, model, effort).unwrap_err();
            let begin = format!("`reasoning_effort` is not possible with {provider}/{model}: ");
            assert!(refusal.starts_with(&begin), "{refusal}");
        }
    }

    fn refusal(more: &Value) -> Option<String> {
        let mut table = json!({ "provider": "anthropic", "model": "claude-sonnet-4-5" });
        table
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        ModelSpec::parse(&table).err()
    }

    #[test]
    fn thinking_at_anthropic_leaves_room_for_the_answer_and_takes_no_temperature() {
        let refused = refusal(&json!({ "reasoning_effort": "high", "max_tokens": 24_576 })).unwrap();
        assert!(refused.contains("below `max_tokens`"), "{refused}");
        assert_eq!(
            refusal(&json!({ "reasoning_effort": "high", "max_tokens": 24_577 })),
            None
        );
        assert_eq!(refusal(&json!({ "reasoning_effort": "high" })), None);
        let refused = refusal(&json!({ "reasoning_effort": "low", "temperature": 0.5 })).unwrap();
        assert!(
            refused.contains("`temperature` beside `reasoning_effort`"),
            "{refused}"
        );
        assert_eq!(
            refusal(&json!({ "reasoning_effort": "none", "temperature": 0.5 })),
            None
        );
        assert_eq!(refusal(&json!({ "temperature": 0.5 })), None);
    }

    #[test]
    fn thinking_at_gemini_leaves_room_for_the_answer() {
        let refusal = |effort: &str, max_tokens: u32| {
            let mut table =
                json!({ "provider": "gemini", "model": "gemini-2.5-flash", "max_tokens": max_tokens });
            table["reasoning_effort"] = json!(effort);
            ModelSpec::parse(&table).err()
        };
        let refused = refusal("medium", 8_192).unwrap();
        assert!(
            refused.contains("8192 tokens") && refused.contains("below `max_tokens`"),
            "{refused}"
        );
        assert_eq!(refusal("medium", 8_193), None);
        assert_eq!(refusal("none", 100), None);
    }
}
