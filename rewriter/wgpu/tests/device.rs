//! The rewriter on wgpu: against numbers made with PyTorch, transformers and PEFT, and its devices.

use std::path::Path;

use burn_tensor::backend::Backend;
use burn_tensor::{FloatDType, Tensor};
use burn_wgpu::WgpuDevice;
use capo_rewriter::backend::PolicyBackend;
use capo_rewriter::config::ModelConfig;
use capo_rewriter::decoder::Decoder;
use capo_rewriter::device::DeviceChoice;
use capo_rewriter::fine_tuning::{SftExample, SftSettings, SftTrainer};
use capo_rewriter::generate::{Generation, GenerationRow};
use capo_rewriter::lora::{Adapter, LoraConfig};
use capo_rewriter::policy::Policy;
use capo_rewriter::replicas::Replicas;
use capo_rewriter::token_sampling::Sampling;
use capo_rewriter_parity::{Check, Reference, device_checks};
use capo_rewriter_wgpu::{DEVICES, Wgpu, device};

const NO_ADAPTER: &str = "a Vulkan adapter, which `cargo xtask setup` installs";

/// One process for many checks, so that each kernel is compiled once.
fn run(is_wanted: impl Fn(&Check<Wgpu>) -> bool) {
    let Some(folder) = capo_tests::shared::shared("parity/qwen3") else {
        return;
    };
    let device = device(0).expect(NO_ADAPTER);
    let reference = Reference::<Wgpu> { folder, device };
    for (name, check) in device_checks().into_iter().filter(is_wanted) {
        println!("{name}");
        check(&reference);
    }
}

fn is_of_many_rows((name, _): &Check<Wgpu>) -> bool {
    name.ends_with("rows alone and in a batch")
}

#[test]
fn parity_of_a_device() {
    run(|check| !is_of_many_rows(check));
}

#[test]
fn parity_of_rows_alone_and_in_a_batch() {
    run(is_of_many_rows);
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
fn memory_of_a_device_is_told() {
    let device = device(0).expect(NO_ADAPTER);
    let numbers = Tensor::<Wgpu, 1>::ones([1 << 20], &device);
    Wgpu::sync(&device).expect("it computes");
    let held = Wgpu::device_memory(&device).expect("a GPU has memory of its own");
    assert!(
        held >= 4 << 20,
        "{held} bytes for {} of 32 bits",
        numbers.dims()[0]
    );
}

/// The emulation by its name and as the default are two devices to wgpu, with memory of their own.
#[test]
fn two_devices_learn_what_one_learns() {
    let shape = Path::new(env!("CARGO_MANIFEST_DIR")).join("../measure/shapes/micro");
    let config = ModelConfig::from_folder(&shape).expect("reads");
    let policy = |device: &WgpuDevice| {
        let base = Decoder::<Wgpu>::random(config.clone(), FloatDType::F32, 0, device);
        let adapter = Adapter::new(&LoraConfig::all(4, 8.0), base.config(), 1, device).expect("valid");
        Policy::Adapted { base, adapter }
    };
    let devices = [WgpuDevice::Cpu, WgpuDevice::DefaultDevice];
    let [here, there] = [&devices[0], &devices[1]].map(policy);
    let row = |row: u32| (vec![row + 1; 5], vec![2 * row + 3; 4 + row as usize]);
    let examples: Vec<SftExample> = (0..4).map(row).collect();
    let settings = SftSettings {
        batch: 4,
        epochs: 3,
        learning_rate: 1e-2,
        warmup: 0.0,
        ..SftSettings::default()
    };
    let trainer = || SftTrainer::new(here.clone(), examples.clone(), Vec::new(), settings).expect("valid");
    let mut alone = trainer();
    let mut together = trainer().on(Replicas::new(vec![there]).expect("threads"));
    let mut losses = Vec::new();
    for _ in 0..3 {
        let (one, other) = (alone.step().expect("finite"), together.step().expect("finite"));
        let gap = (one.loss - other.loss).abs();
        assert!(gap < 1e-4, "step {}: {} {}", one.step, one.loss, other.loss);
        assert!((one.gradient_norm - other.gradient_norm).abs() < 1e-3 * one.gradient_norm);
        assert!(other.device_memory_bytes > one.device_memory_bytes);
        losses.push(one.loss);
    }
    assert!(losses[2] < losses[0], "something was learned: {losses:?}");
}

/// Kernels read all their tensors as of one type, and adapters are of another than the model.
#[test]
fn models_of_16_bits_answer_and_learn_as_those_of_32() {
    let shape = Path::new(env!("CARGO_MANIFEST_DIR")).join("../measure/shapes/micro");
    let config = ModelConfig::from_folder(&shape).expect("reads");
    let device = device(0).expect(NO_ADAPTER);
    let [of_16, of_32] = [FloatDType::F16, FloatDType::F32].map(|number_type| {
        let base = Decoder::<Wgpu>::random(config.clone(), number_type, 0, &device);
        let adapter = Adapter::new(&LoraConfig::all(4, 8.0), base.config(), 1, &device).expect("valid");
        let rows = [3, 9].map(|length| GenerationRow {
            prompt: (1..length).collect(),
            seed: u64::from(length),
        });
        let settings = Generation {
            sampling: Sampling::GREEDY,
            max_new_tokens: 5,
            stop_tokens: Vec::new(),
            share_prefixes: true,
        };
        let answers = base
            .generate(Some(&adapter), &rows, &settings)
            .expect("it answers");
        let examples: Vec<SftExample> = (0..4)
            .map(|row| (vec![row + 1; 5], vec![2 * row + 3; 4]))
            .collect();
        let settings = SftSettings {
            batch: 4,
            ..SftSettings::default()
        };
        let mut trainer = SftTrainer::new(Policy::Adapted { base, adapter }, examples, Vec::new(), settings)
            .expect("valid");
        let step = trainer.step().expect("finite");
        let logprobs: Vec<f32> = answers
            .iter()
            .flat_map(|answer| answer.logprobs.clone())
            .collect();
        (logprobs, step.loss, step.gradient_norm)
    });
    for (one, other) in of_16.0.iter().zip(&of_32.0) {
        assert!((one - other).abs() < 0.02, "{:?} {:?}", of_16.0, of_32.0);
    }
    assert!((of_16.1 - of_32.1).abs() < 0.02, "{} {}", of_16.1, of_32.1);
    assert!(
        (of_16.2 - of_32.2).abs() < 0.02 * of_32.2,
        "{} {}",
        of_16.2,
        of_32.2
    );
}
