use capo_core::journal::{Event, SteerEvent};
use capo_core::methods;
use capo_core::reading::examples::Examples;
use capo_core::reading::in_force;
use capo_core::reading::{lineage, measured, metrics, standing};
use capo_core::workload::Split;
use indexmap::IndexMap;

use crate::run::fixture::{events, finished, fold, until};
use crate::run::heat::{self, Heat};
use crate::run::map::Map;
use crate::run::rounds;
use crate::run::series::Series;

#[test]
fn round_r_on_screen_is_what_was_known_after_the_journals_round_r_minus_1() {
    let state = finished();
    let series = Series::new(&state).unwrap();
    assert_eq!(series.rounds.len(), 4, "the seed and three rounds");
    let seed = lineage::seed(&state).unwrap();
    let first = &series.rounds[0];
    assert_eq!(
        (first.round, first.best.as_slice(), first.others.len()),
        (0, &[seed][..], 0)
    );
    assert_eq!(rounds::name(first.round), "seed");
    for (closed, point) in state.rounds().iter().zip(&series.rounds[1..]) {
        assert_eq!(point.round, closed.round + 1);
        assert_eq!(point.best, closed.best);
        assert_eq!(point.others.len() + point.best.len(), closed.scores.len());
        let score = &closed.scores[&closed.best[0]];
        let leading = point.leading.as_ref().unwrap();
        assert_eq!(leading.objective.mean, score.objective);
        assert_eq!(leading.costs["excess_tools"].mean, score.costs["excess_tools"]);
        assert_eq!(leading.costs["prompt_length"].standard_error, 0.0);
        assert_eq!(leading.objective.n, 12);
        assert_eq!(point.pool.len(), closed.retained.len());
    }
    assert_eq!(series.cap, Some(10.0));
    for constraint in &series.constraints {
        let used: Vec<f64> = state
            .rounds()
            .iter()
            .map(|round| round.multipliers[constraint.metric.name()])
            .collect();
        assert_eq!(constraint.multipliers[0], None);
        assert_eq!(
            constraint.multipliers[1..]
                .iter()
                .copied()
                .flatten()
                .collect::<Vec<_>>(),
            used
        );
        assert_eq!(constraint.thresholds.len(), constraint.multipliers.len());
    }
    assert_eq!((series.under_way, series.planned), (None, Some(3)));
}

#[test]
fn the_axis_of_a_run_without_a_plan_grows_in_steps_and_ends_with_it() {
    let series = Series::new(&finished()).unwrap();
    let last = |planned, under_way| {
        let series = Series {
            under_way,
            planned,
            ..series.clone()
        };
        series.last_round()
    };
    assert_eq!(last(Some(6), Some(4)), 6);
    assert_eq!(
        [last(None, Some(4)), last(None, Some(10)), last(None, Some(11))],
        [10, 10, 20]
    );
    assert_eq!(last(None, None), series.closed());
}

#[test]
fn means_are_those_the_search_computed() {
    let state = finished();
    let objective = metrics::objective(&state).unwrap();
    for (id, score) in &state.rounds().last().unwrap().scores {
        let measured = measured::on_split(&state, id, Split::Optimize);
        assert!(measured.examples.is_whole());
        assert_eq!(measured.examples.of, 12);
        assert_eq!(measured.estimates[objective.name()].mean, score.objective);
        for (metric, cost) in &score.costs {
            assert_eq!(measured.estimates[metric].mean, *cost);
        }
    }
    let held_out = measured::on_split(&state, &state.finished().unwrap().best.unwrap(), Split::Evaluate);
    for (metric, estimate) in &state.finished().unwrap().evaluation {
        assert_eq!(&held_out.estimates[metric], estimate);
    }
}

#[test]
fn the_round_under_way_counts_by_the_multipliers_it_uses() {
    let events = events(|_| {}, None);
    let state = until(
        &events,
        |event| matches!(event, Event::Round(round) if round.round == 0),
    );
    let series = Series::new(&state).unwrap();
    assert_eq!(series.under_way, Some(2));
    assert_eq!(
        methods::multipliers(&state, 1),
        state.rounds()[0].next_multipliers
    );
    let standings = standing::standings(&state, &methods::multipliers_now(&state));
    let limits = in_force::limits(&state, Some(1));
    for scored in standings.values() {
        let penalty: f64 = limits
            .iter()
            .map(|(metric, limit)| {
                state.rounds()[0].next_multipliers[metric] * limit.residual(scored.costs[metric].mean)
            })
            .sum();
        assert!((scored.lagrangian - (scored.objective.mean - penalty)).abs() < 1e-12);
    }
    // Before any round λ is where the method starts.
    let begun = fold(&events[..1]);
    assert_eq!(methods::multipliers(&begun, 0)["excess_tools"], 1.0);
    assert!(Series::new(&begun).unwrap().rounds.is_empty());
}

#[test]
fn a_steered_threshold_is_a_step_in_the_round_it_applies_to() {
    let steer = SteerEvent {
        thresholds: Some(IndexMap::from([("human_requests".to_owned(), 0.9)])),
        ..SteerEvent::default()
    };
    let state = fold(&events(|_| {}, Some(steer)));
    let series = Series::new(&state).unwrap();
    let constraint = series.constraint("human_requests").unwrap();
    let (some, changed) = (Some(0.4), Some(0.9));
    assert_eq!(constraint.thresholds, [some, some, changed, changed]);
    let step = constraint.steps[0];
    assert_eq!((step.round, step.from, step.to), (2, Some(0.4), 0.9));
    assert_eq!(in_force::thresholds(&state, Some(0))["human_requests"], 0.4);
}

#[test]
fn a_batch_is_drawn_as_the_search_draws_it() {
    let state = fold(&events(|study| study.study.batch = Some(5), None));
    for closed in state.rounds() {
        let examples = Examples::of_round(&state, closed.round);
        let record = &state.study().unwrap().workloads[0];
        let drawn: Vec<&String> = examples.places[0]
            .iter()
            .map(|place| &record.optimize[*place])
            .collect();
        let named: Vec<&String> = closed.batch.as_ref().unwrap()[0].iter().collect();
        assert_eq!(drawn, named);
    }
    let series = Series::new(&state).unwrap();
    assert_eq!(series.rounds[1].leading.as_ref().unwrap().objective.n, 5);
}

#[test]
fn a_relative_threshold_is_known_once_the_seed_is_measured() {
    let relative = |study: &mut capo_core::study::Study| {
        study.constraints[1].threshold = None;
        study.constraints[1].relative_to_seed = Some(0.5);
    };
    let events = events(relative, None);
    assert!(!in_force::thresholds(&fold(&events[..2]), None).contains_key("excess_tools"));
    let state = fold(&events);
    for closed in state.rounds() {
        let limits = in_force::limits(&state, Some(closed.round));
        for score in closed.scores.values() {
            let kept = limits
                .iter()
                .all(|(metric, limit)| limit.is_satisfied(score.costs[metric]));
            assert_eq!(score.feasible, kept);
        }
    }
}

#[test]
fn a_late_constraint_has_no_threshold_before_it_enters() {
    let state = fold(&events(|study| study.constraints[1].from_round = 1, None));
    let series = Series::new(&state).unwrap();
    let constraint = series.constraint("excess_tools").unwrap();
    assert_eq!(constraint.thresholds, [None, None, Some(1.3), Some(1.3)]);
    assert_eq!(constraint.multipliers[..3], [None, None, Some(0.0)]);
}

#[test]
fn the_course_leads_from_the_seed_to_the_best() {
    let state = finished();
    let map = Map::new(&state);
    assert_eq!(map.places.len(), state.candidates().len());
    assert_eq!(map.best.is_some(), map.feasible() > 0);
    assert!(map.best.is_some(), "the small desk has a feasible prompt");
    assert_eq!(map.course.first(), map.seed.as_ref());
    assert_eq!(map.course.last(), map.best.as_ref());
    for pair in map.course.windows(2) {
        assert!(state.candidate(&pair[1]).unwrap().parents.contains(&pair[0]));
    }
    for place in &map.places {
        let residual = place.worst_residual.unwrap();
        assert_eq!(place.scored.feasible, residual <= 0.0, "{place:?}");
    }
}

#[test]
fn the_heat_table_is_sorted_by_how_many_prompts_solve_an_example() {
    let state = finished();
    let best = state.finished().unwrap().best.unwrap();
    let shown = heat::beside(&state, best);
    assert_eq!(
        (shown.first(), shown.last()),
        (Some(&best), lineage::seed(&state).as_ref())
    );
    let objective = metrics::objective(&state).unwrap();
    let heat = Heat::new(&state, &shown, &objective, Split::Optimize);
    let solved: Vec<f64> = (0..heat.examples.len())
        .map(|column| heat.rows.iter().filter_map(|row| row.values[column]).sum())
        .collect();
    assert_eq!(solved.len(), 12);
    assert!(solved.windows(2).all(|pair| pair[0] >= pair[1]), "{solved:?}");
    // Another metric keeps the order of the columns.
    let tools = metrics::named(&state, "excess_tools").unwrap();
    let other = Heat::new(&state, &shown, &tools, Split::Optimize);
    assert_eq!(other.examples, heat.examples);
    assert_eq!(
        heat.rows[0].estimate.unwrap().mean,
        state.finished().unwrap().final_scores[&best].objective
    );
}
