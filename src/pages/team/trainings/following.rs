//! A training as the server tells of it, by Server-Sent Events.

use std::collections::BTreeMap;
use std::pin::pin;

use capo_api::{TRAINING_EVENT, TrainingShown, event, training_events_path};
use futures::StreamExt as _;
use futures::channel::oneshot;
use futures::future::select;
use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use serde::Deserialize;
use wasm_bindgen_futures::spawn_local;

use crate::charts::loss::LossData;
use crate::team::{Listening, again};

/// A line of a log.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum LogLine {
    Step { step: u64, loss: f64 },
    Evaluation { step: u64, loss: f64 },
}

/// A log as far as it came. What a training does once more after it was broken off takes the place of what it did before.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TrainingLog {
    learned: BTreeMap<u64, f64>,
    held_out: BTreeMap<u64, f64>,
}

impl TrainingLog {
    /// Takes a line in; what is none of this version is passed over.
    fn take(&mut self, line: &str) {
        let (points, step, loss) = match serde_json::from_str(line) {
            Ok(LogLine::Step { step, loss }) => (&mut self.learned, step, loss),
            Ok(LogLine::Evaluation { step, loss }) => (&mut self.held_out, step, loss),
            Err(_) => return,
        };
        points.insert(step, loss);
    }

    pub(super) fn losses(&self) -> LossData {
        let points = |of: &BTreeMap<u64, f64>| of.iter().map(|(step, loss)| (*step, *loss)).collect();
        LossData {
            learned: points(&self.learned),
            held_out: points(&self.held_out),
        }
    }
}

/// A training that goes on as it is looked at. Copies are the same.
#[derive(Clone, Copy)]
pub(super) struct Followed {
    /// Where it stands, once that is known.
    pub(super) training: RwSignal<Option<TrainingShown>>,
    pub(super) log: RwSignal<TrainingLog>,
}

/// Lines that come within so many milliseconds are drawn together.
const GATHER: u32 = 60;

impl Followed {
    /// Follows a training for as long as this part of the page is shown.
    pub(super) fn new(project: &str, training: &str) -> Self {
        let followed = Self {
            training: RwSignal::new(None),
            log: RwSignal::new(TrainingLog::default()),
        };
        let (project, training) = (project.to_owned(), training.to_owned());
        let (shown, left) = oneshot::channel::<()>();
        // It goes with this part of the page.
        StoredValue::new_local(shown);
        spawn_local(async move {
            select(pin!(followed.follow(project, training)), left).await;
        });
        followed
    }

    /// Takes in what is told, over as many connections as that takes.
    async fn follow(self, project: String, training: String) {
        let (mut log, mut next, mut lost) = (TrainingLog::default(), 0, 0);
        // A line with its number, or where the training stands.
        let read = |name: &str, id: &str, data: String| {
            let number = id.parse::<u64>().ok();
            (number.filter(|_| name == event::LINE), data)
        };
        loop {
            let path = training_events_path(&project, &training, next);
            let Some(mut events) = Listening::to(&path, &[event::LINE, TRAINING_EVENT], read) else {
                return;
            };
            while let Some(first) = events.told.next().await {
                TimeoutFuture::new(GATHER).await;
                let mut told = Ok(first);
                while let Ok((line, data)) = told {
                    if let Some(number) = line {
                        log.take(&data);
                        next = number + 1;
                    } else if let Ok(training) = serde_json::from_str(&data) {
                        // The page may be left by then.
                        let _ = self.training.try_set(Some(training));
                    }
                    told = events.told.try_recv();
                }
                // As above.
                let _ = self.log.try_set(log.clone());
                lost = 0;
            }
            drop(events);
            TimeoutFuture::new(again(lost)).await;
            lost += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_once_more_counts_once() {
        let mut log = TrainingLog::default();
        for line in [
            r#"{"event":"evaluation","step":0,"loss":3.0}"#,
            r#"{"event":"step","step":1,"loss":2.0,"tokens":9,"seconds":1.0}"#,
            r#"{"event":"step","step":2,"loss":1.5}"#,
            r#"{"event":"step","step":2,"loss":1.4}"#,
            r#"{"event":"later"}"#,
        ] {
            log.take(line);
        }
        let losses = log.losses();
        assert_eq!(losses.learned, [(1, 2.0), (2, 1.4)]);
        assert_eq!(losses.held_out, [(0, 3.0)]);
    }
}
