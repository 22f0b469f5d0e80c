//! Configurations as people have them.

use serde_json::json;

use super::*;

fn qwen3() -> Value {
    json!({
        "model_type": "qwen3", "vocab_size": 151_936, "hidden_size": 1024,
        "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
        "num_key_value_heads": 8, "head_dim": 128, "hidden_act": "silu",
        "max_position_embeddings": 40_960, "max_window_layers": 28, "rms_norm_eps": 1e-6,
        "rope_theta": 1_000_000, "rope_scaling": null, "attention_bias": false,
        "tie_word_embeddings": true, "use_sliding_window": false, "sliding_window": null,
        "eos_token_id": 151_645, "torch_dtype": "bfloat16",
    })
}

fn with(mut config: Value, changes: &Value) -> Value {
    for (key, value) in changes.as_object().expect("an object") {
        config[key] = value.clone();
    }
    config
}

#[test]
fn both_styles_say_the_same() {
    let old = ModelConfig::from_value(qwen3()).expect("reads");
    let mut new = qwen3();
    for key in ["rope_theta", "rope_scaling", "torch_dtype"] {
        new.as_object_mut().expect("an object").remove(key);
    }
    let new = with(
        new,
        &json!({
            "rope_parameters": { "rope_theta": 1e6, "rope_type": "default" }, "dtype": "bfloat16",
            "eos_token_id": [151_645],
        }),
    );
    assert_eq!(ModelConfig::from_value(new), Ok(old));
}

#[test]
fn yarn_of_transformers_4_has_its_attention_factor() {
    let scaling = json!({ "rope_scaling": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768,
    }});
    let config = ModelConfig::from_value(with(qwen3(), &scaling)).expect("reads");
    let yarn = config.rope.yarn.expect("yarn");
    assert_eq!(yarn.original_context, 32_768);
    assert!((yarn.attention_factor - (0.1 * 4f64.ln() + 1.0)).abs() < 1e-12);
}

#[test]
fn a_multimodal_checkpoint_gives_its_text_model() {
    let text = with(qwen3(), &json!({ "model_type": "ministral3" }));
    let config =
        ModelConfig::from_value(json!({ "model_type": "mistral3", "text_config": text })).expect("reads");
    assert_eq!(config.architecture, Architecture::Ministral3);
}

#[test]
fn a_text_model_has_the_defaults_of_its_class() {
    let bare = |text: Value| {
        ModelConfig::from_value(json!({ "model_type": "mistral3", "text_config": text })).expect("reads")
    };
    let config = bare(json!({ "model_type": "ministral3", "hidden_size": 3072 }));
    assert!(config.multimodal);
    assert_eq!(
        [config.hidden, config.heads, config.kv_heads, config.head_dim],
        [3072, 32, 8, 128]
    );
    assert_eq!(
        (config.layers(), config.vocabulary, config.context),
        (34, 131_072, 262_144)
    );
    assert_eq!((config.rms_norm_eps, config.rope.theta), (1e-5, 1e6));
    assert_eq!(config.windows[0], None);
    assert_eq!(config.stop_tokens, [2]);
    let yarn = config.rope.yarn.expect("yarn");
    assert_eq!((yarn.factor, yarn.attention_factor), (16.0, 1.0));
    let scaling = config.query_scaling.expect("queries are scaled");
    assert_eq!((scaling.beta, scaling.original_context), (0.1, 16_384));
    assert_eq!(bare(json!({})).architecture, Architecture::Mistral);
}

#[test]
fn the_output_layer_is_tied_where_the_text_model_or_else_the_whole_says_so() {
    let tied = |whole: Value, text: Value| {
        let mut config = with(json!({ "model_type": "mistral3" }), &whole);
        config["text_config"] = with(json!({ "model_type": "ministral3" }), &text);
        ModelConfig::from_value(config).expect("reads").tied
    };
    assert!(!tied(json!({}), json!({})));
    assert!(tied(json!({ "tie_word_embeddings": true }), json!({})));
    assert!(!tied(
        json!({ "tie_word_embeddings": true }),
        json!({ "tie_word_embeddings": false })
    ));
    let mut plain = qwen3();
    plain
        .as_object_mut()
        .expect("an object")
        .remove("tie_word_embeddings");
    assert!(!ModelConfig::from_value(plain).expect("reads").tied);
}

#[test]
fn windows_are_those_of_the_architecture() {
    let windows = |changes: Value| {
        let changed = with(qwen3(), &json!({ "num_hidden_layers": 3 }));
        ModelConfig::from_value(with(changed, &changes)).map(|config| config.windows)
    };
    let sliding = json!({ "use_sliding_window": true, "sliding_window": 8, "max_window_layers": 2 });
    assert_eq!(windows(sliding.clone()), Ok(vec![None, None, Some(8)]));
    let types = json!(["sliding_attention", "full_attention", "full_attention"]);
    let typed = with(sliding, &json!({ "layer_types": types }));
    assert_eq!(windows(typed), Ok(vec![Some(8), None, None]));
    // Qwen3 has a window only where `use_sliding_window` says so.
    let silent = json!({ "use_sliding_window": null, "sliding_window": 8, "max_window_layers": 0 });
    assert_eq!(windows(silent), Ok(vec![None; 3]));
    let refused = windows(json!({ "layer_types": types })).expect_err("no window");
    assert!(refused.contains("use_sliding_window"), "{refused}");

    // Mistral has one unless null says that it has none, and knows no types of layers.
    let mistral = |changes: Value| windows(with(json!({ "model_type": "mistral" }), &changes));
    assert_eq!(mistral(json!({ "sliding_window": null })), Ok(vec![None; 3]));
    assert_eq!(mistral(json!({ "sliding_window": 9 })), Ok(vec![Some(9); 3]));
    let refused = mistral(json!({ "sliding_window": 9, "layer_types": types })).expect_err("they disagree");
    assert!(refused.contains("layer_types"), "{refused}");
    let mut silent = with(qwen3(), &json!({ "model_type": "mistral" }));
    silent
        .as_object_mut()
        .expect("an object")
        .remove("sliding_window");
    let silent = ModelConfig::from_value(silent).expect("reads");
    assert_eq!(silent.windows, vec![Some(4096); 28]);
}

#[test]
fn numbers_outside_their_range_are_named() {
    for (name, bad) in [
        ("vocab_size", json!(0)),
        ("hidden_size", json!(-1)),
        ("intermediate_size", json!("many")),
        ("num_hidden_layers", json!(1_000_000_000)),
        ("num_hidden_layers", json!(0)),
        ("num_attention_heads", json!(0)),
        ("num_key_value_heads", json!(5)),
        ("num_key_value_heads", json!(0)),
        ("head_dim", json!(7)),
        ("head_dim", json!(0)),
        ("max_position_embeddings", json!(0)),
        ("rms_norm_eps", json!(0.0)),
        ("rms_norm_eps", json!(-1e-6)),
        ("rope_theta", json!(0)),
        ("rope_theta", json!(1)),
        ("sliding_window", json!(-3)),
    ] {
        let message =
            ModelConfig::from_value(with(qwen3(), &json!({ name: bad }))).expect_err("must be refused");
        assert!(message.contains(name), "{name}: {message}");
    }
    for (name, bad) in [
        ("factor", json!(0.5)),
        ("factor", Value::Null),
        ("beta_fast", json!(0)),
        ("attention_factor", json!(-1)),
        ("original_max_position_embeddings", json!(0)),
        ("truncate", json!(false)),
        ("full_attention", json!({ "rope_theta": 1e6 })),
    ] {
        let mut scaling = json!({ "rope_type": "yarn", "factor": 4.0 });
        scaling[name] = bad;
        let message = ModelConfig::from_value(with(qwen3(), &json!({ "rope_scaling": scaling })))
            .expect_err("must be refused");
        assert!(message.contains(name), "{name}: {message}");
    }
}

#[test]
fn quantised_weights_are_named_in_either_table() {
    let table = json!({ "quantization_config": { "quant_method": "fp8" } });
    let whole = with(
        json!({ "model_type": "mistral3", "text_config": qwen3() }),
        &table,
    );
    let inner = json!({ "model_type": "mistral3", "text_config": with(qwen3(), &table) });
    for (config, name) in [
        (whole, "`quantization_config`"),
        (inner, "`text_config.quantization_config`"),
        (with(qwen3(), &table), "`quantization_config`"),
    ] {
        let message = ModelConfig::from_value(config).expect_err("must be refused");
        assert!(message.contains(name) && message.contains("fp8"), "{message}");
    }
}

#[test]
fn what_is_not_supported_is_named() {
    let message =
        |changes: Value| ModelConfig::from_value(with(qwen3(), &changes)).expect_err("must not read");
    assert!(message(json!({ "model_type": "llama" })).contains("unknown architecture `llama`"));
    assert!(message(json!({ "hidden_act": "gelu" })).contains("silu"));
    assert!(message(json!({ "rope_scaling": { "rope_type": "longrope" } })).contains("longrope"));
    assert!(message(json!({ "attention_bias": true })).contains("attention_bias"));
}
