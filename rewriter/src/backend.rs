//! What the rewriter asks of a backend beyond burn's own operations.

use std::sync::{Mutex, PoisonError};

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_flex::Flex;
use burn_tensor::backend::Backend;
use burn_tensor::{DType, Distribution, FloatDType, Int, Tensor, TensorData, TensorPrimitive};

/// A backend on which policies run and learn.
///
/// Every operation has a body made of burn's; a backend overrides what it does better.
pub trait PolicyBackend: Backend {
    /// Writes `values`, `[rows, heads, columns, width]`, from column `start` on into `store`,
    /// `[rows, heads, capacity, width]`.
    ///
    /// The store should be the only handle to its memory, so that a backend can write in place.
    fn write_columns(store: Tensor<Self, 4>, values: Tensor<Self, 4>, start: usize) -> Tensor<Self, 4> {
        let [rows, heads, columns, width] = values.dims();
        store.slice_assign([0..rows, 0..heads, start..start + columns, 0..width], values)
    }

    /// 1 with probability `keep`, else 0, `shape` of them: a function of `seed` on one kind of device.
    fn keep_mask(
        shape: [usize; 2],
        keep: f64,
        seed: u64,
        number_type: DType,
        device: &Self::Device,
    ) -> Tensor<Self, 2> {
        // Drawn in 32 bits: backends do not draw in all types that they compute in.
        let mask: Tensor<Self, 2> = seeded::<Self, _>(seed, device, || {
            Tensor::random(shape, Distribution::Bernoulli(keep), (device, DType::F32))
        });
        mask.cast(FloatDType::from(number_type))
    }
}

/// What `draw` draws from a backend's global random numbers after `seed`.
pub(crate) fn seeded<B: Backend, T>(seed: u64, device: &B::Device, draw: impl FnOnce() -> T) -> T {
    // Nobody may draw between seeding and drawing.
    static DRAWS: Mutex<()> = Mutex::new(());
    let _turn = DRAWS.lock().unwrap_or_else(PoisonError::into_inner);
    B::seed(device, seed);
    draw()
}

impl<B: PolicyBackend, C: CheckpointStrategy> PolicyBackend for Autodiff<B, C> {}

/// Burn's GPU backends without fusion. They write to a slice in place where nobody shares the store.
#[cfg(feature = "cube")]
impl<R, F, I, T> PolicyBackend for burn_cubecl::CubeBackend<R, F, I, T>
where
    R: burn_cubecl::CubeRuntime,
    F: burn_cubecl::FloatElement,
    I: burn_cubecl::IntElement,
    T: burn_cubecl::BoolElement,
    Self: Backend,
{
}

impl PolicyBackend for Flex {
    /// In place: assignment to a slice copies the whole store.
    fn write_columns(store: Tensor<Self, 4>, values: Tensor<Self, 4>, start: usize) -> Tensor<Self, 4> {
        let [_, _, capacity, width] = store.dims();
        let [_, _, columns, _] = values.dims();
        let mut store = store.into_primitive().tensor();
        let values = values.into_primitive().tensor().to_contiguous();
        let is_whole = store.is_contiguous() && store.layout().start_offset() == 0;
        let block = Block {
            capacity: capacity * width,
            start: start * width,
            length: columns * width,
        };
        let is_written = is_whole
            && match store.dtype() {
                DType::F32 => block.copy(store.try_storage_mut::<f32>(), values.storage()),
                DType::F16 => block.copy(store.try_storage_mut::<burn_tensor::f16>(), values.storage()),
                DType::BF16 => block.copy(store.try_storage_mut::<burn_tensor::bf16>(), values.storage()),
                _ => false,
            };
        let store = Tensor::from_primitive(TensorPrimitive::Float(store));
        if is_written {
            return store;
        }
        let values = Tensor::<Self, 4>::from_primitive(TensorPrimitive::Float(values));
        let [rows, heads, ..] = values.dims();
        store.slice_assign([0..rows, 0..heads, start..start + columns, 0..width], values)
    }
}

/// Indices on a device.
pub(crate) fn index_tensor<B: Backend>(
    indices: impl IntoIterator<Item = usize>,
    device: &B::Device,
) -> Tensor<B, 1, Int> {
    let indices: Vec<_> = indices.into_iter().map(|index| index as u32).collect();
    let count = indices.len();
    Tensor::from_data(TensorData::new(indices, [count]), device)
}

/// Where the numbers of one row and head go, in numbers.
#[derive(Clone, Copy)]
struct Block {
    capacity: usize,
    start: usize,
    length: usize,
}

impl Block {
    /// Copies every row and head; false when the store is shared.
    fn copy<T: Copy>(self, store: Option<&mut [T]>, values: &[T]) -> bool {
        let Some(store) = store else { return false };
        for (store, values) in store
            .chunks_exact_mut(self.capacity)
            .zip(values.chunks_exact(self.length))
        {
            store[self.start..][..self.length].copy_from_slice(values);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use burn_flex::FlexDevice;

    use super::*;

    fn draw(shape: [usize; 4]) -> Tensor<Flex, 4> {
        Tensor::random(shape, Distribution::Default, &FlexDevice)
    }

    #[test]
    fn masks_are_those_of_their_seed_and_keep_their_share() {
        let mask = |seed| {
            let mask = Flex::keep_mask([200, 50], 0.9, seed, DType::F32, &FlexDevice);
            mask.into_data().into_vec::<f32>().expect("32-bit numbers")
        };
        assert_eq!(mask(3), mask(3));
        assert_ne!(mask(3), mask(4));
        let kept: f32 = mask(5).iter().sum();
        // 9000 expected, with a standard deviation of 30.
        assert!((8850.0..9150.0).contains(&kept), "{kept}");
        assert!(mask(5).iter().all(|number| *number == 0.0 || *number == 1.0));
    }

    #[test]
    fn columns_are_written_in_place_and_beside_another_handle() {
        let store = draw([2, 3, 7, 4]);
        // A view with other strides, as a projection's heads are.
        let values = draw([2, 2, 3, 4]).swap_dims(1, 2);
        let expected = store
            .clone()
            .slice_assign([0..2, 0..3, 4..6, 0..4], values.clone())
            .into_data();
        let copy = Tensor::from_data(store.to_data(), &FlexDevice);
        let alone = Flex::write_columns(copy, values.clone(), 4);
        alone.into_data().assert_eq(&expected, true);
        let before = store.to_data();
        let shared = Flex::write_columns(store.clone(), values, 4);
        shared.into_data().assert_eq(&expected, true);
        store.into_data().assert_eq(&before, true);
    }
}
