//! SIMD vectors: what the loops are made of. Each function is inlined into a loop that [`on_vectors`] compiled for the
//! processor's instructions.

use pulp::{Arch, WithSimd};

/// Sums that are kept side by side, so that they need no order.
pub(super) const LANES: usize = 16;

/// Runs `work`, compiled for the widest vectors that the processor has.
pub(super) fn on_vectors<W: WithSimd>(work: W) -> W::Output {
    Arch::new().dispatch(work)
}

/// eˣ within 2 units in the last place; 0 below −87.3, where it is no normal number, and not above e^88.
///
/// x = n ln 2 + r with |r| ≤ ln 2 / 2, and eʳ by a polynomial of Cephes' `expf`.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    /// 1.5 · 2²³: a float of this size has no places after the point.
    const ROUNDER: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    // A NaN fails both comparisons and stays.
    let capped = if x > 88.0 { 88.0 } else { x };
    let rounded = capped * std::f32::consts::LOG2_E + ROUNDER;
    let n = rounded - ROUNDER;
    let r = capped - n * LN_2_HIGH - n * LN_2_LOW;
    let mut sum = 1.987_569_1e-4;
    for coefficient in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        sum = sum * r + coefficient;
    }
    let fraction = sum * r * r + r + 1.0;
    let power = f32::from_bits((rounded.to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    if capped < -87.3 { 0.0 } else { fraction * power }
}

/// The logistic function.
#[inline(always)]
pub(super) fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Sum of what `term` makes of each number.
#[inline(always)]
pub(super) fn sum(numbers: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0; LANES];
    let chunks = numbers.chunks_exact(LANES);
    let rest: f32 = chunks.remainder().iter().map(|number| term(*number)).sum();
    for chunk in chunks {
        for (sum, number) in sums.iter_mut().zip(chunk) {
            *sum += term(*number);
        }
    }
    sums.iter().sum::<f32>() + rest
}

/// Sum of the products of two rows.
#[inline(always)]
pub(super) fn dot(one: &[f32], other: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    let (ones, others) = (one.chunks_exact(LANES), other.chunks_exact(LANES));
    let rest: f32 = ones
        .remainder()
        .iter()
        .zip(others.remainder())
        .map(|(one, other)| one * other)
        .sum();
    for (one, other) in ones.zip(others) {
        for ((sum, one), other) in sums.iter_mut().zip(one).zip(other) {
            *sum += one * other;
        }
    }
    sums.iter().sum::<f32>() + rest
}

/// The largest number, −∞ of none.
#[inline(always)]
pub(super) fn largest(numbers: &[f32]) -> f32 {
    let larger = |one: f32, other: f32| if other > one { other } else { one };
    let mut largest = [f32::NEG_INFINITY; LANES];
    let chunks = numbers.chunks_exact(LANES);
    let rest = chunks
        .remainder()
        .iter()
        .fold(f32::NEG_INFINITY, |one, other| larger(one, *other));
    for chunk in chunks {
        for (largest, number) in largest.iter_mut().zip(chunk) {
            *largest = larger(*largest, *number);
        }
    }
    largest.into_iter().fold(rest, larger)
}

/// Replaces each number by e^(number · scale − shift) and gives their sum.
#[inline(always)]
pub(super) fn exponentiate(numbers: &mut [f32], scale: f32, shift: f32) -> f32 {
    for number in &mut *numbers {
        *number = exp(*number * scale - shift);
    }
    sum(numbers, |number| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_exact_to_the_last_places_and_ends_at_zero() {
        for step in -8_730..=8_800 {
            let x = step as f32 / 100.0;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact) / exact;
            assert!(error.abs() < 3e-7, "exp({x}) is off by {error:e}");
        }
        for x in [-87.4, -1e4, -1e30, f32::NEG_INFINITY] {
            assert_eq!(exp(x), 0.0, "{x}");
        }
        assert_eq!(exp(f32::INFINITY), exp(88.0));
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn sums_and_maxima_are_of_all_numbers() {
        for count in [0, 1, 15, 16, 17, 50] {
            let numbers: Vec<f32> = (0..count).map(|index| index as f32 - 60.0).collect();
            assert_eq!(sum(&numbers, |number| number), numbers.iter().sum::<f32>());
            assert_eq!(
                dot(&numbers, &numbers),
                numbers.iter().map(|x| x * x).sum::<f32>()
            );
            assert_eq!(
                largest(&numbers),
                numbers.iter().copied().fold(f32::NEG_INFINITY, f32::max)
            );
        }
    }
}
