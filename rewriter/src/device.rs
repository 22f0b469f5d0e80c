//! Devices that policies run on: `--device cpu|wgpu[:N]|cuda[:N]|auto`, and `cuda:N,M` where several learn together.

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
    /// Several devices of one backend, which divide the steps of a training.
    Several {
        /// wgpu or cuda.
        backend: &'static str,
        /// Their places, two or more; the first is where all else is done.
        indices: Vec<usize>,
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
        let (name, places) = text.split_once(':').unwrap_or((text, "0"));
        let backend = KNOWN
            .into_iter()
            .find(|known| *known == name)
            .ok_or_else(unknown)?;
        if backend == "cpu" && text != "cpu" {
            return Err(unknown());
        }
        let indices: Result<Vec<usize>, _> = places.split(',').map(str::parse).collect();
        let indices = indices.map_err(|_| unknown())?;
        if (1..indices.len()).any(|place| indices[..place].contains(&indices[place])) {
            return Err(unknown());
        }
        Ok(match indices[..] {
            [index] => Self::Named { backend, index },
            _ => Self::Several { backend, indices },
        })
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => formatter.write_str("auto"),
            Self::Named { backend, index: 0 } => formatter.write_str(backend),
            Self::Named { backend, index } => write!(formatter, "{backend}:{index}"),
            Self::Several { backend, indices } => {
                let indices: Vec<String> = indices.iter().map(usize::to_string).collect();
                write!(formatter, "{backend}:{}", indices.join(","))
            }
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

/// Opens devices that are listed, one or more with their indices, computing in a type.
pub type Open = fn(&[(usize, Device)], FloatDType) -> Result<Box<dyn Engine>, DeviceError>;

/// A backend that was compiled in.
#[derive(Debug, Clone, Copy)]
pub struct DeviceBackend {
    /// One of cpu, wgpu and cuda.
    pub name: &'static str,
    /// What it computes in unless told otherwise.
    pub number_type: FloatDType,
    /// The devices present, by index.
    pub list: fn() -> Result<Vec<Device>, Unusable>,
    /// The engine of some of the devices.
    pub open: Open,
}

/// Why a backend cannot be used on this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Nothing of it is installed; `auto` takes another.
    #[error("{0}")]
    NotInstalled(String),
    /// It has devices that do not work; `auto` says so.
    #[error("{0}")]
    Broken(String),
}

/// Why there is no device to run on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The text names no device.
    #[error(
        "`{text}` is no device: write cpu, wgpu, cuda, one of several as in cuda:1, different ones as in cuda:0,1, or auto"
    )]
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
        /// The device, as it was asked for.
        choice: String,
        /// Why it cannot be used.
        reason: String,
        /// The devices that there are.
        present: String,
    },
    /// Several devices are named for what one does.
    #[error("{choice}: only trainings are divided among devices; name one, such as {first}")]
    Several {
        /// The device, as it was asked for.
        choice: String,
        /// The first of them.
        first: String,
    },
    /// The device does not compute in this type.
    #[error("{device} does not compute in {number_type:?}: take {supported}")]
    NumberType {
        /// The device.
        device: String,
        /// The type of numbers that was asked for.
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
    /// As [`select`](Self::select), the device does not compute in this type, or several are chosen.
    pub fn open(
        &self,
        compiled: &[DeviceBackend],
        number_type: Option<FloatDType>,
    ) -> Result<Box<dyn Engine>, DeviceError> {
        if let Self::Several { backend, indices } = self {
            let first = indices.first().copied().unwrap_or_default();
            return Err(DeviceError::Several {
                choice: self.to_string(),
                first: Self::one(backend, first).to_string(),
            });
        }
        self.open_all(compiled, number_type)
    }

    /// Like [`open`](Self::open), of one or several devices.
    ///
    /// # Errors
    ///
    /// As [`select`](Self::select), or a device does not compute in this type.
    pub fn open_all(
        &self,
        compiled: &[DeviceBackend],
        number_type: Option<FloatDType>,
    ) -> Result<Box<dyn Engine>, DeviceError> {
        let (place, indices) = self.select(compiled)?;
        let backend = &compiled[place];
        let listed = (backend.list)().map_err(|why| self.absent(&why.to_string(), compiled))?;
        let device = |index: usize| {
            let device = listed.get(index).cloned();
            let device = device.ok_or_else(|| self.absent("it is gone", compiled))?;
            Ok((index, device))
        };
        let devices: Vec<_> = indices.into_iter().map(device).collect::<Result<_, _>>()?;
        (backend.open)(&devices, number_type.unwrap_or(backend.number_type))
    }

    fn one(backend: &'static str, index: usize) -> Self {
        Self::Named { backend, index }
    }

    /// The backend's place in `compiled`, and the devices' indices.
    ///
    /// # Errors
    ///
    /// The backend was not compiled in, or has no such device; the message names those that are present.
    pub fn select(&self, compiled: &[DeviceBackend]) -> Result<(usize, Vec<usize>), DeviceError> {
        match self {
            Self::Auto => {
                for name in KNOWN {
                    let Some(place) = compiled.iter().position(|backend| backend.name == name) else {
                        continue;
                    };
                    let devices = match (compiled[place].list)() {
                        Ok(devices) => devices,
                        Err(Unusable::NotInstalled(_)) => continue,
                        Err(Unusable::Broken(why)) => {
                            let reason = format!(
                                "{name} would be first and does not work: {why}; mend it or name another device"
                            );
                            return Err(self.absent(&reason, compiled));
                        }
                    };
                    let is_good = |device: &Device| device.is_hardware || name == "cpu";
                    if let Some(index) = devices.iter().position(is_good) {
                        return Ok((place, vec![index]));
                    }
                }
                Err(self.absent("no backend has one", compiled))
            }
            Self::Named { backend, index } => {
                let place = Self::check(backend, &[*index], compiled)?;
                Ok((place, vec![*index]))
            }
            Self::Several { backend, indices } => {
                let place = Self::check(backend, indices, compiled)?;
                Ok((place, indices.clone()))
            }
        }
    }

    /// The place of a backend that has these devices.
    fn check(
        backend: &'static str,
        indices: &[usize],
        compiled: &[DeviceBackend],
    ) -> Result<usize, DeviceError> {
        let place = compiled.iter().position(|one| one.name == backend);
        let place = place.ok_or_else(|| DeviceError::NotCompiled {
            backend,
            present: present(compiled),
        })?;
        let absent = |index: usize, why: &str| Self::one(backend, index).absent(why, compiled);
        let first = indices.first().copied().unwrap_or_default();
        let devices = (compiled[place].list)().map_err(|why| absent(first, &why.to_string()))?;
        let Some(beyond) = indices.iter().find(|index| **index >= devices.len()) else {
            return Ok(place);
        };
        let reason = match devices.len() {
            0 => "its driver reports none".to_owned(),
            1 => "there is 1 of this kind, with index 0".to_owned(),
            count => format!("there are {count} of this kind, counted from 0"),
        };
        Err(absent(*beyond, &reason))
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

/// The engine of a backend's devices, for [`DeviceBackend::open`]; `handle` is what the backend calls the device of an
/// index.
///
/// # Errors
///
/// As `handle`, or [`DeviceError::NumberType`] when a device does not compute in this type.
pub fn open_engine<B: PolicyBackend>(
    backend: &'static str,
    devices: &[(usize, Device)],
    handle: impl Fn(usize) -> Result<B::Device, DeviceError>,
    number_type: FloatDType,
) -> Result<Box<dyn Engine>, DeviceError> {
    let open = |(index, _): &(usize, Device)| {
        let opened = handle(*index)?;
        let name = DeviceChoice::one(backend, *index).to_string();
        check_number_type::<B>(&name, &opened, number_type)?;
        Ok((*index, opened))
    };
    let opened = devices
        .iter()
        .map(open)
        .collect::<Result<Vec<_>, DeviceError>>()?;
    let (indices, handles): (Vec<usize>, Vec<B::Device>) = opened.into_iter().unzip();
    let choice = match indices[..] {
        [index] => DeviceChoice::one(backend, index),
        _ => DeviceChoice::Several { backend, indices },
    };
    let mut handles = handles.into_iter();
    let first = handles.next().unwrap_or_default();
    let engine = DeviceEngine::<B>::new(choice.to_string(), first, number_type)
        .beside(handles.collect())
        .called(devices.iter().map(|(_, device)| device.name.as_str()));
    Ok(Box::new(engine))
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
    open: |devices, number_type| open_engine::<Flex>("cpu", devices, |_| Ok(FlexDevice), number_type),
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
        list: || Err(Unusable::NotInstalled("libcuda does not load".to_owned())),
        ..CPU
    };
    const NO_COMPILER: DeviceBackend = DeviceBackend {
        name: "cuda",
        list: || Err(Unusable::Broken("libnvrtc does not load".to_owned())),
        ..CPU
    };

    fn select(text: &str, compiled: &[DeviceBackend]) -> Result<(usize, Vec<usize>), DeviceError> {
        text.parse::<DeviceChoice>()?.select(compiled)
    }

    #[test]
    fn names_are_read_and_written() {
        for text in [
            "auto",
            "cpu",
            "wgpu",
            "wgpu:2",
            "cuda",
            "cuda:13",
            "cuda:0,1",
            "wgpu:2,0,13",
        ] {
            let choice: DeviceChoice = text.parse().expect("a device");
            assert_eq!(choice.to_string(), text);
        }
        for text in [
            "", "gpu", "cuda:", "cuda:-1", "cuda:one", "cpu:0", "CUDA", "auto:1", "cuda:0,", "cuda:1,1",
            "cpu:0,1",
        ] {
            let refused = text.parse::<DeviceChoice>().expect_err("no device").to_string();
            assert!(refused.contains(&format!("`{text}`")), "{refused}");
        }
    }

    #[test]
    fn the_best_that_is_there_is_taken() {
        assert_eq!(select("auto", &[CPU, RADEON, CUDA]), Ok((2, vec![0])));
        assert_eq!(select("auto", &[CPU, RADEON, NO_DRIVER]), Ok((1, vec![1])));
        assert_eq!(select("auto", &[CPU, LAVAPIPE, NO_DRIVER]), Ok((0, vec![0])));
        assert_eq!(select("auto", &[CPU]), Ok((0, vec![0])));
    }

    #[test]
    fn a_gpu_that_does_not_work_is_not_passed_over_in_silence() {
        let refused = select("auto", &[CPU, NO_COMPILER])
            .expect_err("is broken")
            .to_string();
        assert!(
            refused.contains("libnvrtc does not load") && refused.contains("present are cpu"),
            "{refused}"
        );
        assert_eq!(select("cpu", &[CPU, NO_COMPILER]), Ok((0, vec![0])));
    }

    #[test]
    fn a_device_is_taken_by_its_index() {
        assert_eq!(select("cuda:1", &[CPU, CUDA]), Ok((1, vec![1])));
        assert_eq!(select("wgpu", &[CPU, LAVAPIPE]), Ok((1, vec![0])));
    }

    #[test]
    fn several_are_taken_for_a_training_alone() {
        assert_eq!(select("cuda:1,0", &[CPU, CUDA]), Ok((1, vec![1, 0])));
        let message = select("cuda:1,2", &[CPU, CUDA]).expect_err("are two").to_string();
        assert!(message.starts_with("there is no device cuda:2"), "{message}");
        let both: DeviceChoice = "cuda:1,0".parse().expect("two devices");
        let refused = both.open(&[CPU, CUDA], None).err().expect("are two").to_string();
        assert!(
            refused.contains("cuda:1,0: only trainings") && refused.contains("such as cuda:1"),
            "{refused}"
        );
        let engine = both.open_all(&[CPU, CUDA], None).expect("are there");
        assert_eq!(engine.device(), "cpu:1,0", "its backend is the processor's");
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
