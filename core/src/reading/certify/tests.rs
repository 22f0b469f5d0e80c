use proptest::prelude::*;
use rand::RngExt;
use serde::Deserialize;

use super::*;
use crate::random::Streams;

#[derive(Deserialize)]
struct Reference {
    binomial: Vec<OfBinomial>,
    betting: Vec<OfBetting>,
}

#[derive(Deserialize)]
struct OfBinomial {
    events: usize,
    trials: usize,
    threshold: f64,
    at_most: f64,
    upper: f64,
}

#[derive(Deserialize)]
struct OfBetting {
    values: Vec<f64>,
    reserve: usize,
    mean: f64,
    alpha: f64,
    log_capital: Vec<f64>,
    upper: f64,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("reference.json")).unwrap()
}

fn close(ours: f64, theirs: f64) -> bool {
    (ours - theirs).abs() <= 1e-9 * theirs.abs().max(1e-12)
}

#[test]
fn binomial_tests_and_bounds_are_those_of_scipy() {
    for case in reference().binomial {
        let OfBinomial {
            events,
            trials,
            threshold,
            ..
        } = case;
        let what = format!("{events} of {trials} at {threshold}");
        assert!(
            close(binomial::at_most(events, trials, threshold), case.at_most),
            "{what}"
        );
        assert!(
            close(binomial::upper_bound(events, trials, 0.05), case.upper),
            "{what}"
        );
    }
}

#[test]
fn betting_test_martingales_and_bounds_are_those_of_confseq() {
    for case in reference().betting {
        let bets = betting::bets(&case.values, case.reserve, case.alpha);
        for (count, theirs) in (1..).zip(&case.log_capital) {
            // Looked at only at its end, the largest capital is the last one or 1.
            let ours = betting::log_capital(&case.values[..count], &bets[..count], case.mean, usize::MAX);
            assert!(close(ours, theirs.max(0.0)), "after {count}: {ours} and {theirs}");
        }
        let ours = betting::upper_bound(&case.values, &bets, usize::MAX, case.alpha);
        assert!(close(ours, case.upper), "{ours} and {}", case.upper);
    }
}

fn confirm(examples: usize) -> Confirm {
    Confirm::of(examples)
}

fn question<'a>(spec: &'a MetricSpec, threshold: f64, confirm: &'a Confirm) -> Question<'a> {
    Question {
        spec,
        threshold,
        confirm,
        repeats: 1,
        among: 2,
        largest: None,
    }
}

/// So many events among so many examples, evenly spread.
fn costs(events: usize, of: usize) -> Vec<Option<f64>> {
    let happens = |place: usize| place * events % of < events;
    (0..of)
        .map(|place| Some(f64::from(u8::from(happens(place)))))
        .collect()
}

#[test]
fn forty_examples_certify_what_nine_of_them_show() {
    let (event, kept) = (MetricSpec::event("transfers", "rate", ""), confirm(40));
    assert_eq!(reach(&event, 0.37, &kept, 1), Reach::Events(Some(9)));
    let verdict = |events| {
        question(&event, 0.37, &kept)
            .answer(&costs(events, 40))
            .finding
            .verdict
    };
    assert_eq!(
        [9, 10, 20, 35].map(verdict),
        [
            Verdict::Certified,
            Verdict::Undecided,
            Verdict::Undecided,
            Verdict::Refuted
        ]
    );
    // Five examples cannot show that something happens in less than a third of cases.
    assert_eq!(reach(&event, 0.3, &confirm(5), 1), Reach::Events(None));
    let standing = question(&event, 0.3, &confirm(5)).answer(&[]);
    assert!(!standing.open, "nothing is bought that cannot decide");
}

#[test]
fn a_binomial_test_stops_where_it_is_lost_and_counts_what_it_did_not_see_as_events() {
    let (event, kept) = (MetricSpec::event("transfers", "rate", ""), confirm(40));
    let standing = |events, of| question(&event, 0.37, &kept).answer(&costs(events, of));
    assert!(standing(9, 20).open);
    let lost = standing(10, 20);
    assert_eq!((lost.open, lost.finding.verdict), (false, Verdict::Undecided));
    let early = standing(0, 20);
    assert!(early.open && close(early.finding.p, binomial::at_most(20, 40, 0.37)));
    assert_eq!(
        early.finding.upper,
        Some(binomial::upper_bound(20, 40, 0.050_000_000_000_000_044))
    );
    assert_eq!(standing(28, 30).finding.verdict, Verdict::Refuted);
}

#[test]
fn repeats_of_one_example_are_one_cluster() {
    let (event, kept) = (MetricSpec::event("transfers", "rate", ""), confirm(40));
    let halves = vec![Some(0.5); 40];
    let of = |repeats| {
        Question {
            repeats,
            ..question(&event, 0.9, &kept)
        }
        .answer(&halves)
        .finding
    };
    assert_eq!((of(2).test, of(2).verdict), (Test::Betting, Verdict::Certified));
    let alone = of(1);
    assert_eq!((alone.test, alone.verdict), (Test::None, Verdict::Undecided));
    assert_eq!(
        alone.reason.as_deref(),
        Some("an example measured 0.5, neither 0 nor 1")
    );
}

#[test]
fn costs_without_a_largest_value_need_a_stated_one() {
    let calls = MetricSpec::cost("calls", "calls per dialogue", "");
    let mut kept = confirm(60);
    let found = question(&calls, 2.0, &kept).answer(&vec![Some(0.5); 60]);
    assert_eq!((found.finding.test, found.open), (Test::None, false));
    assert!(
        found
            .finding
            .reason
            .unwrap()
            .contains("`calls = …` under [confirm.bounds]")
    );
    assert!(matches!(reach(&calls, 2.0, &kept, 1), Reach::Untestable(_)));

    kept.bounds.insert("calls".into(), 8.0);
    let found = question(&calls, 2.0, &kept).answer(&vec![Some(0.5); 60]).finding;
    assert_eq!(
        (found.test, found.verdict, found.mean),
        (Test::Betting, Verdict::Certified, Some(0.5))
    );
    assert!(
        found.upper.unwrap() > 0.5 && found.upper < found.simultaneous && found.simultaneous.unwrap() < 2.0
    );
    let above = question(&calls, 2.0, &kept)
        .answer(&[Some(0.5), Some(9.0)])
        .finding;
    assert_eq!(
        above.reason.as_deref(),
        Some("an example measured 9, and it is said to be at most 8")
    );
    // What could not be measured counts as the worst.
    let with_failures = question(&calls, 2.0, &kept).answer(&[Some(0.0), None]).finding;
    assert_eq!(with_failures.mean, Some(4.0));
    // And speaks for nothing where it would refute: nobody knows what it cost.
    let failed = question(&calls, 2.0, &kept).answer(&[None; 60]).finding;
    assert_eq!((failed.verdict, failed.mean), (Verdict::Undecided, Some(8.0)));
    let of_search = Question {
        largest: Some(8.5),
        ..question(&calls, 2.0, &kept)
    };
    let reason = of_search.answer(&[Some(0.5)]).finding.reason.unwrap();
    assert_eq!(reason, "an example measured 8.5, and it is said to be at most 8");
    let Reach::Mean(Some(most)) = reach(&calls, 2.0, &kept, 1) else {
        panic!("a mean can be certified")
    };
    assert!((0.5..2.0).contains(&most), "{most}");
}

#[test]
fn a_cost_that_may_be_negative_can_be_certified_but_not_refuted() {
    let excess = MetricSpec {
        min: None,
        ..MetricSpec::cost("excess", "share", "")
    };
    let mut kept = confirm(100);
    kept.bounds.insert("excess".into(), 5.0);
    let of = |cost| {
        question(&excess, 1.0, &kept)
            .answer(&vec![Some(cost); 100])
            .finding
            .verdict
    };
    assert_eq!(
        [-1.0, 0.2, 4.0].map(of),
        [Verdict::Certified, Verdict::Certified, Verdict::Undecided]
    );
}

#[test]
fn the_length_of_a_prompt_is_known() {
    let (length, kept) = (MetricSpec::prompt_length(), confirm(20));
    let of = |cost: f64| question(&length, 5.0, &kept).answer(&[Some(cost)]).finding;
    assert_eq!((of(5.0).verdict, of(5.0).p), (Verdict::Certified, 0.0));
    assert_eq!((of(5.1).verdict, of(5.1).test), (Verdict::Refuted, Test::Known));
}

#[test]
fn how_many_more_are_needed_is_what_would_do_at_the_same_cost() {
    let (event, kept) = (MetricSpec::event("transfers", "rate", ""), confirm(40));
    let more = question(&event, 0.37, &kept)
        .answer(&costs(12, 40))
        .finding
        .more
        .unwrap();
    let needed = 40 + more;
    let events = (0.3 * needed as f64).ceil() as usize;
    assert!(binomial::at_most(events, needed, 0.37) <= 0.05, "{more}");
    assert!((60..160).contains(&more), "{more}");
    assert_eq!(
        question(&event, 0.37, &kept).answer(&costs(15, 40)).finding.more,
        None
    );
    let bounded = MetricSpec {
        binary: false,
        ..event
    };
    let more = question(&bounded, 0.37, &kept)
        .answer(&costs(12, 40))
        .finding
        .more
        .unwrap();
    assert!((60..400).contains(&more), "{more}");
    assert_eq!(
        question(&bounded, 0.37, &kept)
            .answer(&costs(15, 40))
            .finding
            .more,
        None
    );
}

#[test]
fn a_threshold_at_the_smallest_or_the_largest_cost_is_decided_by_what_is_possible() {
    let mut kept = confirm(40);
    kept.bounds.insert("violations".into(), 5.0);
    let violations = MetricSpec::cost("violations", "writes", "");
    let event = MetricSpec::event("transfers", "rate", "");
    let answer = |spec, threshold, costs: &[Option<f64>]| question(spec, threshold, &kept).answer(costs);
    for spec in [&violations, &event] {
        let nothing = answer(spec, 0.0, &[]);
        assert_eq!(
            (nothing.finding.verdict, nothing.open),
            (Verdict::Undecided, false),
            "no number can show it"
        );
        let never = answer(spec, 0.0, &costs(0, 40)).finding;
        assert_eq!((never.verdict, never.more), (Verdict::Undecided, None));
        assert_eq!(answer(spec, 0.0, &costs(1, 40)).finding.verdict, Verdict::Refuted);
    }
    assert_eq!(reach(&violations, 0.0, &kept, 1), Reach::Mean(None));
    assert_eq!(reach(&event, 0.0, &kept, 1), Reach::Events(None));
    assert_eq!(
        answer(&event, 1.0, &costs(40, 40)).finding.verdict,
        Verdict::Certified
    );
    assert_eq!(reach(&event, 1.0, &kept, 1), Reach::Events(Some(40)));
}

/// How often shares whose true mean lies at the threshold are certified, and refuted, in `TRIALS` of `n`.
fn errors(n: usize, spec: &MetricSpec, threshold: f64, draw: impl Fn(f64) -> f64) -> [f64; 2] {
    let kept = confirm(n);
    let law = Law::of(spec, threshold, &kept, 1).unwrap();
    let question = question(spec, threshold, &kept);
    let mut found = [0.0; 2];
    for trial in 0..TRIALS {
        let mut draws = Streams::new(9).stream("boundary", n as u64, trial);
        let shares: Vec<f64> = (0..n).map(|_| draw(draws.random())).collect();
        // As the search does: block by block, until it is decided.
        let verdicts = (1..=n.div_ceil(BLOCK)).map(|blocks| {
            question
                .evidence(
                    &law,
                    &shares[..(blocks * BLOCK).min(n)],
                    &shares[..(blocks * BLOCK).min(n)],
                    threshold,
                )
                .verdict(question.alpha())
        });
        match verdicts
            .into_iter()
            .find(|verdict| *verdict != Verdict::Undecided)
        {
            Some(Verdict::Certified) => found[0] += 1.0 / TRIALS as f64,
            Some(Verdict::Refuted) => found[1] += 1.0 / TRIALS as f64,
            _ => {}
        }
    }
    found
}

const TRIALS: u64 = 10_000;

#[test]
fn at_the_boundary_no_test_errs_more_often_than_it_says() {
    let most = 0.05 + 2.0 * (0.05_f64 * 0.95 / TRIALS as f64).sqrt();
    let event = MetricSpec::event("transfers", "rate", "");
    let bounded = MetricSpec {
        binary: false,
        ..event.clone()
    };
    let happens = |probability: f64| move |uniform: f64| f64::from(u8::from(uniform < probability));
    for (n, spec, threshold) in [(40, &event, 0.37), (60, &bounded, 0.37), (60, &bounded, 0.05)] {
        let found = errors(n, spec, threshold, happens(threshold));
        assert!(
            found.iter().all(|share| *share <= most),
            "{n}, {threshold}: {found:?}"
        );
    }
    // The square of a uniform number has a mean of a third.
    let found = errors(80, &bounded, 1.0 / 3.0, |uniform| uniform * uniform);
    assert!(found.iter().all(|share| *share <= most), "{found:?}");
}

proptest! {
    #[test]
    fn bounds_and_p_values_agree(events in 0_usize..=60, threshold in 0.02..0.98_f64, binary: bool) {
        let spec = MetricSpec { binary, ..MetricSpec::event("transfers", "rate", "") };
        let kept = confirm(60);
        let mut shown = costs(events, 60);
        shown.rotate_left(events * 7 % 60);
        let found = question(&spec, threshold, &kept).answer(&shown).finding;
        let (upper, simultaneous) = (found.upper.unwrap(), found.simultaneous.unwrap());
        prop_assert!(upper <= simultaneous + 1e-9);
        // Within rounding of each other, one may say yes and the other no.
        if (upper - threshold).abs() > 1e-6 {
            prop_assert_eq!(found.verdict == Verdict::Certified, upper < threshold);
        }
    }
}
