//! Fronts: over single examples, and over several objectives at once.

use std::cmp::Ordering;

/// On how many examples each candidate is among the best, the best candidate first. From the worst on, whoever leads
/// nowhere alone leads nowhere: the others cover all that it does. Takes a time proportional to the number of values.
pub(super) fn leads(values: &[Vec<f64>]) -> Vec<usize> {
    let examples = values.first().map_or(0, Vec::len);
    let of_example = |example: usize| values.iter().map(move |values| values[example]);
    let best: Vec<f64> = (0..examples)
        .map(|example| of_example(example).fold(f64::NEG_INFINITY, f64::max))
        .collect();
    let led = |values: &Vec<f64>| -> Vec<usize> {
        (0..examples)
            .filter(|example| values[*example] >= best[*example])
            .collect()
    };
    let led: Vec<Vec<usize>> = values.iter().map(led).collect();
    let mut leaders = vec![0_usize; examples];
    for example in led.iter().flatten() {
        leaders[*example] += 1;
    }
    let mut leads = vec![0; values.len()];
    for (candidate, led) in led.iter().enumerate().rev() {
        if led.iter().all(|example| leaders[*example] > 1) {
            for example in led {
                leaders[*example] -= 1;
            }
        } else {
            leads[candidate] = led.len();
        }
    }
    leads
}

/// Front of each point, from 0, and its crowding distance there (Deb et al. 2002): all coordinates are to be large.
pub(super) fn ranks(values: &[Vec<f64>]) -> Vec<(usize, f64)> {
    let mut ranks = vec![(0, 0.0); values.len()];
    for (number, front) in fronts(values).into_iter().enumerate() {
        let points: Vec<&[f64]> = front.iter().map(|point| &*values[*point]).collect();
        for (point, distance) in front.into_iter().zip(crowding(&points)) {
            ranks[point] = (number, distance);
        }
    }
    ranks
}

/// Whom nobody dominates, whom only those dominate, and so on, each front ascending. The place of a point among the fronts
/// is bisected (Zhang et al. 2015). With one or two objectives the latest point of a front speaks for all of it, and the
/// whole takes O(n log n).
fn fronts(values: &[Vec<f64>]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| lexicographic(&values[*b], &values[*a]));
    let mut fronts: Vec<Vec<usize>> = Vec::new();
    for point in order {
        let is_dominated = |front: &Vec<usize>| {
            let enough = if values[point].len() <= 2 { 1 } else { front.len() };
            let mut latest = front.iter().rev().take(enough);
            latest.any(|other| dominates(&values[*other], &values[point]))
        };
        let place = fronts.partition_point(is_dominated);
        match fronts.get_mut(place) {
            Some(front) => front.push(point),
            None => fronts.push(vec![point]),
        }
    }
    for front in &mut fronts {
        front.sort_unstable();
    }
    fronts
}

fn lexicographic(a: &[f64], b: &[f64]) -> Ordering {
    let mut orders = a.iter().zip(b).map(|(a, b)| a.total_cmp(b));
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn dominates(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a >= b) && a.iter().zip(b).any(|(a, b)| a > b)
}

/// How far apart the neighbours of each point of a front are, as a share of the front's extent, in the mean over the
/// objectives; infinite for those at its ends.
fn crowding(front: &[&[f64]]) -> Vec<f64> {
    if front.len() <= 2 {
        return vec![f64::INFINITY; front.len()];
    }
    let objectives = front[0].len();
    let mut distances = vec![0.0; front.len()];
    for objective in 0..objectives {
        let value = |point: &usize| front[*point][objective];
        let mut order: Vec<usize> = (0..front.len()).collect();
        order.sort_by(|a, b| value(b).total_cmp(&value(a)));
        let (first, last) = (order[0], order[front.len() - 1]);
        let extent = value(&first) - value(&last);
        if extent == 0.0 {
            continue;
        }
        distances[first] = f64::INFINITY;
        distances[last] = f64::INFINITY;
        for near in order.windows(3) {
            distances[near[1]] += (value(&near[0]) - value(&near[2])) / extent / objectives as f64;
        }
    }
    distances
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::{dominates, leads, ranks};

    /// What the `record.py` of a folder of `core/tests` wrote.
    #[derive(Deserialize)]
    struct Recorded<Case> {
        cases: Vec<Case>,
    }

    #[derive(Deserialize)]
    struct Ranked {
        values: Vec<Vec<f64>>,
        front: Vec<usize>,
        crowding: Vec<Option<f64>>,
    }

    #[test]
    fn fronts_and_crowding_are_those_of_pymoo() {
        let recorded: Recorded<Ranked> =
            serde_json::from_str(include_str!("../../../tests/nsga2/pymoo.json")).unwrap();
        assert_eq!(recorded.cases.len(), 40);
        for case in recorded.cases {
            let recorded = case.front.iter().zip(&case.crowding);
            for ((front, distance), (recorded, crowding)) in ranks(&case.values).iter().zip(recorded) {
                assert_eq!(front, recorded, "{:?}", case.values);
                let crowding = crowding.unwrap_or(f64::INFINITY);
                let is_same = *distance == crowding || (distance - crowding).abs() < 1e-12;
                assert!(is_same, "{distance}, not {crowding}: {:?}", case.values);
            }
        }
    }

    #[derive(Deserialize)]
    struct Growing {
        values: Vec<Vec<f64>>,
        scored: Vec<f64>,
        fronts: Vec<Vec<usize>>,
    }

    #[test]
    fn fronts_over_examples_are_those_of_gepa_as_candidates_come_in() {
        let recorded: Recorded<Growing> =
            serde_json::from_str(include_str!("../../../tests/gepa/fronts.json")).unwrap();
        assert_eq!(recorded.cases.len(), 25);
        for case in recorded.cases {
            for (count, front) in (1..).zip(case.fronts) {
                let mut order: Vec<usize> = (0..count).collect();
                order.sort_by(|one, other| case.scored[*other].total_cmp(&case.scored[*one]));
                let best_first: Vec<Vec<f64>> =
                    order.iter().map(|place| case.values[*place].clone()).collect();
                let expected: Vec<usize> = order.iter().map(|place| front[*place]).collect();
                assert_eq!(
                    leads(&best_first),
                    expected,
                    "the first {count} of {:?}",
                    case.values
                );
            }
        }
    }

    proptest! {
        #[test]
        fn a_front_is_one_more_than_that_of_the_last_who_dominates(
            values in proptest::collection::vec(proptest::collection::vec((0..5_u8).prop_map(f64::from), 3), 1..30),
            objectives in 1_usize..4,
        ) {
            let values: Vec<Vec<f64>> = values.iter().map(|value| value[..objectives].to_vec()).collect();
            let ranks = ranks(&values);
            for (value, (front, _)) in values.iter().zip(&ranks) {
                let others = values.iter().zip(&ranks);
                let dominators = others.filter(|(other, _)| dominates(other, value));
                prop_assert_eq!(*front, dominators.map(|(_, (front, _))| front + 1).max().unwrap_or(0));
            }
        }
    }

    #[test]
    fn who_leads_nowhere_alone_is_off_the_front() {
        // The last one is among the best on an example on which another one is, too.
        let values = [vec![1.0, 0.0, 1.0], vec![1.0, 1.0, 0.0], vec![0.0, 1.0, 0.5]];
        assert_eq!(leads(&values), [2, 2, 0]);
        // Equals: the better one by J, which stands first, is left.
        assert_eq!(leads(&[vec![0.5], vec![0.5]]), [1, 0]);
        assert_eq!(leads(&[vec![1.0, 0.0], vec![0.0, 1.0]]), [1, 1]);
    }
}
