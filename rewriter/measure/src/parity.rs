//! What a device computes, beside PyTorch's numbers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use burn_tensor::FloatDType;
use capo_rewriter::backend::PolicyBackend;
use capo_rewriter::device::DeviceChoice;
use capo_rewriter_parity::{Reference, coarse_logits, device_checks};

use crate::device::{Chosen, Work};
use crate::error::Error;

/// Every check on one device; the names of those that fail.
struct Checks {
    reference: PathBuf,
}

impl Work for Checks {
    type Output = Vec<&'static str>;

    fn on<B: PolicyBackend>(self, device: &B::Device) -> Result<Self::Output, Error> {
        let reference = Reference::<B> {
            folder: self.reference,
            device: device.clone(),
        };
        let mut failed = Vec::new();
        let mut check = |name, run: &dyn Fn(&Reference<B>)| {
            let started = Instant::now();
            // A check that fails panics with the numbers, which are printed then.
            let passed = catch_unwind(AssertUnwindSafe(|| run(&reference))).is_ok();
            let verdict = if passed { "passed" } else { "FAILED" };
            println!("{name}: {verdict} in {:.1} s\n", started.elapsed().as_secs_f64());
            if !passed {
                failed.push(name);
            }
        };
        for (name, run) in device_checks::<B>() {
            check(name, &run);
        }
        for (name, number_type) in [
            ("logits in bf16", FloatDType::BF16),
            ("logits in f16", FloatDType::F16),
        ] {
            if B::supports_dtype(device, number_type.into()) {
                check(name, &|reference| coarse_logits(reference, number_type));
            }
        }
        Ok(failed)
    }
}

pub(crate) fn run(choice: &DeviceChoice, reference: &Path) -> Result<(), Error> {
    let chosen = Chosen::of(choice)?;
    println!("{} ({})\n", chosen.choice, chosen.name);
    let failed = chosen.run(Checks {
        reference: reference.to_owned(),
    })?;
    if failed.is_empty() {
        return Ok(());
    }
    Err(Error::Failed(format!("parity failed: {}", failed.join(", "))))
}
