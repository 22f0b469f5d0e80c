//! Fronts: over single examples, and over several objectives at once.

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

#[cfg(test)]
mod tests {
    use super::leads;

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
