//! Alignment of rewrites and steps with the gradient of the surrogate \[Rewrite Alignment\].
//!
//! The paper's surrogate (`eq:reinforce_alignment_surrogate`) is L = Σ_e (J_e − b) log π_θ(p_e⁺ | z, ctx_e), with the children p_e⁺ of round t, their J_e
//! under λ_t and the policy θ = θ_t that drew them. Of each parent → child pair e three numbers are taken, whose
//! means are reported:
//!
//! | number | what it is |
//! |---|---|
//! | [`hidden`](Alignment::hidden) | ⟨ĝ_z, z⁺ − z⟩ |
//! | [`parameters`](Alignment::parameters) | ⟨ĝ_θ, θ_{t+1} − θ_t⟩ |
//! | [`gain`](AlignmentExample::gain) | J(child) − J(parent) |
//!
//! What the paper leaves open is settled here:
//!
//! - **\[ours\]** z is the hidden state after the last norm at the last token of the request, which the output layer
//!   makes the child's first token of; z⁺ is the same of the request with the child in the parent's place and all
//!   else as it was.
//! - **\[ours\]** ĝ_z and ĝ_θ are the gradients of the pair's own term (J_e − b) log π(p_e⁺ | z, ctx_e), neither
//!   normalised. The mean of the products with Δθ is then the product of Δθ with the gradient of the mean of the
//!   terms. Nothing behind the output layer sees the state after the last norm, and later tokens see a request only
//!   through keys and values of the layers before it: so the gradient of the whole child's log-probability by z is
//!   exactly that of its first token's.
//! - **\[ours\]** b is the mean J of the children that the parent got in the round, at all depths; a rewrite
//!   without a child has no J and counts for nothing.
//! - **\[ours\]** log π is over the child's tokens and the one that ends it, summed, at the temperature that training
//!   drew with, without dropout. The journal holds texts: their tokens are the tokenizer's, which need not be the
//!   very ones that were drawn.

mod rounds;
#[cfg(test)]
mod tests;

use burn_autodiff::Autodiff;
use burn_tensor::{FloatDType, Tensor};

pub use rounds::{AlignmentError, LearnedRound, RoundExamples, policies, read_rounds};

use crate::backend::{PolicyBackend, index_tensor, wide};
use crate::decoder::Decoder;
use crate::error::RequestError;
use crate::grpo::Completions;
use crate::lora::Mode;
use crate::optimizer::check_shapes;
use crate::out_of_memory::guarded;
use crate::parameters::{Parameter, Parameters};
use crate::policy::Policy;
use crate::tokens::{Padding, Tokens};

const MEND_MEMORY: &str = "take another device, or compute in BF16 where an adapter learned";
const MEND_NUMBER: &str = "look at the checkpoints' weights and at the scores in the journal";

/// A parent → child pair in tokens, with what the child was worth.
#[derive(Debug, Clone, PartialEq)]
pub struct AlignmentExample {
    /// Which of the round's parents it belongs to, from 0.
    pub parent: usize,
    /// Line of the journal that tells of the rewrite, from 1.
    pub line: usize,
    /// Tokens of the request that the child answered.
    pub request: Vec<u32>,
    /// Tokens of the request with the child in the parent's place.
    pub rewritten: Vec<u32>,
    /// Tokens of the child and the one that ends it.
    pub child: Vec<u32>,
    /// J(child) − b under λ_t.
    pub advantage: f64,
    /// J(child) − J(parent) under λ_t.
    pub gain: f64,
}

/// How a pair agrees with its gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alignment {
    /// ⟨ĝ_z, z⁺ − z⟩.
    pub hidden: f64,
    /// ⟨ĝ_θ, Δθ⟩.
    pub parameters: f64,
}

impl<B: PolicyBackend> Policy<B> {
    /// How pairs that this policy drew agree with their gradients, in their order; `after` is the policy after the
    /// step on them. Pairs pass through the model one by one, with each layer computed again in the backward pass,
    /// and `observe` is called after each.
    ///
    /// # Errors
    ///
    /// `after` is of another form, tokens do not fit the model, the temperature is not above 0, memory does not
    /// suffice, or a number is not finite.
    pub fn alignment(
        &self,
        after: &Self,
        examples: &[AlignmentExample],
        temperature: f64,
        observe: &mut dyn FnMut(),
    ) -> Result<Vec<Alignment>, RequestError> {
        let update = self.update_to(after)?;
        let align = |example: &AlignmentExample| {
            let found = guarded(MEND_MEMORY, || self.aligned(&update, example, temperature))?;
            observe();
            Ok(found)
        };
        examples.iter().map(align).collect()
    }

    fn aligned(
        &self,
        update: &[Tensor<B, 2>],
        example: &AlignmentExample,
        temperature: f64,
    ) -> Result<Alignment, RequestError> {
        let finite = |what: &str, value: f64| {
            RequestError::check_finite(value, MEND_NUMBER, || {
                format!("the {what} product of line {} of the journal", example.line)
            })?;
            Ok::<_, RequestError>(value)
        };
        Ok(Alignment {
            hidden: finite(
                "hidden",
                example.advantage * self.hidden_product(example, temperature)?,
            )?,
            parameters: finite(
                "parameter",
                example.advantage * self.parameter_product(update, example, temperature)?,
            )?,
        })
    }

    /// Δθ of what learns, in the order of [`Parameters::parameters`], a vector as a matrix of one row.
    fn update_to(&self, after: &Self) -> Result<Vec<Tensor<B, 2>>, RequestError> {
        let matrices =
            |policy: &Self| -> Vec<_> { policy.parameters().iter().map(Parameter::matrix).collect() };
        let (before, after) = (matrices(self), matrices(after));
        check_shapes("policy after the step", self, after.iter())?;
        Ok(after
            .into_iter()
            .zip(before)
            .map(|(after, before)| after - before)
            .collect())
    }

    /// ⟨∇_z log π(first token of the child | z), z⁺ − z⟩.
    fn hidden_product(&self, example: &AlignmentExample, temperature: f64) -> Result<f64, RequestError> {
        let first = *example
            .child
            .first()
            .ok_or(RequestError::EmptyCompletion { row: 0 })?;
        let state = self.last_hidden(&example.request)?;
        let displacement = wide(self.last_hidden(&example.rewritten)?) - wide(state.clone());
        let gradient = wide(self.gradient_by_state(state, first, temperature)?);
        Ok(number((gradient * displacement).sum()))
    }

    /// The hidden state after the last norm at the last of the tokens, `[1, hidden]`.
    fn last_hidden(&self, tokens: &[u32]) -> Result<Tensor<B, 2>, RequestError> {
        let row = Tokens::padded(&[tokens], Padding::Left);
        let hidden = self.decoder().hidden_untracked(&row, self.adapter())?;
        let [_, columns, width] = hidden.dims();
        Ok(hidden.narrow(1, columns - 1, 1).reshape([1, width]))
    }

    /// The gradient by a hidden state, `[1, hidden]`, of the log-probability of the token that follows it.
    fn gradient_by_state(
        &self,
        state: Tensor<B, 2>,
        token: u32,
        temperature: f64,
    ) -> Result<Tensor<B, 2>, RequestError> {
        let decoder = Decoder::<Autodiff<B>>::from_inner(self.decoder());
        let state = Tensor::<Autodiff<B>, 2>::from_inner(state).require_grad();
        let logits = decoder.logits(state.clone()).cast(FloatDType::F32);
        let target = index_tensor::<Autodiff<B>>([token as usize], &decoder.device());
        let scores = Autodiff::<B>::target_scores(logits, target, temperature);
        let gradients = scores.logprobs.sum().backward();
        state.grad(&gradients).ok_or(RequestError::Missing {
            what: "gradients by the hidden state",
            advice: "compute in F32 or BF16",
        })
    }

    /// ⟨∇_θ log π(child), Δθ⟩.
    fn parameter_product(
        &self,
        update: &[Tensor<B, 2>],
        example: &AlignmentExample,
        temperature: f64,
    ) -> Result<f64, RequestError> {
        let completions = Completions::new(&[&example.request], &[&example.child])?;
        let (_, gradient) = self.differentiate(Mode::Evaluation, true, |decoder, adapter| {
            let scores = decoder.score(completions.tokens(), &completions.cells(), adapter, temperature)?;
            Ok(scores.logprobs().sum())
        })?;
        let products = gradient.parts().iter().zip(update);
        // Summed in 64 bits: there may be hundreds of tensors.
        Ok(products
            .map(|(part, update)| number((part.clone() * update.clone()).sum()))
            .sum())
    }
}

fn number<B: PolicyBackend>(scalar: Tensor<B, 1>) -> f64 {
    scalar.into_data().iter::<f64>().sum()
}
