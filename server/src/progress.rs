//! A run's progress on standard error, for a person who watches.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use capo_core::budget::Budget;
use capo_core::journal::{Event, RoundEvent};
use capo_core::run_state::RunState;
use capo_core::study::Rounds;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

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
}

impl Progress {
    /// Progress on standard error; hidden unless that is a terminal.
    pub fn new() -> Self {
        Self::on(std::io::stderr().is_terminal())
    }

    /// No progress.
    pub fn hidden() -> Self {
        Self::on(false)
    }

    fn on(visible: bool) -> Self {
        let target = if visible {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if visible {
            bar.enable_steady_tick(EVERY);
        }
        Self {
            bar,
            shown: None,
            visible,
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
            let template = "{spinner} [{bar:24}] {msg}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                self.bar.set_style(style.progress_chars("━╸ "));
            }
            self.bar.set_length(rollouts);
        }
        self.bar.set_position(state.ledger().rollouts());
        self.bar.set_message(status_line(state, &budget));
    }

    /// Writes a line to standard error without tearing what is drawn there.
    pub fn say(&self, text: &str) {
        self.bar.suspend(|| crate::cli::failure::warn(text));
    }

    /// Takes the moving line away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

/// Round, spend against budget, feasible or not, best objective, multipliers.
fn status_line(state: &RunState, budget: &Budget) -> String {
    let rounds = state.rounds();
    let of = match state.study().map(|event| event.study.study.rounds) {
        Some(Rounds::Count(of)) => format!("/{of}"),
        _ => String::new(),
    };
    let ledger = state.ledger();
    let usage = ledger.usage().total();
    let against = |limit: Option<String>| limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
    let mut parts = vec![
        format!("round {}{of}", rounds.len()),
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
    ];
    if let Some(tokens) = budget.tokens {
        let spent = usage.input_tokens + usage.output_tokens;
        parts.push(format!("{} of {} tokens", count(spent), count(tokens)));
    }
    parts.push(standing(rounds));
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
