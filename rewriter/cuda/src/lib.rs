//! The rewriter on CUDA.
//!
//! A leaf of the workspace: nothing is generic here, so that the kernels are compiled with this crate
//! and not with what changes more often. The backend is burn's without fusion, whose kernels give wrong
//! numbers for one row. Nothing of CUDA is linked: driver and compiler are loaded when first used, and
//! what is missing then panics inside burn, so [`DEVICES`] looks for all of it before.

use std::panic;
use std::sync::{Mutex, PoisonError};

use burn_cuda::CudaDevice;
use burn_tensor::FloatDType;
use capo_rewriter::device::{Device, DeviceBackend, Unusable, open_engine};
use cudarc::driver::result as driver;
use cudarc::driver::sys::CUresult;

/// burn's CUDA backend without fusion.
pub type Cuda = burn_cuda::Cuda<f32, i32>;

/// The GPUs of this machine.
pub const DEVICES: DeviceBackend = DeviceBackend {
    name: "cuda",
    number_type: FloatDType::BF16,
    list,
    open: |devices, number_type| open_engine::<Cuda>("cuda", devices, |index| Ok(device(index)), number_type),
};

/// The device of this index in [`DEVICES`].
pub fn device(index: usize) -> CudaDevice {
    CudaDevice::new(index)
}

fn list() -> Result<Vec<Device>, Unusable> {
    let devices = loaded(|| {
        driver::init()?;
        (0..driver::device::get_count()?)
            .map(|index| driver::device::get(index).and_then(driver::device::get_name))
            .collect::<Result<Vec<_>, _>>()
    })
    .ok_or_else(|| {
        let needed = "the driver's library libcuda is not on the library path: install NVIDIA's driver";
        Unusable::NotInstalled(needed.to_owned())
    })?
    .map_err(|why| {
        let answer = format!("the driver answers {why}");
        match why.0 {
            // The stub is what programs are linked with where there is no driver.
            CUresult::CUDA_ERROR_NO_DEVICE | CUresult::CUDA_ERROR_STUB_LIBRARY => {
                Unusable::NotInstalled(answer)
            }
            _ => Unusable::Broken(answer),
        }
    })?;
    if !devices.is_empty() {
        check_compiler().map_err(Unusable::Broken)?;
    }
    let device = |name| Device {
        name,
        is_hardware: true,
    };
    Ok(devices.into_iter().map(device).collect())
}

/// Kernels are compiled when they are first used, by NVRTC and with the toolkit's headers.
fn check_compiler() -> Result<(), String> {
    let headers = cubecl_cuda::install::cuda_path().map(|path| path.join("include/cuda_runtime.h"));
    if !headers.is_some_and(|headers| headers.exists()) {
        let needed = "CUDA's headers are not found: set CUDA_PATH to a folder with include/cuda_runtime.h";
        return Err(needed.to_owned());
    }
    loaded(|| cudarc::nvrtc::compile_ptx("extern \"C\" __global__ void nothing() {}"))
        .ok_or("the library libnvrtc is not on the library path: install CUDA's toolkit or its NVRTC")?
        .map(|_| ())
        .map_err(|why| format!("CUDA's compiler answers {why:?}"))
}

/// What `call` gives, or `None` if the library that it calls does not load, which is a panic in it.
fn loaded<T>(call: impl FnOnce() -> T + panic::UnwindSafe) -> Option<T> {
    static QUIET: Mutex<()> = Mutex::new(());
    let _turn = QUIET.lock().unwrap_or_else(PoisonError::into_inner);
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let outcome = panic::catch_unwind(call);
    panic::set_hook(hook);
    outcome.ok()
}
