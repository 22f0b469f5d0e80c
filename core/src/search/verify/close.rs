//! Whether a number was written that recomputing gives.

/// Equal but for the last bits: a sum in another association may differ there. A number that was not
/// finite was written as null, and says nothing.
pub(super) fn close(computed: f64, written: f64) -> bool {
    written.is_nan() || (computed - written).abs() <= 1e-9 * computed.abs().max(written.abs()).max(1.0)
}
