//! Rotary position embedding: frequencies, and tables of cosines and sines.

use burn_tensor::backend::Backend;
use burn_tensor::{DType, FloatDType, Tensor, TensorData};

use crate::backend::PolicyBackend;
use crate::config::{ModelConfig, QueryScaling, RopeConfig, Yarn};

/// The angles of a model's heads.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// Angle per position, `[head_dim / 2]`.
    frequencies: Vec<f32>,
    /// Factor on cosine and sine.
    amplitude: f32,
    query_scaling: Option<QueryScaling>,
}

/// What one forward pass needs of the positions of its tokens.
#[derive(Debug, Clone)]
pub(crate) struct Rotation<B: Backend> {
    /// `[rows, columns, 1, head_dim]`: both halves alike.
    pub(crate) cos: Tensor<B, 4>,
    /// `[rows, columns, 1, head_dim]`: the first half negated.
    pub(crate) sin: Tensor<B, 4>,
    /// Factor on the queries after rotation, `[rows, columns, 1, 1]`.
    pub(crate) query_scale: Option<Tensor<B, 4>>,
}

impl Rope {
    /// The angles of a configuration.
    pub fn new(config: &ModelConfig) -> Self {
        Self {
            frequencies: frequencies(&config.rope, config.head_dim),
            amplitude: config
                .rope
                .yarn
                .as_ref()
                .map_or(1.0, |yarn| yarn.attention_factor as f32),
            query_scaling: config.query_scaling,
        }
    }

    /// Tables for tokens at `positions`, row by row, each row with `columns` of them.
    pub(crate) fn rotation<B: Backend>(
        &self,
        positions: &[u32],
        columns: usize,
        number_type: FloatDType,
        device: &B::Device,
    ) -> Rotation<B> {
        let rows = positions.len() / columns;
        let width = 2 * self.frequencies.len();
        let mut cos = Vec::with_capacity(positions.len() * width);
        let mut sin = Vec::with_capacity(positions.len() * width);
        for &position in positions {
            let start = cos.len();
            for frequency in &self.frequencies {
                let angle = position as f32 * frequency;
                cos.push(angle.cos() * self.amplitude);
                sin.push(-angle.sin() * self.amplitude);
            }
            cos.extend_from_within(start..);
            for index in start..sin.len() {
                sin.push(-sin[index]);
            }
        }
        let table = |numbers: Vec<f32>, width| {
            let data = TensorData::new(numbers, [rows, columns, 1, width]);
            Tensor::from_data(data, (device, DType::from(number_type)))
        };
        Rotation {
            cos: table(cos, width),
            sin: table(sin, width),
            query_scale: self.query_scaling.map(|scaling| {
                let scales = positions.iter().map(|&position| scaling.at(position)).collect();
                table(scales, 1)
            }),
        }
    }
}

impl<B: PolicyBackend> Rotation<B> {
    /// Rotates heads `[rows, columns, heads, head_dim]`.
    pub(crate) fn apply(&self, heads: Tensor<B, 4>) -> Tensor<B, 4> {
        B::rotate(heads, self.cos.clone(), self.sin.clone())
    }
}

impl QueryScaling {
    fn at(self, position: u32) -> f32 {
        let periods = (position as usize / self.original_context) as f32;
        1.0 + self.beta as f32 * periods.ln_1p()
    }
}

/// θ^(-2i/D) for i < D/2, interpolated if the configuration has YaRN.
fn frequencies(config: &RopeConfig, head_dim: usize) -> Vec<f32> {
    let exponent = |index: usize| (2 * index) as f32 / head_dim as f32;
    let plain = (0..head_dim / 2).map(|index| 1.0 / (config.theta as f32).powf(exponent(index)));
    match &config.yarn {
        None => plain.collect(),
        Some(yarn) => {
            let (low, high) = yarn.bounds(config.theta, head_dim);
            plain
                .enumerate()
                .map(|(index, frequency)| {
                    let ramp = ((index as f32 - low) / (high - low)).clamp(0.0, 1.0);
                    frequency * (1.0 - ramp) + frequency / yarn.factor as f32 * ramp
                })
                .collect()
        }
    }
}

impl Yarn {
    /// The indices between which frequencies pass from kept to divided.
    fn bounds(&self, theta: f64, head_dim: usize) -> (f32, f32) {
        let width = head_dim as f64;
        let index_of_turns = |turns: f64| {
            let wavelength = self.original_context as f64 / (turns * std::f64::consts::TAU);
            width * wavelength.ln() / (2.0 * theta.ln())
        };
        let low = index_of_turns(self.beta_fast).floor().max(0.0);
        let mut high = index_of_turns(self.beta_slow).ceil().min(width - 1.0);
        if low == high {
            high += 0.001;
        }
        (low as f32, high as f32)
    }
}
