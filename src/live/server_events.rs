//! What the server tells of a run as it goes on, by Server-Sent Events.

use std::cell::Cell;

use capo_api::{RunShown, event, events_path};
use futures::StreamExt as _;
use futures::channel::mpsc::{self, UnboundedReceiver, UnboundedSender};
use wasm_bindgen::prelude::*;
use web_sys::{EventSource, MessageEvent};

/// Something the server tells.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ServerEvent {
    /// Where the run stands.
    Run(Box<RunShown>),
    /// A line of its journal, with its number from 0.
    Line(u64, String),
    /// The first line was replaced by this one.
    Study(String),
    /// What is no event of this version.
    Strange,
    /// The connection is lost.
    Lost,
}

impl ServerEvent {
    /// As it is named and written; `id` is that of the event.
    fn read(name: &str, id: &str, data: String) -> Self {
        let read = match name {
            event::RUN => serde_json::from_str(&data).ok().map(Self::Run),
            event::LINE => id.parse().ok().map(|number| Self::Line(number, data)),
            _ => Some(Self::Study(data)),
        };
        read.unwrap_or(Self::Strange)
    }
}

/// A connection, which is closed when this goes.
///
/// The browser would connect anew by itself, but says neither why a connection was lost nor when one is refused for
/// good: whoever listens connects anew.
pub(super) struct ServerEvents {
    source: EventSource,
    /// What is told, in the order in which it came.
    pub(super) told: UnboundedReceiver<ServerEvent>,
    _heard: [Closure<dyn Fn(MessageEvent)>; 3],
    _lost: Closure<dyn Fn()>,
}

thread_local! {
    static OPEN: Cell<u32> = const { Cell::new(0) };
}

impl ServerEvents {
    /// How many connections this tab has.
    pub(super) fn open() -> u32 {
        OPEN.get()
    }

    /// Listens to a run of the server from line `from` of its journal on; `None` where the browser cannot.
    pub(super) fn of(run: &str, from: u64) -> Option<Self> {
        let source = EventSource::new(&events_path(run, from)).ok()?;
        let (tell, told) = mpsc::unbounded();
        let heard = [event::RUN, event::LINE, event::STUDY].map(|name| listener(name, tell.clone()));
        for (name, heard) in [event::RUN, event::LINE, event::STUDY].iter().zip(&heard) {
            let added = source.add_event_listener_with_callback(name, heard.as_ref().unchecked_ref());
            added.ok()?;
        }
        let lost = {
            let source = source.clone();
            Closure::<dyn Fn()>::new(move || {
                source.close();
                // Who listened may be gone.
                let _ = tell.unbounded_send(ServerEvent::Lost);
            })
        };
        source.set_onerror(Some(lost.as_ref().unchecked_ref()));
        OPEN.set(OPEN.get() + 1);
        Some(Self {
            source,
            told,
            _heard: heard,
            _lost: lost,
        })
    }
}

fn listener(name: &'static str, tell: UnboundedSender<ServerEvent>) -> Closure<dyn Fn(MessageEvent)> {
    Closure::new(move |message: MessageEvent| {
        let data = message.data().as_string().unwrap_or_default();
        let told = ServerEvent::read(name, &message.last_event_id(), data);
        // As above.
        let _ = tell.unbounded_send(told);
    })
}

/// One line of the journal of a run of the server, whole.
///
/// # Errors
/// That it does not come.
pub(super) async fn line(run: &str, number: u64) -> Result<String, String> {
    let events = ServerEvents::of(run, number);
    let mut events = events.ok_or("This browser does not listen to the server.")?;
    while let Some(event) = events.told.next().await {
        match event {
            ServerEvent::Line(came, line) if came == number => return Ok(line),
            ServerEvent::Lost => break,
            _ => {}
        }
    }
    Err("The server was not reached. Try again in a moment.".into())
}

impl Drop for ServerEvents {
    fn drop(&mut self) {
        self.source.set_onerror(None);
        self.source.close();
        OPEN.set(OPEN.get().saturating_sub(1));
    }
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
    }
}
