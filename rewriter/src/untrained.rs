//! Decoders of any size with random weights that are made where they are used.

use burn_tensor::{DType, Distribution, FloatDType, Tensor};

use crate::backend::{PolicyBackend, seeded};
use crate::config::ModelConfig;
use crate::decoder::{Decoder, Layer};
use crate::lora::Projection;
use crate::rope::Rope;

/// Standard deviation of the weights.
const DEVIATION: f64 = 0.02;

impl<B: PolicyBackend> Decoder<B> {
    /// A decoder without files, for measurements: matrices drawn on the device from N(0, 0.02²), norms 1.
    /// The draws are a function of `seed` on one kind of device.
    pub fn untrained(config: ModelConfig, number_type: FloatDType, seed: u64, device: &B::Device) -> Self {
        seeded::<B, _>(seed, device, || {
            let matrix = |shape: [usize; 2]| {
                let normal = Distribution::Normal(0.0, DEVIATION);
                Tensor::<B, 2>::random(shape, normal, (device, DType::F32)).cast(number_type)
            };
            let ones = |width: usize| Tensor::<B, 1>::ones([width], (device, DType::from(number_type)));
            let layer = |_| Layer {
                attention_norm: ones(config.hidden),
                feed_forward_norm: ones(config.hidden),
                head_norms: config
                    .architecture
                    .normalises_heads()
                    .then(|| [ones(config.head_dim), ones(config.head_dim)]),
                projections: Projection::ALL.map(|projection| matrix(projection.shape(&config))),
            };
            let table = [config.vocabulary, config.hidden];
            Self {
                rope: Rope::new(&config),
                embedding: matrix(table),
                layers: (0..config.layers()).map(layer).collect(),
                norm: ones(config.hidden),
                head: (!config.tied).then(|| matrix(table)),
                recomputed: None,
                config,
            }
        })
    }
}
