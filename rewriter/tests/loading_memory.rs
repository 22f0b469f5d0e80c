//! What loading holds in memory at most. A program of its own, since the peak is the process's.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use burn_flex::{Flex, FlexDevice};
use burn_tensor::FloatDType;
use capo_rewriter::decoder::Decoder;
use serde_json::{Map, Value, json};

const LAYERS: usize = 8;
const HIDDEN: usize = 512;
const INNER: usize = 1536;
const VOCABULARY: usize = 32_768;

/// Writes a model of zeros, 16 bits each, in a file with holes; gives the number of numbers.
fn write_model(folder: &Path) -> usize {
    let config = json!({
        "model_type": "mistral", "vocab_size": VOCABULARY, "hidden_size": HIDDEN, "intermediate_size": INNER,
        "num_hidden_layers": LAYERS, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64,
        "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 10_000.0,
        "tie_word_embeddings": true, "sliding_window": null,
    });
    fs::write(folder.join("config.json"), config.to_string()).expect("written");
    let mut header = Map::new();
    let mut end = 0;
    let mut add = |name: String, shape: &[usize]| {
        let start = end;
        end += 2 * shape.iter().product::<usize>();
        header.insert(
            name,
            json!({ "dtype": "BF16", "shape": shape, "data_offsets": [start, end] }),
        );
    };
    add("model.norm.weight".to_owned(), &[HIDDEN]);
    for layer in 0..LAYERS {
        for (name, shape) in [
            ("input_layernorm", &[HIDDEN][..]),
            ("post_attention_layernorm", &[HIDDEN]),
            ("self_attn.q_proj", &[HIDDEN, HIDDEN]),
            ("self_attn.k_proj", &[HIDDEN, HIDDEN]),
            ("self_attn.v_proj", &[HIDDEN, HIDDEN]),
            ("self_attn.o_proj", &[HIDDEN, HIDDEN]),
            ("mlp.gate_proj", &[INNER, HIDDEN]),
            ("mlp.up_proj", &[INNER, HIDDEN]),
            ("mlp.down_proj", &[HIDDEN, INNER]),
        ] {
            add(format!("model.layers.{layer}.{name}.weight"), shape);
        }
    }
    add("model.embed_tokens.weight".to_owned(), &[VOCABULARY, HIDDEN]);
    let header = Value::Object(header).to_string();
    let mut file = File::create(folder.join("model.safetensors")).expect("created");
    file.write_all(&(header.len() as u64).to_le_bytes())
        .expect("written");
    file.write_all(header.as_bytes()).expect("written");
    file.set_len((8 + header.len() + end) as u64).expect("extended");
    end / 2
}

/// A line of /proc/self/status, in bytes.
fn status(name: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status
        .lines()
        .find(|line| line.starts_with(name))
        .expect("a line of this name");
    let kibibytes = line.split_whitespace().nth(1).expect("a number");
    1024.0 * kibibytes.parse::<f64>().expect("a number")
}

#[test]
fn the_peak_is_little_above_the_model() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let numbers = write_model(folder.path());
    for (number_type, width) in [(FloatDType::BF16, 2), (FloatDType::F32, 4)] {
        let before = status("VmRSS:");
        let model: Decoder<Flex> =
            Decoder::from_folder(folder.path(), number_type, &FlexDevice).expect("loads");
        let model_bytes = (numbers * width) as f64;
        let ratio = (status("VmHWM:") - before) / model_bytes;
        println!("{number_type:?}: {ratio:.3} of {:.0} MB", model_bytes / 1e6);
        assert!(ratio <= 1.2, "{ratio}");
        drop(model);
    }
}
