//! Bootstrap and sign tests: what can be said about the difference of two prompts on the same examples, and about means.

use rand::RngExt;
use rand_chacha::ChaCha12Rng;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// Resamples of a bootstrap; enough that the ends of a 95 % interval move by a few hundredths of
/// its width from one stream to another.
pub const RESAMPLES: usize = 4000;

/// Of fewer differences than this that are not zero, every choice of their signs is counted; of more,
/// choices are drawn.
const COUNTED: usize = 20;

/// A mean difference over examples with its percentile interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PairedDifference {
    /// Mean of the differences.
    pub mean: f64,
    /// Where the mean would lie with other examples; `None` of one example, which says nothing
    /// about others. Written as `low` and `high`, null without it.
    #[serde(flatten, serialize_with = "ends")]
    pub interval: Option<Interval>,
    /// Number of examples.
    pub n: usize,
    /// How probable so great a mean difference, of either sign, is between equals: the paired
    /// permutation test (Fisher 1935), in which every difference is as likely to have the other
    /// sign; exact where fewer than twenty examples differ. In (0, 1].
    pub chance: f64,
    /// The confidence that the interval was asked for, in (0, 1).
    #[serde(skip)]
    pub confidence: f64,
}

/// Writes an interval as its ends.
#[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
fn ends<S: Serializer>(interval: &Option<Interval>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut ends = serializer.serialize_map(Some(2))?;
    ends.serialize_entry("low", &interval.map(|interval| interval.low))?;
    ends.serialize_entry("high", &interval.map(|interval| interval.high))?;
    ends.end()
}

/// The two ends of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The lower one.
    pub low: f64,
    /// The upper one.
    pub high: f64,
}

impl PairedDifference {
    /// Whether the two differ by more than chance: the interval leaves zero out, and the permutation
    /// test says so too, which takes at least [`fewest_examples`].
    ///
    /// The test has a word because the interval of a bootstrap is too narrow where few examples differ:
    /// of six differences between equals it leaves zero out in 12 of 100 cases instead of 5, of ten or forty in 8.
    pub fn is_clear(&self) -> bool {
        let leaves_zero_out = |interval: Interval| interval.low > 0.0 || interval.high < 0.0;
        // 1 − confidence is no round number in binary.
        let is_rare = |chance: f64| chance <= 1.0 - self.confidence + 1e-9;
        is_rare(self.chance) && self.interval.is_some_and(leaves_zero_out)
    }
}

/// The fewest examples whose differences can tell two prompts apart with this confidence, in
/// (0, 1): six for 95 %.
///
/// Between equals, n differences all have one sign by chance in 2 of 2ⁿ cases, and no result of the
/// exact test is rarer. So there must be so many that 2¹⁻ⁿ is at most 1 − confidence.
pub fn fewest_examples(confidence: f64) -> usize {
    1 + (-(1.0 - confidence).log2()).ceil().max(0.0) as usize
}

/// `first − second` by example, with the percentile bootstrap interval (Efron 1979) of the mean.
///
/// The examples are what is resampled: a value is one example's mean over its rollouts, so that
/// repeats of one example never pass for independent evidence. `confidence` lies in (0, 1). Of
/// fewer than two examples nothing can be resampled, and there is no interval.
///
/// `None` without examples, or when the two do not have equally many.
///
/// ```
/// use capo_core::random::Streams;
/// use capo_core::statistics::{RESAMPLES, paired_difference};
///
/// let (before, after) = ([0.0, 0.0, 1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0, 0.0, 1.0]);
/// let mut stream = Streams::new(0).stream("compare", 0, 0);
/// let gain = paired_difference(&after, &before, 0.95, RESAMPLES, &mut stream).unwrap();
/// assert_eq!((gain.mean, gain.n), (0.5, 6));
/// let interval = gain.interval.unwrap();
/// assert!(interval.low <= 0.5 && 0.5 <= interval.high);
/// ```
pub fn paired_difference(
    first: &[f64],
    second: &[f64],
    confidence: f64,
    resamples: usize,
    stream: &mut ChaCha12Rng,
) -> Option<PairedDifference> {
    let n = first.len();
    if n == 0 || second.len() != n {
        return None;
    }
    let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - b).collect();
    let mean = mean_of(differences.iter().copied(), n);
    let mut resampled = || mean_of((0..n).map(|_| differences[stream.random_range(0..n)]), n);
    let interval = (n > 1).then(|| percentile_interval(resamples, confidence, &mut resampled));
    Some(PairedDifference {
        mean,
        interval,
        n,
        chance: chance_between_equals(&differences, resamples, stream),
        confidence,
    })
}

/// See [`PairedDifference::chance`]: the share of all 2ᵐ choices of signs of the m differences that
/// are not zero whose sum is as far from zero as the one found; of many, the share of the one found and
/// `resamples` drawn ones (Phipson and Smyth 2010).
fn chance_between_equals(differences: &[f64], resamples: usize, stream: &mut ChaCha12Rng) -> f64 {
    let sizes: Vec<f64> = differences
        .iter()
        .map(|difference| difference.abs())
        .filter(|size| *size > 0.0)
        .collect();
    let total: f64 = sizes.iter().sum();
    // The same sum in another order may differ in its last digits.
    let found = differences.iter().sum::<f64>().abs() - 1e-9 * total;
    if sizes.len() >= COUNTED {
        let mut drawn = || -> f64 {
            sizes
                .iter()
                .map(|size| if stream.random() { *size } else { -size })
                .sum()
        };
        let as_far = (0..resamples).filter(|_| drawn().abs() >= found).count();
        return (1 + as_far) as f64 / (1 + resamples) as f64;
    }
    let all = 1_u32 << sizes.len();
    let mut sum = total;
    let mut as_far = u32::from(sum.abs() >= found);
    // One sign changes from each choice to the next (a Gray code).
    for choice in 1..all {
        let turned = choice.trailing_zeros() as usize;
        let is_negative = ((choice ^ (choice >> 1)) >> turned) & 1 == 1;
        sum += if is_negative { -2.0 } else { 2.0 } * sizes[turned];
        as_far += u32::from(sum.abs() >= found);
    }
    f64::from(as_far) / f64::from(all)
}

/// The mean of values that come in clusters, with the percentile interval of a bootstrap over clusters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClusteredMean {
    /// Mean of the values, each of which counts the same.
    pub mean: f64,
    /// Where the mean would lie with other clusters; `None` of one cluster, which says nothing about others.
    /// Written as `low` and `high`, null without it.
    #[serde(flatten, serialize_with = "ends")]
    pub interval: Option<Interval>,
    /// Number of values.
    pub n: usize,
    /// Number of clusters.
    pub clusters: usize,
}

/// The mean of all values with the percentile bootstrap interval (Efron 1979) that resamples whole clusters
/// (Field and Welsh 2007): values of one cluster may depend on each other, and never pass for independent evidence.
///
/// `confidence` lies in (0, 1). Clusters without values are left out; `None` when none is left.
///
/// ```
/// use capo_core::random::Streams;
/// use capo_core::statistics::{RESAMPLES, clustered_mean};
///
/// let mut stream = Streams::new(0).stream("gains", 0, 0);
/// let found = clustered_mean(&[vec![1.0, 1.0, 1.0], vec![5.0]], 0.95, RESAMPLES, &mut stream).unwrap();
/// assert_eq!((found.mean, found.n, found.clusters), (2.0, 4, 2));
/// let interval = found.interval.unwrap();
/// assert_eq!((interval.low, interval.high), (1.0, 5.0));
/// ```
pub fn clustered_mean(
    clusters: &[Vec<f64>],
    confidence: f64,
    resamples: usize,
    stream: &mut ChaCha12Rng,
) -> Option<ClusteredMean> {
    let sums: Vec<(f64, usize)> = clusters
        .iter()
        .filter(|values| !values.is_empty())
        .map(|values| (values.iter().sum(), values.len()))
        .collect();
    let mean_over = |drawn: &mut dyn Iterator<Item = usize>| {
        let (sum, n) = drawn.fold((0.0, 0), |(sum, n), index| {
            (sum + sums[index].0, n + sums[index].1)
        });
        (sum / n as f64, n)
    };
    let count = sums.len();
    if count == 0 {
        return None;
    }
    let (mean, n) = mean_over(&mut (0..count));
    let mut resampled = || mean_over(&mut (0..count).map(|_| stream.random_range(0..count))).0;
    Some(ClusteredMean {
        mean,
        interval: (count > 1).then(|| percentile_interval(resamples, confidence, &mut resampled)),
        n,
        clusters: count,
    })
}

/// The ends between which the middle of so many resampled means lies.
fn percentile_interval(resamples: usize, confidence: f64, resampled: &mut dyn FnMut() -> f64) -> Interval {
    let mut means: Vec<f64> = (0..resamples.max(1)).map(|_| resampled()).collect();
    means.sort_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    Interval {
        low: quantile(&means, tail),
        high: quantile(&means, 1.0 - tail),
    }
}

fn mean_of(values: impl Iterator<Item = f64>, n: usize) -> f64 {
    values.sum::<f64>() / n as f64
}

/// The quantile of sorted values by linear interpolation between order statistics (type 7 of
/// Hyndman and Fan 1996); `values` is not empty.
fn quantile(values: &[f64], probability: f64) -> f64 {
    let position = probability.clamp(0.0, 1.0) * (values.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(values.len() - 1);
    let share = position - below as f64;
    values[below] + share * (values[above] - values[below])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::{Streams, normal};

    fn stream(index: u64) -> ChaCha12Rng {
        Streams::new(0).stream("test of the bootstrap", 0, index)
    }

    fn difference(first: &[f64], second: &[f64]) -> PairedDifference {
        paired_difference(first, second, 0.95, 200, &mut stream(0)).unwrap()
    }

    #[test]
    fn quantiles_interpolate() {
        let values = [1.0, 2.0, 4.0];
        for (probability, expected) in [(0.0, 1.0), (0.25, 1.5), (0.5, 2.0), (0.75, 3.0), (1.0, 4.0)] {
            assert_eq!(quantile(&values, probability), expected);
        }
    }

    #[test]
    fn nothing_to_compare_is_no_difference_of_zero() {
        assert_eq!(paired_difference(&[], &[], 0.95, 100, &mut stream(0)), None);
        assert_eq!(
            paired_difference(&[1.0], &[1.0, 2.0], 0.95, 100, &mut stream(0)),
            None
        );
    }

    #[test]
    fn a_constant_difference_is_certain() {
        let found = difference(&[1.5, 2.5, 0.5], &[1.0, 2.0, 0.0]);
        assert_eq!((found.mean, found.n), (0.5, 3));
        assert_eq!(found.interval, Some(Interval { low: 0.5, high: 0.5 }));
    }

    #[test]
    fn one_example_has_no_interval() {
        let found = difference(&[1.0], &[0.0]);
        assert_eq!((found.mean, found.interval, found.n), (1.0, None, 1));
        let written = serde_json::to_value(found).unwrap();
        assert_eq!(
            written,
            serde_json::json!({ "mean": 1.0, "low": null, "high": null, "n": 1, "chance": 1.0 })
        );
    }

    #[test]
    fn the_exact_test_counts_choices_of_signs() {
        for (differences, expected) in [
            (&[][..], 1.0),
            (&[0.0, 0.0], 1.0),
            (&[3.0], 1.0),
            (&[1.0; 4], 2.0 / 16.0),
            // Of 1 + 2 + 3 = 6, only +++ and −−− reach it; of 1 + 2 − 3 = 0 all do.
            (&[1.0, 2.0, 3.0, 0.0], 0.25),
            (&[1.0, 2.0, -3.0], 1.0),
            // −1 + 2 + 3 = 4: reached by ±6 and ±4.
            (&[-1.0, 2.0, 3.0], 0.5),
            (&[-0.1, 0.2, 0.3], 0.5),
            // Six wins of ten that differ: P(X ≥ 6 or X ≤ 4) of a binomial.
            (
                &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0],
                772.0 / 1024.0,
            ),
        ] {
            let found = chance_between_equals(differences, 0, &mut stream(0));
            assert!((found - expected).abs() < 1e-12, "{differences:?}: {found}");
        }
        let drawn = chance_between_equals(&[1.0; 20], RESAMPLES, &mut stream(0));
        assert_eq!(drawn, 1.0 / (1.0 + RESAMPLES as f64));
        let mut wins = [1.0; 30];
        wins[..10].fill(-1.0);
        // P(X ≥ 20 or X ≤ 10) of a binomial of 30.
        let drawn = chance_between_equals(&wins, RESAMPLES, &mut stream(0));
        assert!((drawn - 0.0987).abs() < 0.015, "{drawn}");
    }

    #[test]
    fn four_wins_and_no_loss_of_forty_are_not_clear() {
        let wins = |count: usize| (0..40).map(|index| f64::from(index < count)).collect::<Vec<_>>();
        assert!(!difference(&wins(4), &[0.0; 40]).is_clear());
        assert!(difference(&wins(6), &[0.0; 40]).is_clear());
        assert!(difference(&wins(25), &[0.0; 40]).is_clear());
    }

    /// How often two equal prompts are told apart, by the kind of their differences.
    fn false_stars(n: usize, draw: impl Fn(&mut ChaCha12Rng) -> f64) -> f64 {
        let trials = 1000;
        let clear = |trial| {
            let mut draws = Streams::new(2).stream("equals", n as u64, trial);
            let differences: Vec<f64> = (0..n).map(|_| draw(&mut draws)).collect();
            let found = paired_difference(&differences, &vec![0.0; n], 0.95, 200, &mut stream(trial));
            found.unwrap().is_clear()
        };
        (0..trials).filter(|&trial| clear(trial)).count() as f64 / trials as f64
    }

    #[test]
    fn equals_are_told_apart_about_as_seldom_as_the_confidence_says() {
        // Half of the pairs differ, as answers that are right or wrong do; or all of them do.
        let discordant = |draws: &mut ChaCha12Rng| [-1.0, 0.0, 0.0, 1.0][draws.random_range(0..4)];
        for n in [6, 10, 15, 40, 60] {
            for share in [false_stars(n, discordant), false_stars(n, normal)] {
                assert!(share <= 0.06, "{share} of {n}");
            }
        }
    }

    #[test]
    fn few_examples_are_never_clear_however_they_agree() {
        assert_eq!([0.5, 0.9, 0.95, 0.99].map(fewest_examples), [2, 5, 6, 8]);
        for n in 1..10 {
            let found = difference(&vec![1.0; n], &vec![0.0; n]);
            assert_eq!(found.is_clear(), n >= 6, "{n} examples");
        }
        assert!(!difference(&[1.0, -1.0, 1.0, -1.0, 1.0, -1.0], &[0.0; 6]).is_clear());
    }

    #[test]
    fn intervals_of_normal_samples_cover_the_truth_about_as_often_as_they_say() {
        let (truth, trials) = (0.3, 200);
        let covered = (0..trials)
            .filter(|&trial| {
                let mut draws = Streams::new(1).stream("sample", 0, trial);
                let first: Vec<f64> = (0..40).map(|_| truth + normal(&mut draws)).collect();
                let found = paired_difference(&first, &[0.0; 40], 0.9, 300, &mut stream(trial)).unwrap();
                let Interval { low, high } = found.interval.unwrap();
                (low..=high).contains(&truth)
            })
            .count();
        let coverage = covered as f64 / trials as f64;
        // 90 % ± four standard errors, the percentile interval being a little too narrow at 40.
        assert!((0.80..0.97).contains(&coverage), "{coverage}");
    }

    fn clustered(clusters: &[Vec<f64>], confidence: f64) -> ClusteredMean {
        clustered_mean(clusters, confidence, 300, &mut stream(5)).unwrap()
    }

    #[test]
    fn a_cluster_is_one_piece_of_evidence_however_many_values_it_has() {
        assert_eq!(clustered_mean(&[vec![]], 0.95, 100, &mut stream(0)), None);
        let one = clustered(&[vec![1.0, 2.0, 6.0], vec![]], 0.95);
        assert_eq!((one.mean, one.interval, one.n, one.clusters), (3.0, None, 3, 1));
        // Values of one each are what `paired_difference` resamples.
        let alone: Vec<f64> = (0..12).map(|index| f64::from(index % 5)).collect();
        let clusters: Vec<Vec<f64>> = alone.iter().map(|value| vec![*value]).collect();
        let found = clustered(&clusters, 0.9);
        let paired = paired_difference(&alone, &[0.0; 12], 0.9, 300, &mut stream(5)).unwrap();
        assert_eq!((found.mean, found.interval), (paired.mean, paired.interval));
        // The same values, four times each: no wider and no narrower.
        let repeated: Vec<Vec<f64>> = alone.iter().map(|value| vec![*value; 4]).collect();
        assert_eq!(clustered(&repeated, 0.9).interval, found.interval);
        assert_eq!(clustered(&repeated, 0.9).n, 48);
    }

    fn pairs() -> impl Strategy<Value = Vec<(f64, f64)>> {
        prop::collection::vec((-5.0..5.0, -5.0..5.0), 2..30)
    }

    fn interval(first: &[f64], second: &[f64]) -> Interval {
        difference(first, second).interval.unwrap()
    }

    proptest! {
        #[test]
        fn the_interval_lies_within_the_differences_and_is_ordered(pairs in pairs()) {
            let (first, second): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
            let found = difference(&first, &second);
            let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
            let least = differences.iter().copied().fold(f64::INFINITY, f64::min);
            let most = differences.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let Interval { low, high } = found.interval.unwrap();
            prop_assert!(low <= high);
            prop_assert!(least - 1e-9 <= low && high <= most + 1e-9);
            prop_assert!((found.mean - differences.iter().sum::<f64>() / differences.len() as f64).abs() < 1e-9);
        }

        #[test]
        fn swapping_the_two_turns_the_interval_round(pairs in pairs()) {
            let (first, second): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let (there, back) = (difference(&first, &second), difference(&second, &first));
            prop_assert!((there.mean + back.mean).abs() < 1e-9);
            let (there, back) = (there.interval.unwrap(), back.interval.unwrap());
            prop_assert!((there.low + back.high).abs() < 1e-9);
            prop_assert!((there.high + back.low).abs() < 1e-9);
        }

        #[test]
        fn a_shift_of_one_shifts_everything(pairs in pairs(), shift in -3.0..3.0_f64) {
            let (first, second): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let shifted: Vec<f64> = first.iter().map(|value| value + shift).collect();
            let (before, after) = (interval(&first, &second), interval(&shifted, &second));
            prop_assert!((after.low - before.low - shift).abs() < 1e-9);
            prop_assert!((after.high - before.high - shift).abs() < 1e-9);
        }

        #[test]
        fn more_confidence_is_a_wider_interval(pairs in pairs()) {
            let (first, second): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let at = |confidence| {
                let found = paired_difference(&first, &second, confidence, 200, &mut stream(3));
                found.and_then(|found| found.interval).unwrap()
            };
            prop_assert!(at(0.99).low <= at(0.8).low && at(0.8).high <= at(0.99).high);
        }
    }
}
