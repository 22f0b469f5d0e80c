//! Keys and values written into their store.

use burn_flex::{Flex, FlexTensor};
use burn_tensor::{DType, Element, Tensor, TensorPrimitive, bf16, f16};

/// Writes in place when the store is the only handle to its memory.
pub(super) fn write_columns(
    store: Tensor<Flex, 4>,
    values: Tensor<Flex, 4>,
    start: usize,
) -> Tensor<Flex, 4> {
    let mut store = store.into_primitive().tensor();
    let values = values.into_primitive().tensor();
    let strides = values.layout().strides();
    let is_by_rows = strides[3] == 1 && strides.iter().all(|stride| *stride >= 0);
    let values = if is_by_rows {
        values
    } else {
        values.to_contiguous()
    };
    let is_whole = store.is_contiguous() && store.layout().start_offset() == 0;
    let is_written = is_whole
        && store.dtype() == values.dtype()
        && match store.dtype() {
            DType::F32 => copy::<f32>(&mut store, &values, start),
            DType::F16 => copy::<f16>(&mut store, &values, start),
            DType::BF16 => copy::<bf16>(&mut store, &values, start),
            _ => false,
        };
    let store = Tensor::from_primitive(TensorPrimitive::Float(store));
    if is_written {
        return store;
    }
    let values = Tensor::<Flex, 4>::from_primitive(TensorPrimitive::Float(values));
    let [rows, heads, columns, width] = values.dims();
    store.slice_assign([0..rows, 0..heads, start..start + columns, 0..width], values)
}

/// Copies every row and head; false when the store is shared.
fn copy<T: Element + bytemuck::Pod>(store: &mut FlexTensor, values: &FlexTensor, start: usize) -> bool {
    let layout = values.layout();
    let shape = layout.shape();
    let [rows, heads, columns, width] = std::array::from_fn(|index| shape[index]);
    let strides = layout.strides();
    let stride = |index: usize| strides[index] as usize;
    let places = store.layout().shape();
    let capacity = places[2];
    assert!(
        [places[0], places[1], places[3]] == [rows, heads, width] && start + columns <= capacity,
        "{columns} columns of {rows} rows, {heads} heads and width {width} do not fit {places:?} from {start} on"
    );
    let Some(store) = store.try_storage_mut::<T>() else {
        return false;
    };
    let values = &values.storage::<T>()[layout.start_offset()..];
    for row in 0..rows {
        for head in 0..heads {
            let from = row * stride(0) + head * stride(1);
            let to = ((row * heads + head) * capacity + start) * width;
            for column in 0..columns {
                let source = &values[from + column * stride(2)..][..width];
                store[to + column * width..][..width].copy_from_slice(source);
            }
        }
    }
    true
}
