use capo_core::journal::Event;
use capo_core::reading::comparison::{self, PromptOf, Verdict};
use capo_core::reading::lineage;
use capo_core::workload::Split;

use crate::run::fixture::{events, finished, fold, until};
use crate::run::outcome::{self, Outcome};
use crate::run::pool::{Gate, Place, Pool};
use crate::run::{paired, report};

#[test]
fn the_pool_tells_children_that_wait_from_those_being_measured() {
    let events = events(|_| {}, None);
    let first_round = events
        .iter()
        .position(|event| matches!(event, Event::Round(_)))
        .unwrap();
    let seed = match &events[1] {
        Event::Candidate(seed) => seed.id,
        other => panic!("{other:?}"),
    };
    let start = Pool::whole(&fold(&events[..3]));
    assert_eq!(start.rows.len(), 1);
    assert!(matches!(start.rows[0].gate, Gate::Undecided(progress) if progress.done < 12));
    assert_eq!(start.rows[0].place, Place::InPool);

    let before = fold(&events[..first_round]);
    let pool = Pool::whole(&before);
    assert_eq!(pool.round, 1);
    assert_eq!((pool.kept, pool.measured, pool.waiting), (1, pool.children, 0));
    let ranks: Vec<f64> = pool.rows.iter().filter_map(|row| row.lagrangian).collect();
    assert!(ranks.windows(2).all(|pair| pair[0] >= pair[1]));
    assert_eq!(before.candidates().len(), pool.rows.len());

    let child_begun = |event: &Event| matches!(event, Event::Rollout(rollout) if rollout.candidate != seed);
    let pool = Pool::whole(&until(&events, child_begun));
    let at = |wanted: fn(&Place) -> bool| pool.rows.iter().filter(|row| wanted(&row.place)).count();
    assert_eq!(
        at(|place| matches!(place, Place::Evaluating(progress) if progress.done == 1)),
        1
    );
    assert_eq!(at(|place| *place == Place::Waiting), pool.waiting);
    assert_eq!(pool.children, pool.waiting + 1);
    assert_eq!(pool.rows.last().unwrap().place, Place::Waiting);

    let end = Pool::whole(&fold(&events));
    assert_eq!(end.kept, fold(&events).rounds().last().unwrap().retained.len());
    assert!(end.rows.iter().any(|row| row.place == Place::Left));
    for row in &end.rows {
        assert_eq!(row.gate == Gate::Feasible, row.missed.is_empty());
    }
}

#[test]
fn differences_are_paired_and_read_by_what_is_good() {
    let state = finished();
    let (best, seed) = (
        state.finished().unwrap().best.unwrap(),
        lineage::seed(&state).unwrap(),
    );
    let of = |candidate| PromptOf {
        state: &state,
        candidate,
    };
    let found = comparison::differences(of(best), of(seed), Split::Evaluate).metrics;
    assert_eq!(found.len(), 4);
    let length = found
        .iter()
        .find(|difference| difference.metric.name() == "prompt_length")
        .unwrap();
    assert_eq!(length.verdict(), Verdict::Worse, "a longer prompt costs more");
    assert!(
        paired::mean(length).starts_with('+') && paired::mean(length).ends_with('k'),
        "{}",
        paired::mean(length)
    );
    for same in comparison::differences(of(best), of(best), Split::Evaluate).metrics {
        assert_eq!(same.verdict(), Verdict::NoClearDifference);
    }
    assert_eq!(comparison::comparable(&state, &state), Ok(()));
    let other = fold(&events(
        |study| drop(study.workload.insert("evaluate".into(), 4.into())),
        None,
    ));
    let refused = comparison::comparable(&state, &other).unwrap_err().to_string();
    assert!(
        refused.contains("held-out examples of `desk` differ"),
        "{refused}"
    );
}

#[test]
fn costs_add_up() {
    let state = finished();
    let costs = outcome::costs(&state);
    let (all, parts) = costs.split_last().unwrap();
    assert_eq!(all.name, "All");
    assert_eq!(
        parts.iter().map(|part| part.usage.calls).sum::<u64>(),
        all.usage.calls
    );
    let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    assert!(
        names.contains(&"Task agent, search") && names.contains(&"Task agent, held out"),
        "{names:?}"
    );
}

#[test]
fn the_report_holds_everything_and_survives_fences() {
    let state = finished();
    let outcome = Outcome::new(&state).unwrap();
    let prompt = &state.candidate(&outcome.best.unwrap()).unwrap().prompt;
    let (markdown, text) = (report::markdown(&state).unwrap(), report::text(&state).unwrap());
    for part in [
        "small desk",
        prompt.trim_end(),
        "Human requests",
        "≤ 40%",
        "95% interval",
        "Task agent, search",
        &outcome.verdict.to_string(),
    ] {
        assert!(markdown.contains(part), "no {part:?} in {markdown}");
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let fenced = fold(&events(
        |study| study.prompt.text = Some("Answer.\n```\ncode\n```\nHelp.".into()),
        None,
    ));
    if fenced.finished().unwrap().best == lineage::seed(&fenced) {
        assert!(report::markdown(&fenced).unwrap().contains("````text"));
    }
}
