//! Named streams of randomness.
//!
//! Every draw comes from a stream named by (seed, purpose, round, index), so neither concurrency
//! nor the order of arrival can change a run, and adding a draw somewhere changes nothing
//! elsewhere. Logarithm and cosine are `libm`'s, not the platform's, whose last bits differ: a run
//! in the browser and a native one draw the same numbers.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;
use sha2::{Digest, Sha256};

/// The streams of one seed.
///
/// ```
/// use capo_core::random::Streams;
///
/// let streams = Streams::new(7);
/// assert_eq!(streams.number("rewrite", 2, 0), streams.number("rewrite", 2, 0));
/// assert_ne!(streams.number("rewrite", 2, 0), streams.number("rewrite", 2, 1));
/// assert_ne!(streams.number("rewrite", 2, 0), streams.number("critique", 2, 0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// The streams of a study's seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The stream for one purpose at one place.
    pub fn stream(self, purpose: &str, round: u64, index: u64) -> ChaCha12Rng {
        ChaCha12Rng::from_seed(self.key(purpose, round, index))
    }

    /// A 63-bit number for one purpose at one place (63 bits fit every provider's integer seed).
    pub fn number(self, purpose: &str, round: u64, index: u64) -> u64 {
        let key = self.key(purpose, round, index);
        key[..8]
            .iter()
            .fold(0, |number, &byte| number << 8 | u64::from(byte))
            >> 1
    }

    fn key(self, purpose: &str, round: u64, index: u64) -> [u8; 32] {
        let mut hash = Sha256::new();
        for number in [self.seed, round, index] {
            hash.update(number.to_le_bytes());
        }
        hash.update(purpose.as_bytes());
        hash.finalize().into()
    }
}

/// A standard Gumbel draw, −ln(−ln U).
pub fn gumbel(rng: &mut ChaCha12Rng) -> f64 {
    -libm::log(-libm::log(open_unit(rng)))
}

/// A standard normal draw (Box–Muller).
pub fn normal(rng: &mut ChaCha12Rng) -> f64 {
    let radius = (-2.0 * libm::log(open_unit(rng))).sqrt();
    radius * libm::cos(std::f64::consts::TAU * open_unit(rng))
}

/// Uniform on the open interval (0, 1).
fn open_unit(rng: &mut ChaCha12Rng) -> f64 {
    (rng.random::<f64>() + f64::EPSILON / 4.0).min(1.0 - f64::EPSILON / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_every_part_of_their_name_and_repeat() {
        let streams = Streams::new(7);
        let base = streams.number("parents", 1, 2);
        assert_eq!(base, streams.number("parents", 1, 2));
        for other in [
            Streams::new(8).number("parents", 1, 2),
            streams.number("batch", 1, 2),
            streams.number("parents", 2, 2),
            streams.number("parents", 1, 3),
        ] {
            assert_ne!(base, other);
        }
        assert!(base < 1 << 63);
    }

    #[test]
    fn normal_draws_have_mean_zero_and_variance_one() {
        let mut rng = Streams::new(0).stream("test", 0, 0);
        let draws: Vec<f64> = (0..20_000).map(|_| normal(&mut rng)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!(
            mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05,
            "{mean} {variance}"
        );
    }
}
