//! The backends that this program was built with.

use burn_flex::{Flex, FlexDevice};
use capo_rewriter::backend::PolicyBackend;
use capo_rewriter::device::{CPU, DeviceBackend, DeviceChoice};

use crate::error::Error;

/// What is done on whatever device was chosen.
pub(crate) trait Work {
    type Output;

    fn on<B: PolicyBackend>(self, device: &B::Device) -> Result<Self::Output, Error>;
}

const COMPILED: &[DeviceBackend] = &[
    CPU,
    #[cfg(feature = "wgpu")]
    capo_rewriter_wgpu::DEVICES,
    #[cfg(feature = "cuda")]
    capo_rewriter_cuda::DEVICES,
];

/// A device that is there.
pub(crate) struct Chosen {
    /// As `--device` names it.
    pub(crate) choice: DeviceChoice,
    /// What its driver calls it.
    pub(crate) name: String,
}

impl Chosen {
    pub(crate) fn of(choice: &DeviceChoice) -> Result<Self, Error> {
        let (place, indices) = choice.select(COMPILED)?;
        let [index] = indices[..] else {
            return Err(Error::Failed(format!("{choice} are several devices: name one")));
        };
        let backend = COMPILED[place];
        let mut devices = (backend.list)().map_err(|why| Error::Failed(why.to_string()))?;
        Ok(Self {
            choice: DeviceChoice::Named {
                backend: backend.name,
                index,
            },
            name: devices.swap_remove(index).name,
        })
    }

    pub(crate) fn run<W: Work>(&self, work: W) -> Result<W::Output, Error> {
        match self.choice {
            DeviceChoice::Named { backend: "cpu", .. } => work.on::<Flex>(&FlexDevice),
            #[cfg(feature = "wgpu")]
            DeviceChoice::Named {
                backend: "wgpu",
                index,
            } => {
                let device = capo_rewriter_wgpu::device(index)
                    .ok_or_else(|| Error::Failed(format!("{} is gone", self.choice)))?;
                work.on::<capo_rewriter_wgpu::Wgpu>(&device)
            }
            #[cfg(feature = "cuda")]
            DeviceChoice::Named {
                backend: "cuda",
                index,
            } => work.on::<capo_rewriter_cuda::Cuda>(&capo_rewriter_cuda::device(index)),
            _ => Err(Error::Failed(format!(
                "{} is no device of this program",
                self.choice
            ))),
        }
    }
}

pub(crate) fn list() {
    for backend in COMPILED {
        match (backend.list)() {
            Ok(devices) => {
                for (index, device) in devices.iter().enumerate() {
                    let choice = DeviceChoice::Named {
                        backend: backend.name,
                        index,
                    };
                    println!("{choice}: {}", device.name);
                }
            }
            Err(why) => println!("no {}: {why}", backend.name),
        }
    }
}
