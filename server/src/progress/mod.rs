//! A run's progress on standard error, for a person who watches, a log, or a program.

pub(crate) mod log;
mod status;

use std::cell::RefCell;
use std::io::IsTerminal as _;
use std::rc::Rc;
use std::time::{Duration, Instant};

use capo_core::journal::Event;
use capo_core::run_state::RunState;
use capo_models::{Notice, Observer, Wait};
use console::Term;
use indicatif::{ProgressBar, ProgressStyle};

use crate::stderr::{SCREEN, log_as_json, say, say_exactly};
use crate::terminal::{columns, harmless, writable, writes_unicode};

/// How often the line is drawn anew.
const EVERY: Duration = Duration::from_millis(100);
/// How often a line is written where none moves and no round ends.
pub(crate) const SELDOM: Duration = Duration::from_mins(1);
/// The same for programs.
const OFTEN: Duration = Duration::from_secs(10);
/// How often at most people are told of waits where no line moves.
const WAITS: Duration = Duration::from_secs(10);
/// Columns of what stands before the words: spinner, bar, blanks.
const BAR: usize = 13;

/// How progress is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people: a line that moves on a terminal; elsewhere a line a round, and one a minute.
    #[default]
    Text,
    /// For programs: one JSON object a line.
    Json,
}

impl LogFormat {
    /// From now on all that is said on standard error is in this format, warnings included.
    pub fn take_effect(self) {
        if self == Self::Json {
            log_as_json();
        }
    }
}

/// A line that moves while rollouts come in, and one that stays for every round. Where standard
/// error is no terminal, nothing moves and lines are few; for programs they are JSON. Clones show
/// the same.
#[derive(Debug, Clone)]
pub struct Progress(Rc<RefCell<Shown>>);

#[derive(Debug)]
struct Shown {
    screen: Screen,
    work: Work,
    /// When the state was last looked at.
    looked: Option<Instant>,
    /// When a line was last written that stays.
    written: Instant,
    /// What was last seen.
    latest: Latest,
    waiting: Waiting,
}

/// What is known of waits for models.
#[derive(Debug, Default)]
struct Waiting {
    /// The last one and when it began, until its model answers again.
    now: Option<(Wait, Instant)>,
    /// When one was last told in a line that stays.
    told: LineLimiter,
}

/// How long after its end a wait is still shown: the call tries again and has no answer yet.
const AFTERWARDS: Duration = Duration::from_secs(5);

impl Waiting {
    /// A model answered. The answer of another one ends no wait, and that lines are told seldom holds on.
    fn answered(&mut self, model: &str, host: &str) {
        self.now
            .take_if(|(wait, _)| wait.model == model && wait.host == host);
    }

    /// The wait to be shown, with the seconds that are left of it; none once it is long over, though
    /// nobody answered: the call may have been given up.
    fn left(&self) -> Option<Wait> {
        let (wait, since) = self.now.as_ref()?;
        let left = wait.seconds - since.elapsed().as_secs_f64();
        (left >= -AFTERWARDS.as_secs_f64()).then(|| Wait {
            seconds: left.max(0.0),
            ..wait.clone()
        })
    }
}

/// When a line about waits was last written. Many calls wait at once.
#[derive(Debug, Default)]
pub(crate) struct LineLimiter(Option<Instant>);

impl LineLimiter {
    /// Whether it is time for another one, which is taken for written then.
    pub(crate) fn is_due(&mut self) -> bool {
        let due = self.0.is_none_or(|told| told.elapsed() >= WAITS);
        if due {
            self.0 = Some(Instant::now());
        }
        due
    }
}

/// Where progress is shown.
#[derive(Debug)]
enum Screen {
    /// A terminal, of so many columns.
    Terminal {
        bar: ProgressBar,
        columns: fn() -> usize,
    },
    /// A file or a pipe that people read.
    Lines,
    /// A program.
    Json,
}

/// What was last seen of a run.
#[derive(Debug, Default)]
struct Latest {
    parts: Vec<String>,
    fields: log::Fields,
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
    /// Progress of a search on standard error.
    pub fn of_search(format: LogFormat) -> Self {
        Self::on_standard_error(format, Work::Search)
    }

    /// Progress of one prompt's measurement on standard error.
    pub fn of_evaluation(format: LogFormat) -> Self {
        Self::on_standard_error(format, Work::Evaluation)
    }

    fn on_standard_error(format: LogFormat, work: Work) -> Self {
        let screen = match format {
            LogFormat::Json => Screen::Json,
            LogFormat::Text if std::io::stderr().is_terminal() => {
                let bar = SCREEN.add(ProgressBar::no_length());
                Screen::Terminal {
                    bar,
                    columns: columns_of_standard_error,
                }
            }
            LogFormat::Text => Screen::Lines,
        };
        Self::on(screen, work)
    }

    fn on(screen: Screen, work: Work) -> Self {
        if let Screen::Terminal { bar, .. } = &screen {
            // Without a bound on rollouts there is nothing to fill a bar with.
            bar.set_style(style("{spinner} {msg}"));
            bar.enable_steady_tick(EVERY);
        }
        Self(Rc::new(RefCell::new(Shown {
            screen,
            work,
            looked: None,
            written: Instant::now(),
            latest: Latest::default(),
            waiting: Waiting::default(),
        })))
    }

    /// Shows what an event changed.
    pub fn follow(&self, event: &Event, state: &RunState) {
        self.0.borrow_mut().follow(event, state);
    }

    /// Shows that models are waited for.
    pub fn of_waits(&self) -> Observer {
        let shown = Rc::clone(&self.0);
        Rc::new(move |notice| shown.borrow_mut().hear(notice))
    }

    /// Shows the model that a run elsewhere waits for from now on, if it waits for one.
    pub fn wait_for(&self, wait: Option<Wait>) {
        let mut shown = self.0.borrow_mut();
        let notice = match (wait, &shown.waiting.now) {
            (Some(wait), _) => Notice::Waiting(wait),
            (None, Some((Wait { model, host, .. }, _))) => Notice::Answered {
                model: model.clone(),
                host: host.clone(),
            },
            (None, None) => return,
        };
        shown.hear(&notice);
    }

    /// Goes on telling how far the run is while nothing happens; never ends. Once a second is enough.
    pub async fn keep_telling(&self) {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let mut shown = self.0.borrow_mut();
            shown.draw();
            shown.tell_if_due();
        }
    }

    /// Takes the moving line away.
    pub fn finish(&self) {
        if let Screen::Terminal { bar, .. } = &self.0.borrow().screen {
            bar.finish_and_clear();
        }
    }
}

impl Shown {
    fn follow(&mut self, event: &Event, state: &RunState) {
        let mut stays = true;
        match (&self.screen, event) {
            (Screen::Json, event) => match log::of_event(event, state) {
                Some(line) => say_exactly(&line),
                None => stays = false,
            },
            (_, Event::Round(round)) => {
                let line = status::of_round(round, state);
                say(&writable(&line));
            }
            _ => stays = false,
        }
        if stays {
            self.written = Instant::now();
        }
        if stays || self.looked.is_none_or(|looked| looked.elapsed() >= EVERY) {
            self.looked = Some(Instant::now());
            self.look(state);
        }
        self.tell_if_due();
    }

    /// Remembers how far the run is, and shows it where a line moves.
    fn look(&mut self, state: &RunState) {
        let budget = state.budget();
        match &self.screen {
            Screen::Json => self.latest.fields = log::progress(state),
            Screen::Lines => self.latest.parts = status::parts(state, &budget, self.work),
            Screen::Terminal { bar, .. } => {
                self.latest.parts = status::parts(state, &budget, self.work);
                if let (Some(rollouts), None) = (budget.rollouts, bar.length()) {
                    bar.set_style(style("{spinner} [{bar:8}] {msg}"));
                    bar.set_length(rollouts);
                }
                bar.set_position(state.ledger().rollouts());
                self.draw();
            }
        }
    }

    /// Writes the line that moves, where there is one.
    fn draw(&self) {
        let Screen::Terminal { bar, columns } = &self.screen else {
            return;
        };
        let waiting = self.waiting.left().map(|wait| wait.to_string());
        let parts: Vec<String> = waiting
            .into_iter()
            .chain(self.latest.parts.iter().cloned())
            .map(|part| writable(&harmless(&part)).into_owned())
            .collect();
        let before = if bar.length().is_some() { BAR } else { 2 };
        // A line that reaches the last column may wrap.
        let line = status::fitting(&parts, columns().saturating_sub(before + 1));
        bar.set_message(writable(&line).into_owned());
    }

    fn hear(&mut self, notice: &Notice) {
        match notice {
            Notice::Waiting(wait) => {
                self.waiting.now = Some((wait.clone(), Instant::now()));
                if matches!(self.screen, Screen::Lines) && self.waiting.told.is_due() {
                    say(&writable(&wait.to_string()));
                    self.written = Instant::now();
                }
            }
            Notice::Answered { model, host } => self.waiting.answered(model, host),
            Notice::Batch(batch) => {
                if !matches!(self.screen, Screen::Json) {
                    say(&writable(&batch.to_string()));
                    self.written = Instant::now();
                }
            }
        }
        if matches!(self.screen, Screen::Json) {
            say_exactly(&log::of_notice(notice));
            self.written = Instant::now();
        }
        self.draw();
    }

    /// Where no line moves: writes one when none was for long.
    fn tell_if_due(&mut self) {
        if let Some(line) = self.due(SELDOM, OFTEN) {
            say_exactly(&line);
        }
    }

    /// The line to be written where none moves and none was written for so long: for people, and for programs.
    fn due(&mut self, seldom: Duration, often: Duration) -> Option<String> {
        let pause = match &self.screen {
            Screen::Terminal { .. } => return None,
            Screen::Lines => seldom,
            Screen::Json => often,
        };
        if self.written.elapsed() < pause {
            return None;
        }
        self.written = Instant::now();
        Some(match self.screen {
            Screen::Json => log::line("progress", &self.latest.fields),
            _ if self.latest.parts.is_empty() => "no answer yet".to_owned(),
            _ => writable(&harmless(&status::whole(&self.latest.parts))).into_owned(),
        })
    }
}

fn columns_of_standard_error() -> usize {
    columns(&Term::stderr())
}

/// A style in signs that the person's locale can write.
///
/// # Panics
/// When the template, a constant, is none.
pub(crate) fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(&writable(template)).expect("a constant template");
    if writes_unicode() {
        style.progress_chars("━╸ ")
    } else {
        style.progress_chars("=> ").tick_chars("|/-\\ ")
    }
}

#[cfg(test)]
mod tests;
