//! Parameters: what an optimizer changes: an adapter, or a whole decoder.

use burn_tensor::Tensor;
use burn_tensor::backend::{AutodiffBackend, Backend};

use crate::backend::{PolicyBackend, carried};
use crate::lora::Adapter;

/// One tensor that learns.
#[derive(Debug, Clone)]
pub enum Parameter<B: Backend> {
    /// The weights of a norm, which do not decay.
    Vector(Tensor<B, 1>),
    /// The weights of a linear map or of an embedding.
    Matrix(Tensor<B, 2>),
}

/// What learns as a whole.
pub trait Parameters<B: Backend>: Sized {
    /// Its tensors, in an order that does not change.
    fn parameters(&self) -> Vec<Parameter<B>>;

    /// What they are called in files, in the same order.
    fn names(&self) -> Vec<String>;

    /// The same with these tensors, which have the same order and shapes.
    fn with(&self, parameters: impl IntoIterator<Item = Parameter<B>>) -> Self;
}

impl<B: Backend> Parameter<B> {
    /// Itself, a vector as a matrix of one row.
    pub(crate) fn matrix(&self) -> Tensor<B, 2> {
        match self {
            Self::Vector(vector) => vector.clone().unsqueeze_dim(0),
            Self::Matrix(matrix) => matrix.clone(),
        }
    }

    /// One of the same rank, of a matrix as [`matrix`](Self::matrix) gives it.
    pub(crate) fn of_matrix(&self, matrix: Tensor<B, 2>) -> Self {
        match self {
            Self::Vector(_) => Self::Vector(matrix.squeeze_dim(0)),
            Self::Matrix(_) => Self::Matrix(matrix),
        }
    }

    /// The same on a device.
    pub(crate) fn moved(self, device: &B::Device) -> Self {
        match self {
            Self::Vector(vector) => Self::Vector(carried(vector, device)),
            Self::Matrix(matrix) => Self::Matrix(carried(matrix, device)),
        }
    }

    /// Whether weight decay applies.
    pub(crate) fn decays(&self) -> bool {
        matches!(self, Self::Matrix(_))
    }

    pub(crate) fn into_vector(self) -> Tensor<B, 1> {
        match self {
            Self::Vector(vector) => vector,
            Self::Matrix(matrix) => matrix.flatten(0, 1),
        }
    }

    pub(crate) fn into_matrix(self) -> Tensor<B, 2> {
        match self {
            Self::Vector(vector) => vector.unsqueeze_dim(0),
            Self::Matrix(matrix) => matrix,
        }
    }
}

impl<A: AutodiffBackend> Parameter<A> {
    /// The gradient of a loss by it, zero where the loss does not depend on it.
    pub(crate) fn gradient(&self, gradients: &A::Gradients) -> Tensor<A::InnerBackend, 2> {
        self.found_gradient(gradients).unwrap_or_else(|| self.zeros())
    }

    /// The gradient of a loss by it, if the loss depends on it.
    pub(crate) fn found_gradient(&self, gradients: &A::Gradients) -> Option<Tensor<A::InnerBackend, 2>> {
        match self {
            Self::Vector(vector) => Some(vector.grad(gradients)?.unsqueeze_dim(0)),
            Self::Matrix(matrix) => matrix.grad(gradients),
        }
    }

    /// A gradient by it that is zero.
    pub(crate) fn zeros(&self) -> Tensor<A::InnerBackend, 2> {
        match self {
            Self::Vector(vector) => vector.clone().inner().zeros_like().unsqueeze_dim(0),
            Self::Matrix(matrix) => matrix.clone().inner().zeros_like(),
        }
    }
}

impl<B: PolicyBackend> Parameters<B> for Adapter<B> {
    fn parameters(&self) -> Vec<Parameter<B>> {
        self.matrices().cloned().map(Parameter::Matrix).collect()
    }

    fn names(&self) -> Vec<String> {
        self.matrix_names()
    }

    fn with(&self, parameters: impl IntoIterator<Item = Parameter<B>>) -> Self {
        let mut parameters = parameters.into_iter();
        self.map(|_| {
            let next = parameters.next();
            next.expect("one for each matrix").into_matrix()
        })
    }
}
