use capo_core::journal::SteerEvent;
use capo_core::methods;
use capo_core::reading::standing;
use capo_core::run_state::RunState;
use indexmap::IndexMap;

use crate::run::fixture::events;
use crate::run::overview::Overviews;

/// What is kept from change to change must say what a journal read anew says.
fn agrees_at_every_line(change: impl Fn(&mut capo_core::study::Study), steer: Option<SteerEvent>) {
    let mut state = RunState::default();
    let mut kept = Overviews::default();
    for (line, event) in (0..).zip(events(change, steer)) {
        state.apply(&event, line).unwrap();
        let followed = kept.after(line, &state).unwrap();
        let anew = Overviews::default().after(line, &state).unwrap();
        assert!(followed == anew, "line {line}: {event:?}");
        assert_eq!(
            followed.map.places.len(),
            standing::standings(&state, &methods::multipliers_now(&state)).len()
        );
    }
}

#[test]
fn an_overview_that_follows_is_one_made_anew() {
    agrees_at_every_line(|_| {}, None);
}

#[test]
fn it_is_so_for_batches_repeats_and_thresholds_changed_by_hand() {
    let steer = SteerEvent {
        thresholds: Some(IndexMap::from([("human_requests".to_owned(), 0.9)])),
        multipliers: Some(IndexMap::from([("excess_tools".to_owned(), 3.0)])),
        ..SteerEvent::default()
    };
    let change = |study: &mut capo_core::study::Study| {
        study.study.batch = Some(5);
        study.study.repeats = 2;
        study.study.rounds = capo_core::study::Rounds::Count(4);
    };
    agrees_at_every_line(change, Some(steer));
}

#[test]
fn the_same_line_is_answered_from_what_is_there() {
    let state = crate::run::fixture::finished();
    let mut kept = Overviews::default();
    let first = kept.after(7, &state).unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &kept.after(7, &state).unwrap()));
    assert!(!std::sync::Arc::ptr_eq(&first, &kept.after(8, &state).unwrap()));
}
