//! The searches of all contenders side by side.

use super::{Measured, Prompt, Searched, WHERE};

/// What is read of a search, by its name.
type Quantity<T> = (&'static str, fn(&Searched) -> Option<T>);

/// A table with a column for each contender. `results` has one for each of them, seed by seed.
pub(super) fn report(names: &[&str], results: &[Searched]) -> String {
    let seeds = results.len() / names.len();
    let of = |contender: usize| results.iter().skip(contender).step_by(names.len());
    let mut text = format!("{seeds} splits and seeds\n\n");
    let mut row = |label: &str, cell: &dyn Fn(usize) -> String| {
        let cells: Vec<String> = (0..names.len())
            .map(|contender| format!("{:>24}", cell(contender)))
            .collect();
        text.extend([format!("{label:<48}"), cells.concat(), "\n".to_owned()]);
    };
    row("", &|contender| names[contender].to_owned());
    let kinds: [Quantity<Prompt>; 2] = [
        ("best feasible", |searched| searched.best_feasible),
        ("handed over", |searched| Some(searched.returned)),
    ];
    for (kind, prompt) in kinds {
        for (place, name) in WHERE.iter().enumerate() {
            let at =
                |searched: &Searched| -> Option<Measured> { prompt(searched).map(|prompt| prompt[place]) };
            row(&format!("{kind}: all thresholds, {name}"), &|contender| {
                let meets = |searched: &&Searched| at(searched).is_some_and(|measured| measured.feasible);
                format!("{} of {seeds}", of(contender).filter(meets).count())
            });
            let success = |searched: &Searched| at(searched).map(|measured| measured.objective);
            row(&format!("{kind}: success, {name}"), &|contender| {
                estimate(of(contender).filter_map(success))
            });
            row("    less the first column's, paired", &|contender| {
                let pairs = of(contender)
                    .zip(of(0))
                    .filter_map(|(own, first)| Some(success(own)? - success(first)?));
                if contender == 0 {
                    String::new()
                } else {
                    estimate(pairs)
                }
            });
        }
    }
    let amounts: [Quantity<(u64, u64)>; 3] = [
        ("to the first that holds", |searched| searched.first),
        ("to the first feasible", |searched| searched.first_feasible),
        ("in all", |searched| Some(searched.ended)),
    ];
    for (what, amount) in amounts {
        row(&format!("rollouts {what}, median"), &|contender| {
            median(of(contender).map(|searched| Some(amount(searched)?.0 as f64)), 0)
        });
        row("    the first column's share, paired, median", &|contender| {
            let rollouts = |searched: &Searched| Some(amount(searched)?.0);
            let pairs = of(0).zip(of(contender));
            let shares = pairs.filter_map(|(first, own)| share(rollouts(first), rollouts(own)));
            if contender == 0 {
                String::new()
            } else {
                let shares: Vec<_> = shares.map(Some).collect();
                if shares.is_empty() {
                    String::new()
                } else {
                    median(shares.into_iter(), 2)
                }
            }
        });
        row(&format!("model calls {what}, median"), &|contender| {
            median(of(contender).map(|searched| Some(amount(searched)?.1 as f64)), 0)
        });
    }
    row("prompts measured, median", &|contender| {
        median(of(contender).map(|searched| Some(searched.prompts as f64)), 0)
    });
    row("seconds of processor time, mean", &|contender| {
        estimate(of(contender).map(|searched| searched.cpu.as_secs_f64()))
    });
    text + "\n± is one standard error over splits and seeds. The best feasible prompt's success is of the searches that \
            found one, paired where both did. The first that holds meets every threshold on fresh tasks; what \
            was spent before it was measured at all counts. The first feasible met them on all tasks of the search; \
            its own rollouts count, too. A search without one takes infinitely long; pairs without one in either are left \
            out. In brackets is a 95 % interval of the median over splits and seeds.\n"
}

/// Mean ± standard error.
fn estimate(values: impl Iterator<Item = f64>) -> String {
    let values: Vec<f64> = values.collect();
    if values.is_empty() {
        return "–".to_owned();
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    format!("{mean:.3} ± {:.3}", (squares / (n - 1.0).max(1.0) / n).sqrt())
}

/// What one search took of what another took, infinite where it alone never came there; `None` where neither did.
fn share(of: Option<u64>, whole: Option<u64>) -> Option<f64> {
    match (of, whole) {
        (None, None) => None,
        (None, Some(_)) => Some(f64::INFINITY),
        (Some(_), None) => Some(0.0),
        (Some(of), Some(whole)) => Some(of.max(1) as f64 / whole.max(1) as f64),
    }
}

/// The lower median, `None` greater than all numbers, with a 95 % interval where there are values enough for one.
fn median(values: impl Iterator<Item = Option<f64>>, decimals: usize) -> String {
    let mut values: Vec<f64> = values.map(|value| value.unwrap_or(f64::INFINITY)).collect();
    values.sort_by(f64::total_cmp);
    let shown = |place: usize| match values.get(place) {
        Some(value) if value.is_finite() => format!("{value:.decimals$}"),
        _ => "never".to_owned(),
    };
    let middle = shown(values.len().saturating_sub(1) / 2);
    match outside(values.len()) {
        0 => middle,
        outside => format!(
            "{middle} [{}, {}]",
            shown(outside - 1),
            shown(values.len() - outside)
        ),
    }
}

/// The place, from 1 and from either end of so many sorted values, of what bounds a 95 % interval of the median, or 0: how
/// many of them lie below the true one is binomial, whatever their law.
fn outside(count: usize) -> usize {
    let (mut exactly, mut at_most, mut outside) = ((-(count as f64)).exp2(), 0.0, 0);
    for below in 0..count / 2 {
        at_most += exactly;
        if at_most > 0.025 {
            break;
        }
        outside = below + 1;
        exactly *= (count - below) as f64 / (below + 1) as f64;
    }
    outside
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn searched(success: f64, met: bool, first: Option<(u64, u64)>) -> Searched {
        let prompt = [0.0, 0.1, 0.2].map(|less| Measured {
            feasible: met,
            objective: success - less,
        });
        Searched {
            first,
            first_feasible: first.map(|(rollouts, calls)| (rollouts + 74, calls + 500)),
            ended: (3000, 20_000),
            prompts: 40,
            best_feasible: met.then_some(prompt),
            returned: prompt,
            cpu: Duration::from_secs(2),
        }
    }

    #[test]
    fn contenders_are_compared_pair_by_pair() {
        let results = [
            searched(0.6, true, Some((700, 4000))),
            searched(0.5, false, None),
            searched(0.8, true, Some((900, 5000))),
            searched(0.5, true, Some((800, 4500))),
            searched(0.8, true, Some((1100, 6000))),
            searched(0.5, false, None),
        ];
        let text = report(&["capo", "fixed"], &results);
        let squeezed: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        for line in [
            "best feasible: all thresholds, search 3 of 3 1 of 3",
            "handed over: success, held-out 0.633 ± 0.067 0.400 ± 0.000",
            "less the first column's, paired -0.233 ± 0.067",
            // Of the only pair in which both found one.
            "less the first column's, paired -0.300 ± 0.000",
            "rollouts to the first that holds, median 900 never",
            "model calls to the first that holds, median 5000 never",
            "the first column's share, paired, median 0.00",
            "rollouts to the first feasible, median 974 never",
            "model calls to the first feasible, median 5500 never",
            "rollouts in all, median 3000 3000",
            "seconds of processor time, mean 2.000 ± 0.000 2.000 ± 0.000",
        ] {
            assert!(squeezed.contains(&line.to_owned()), "no {line:?} in\n{text}");
        }
    }

    #[test]
    fn a_median_stands_within_its_interval_and_a_pair_without_an_end_counts() {
        // Tables of the sign test have 13 below for 40 values, and none for fewer than 6.
        assert_eq!([5, 6, 20, 40].map(outside), [0, 1, 6, 14]);
        let numbers = |count: u32| (1..=count).map(|number| Some(f64::from(number)));
        assert_eq!(median(numbers(40), 0), "20 [14, 27]");
        assert_eq!(median(numbers(5).chain([None; 3]), 1), "4.0 [1.0, never]");
        assert_eq!(share(Some(120), Some(480)), Some(0.25));
        assert_eq!(share(Some(120), None), Some(0.0));
        assert_eq!(
            (share(None, Some(1)), share(None, None)),
            (Some(f64::INFINITY), None)
        );
    }
}
