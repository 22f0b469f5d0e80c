//! The learning rate over a training: linear warm-up, then a cosine down to a floor
//! [Loshchilov & Hutter, SGDR, arXiv 1608.03983].

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use crate::error::RequestError;

/// Linear warm-up, then cosine decay.
///
/// ```
/// use capo_rewriter::schedule::Schedule;
///
/// let schedule = Schedule { peak: 1e-3, warmup_steps: 10, total_steps: 110, floor: 0.1 };
/// schedule.check()?;
/// assert_eq!(schedule.rate(0), 1e-4); // the first step already moves
/// assert_eq!(schedule.rate(9), 1e-3);
/// assert!((schedule.rate(59) - 5.5e-4).abs() < 1e-12);
/// assert!((schedule.rate(109) - 1e-4).abs() < 1e-12);
/// # Ok::<(), capo_rewriter::error::RequestError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Highest learning rate, in (0, 1].
    pub peak: f64,
    /// Steps of the rise; the last of them is made at the peak. Fewer than `total_steps`.
    pub warmup_steps: u64,
    /// Steps of the whole training, above 0; the last of them is made at the floor.
    pub total_steps: u64,
    /// Share of the peak that is left in the end, in [0, 1].
    pub floor: f64,
}

impl Schedule {
    /// # Errors
    ///
    /// [`RequestError::Setting`] names the first setting outside its range.
    pub fn check(&self) -> Result<(), RequestError> {
        let settings = [
            (
                "learning rate",
                self.peak,
                self.peak > 0.0 && self.peak <= 1.0,
                "above 0 and at most 1",
            ),
            (
                "total steps",
                self.total_steps as f64,
                self.total_steps > 0,
                "at least 1",
            ),
            (
                "warm-up steps",
                self.warmup_steps as f64,
                self.warmup_steps < self.total_steps.max(1),
                "fewer than the steps of the whole training",
            ),
            (
                "learning rate floor",
                self.floor,
                (0.0..=1.0).contains(&self.floor),
                "a share of the peak in [0, 1]",
            ),
        ];
        match settings.into_iter().find(|(.., holds, _)| !holds) {
            Some((name, value, _, range)) => Err(RequestError::Setting { name, value, range }),
            None => Ok(()),
        }
    }

    /// The learning rate of a step, counted from 0, of settings that hold; beyond the last step the
    /// floor.
    pub fn rate(&self, step: u64) -> f64 {
        let step = step.saturating_add(1).min(self.total_steps);
        if step <= self.warmup_steps {
            return self.peak * (step as f64 / self.warmup_steps as f64);
        }
        let decay = (self.total_steps - self.warmup_steps) as f64;
        let done = (step - self.warmup_steps) as f64 / decay;
        let share = self.floor + (1.0 - self.floor) * 0.5 * (1.0 + (PI * done).cos());
        self.peak * share
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VALID: Schedule = Schedule {
        peak: 2e-4,
        warmup_steps: 3,
        total_steps: 20,
        floor: 0.1,
    };

    #[test]
    fn settings_outside_their_range_are_named() {
        VALID.check().expect("valid");
        for (schedule, name) in [
            (Schedule { peak: 0.0, ..VALID }, "learning rate"),
            (
                Schedule {
                    peak: f64::NAN,
                    ..VALID
                },
                "learning rate",
            ),
            (
                Schedule {
                    total_steps: 0,
                    warmup_steps: 0,
                    ..VALID
                },
                "total steps",
            ),
            (
                Schedule {
                    warmup_steps: 20,
                    ..VALID
                },
                "warm-up steps",
            ),
            (Schedule { floor: 1.5, ..VALID }, "floor"),
        ] {
            let message = schedule.check().expect_err("must be refused").to_string();
            assert!(message.contains(name), "{message}");
        }
    }

    proptest! {
        #[test]
        fn rises_to_the_peak_and_falls_to_the_floor(
            total_steps in 1u64..500, warmup in 0.0f64..1.0, floor in 0.0f64..=1.0, peak in 1e-6f64..1.0,
        ) {
            let warmup_steps = (warmup * total_steps as f64) as u64;
            let schedule = Schedule { peak, warmup_steps, total_steps, floor };
            schedule.check().expect("valid");
            let rates: Vec<f64> = (0..total_steps).map(|step| schedule.rate(step)).collect();
            let (rise, fall) = rates.split_at(warmup_steps as usize);
            prop_assert!(rise.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(rise.last().is_none_or(|top| *top == peak));
            prop_assert!(fall.windows(2).all(|pair| pair[0] >= pair[1] - 1e-15));
            let last = rates[rates.len() - 1];
            prop_assert!((last - floor * peak).abs() <= 1e-12 * peak);
            prop_assert!(rates.iter().all(|rate| *rate <= peak * (1.0 + 1e-12) && *rate >= 0.0));
            prop_assert_eq!(schedule.rate(total_steps + 7), last);
        }
    }
}
