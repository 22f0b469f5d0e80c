//! The next token of each row, drawn where the logits are.

use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{CubeRuntime, cubecl};
use burn_tensor::DType;

use super::{UNITS, dims, empty, largest, total};

/// Numbers that a draw is told by: the token, its log-probability, and 1 if every logit is finite.
pub(super) const FIELDS: usize = 3;
/// Tokens beyond have no number of 32 bits.
pub(super) const LARGEST_VOCABULARY: usize = 1 << f32::MANTISSA_DIGITS;

/// A cube for each row, whose units have as many tokens in a row each.
#[cube(launch, address_type = "dynamic")]
fn draw_kernel<F: Float>(
    logits: &Tensor<F>,
    uniforms: &Tensor<f32>,
    output: &mut Tensor<f32>,
    temperature: f32,
    #[comptime] is_greedy: bool,
    #[comptime] units: usize,
    #[define(F)] _number_type: StorageType,
) {
    let row = CUBE_POS;
    let width = logits.shape(1);
    if row >= logits.shape(0) {
        terminate!();
    }
    let unit = UNIT_POS as usize;
    let start = row * width;
    let each = width.div_ceil(units);
    let first = min(unit * each, width);
    let end = min(first + each, width);
    let mut shared = SharedMemory::<f32>::new(units);
    let mut found = SharedMemory::<f32>::new(1usize);

    let mut most = f32::cast_from(logits[start]);
    let mut unbounded = 0.0f32;
    for index in first..end {
        let logit = f32::cast_from(logits[start + index]);
        most = max(most, logit);
        if logit.is_nan() || logit.is_inf() {
            unbounded = 1.0f32;
        }
    }
    let most = largest(most, &mut shared);
    let unbounded = largest(unbounded, &mut shared);

    let mut mass = 0.0f32;
    let mut best = width;
    for index in first..end {
        let logit = f32::cast_from(logits[start + index]);
        mass += ((logit - most) / temperature).exp();
        if logit == most && best == width {
            best = index;
        }
    }
    let masses = total(mass, &mut shared);

    if is_greedy {
        // The first of equals is the largest of what is left behind it.
        let behind = largest(f32::cast_from(width - best), &mut shared);
        if unit == 0 {
            found[0] = f32::cast_from(width) - behind;
        }
    } else {
        shared[unit] = mass;
        sync_cube();
        if unit == 0 {
            // The units' masses in turn, then the tokens' of the unit where the row's number falls. What is left of the
            // number gets smaller, so that small masses behind a large one are not lost. Where rounding leaves more
            // than all masses, it is the likeliest token.
            let mut rest = uniforms[row] * masses;
            let mut owner = 0;
            let mut is_owned = false;
            let mut heaviest = 0;
            for index in 0..units {
                let mass = shared[index];
                if mass > shared[heaviest] {
                    heaviest = index;
                }
                if !is_owned {
                    if rest < mass {
                        owner = index;
                        is_owned = true;
                    } else {
                        rest -= mass;
                    }
                }
            }
            if !is_owned {
                owner = heaviest;
            }
            let mut token = 0;
            let mut is_drawn = false;
            let mut likeliest = 0;
            let mut highest = 0.0f32;
            for index in min(owner * each, width)..min(owner * each + each, width) {
                let weight = ((f32::cast_from(logits[start + index]) - most) / temperature).exp();
                if weight > highest {
                    highest = weight;
                    likeliest = index;
                }
                if is_owned && !is_drawn {
                    if rest < weight {
                        token = index;
                        is_drawn = true;
                    } else {
                        rest -= weight;
                    }
                }
            }
            if !is_drawn {
                token = likeliest;
            }
            found[0] = f32::cast_from(token);
        }
    }
    sync_cube();
    if unit == 0 {
        let token = usize::cast_from(found[0]);
        let below = f32::cast_from(logits[start + min(token, width - 1)]) - most;
        output[row * FIELDS] = found[0];
        output[row * FIELDS + 1] = below / temperature - masses.ln();
        output[row * FIELDS + 2] = 1.0f32 - unbounded;
    }
}

/// `[rows, FIELDS]` from packed logits, `[rows, vocabulary]`, and `[rows]` uniform numbers; the best token, with its
/// log-probability at temperature 1, for temperature 0.
pub(super) fn draw<R: CubeRuntime>(
    logits: &CubeTensor<R>,
    uniforms: &CubeTensor<R>,
    temperature: f32,
) -> CubeTensor<R> {
    let [rows, _] = dims(logits);
    let output = empty(logits, &[rows, FIELDS], DType::F32);
    let is_greedy = temperature == 0.0;
    launch!(
        draw_kernel,
        rows,
        UNITS,
        [logits, uniforms, output],
        if is_greedy { 1.0 } else { temperature },
        is_greedy,
        UNITS,
        logits.dtype.into(),
    );
    output
}
