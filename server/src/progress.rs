//! A run's progress on standard error, for a person who watches.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use capo_core::budget::Budget;
use capo_core::journal::{Event, RoundEvent};
use capo_core::run_state::RunState;
use capo_core::study::Rounds;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::failure::SCREEN;
use crate::cli::layout::{NOTHING, count, counted, dollars, number};

/// How often the line is drawn anew.
const EVERY: Duration = Duration::from_millis(100);

/// A line that moves while rollouts come in, and one that stays for every round. Shows nothing
/// where standard error is not a terminal.
#[derive(Debug, Clone)]
pub struct Progress {
    bar: ProgressBar,
    shown: Option<Instant>,
    visible: bool,
    work: Work,
}

/// What makes progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Rounds of a search.
    Search,
    /// The measurement of one prompt: it has no rounds, and nothing is feasible before its end.
    Evaluation,
}

impl Progress {
    /// Progress of a search on standard error; hidden unless that is a terminal.
    pub fn of_search() -> Self {
        Self::on_terminal(Work::Search)
    }

    /// Progress of one prompt's measurement on standard error; hidden unless that is a terminal.
    pub fn of_evaluation() -> Self {
        Self::on_terminal(Work::Evaluation)
    }

    fn on_terminal(work: Work) -> Self {
        let visible = std::io::stderr().is_terminal();
        let mut progress = Self::on(ProgressDrawTarget::hidden(), visible, work);
        if visible {
            progress.bar = SCREEN.add(progress.bar);
        }
        progress
    }

    fn on(target: ProgressDrawTarget, visible: bool, work: Work) -> Self {
        // Without a bound on rollouts there is nothing to fill a bar with.
        let bar = ProgressBar::with_draw_target(None, target).with_style(style("{spinner} {msg}"));
        if visible {
            bar.enable_steady_tick(EVERY);
        }
        Self {
            bar,
            shown: None,
            visible,
            work,
        }
    }

    /// Shows what an event changed.
    pub fn follow(&mut self, event: &Event, state: &RunState) {
        if !self.visible {
            return;
        }
        let closed = match event {
            Event::Round(round) => {
                self.bar.println(round_line(round, state));
                true
            }
            _ => false,
        };
        if closed || self.shown.is_none_or(|shown| shown.elapsed() >= EVERY) {
            self.shown = Some(Instant::now());
            self.draw(state);
        }
    }

    fn draw(&self, state: &RunState) {
        let budget = state.budget();
        if let (Some(rollouts), None) = (budget.rollouts, self.bar.length()) {
            let filled = style("{spinner} [{bar:24}] {msg}").progress_chars("━╸ ");
            self.bar.set_style(filled);
            self.bar.set_length(rollouts);
        }
        self.bar.set_position(state.ledger().rollouts());
        self.bar.set_message(status_line(state, &budget, self.work));
    }

    /// Takes the moving line away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// # Panics
/// When the template, a constant, is none.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a constant template")
}

/// Round, spend against budget, feasible or not, best objective, multipliers.
fn status_line(state: &RunState, budget: &Budget, work: Work) -> String {
    let rounds = state.rounds();
    let ledger = state.ledger();
    let usage = ledger.usage().total();
    let against = |limit: Option<String>| limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
    let mut parts = Vec::new();
    if work == Work::Search {
        let of = match state.study().map(|event| event.study.study.rounds) {
            Some(Rounds::Count(of)) => format!("/{of}"),
            _ => String::new(),
        };
        parts.push(format!("round {}{of}", rounds.len()));
    }
    parts.extend([
        format!(
            "{}{} rollouts",
            count(ledger.rollouts()),
            against(budget.rollouts.map(count))
        ),
        format!("{}{} calls", count(usage.calls), against(budget.calls.map(count))),
        format!(
            "{}{}",
            dollars(usage.usd),
            against(budget.usd.map(|usd| dollars(Some(usd))))
        ),
    ]);
    if let Some(tokens) = budget.tokens {
        let spent = usage.input_tokens + usage.output_tokens;
        parts.push(format!("{} of {} tokens", count(spent), count(tokens)));
    }
    if work == Work::Search {
        parts.push(standing(rounds));
    }
    if let Some(round) = rounds.last() {
        parts.push(multipliers(round));
    }
    let failures: u64 = state.failures().values().sum();
    if failures > 0 {
        parts.push(counted(failures, "failure"));
    }
    parts.join(" · ")
}

/// The best feasible objective so far, as the rounds scored it.
fn standing(rounds: &[RoundEvent]) -> String {
    let best = rounds
        .iter()
        .flat_map(|round| round.scores.values())
        .filter(|score| score.feasible)
        .map(|score| score.objective)
        .max_by(f64::total_cmp);
    match best {
        Some(objective) => format!("feasible, best objective {}", number(objective)),
        None if rounds.is_empty() => "no round yet".into(),
        None => "not feasible yet".into(),
    }
}

fn multipliers(round: &RoundEvent) -> String {
    let each = round
        .next_multipliers
        .iter()
        .map(|(metric, value)| format!("{metric} {value:.2}"));
    let all: Vec<String> = each.collect();
    if all.is_empty() {
        "no constraints".into()
    } else {
        format!("λ {}", all.join(", "))
    }
}

/// What one round came to.
fn round_line(round: &RoundEvent, state: &RunState) -> String {
    let best = round
        .best
        .first()
        .and_then(|id| Some((id, round.scores.get(id)?)));
    let best = best.map_or_else(
        || NOTHING.to_owned(),
        |(id, score)| {
            let feasible = if score.feasible {
                "feasible"
            } else {
                "not feasible"
            };
            format!(
                "best {} objective {} ({feasible})",
                id.short(),
                number(score.objective)
            )
        },
    );
    let rollouts = counted(state.ledger().rollouts(), "rollout");
    format!(
        "round {}: {best} · {} · {rollouts}",
        round.round,
        multipliers(round)
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use capo_core::control::Control;
    use capo_core::journal::{Journal, MemoryJournal};
    use capo_core::workload::Split;
    use capo_models::Environment;
    use capo_models::prices::PriceTable;
    use indicatif::InMemoryTerm;

    use super::*;
    use crate::session::{Session, StudyFile, block_on};

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
    fn screen(budget: &str, work: Work) -> String {
        let terminal = InMemoryTerm::new(20, 200);
        let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
        let progress = Progress::on(target, true, work);
        let file = StudyFile::parse(&format!("{STUDY}\n{budget}"), Path::new("study.toml")).unwrap();
        let session = Session::new(&file, &Environment, PriceTable::shipped()).unwrap();
        let mut journal = Journal::create(Box::new(MemoryJournal::new()));
        let mut shown = progress.clone();
        journal.observe(Box::new(move |event, state| {
            shown.follow(event, state);
            shown.draw(state);
        }));
        block_on(async {
            match work {
                Work::Search => session.optimize(journal, Control::new()).await.map(drop),
                Work::Evaluation => session
                    .evaluate(journal, Control::new(), "Help.", Split::Evaluate)
                    .await
                    .map(drop),
            }
        })
        .unwrap()
        .unwrap();
        progress.bar.tick();
        terminal.contents()
    }

    #[test]
    fn the_line_tells_spend_and_standing_with_and_without_a_bound_on_rollouts() {
        for (budget, rollouts) in [
            ("", "rollouts"),
            ("[budget]\nrollouts = 500", "of 500 rollouts"),
            ("[budget]\ncalls = 100000", "of 100,000 calls"),
        ] {
            let screen = screen(budget, Work::Search);
            let line = screen.lines().last().unwrap();
            for part in ["round 2/2", rollouts, "calls", "$", "feasible", "λ excess_tools"] {
                assert!(line.contains(part), "no {part:?} with {budget:?} in: {screen}");
            }
            assert!(
                screen.contains("round 0: best"),
                "a line stays for a round: {screen}"
            );
        }
    }

    #[test]
    fn the_measurement_of_one_prompt_knows_no_rounds() {
        let screen = screen("", Work::Evaluation);
        assert!(screen.contains("2 rollouts"), "{screen}");
        assert!(!screen.contains("round"), "{screen}");
        assert!(!screen.contains("feasible"), "{screen}");
    }
}
