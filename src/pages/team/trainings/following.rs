//! A training as the server tells of it, by Server-Sent Events.

use std::collections::BTreeMap;

use capo_api::{TRAINING_EVENT, TrainingShown, event, training_events_path};
use leptos::prelude::*;
use serde::Deserialize;
use wasm_bindgen::prelude::*;
use web_sys::{EventSource, MessageEvent};

use crate::charts::loss::LossData;

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

    /// Its losses.
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
    /// Its log.
    pub(super) log: RwSignal<TrainingLog>,
}

impl Followed {
    /// Follows a training for as long as this part of the page is shown. The browser connects anew by itself, and says by
    /// then which line it had last.
    pub(super) fn new(project: &str, training: &str) -> Self {
        let followed = Self {
            training: RwSignal::new(None),
            log: RwSignal::new(TrainingLog::default()),
        };
        let Ok(source) = EventSource::new(&training_events_path(project, training, 0)) else {
            return followed;
        };
        let (came, is_due) = (StoredValue::new(TrainingLog::default()), StoredValue::new(false));
        let line = listener(&source, event::LINE, move |line| {
            came.update_value(|log| log.take(&line));
            // However many come at once, they are drawn once.
            if !is_due.get_value() {
                is_due.set_value(true);
                request_animation_frame(move || {
                    // The page may be left by then.
                    if is_due.try_set_value(false).is_none() {
                        followed.log.set(came.get_value());
                    }
                });
            }
        });
        let shown = listener(&source, TRAINING_EVENT, move |document| {
            if let Ok(training) = serde_json::from_str(&document) {
                followed.training.set(Some(training));
            }
        });
        let held = StoredValue::new_local((source, line, shown));
        on_cleanup(move || held.with_value(|(source, ..)| source.close()));
        followed
    }
}

type Listener = Closure<dyn FnMut(MessageEvent)>;

fn listener(source: &EventSource, name: &str, mut hear: impl FnMut(String) + 'static) -> Listener {
    let listener =
        Listener::new(move |message: MessageEvent| hear(message.data().as_string().unwrap_or_default()));
    // Fails only where there are no events at all.
    let _ = source.add_event_listener_with_callback(name, listener.as_ref().unchecked_ref());
    listener
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
