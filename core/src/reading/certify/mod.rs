//! Testing a prompt on the reserve: exact binomial tests and betting test martingales, one for each constraint.
//!
//! "Some constraint is violated" is a union of hypotheses, so that a prompt is certified at level α where each constraint
//! is, without a correction for their number (intersection–union test). The corrected bounds are for who reads them side
//! by side.

mod betting;
mod binomial;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use indexmap::IndexMap;

use crate::journal::Tests;
use crate::journal::run_state::{RunState, SetKey};
use crate::reading::examples::Examples;
use crate::reading::metrics::{self, StudiedMetric};
use crate::reading::{in_force, measured};
use crate::study::certificate::{Certificate, Confirm, Finding, Test, Verdict};
use crate::study::estimate::mean_of;
use crate::study::ids::CandidateId;
use crate::study::metric::{MetricSpec, PROMPT_LENGTH, prompt_length};
use crate::study::workload::Split;

/// Examples of each workload that are measured before it is looked whether they decide.
pub const BLOCK: usize = 20;

/// More examples than this are never said to be needed.
const MOST_EXAMPLES: usize = 1_000_000;

/// The smallest number from 1 to `most` that is enough, where every larger one is about so.
fn fewest(most: usize, is_enough: impl Fn(usize) -> bool) -> Option<usize> {
    let mut high = 1;
    while !is_enough(high) {
        if high >= most {
            return None;
        }
        high = (2 * high).min(most);
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if is_enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// How a metric can be tested.
enum Law {
    Known,
    /// One of two values.
    TwoValued {
        low: f64,
        width: f64,
    },
    /// At most `low + width`; at least `low` where it is bounded below, which only a refutation needs.
    Bounded {
        low: f64,
        width: f64,
        below: bool,
    },
}

impl Law {
    /// # Errors
    /// Why it cannot be tested.
    fn of(spec: &MetricSpec, threshold: f64, confirm: &Confirm, repeats: u32) -> Result<Self, String> {
        if spec.name == PROMPT_LENGTH {
            return Ok(Self::Known);
        }
        let stated = confirm.bounds.get(&spec.name).copied();
        let high = spec.max.or(stated).ok_or_else(|| {
            format!(
                "it has no largest value; where you know one, state it: `{} = …` under [confirm.bounds]",
                spec.name
            )
        })?;
        // Where there is no smallest value, the distance from the threshold to the largest one is the measure.
        let low = spec.min.unwrap_or(2.0 * threshold - high);
        let width = high - low;
        if width <= 0.0 {
            return Err(format!(
                "its largest value is said to be {high}, and it must be above {}",
                spec.min.unwrap_or(threshold)
            ));
        }
        // Repeats of one example are one piece of evidence: their mean, which is none of two values any more.
        Ok(if spec.binary && repeats == 1 {
            Self::TwoValued { low, width }
        } else {
            let below = spec.min.is_some();
            Self::Bounded { low, width, below }
        })
    }
}

/// What the test of a constraint has come to.
struct Standing {
    finding: Finding,
    /// Whether further examples of the reserve may change it.
    open: bool,
}

/// What a constraint is tested with.
struct Question<'a> {
    spec: &'a MetricSpec,
    threshold: f64,
    confirm: &'a Confirm,
    repeats: u32,
    /// How many constraints are tested.
    among: usize,
    /// The largest cost that the search measured.
    largest: Option<f64>,
}

impl Question<'_> {
    /// The test of costs in the order in which they were measured, means over repeats; `None` for an example that could
    /// not be measured, which counts as what speaks against the answer.
    fn answer(&self, costs: &[Option<f64>]) -> Standing {
        let law = match Law::of(self.spec, self.threshold, self.confirm, self.repeats) {
            Ok(law) => law,
            Err(reason) => return self.untestable(costs, None, reason),
        };
        let (low, width) = match law {
            Law::Known => return self.known(costs),
            Law::TwoValued { low, width } | Law::Bounded { low, width, .. } => (low, width),
        };
        let with = |missing: f64| -> Vec<f64> {
            let share = |cost: &Option<f64>| cost.map_or(missing, |cost| (cost - low) / width);
            costs.iter().map(share).collect()
        };
        let (shares, least) = (with(1.0), with(0.0));
        let largest = low + width;
        let problem = |cost: f64| {
            let share = (cost - low) / width;
            match law {
                Law::TwoValued { .. } if share != 0.0 && share != 1.0 => {
                    Some(format!("an example measured {cost}, neither {low} nor {largest}"))
                }
                _ if share > 1.0 => Some(format!(
                    "an example measured {cost}, and it is said to be at most {largest}"
                )),
                Law::Bounded { below: true, .. } if share < 0.0 => Some(format!(
                    "an example measured {cost}, and it is said to be at least {low}"
                )),
                _ => None,
            }
        };
        let of_search = self.largest.filter(|cost| *cost > largest);
        if let Some(reason) = costs.iter().flatten().copied().chain(of_search).find_map(problem) {
            return self.untestable(costs, Some(largest), reason);
        }
        let (threshold, alpha) = ((self.threshold - low) / width, self.alpha());
        let evidence = self.evidence(&law, &shares, &least, threshold);
        let verdict = evidence.verdict(alpha);
        let is_undecided = verdict == Verdict::Undecided;
        let open = is_undecided && evidence.is_possible && shares.len() < self.confirm.examples;
        let needed = || self.needed(&law, &shares, threshold);
        let more = (is_undecided && !open).then(needed).flatten();
        let upper = |alpha| Some(low + width * self.upper(&law, &shares, alpha));
        Standing {
            finding: Finding {
                test: match law {
                    Law::Bounded { .. } => Test::Betting,
                    _ => Test::Binomial,
                },
                verdict,
                bound: Some(largest),
                mean: mean_of(shares.iter().copied()).map(|mean| low + width * mean),
                p: evidence.p,
                upper: upper(alpha),
                simultaneous: upper(alpha / self.among as f64),
                more: more.map(|needed| needed.saturating_sub(shares.len()).max(1)),
                ..self.nothing(costs)
            },
            open,
        }
    }

    /// A finding that says nothing yet.
    fn nothing(&self, costs: &[Option<f64>]) -> Finding {
        Finding {
            test: Test::None,
            verdict: Verdict::Undecided,
            threshold: self.threshold,
            bound: None,
            mean: mean_of(costs.iter().flatten().copied()),
            examples: costs.len(),
            p: 1.0,
            upper: None,
            simultaneous: None,
            more: None,
            reason: None,
        }
    }

    fn untestable(&self, costs: &[Option<f64>], bound: Option<f64>, reason: String) -> Standing {
        Standing {
            finding: Finding {
                bound,
                reason: Some(reason),
                ..self.nothing(costs)
            },
            open: false,
        }
    }

    /// Of a cost that is a property of the prompt.
    fn known(&self, costs: &[Option<f64>]) -> Standing {
        let cost = costs.iter().flatten().next().copied();
        let holds = cost.is_some_and(|cost| cost <= self.threshold);
        Standing {
            finding: Finding {
                test: Test::Known,
                verdict: if holds {
                    Verdict::Certified
                } else {
                    Verdict::Refuted
                },
                examples: 0,
                p: f64::from(u8::from(!holds)),
                upper: cost,
                simultaneous: cost,
                ..self.nothing(costs)
            },
            open: false,
        }
    }

    fn alpha(&self) -> f64 {
        1.0 - self.confirm.confidence
    }

    /// p-value of "the mean exceeds the threshold" by the binomial test, and whether the rest of the reserve may still make
    /// it small enough. The test has the size of the whole reserve, whatever was measured of it: examples that were not
    /// count as events.
    fn binomial(&self, shares: &[f64], threshold: f64) -> (f64, bool) {
        let trials = self.confirm.examples;
        let events = shares.iter().filter(|share| **share == 1.0).count();
        if threshold >= 1.0 {
            // No cost exceeds its largest value.
            return (0.0, true);
        }
        let p = binomial::at_most(events + trials - shares.len(), trials, threshold);
        (p, binomial::at_most(events, trials, threshold) <= self.alpha())
    }

    /// p-value of "the mean exceeds `mean`" by betting.
    fn p_against(&self, shares: &[f64], mean: f64) -> f64 {
        let bets = betting::bets(shares, self.confirm.examples, self.alpha());
        libm::exp(-betting::log_capital(shares, &bets, mean, BLOCK))
    }

    /// Whether the mean was shown to exceed the threshold, of shares in [0, 1]: by betting, since that may be asked as often
    /// as there are blocks. One violated constraint of several is enough, so each has its part of the level.
    fn is_refuted(&self, shares: &[f64], threshold: f64) -> bool {
        if threshold <= 0.0 {
            // A single cost above the smallest one shows it.
            return shares.iter().any(|share| *share > 0.0);
        }
        let mirrored: Vec<f64> = shares.iter().map(|share| 1.0 - share).collect();
        self.p_against(&mirrored, 1.0 - threshold) <= self.alpha() / self.among as f64
    }

    /// `least` are the shares with the smallest cost in place of those that could not be measured.
    fn evidence(&self, law: &Law, shares: &[f64], least: &[f64], threshold: f64) -> Evidence {
        let ((p, is_possible), is_bounded_below) = match law {
            // Nothing shows a mean of at most the smallest cost.
            Law::Bounded { below, .. } => (
                (self.p_against(shares, threshold), threshold > 0.0 || !below),
                *below,
            ),
            _ => (self.binomial(shares, threshold), true),
        };
        Evidence {
            p,
            refuted: is_bounded_below && self.is_refuted(least, threshold),
            is_possible,
        }
    }

    /// The upper confidence bound at a level.
    fn upper(&self, law: &Law, shares: &[f64], alpha: f64) -> f64 {
        let reserve = self.confirm.examples;
        if let Law::Bounded { .. } = law {
            let bets = betting::bets(shares, reserve, alpha);
            return betting::upper_bound(shares, &bets, BLOCK, alpha);
        }
        let events = shares.iter().filter(|share| **share == 1.0).count();
        binomial::upper_bound(events + reserve - shares.len(), reserve, alpha)
    }

    /// How many examples would be needed in all, if costs keep coming as these did.
    fn needed(&self, law: &Law, shares: &[f64], threshold: f64) -> Option<usize> {
        let alpha = self.alpha();
        if let Law::Bounded { .. } = law {
            return betting::fewest_examples(shares, threshold, alpha, MOST_EXAMPLES);
        }
        let rate = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        binomial::fewest_trials(rate, threshold, alpha, MOST_EXAMPLES)
    }
}

/// What the examples say of "the mean exceeds the threshold".
struct Evidence {
    p: f64,
    /// Whether it was shown to.
    refuted: bool,
    /// Whether the rest of the reserve may still show that it does not.
    is_possible: bool,
}

impl Evidence {
    fn verdict(&self, alpha: f64) -> Verdict {
        if self.p <= alpha {
            Verdict::Certified
        } else if self.refuted {
            Verdict::Refuted
        } else {
            Verdict::Undecided
        }
    }
}

/// A prompt's certificate by the examples of the reserve that the journal holds, as far as they were needed; `None`
/// where the study keeps no reserve, or a threshold is not known yet.
pub fn certificate(state: &RunState, candidate: &CandidateId) -> Option<Certificate> {
    untested(state, candidate).or_else(|| by_its_examples(state, candidate))
}

/// The certificate, without a test, of a prompt that the reserve cannot certify any more: one before it was tested and not
/// certified, or the tests that have begun are about other thresholds; `None` where it may be tested, or needs no example.
pub(crate) fn untested(state: &RunState, candidate: &CandidateId) -> Option<Certificate> {
    let tests = state.tests()?;
    let fails = |one: &CandidateId| {
        by_its_examples(state, one).is_none_or(|certificate| certificate.verdict != Verdict::Certified)
    };
    let has_begun = tests.prompts.contains(candidate);
    let may_be_tested = are_about_now(state, tests)
        && (has_begun || !tests.spent)
        && !tests
            .prompts
            .iter()
            .take_while(|one| *one != candidate)
            .any(fails);
    if may_be_tested {
        return None;
    }
    let nothing = after(state, candidate, 0).filter(|certificate| !certificate.ended)?;
    Some(Certificate {
        ended: true,
        untested: true,
        ..nothing
    })
}

/// Whether tests are about the thresholds that are in force now.
fn are_about_now(state: &RunState, tests: &Tests) -> bool {
    tests.thresholds == in_force::thresholds(state, None)
}

/// Whether the reserve certifies no further prompt.
pub fn is_spent(state: &RunState) -> bool {
    let is_lost = |one: &CandidateId| {
        let known = by_its_examples(state, one);
        known.is_some_and(|known| known.ended && known.verdict != Verdict::Certified)
    };
    state
        .tests()
        .is_some_and(|tests| tests.spent || !are_about_now(state, tests) || tests.prompts.iter().any(is_lost))
}

/// The certificate of a prompt, whatever was tested before it.
fn by_its_examples(state: &RunState, candidate: &CandidateId) -> Option<Certificate> {
    let mut blocks = 0;
    loop {
        let certificate = after(state, candidate, blocks)?;
        let mut next = Examples::reserve(state, (blocks + 1) * BLOCK);
        for (workload, places) in (0..).zip(&mut next.places) {
            let split = next.split;
            places.retain(|place| !state.rollouts().is_left_out(SetKey { workload, split }, *place));
        }
        if certificate.ended || !measured::progress(state, candidate, &next).is_whole() {
            return Some(certificate);
        }
        blocks += 1;
    }
}

/// The certificate by the first blocks of the reserve, which has ended where another block cannot change it.
pub(crate) fn after(state: &RunState, candidate: &CandidateId, blocks: usize) -> Option<Certificate> {
    let study = &state.study()?.study;
    let confirm = study.confirm.as_ref()?;
    let thresholds = in_force::thresholds(state, None);
    let examples = Examples::reserve(state, blocks * BLOCK);
    let constraints = metrics::constraints(state);
    let is_tested = |metric: &&StudiedMetric| metric.name() != PROMPT_LENGTH;
    let among = constraints.iter().filter(is_tested).count().max(1);
    let answer = |metric: &StudiedMetric| {
        let question = Question {
            spec: &metric.spec,
            threshold: *thresholds.get(metric.name())?,
            confirm,
            repeats: study.study.repeats,
            among,
            largest: largest_searched(state, metric),
        };
        let costs = if metric.name() == PROMPT_LENGTH {
            vec![Some(prompt_length(&state.candidate(candidate)?.prompt))]
        } else {
            costs(state, candidate, metric, &examples)
        };
        Some((metric.name().to_owned(), question.answer(&costs)))
    };
    let standings: IndexMap<String, Standing> = constraints.iter().map(answer).collect::<Option<_>>()?;
    let is = |verdict| move |standing: &Standing| standing.finding.verdict == verdict;
    let verdict = if standings.values().any(is(Verdict::Refuted)) {
        Verdict::Refuted
    } else if standings.values().all(is(Verdict::Certified)) {
        Verdict::Certified
    } else {
        Verdict::Undecided
    };
    // One that the rest of the reserve cannot decide any more decides that nothing more is measured.
    let is_lost = |standing: &Standing| standing.finding.verdict == Verdict::Undecided && !standing.open;
    Some(Certificate {
        candidate: *candidate,
        verdict,
        confidence: confirm.confidence,
        reserve: confirm.examples,
        examples: (blocks * BLOCK).min(confirm.examples),
        ended: verdict != Verdict::Undecided || standings.values().any(is_lost),
        untested: false,
        constraints: standings
            .into_iter()
            .map(|(metric, standing)| (metric, standing.finding))
            .collect(),
    })
}

/// A prompt's costs on examples of the reserve; `None` where one of its rollouts failed, or where nobody is measured.
fn costs(
    state: &RunState,
    candidate: &CandidateId,
    metric: &StudiedMetric,
    examples: &Examples,
) -> Vec<Option<f64>> {
    let mut costs = measured::values(state, candidate, metric, examples);
    let set = SetKey {
        workload: metric.workload,
        split: examples.split,
    };
    let failed = state
        .failed_rollouts()
        .iter()
        .filter(|failed| failed.candidate == *candidate);
    let failed: HashSet<(SetKey, usize)> = failed
        .filter_map(|failed| {
            state
                .rollouts()
                .place_of(&failed.workload, failed.split, &failed.example)
        })
        .collect();
    let places = examples.places.get(usize::from(metric.workload));
    for (cost, place) in costs.iter_mut().zip(places.into_iter().flatten()) {
        if failed.contains(&(set, *place)) || state.rollouts().is_left_out(set, *place) {
            *cost = None;
        }
    }
    costs
}

/// The largest cost that any prompt measured on an example of the search, where its bound is a stated one.
fn largest_searched(state: &RunState, metric: &StudiedMetric) -> Option<f64> {
    if metric.spec.max.is_some() {
        return None;
    }
    let searched = Examples::whole(state, Split::Optimize);
    let of_candidate = |(id, _)| measured::values(state, id, metric, &searched);
    state
        .candidates()
        .flat_map(of_candidate)
        .flatten()
        .reduce(f64::max)
}

/// What a reserve can certify of a constraint at best.
#[derive(Debug, Clone, PartialEq)]
pub enum Reach {
    /// The cost is a property of the prompt.
    Known,
    /// At most so many of the examples may have the event; `None`: not even none is enough.
    Events(Option<usize>),
    /// A mean of at most this, if every example costs the same; less, the more they differ. `None`: no mean is enough.
    Mean(Option<f64>),
    /// It cannot be certified, and why.
    Untestable(String),
}

impl Reach {
    /// The same in a sentence, of a metric and its threshold.
    pub fn sentence(&self, metric: &str, threshold: f64, examples: usize) -> String {
        match self {
            Self::Known => format!("{metric} ≤ {threshold} is known of each prompt."),
            Self::Events(Some(most)) => {
                format!("{metric} ≤ {threshold} is certified by at most {most} of {examples} examples.")
            }
            Self::Mean(Some(most)) => format!(
                "{metric} ≤ {threshold} is certified by a mean of at most {most:.3}, and a smaller one where examples differ."
            ),
            Self::Events(None) | Self::Mean(None) => {
                format!(
                    "{examples} examples are too few to certify {metric} ≤ {threshold}, whatever they measure."
                )
            }
            Self::Untestable(reason) => format!("{metric} cannot be certified: {reason}."),
        }
    }
}

/// What the reserve of a study can certify of a metric below a threshold.
pub fn reach(spec: &MetricSpec, threshold: f64, confirm: &Confirm, repeats: u32) -> Reach {
    let (n, alpha) = (confirm.examples, 1.0 - confirm.confidence);
    match Law::of(spec, threshold, confirm, repeats) {
        Err(reason) => Reach::Untestable(reason),
        Ok(Law::Known) => Reach::Known,
        Ok(Law::TwoValued { low, width }) => {
            Reach::Events(binomial::most_certified(n, (threshold - low) / width, alpha))
        }
        Ok(Law::Bounded { low, width, .. }) => {
            let mean = (threshold - low) / width;
            let shows = |constant: f64| {
                let values = vec![constant; n];
                let bets = betting::bets(&values, n, alpha);
                mean > 0.0 && betting::log_capital(&values, &bets, mean, BLOCK) >= -libm::log(alpha)
            };
            let (mut least, mut most) = (0.0, 1.0);
            if !shows(least) {
                return Reach::Mean(None);
            }
            for _ in 0..40 {
                let middle = f64::midpoint(least, most);
                if shows(middle) {
                    least = middle;
                } else {
                    most = middle;
                }
            }
            Reach::Mean(Some(low + width * least))
        }
    }
}
