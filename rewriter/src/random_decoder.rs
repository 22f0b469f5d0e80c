//! Decoders of any size with random weights that are made where they are used.

use burn_tensor::{DType, Distribution, FloatDType, Tensor};

use crate::backend::{PolicyBackend, seeded};
use crate::config::ModelConfig;
use crate::decoder::{Decoder, Layer};
use crate::lora::Projection;
use crate::rope::Rope;

/// Standard deviation of the weights.
const DEVIATION: f64 = 0.02;
/// Numbers drawn at a time: 64 MiB in 32 bits.
const DRAWN: usize = 1 << 24;

impl<B: PolicyBackend> Decoder<B> {
    /// A decoder without files, for measurements: matrices drawn on the device from N(0, 0.02²), norms 1.
    /// The draws are a function of `seed` on one kind of device.
    pub fn random(config: ModelConfig, number_type: FloatDType, seed: u64, device: &B::Device) -> Self {
        seeded::<B, _>(seed, device, || {
            let matrix = |shape| matrix::<B>(shape, number_type, device);
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

/// Drawn part by part into memory of its size, so that no device holds much more.
fn matrix<B: PolicyBackend>(shape: [usize; 2], number_type: FloatDType, device: &B::Device) -> Tensor<B, 2> {
    let [rows, width] = shape;
    let bytes = rows * width * DType::from(number_type).size();
    let mut matrix = B::lasting(device, bytes, shape, |shape| {
        Tensor::<B, 2>::zeros(shape, (device, DType::from(number_type)))
    });
    let together = (DRAWN / width).clamp(1, rows);
    for from in (0..rows).step_by(together) {
        let to = (from + together).min(rows);
        let normal = Distribution::Normal(0.0, DEVIATION);
        let drawn = Tensor::<B, 2>::random([to - from, width], normal, (device, DType::F32));
        matrix = matrix.slice_assign([from..to, 0..width], drawn.cast(number_type));
    }
    matrix
}
