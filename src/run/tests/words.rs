use capo_core::journal::{EffectName, Event, FailureEvent, Status, SteerEvent};
use capo_core::llm::FailureKind;
use capo_core::reading::phase::Phase;
use capo_core::run_state::RunState;
use capo_core::usage::Usage;
use indexmap::IndexMap;

use crate::run::activity::{Activity, Kind, failure_rows};
use crate::run::fixture::{events, finished, fold};
use crate::run::map::Map;
use crate::run::now::Now;
use crate::run::outcome::Outcome;
use crate::run::readings;
use crate::run::series::Series;

fn log(events: &[Event]) -> Activity {
    let mut state = RunState::default();
    let mut activity = Activity::new();
    for (line, event) in (0..).zip(events) {
        state.apply(event, line).unwrap();
        activity.follow(event, &state, Some(line as f64));
    }
    activity
}

fn headlines(activity: &Activity, kind: Kind) -> Vec<String> {
    let entries = activity.entries().iter().filter(|entry| entry.kind == kind);
    entries.map(|entry| entry.headline.to_string()).collect()
}

#[test]
fn the_log_tells_rounds_children_and_the_end() {
    let events = events(|_| {}, None);
    let activity = log(&events);
    let rounds = headlines(&activity, Kind::Round);
    assert!(
        rounds[0].starts_with("Round 1: one parent drawn, two children written."),
        "{rounds:?}"
    );
    let closed: Vec<&String> = rounds.iter().filter(|line| line.contains("closed")).collect();
    assert_eq!(closed.len(), 3);
    let first: Vec<&&String> = closed
        .iter()
        .filter(|line| line.contains("First prompt feasible on the search examples: "))
        .collect();
    // A seed that was feasible comes before any other prompt.
    let seed = capo_core::reading::lineage::seed(&fold(&events)).unwrap();
    let by_then = events.iter().find_map(|event| match event {
        Event::Round(round) if round.scores.values().any(|score| score.feasible) => Some(&round.scores),
        _ => None,
    });
    let seed_was = by_then.unwrap().get(&seed).is_some_and(|score| score.feasible);
    assert_eq!(first.len(), usize::from(!seed_was), "{closed:?}");
    let children = headlines(&activity, Kind::Child);
    assert!(
        children[0].starts_with("Child 1 of 2 evaluated: "),
        "{children:?}"
    );
    assert_eq!(children.len(), fold(&events).candidates().len() - 1);
    let run = headlines(&activity, Kind::Run);
    assert!(run[0].contains("eight held-out examples"), "{run:?}");
    assert!(
        run.last()
            .unwrap()
            .starts_with("Finished. Best prompt, feasible on the search examples: "),
        "{run:?}"
    );
    let multipliers = activity
        .entries()
        .iter()
        .find(|entry| entry.headline.to_string().contains("closed"));
    assert!(
        multipliers
            .unwrap()
            .detail
            .to_string()
            .starts_with("Multipliers: human requests ")
    );
}

#[test]
fn a_budget_that_cannot_be_kept_is_not_called_spent() {
    let mut events = events(|study| study.budget.usd = Some(5.0), None);
    let said = |events: &[Event]| headlines(&log(events), Kind::Run).pop().unwrap();
    for (reason, words) in [
        (
            "mine's price is unknown, so a budget of $5.00 cannot be kept; drop `usd`",
            "The budget of $5.00 cannot be kept. Best so far is kept. Go on without one of dollars.",
        ),
        (
            "$5.0010 of $5.0000",
            "The budget of $5.00 is spent. Best so far is kept. Raise it to go on.",
        ),
        (
            "300 of 300 model calls",
            "The budget is spent. Best so far is kept. Raise it to go on.",
        ),
    ] {
        let Some(Event::Finished(finished)) = events.last_mut() else {
            panic!("no end");
        };
        finished.status = Status::Budget;
        finished.reason = Some(reason.to_owned());
        assert_eq!(said(&events), words);
    }
}

#[test]
fn failures_in_a_row_are_one_entry_that_says_what_became_of_them() {
    let events = events(|_| {}, None);
    let rollouts: Vec<usize> = (0..events.len())
        .filter(|place| matches!(events[*place], Event::Rollout(_)))
        .take(2)
        .collect();
    let failure = |place: usize| {
        let Event::Rollout(rollout) = &events[place] else {
            panic!("no rollout");
        };
        Event::Failure(FailureEvent {
            of: EffectName::Rollout {
                candidate: rollout.candidate,
                split: rollout.split,
                workload: rollout.workload.clone(),
                example: rollout.example.clone(),
                repeat: rollout.repeat,
            },
            kind: FailureKind::RateLimit,
            message: "HTTP 429: slow down".into(),
            attempt: 1,
            tries: 1,
            usage: Usage::default(),
            answer: None,
            answers: Vec::new(),
        })
    };
    let mut with_failures = events[..rollouts[0]].to_vec();
    with_failures.extend([failure(rollouts[0]), failure(rollouts[1])]);
    let open = log(&with_failures);
    assert_eq!(
        headlines(&open, Kind::Failure),
        ["The simulated model asked to wait, twice."]
    );
    assert_eq!(
        open.entries()[0].detail.to_string(),
        "HTTP 429: slow down. Nothing was counted as a score."
    );
    assert_eq!(failure_rows(open.failures(), None)[0].done, "Not answered yet.");
    with_failures.extend(events[rollouts[0]..].iter().cloned());
    let done = log(&with_failures);
    assert_eq!(
        done.entries()[0].detail.to_string(),
        "HTTP 429: slow down. Tried again, then answered. Nothing was counted as a score."
    );
    let rows = failure_rows(done.failures(), None);
    assert_eq!((rows[0].kind.as_str(), rows[0].times), ("Rate limit", 2));
    assert_eq!(rows[0].done, "Tried again, then answered.");
    let nobody = capo_core::ids::CandidateId::of("nobody");
    assert!(failure_rows(done.failures(), Some(nobody)).is_empty());
}

#[test]
fn steering_and_resuming_are_told() {
    let steer = SteerEvent {
        multipliers: Some(IndexMap::from([("prompt_length".to_owned(), 0.5)])),
        thresholds: Some(IndexMap::from([("human_requests".to_owned(), 0.35)])),
        ..SteerEvent::default()
    };
    let mut events = events(|_| {}, Some(steer));
    assert_eq!(
        headlines(&log(&events), Kind::Steering),
        [
            "You set the threshold of human requests to 35%, from round 2.",
            "You set λ prompt length to 0.50, from round 2.",
        ]
    );
    let Some(Event::Finished(finished)) = events.last().cloned() else {
        panic!("the run ended");
    };
    events.push(Event::Steer(SteerEvent {
        round: 3,
        ..SteerEvent::default()
    }));
    events.push(Event::Finished(Box::new(capo_core::journal::FinishedEvent {
        status: Status::Stopped,
        ..*finished
    })));
    let run = headlines(&log(&events), Kind::Run);
    let rollouts = fold(&events).rollouts().count();
    assert_eq!(
        run[run.len() - 2..],
        [
            format!("Went on after round 3; {rollouts} rollouts taken from the journal, none repeated."),
            "Stopped. What was answered is counted and kept.".to_owned(),
        ]
    );
}

#[test]
fn a_run_that_was_cut_off_goes_on_in_the_round_it_stood_in() {
    let events = events(|_| {}, None);
    let closed = events.iter().position(|event| matches!(event, Event::Round(_)));
    let cut = &events[..closed.unwrap() + 3];
    let (state, mut activity) = (fold(cut), log(cut));
    activity.resumed(&state, None);
    let rollouts = state.rollouts().count();
    let said = format!("Went on from round 2; {rollouts} rollouts taken from the journal, none repeated.");
    assert_eq!(headlines(&activity, Kind::Run), [said]);
}

#[test]
fn a_stopped_run_does_not_count_what_it_pays_for_next() {
    let mut events = events(|_| {}, None);
    let end = events.pop();
    let Some(Event::Finished(finished)) = end else {
        panic!("the run ended");
    };
    let closed = events
        .iter()
        .position(|event| matches!(event, Event::Round(_)))
        .unwrap();
    let begun = |event: &Event| matches!(event, Event::Rollout(_));
    let next = closed + events[closed..].iter().position(begun).unwrap();
    let stop = Event::Finished(Box::new(capo_core::journal::FinishedEvent {
        status: Status::Stopped,
        ..*finished
    }));
    let rollouts = fold(&events[..next]).rollouts().count();
    events.insert(next, stop);
    let run = headlines(&log(&events[..next + 2]), Kind::Run);
    let said = format!("Went on from round 2; {rollouts} rollouts taken from the journal, none repeated.");
    assert_eq!(run.last(), Some(&said));
}

#[test]
fn the_objectives_reading_calls_equal_what_reads_equal() {
    let mut series = Series::new(&finished()).unwrap();
    series.constraints.clear();
    let mut reading = |means: [f64; 4]| {
        let rounds = std::sync::Arc::make_mut(&mut series.rounds);
        for (point, mean) in rounds.iter_mut().zip(means) {
            point.leading.as_mut().unwrap().objective.mean = mean;
        }
        readings::objective(&series).to_string()
    };
    for (means, said) in [
        ([0.446, 0.3, 0.4, 0.446], "is at 44.6%, as the seed is."),
        ([0.446_4, 0.3, 0.4, 0.446], "is at 44.6%, as the seed is."),
        ([0.446, 0.3, 0.4, 0.432], "is at 43.2%, below the seed's 44.6%."),
        (
            [0.446, 0.73, 0.6, 0.73],
            "reached 73.0% in round 1 and is there now.",
        ),
        (
            [0.446, 0.73, 0.6, 0.7],
            "was highest in round 1, 73.0%, and is at 70.0% now.",
        ),
        ([0.446, 0.5, 0.6, 0.7], "reached 70.0% in round 3."),
    ] {
        assert_eq!(reading(means), format!("Best by J {said}"));
    }
}

#[test]
fn every_plate_has_a_reading_at_every_moment() {
    let events = events(|_| {}, None);
    let mut state = RunState::default();
    let mut last = Vec::new();
    for (line, event) in (0..).zip(&events) {
        state.apply(event, line).unwrap();
        let significant = !matches!(event, Event::Rollout(_)) || line % 20 == 0;
        if !significant {
            continue;
        }
        let series = Series::new(&state).unwrap();
        let mut said = vec![readings::objective(&series)];
        said.extend(
            series
                .constraints
                .iter()
                .map(|of| readings::constraint(&series, of)),
        );
        said.push(readings::map(&state, &Map::new(&state)));
        for sentence in &said {
            let text = sentence.to_string();
            assert!(text.ends_with('.') && !text.contains("NaN"), "{text:?}");
        }
        let said: Vec<String> = said.iter().map(ToString::to_string).collect();
        last = said;
    }
    assert!(
        last[4].contains("is the lineage of the best prompt feasible on the search examples"),
        "{last:?}"
    );
}

#[test]
fn an_unattainable_threshold_ends_at_the_cap() {
    let state = fold(&events(
        |study| {
            study.constraints[1].threshold = Some(-0.9);
            study.study.rounds = capo_core::study::Rounds::Count(5);
        },
        None,
    ));
    let series = Series::new(&state).unwrap();
    let constraint = series.constraint("excess_tools").unwrap();
    let since = constraint.at_cap_since().unwrap();
    let reading = readings::constraint(&series, constraint).to_string();
    let start = "Excess tools has been at its cap for ";
    assert!(
        reading.starts_with(start) && reading.contains(&format!("since round {since}.")),
        "{reading}"
    );
    assert!(reading.contains("threshold −0.90."), "{reading}");
    let outcome = Outcome::new(&state).unwrap();
    let verdict = outcome.verdict.to_string();
    assert!(
        verdict.starts_with("No prompt keeps all thresholds on the search examples. Closest: "),
        "{verdict}"
    );
    assert!(verdict.contains(" on excess tools."), "{verdict}");
    assert_eq!(outcome.all_sat, Some(false));
}

#[test]
fn the_verdict_is_about_examples_never_seen() {
    let outcome = Outcome::new(&finished()).unwrap();
    let verdict = outcome.verdict.to_string();
    assert!(
        verdict.starts_with("On examples it never saw, the best prompt keeps "),
        "{verdict}"
    );
    assert!(verdict.contains("; the seed prompt solved "), "{verdict}");
}

#[test]
fn the_head_says_what_the_run_is_doing() {
    let events = events(|_| {}, None);
    let at = |end: usize| Now::new(&fold(&events[..end])).phase_words();
    let place = |wanted: fn(&Event) -> bool| events.iter().position(wanted).unwrap();
    assert_eq!(at(1), "not begun");
    assert_eq!(at(2), "evaluating the seed prompt, example 1 of 12");
    let critique = place(|event| matches!(event, Event::Critique(_)));
    assert_eq!(at(critique), "writing children");
    let closed = place(|event| matches!(event, Event::Round(_)));
    assert_eq!(at(closed - 3), "evaluating child 2 of 2, example 10 of 12");
    assert_eq!(at(closed), "evaluating child 2 of 2, example 12 of 12");
    let begun = Now::new(&fold(&events[..=closed]));
    assert_eq!(
        (begun.round_words().as_str(), begun.phase_words().as_str()),
        ("Round 2 of 3", "writing children")
    );
    assert_eq!(
        at(events.len() - 1),
        "measuring the best prompts on held-out examples"
    );
    assert_eq!(Now::new(&fold(&events)).phase, Phase::Ended(Status::Feasible));
}

#[test]
fn a_spent_budget_says_what_to_do() {
    let budget = capo_core::budget::Budget {
        usd: Some(0.25),
        ..Default::default()
    };
    let spent = log(&events(|study| study.budget = budget, None));
    let last = spent.entries().last().unwrap();
    assert_eq!(
        last.headline.to_string(),
        "The budget of $0.25 is spent. Best so far is kept. Raise it to go on."
    );
    assert!(last.announce);
}
