//! Server-Sent Events of the team server as things happen.

use std::cell::Cell;

use futures::channel::mpsc::{self, UnboundedReceiver};
use wasm_bindgen::prelude::*;
use web_sys::{EventSource, MessageEvent};

/// A connection, which is closed when this goes.
///
/// The browser would connect anew by itself, but says neither why a connection was lost nor when one is refused for
/// good: whoever listens connects anew, and [`again`] says when.
pub struct Listening<T> {
    source: EventSource,
    /// What is told, in the order in which it came, until the connection is lost.
    pub told: UnboundedReceiver<T>,
    _heard: Vec<Closure<dyn Fn(MessageEvent)>>,
    _lost: Closure<dyn Fn()>,
}

thread_local! {
    static OPEN: Cell<u32> = const { Cell::new(0) };
}

/// Milliseconds until a lost connection is made again, after so many before that were lost and told nothing.
pub fn again(lost: u32) -> u32 {
    u32::min(30_000, 1_000 << lost.min(16))
}

impl<T: 'static> Listening<T> {
    /// How many connections this tab has.
    pub fn open() -> u32 {
        OPEN.get()
    }

    /// Listens to events of these names, each of which is read with its name, id and data; `None` where the browser cannot.
    pub fn to(path: &str, names: &[&'static str], read: fn(&str, &str, String) -> T) -> Option<Self> {
        let source = EventSource::new(path).ok()?;
        let (tell, told) = mpsc::unbounded();
        let mut heard = Vec::new();
        for &name in names {
            let tell = tell.clone();
            let listener = Closure::<dyn Fn(MessageEvent)>::new(move |message: MessageEvent| {
                let data = message.data().as_string().unwrap_or_default();
                // Who listened may be gone.
                let _ = tell.unbounded_send(read(name, &message.last_event_id(), data));
            });
            let added = source.add_event_listener_with_callback(name, listener.as_ref().unchecked_ref());
            added.ok()?;
            heard.push(listener);
        }
        let lost = {
            let source = source.clone();
            Closure::<dyn Fn()>::new(move || {
                source.close();
                tell.close_channel();
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

impl<T> Drop for Listening<T> {
    fn drop(&mut self) {
        self.source.set_onerror(None);
        self.source.close();
        OPEN.set(OPEN.get().saturating_sub(1));
    }
}
