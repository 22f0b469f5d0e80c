//! The rewriter on wgpu against numbers made with PyTorch, transformers and PEFT.

use std::time::Instant;

use capo_rewriter_parity::{Reference, device_checks};
use capo_rewriter_wgpu::Wgpu;

/// One process for all checks, so that each kernel is compiled and tuned once.
#[test]
fn parity_of_a_device() {
    let Some(folder) = capo_tests::shared::shared("parity/qwen3") else {
        return;
    };
    let device = capo_rewriter_wgpu::device(0).expect("a Vulkan adapter; `cargo xtask setup` installs one");
    let reference = Reference::<Wgpu> { folder, device };
    for (name, check) in device_checks() {
        let started = Instant::now();
        check(&reference);
        println!("{name}: {:.1} s", started.elapsed().as_secs_f64());
    }
}
