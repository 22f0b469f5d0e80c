//! The attention mask: which keys each query of a pass sees.

use std::ops::Range;
use std::sync::OnceLock;

use burn_tensor::backend::Backend;
use burn_tensor::{Bool, Tensor, TensorData};

/// Keys by query: those that are tokens, between two columns. `M` is a backend's boolean tensor, made when
/// it is first asked for.
#[derive(Debug)]
pub struct Visibility<M> {
    rows: usize,
    /// By row and query.
    spans: Vec<Range<usize>>,
    /// By row and key, false at padding.
    tokens: Vec<bool>,
    hidden: OnceLock<M>,
}

impl<M: Clone> Visibility<M> {
    /// `spans` by row and query, `tokens` by row and key, each row with as many.
    ///
    /// # Panics
    ///
    /// A span ends after the last key, or the lengths are not those of `rows` rows.
    pub fn new(rows: usize, spans: Vec<Range<usize>>, tokens: Vec<bool>) -> Self {
        assert!(
            spans.len().is_multiple_of(rows) && tokens.len().is_multiple_of(rows),
            "rows differ in length"
        );
        let keys = tokens.len() / rows;
        assert!(
            spans
                .iter()
                .all(|span| span.start <= span.end && span.end <= keys),
            "a span ends after the last key"
        );
        Self {
            rows,
            spans,
            tokens,
            hidden: OnceLock::new(),
        }
    }

    /// Number of queries in a row.
    pub fn queries(&self) -> usize {
        self.spans.len() / self.rows
    }

    /// Number of keys in a row.
    pub fn keys(&self) -> usize {
        self.tokens.len() / self.rows
    }

    /// Columns of the keys that a query may see, of which it sees the tokens.
    pub fn span(&self, row: usize, query: usize) -> Range<usize> {
        self.spans[row * self.queries() + query].clone()
    }

    /// The keys of a row, false at padding.
    pub fn tokens(&self, row: usize) -> &[bool] {
        &self.tokens[row * self.keys()..][..self.keys()]
    }

    /// `[rows, heads, queries, keys]`, true where hidden; nothing when every query sees every key. To be
    /// asked for with one number of heads.
    pub fn hidden<B: Backend<BoolTensorPrimitive = M>>(
        &self,
        heads: usize,
        device: &B::Device,
    ) -> Option<Tensor<B, 4, Bool>> {
        let keys = self.keys();
        let is_all = |span: &Range<usize>| *span == (0..keys);
        if self.spans.iter().all(is_all) && !self.tokens.contains(&false) {
            return None;
        }
        let mask = self.hidden.get_or_init(|| {
            let mut hidden = Vec::with_capacity(self.spans.len() * keys);
            for row in 0..self.rows {
                for query in 0..self.queries() {
                    let span = self.span(row, query);
                    let tokens = self.tokens(row).iter().enumerate();
                    hidden.extend(tokens.map(|(key, is_token)| !(*is_token && span.contains(&key))));
                }
            }
            let data = TensorData::new(hidden, [self.rows, 1, self.queries(), keys]);
            let mask = Tensor::<B, 4, Bool>::from_data(data, device);
            mask.repeat_dim(1, heads).into_primitive()
        });
        Some(Tensor::from_primitive(mask.clone()))
    }
}
