//! On what a prompt is feasible: the examples of its search, held-out ones, or by a certificate.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::journal::FinishedEvent;
use crate::journal::run_state::RunState;
use crate::reading::in_force;
use crate::study::certificate::{Certificate, Verdict};
use crate::study::estimate::Estimate;
use crate::study::ids::CandidateId;

/// Whether a prompt keeps every threshold, and where that was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feasibility {
    /// On the examples it was chosen by.
    pub search: bool,
    /// On the held-out examples; null where it was not measured there.
    pub held_out: Option<bool>,
    /// By a test on examples that nothing else touched; null where the study keeps none, or nothing was tested.
    pub certified: Option<Verdict>,
}

impl Feasibility {
    /// That of a run's returned prompt.
    pub fn of(state: &RunState, finished: &FinishedEvent) -> Self {
        finished.best.map_or_else(Self::default, |best| {
            Self::of_prompt(state, finished, &best, &finished.evaluation)
        })
    }

    /// That of any prompt of a run that has ended, which has these held-out estimates.
    pub fn of_prompt(
        state: &RunState,
        finished: &FinishedEvent,
        prompt: &CandidateId,
        evaluation: &IndexMap<String, Estimate>,
    ) -> Self {
        let thresholds = in_force::thresholds(state, None);
        let held_out = all_sat(&thresholds, |metric| Some(evaluation.get(metric)?.mean));
        let score = finished.final_scores.get(prompt);
        Self {
            search: score.is_some_and(|score| score.feasible),
            held_out: held_out.filter(|_| !evaluation.is_empty()),
            // A prompt that was not its turn was not tested, because a safer one was not certified.
            certified: certificate_of(finished, prompt)
                .map(|certificate| certificate.verdict)
                .or_else(|| (!finished.certificates.is_empty()).then_some(Verdict::Undecided)),
        }
    }

    /// Whether it may be called feasible: by a certificate, else on held-out examples, else, where there are none, on
    /// those of the search.
    pub fn holds(self) -> bool {
        match self.certified {
            Some(Verdict::Certified) => true,
            Some(Verdict::Refuted) => false,
            Some(Verdict::Undecided) | None => self.search && self.held_out.unwrap_or(true),
        }
    }

    /// Whether a search that returned it came to what was asked for: it [holds](Self::holds), and held-out examples do not
    /// say otherwise, whatever the certificate.
    pub fn is_borne_out(self) -> bool {
        self.holds() && self.held_out != Some(false)
    }

    /// The strongest that is true of it, to follow "the best prompt".
    pub fn words(self) -> &'static str {
        match (self.certified, self.held_out, self.search) {
            (Some(Verdict::Certified), Some(false), _) => {
                "is certified, but does not hold on the held-out examples"
            }
            (Some(Verdict::Certified), ..) => "is certified",
            (Some(Verdict::Refuted), _, true) => {
                "is feasible on the search examples, but refuted by the test"
            }
            (_, Some(true), true) => "holds on the held-out examples",
            (_, Some(false), true) => {
                "is feasible on the search examples, but does not hold on the held-out examples"
            }
            (_, None, true) => "is feasible on the search examples",
            (.., false) => "is not feasible on the search examples",
        }
    }
}

/// The certificate of a run's returned prompt, if it was tested.
pub fn certificate(finished: &FinishedEvent) -> Option<&Certificate> {
    certificate_of(finished, &finished.best?)
}

/// The certificate of a prompt of a run, if it was tested.
pub fn certificate_of<'a>(finished: &'a FinishedEvent, prompt: &CandidateId) -> Option<&'a Certificate> {
    let mut certificates = finished.certificates.iter();
    certificates.find(|certificate| certificate.candidate == *prompt)
}

/// Whether these means, by metric, meet every threshold; `None` when none of those that were measured
/// misses its own, but one was not measured. Without constraints there is nothing to fail.
pub fn all_sat(thresholds: &IndexMap<String, f64>, mean: impl Fn(&str) -> Option<f64>) -> Option<bool> {
    let met: Vec<Option<bool>> = thresholds
        .iter()
        .map(|(metric, threshold)| Some(mean(metric)? <= *threshold))
        .collect();
    if met.contains(&Some(false)) {
        return Some(false);
    }
    (!met.contains(&None)).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_verdict_that_is_true_is_told() {
        let of = |search, held_out, certified| Feasibility {
            search,
            held_out,
            certified,
        };
        let (yes, no) = (Some(true), Some(false));
        for (feasibility, holds, words) in [
            (of(true, yes, Some(Verdict::Certified)), true, "certified"),
            (
                of(true, no, Some(Verdict::Certified)),
                true,
                "is certified, but does not hold on the held-out examples",
            ),
            (
                of(true, yes, Some(Verdict::Refuted)),
                false,
                "refuted by the test",
            ),
            (
                of(true, yes, Some(Verdict::Undecided)),
                true,
                "holds on the held-out examples",
            ),
            (of(true, yes, None), true, "holds on the held-out examples"),
            (
                of(true, no, Some(Verdict::Undecided)),
                false,
                "does not hold on the held-out examples",
            ),
            (
                of(true, no, None),
                false,
                "does not hold on the held-out examples",
            ),
            (of(true, None, None), true, "feasible on the search examples"),
            (of(false, yes, None), false, "not feasible on the search examples"),
            (
                of(false, None, None),
                false,
                "not feasible on the search examples",
            ),
        ] {
            assert_eq!(feasibility.holds(), holds, "{feasibility:?}");
            assert!(
                feasibility.words().ends_with(words),
                "{feasibility:?}: {}",
                feasibility.words()
            );
        }
        assert!(of(true, yes, Some(Verdict::Certified)).is_borne_out());
        assert!(of(true, None, None).is_borne_out());
        assert!(!of(true, no, Some(Verdict::Certified)).is_borne_out());
        assert!(!of(true, yes, Some(Verdict::Refuted)).is_borne_out());
    }

    #[test]
    fn every_threshold_must_be_met_and_every_mean_known() {
        let thresholds: IndexMap<String, f64> = [("a".to_owned(), 1.0), ("b".to_owned(), 2.0)].into();
        let verdict =
            |a: Option<f64>, b: Option<f64>| all_sat(&thresholds, |metric| if metric == "a" { a } else { b });
        assert_eq!(verdict(Some(1.0), Some(2.0)), Some(true));
        assert_eq!(verdict(Some(1.1), Some(2.0)), Some(false));
        assert_eq!(verdict(Some(1.0), None), None);
        assert_eq!(
            verdict(Some(1.1), None),
            Some(false),
            "nothing unknown mends that"
        );
        assert_eq!(all_sat(&IndexMap::new(), |_| None), Some(true));
    }
}
