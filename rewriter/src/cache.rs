//! Keys and values of the tokens seen so far.

use burn_tensor::{DType, FloatDType, Tensor};

use crate::backend::{PolicyBackend, index_tensor};
use crate::config::ModelConfig;
use crate::error::RequestError;
use crate::tokens::Tokens;

/// Keys and values of every layer, in memory laid out once for all the columns to come.
#[derive(Debug)]
pub struct KvCache<B: PolicyBackend> {
    layers: Vec<LayerCache<B>>,
    rows: usize,
    capacity: usize,
    /// Tokens of each row, `[columns]` false at padding.
    real: Vec<Vec<bool>>,
    /// Positions of each row's tokens, `[columns]`.
    positions: Vec<Vec<u32>>,
}

/// `[rows, kv_heads, capacity, head_dim]` each; taken out while it is written, so that the backend
/// finds no second handle.
#[derive(Debug)]
struct LayerCache<B: PolicyBackend> {
    keys: Option<Tensor<B, 4>>,
    values: Option<Tensor<B, 4>>,
}

impl<B: PolicyBackend> KvCache<B> {
    /// An empty cache for `rows` rows of up to `capacity` columns. It takes
    /// 2 · layers · rows · kv_heads · capacity · head_dim numbers at once.
    ///
    /// # Errors
    ///
    /// [`RequestError::EmptyBatch`] without rows or columns, [`RequestError::CacheCapacity`] for more
    /// columns than the model has positions; nothing is allocated then.
    pub fn new(
        config: &ModelConfig,
        rows: usize,
        capacity: usize,
        number_type: FloatDType,
        device: &B::Device,
    ) -> Result<Self, RequestError> {
        if rows == 0 || capacity == 0 {
            return Err(RequestError::EmptyBatch);
        }
        if capacity > config.context {
            return Err(RequestError::CacheCapacity {
                capacity,
                context: config.context,
            });
        }
        let shape = [rows, config.kv_heads, capacity, config.head_dim];
        let store = || Some(Tensor::zeros(shape, (device, DType::from(number_type))));
        Ok(Self {
            layers: (0..config.layers())
                .map(|_| LayerCache {
                    keys: store(),
                    values: store(),
                })
                .collect(),
            rows,
            capacity,
            real: vec![Vec::with_capacity(capacity); rows],
            positions: vec![Vec::with_capacity(capacity); rows],
        })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns written so far.
    pub fn columns(&self) -> usize {
        self.real.first().map_or(0, Vec::len)
    }

    /// Columns that there is room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// # Errors
    ///
    /// [`RequestError::CacheShape`] when the tokens have other rows or too many columns.
    pub(crate) fn check_room(&self, tokens: &Tokens) -> Result<(), RequestError> {
        let room = [self.rows, self.capacity - self.columns()];
        if tokens.rows() == room[0] && tokens.columns() <= room[1] {
            return Ok(());
        }
        Err(RequestError::CacheShape {
            room,
            asked: [tokens.rows(), tokens.columns()],
        })
    }

    /// Notes the tokens whose keys and values come next.
    pub(crate) fn note(&mut self, tokens: &Tokens) {
        let columns = tokens.columns();
        for (row, (real, positions)) in self.real.iter_mut().zip(&mut self.positions).enumerate() {
            let cells = row * columns..(row + 1) * columns;
            real.extend_from_slice(&tokens.real()[cells.clone()]);
            positions.extend_from_slice(&tokens.positions()[cells]);
        }
    }

    /// The noted tokens of a row: whether each is real, and its position.
    pub(crate) fn row(&self, row: usize) -> (&[bool], &[u32]) {
        (&self.real[row], &self.positions[row])
    }

    /// Stores a layer's keys and values, `[rows, columns, kv_heads, head_dim]`, from column `start` on, and
    /// gives all of its columns.
    pub(crate) fn extend(
        &mut self,
        layer: usize,
        start: usize,
        keys: Tensor<B, 4>,
        values: Tensor<B, 4>,
    ) -> (Tensor<B, 4>, Tensor<B, 4>) {
        let store = &mut self.layers[layer];
        (
            write(&mut store.keys, keys, start),
            write(&mut store.values, values, start),
        )
    }

    /// Keeps the given rows, in that order; a row may be named several times or not at all.
    pub(crate) fn select_rows(&mut self, rows: &[usize]) {
        let Some(device) = self
            .layers
            .first()
            .and_then(|layer| layer.keys.as_ref())
            .map(Tensor::device)
        else {
            return;
        };
        let indices = index_tensor::<B>(rows.iter().copied(), &device);
        for LayerCache { keys, values } in &mut self.layers {
            for store in [keys, values] {
                *store = store.take().map(|store| store.select(0, indices.clone()));
            }
        }
        self.real = rows.iter().map(|row| self.real[*row].clone()).collect();
        self.positions = rows.iter().map(|row| self.positions[*row].clone()).collect();
        self.rows = rows.len();
    }
}

fn write<B: PolicyBackend>(
    store: &mut Option<Tensor<B, 4>>,
    columns: Tensor<B, 4>,
    start: usize,
) -> Tensor<B, 4> {
    let end = start + columns.dims()[1];
    let whole = store
        .take()
        .expect("a store is out of its place only while it is written");
    let whole = store.insert(B::write_columns(whole, columns.swap_dims(1, 2), start));
    B::first_columns(whole.clone(), end).swap_dims(1, 2)
}
