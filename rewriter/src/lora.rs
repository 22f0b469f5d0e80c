//! Low-rank adapters [Hu et al., LoRA, arXiv 2106.09685].

use burn_tensor::backend::{AutodiffBackend, Backend};
use burn_tensor::{DType, FloatDType, Tensor, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;
use serde::{Deserialize, Serialize};

use crate::backend::PolicyBackend;
use crate::config::ModelConfig;
use crate::error::RequestError;

/// The linear maps of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Projection {
    /// `q_proj`.
    Query,
    /// `k_proj`.
    Key,
    /// `v_proj`.
    Value,
    /// `o_proj`.
    Output,
    /// `gate_proj`.
    Gate,
    /// `up_proj`.
    Up,
    /// `down_proj`.
    Down,
}

impl Projection {
    /// All of them, in the order of a forward pass.
    pub const ALL: [Self; 7] = [
        Self::Query,
        Self::Key,
        Self::Value,
        Self::Output,
        Self::Gate,
        Self::Up,
        Self::Down,
    ];

    /// The name in checkpoints, such as `q_proj`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Query => "q_proj",
            Self::Key => "k_proj",
            Self::Value => "v_proj",
            Self::Output => "o_proj",
            Self::Gate => "gate_proj",
            Self::Up => "up_proj",
            Self::Down => "down_proj",
        }
    }

    /// The block that it belongs to in checkpoints.
    pub(crate) fn block(self) -> &'static str {
        match self {
            Self::Query | Self::Key | Self::Value | Self::Output => "self_attn",
            Self::Gate | Self::Up | Self::Down => "mlp",
        }
    }

    /// The seven results of `make`, indexed by the projection as a number.
    ///
    /// # Errors
    ///
    /// The first that `make` gives.
    pub(crate) fn try_each<T, E>(mut make: impl FnMut(Self) -> Result<T, E>) -> Result<[T; 7], E> {
        let [query, key, value, output, gate, up, down] = Self::ALL;
        Ok([
            make(query)?,
            make(key)?,
            make(value)?,
            make(output)?,
            make(gate)?,
            make(up)?,
            make(down)?,
        ])
    }

    /// Width of the output and of the input.
    pub fn shape(self, config: &ModelConfig) -> [usize; 2] {
        let (hidden, inner) = (config.hidden, config.intermediate);
        let queries = config.heads * config.head_dim;
        let keys = config.kv_heads * config.head_dim;
        match self {
            Self::Query => [queries, hidden],
            Self::Key | Self::Value => [keys, hidden],
            Self::Output => [hidden, queries],
            Self::Gate | Self::Up => [inner, hidden],
            Self::Down => [hidden, inner],
        }
    }
}

/// Highest rank that is believed; a matrix has no more than its smaller width.
const HIGHEST_RANK: usize = 1 << 16;

/// Which projections learn, and how much they can.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoraConfig {
    /// Rank r.
    pub rank: usize,
    /// The update is B A times alpha / r.
    pub alpha: f64,
    /// Share of the input that training drops, in [0, 1).
    pub dropout: f64,
    /// The projections with an update.
    pub targets: Vec<Projection>,
    /// The update is B A times alpha / √r instead.
    pub rank_stabilised: bool,
}

impl Default for LoraConfig {
    /// Rank 16 and alpha 32 on all projections.
    fn default() -> Self {
        Self::all(16, 32.0)
    }
}

impl LoraConfig {
    /// Rank and alpha on all seven projections, without dropout.
    pub fn all(rank: usize, alpha: f64) -> Self {
        Self {
            rank,
            alpha,
            dropout: 0.0,
            targets: Projection::ALL.to_vec(),
            rank_stabilised: false,
        }
    }

    /// Factor on B A.
    pub fn scale(&self) -> f64 {
        let rank = self.rank as f64;
        self.alpha / if self.rank_stabilised { rank.sqrt() } else { rank }
    }

    /// # Errors
    ///
    /// [`RequestError::Setting`] names a setting outside its range.
    pub fn check(&self) -> Result<(), RequestError> {
        let refuse = |name, value, range| Err(RequestError::Setting { name, value, range });
        if !(1..=HIGHEST_RANK).contains(&self.rank) {
            return refuse("rank", self.rank as f64, "between 1 and 65536");
        }
        if !(self.alpha > 0.0 && self.alpha.is_finite()) {
            return refuse("alpha", self.alpha, "above 0 and finite");
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return refuse("dropout", self.dropout, "at least 0 and below 1");
        }
        if self.targets.is_empty() {
            return refuse("targets", 0.0, "at least one projection");
        }
        Ok(())
    }
}

/// Whether an adapter learns or is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Without dropout.
    Evaluation,
    /// With the configuration's dropout. What is dropped is a function of the seed, the layer, the
    /// projection and the shape of the input, so that a step can be repeated; passes that are to drop
    /// independently have seeds of their own.
    Training {
        /// Of one pass.
        seed: u64,
    },
}

/// Updates to the projections of a frozen decoder: y = W x + scale · B A x.
#[derive(Debug, Clone)]
pub struct Adapter<B: Backend> {
    config: LoraConfig,
    mode: Mode,
    /// Whether the decoder is the text model of a multimodal one, which changes names in files.
    pub(crate) multimodal: bool,
    /// By layer and [`Projection`].
    layers: Vec<[Option<LowRank<B>>; 7]>,
}

/// One update.
#[derive(Debug, Clone)]
pub struct LowRank<B: Backend> {
    /// A, `[rank, inputs]`.
    pub a: Tensor<B, 2>,
    /// B, `[outputs, rank]`.
    pub b: Tensor<B, 2>,
}

impl<B: Backend> Adapter<B> {
    /// A fresh adapter in evaluation mode, which changes nothing yet: A uniform in ±√(1 / inputs), B zero. The draws
    /// are a function of `seed`.
    ///
    /// # Errors
    ///
    /// [`RequestError::Setting`] names a setting outside its range.
    pub fn new(
        config: &LoraConfig,
        model: &ModelConfig,
        seed: u64,
        device: &B::Device,
    ) -> Result<Self, RequestError> {
        config.check()?;
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        Self::build(config, model, |_, projection| {
            let [outputs, inputs] = projection.shape(model);
            let bound = (1.0 / inputs as f32).sqrt();
            let numbers: Vec<f32> = (0..config.rank * inputs)
                .map(|_| random.random_range(-bound..bound))
                .collect();
            Ok(LowRank {
                a: Tensor::from_data(
                    TensorData::new(numbers, [config.rank, inputs]),
                    (device, DType::F32),
                ),
                b: Tensor::zeros([outputs, config.rank], (device, DType::F32)),
            })
        })
    }

    /// An adapter of updates that are asked for by layer and projection.
    ///
    /// # Errors
    ///
    /// The first that `update` gives.
    pub(crate) fn build<E>(
        config: &LoraConfig,
        model: &ModelConfig,
        mut update: impl FnMut(usize, Projection) -> Result<LowRank<B>, E>,
    ) -> Result<Self, E> {
        let layer = |layer| {
            Projection::try_each(|projection| {
                let is_target = config.targets.contains(&projection);
                is_target.then(|| update(layer, projection)).transpose()
            })
        };
        Ok(Self {
            config: config.clone(),
            mode: Mode::Evaluation,
            multimodal: model.multimodal,
            layers: (0..model.layers()).map(layer).collect::<Result<_, E>>()?,
        })
    }

    /// Rank, scale and targets.
    pub fn config(&self) -> &LoraConfig {
        &self.config
    }

    /// The updates with their layer and projection, in the order of a forward pass.
    pub fn updates(&self) -> impl Iterator<Item = (usize, Projection, &LowRank<B>)> {
        self.layers.iter().enumerate().flat_map(|(layer, updates)| {
            Projection::ALL
                .into_iter()
                .zip(updates)
                .filter_map(move |(projection, update)| Some((layer, projection, update.as_ref()?)))
        })
    }

    /// A and B of every update, in the order of [`updates`](Self::updates).
    pub fn matrices(&self) -> impl Iterator<Item = &Tensor<B, 2>> {
        self.updates().flat_map(|(_, _, update)| [&update.a, &update.b])
    }

    /// Whether it learns or is used.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The same adapter in a mode.
    #[must_use]
    pub fn in_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Whether gradients of its matrices are tracked.
    pub(crate) fn is_tracked(&self) -> bool {
        self.matrices().any(Tensor::is_require_grad)
    }

    /// An adapter of the same form and mode whose matrices are made from these.
    pub fn map<C: Backend>(&self, mut make: impl FnMut(&Tensor<B, 2>) -> Tensor<C, 2>) -> Adapter<C> {
        let mut layer = |updates: &[Option<LowRank<B>>; 7]| {
            updates.each_ref().map(|update| {
                update.as_ref().map(|LowRank { a, b }| LowRank {
                    a: make(a),
                    b: make(b),
                })
            })
        };
        Adapter {
            config: self.config.clone(),
            mode: self.mode,
            multimodal: self.multimodal,
            layers: self.layers.iter().map(&mut layer).collect(),
        }
    }

    /// The update of a projection, if it has one.
    pub fn update(&self, layer: usize, projection: Projection) -> Option<&LowRank<B>> {
        self.layers.get(layer)?[projection as usize].as_ref()
    }

    /// scale · B A, `[outputs, inputs]`.
    pub(crate) fn product(&self, layer: usize, projection: Projection) -> Option<Tensor<B, 2>> {
        let LowRank { a, b } = self.update(layer, projection)?;
        Some(b.clone().matmul(a.clone()).mul_scalar(self.config.scale()))
    }
}

impl<B: PolicyBackend> Adapter<B> {
    /// scale · B A x for `input`, `[tokens, inputs]`, in the input's type; in training mode of an input
    /// of which a share is dropped.
    pub(crate) fn apply(
        &self,
        layer: usize,
        projection: Projection,
        input: Tensor<B, 2>,
    ) -> Option<Tensor<B, 2>> {
        let LowRank { a, b } = self.update(layer, projection)?;
        let number_type = FloatDType::from(input.dtype());
        let input = match self.mode {
            Mode::Training { seed } if self.config.dropout > 0.0 => {
                dropout(input, self.config.dropout, seed_of(seed, layer, projection))
            }
            _ => input,
        };
        let inner = B::project(input, a.clone().cast(number_type)).mul_scalar(self.config.scale());
        Some(B::project(inner, b.clone().cast(number_type)))
    }
}

impl<B: AutodiffBackend> Adapter<B> {
    /// The same adapter on a backend that differentiates, its matrices tracked. In training mode it
    /// drops what the seed says; in evaluation mode gradients are those of the adapter as it is used.
    pub fn trainable(inner: &Adapter<B::InnerBackend>, mode: Mode) -> Self {
        inner
            .map(|matrix| Tensor::from_inner(matrix.clone()).require_grad())
            .in_mode(mode)
    }
}

/// The seed of one projection's draws.
fn seed_of(seed: u64, layer: usize, projection: Projection) -> u64 {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    random.set_stream((layer * Projection::ALL.len() + projection as usize) as u64);
    random.random()
}

/// Zeroes a share of the numbers and scales up the others, so that the mean stays.
fn dropout<B: PolicyBackend>(input: Tensor<B, 2>, share: f64, seed: u64) -> Tensor<B, 2> {
    let keep = 1.0 - share;
    let kept = B::keep_mask(input.dims(), keep, seed, input.dtype(), &input.device());
    input * kept.mul_scalar(1.0 / keep)
}
