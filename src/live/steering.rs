//! Changes by hand that wait for the next round.

use capo_core::journal::SteerEvent;

/// Adds a change to those that wait; of two for one metric the last counts.
pub(super) fn ask(pending: &mut Option<SteerEvent>, change: SteerEvent) {
    let pending = pending.get_or_insert_default();
    if let Some(thresholds) = change.thresholds {
        pending.thresholds.get_or_insert_default().extend(thresholds);
    }
    if let Some(multipliers) = change.multipliers {
        pending.multipliers.get_or_insert_default().extend(multipliers);
    }
}

/// Takes out of what waits what the journal says was applied.
pub(super) fn settle(pending: &mut Option<SteerEvent>, journaled: &SteerEvent) {
    let Some(waiting) = pending else { return };
    for (values, applied) in [
        (&mut waiting.thresholds, &journaled.thresholds),
        (&mut waiting.multipliers, &journaled.multipliers),
    ] {
        let (Some(wanted), Some(applied)) = (values.as_mut(), applied) else {
            continue;
        };
        wanted.retain(|metric, value| applied.get(metric) != Some(value));
        if wanted.is_empty() {
            *values = None;
        }
    }
    if waiting.thresholds.is_none() && waiting.multipliers.is_none() {
        *pending = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threshold(value: f64) -> SteerEvent {
        SteerEvent {
            thresholds: Some([("turns".to_owned(), value)].into()),
            ..SteerEvent::default()
        }
    }

    #[test]
    fn a_change_waits_until_the_journal_says_it_was_applied() {
        let mut pending = None;
        ask(&mut pending, threshold(3.0));
        ask(&mut pending, threshold(4.0));
        let multiplier = SteerEvent {
            multipliers: Some([("turns".to_owned(), 2.0)].into()),
            ..SteerEvent::default()
        };
        ask(&mut pending, multiplier.clone());
        settle(&mut pending, &threshold(3.0));
        assert_eq!(pending.as_ref().unwrap().thresholds, threshold(4.0).thresholds);
        settle(&mut pending, &threshold(4.0));
        let left = pending.clone().unwrap();
        assert_eq!((left.thresholds, left.multipliers.is_some()), (None, true));
        settle(&mut pending, &multiplier);
        assert_eq!(pending, None);
    }
}
