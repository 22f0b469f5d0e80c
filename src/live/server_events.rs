//! Server-Sent Events of a run as it goes on.

use capo_api::{RunShown, event, events_path};
use capo_models::Wait;
use futures::StreamExt as _;

use crate::team::Listening;

/// Something the server tells.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ServerEvent {
    /// Where the run stands.
    Run(Box<RunShown>),
    /// A line of its journal, with its number from 0.
    Line(u64, String),
    /// The first line was replaced by this one.
    Study(String),
    /// The model that its worker waits for, if it waits for one.
    Waits(Option<Wait>),
    /// What is no event of this version.
    Strange,
}

impl ServerEvent {
    /// As it is named and written; `id` is that of the event.
    fn read(name: &str, id: &str, data: String) -> Self {
        let read = match name {
            event::RUN => serde_json::from_str(&data).ok().map(Self::Run),
            event::WAITS => Some(Self::Waits(serde_json::from_str(&data).unwrap_or_default())),
            event::LINE => id.parse().ok().map(|number| Self::Line(number, data)),
            _ => Some(Self::Study(data)),
        };
        read.unwrap_or(Self::Strange)
    }
}

/// A connection to a run of the server.
pub(super) type ServerEvents = Listening<ServerEvent>;

/// Listens to a run of the server from line `from` of its journal on; `None` where the browser cannot.
pub(super) fn events_of(run: &str, from: u64) -> Option<ServerEvents> {
    let names = [event::RUN, event::LINE, event::STUDY, event::WAITS];
    Listening::to(&events_path(run, from), &names, ServerEvent::read)
}

/// One line of the journal of a run of the server, whole.
///
/// # Errors
/// That it does not come.
pub(super) async fn line(run: &str, number: u64) -> Result<String, String> {
    let events = events_of(run, number);
    let mut events = events.ok_or("This browser does not listen to the server.")?;
    while let Some(event) = events.told.next().await {
        if let ServerEvent::Line(came, line) = event
            && came == number
        {
            return Ok(line);
        }
    }
    Err("The server was not reached. Try again in a moment.".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_what_is_none_is_told() {
        let line = r#"{"event":"round"}"#.to_owned();
        assert_eq!(
            ServerEvent::read("line", "7", line.clone()),
            ServerEvent::Line(7, line.clone())
        );
        assert_eq!(ServerEvent::read("line", "", line.clone()), ServerEvent::Strange);
        assert_eq!(
            ServerEvent::read("study", "", line.clone()),
            ServerEvent::Study(line)
        );
        assert_eq!(ServerEvent::read("run", "", "{}".into()), ServerEvent::Strange);
        assert_eq!(
            ServerEvent::read("waits", "", "null".into()),
            ServerEvent::Waits(None)
        );
    }
}
