//! A run once more, as it stood after each of its rounds.

use std::sync::Arc;

use serde::Deserialize;

use super::fold::Folded;
use crate::run::overview::Overview;
use crate::run::rounds::ScreenRound;

/// Lines folded at once: a page that asks for more would not answer meanwhile.
const AT_ONCE: usize = 200;

/// A journal, folded as far as one of its rounds; going back folds it anew.
#[derive(Debug)]
pub struct Replay {
    lines: Vec<String>,
    /// Lines at which the seed prompt was measured, then those at which each round was closed.
    ends: Vec<usize>,
    folded: Folded,
}

impl Replay {
    /// Of a journal in parts, with or without traces.
    pub fn of(journal: &[String]) -> Self {
        #[derive(Deserialize)]
        struct Named<'a> {
            event: &'a str,
        }
        let lines = journal.iter().flat_map(|part| part.lines());
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        let mut ends = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            let event = serde_json::from_str(line).map_or("", |Named { event }| event);
            if ends.is_empty() && matches!(event, "critique" | "rewrite" | "round") {
                ends.push(number);
            }
            if event == "round" {
                ends.push(number + 1);
            }
        }
        Self {
            lines,
            ends,
            folded: Folded::default(),
        }
    }

    /// The run after a round; none as long as more of the journal is to be folded for it, of which this folds some.
    ///
    /// # Errors
    /// When the journal does not come so far, or does not read.
    pub fn after(&mut self, round: ScreenRound) -> Result<Option<Arc<Overview>>, String> {
        let missing = || format!("The journal has no round {round}.");
        let end = *self.ends.get(round as usize).ok_or_else(missing)?;
        let mut from = self.folded.lines() as usize;
        if from > end {
            (self.folded, from) = (Folded::default(), 0);
        }
        let to = end.min(from + AT_ONCE);
        for line in &self.lines[from..to] {
            self.folded.take(line, None).map_err(|error| error.to_string())?;
        }
        if to < end {
            return Ok(None);
        }
        self.folded.overview().ok_or_else(missing).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use capo_core::journal::Event;

    use super::*;
    use crate::run::fixture::{events, fold};
    use crate::run::overview::Overviews;

    #[test]
    fn a_round_is_seen_as_it_stood_when_it_was_closed() {
        let events = events(|_| {}, None);
        let lines: Vec<String> = events
            .iter()
            .map(|event| serde_json::to_string(event).unwrap())
            .collect();
        let mut replay = Replay::of(&lines);
        let mut after = |round| {
            loop {
                if let Some(seen) = replay.after(round).unwrap() {
                    return seen;
                }
            }
        };
        let closes = |event: &Event| matches!(event, Event::Round(_));
        for round in [3, 1, 2] {
            let mut ends = events.iter().enumerate().filter(|(_, event)| closes(event));
            let (end, _) = ends.nth(round - 1).unwrap();
            let then = Overviews::default().after(1, &fold(&events[..=end]));
            assert_eq!(Some(after(round as ScreenRound)), then);
        }
        let seed = after(0);
        assert_eq!((seed.series.rounds.len(), seed.map.places.len()), (1, 1));
        assert!(replay.after(4).is_err());
    }
}
