//! Where policies run: `--device cpu|wgpu[:N]|cuda[:N]|auto`.

use std::fmt;
use std::str::FromStr;

use burn_flex::{Flex, FlexDevice};
use burn_tensor::FloatDType;
pub use burn_tensor::FloatDType as NumberType;

use crate::backend::PolicyBackend;
use crate::engine::{DeviceEngine, Engine};

/// The backends in the order in which `auto` prefers them.
const KNOWN: [&str; 3] = ["cuda", "wgpu", "cpu"];

/// What `--device` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first that is there of cuda, wgpu with a GPU behind it, and cpu.
    Auto,
    /// One device of one backend.
    Named {
        /// One of cpu, wgpu and cuda.
        backend: &'static str,
        /// Its place among the backend's devices, from 0.
        index: usize,
    },
}

impl FromStr for DeviceChoice {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let unknown = || DeviceError::Unknown {
            text: text.to_owned(),
        };
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let (name, index) = match text.split_once(':') {
            Some((name, index)) => (name, index.parse().map_err(|_| unknown())?),
            None => (text, 0),
        };
        let backend = KNOWN
            .into_iter()
            .find(|known| *known == name)
            .ok_or_else(unknown)?;
        if backend == "cpu" && text != "cpu" {
            return Err(unknown());
        }
        Ok(Self::Named { backend, index })
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => formatter.write_str("auto"),
            Self::Named { backend, index: 0 } => formatter.write_str(backend),
            Self::Named { backend, index } => write!(formatter, "{backend}:{index}"),
        }
    }
}

/// A device that is present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// What its driver calls it.
    pub name: String,
    /// False for a driver that computes on the CPU.
    pub is_hardware: bool,
}

/// A backend that was compiled in.
#[derive(Debug, Clone, Copy)]
pub struct DeviceBackend {
    /// One of cpu, wgpu and cuda.
    pub name: &'static str,
    /// What it computes in unless told otherwise.
    pub number_type: FloatDType,
    /// The devices present, by index, or why none can be used.
    pub list: fn() -> Result<Vec<Device>, String>,
    /// The engine of the device of an index that is listed, computing in a type.
    pub open: fn(usize, FloatDType) -> Result<Box<dyn Engine>, DeviceError>,
}

/// Why there is no device to run on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The text names no device.
    #[error("`{text}` is no device: write cpu, wgpu, cuda, one of several as in cuda:1, or auto")]
    Unknown {
        /// The text.
        text: String,
    },
    /// The backend was left out when the program was built.
    #[error(
        "this program was built without {backend}: build it with `cargo build --release -p capo-server --features train,{backend}`; it can use {present}"
    )]
    NotCompiled {
        /// The backend, which is also the feature's name.
        backend: &'static str,
        /// The devices that there are.
        present: String,
    },
    /// The backend has no such device on this machine.
    #[error("there is no device {choice}: {reason}; present are {present}")]
    Absent {
        /// What was asked for.
        choice: String,
        /// Why it cannot be used.
        reason: String,
        /// The devices that there are.
        present: String,
    },
    /// The device does not compute in this type.
    #[error("{device} does not compute in {number_type:?}: take {supported}")]
    NumberType {
        /// The device.
        device: String,
        /// What was asked for.
        number_type: FloatDType,
        /// Types that it computes in.
        supported: String,
    },
}

impl DeviceChoice {
    /// The engine of the chosen device, computing in `number_type`, without one in what its backend prefers.
    ///
    /// # Errors
    ///
    /// As [`select`](Self::select), or the device does not compute in this type.
    pub fn open(
        &self,
        compiled: &[DeviceBackend],
        number_type: Option<FloatDType>,
    ) -> Result<Box<dyn Engine>, DeviceError> {
        let (place, index) = self.select(compiled)?;
        let backend = &compiled[place];
        (backend.open)(index, number_type.unwrap_or(backend.number_type))
    }

    /// The backend's place in `compiled`, and the device's index.
    ///
    /// # Errors
    ///
    /// The backend was not compiled in, or has no such device; the message names those that are present.
    pub fn select(&self, compiled: &[DeviceBackend]) -> Result<(usize, usize), DeviceError> {
        match self {
            Self::Auto => {
                let preferred = KNOWN.iter().find_map(|name| {
                    let place = compiled.iter().position(|backend| backend.name == *name)?;
                    let devices = (compiled[place].list)().unwrap_or_default();
                    let index = devices
                        .iter()
                        .position(|device| device.is_hardware || *name == "cpu")?;
                    Some((place, index))
                });
                preferred.ok_or_else(|| self.absent("no backend has one", compiled))
            }
            Self::Named { backend, index } => {
                let place = compiled.iter().position(|one| one.name == *backend);
                let place = place.ok_or_else(|| DeviceError::NotCompiled {
                    backend,
                    present: present(compiled),
                })?;
                let devices = (compiled[place].list)().map_err(|why| self.absent(&why, compiled))?;
                if *index < devices.len() {
                    return Ok((place, *index));
                }
                let reason = match devices.len() {
                    0 => "its driver reports none".to_owned(),
                    1 => "there is 1 of this kind, with index 0".to_owned(),
                    count => format!("there are {count} of this kind, counted from 0"),
                };
                Err(self.absent(&reason, compiled))
            }
        }
    }

    /// That this device is not there, with those that are.
    pub fn absent(&self, reason: &str, compiled: &[DeviceBackend]) -> DeviceError {
        DeviceError::Absent {
            choice: self.to_string(),
            reason: reason.to_owned(),
            present: present(compiled),
        }
    }
}

/// The devices of all backends in words.
fn present(compiled: &[DeviceBackend]) -> String {
    let all: Vec<_> = compiled
        .iter()
        .flat_map(|backend| {
            let devices = (backend.list)().unwrap_or_default();
            devices.into_iter().enumerate().map(|(index, device)| {
                let choice = DeviceChoice::Named {
                    backend: backend.name,
                    index,
                };
                format!("{choice} ({})", device.name)
            })
        })
        .collect();
    if all.is_empty() {
        "no device".to_owned()
    } else {
        all.join(", ")
    }
}

/// The engine of a backend's device, for [`DeviceBackend::open`].
///
/// # Errors
///
/// [`DeviceError::NumberType`] when the device does not compute in this type.
pub fn open_engine<B: PolicyBackend>(
    choice: &DeviceChoice,
    device: B::Device,
    number_type: FloatDType,
) -> Result<Box<dyn Engine>, DeviceError> {
    check_number_type::<B>(&choice.to_string(), &device, number_type)?;
    Ok(Box::new(DeviceEngine::<B>::new(
        choice.to_string(),
        device,
        number_type,
    )))
}

/// # Errors
///
/// [`DeviceError::NumberType`] when the device does not compute in this type.
pub fn check_number_type<B: PolicyBackend>(
    name: &str,
    device: &B::Device,
    number_type: FloatDType,
) -> Result<(), DeviceError> {
    let computes_in = |number_type: FloatDType| B::supports_dtype(device, number_type.into());
    if computes_in(number_type) {
        return Ok(());
    }
    let types = [FloatDType::F32, FloatDType::BF16, FloatDType::F16];
    let supported: Vec<_> = types
        .into_iter()
        .filter(|number_type| computes_in(*number_type))
        .map(|number_type| format!("{number_type:?}"))
        .collect();
    Err(DeviceError::NumberType {
        device: name.to_owned(),
        number_type,
        supported: supported.join(" or "),
    })
}

/// The processor, as a backend with one device.
pub const CPU: DeviceBackend = DeviceBackend {
    name: "cpu",
    number_type: FloatDType::F32,
    list: || {
        Ok(vec![Device {
            name: std::env::consts::ARCH.to_owned(),
            is_hardware: false,
        }])
    },
    open: |index, number_type| {
        let choice = DeviceChoice::Named {
            backend: "cpu",
            index,
        };
        open_engine::<Flex>(&choice, FlexDevice, number_type)
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, is_hardware: bool) -> Device {
        Device {
            name: name.to_owned(),
            is_hardware,
        }
    }

    const LAVAPIPE: DeviceBackend = DeviceBackend {
        name: "wgpu",
        list: || Ok(vec![device("llvmpipe", false)]),
        ..CPU
    };
    const RADEON: DeviceBackend = DeviceBackend {
        name: "wgpu",
        list: || Ok(vec![device("llvmpipe", false), device("Radeon", true)]),
        ..CPU
    };
    const CUDA: DeviceBackend = DeviceBackend {
        name: "cuda",
        list: || Ok(vec![device("H200", true), device("H200", true)]),
        ..CPU
    };
    const NO_DRIVER: DeviceBackend = DeviceBackend {
        name: "cuda",
        list: || Err("libcuda does not load".to_owned()),
        ..CPU
    };

    fn select(text: &str, compiled: &[DeviceBackend]) -> Result<(usize, usize), DeviceError> {
        text.parse::<DeviceChoice>()?.select(compiled)
    }

    #[test]
    fn names_are_read_and_written() {
        for text in ["auto", "cpu", "wgpu", "wgpu:2", "cuda", "cuda:13"] {
            let choice: DeviceChoice = text.parse().expect("a device");
            assert_eq!(choice.to_string(), text);
        }
        for text in [
            "", "gpu", "cuda:", "cuda:-1", "cuda:one", "cpu:0", "CUDA", "auto:1",
        ] {
            let refused = text.parse::<DeviceChoice>().expect_err("no device").to_string();
            assert!(refused.contains(&format!("`{text}`")), "{refused}");
        }
    }

    #[test]
    fn the_best_that_is_there_is_taken() {
        assert_eq!(select("auto", &[CPU, RADEON, CUDA]), Ok((2, 0)));
        assert_eq!(select("auto", &[CPU, RADEON, NO_DRIVER]), Ok((1, 1)));
        assert_eq!(select("auto", &[CPU, LAVAPIPE, NO_DRIVER]), Ok((0, 0)));
        assert_eq!(select("auto", &[CPU]), Ok((0, 0)));
    }

    #[test]
    fn a_device_is_taken_by_its_index() {
        assert_eq!(select("cuda:1", &[CPU, CUDA]), Ok((1, 1)));
        assert_eq!(select("wgpu", &[CPU, LAVAPIPE]), Ok((1, 0)));
    }

    #[test]
    fn an_engine_says_where_it_is_and_refuses_other_types() {
        let engine = DeviceChoice::Auto
            .open(&[CPU], None)
            .expect("there is a processor");
        assert_eq!(engine.device(), "cpu");
        let refused = DeviceChoice::Auto.open(&[CPU], Some(FloatDType::Flex32));
        let message = refused.err().expect("no such arithmetic").to_string();
        assert!(message.contains("Flex32: take F32"), "{message}");
    }

    #[test]
    fn what_is_missing_is_named_with_what_is_there() {
        let refused = |text, compiled: &[DeviceBackend]| {
            select(text, compiled).expect_err("must be refused").to_string()
        };
        let message = refused("cuda", &[CPU, LAVAPIPE]);
        assert!(message.contains("--features train,cuda"), "{message}");
        assert!(message.contains("wgpu (llvmpipe)"), "{message}");
        let message = refused("cuda:2", &[CPU, CUDA]);
        assert!(message.starts_with("there is no device cuda:2"), "{message}");
        assert!(message.contains("there are 2"), "{message}");
        assert!(message.contains("cuda (H200), cuda:1 (H200)"), "{message}");
        let message = refused("cuda", &[CPU, NO_DRIVER]);
        assert!(message.contains("libcuda does not load"), "{message}");
        assert!(message.contains("cpu ("), "{message}");
    }
}
