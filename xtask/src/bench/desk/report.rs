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
            .map(|contender| format!("{:>18}", cell(contender)))
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
            median(of(contender).map(|searched| Some(amount(searched)?.0)))
        });
        row(&format!("model calls {what}, median"), &|contender| {
            median(of(contender).map(|searched| Some(amount(searched)?.1)))
        });
    }
    row("prompts measured, median", &|contender| {
        median(of(contender).map(|searched| Some(searched.prompts)))
    });
    row("seconds of processor time, mean", &|contender| {
        estimate(of(contender).map(|searched| searched.cpu.as_secs_f64()))
    });
    text + "\n± is one standard error over splits and seeds. The best feasible prompt's success is of the searches that \
            found one, paired where both did. The first that holds meets every threshold on fresh tasks; what \
            was spent before it was measured at all counts. The first feasible met them on all tasks of the search; \
            its own rollouts count, too. A search without one takes infinitely long.\n"
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

/// The lower median, `None` greater than all numbers.
fn median(values: impl Iterator<Item = Option<u64>>) -> String {
    let mut values: Vec<u64> = values.map(|value| value.unwrap_or(u64::MAX)).collect();
    values.sort_unstable();
    match values.get(values.len().saturating_sub(1) / 2) {
        Some(&u64::MAX) | None => "never".to_owned(),
        Some(value) => value.to_string(),
    }
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
            "rollouts to the first feasible, median 974 never",
            "model calls to the first feasible, median 5500 never",
            "rollouts in all, median 3000 3000",
            "seconds of processor time, mean 2.000 ± 0.000 2.000 ± 0.000",
        ] {
            assert!(squeezed.contains(&line.to_owned()), "no {line:?} in\n{text}");
        }
    }
}
