//! Activation checkpointing [Chen et al., Training Deep Nets with Sublinear Memory Cost, arXiv
//! 1604.06174]: of a pass forward only the stream between the layers is kept, and each layer is computed
//! again when the backward pass comes to it. Memory grows by one layer's activations instead of all, for one
//! more pass forward.

use std::sync::{Arc, Mutex, PoisonError};

use burn_tensor::Tensor;
use burn_tensor::backend::AutodiffBackend;

use super::{Decoder, Pass};
use crate::backend::PolicyBackend;
use crate::lora::Adapter;
use crate::optimizer::Gradient;
use crate::parameters::{Parameter, Parameters};

/// The passes of a decoder whose layers are to be computed again.
#[derive(Debug, Clone)]
pub(crate) struct RecomputedPasses<B: PolicyBackend>(Arc<Mutex<Vec<RecomputedPass<B>>>>);

/// What is kept of one pass.
#[derive(Debug)]
struct RecomputedPass<B: PolicyBackend> {
    pass: Pass<'static, B>,
    adapter: Option<Adapter<B>>,
    /// What the embedding gave, `[tokens, hidden]`.
    embedded: Tensor<B, 2>,
    /// The stream before each layer and after the last, `[tokens, hidden]` each. Gradients are tracked by
    /// each, and none flows from one to another.
    streams: Vec<Tensor<B, 2>>,
}

impl<B: PolicyBackend> RecomputedPasses<B> {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// The stream after all layers, of which none has kept anything.
    pub(crate) fn run(&self, decoder: &Decoder<B>, embedded: Tensor<B, 2>, pass: &Pass<B>) -> Tensor<B, 2> {
        let frozen = decoder.with(decoder.parameters().into_iter().map(|parameter| match parameter {
            Parameter::Vector(vector) => Parameter::Vector(constant(vector)),
            Parameter::Matrix(matrix) => Parameter::Matrix(constant(matrix)),
        }));
        let adapter = pass
            .adapter
            .map(|adapter| adapter.map(|matrix| constant(matrix.clone())));
        let untracked = pass.with_adapter(adapter.as_ref());
        let mut stream = constant(embedded.clone());
        let mut streams = vec![stream.clone().require_grad()];
        for layer in 0..decoder.config().layers() {
            stream = frozen.layer(layer, stream, &untracked, None);
            streams.push(stream.clone().require_grad());
        }
        let last = streams[streams.len() - 1].clone();
        let kept = RecomputedPass {
            pass: pass.with_adapter(None),
            adapter: pass.adapter.cloned(),
            embedded,
            streams,
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(kept);
        last
    }
}

impl<B: PolicyBackend + AutodiffBackend> RecomputedPasses<B> {
    /// The gradient of `loss`, which was computed by `decoder` through [`run`](Self::run), by what is tracked.
    /// What was kept is given up.
    pub(crate) fn gradient(
        &self,
        decoder: &Decoder<B>,
        loss: &Tensor<B, 1>,
        by: &impl Parameters<B>,
    ) -> Gradient<B::InnerBackend> {
        let mut gradients = Sum::new(by.parameters());
        let above = loss.backward();
        gradients.add(&above);
        let passes = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for mut kept in passes {
            let pass = kept.pass.with_adapter(kept.adapter.as_ref());
            let last = kept.streams.pop().and_then(|stream| stream.grad(&above));
            // The loss may not depend on a pass.
            let Some(mut by_stream) = last else { continue };
            for layer in (0..kept.streams.len()).rev() {
                let Some(stream) = kept.streams.pop() else { break };
                let output = decoder.layer(layer, stream.clone(), &pass, None);
                let parts = backward(output, by_stream);
                gradients.add(&parts);
                by_stream = stream
                    .grad(&parts)
                    .expect("a layer's output depends on the stream before it");
            }
            if decoder.embedding.is_require_grad() {
                gradients.add(&backward(kept.embedded, by_stream));
            }
        }
        gradients.finish()
    }
}

/// The same numbers, which no gradient is tracked by.
fn constant<B: PolicyBackend, const D: usize>(tensor: Tensor<B, D>) -> Tensor<B, D> {
    tensor.detach().set_require_grad(false)
}

/// Gradients from the one by an output.
fn backward<B: AutodiffBackend>(output: Tensor<B, 2>, gradient: Tensor<B::InnerBackend, 2>) -> B::Gradients {
    (output * Tensor::from_inner(gradient)).sum().backward()
}

/// Gradients by the same parameters, summed.
struct Sum<B: AutodiffBackend> {
    parameters: Vec<Parameter<B>>,
    parts: Vec<Option<Tensor<B::InnerBackend, 2>>>,
}

impl<B: AutodiffBackend> Sum<B> {
    fn new(parameters: Vec<Parameter<B>>) -> Self {
        Self {
            parts: vec![None; parameters.len()],
            parameters,
        }
    }

    fn add(&mut self, gradients: &B::Gradients) {
        for (parameter, sum) in self.parameters.iter().zip(&mut self.parts) {
            if let Some(part) = parameter.found_gradient(gradients) {
                *sum = Some(match sum.take() {
                    Some(sum) => sum + part,
                    None => part,
                });
            }
        }
    }

    fn finish(self) -> Gradient<B::InnerBackend> {
        let parts = self.parameters.iter().zip(self.parts);
        Gradient::from_parts(parts.map(|(parameter, part)| part.unwrap_or_else(|| parameter.zeros())))
    }
}

#[cfg(test)]
mod tests {
    use burn_flex::{Flex, FlexDevice};
    use burn_tensor::FloatDType;

    use super::*;
    use crate::lora::{LoraConfig, Mode};
    use crate::policy::Policy;
    use crate::sft::SftBatch;
    use crate::tiny_qwen3::TinyQwen3Config;
    use crate::tokenizer::Tokenizer;

    fn decoder(config: TinyQwen3Config) -> Decoder<Flex> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let tokenizer = Tokenizer::of_bytes().expect("builds");
        config.write(folder.path(), &tokenizer, 3).expect("writes");
        Decoder::from_folder(folder.path(), FloatDType::F32, &FlexDevice).expect("loads")
    }

    fn batch(rows: u32, length: u32) -> SftBatch {
        let row = |row: u32| (0..length - row).map(|index| (17 * index + row) % 256).collect();
        let rows: Vec<(Vec<u32>, Vec<bool>)> = (0..rows)
            .map(row)
            .map(|ids: Vec<u32>| (ids.clone(), vec![true; ids.len()]))
            .collect();
        SftBatch::masked(&rows).expect("valid")
    }

    fn numbers<const D: usize>(tensor: Tensor<Flex, D>) -> Vec<f32> {
        tensor.into_data().into_vec().expect("32-bit numbers")
    }

    /// The loss and its gradient, with the activations kept or recomputed.
    fn learn(policy: &Policy<Flex>, batch: &SftBatch, is_recomputed: bool) -> (f32, Vec<Vec<f32>>) {
        let (loss, gradient) = policy
            .differentiate(Mode::Training { seed: 9 }, is_recomputed, |decoder, adapter| {
                // A second pass that the loss does not depend on.
                batch.losses(decoder, adapter)?;
                let losses = batch.losses(decoder, adapter)?;
                Ok((losses.clone() * losses).mean())
            })
            .expect("valid");
        let parts = gradient.parts().iter().cloned().map(numbers).collect();
        (numbers(loss)[0], parts)
    }

    #[test]
    fn gradients_are_those_of_kept_activations() {
        let base = decoder(TinyQwen3Config {
            hidden: 32,
            layers: 3,
            heads: 4,
            kv_heads: 2,
            head_dim: 8,
            intermediate: 48,
            context: 128,
            tied: true,
        });
        let mut lora = LoraConfig::all(4, 8.0);
        lora.dropout = 0.2;
        let adapter: Adapter<Flex> = Adapter::new(&lora, base.config(), 1, &FlexDevice).expect("valid");
        // B begins at zero, where A has no gradient.
        let adapter = adapter.map(|matrix| matrix.clone() + 0.01);
        for policy in [Policy::Whole(base.clone()), Policy::Adapted { base, adapter }] {
            let batch = batch(3, 40);
            let (kept_loss, kept) = learn(&policy, &batch, false);
            let (loss, found) = learn(&policy, &batch, true);
            assert!((loss - kept_loss).abs() < 1e-6, "{loss} instead of {kept_loss}");
            assert_eq!(found.len(), kept.len());
            for (name, (found, kept)) in policy.names().iter().zip(found.iter().zip(&kept)) {
                let largest = kept
                    .iter()
                    .fold(0.0f32, |largest, number| largest.max(number.abs()));
                assert!(largest > 0.0, "{name} does not learn");
                for (one, other) in found.iter().zip(kept) {
                    assert!(
                        (one - other).abs() <= 1e-6 * largest.max(1.0),
                        "{name}: {one}, {other}"
                    );
                }
            }
        }
    }

    /// In a process of its own, as nextest runs it, the peaks are those of learning.
    #[test]
    #[cfg(target_os = "linux")]
    fn the_peak_is_a_fraction_of_that_of_kept_activations() {
        fn status(name: &str) -> f64 {
            let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
            let mut lines = status.lines().filter_map(|line| line.strip_prefix(name));
            let kibibytes = lines.next().and_then(|line| line.split_whitespace().next());
            kibibytes
                .and_then(|number| number.parse().ok())
                .expect("a number")
        }
        let base = decoder(TinyQwen3Config {
            hidden: 64,
            layers: 16,
            heads: 2,
            kv_heads: 1,
            head_dim: 32,
            intermediate: 256,
            context: 512,
            tied: true,
        });
        let lora = LoraConfig::all(2, 4.0);
        let adapter = Adapter::new(&lora, base.config(), 1, &FlexDevice).expect("valid");
        let policy = Policy::Adapted { base, adapter };
        let batch = batch(4, 256);
        let before = status("VmRSS:");
        learn(&policy, &batch, true);
        let recomputed = status("VmHWM:") - before;
        learn(&policy, &batch, false);
        let kept = status("VmHWM:") - before;
        println!("{recomputed:.0} KiB of {kept:.0} KiB");
        assert!(recomputed < 0.5 * kept, "{recomputed} of {kept} KiB");
    }
}
