//! A whole decoder as what an optimizer changes.

use burn_tensor::Tensor;
use burn_tensor::backend::AutodiffBackend;

use super::{Decoder, Layer, Names};
use crate::backend::PolicyBackend;
use crate::lora::Projection;
use crate::parameters::{Parameter, Parameters};

impl<B: PolicyBackend> Parameters<B> for Decoder<B> {
    fn parameters(&self) -> Vec<Parameter<B>> {
        let matrix = |matrix: &Tensor<B, 2>| Parameter::Matrix(matrix.clone());
        let vector = |vector: &Tensor<B, 1>| Parameter::Vector(vector.clone());
        let mut all = vec![matrix(&self.embedding)];
        for layer in &self.layers {
            all.push(vector(&layer.attention_norm));
            all.push(vector(&layer.feed_forward_norm));
            all.extend(layer.head_norms.iter().flatten().map(vector));
            all.extend(layer.projections.iter().map(matrix));
        }
        all.push(vector(&self.norm));
        all.extend(self.head.iter().map(matrix));
        all
    }

    fn names(&self) -> Vec<String> {
        let names = Names::TEXT;
        let mut all = vec![names.embedding()];
        for (index, layer) in self.layers.iter().enumerate() {
            all.push(names.layer(index, "input_layernorm"));
            all.push(names.layer(index, "post_attention_layernorm"));
            if layer.head_norms.is_some() {
                all.push(names.layer(index, "self_attn.q_norm"));
                all.push(names.layer(index, "self_attn.k_norm"));
            }
            all.extend(Projection::ALL.map(|projection| names.projection(index, projection)));
        }
        all.push(names.norm());
        all.extend(self.head.iter().map(|_| names.head().to_owned()));
        all
    }

    fn with(&self, parameters: impl IntoIterator<Item = Parameter<B>>) -> Self {
        let mut parameters = parameters.into_iter();
        let mut next = || parameters.next().expect("one for each tensor");
        let mut changed = self.clone();
        changed.embedding = next().into_matrix();
        for layer in &mut changed.layers {
            *layer = Layer {
                attention_norm: next().into_vector(),
                feed_forward_norm: next().into_vector(),
                head_norms: layer
                    .head_norms
                    .as_ref()
                    .map(|_| [next().into_vector(), next().into_vector()]),
                projections: std::array::from_fn(|_| next().into_matrix()),
            };
        }
        changed.norm = next().into_vector();
        changed.head = changed.head.map(|_| next().into_matrix());
        changed
    }
}

impl<B> Decoder<B>
where
    B: PolicyBackend + AutodiffBackend<InnerBackend: PolicyBackend>,
{
    /// The same weights for a backend that differentiates, all of them tracked.
    pub fn trainable(inner: &Decoder<B::InnerBackend>) -> Self {
        let frozen = Self::from_inner(inner);
        let tracked = frozen.parameters().into_iter().map(|parameter| match parameter {
            Parameter::Vector(vector) => Parameter::Vector(vector.require_grad()),
            Parameter::Matrix(matrix) => Parameter::Matrix(matrix.require_grad()),
        });
        frozen.with(tracked)
    }
}
