//! Products of small matrices.

use pulp::{Simd, WithSimd};

use super::vector::on_vectors;

/// A matrix whose elements lie `row` numbers apart from row to row and `column` from column to column.
#[derive(Clone, Copy)]
pub(super) struct Strided<'a> {
    pub(super) numbers: &'a [f32],
    pub(super) row: usize,
    pub(super) column: usize,
}

/// A matrix whose rows are without gaps, `stride` numbers apart.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) numbers: &'a [f32],
    pub(super) stride: usize,
}

/// A [`Rows`] to write.
pub(super) struct RowsMut<'a> {
    pub(super) numbers: &'a mut [f32],
    pub(super) stride: usize,
}

/// What happens to the numbers that are there before a product.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Before {
    Replaced,
    Added,
}

/// `left`, `[rows, inner]`, times `right`, `[inner, columns]`, into `product`, `[rows, columns]`.
pub(super) struct Multiply<'a> {
    pub(super) left: Strided<'a>,
    pub(super) right: Rows<'a>,
    pub(super) product: RowsMut<'a>,
    pub(super) rows: usize,
    pub(super) inner: usize,
    pub(super) columns: usize,
    pub(super) before: Before,
}

impl Multiply<'_> {
    pub(super) fn run(self) {
        on_vectors(self);
    }

    /// Rows of the product from `row` on, `R` of them.
    #[inline(always)]
    fn rows<S: Simd, const R: usize>(&mut self, simd: S, row: usize) {
        let lanes = S::F32_LANES;
        let mut column = 0;
        if S::REGISTER_COUNT >= 32 {
            while column + 4 * lanes <= self.columns {
                self.tile::<S, R, 4>(simd, row, column);
                column += 4 * lanes;
            }
        }
        while column + 2 * lanes <= self.columns {
            self.tile::<S, R, 2>(simd, row, column);
            column += 2 * lanes;
        }
        while column < self.columns {
            self.edge::<S, R>(simd, row, column, lanes.min(self.columns - column));
            column += lanes;
        }
    }

    /// `R` rows by `V` vectors of the product, all in registers.
    #[inline(always)]
    fn tile<S: Simd, const R: usize, const V: usize>(&mut self, simd: S, row: usize, column: usize) {
        let width = V * S::F32_LANES;
        let left = &self.left.numbers[row * self.left.row..];
        let mut sums = [[simd.splat_f32s(0.0); V]; R];
        for inner in 0..self.inner {
            let right = &self.right.numbers[inner * self.right.stride + column..][..width];
            let right = &S::as_simd_f32s(right).0[..V];
            for (index, sums) in sums.iter_mut().enumerate() {
                let factor = simd.splat_f32s(left[index * self.left.row + inner * self.left.column]);
                for (sum, right) in sums.iter_mut().zip(right) {
                    *sum = simd.mul_add_e_f32s(factor, *right, *sum);
                }
            }
        }
        for (index, sums) in sums.into_iter().enumerate() {
            let product = &mut self.product.numbers[(row + index) * self.product.stride + column..][..width];
            for (product, sum) in S::as_mut_simd_f32s(product).0.iter_mut().zip(sums) {
                *product = match self.before {
                    Before::Replaced => sum,
                    Before::Added => simd.add_f32s(*product, sum),
                };
            }
        }
    }

    /// `R` rows by a vector that may be cut short.
    #[inline(always)]
    fn edge<S: Simd, const R: usize>(&mut self, simd: S, row: usize, column: usize, width: usize) {
        let left = &self.left.numbers[row * self.left.row..];
        let mut sums = [simd.splat_f32s(0.0); R];
        for inner in 0..self.inner {
            let right = &self.right.numbers[inner * self.right.stride + column..][..width];
            let right = simd.partial_load_f32s(right);
            for (index, sum) in sums.iter_mut().enumerate() {
                let factor = simd.splat_f32s(left[index * self.left.row + inner * self.left.column]);
                *sum = simd.mul_add_e_f32s(factor, right, *sum);
            }
        }
        for (index, sum) in sums.into_iter().enumerate() {
            let product = &mut self.product.numbers[(row + index) * self.product.stride + column..][..width];
            let sum = match self.before {
                Before::Replaced => sum,
                Before::Added => simd.add_f32s(simd.partial_load_f32s(product), sum),
            };
            simd.partial_store_f32s(product, sum);
        }
    }
}

impl WithSimd for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let mut row = 0;
        while row + 4 <= self.rows {
            self.rows::<S, 4>(simd, row);
            row += 4;
        }
        while row < self.rows {
            self.rows::<S, 1>(simd, row);
            row += 1;
        }
    }
}
