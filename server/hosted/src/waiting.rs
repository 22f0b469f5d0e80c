//! Changes that people asked for and that no round has taken up yet.

use std::collections::VecDeque;

use capo_core::journal::{Event, SteerEvent};

/// What a run was told that its next round takes up, by the number under which it is kept.
#[derive(Debug, Default)]
pub struct Waiting {
    /// Those that wait, in order.
    pub changes: VecDeque<(i64, SteerEvent)>,
    /// The last that the journal has taken up.
    pub taken: i64,
    /// Whether others wait than those that the run knows of.
    pub is_news: bool,
}

impl Waiting {
    /// Takes over what is kept, but what the journal has taken up and the place where it is kept not yet forgotten.
    pub fn replace(&mut self, changes: Vec<(i64, SteerEvent)>) {
        let waits = |(number, change): &(i64, SteerEvent)| *number > self.taken && !change.is_empty();
        let changes: VecDeque<_> = changes.into_iter().filter(waits).collect();
        self.is_news |= changes != self.changes;
        self.changes = changes;
    }

    /// Notes whether a line of the journal takes up a change that somebody asked for; returns its number.
    pub fn note(&mut self, line: &str) -> Option<i64> {
        if !line.starts_with(r#"{"event":"steer""#) {
            return None;
        }
        match serde_json::from_str(line) {
            Ok(Event::Steer(steer)) => self.take(&steer),
            _ => None,
        }
    }

    /// Notes that the journal has taken a change up, if it is one of these; returns its number.
    fn take(&mut self, taken: &SteerEvent) -> Option<i64> {
        let is_it = |(_, change): &(i64, SteerEvent)| {
            let of_round = SteerEvent {
                round: taken.round,
                ..change.clone()
            };
            of_round == *taken
        };
        let place = self.changes.iter().position(is_it)?;
        self.taken = self.changes[place].0;
        // They are taken up in order: what came before it waits no more.
        self.changes.drain(..=place);
        self.is_news = true;
        Some(self.taken)
    }
}
