//! The journal of a run as it grows: JSON Lines, and Server-Sent Events for those who watch.

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use capo_api::event;
use capo_hosted::{Waits, left};
use futures::future::{Either, select};
use futures::stream::unfold;
use worker::{Delay, Response};

use super::kept::Kept;
use crate::runtime::now;

/// Bytes of a journal that are read at once.
const AT_ONCE: usize = 1 << 18;

/// How often something is sent to who watches, so that nobody takes the connection for dead.
const ALIVE: Duration = Duration::from_secs(15);

/// The journal from a line on, as JSON Lines.
pub(super) fn journal(kept: Rc<Kept>, from: u64) -> worker::Result<Response> {
    let pieces = unfold(from, move |next| {
        let kept = Rc::clone(&kept);
        async move {
            let lines = match kept.lines(next, AT_ONCE) {
                Ok(lines) => lines,
                Err(error) => return Some((Err(error), next)),
            };
            let (last, _) = lines.last()?;
            let next = last + 1;
            let text: String = lines.into_iter().map(|(_, line)| line + "\n").collect();
            Some((Ok(text.into_bytes()), next))
        }
    });
    let response = Response::from_stream(pieces)?;
    response.headers().set("content-type", "application/x-ndjson")?;
    Ok(response)
}

/// The run from a line on, see `capo_api::event`.
pub(super) fn events(kept: Rc<Kept>, from: u64) -> worker::Result<Response> {
    let revision = kept.shown().revision;
    let watcher = Watcher {
        next: from,
        revision,
        told: None,
        waits: None,
        has_begun: false,
        kept,
    };
    let events = unfold(watcher, |mut watcher| async {
        let told = watcher.wait().await?;
        Some((told.map(String::into_bytes), watcher))
    });
    let response = Response::from_stream(events)?;
    response.headers().set("content-type", "text/event-stream")?;
    Ok(response)
}

/// Somebody who watches a run.
struct Watcher {
    kept: Rc<Kept>,
    /// Number of the line that they get next.
    next: u64,
    /// The revision of the first line that they have, or will get.
    revision: u64,
    /// The version of the run that they were told of.
    told: Option<u64>,
    /// What they were told of whom it waits for.
    waits: Waits,
    has_begun: bool,
}

impl Watcher {
    /// Waits for something to send; none once there is nothing to watch.
    async fn wait(&mut self) -> Option<worker::Result<String>> {
        loop {
            if self.kept.is_gone() {
                return None;
            }
            match self.news() {
                Ok(news) if news.is_empty() => {}
                news => return Some(news),
            }
            let (changed, quiet) = (pin!(self.kept.changed.notified()), pin!(Delay::from(ALIVE)));
            if matches!(select(changed, quiet).await, Either::Right(_)) {
                return Some(Ok(":\n\n".to_owned()));
            }
        }
    }

    /// What they were not told of yet.
    fn news(&mut self) -> worker::Result<String> {
        let mut news = String::new();
        if !std::mem::replace(&mut self.has_begun, true) {
            self.tell_run(&mut news)?;
            return Ok(news);
        }
        let revision = self.kept.shown().revision;
        if revision > self.revision {
            self.revision = revision;
            if self.next > 0
                && let Some((_, first)) = self.kept.lines(0, 1)?.pop()
            {
                event::write(&mut news, event::STUDY, None, &first);
            }
        }
        for (line, text) in self.kept.lines(self.next, AT_ONCE)? {
            event::write(&mut news, event::LINE, Some(line), &text);
            self.next = line + 1;
        }
        let version = self.kept.version();
        if self.next >= self.kept.shown().lines && self.told != Some(version) {
            self.told = Some(version);
            self.tell_run(&mut news)?;
        }
        let waits = self.kept.waits();
        if waits != self.waits {
            let wait = waits.as_ref().and_then(|waits| left(waits, now().cast_signed()));
            event::write(&mut news, event::WAITS, None, &serde_json::to_string(&wait)?);
            self.waits = waits;
        }
        Ok(news)
    }

    fn tell_run(&self, news: &mut String) -> worker::Result<()> {
        event::write(
            news,
            event::RUN,
            None,
            &serde_json::to_string(&*self.kept.shown())?,
        );
        Ok(())
    }
}
