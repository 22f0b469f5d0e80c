//! Tests of what stands on a terminal.

use std::path::Path;

use capo_core::journal::{Journal, MemoryJournal};
use capo_core::workload::Split;
use capo_models::Environment;
use capo_models::prices::PriceTable;
use indicatif::{InMemoryTerm, ProgressDrawTarget};

use super::*;
use crate::session::{Session, StudyFile, block_on};

/// Columns of a terminal on which every part fits.
const WIDE: usize = 200;

const STUDY: &str = r#"
    [study]
    name = "small desk"
    rounds = 2

    [workload]
    kind = "desk"
    optimize = 4
    evaluate = 2

    [prompt]
    text = "You are a customer service agent."

    [objective]
    metric = "success"

    [[constraint]]
    metric = "excess_tools"
    threshold = 0.3

    [models.agent]
    provider = "simulated"
"#;

/// What stands on a terminal when a study with this budget has been run, or one prompt measured.
fn screen(budget: &str, work: Work, columns: fn() -> usize) -> String {
    let terminal = InMemoryTerm::new(20, WIDE as u16);
    let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
    let bar = ProgressBar::with_draw_target(None, target);
    let screen = Screen::Terminal {
        bar: bar.clone(),
        columns,
    };
    let progress = Progress::on(screen, work);
    follow(&progress, budget);
    bar.tick();
    terminal.contents()
}

/// Runs a study with this budget, or measures one prompt, and shows how far it is.
fn follow(progress: &Progress, budget: &str) {
    let work = progress.0.borrow().work;
    let file = StudyFile::parse(&format!("{STUDY}\n{budget}"), Path::new("study.toml")).unwrap();
    let session = Session::new(&file, &Environment, PriceTable::shipped()).unwrap();
    let mut journal = Journal::create(Box::new(MemoryJournal::new()));
    let shown = progress.clone();
    journal.observe(Box::new(move |event, state| {
        shown.follow(event, state);
        shown.0.borrow_mut().look(state);
    }));
    block_on(async {
        match work {
            Work::Search => session.optimize(journal).await.map(drop),
            Work::Evaluation => session
                .evaluate(journal, "Help.", Split::Evaluate)
                .await
                .map(drop),
        }
    })
    .unwrap()
    .unwrap();
}

#[test]
fn the_line_tells_spend_and_standing_with_and_without_a_bound_on_rollouts() {
    for (budget, rollouts) in [
        ("", "rollouts"),
        ("[budget]\nrollouts = 500", "of 500 rollouts"),
        ("[budget]\ncalls = 100000", "of 100,000 calls"),
    ] {
        let screen = screen(budget, Work::Search, || WIDE);
        let line = screen.lines().last().unwrap();
        for part in ["round 2/2", rollouts, "calls", "$", "excess_tools"] {
            assert!(line.contains(part), "no {part:?} with {budget:?} in: {screen}");
        }
        assert!(
            line.contains("feasible") && !line.contains("not feasible"),
            "{budget:?}: {screen}"
        );
    }
}

#[test]
fn the_measurement_of_one_prompt_knows_no_rounds() {
    let screen = screen("", Work::Evaluation, || WIDE);
    assert!(screen.contains("2 rollouts"), "{screen}");
    assert!(!screen.contains("round"), "{screen}");
    assert!(!screen.contains("feasible"), "{screen}");
}

#[test]
fn the_line_fits_the_columns_there_are() {
    for (columns, length) in [((|| 80) as fn() -> usize, 80), (|| 40, 40)] {
        let screen = screen("[budget]\nrollouts = 500", Work::Search, columns);
        let line = screen.lines().last().unwrap();
        assert!(line.chars().count() < length, "{line}");
        assert!(line.contains("round 2/2"), "{line}");
    }
}

#[test]
fn a_wait_ends_with_its_own_models_answer_and_lines_about_waits_stay_few() {
    let wait = Wait {
        model: "openai/gpt-5-mini".into(),
        provider: "openai".into(),
        host: "api.openai.com".into(),
        kind: capo_core::llm::FailureKind::RateLimit,
        message: "HTTP 429".into(),
        seconds: 20.0,
        is_asked: true,
        next_try: Some((2, 6)),
    };
    let mut waiting = Waiting::default();
    assert!(waiting.told.is_due());
    waiting.now = Some((wait.clone(), Instant::now()));
    waiting.answered("mistral/mistral-small", "api.mistral.ai");
    assert!(waiting.left().is_some_and(|left| left.seconds > 15.0));
    waiting.answered(&wait.model, &wait.host);
    assert_eq!(waiting.left(), None);
    assert!(!waiting.told.is_due());

    // Over, and nobody answered.
    let ended = |seconds: f64| Wait {
        seconds,
        ..wait.clone()
    };
    waiting.now = Some((ended(-1.0), Instant::now()));
    assert_eq!(waiting.left().unwrap().seconds, 0.0);
    waiting.now = Some((ended(-6.0), Instant::now()));
    assert_eq!(waiting.left(), None);
}

#[test]
fn where_no_line_moves_one_is_written_once_none_was_for_long() {
    for (screen, work, parts) in [
        (Screen::Lines, Work::Search, ["round 2/2", " rollouts"]),
        (Screen::Lines, Work::Evaluation, ["2 rollouts", " calls"]),
        (
            Screen::Json,
            Work::Search,
            ["\"log\":\"progress\"", "\"rounds\":2"],
        ),
    ] {
        let progress = Progress::on(screen, work);
        let due = |pause| progress.0.borrow_mut().due(pause, pause);
        assert_eq!(due(SELDOM), None, "it has just begun");
        let nothing = due(Duration::ZERO).unwrap();
        assert!(
            nothing == "no answer yet" || nothing.contains("progress"),
            "{nothing}"
        );
        follow(&progress, "");
        assert_eq!(due(SELDOM), None, "a line was written");
        let line = due(Duration::ZERO).unwrap();
        for part in parts {
            assert!(line.contains(part), "no {part:?} in {line}");
        }
        assert_eq!(due(SELDOM), None);
    }
}
