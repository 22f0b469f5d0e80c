//! How far an experiment is, on standard error: a bar, or a line for each run that ends where that is
//! no terminal.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use capo_core::journal::{Event, Observer};
use capo_models::Notice;
use indicatif::ProgressBar;

use super::run::{Trial, Watch};
use crate::progress::{LineLimiter, style};
use crate::stderr::{SCREEN, say};
use crate::terminal::{harmless, writable};

/// A bar over all runs, with the round each run under way is in.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
    under_way: Arc<Mutex<BTreeMap<String, u32>>>,
    /// When somebody was last told of waits.
    told: Arc<Mutex<LineLimiter>>,
}

impl Progress {
    /// A bar over `runs` runs. Indicatif draws it on standard error, if that is a terminal.
    pub fn new(runs: usize) -> Self {
        let style = style("{bar:16} {pos}/{len} runs, {elapsed} gone, {eta} to go · {wide_msg}");
        Self {
            bar: SCREEN.add(ProgressBar::new(runs as u64).with_style(style)),
            under_way: Arc::default(),
            told: Arc::default(),
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

    fn show(&self, change: impl FnOnce(&mut BTreeMap<String, u32>)) {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut under_way);
        let texts: Vec<String> = under_way
            .iter()
            .map(|(name, round)| format!("{name}: round {round}"))
            .collect();
        let message = texts.join(" · ");
        self.bar.set_message(writable(&harmless(&message)).into_owned());
    }
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
        }
        self.show(|under_way| {
            under_way.remove(&trial.name());
        });
    }
}
