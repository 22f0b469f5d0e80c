//! The decoder: token ids to hidden states to logits.

mod activation_checkpointing;
mod save;
mod trainable;

use std::path::Path;
use std::sync::Arc;

use burn_tensor::backend::AutodiffBackend;
use burn_tensor::ops::BoolTensor;
use burn_tensor::{FloatDType, Tensor};

use crate::backend::{PolicyBackend, Visibility, index_tensor, wide};
use crate::cache::KvCache;
use crate::config::ModelConfig;
use crate::error::{FileError, RequestError};
use crate::lora::{Adapter, Projection};
use crate::optimizer::Gradient;
use crate::parameters::Parameters;
use crate::rope::{Rope, Rotation};
use crate::tokens::Tokens;
use crate::weights::Weights;
use activation_checkpointing::RecomputedPasses;

/// A frozen causal language model. What learns is an [`Adapter`] beside it.
#[derive(Debug, Clone)]
pub struct Decoder<B: PolicyBackend> {
    pub(crate) config: ModelConfig,
    pub(crate) rope: Rope,
    /// `[vocabulary, hidden]`.
    pub(crate) embedding: Tensor<B, 2>,
    pub(crate) layers: Vec<Layer<B>>,
    /// `[hidden]`.
    pub(crate) norm: Tensor<B, 1>,
    /// `[vocabulary, hidden]`; the embedding when tied.
    pub(crate) head: Option<Tensor<B, 2>>,
    /// Where tracked passes leave what their layers are computed from again; without, every activation is
    /// kept for the backward pass.
    pub(crate) recomputed: Option<RecomputedPasses<B>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Layer<B: PolicyBackend> {
    /// `[hidden]`.
    pub(crate) attention_norm: Tensor<B, 1>,
    /// `[hidden]`.
    pub(crate) feed_forward_norm: Tensor<B, 1>,
    /// For queries and keys, `[head_dim]` each.
    pub(crate) head_norms: Option<[Tensor<B, 1>; 2]>,
    /// `[outputs, inputs]` each, by [`Projection`].
    pub(crate) projections: [Tensor<B, 2>; 7],
}

/// Visible keys by window.
type Windows<B> = Vec<(Option<usize>, Arc<Visibility<BoolTensor<B>>>)>;

/// Most columns of one pass where a cache lets a sequence go through in several.
const PASS_COLUMNS: usize = 512;
/// Most attention scores of one layer in such a pass: 256 MiB in 32 bits.
const PASS_SCORES: usize = 1 << 26;

/// What all layers of one pass share.
#[derive(Debug)]
pub(crate) struct Pass<'a, B: PolicyBackend> {
    rows: usize,
    columns: usize,
    /// Column at which the pass begins in the cache.
    start: usize,
    rotation: Rotation<B>,
    visible: Windows<B>,
    pub(crate) adapter: Option<&'a Adapter<B>>,
}

impl<B: PolicyBackend> Decoder<B> {
    /// Reads the weights of a model's folder, tensor by tensor, as `number_type`, which becomes the
    /// type of the computation.
    ///
    /// # Errors
    ///
    /// Any [`FileError`] about `config.json` or the safetensors files.
    pub fn from_folder(
        folder: &Path,
        number_type: FloatDType,
        device: &B::Device,
    ) -> Result<Self, FileError> {
        let config = ModelConfig::from_folder(folder)?;
        let mut weights = Weights::open(folder)?;
        let names = Names::of(&weights);
        let vector =
            |weights: &mut Weights, name: &str, width| weights.read(name, [width], number_type, device);
        let layers = (0..config.layers())
            .map(|layer| {
                let at = |name: &str| names.layer(layer, name);
                Ok(Layer {
                    attention_norm: vector(&mut weights, &at("input_layernorm"), config.hidden)?,
                    feed_forward_norm: vector(&mut weights, &at("post_attention_layernorm"), config.hidden)?,
                    head_norms: if config.architecture.normalises_heads() {
                        Some([
                            vector(&mut weights, &at("self_attn.q_norm"), config.head_dim)?,
                            vector(&mut weights, &at("self_attn.k_norm"), config.head_dim)?,
                        ])
                    } else {
                        None
                    },
                    projections: Projection::try_each(|projection| {
                        let name = names.projection(layer, projection);
                        weights.read(&name, projection.shape(&config), number_type, device)
                    })?,
                })
            })
            .collect::<Result<_, FileError>>()?;
        let norm = vector(&mut weights, &names.norm(), config.hidden)?;
        let table = [config.vocabulary, config.hidden];
        let embedding = weights.read(&names.embedding(), table, number_type, device)?;
        let head = if config.tied {
            None
        } else {
            Some(weights.read(names.head, table, number_type, device)?)
        };
        weights.finish(names.trunk, config.architecture.name())?;
        Ok(Self {
            rope: Rope::new(&config),
            config,
            embedding,
            layers,
            norm,
            head,
            recomputed: None,
        })
    }

    /// The sizes and constants.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The type that the computation runs in.
    pub fn number_type(&self) -> FloatDType {
        self.embedding.dtype().into()
    }

    /// Where the weights lie.
    pub fn device(&self) -> B::Device {
        self.embedding.device()
    }

    /// The hidden states after the last norm, `[rows, columns, hidden]`. What stands at padding
    /// means nothing.
    ///
    /// With a cache the tokens follow those seen before, where their positions say so
    /// ([`Tokens::continued`]), and are added to it.
    ///
    /// # Errors
    ///
    /// No rows, a row without tokens, a token outside the vocabulary, a position beyond the context, or
    /// more columns than the cache has room for.
    pub fn hidden(
        &self,
        tokens: &Tokens,
        adapter: Option<&Adapter<B>>,
        cache: Option<&mut KvCache<B>>,
    ) -> Result<Tensor<B, 3>, RequestError> {
        tokens.check(self.config.vocabulary, self.config.context)?;
        if let Some(cache) = cache.as_deref() {
            cache.check_room(tokens)?;
        }
        Ok(self.hidden_of_checked(tokens, adapter, cache))
    }

    /// As [`hidden`](Self::hidden), for tokens that were checked before.
    pub(crate) fn hidden_of_checked(
        &self,
        tokens: &Tokens,
        adapter: Option<&Adapter<B>>,
        mut cache: Option<&mut KvCache<B>>,
    ) -> Tensor<B, 3> {
        let (rows, columns) = (tokens.rows(), tokens.columns());
        let device = self.device();
        let start = cache.as_deref().map_or(0, KvCache::columns);
        if let Some(cache) = cache.as_deref_mut() {
            cache.note(tokens);
        }
        let pass = Pass {
            rows,
            columns,
            start,
            rotation: self
                .rope
                .rotation(tokens.positions(), columns, self.number_type(), &device),
            visible: self.visible(tokens, cache.as_deref()),
            adapter,
        };
        let ids = index_tensor::<B>(tokens.ids().iter().map(|id| *id as usize), &device);
        let mut stream = self.embedding.clone().select(0, ids);
        let is_tracked = self.embedding.is_require_grad() || adapter.is_some_and(Adapter::is_tracked);
        match &self.recomputed {
            Some(passes) if is_tracked && cache.is_none() => stream = passes.run(self, stream, &pass),
            _ => {
                for layer in 0..self.layers.len() {
                    stream = self.layer(layer, stream, &pass, cache.as_deref_mut());
                }
            }
        }
        self.normalised(stream, &self.norm)
            .reshape([rows, columns, self.config.hidden])
    }

    /// The stream, `[tokens, hidden]`, after a layer.
    pub(crate) fn layer(
        &self,
        index: usize,
        stream: Tensor<B, 2>,
        pass: &Pass<B>,
        cache: Option<&mut KvCache<B>>,
    ) -> Tensor<B, 2> {
        let layer = &self.layers[index];
        let normed = self.normalised(stream.clone(), &layer.attention_norm);
        let stream = stream + self.attention(index, &normed, pass, cache);
        let normed = self.normalised(stream.clone(), &layer.feed_forward_norm);
        stream + self.feed_forward(index, normed, pass)
    }

    /// The same weights. What a tracked pass computes is computed again in the backward pass, layer by layer,
    /// instead of being kept: take the gradient of a loss by [`gradient`](Self::gradient) then.
    #[must_use]
    pub fn recomputing(mut self) -> Self {
        self.recomputed = Some(RecomputedPasses::new());
        self
    }

    /// As [`hidden_of_checked`](Self::hidden_of_checked), pass by pass so that attention scores stay
    /// within bounds however long the rows are; `take` is given the hidden states of each pass,
    /// `[rows, columns of the pass, hidden]`.
    ///
    /// # Errors
    ///
    /// The first that `take` gives; no further pass is made then.
    pub(crate) fn hidden_in_passes(
        &self,
        tokens: &Tokens,
        adapter: Option<&Adapter<B>>,
        cache: &mut KvCache<B>,
        mut take: impl FnMut(Tensor<B, 3>) -> Result<(), RequestError>,
    ) -> Result<(), RequestError> {
        let columns = tokens.columns();
        let seen = cache.columns() + columns;
        let width = self.pass_columns(tokens.rows(), seen);
        for from in (0..columns).step_by(width) {
            let part = tokens.columns_between(from, (from + width).min(columns));
            take(self.hidden_of_checked(&part, adapter, Some(&mut *cache)))?;
        }
        Ok(())
    }

    /// Columns of a pass whose queries see up to `keys` keys.
    pub(crate) fn pass_columns(&self, rows: usize, keys: usize) -> usize {
        let scores = (rows * self.config.heads).saturating_mul(keys);
        (PASS_SCORES / scores.max(1)).clamp(1, PASS_COLUMNS)
    }

    /// The output layer, `[vocabulary, hidden]`.
    pub(crate) fn output_layer(&self) -> &Tensor<B, 2> {
        self.head.as_ref().unwrap_or(&self.embedding)
    }

    /// The logits, `[tokens, vocabulary]`, of hidden states `[tokens, hidden]`.
    pub fn logits(&self, hidden: Tensor<B, 2>) -> Tensor<B, 2> {
        B::project(hidden, self.output_layer().clone())
    }

    fn normalised(&self, input: Tensor<B, 2>, weight: &Tensor<B, 1>) -> Tensor<B, 2> {
        B::rms_norm(input, weight.clone(), self.config.rms_norm_eps)
    }

    /// `input`, `[tokens, inputs]`, through a projection and its update, `[tokens, outputs]`.
    fn project(
        &self,
        layer: usize,
        projection: Projection,
        input: Tensor<B, 2>,
        pass: &Pass<B>,
    ) -> Tensor<B, 2> {
        let weight = self.layers[layer].projections[projection as usize].clone();
        let update = pass
            .adapter
            .and_then(|adapter| adapter.apply(layer, projection, input.clone()));
        let output = B::project(input, weight);
        match update {
            Some(update) => output + update,
            None => output,
        }
    }

    fn attention(
        &self,
        layer: usize,
        input: &Tensor<B, 2>,
        pass: &Pass<B>,
        cache: Option<&mut KvCache<B>>,
    ) -> Tensor<B, 2> {
        let config = &self.config;
        let (rows, columns, width) = (pass.rows, pass.columns, config.head_dim);
        let heads_of = |projection, heads, norm: Option<&Tensor<B, 1>>| {
            let output = self.project(layer, projection, input.clone(), pass);
            let output = match norm {
                Some(weight) => self.normalised(output.reshape([rows * columns * heads, width]), weight),
                None => output,
            };
            output.reshape([rows, columns, heads, width])
        };
        let norms = self.layers[layer].head_norms.as_ref();
        let queries = heads_of(Projection::Query, config.heads, norms.map(|norms| &norms[0]));
        let keys = heads_of(Projection::Key, config.kv_heads, norms.map(|norms| &norms[1]));
        let values = heads_of(Projection::Value, config.kv_heads, None);

        let mut queries = pass.rotation.apply(queries);
        if let Some(scale) = &pass.rotation.query_scale {
            queries = queries * scale.clone();
        }
        let keys = pass.rotation.apply(keys);
        let (keys, values) = match cache {
            Some(cache) => cache.extend(layer, pass.start, keys, values),
            None => (keys, values),
        };
        let scale = (width as f64).powf(-0.5);
        let mixed = B::attend(queries, keys, values, scale, pass.visible(config.windows[layer]))
            .reshape([rows * columns, config.heads * width]);
        self.project(layer, Projection::Output, mixed, pass)
    }

    fn feed_forward(&self, layer: usize, input: Tensor<B, 2>, pass: &Pass<B>) -> Tensor<B, 2> {
        let gate = self.project(layer, Projection::Gate, input.clone(), pass);
        let up = self.project(layer, Projection::Up, input, pass);
        self.project(layer, Projection::Down, B::silu_mul(gate, up), pass)
    }

    /// What the queries of one pass see, for the windows that the model has.
    fn visible(&self, tokens: &Tokens, cache: Option<&KvCache<B>>) -> Windows<B> {
        let mut windows = self.config.windows.clone();
        windows.sort_unstable();
        windows.dedup();
        let visible = |window| (window, Arc::new(visible(window, tokens, cache)));
        windows.into_iter().map(visible).collect()
    }

    /// The model with an adapter's updates added to its weights.
    #[must_use]
    pub fn merged(&self, adapter: &Adapter<B>) -> Self {
        let mut merged = self.clone();
        for (index, layer) in merged.layers.iter_mut().enumerate() {
            for projection in Projection::ALL {
                if let Some(update) = adapter.product(index, projection) {
                    let weight = &mut layer.projections[projection as usize];
                    *weight = (wide(weight.clone()) + wide(update)).cast(self.number_type());
                }
            }
        }
        merged
    }
}

impl<B> Decoder<B>
where
    B: PolicyBackend + AutodiffBackend<InnerBackend: PolicyBackend>,
{
    /// The same weights, shared, for a backend that differentiates.
    pub fn from_inner(inner: &Decoder<B::InnerBackend>) -> Self {
        let layer = |layer: &Layer<B::InnerBackend>| Layer {
            attention_norm: Tensor::from_inner(layer.attention_norm.clone()),
            feed_forward_norm: Tensor::from_inner(layer.feed_forward_norm.clone()),
            head_norms: layer
                .head_norms
                .clone()
                .map(|norms| norms.map(Tensor::from_inner)),
            projections: layer.projections.clone().map(Tensor::from_inner),
        };
        Self {
            config: inner.config.clone(),
            rope: inner.rope.clone(),
            embedding: Tensor::from_inner(inner.embedding.clone()),
            layers: inner.layers.iter().map(layer).collect(),
            norm: Tensor::from_inner(inner.norm.clone()),
            head: inner.head.clone().map(Tensor::from_inner),
            recomputed: None,
        }
    }
}

impl<B> Decoder<B>
where
    B: PolicyBackend + AutodiffBackend<InnerBackend: PolicyBackend>,
{
    /// The gradient of a `loss`, `[1]`, which this decoder computed, by what is tracked.
    pub fn gradient(&self, loss: &Tensor<B, 1>, by: &impl Parameters<B>) -> Gradient<B::InnerBackend> {
        match &self.recomputed {
            Some(passes) => passes.gradient(self, loss, by),
            None => Gradient::of(loss, by),
        }
    }
}

impl<B: PolicyBackend> Pass<'_, B> {
    /// The same pass with an adapter or none.
    pub(crate) fn with_adapter<'a>(&self, adapter: Option<&'a Adapter<B>>) -> Pass<'a, B> {
        Pass {
            rows: self.rows,
            columns: self.columns,
            start: self.start,
            rotation: self.rotation.clone(),
            visible: self.visible.clone(),
            adapter,
        }
    }

    fn visible(&self, window: Option<usize>) -> &Arc<Visibility<BoolTensor<B>>> {
        let found = self.visible.iter().find(|(of, _)| *of == window);
        &found.expect("a pass has all windows of its model").1
    }
}

/// A key is visible when it is a token, not later than the query, and inside its window. Positions grow
/// along a row.
fn visible<B: PolicyBackend>(
    window: Option<usize>,
    tokens: &Tokens,
    cache: Option<&KvCache<B>>,
) -> Visibility<BoolTensor<B>> {
    let (rows, columns) = (tokens.rows(), tokens.columns());
    let (mut spans, mut real) = (Vec::with_capacity(rows * columns), Vec::new());
    for row in 0..rows {
        let cells = row * columns..(row + 1) * columns;
        let (keys, positions) = match cache {
            Some(cache) => cache.row(row),
            None => (&tokens.real()[cells.clone()], &tokens.positions()[cells]),
        };
        let start = keys.len() - columns;
        // The first token that the queries so far see.
        let mut first = keys.iter().position(|is_token| *is_token).unwrap_or(keys.len());
        for query in start..keys.len() {
            let oldest = window.map_or(0, |window| (positions[query] as usize + 1).saturating_sub(window));
            while first < query && (positions[first] as usize) < oldest {
                first += 1;
            }
            let end = if keys[query] { query + 1 } else { first };
            spans.push(first.min(end)..end);
        }
        real.extend_from_slice(keys);
    }
    Visibility::new(rows, spans, real)
}

/// What a checkpoint calls its tensors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names {
    trunk: &'static str,
    head: &'static str,
}

impl Names {
    /// The names of a text model.
    pub(crate) const TEXT: Self = Self {
        trunk: "model.",
        head: "lm_head.weight",
    };

    /// The names of a text model inside a multimodal one, as transformers has them since 4.52.
    pub(crate) const INNER: Self = Self {
        trunk: "model.language_model.",
        head: "lm_head.weight",
    };

    /// The names of a text model inside a multimodal one, as transformers had them, and as the
    /// checkpoints on the hub have them.
    pub(crate) const FORMER_INNER: Self = Self {
        trunk: "language_model.model.",
        head: "language_model.lm_head.weight",
    };

    /// The names that a checkpoint uses: a multimodal one holds the text model below its own.
    fn of(weights: &Weights) -> Self {
        [Self::FORMER_INNER, Self::INNER]
            .into_iter()
            .find(|names| weights.contains(&names.embedding()))
            .unwrap_or(Self::TEXT)
    }

    pub(crate) fn head(self) -> &'static str {
        self.head
    }

    pub(crate) fn embedding(self) -> String {
        format!("{}embed_tokens.weight", self.trunk)
    }

    pub(crate) fn norm(self) -> String {
        format!("{}norm.weight", self.trunk)
    }

    pub(crate) fn layer(self, layer: usize, name: &str) -> String {
        format!("{}layers.{layer}.{name}.weight", self.trunk)
    }

    pub(crate) fn projection(self, layer: usize, projection: Projection) -> String {
        self.layer(layer, &format!("{}.{}", projection.block(), projection.name()))
    }
}
