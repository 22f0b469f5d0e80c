//! Drawing parents without replacement.

use rand_chacha::ChaCha12Rng;

use crate::random::gumbel;

/// Draws `count` distinct indices of `scores` with successive probabilities ∝ exp(γ·score) among
/// those not drawn yet (Prompt Pool Search), in the order drawn. Gumbel top-k is exact: adding an
/// independent Gumbel draw to each γ·score and keeping the largest has this very law, and cannot
/// overflow. All indices come back when `count` ≥ the number of scores.
///
/// ```
/// use capo_core::random::Streams;
/// use capo_core::sampling::without_replacement;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Streams;

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
