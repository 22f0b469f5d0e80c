//! The rewriter on wgpu: on Linux, Vulkan with shaders in WGSL.
//!
//! A leaf of the workspace: nothing is generic here, so that the kernels are compiled with this crate
//! and not with what changes more often. The backend is burn's without fusion, whose kernels give wrong
//! numbers for one row.

use burn_tensor::FloatDType;
use burn_wgpu::graphics::{AutoGraphicsApi, GraphicsApi};
use burn_wgpu::{CubeBackend, WgpuDevice, WgpuRuntime};
use capo_rewriter::device::{Device, DeviceBackend, DeviceChoice, DeviceError, open_engine};
use capo_rewriter::engine::Engine;
use wgpu::{AdapterInfo, DeviceType, Instance, InstanceDescriptor};

/// burn's wgpu backend without fusion.
pub type Wgpu = CubeBackend<WgpuRuntime, f32, i32, u32>;

/// The adapters of this machine.
pub const DEVICES: DeviceBackend = DeviceBackend {
    name: "wgpu",
    number_type: FloatDType::F32,
    list: || {
        let described = |(_, info): (WgpuDevice, AdapterInfo)| Device {
            is_hardware: info.device_type != DeviceType::Cpu,
            name: info.name,
        };
        Ok(adapters().into_iter().map(described).collect())
    },
    open,
};

fn open(devices: &[(usize, Device)], number_type: FloatDType) -> Result<Box<dyn Engine>, DeviceError> {
    let handle = |index: usize| {
        let choice = DeviceChoice::Named {
            backend: "wgpu",
            index,
        };
        device(index).ok_or_else(|| choice.absent("its adapter is gone", &[DEVICES]))
    };
    open_engine::<Wgpu>("wgpu", devices, handle, number_type)
}

/// The device of this index in [`DEVICES`].
pub fn device(index: usize) -> Option<WgpuDevice> {
    let (device, _) = adapters().into_iter().nth(index)?;
    Some(device)
}

/// Adapters that burn can name, GPUs first, an emulation on the processor last.
fn adapters() -> Vec<(WgpuDevice, AdapterInfo)> {
    let backends = AutoGraphicsApi::backend().into();
    let instance = Instance::new(InstanceDescriptor {
        backends,
        ..InstanceDescriptor::new_without_display_handle()
    });
    let found = futures::executor::block_on(instance.enumerate_adapters(backends));
    let infos: Vec<_> = found.iter().map(wgpu::Adapter::get_info).collect();
    let of_type = |device_type, name: fn(usize) -> WgpuDevice| {
        let of_type = infos.iter().filter(move |info| info.device_type == device_type);
        of_type
            .enumerate()
            .map(move |(index, info)| (name(index), info.clone()))
    };
    of_type(DeviceType::DiscreteGpu, WgpuDevice::DiscreteGpu)
        .chain(of_type(DeviceType::IntegratedGpu, WgpuDevice::IntegratedGpu))
        .chain(of_type(DeviceType::VirtualGpu, WgpuDevice::VirtualGpu))
        .chain(of_type(DeviceType::Other, |_| WgpuDevice::DefaultDevice).take(1))
        .chain(of_type(DeviceType::Cpu, |_| WgpuDevice::Cpu).take(1))
        .collect()
}
