//! The exact binomial test and the bounds of Clopper and Pearson (1934).

/// Halvings after which a bound has all digits that a number has.
const HALVINGS: usize = 60;

/// P(X ≤ events) of so many independent trials that happen with a probability in [0, 1].
pub(super) fn at_most(events: usize, trials: usize, probability: f64) -> f64 {
    if events >= trials || probability <= 0.0 {
        return 1.0;
    }
    if probability >= 1.0 {
        return 0.0;
    }
    // The shorter tail: what is left of the other would lose its digits.
    if events > trials / 2 {
        return 1.0 - at_most(trials - events - 1, trials, 1.0 - probability);
    }
    let (happens, not) = (libm::log(probability), libm::log1p(-probability));
    let factorial = |number: usize| libm::lgamma(number as f64 + 1.0);
    let term = |events: usize| {
        let ways = factorial(trials) - factorial(events) - factorial(trials - events);
        libm::exp(ways + events as f64 * happens + (trials - events) as f64 * not)
    };
    (0..=events).map(term).sum::<f64>().min(1.0)
}

/// The upper bound at level `alpha`: the probability under which so few events have that probability.
pub(super) fn upper_bound(events: usize, trials: usize, alpha: f64) -> f64 {
    if events >= trials {
        return 1.0;
    }
    let (mut low, mut high) = (events as f64 / trials as f64, 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if at_most(events, trials, middle) > alpha {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The most events of so many trials that show a probability of at most `threshold`; `None` where not even none does.
pub(super) fn most_certified(trials: usize, threshold: f64, alpha: f64) -> Option<usize> {
    if threshold >= 1.0 {
        return Some(trials);
    }
    // So many fail at least, and this many do not.
    let (mut fewest, mut most) = (0, trials);
    while fewest < most {
        let middle = usize::midpoint(fewest, most);
        if at_most(middle, trials, threshold) > alpha {
            most = middle;
        } else {
            fewest = middle + 1;
        }
    }
    fewest.checked_sub(1)
}

/// The fewest trials that show it if events keep coming at this rate; `None` where the rate is too high, or more than
/// `most` are needed.
pub(super) fn fewest_trials(rate: f64, threshold: f64, alpha: f64, most: usize) -> Option<usize> {
    if rate >= threshold {
        return None;
    }
    let shows = |trials: usize| at_most((rate * trials as f64).ceil() as usize, trials, threshold) <= alpha;
    super::fewest(most, shows)
}
