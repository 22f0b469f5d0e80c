//! Floating-point operations that a decoder's work takes at least, and how many a device can do in a second.
//!
//! Model FLOPs utilisation (MFU) is the operations of a piece of work, over its time and the device's peak [Chowdhery
//! et al. 2022, PaLM, appendix B]. What is computed again to save memory does not count as work.

use burn_tensor::FloatDType;

use crate::config::ModelConfig;
use crate::lora::Projection;

/// Dense operations per second in 10¹² with numbers of 16 bits, from NVIDIA's data sheets, by words that follow each
/// other in a device's name. Of two that fit, the first.
const PEAKS: [(&[&str], f64); 7] = [
    (&["H200", "NVL"], 835.0),
    (&["H200"], 989.0),
    (&["H100", "80GB", "HBM3"], 989.0),
    (&["H100", "PCIe"], 756.0),
    (&["A100"], 312.0),
    (&["L40S"], 362.0),
    (&["RTX", "4090"], 165.0),
];

/// Words of devices that are less than their names otherwise say: a part of a GPU, or a slower kind.
const LESS: [&str; 3] = ["MIG", "Laptop", "D"];

/// Operations per second that a device can do in a type, by what its driver calls it; `None` where that is not known.
pub fn peak_flops(device: &str, number_type: FloatDType) -> Option<f64> {
    if !matches!(number_type, FloatDType::F16 | FloatDType::BF16) {
        return None;
    }
    let words: Vec<&str> = device.split([' ', '-']).collect();
    if words.iter().any(|word| LESS.contains(word)) {
        return None;
    }
    let is_called = |name: &[&str]| words.windows(name.len()).any(|words| words == name);
    let (_, peak) = PEAKS.iter().find(|(name, _)| is_called(name))?;
    Some(peak * 1e12)
}

/// Operations of one more token that sees `seen` keys: a multiplication and an addition for each weight, and attention.
pub fn decode_flops(config: &ModelConfig, seen: usize) -> f64 {
    2.0 * (layer_weights(config) + output_weights(config)) + attention_flops(config, seen as f64)
}

/// Operations of learning from one row of `columns` tokens of which `learned` are predicted: forward, and backward by
/// the inputs and, where all weights learn (`is_whole`), by the weights. A token sees half of the row on average. An
/// adapter's own operations, about a hundredth, are left out.
pub fn training_flops(config: &ModelConfig, columns: usize, learned: usize, is_whole: bool) -> f64 {
    let passes = if is_whole { 3.0 } else { 2.0 };
    let (columns, learned) = (columns as f64, learned as f64);
    let linear = layer_weights(config) * columns + output_weights(config) * learned;
    // Attention has no weights: backward is always by both of its factors.
    2.0 * passes * linear + 3.0 * attention_flops(config, columns / 2.0) * columns
}

/// Weights of the linear maps in the layers.
fn layer_weights(config: &ModelConfig) -> f64 {
    let of_layer: usize = Projection::ALL
        .iter()
        .map(|projection| projection.shape(config).iter().product::<usize>())
        .sum();
    (config.layers() * of_layer) as f64
}

/// Weights of the output layer, tied or not.
fn output_weights(config: &ModelConfig) -> f64 {
    (config.vocabulary * config.hidden) as f64
}

/// Operations of attention for one token that sees `seen` keys, in all layers.
fn attention_flops(config: &ModelConfig, seen: f64) -> f64 {
    4.0 * (config.layers() * config.heads * config.head_dim) as f64 * seen
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn shape(name: &str) -> ModelConfig {
        let shapes = Path::new(env!("CARGO_MANIFEST_DIR")).join("measure/shapes");
        ModelConfig::from_folder(&shapes.join(name)).expect("reads")
    }

    #[test]
    fn the_shapes_have_the_sizes_of_their_names() {
        // Published: 0.6 and 8.2 billion parameters, of which the tables are 0.16 and 2 · 0.62.
        let parameters = |config: &ModelConfig| {
            let tables = if config.tied { 1.0 } else { 2.0 };
            layer_weights(config) + tables * output_weights(config)
        };
        assert!((parameters(&shape("qwen3-0.6b")) / 0.596e9 - 1.0).abs() < 0.01);
        assert!((parameters(&shape("qwen3-8b")) / 8.19e9 - 1.0).abs() < 0.01);
    }

    #[test]
    fn operations_are_counted_by_weights_and_keys() {
        let config = shape("micro");
        // 2 layers of 64·(128+64+64+128) + 3·64·160, and 512·64.
        let (layers, output) = (f64::from(2 * (64 * 384 + 3 * 64 * 160)), f64::from(512 * 64));
        let attention = f64::from(4 * 2 * 4 * 32);
        assert_eq!(
            decode_flops(&config, 10),
            2.0 * (layers + output) + 10.0 * attention
        );
        let both = 3.0 * 50.0 * 100.0 * attention;
        assert_eq!(
            training_flops(&config, 100, 30, false),
            4.0 * (100.0 * layers + 30.0 * output) + both
        );
        assert_eq!(
            training_flops(&config, 100, 100, true),
            6.0 * 100.0 * (layers + output) + both
        );
    }

    #[test]
    fn a_device_is_known_by_its_name() {
        let peak = |name| peak_flops(name, FloatDType::BF16);
        assert_eq!(peak("NVIDIA H100 80GB HBM3"), Some(989e12));
        assert_eq!(peak("NVIDIA H200"), Some(989e12));
        assert_eq!(peak("NVIDIA H200 NVL"), Some(835e12));
        assert_eq!(peak("NVIDIA A100-SXM4-80GB"), Some(312e12));
        for unknown in [
            "llvmpipe (LLVM 15)",
            "NVIDIA RTX A1000",
            "NVIDIA GeForce RTX 4090 Laptop GPU",
            "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        ] {
            assert_eq!(peak(unknown), None, "{unknown}");
        }
        assert_eq!(peak_flops("NVIDIA H200", FloatDType::F32), None);
    }
}
