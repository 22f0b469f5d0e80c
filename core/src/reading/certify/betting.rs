//! A test martingale of a bounded mean: the capital of someone who bets that it is at most a threshold, none of which can
//! be expected to grow while it is not (Waudby-Smith and Ramdas 2024, the one-sided process with predictable plug-in bets
//! for a sample size stated beforehand). By Ville's inequality it ever reaches 1/α with a probability of at most α,
//! whenever one looks.

/// Halvings after which a bound has all digits that a number has.
const HALVINGS: usize = 60;

/// The largest share of the capital that one example can cost.
const STAKE: f64 = 0.75;

/// The bets before their cap by the mean tested, one for each value in [0, 1], each from those before it.
pub(super) fn bets(values: &[f64], reserve: usize, alpha: f64) -> Vec<f64> {
    let (mut sum, mut squares) = (0.5, 0.25);
    let mut bets = Vec::with_capacity(values.len());
    for (count, value) in (1..).zip(values) {
        let variance = squares / f64::from(count);
        bets.push(plain_bet(variance, reserve, alpha));
        sum += value;
        squares += (value - sum / f64::from(count + 1)).powi(2);
    }
    bets
}

fn plain_bet(variance: f64, reserve: usize, alpha: f64) -> f64 {
    (-2.0 * libm::log(alpha) / (reserve as f64 * variance)).sqrt()
}

/// The logarithm of the factor by which the capital grows with a value, when the mean tested is `mean` < 1.
fn growth(bet: f64, value: f64, mean: f64) -> f64 {
    libm::log1p(bet.min(STAKE / (1.0 - mean)) * (mean - value))
}

/// The logarithm of the largest capital at the ends of blocks, against "the mean exceeds `mean`". Rises with `mean`.
pub(super) fn log_capital(values: &[f64], bets: &[f64], mean: f64, block: usize) -> f64 {
    if mean >= 1.0 {
        return f64::INFINITY;
    }
    let (mut capital, mut largest) = (0.0, 0.0_f64);
    for (count, (value, bet)) in (1..).zip(values.iter().zip(bets)) {
        capital += growth(*bet, *value, mean);
        if count % block == 0 || count == values.len() {
            largest = largest.max(capital);
        }
    }
    largest
}

/// The smallest mean that is not to be believed any more at level `alpha`: an upper confidence bound.
pub(super) fn upper_bound(values: &[f64], bets: &[f64], block: usize, alpha: f64) -> f64 {
    let needed = -libm::log(alpha);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if log_capital(values, bets, middle, block) >= needed {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// The fewest examples that show a mean of at most `mean` if values keep coming as these did; `None` where they do not,
/// or more than `most` are needed.
pub(super) fn fewest_examples(values: &[f64], mean: f64, alpha: f64, most: usize) -> Option<usize> {
    let count = values.len().max(1) as f64;
    let average = values.iter().sum::<f64>() / count;
    let variance = (0.25 + values.iter().map(|value| (value - average).powi(2)).sum::<f64>()) / (count + 1.0);
    let shows = |examples: usize| {
        let bet = plain_bet(variance, examples, alpha);
        let each = values.iter().map(|value| growth(bet, *value, mean)).sum::<f64>() / count;
        each * examples as f64 >= -libm::log(alpha)
    };
    (average < mean).then(|| super::fewest(most, shows)).flatten()
}
