//! Progress of an experiment on standard error: a bar, or where that is no terminal, a line for each run that ends and
//! one a minute.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use capo_core::journal::{Event, Observer};
use capo_models::Notice;
use indicatif::{ProgressBar, ProgressDrawTarget};

use super::run::{Trial, Watch};
use crate::progress::{LineLimiter, SELDOM, style};
use crate::stderr::{SCREEN, is_json, say};
use crate::terminal::{harmless, writable};

/// A bar over all runs, with the round each run under way is in.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
    under_way: Arc<Mutex<BTreeMap<String, u32>>>,
    /// When somebody was last told of waits.
    told: Arc<Mutex<LineLimiter>>,
    /// When a line was last written that says how far the runs are.
    written: Arc<Mutex<Instant>>,
}

impl Progress {
    /// A bar over `runs` runs. Indicatif draws it on standard error, if that is a terminal.
    pub fn new(runs: usize) -> Self {
        let style = style("{bar:16} {pos}/{len} runs, {elapsed} gone, {eta} to go · {wide_msg}");
        let bar = ProgressBar::new(runs as u64).with_style(style);
        Self {
            bar: if is_json() {
                bar.set_draw_target(ProgressDrawTarget::hidden());
                bar
            } else {
                SCREEN.add(bar)
            },
            under_way: Arc::default(),
            told: Arc::default(),
            written: Arc::new(Mutex::new(Instant::now())),
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Follows the rounds of one run.
    pub fn observer(&self, trial: &Trial) -> Observer {
        let (progress, name) = (self.clone(), trial.name());
        Box::new(move |event, _| {
            if let Event::Round(round) = event {
                progress.show(|under_way| {
                    under_way.insert(name.clone(), round.round + 1);
                });
            }
            if progress.bar.is_hidden()
                && let Some(line) = progress.due(SELDOM)
            {
                say(&writable(&line));
            }
        })
    }

    /// Says now and then that models are waited for.
    pub fn of_waits(&self) -> capo_models::Observer {
        let told = Arc::clone(&self.told);
        Rc::new(move |notice| {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            if let Notice::Waiting(wait) = notice
                && told.is_due()
            {
                say(&writable(&wait.to_string()));
            }
        })
    }

    /// How far the runs are, unless that was said so shortly before.
    fn due(&self, pause: Duration) -> Option<String> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.elapsed() < pause {
            return None;
        }
        *written = Instant::now();
        let under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let (done, all) = (self.bar.position(), self.bar.length().unwrap_or_default());
        Some(format!("{done} of {all} runs · {}", rounds(&under_way)))
    }

    fn show(&self, change: impl FnOnce(&mut BTreeMap<String, u32>)) {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut under_way);
        let message = rounds(&under_way);
        self.bar.set_message(writable(&harmless(&message)).into_owned());
    }
}

/// The round that each run is in.
fn rounds(under_way: &BTreeMap<String, u32>) -> String {
    let texts: Vec<String> = under_way
        .iter()
        .map(|(name, round)| format!("{name}: round {round}"))
        .collect();
    texts.join(" · ")
}

impl Watch for Progress {
    fn started(&self, trial: &Trial) {
        self.show(|under_way| {
            under_way.insert(trial.name(), 0);
        });
    }

    fn done(&self, trial: &Trial, fresh: bool) {
        self.bar.inc(1);
        if self.bar.is_hidden() && fresh {
            let (done, all) = (self.bar.position(), self.bar.length().unwrap_or_default());
            let line = format!("{}: done · {done} of {all} runs", trial.name());
            say(&writable(&line));
            *self.written.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
        self.show(|under_way| {
            under_way.remove(&trial.name());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_no_bar_moves_a_line_now_and_then_says_how_far_the_runs_are() {
        let progress = Progress::new(3);
        progress.show(|under_way| {
            under_way.extend([("pid-0".to_owned(), 2), ("pid-1".to_owned(), 0)]);
        });
        assert_eq!(progress.due(SELDOM), None);
        let line = "0 of 3 runs · pid-0: round 2 · pid-1: round 0";
        assert_eq!(progress.due(Duration::ZERO).as_deref(), Some(line));
        assert_eq!(progress.due(SELDOM), None);
    }
}
