//! How far an experiment is, on standard error; nothing when that is no terminal.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use capo_core::journal::{Event, Observer};
use indicatif::{ProgressBar, ProgressStyle};

use super::run::{Trial, Watch};
use crate::cli::failure::SCREEN;

/// A bar over all runs, with the round each run under way is in.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
    under_way: Arc<Mutex<BTreeMap<String, u32>>>,
}

impl Progress {
    /// A bar over `runs` runs. Indicatif draws it on standard error, if that is a terminal.
    pub fn new(runs: usize) -> Self {
        let style = ProgressStyle::with_template(
            "{bar:24} {pos}/{len} runs, {elapsed} gone, {eta} to go · {wide_msg}",
        )
        .expect("a constant template");
        Self {
            bar: SCREEN.add(ProgressBar::new(runs as u64).with_style(style)),
            under_way: Arc::default(),
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

    fn show(&self, change: impl FnOnce(&mut BTreeMap<String, u32>)) {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut under_way);
        let texts: Vec<String> = under_way
            .iter()
            .map(|(name, round)| format!("{name}: round {round}"))
            .collect();
        self.bar.set_message(texts.join(" · "));
    }
}

impl Watch for Progress {
    fn started(&self, trial: &Trial) {
        self.show(|under_way| {
            under_way.insert(trial.name(), 0);
        });
    }

    fn done(&self, trial: &Trial, _fresh: bool) {
        self.bar.inc(1);
        self.show(|under_way| {
            under_way.remove(&trial.name());
        });
    }
}
