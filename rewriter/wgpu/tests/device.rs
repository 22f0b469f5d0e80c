//! The rewriter on wgpu: against numbers made with PyTorch, transformers and PEFT, and its devices.

use burn_tensor::backend::Backend;
use burn_tensor::{FloatDType, Tensor};
use capo_rewriter::backend::PolicyBackend;
use capo_rewriter::device::DeviceChoice;
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
