//! Named streams of randomness, and draws without replacement: parents, batches.
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

/// Draws `count` distinct indices of `scores` with successive probabilities ∝ exp(γ·score) among
/// those not drawn yet (Prompt Pool Search), in the order drawn. Gumbel top-k is exact: adding an
/// independent Gumbel draw to each γ·score and keeping the largest has this very law, and cannot
/// overflow. All indices come back when `count` ≥ the number of scores.
///
/// ```
/// use capo_core::random::{Streams, without_replacement};
///
/// let draw = |gamma| without_replacement(&[0.1, 0.9, 0.4], gamma, 2, &mut Streams::new(0).stream("parents", 3, 0));
/// // The stream names the draw: it comes out the same every time.
/// assert_eq!(draw(1.0), draw(1.0));
/// // A large γ leaves chance nothing to say.
/// assert_eq!(draw(1000.0), [1, 2]);
/// ```
pub fn without_replacement(scores: &[f64], gamma: f64, count: usize, rng: &mut ChaCha12Rng) -> Vec<usize> {
    let mut keys: Vec<(usize, f64)> = scores
        .iter()
        .enumerate()
        .map(|(index, score)| (index, gamma * score + gumbel(rng)))
        .collect();
    keys.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    keys.into_iter().take(count).map(|(index, _)| index).collect()
}

/// `count` distinct numbers below `total`, ascending, every subset equally likely.
pub fn subset(total: usize, count: usize, rng: &mut ChaCha12Rng) -> Vec<usize> {
    let mut chosen = without_replacement(&vec![0.0; total], 1.0, count, rng);
    chosen.sort_unstable();
    chosen
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

    /// Probability of drawing `first` then `second` under successive sampling.
    fn law(weights: &[f64], first: usize, second: usize) -> f64 {
        let total: f64 = weights.iter().sum();
        weights[first] / total * weights[second] / (total - weights[first])
    }

    #[test]
    fn pairs_follow_the_law_of_successive_sampling() {
        let scores = [0.1, 0.9, -0.4, 0.5];
        let gamma = 2.0;
        let weights: Vec<f64> = scores.iter().map(|score: &f64| (gamma * score).exp()).collect();
        let draws = 60_000;
        let mut counts = [[0_u32; 4]; 4];
        for index in 0..draws {
            let mut rng = Streams::new(3).stream("test", 0, index);
            let pair = without_replacement(&scores, gamma, 2, &mut rng);
            counts[pair[0]][pair[1]] += 1;
        }
        let mut chi_squared = 0.0;
        for (first, row) in counts.iter().enumerate() {
            for (second, count) in row.iter().enumerate().filter(|(second, _)| *second != first) {
                let expected = law(&weights, first, second) * draws as f64;
                chi_squared += (f64::from(*count) - expected).powi(2) / expected;
            }
        }
        // 11 degrees of freedom: 99.9 % of the law lies below 31.3.
        assert!(chi_squared < 31.3, "χ² = {chi_squared}");
    }

    #[test]
    fn draws_are_distinct_and_at_most_all() {
        let mut rng = Streams::new(0).stream("test", 0, 0);
        let mut all = without_replacement(&[1e300, -1e300, 0.0], 1.0, 9, &mut rng);
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
        assert_eq!(subset(5, 5, &mut rng), [0, 1, 2, 3, 4]);
        assert_eq!(subset(50, 7, &mut rng).len(), 7);
    }
}
