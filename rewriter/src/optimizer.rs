//! AdamW on an adapter or a whole decoder [Loshchilov & Hutter, Decoupled Weight Decay Regularization, arXiv 1711.05101].

use std::path::Path;

use burn_tensor::backend::{AutodiffBackend, Backend};
use burn_tensor::{FloatDType, Tensor};
use serde::{Deserialize, Serialize};

use crate::backend::{AdamWUpdate, PolicyBackend, carried};
use crate::error::{FileError, RequestError};
use crate::parameters::{Parameter, Parameters};
use crate::store::{self, Stored};
use crate::weights::Weights;

/// The settings of AdamW, with PyTorch's defaults.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdamW {
    /// Decay of the mean gradient.
    pub beta_1: f64,
    /// Decay of the mean squared gradient.
    pub beta_2: f64,
    /// Added to the root of the mean squared gradient.
    pub eps: f64,
    /// Each step multiplies the parameters by 1 − learning rate · weight decay.
    pub weight_decay: f64,
    /// Longest gradient, over all parameters together; longer ones are shortened to it.
    pub max_grad_norm: Option<f64>,
}

impl Default for AdamW {
    fn default() -> Self {
        Self {
            beta_1: 0.9,
            beta_2: 0.999,
            eps: 1e-8,
            weight_decay: 0.01,
            max_grad_norm: Some(1.0),
        }
    }
}

/// The gradient of a loss by what learns, in the order of its tensors, a vector's as a matrix of one row.
#[derive(Debug, Clone)]
pub struct Gradient<B: Backend>(Vec<Tensor<B, 2>>);

impl<B: Backend> Gradient<B> {
    /// The gradient of `loss`, `[1]`, by what is tracked: see `trainable` of adapters and decoders. A decoder that computes its
    /// layers again gives it by its policy's `differentiate` alone.
    pub fn of<A: AutodiffBackend<InnerBackend = B>>(loss: &Tensor<A, 1>, by: &impl Parameters<A>) -> Self {
        let gradients = loss.backward();
        let parameters = by.parameters();
        Self(
            parameters
                .iter()
                .map(|parameter| parameter.gradient(&gradients))
                .collect(),
        )
    }

    /// Parts in the order of [`Parameters::parameters`].
    pub(crate) fn from_parts(parts: impl IntoIterator<Item = Tensor<B, 2>>) -> Self {
        Self(parts.into_iter().collect())
    }

    /// The parts, in the order of [`Parameters::parameters`].
    pub fn parts(&self) -> &[Tensor<B, 2>] {
        &self.0
    }

    /// The parts themselves.
    pub(crate) fn into_parts(self) -> Vec<Tensor<B, 2>> {
        self.0
    }

    /// The same on another device.
    pub(crate) fn carried(self, device: &B::Device) -> Self {
        Self(self.0.into_iter().map(|part| carried(part, device)).collect())
    }

    /// The sum of two gradients by the same.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(
            self.0
                .into_iter()
                .zip(other.0)
                .map(|(one, other)| one + other)
                .collect(),
        )
    }

    /// The gradient of the opposite.
    #[must_use]
    pub fn negated(self) -> Self {
        Self(self.0.into_iter().map(Tensor::neg).collect())
    }

    /// # Errors
    ///
    /// [`RequestError::OtherParameters`] names the first part that has not its tensor's shape.
    fn check(&self, learning: &impl Parameters<B>) -> Result<(), RequestError> {
        check_shapes("gradient", learning, self.0.iter())
    }
}

impl<B: PolicyBackend> Gradient<B> {
    /// Euclidean length over all parts together, `[1]`.
    pub fn norm(&self) -> Tensor<B, 1> {
        let squares = B::squares(self.0.clone());
        squares.expect("what learns has tensors").sqrt()
    }
}

/// # Errors
///
/// [`RequestError::OtherParameters`] names the first matrix that has another shape.
pub(crate) fn check_shapes<'a, B: Backend>(
    what: &'static str,
    learning: &impl Parameters<B>,
    found: impl Iterator<Item = &'a Tensor<B, 2>>,
) -> Result<(), RequestError> {
    let shape = |matrix: &Tensor<B, 2>| matrix.dims().to_vec();
    let expected: Vec<_> = learning
        .parameters()
        .iter()
        .map(|parameter| shape(&parameter.matrix()))
        .collect();
    let found: Vec<_> = found.map(shape).collect();
    for index in 0..expected.len().max(found.len()) {
        let [expected, found] =
            [&expected, &found].map(|shapes| shapes.get(index).cloned().unwrap_or_default());
        if expected != found {
            return Err(RequestError::OtherParameters {
                what,
                index,
                expected,
                found,
            });
        }
    }
    Ok(())
}

impl AdamW {
    /// # Errors
    ///
    /// [`RequestError::Setting`] names a setting outside its range.
    pub fn check(&self) -> Result<(), RequestError> {
        let share = 0.0..1.0;
        let is_length = |longest: f64| longest > 0.0 && longest.is_finite();
        let longest = self.max_grad_norm.unwrap_or(1.0);
        let ranges = [
            (
                "beta_1",
                self.beta_1,
                share.contains(&self.beta_1),
                "at least 0 and below 1",
            ),
            (
                "beta_2",
                self.beta_2,
                share.contains(&self.beta_2),
                "at least 0 and below 1",
            ),
            ("eps", self.eps, is_length(self.eps), "above 0 and finite"),
            (
                "weight_decay",
                self.weight_decay,
                (0.0..=1.0).contains(&self.weight_decay),
                "between 0 and 1",
            ),
            ("max_grad_norm", longest, is_length(longest), "above 0 and finite"),
        ];
        for (name, value, holds, range) in ranges {
            if !holds {
                return Err(RequestError::Setting { name, value, range });
            }
        }
        Ok(())
    }
}

/// AdamW with what it remembers of past gradients.
#[derive(Debug, Clone)]
pub struct Optimizer<B: Backend> {
    settings: AdamW,
    steps: u32,
    moments: Vec<Moments<B>>,
}

/// Running means for one matrix.
#[derive(Debug, Clone)]
struct Moments<B: Backend> {
    first: Tensor<B, 2>,
    second: Tensor<B, 2>,
}

/// What one step led to.
#[derive(Debug, Clone)]
pub struct Step<P> {
    /// What learns, after it.
    pub parameters: P,
    /// Length of the gradient before it was shortened.
    pub gradient_norm: f64,
}

/// What to do about a gradient that is not finite.
const MEND_GRADIENT: &str = "nothing was changed by this step; look at the batch, or start another training from the last checkpoint with a lower learning rate";

/// PyTorch's names for the running means, and for the number of steps.
const MOMENTS: [&str; 2] = ["exp_avg", "exp_avg_sq"];
const STEPS: &str = "step";

impl<B: PolicyBackend> Optimizer<B> {
    /// An optimizer that has seen nothing.
    pub fn new(settings: AdamW, learning: &impl Parameters<B>) -> Self {
        let moments = |parameter: &Parameter<B>| {
            let zeros = parameter.matrix().zeros_like();
            Moments {
                first: zeros.clone(),
                second: zeros,
            }
        };
        Self {
            settings,
            steps: 0,
            moments: learning.parameters().iter().map(moments).collect(),
        }
    }

    /// Steps made so far.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// One step against the gradient, which is shortened first: g · min(1, longest / (‖g‖ + 1e-6)).
    /// Reads the gradient's length from the device and waits for the step's end.
    ///
    /// # Errors
    ///
    /// A setting or learning rate outside its range, a gradient by something else, or one whose length
    /// is not finite, or trouble of the device. The optimizer is then as it was.
    pub fn step<P: Parameters<B>>(
        &mut self,
        learning: &P,
        gradient: Gradient<B>,
        learning_rate: f64,
    ) -> Result<Step<P>, RequestError> {
        self.settings.check()?;
        if !(0.0..=1.0).contains(&learning_rate) {
            return Err(RequestError::Setting {
                name: "learning_rate",
                value: learning_rate,
                range: "between 0 and 1",
            });
        }
        gradient.check(learning)?;
        check_shapes(
            "optimizer's moments",
            learning,
            self.moments.iter().map(|moments| &moments.first),
        )?;
        let gradient_norm = number(gradient.norm());
        RequestError::check_finite(gradient_norm, MEND_GRADIENT, || {
            format!("the length of the gradient of step {}", self.steps + 1)
        })?;
        let mut next = self.clone();
        let parameters = next.apply(learning, gradient, gradient_norm, learning_rate);
        // Whatever goes wrong on the device is known before anything is replaced.
        if let Some(moments) = next.moments.first() {
            let waited = B::sync(&moments.first.device());
            waited.map_err(|why| RequestError::Device {
                reason: why.to_string(),
            })?;
        }
        *self = next;
        Ok(Step {
            parameters,
            gradient_norm,
        })
    }

    /// AdamW's update, for a gradient by the same and of this length.
    fn apply<P: Parameters<B>>(
        &mut self,
        learning: &P,
        gradient: Gradient<B>,
        norm: f64,
        learning_rate: f64,
    ) -> P {
        let AdamW {
            beta_1,
            beta_2,
            eps,
            weight_decay,
            max_grad_norm,
        } = self.settings;
        let clip = max_grad_norm.map_or(1.0, |longest| (longest / (norm + 1e-6)).min(1.0));
        self.steps += 1;
        let time = f64::from(self.steps);
        let parameters = learning.parameters();
        let parts = gradient.0.into_iter().zip(&mut self.moments);
        let changed = parameters.iter().zip(parts).map(|(parameter, (part, moments))| {
            let decay = if parameter.decays() { weight_decay } else { 0.0 };
            let update = AdamWUpdate {
                factor: clip,
                beta_1,
                beta_2,
                scale_1: 1.0 - beta_1.powf(time),
                scale_2: 1.0 - beta_2.powf(time),
                eps,
                kept: 1.0 - learning_rate * decay,
                learning_rate,
            };
            let Moments { first, second } = moments.clone();
            let [matrix, first, second] = B::adamw(parameter.matrix(), part, [first, second], &update);
            *moments = Moments { first, second };
            parameter.of_matrix(matrix)
        });
        learning.with(changed)
    }

    /// Writes the moments, named after the tensors that learn as PyTorch names them, and the number of
    /// steps into a safetensors file, whole or not at all. The settings are the caller's to keep.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or what learns is not what the optimizer works on.
    pub fn save(&self, file: &Path, learning: &impl Parameters<B>) -> Result<(), FileError> {
        check_shapes(
            "optimizer's moments",
            learning,
            self.moments.iter().map(|moments| &moments.first),
        )
        .map_err(|why| FileError::content(file, why))?;
        let named = learning.names().into_iter().zip(&self.moments);
        let tensors = named.flat_map(|(name, Moments { first, second })| {
            let [first_name, second_name] = MOMENTS.map(|moment| format!("{name}.{moment}"));
            [
                (first_name, Stored::matrix(first.clone())),
                (second_name, Stored::matrix(second.clone())),
            ]
        });
        store::write_tensors(file, tensors.collect(), &[(STEPS, self.steps.to_string())])
    }

    /// Reads what [`save`](Self::save) wrote for something of this form; steps go on as if there had
    /// been no break.
    ///
    /// # Errors
    ///
    /// The file does not read, lacks the number of steps, or is of something else.
    pub fn load(file: &Path, settings: AdamW, learning: &impl Parameters<B>) -> Result<Self, FileError> {
        let mut weights = Weights::open_file(file)?;
        let steps = weights
            .note(STEPS)
            .and_then(|steps| steps.parse().ok())
            .ok_or_else(|| {
                FileError::content(
                    file,
                    format!("the header has no number of steps (`{STEPS}`): this is no file of an optimizer"),
                )
            })?;
        let named = learning.names().into_iter().zip(learning.parameters());
        let moments = named
            .map(|(name, parameter)| {
                let matrix = parameter.matrix();
                let [first, second] = MOMENTS.map(|moment| {
                    let name = format!("{name}.{moment}");
                    weights.read::<B, 2>(&name, matrix.dims(), FloatDType::F32, &matrix.device())
                });
                Ok(Moments {
                    first: first?,
                    second: second?,
                })
            })
            .collect::<Result<_, FileError>>()?;
        weights.finish("", "what learns here")?;
        Ok(Self {
            settings,
            steps,
            moments,
        })
    }
}

fn number<B: Backend>(scalar: Tensor<B, 1>) -> f64 {
    let data = scalar.into_data();
    data.iter::<f64>().next().expect("a scalar has one number")
}
