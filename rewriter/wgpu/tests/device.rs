//! The rewriter on wgpu: against numbers made with PyTorch, transformers and PEFT, and at its limits.

use burn_tensor::FloatDType;
use capo_rewriter::decoder::Decoder;
use capo_rewriter::device::DeviceChoice;
use capo_rewriter::error::RequestError;
use capo_rewriter::generate::{Generation, GenerationRow};
use capo_rewriter::nano::NanoConfig;
use capo_rewriter::sampling::Sampling;
use capo_rewriter::tokenizer::Tokenizer;
use capo_rewriter_parity::{Reference, device_checks};
use capo_rewriter_wgpu::{DEVICES, Wgpu, device};

const NO_ADAPTER: &str = "a Vulkan adapter, which `cargo xtask setup` installs";

/// One process for all checks, so that each kernel is compiled once.
#[test]
fn parity_of_a_device() {
    let Some(folder) = capo_tests::shared::shared("parity/qwen3") else {
        return;
    };
    let device = device(0).expect(NO_ADAPTER);
    let reference = Reference::<Wgpu> { folder, device };
    for (name, check) in device_checks() {
        println!("{name}");
        check(&reference);
    }
}

#[test]
fn adapters_are_listed_and_opened_by_their_index() {
    let devices = (DEVICES.list)().expect("Vulkan answers");
    let emulation = devices.iter().position(|device| device.name.contains("llvmpipe"));
    let index = emulation.expect(NO_ADAPTER);
    assert!(!devices[index].is_hardware);
    let choice = DeviceChoice::Named {
        backend: "wgpu",
        index,
    };
    let engine = choice.open(&[DEVICES], None).expect("it opens");
    assert_eq!(engine.device(), choice.to_string());
    let beyond = DeviceChoice::Named {
        backend: "wgpu",
        index: devices.len(),
    };
    let refused = beyond
        .open(&[DEVICES], None)
        .err()
        .expect("there are no more")
        .to_string();
    assert!(refused.contains(&devices[0].name), "{refused}");
    let refused = choice.open(&[DEVICES], Some(FloatDType::BF16)).err();
    let refused = refused.expect("WGSL has no such type").to_string();
    assert!(refused.contains("take F32"), "{refused}");
}

#[test]
fn memory_that_does_not_suffice_is_an_error_with_advice() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = NanoConfig {
        hidden: 32,
        layers: 1,
        heads: 1,
        kv_heads: 1,
        head_dim: 32,
        intermediate: 32,
        context: 1 << 16,
        tied: true,
    };
    let tokenizer = Tokenizer::of_bytes().expect("builds");
    config.write(folder.path(), &tokenizer, 0).expect("writes");
    let device = device(0).expect(NO_ADAPTER);
    let model = Decoder::<Wgpu>::from_folder(folder.path(), FloatDType::F32, &device).expect("loads");
    // A cache of 512 · 65,000 · 32 numbers twice: 8.5 GB.
    let rows: Vec<_> = (0..512)
        .map(|seed| GenerationRow {
            prompt: vec![1],
            seed,
        })
        .collect();
    let settings = Generation {
        sampling: Sampling::GREEDY,
        max_new_tokens: 65_000,
        stop_tokens: Vec::new(),
        share_prefixes: true,
    };
    let refused = model.generate(None, &rows, &settings).expect_err("too much");
    assert!(matches!(refused, RequestError::OutOfMemory { .. }), "{refused}");
    assert!(refused.to_string().contains("fewer rewrites"), "{refused}");
}
