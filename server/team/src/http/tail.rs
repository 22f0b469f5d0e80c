//! Something whose lines grow, as Server-Sent Events for those who watch it.
//!
//! However many watch it, one task looks for its new lines, and all are sent the same bytes; who is slower than that reads
//! what they missed themselves.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::{IntoResponse, Response};
use capo_api::event;
use capo_core::notice::Wait;
use capo_hosted::left;
use serde::Deserialize;
use tokio::sync::{broadcast, mpsc};
use tokio::time::Instant;
use utoipa::IntoParams;

use super::Server;
use super::caller::{Caller, Known, Visitor};
use super::problem::Refusal;
use crate::places::Place;
use crate::store::{Millis, Store, StoreError};

/// How often what is watched is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// How often it is asked whether who watches still may.
const ASK: Duration = Duration::from_secs(30);

/// News that wait for a slow watcher, and events that they did not take yet.
const WAITING: usize = 64;
const UNTAKEN: usize = 16;

/// How long a watcher may take nothing of what there is.
const STALLED: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 60 });

/// How often something is sent to who watches, so that nobody takes the connection for dead.
const ALIVE: Duration = Duration::from_secs(15);

/// Where to begin.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct From {
    /// Number of the first line, from 0; 0 unless stated.
    pub(super) from: Option<u64>,
}

/// What is watched.
pub(super) trait Watched: Clone + PartialEq + Send + Sync + 'static {
    fn id(&self) -> &str;

    /// Name of its project.
    fn project_name(&self) -> &str;

    /// How many lines it has.
    fn lines(&self) -> u64;

    /// How often the first line was replaced.
    fn revision(&self) -> u64;

    /// The same with so many lines, and as recent as another state of it.
    fn as_of(&self, lines: u64, other: &Self) -> Self;

    /// What is told of it beside its lines, by which name.
    fn document(&self) -> (&'static str, String);

    /// The model that it waits for, and until when.
    fn waits(&self) -> Option<&(Wait, Millis)> {
        None
    }

    /// As it is now.
    fn read(store: &Store, id: &str) -> impl Future<Output = Result<Self, StoreError>> + Send;

    /// Some of its lines from one on, and at least one where there is one.
    fn read_lines(
        store: &Store,
        id: &str,
        from: u64,
    ) -> impl Future<Output = Result<Vec<(u64, String)>, StoreError>> + Send;
}

/// What is new, as it is sent.
#[derive(Debug, Clone)]
enum News {
    /// Lines by their numbers.
    Lines(Arc<[(u64, Bytes)]>),
    /// Another first line, and its revision.
    First(u64, Bytes),
    /// Anything else.
    Rest(Bytes),
    /// It is there no more.
    Gone,
}

/// What is watched now.
#[derive(Debug, Clone, Default)]
pub(super) struct Tails(Arc<Mutex<HashMap<String, broadcast::Sender<News>>>>);

impl Tails {
    /// What is new about something from now on.
    fn follow<T: Watched>(&self, server: &Server, watched: &T) -> broadcast::Receiver<News> {
        let mut tails = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = tails.get(watched.id()) {
            return sender.subscribe();
        }
        let (sender, receiver) = broadcast::channel(WAITING);
        tails.insert(watched.id().to_owned(), sender.clone());
        tokio::spawn(look_after(server.clone(), self.clone(), watched.clone(), sender));
        receiver
    }

    /// Forgets what nobody watches any more; false while somebody does.
    fn forget(&self, id: &str, sender: &broadcast::Sender<News>) -> bool {
        let mut tails = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unwatched = sender.receiver_count() == 0;
        if is_unwatched {
            tails.remove(id);
        }
        is_unwatched
    }

    /// Answers whoever watches from a line on, or behind the last one that their browser has.
    ///
    /// # Errors
    /// When more watch than the server carries, or they more than their share.
    pub(super) fn answer<T: Watched>(
        &self,
        server: Server,
        watched: &T,
        from: &From,
        (caller, headers): (Caller, HeaderMap),
    ) -> Result<Response, Refusal> {
        // A browser that connects anew.
        let last = headers
            .get("last-event-id")
            .and_then(|last| last.to_str().ok()?.parse::<u64>().ok());
        let next = last.map_or(from.from.unwrap_or(0), |last| last.saturating_add(1));
        let place = server.0.bounds.watch(&caller.member.id)?;
        let receiver = self.follow(&server, watched);
        let watcher = Watcher::<T> {
            ready: VecDeque::from([of_rest(watched)]),
            revision: watched.revision(),
            id: watched.id().to_owned(),
            project: watched.project_name().to_owned(),
            visitor: caller.visitor,
            headers,
            receiver,
            next,
            is_behind: true,
            asked: Instant::now(),
            server,
            _place: place,
            _watched: PhantomData,
        };
        let (taker, events) = mpsc::channel(UNTAKEN);
        tokio::spawn(watcher.attend(taker));
        let events = futures::stream::unfold(events, |mut events| async {
            let event = match tokio::time::timeout(ALIVE, events.recv()).await {
                Ok(event) => event?,
                Err(_) => Bytes::from_static(b":\n\n"),
            };
            Some((Ok::<_, Infallible>(event), events))
        });
        let headers = [
            (header::CONTENT_TYPE, "text/event-stream"),
            // Proxies are not to wait for more.
            (HeaderName::from_static("x-accel-buffering"), "no"),
        ];
        Ok((headers, Body::from_stream(events)).into_response())
    }
}

/// Says what is new for as long as somebody watches.
async fn look_after<T: Watched>(server: Server, tails: Tails, mut known: T, sender: broadcast::Sender<News>) {
    loop {
        tokio::time::sleep(LOOK).await;
        if tails.forget(known.id(), &sender) {
            return;
        }
        match news(&server, &known).await {
            Ok((news, now)) => {
                for news in news {
                    // Nobody may listen by now.
                    let _ = sender.send(news);
                }
                known = now;
            }
            Err(StoreError::Missing(_)) => {
                // As above.
                let _ = sender.send(News::Gone);
            }
            Err(error) => tracing::warn!(id = known.id(), %error, "what is watched could not be read"),
        }
    }
}

/// What is new since something was as it is known.
async fn news<T: Watched>(server: &Server, known: &T) -> Result<(Vec<News>, T), StoreError> {
    let store = server.store();
    let now = T::read(store, known.id()).await?;
    let mut news = Vec::new();
    if now.revision() != known.revision() {
        news.push(News::First(now.revision(), first(store, now.id()).await?));
    }
    let mut next = known.lines();
    while next < now.lines() {
        let mut lines = lines::<T>(store, now.id(), next).await?;
        // What came since it was read is told with it the next time.
        lines.retain(|(line, _)| *line < now.lines());
        let Some((last, _)) = lines.last() else { break };
        next = last + 1;
        news.push(News::Lines(lines.into()));
    }
    if known.as_of(now.lines(), &now) != now {
        news.push(News::Rest(of_rest(&now)));
    }
    if known.waits() != now.waits() {
        news.push(News::Rest(of_waits(&now, server.now())));
    }
    let told = now.as_of(next, &now);
    Ok((news, told))
}

/// An event as it is sent.
fn event(name: &str, id: Option<u64>, data: &str) -> Bytes {
    let mut text = String::new();
    event::write(&mut text, name, id, data);
    text.into()
}

/// The model that is waited for, or none.
fn of_waits(watched: &impl Watched, now: Millis) -> Bytes {
    let wait = watched.waits().and_then(|waits| left(waits, now));
    let document = serde_json::to_string(&wait).expect("documents are plain");
    event(event::WAITS, None, &document)
}

/// What is told beside the lines.
fn of_rest(watched: &impl Watched) -> Bytes {
    let (name, document) = watched.document();
    event(name, None, &document)
}

/// Some lines from one on.
async fn lines<T: Watched>(store: &Store, id: &str, from: u64) -> Result<Vec<(u64, Bytes)>, StoreError> {
    let lines = T::read_lines(store, id, from).await?.into_iter();
    Ok(lines
        .map(|(line, text)| (line, event(event::LINE, Some(line), &text)))
        .collect())
}

/// The first line of a journal, which alone is ever replaced.
async fn first(store: &Store, id: &str) -> Result<Bytes, StoreError> {
    Ok(event(event::STUDY, None, &store.line(id, 0).await?))
}

/// Somebody who watches.
struct Watcher<T> {
    server: Server,
    id: String,
    project: String,
    visitor: Visitor,
    headers: HeaderMap,
    receiver: broadcast::Receiver<News>,
    /// Number of the line that they get next.
    next: u64,
    /// The revision of the first line that they have, or will get.
    revision: u64,
    /// Whether there may be lines that they did not get.
    is_behind: bool,
    ready: VecDeque<Bytes>,
    /// When it was last asked whether they may watch.
    asked: Instant,
    _place: Place,
    _watched: PhantomData<T>,
}

impl<T: Watched> Watcher<T> {
    /// Sends what there is for as long as they take it and may watch.
    async fn attend(mut self, taker: mpsc::Sender<Bytes>) {
        loop {
            while let Some(event) = self.ready.pop_front() {
                let taken = tokio::time::timeout(STALLED, taker.send(event)).await;
                if !matches!(taken, Ok(Ok(()))) {
                    return;
                }
            }
            tokio::select! {
                () = taker.closed() => return,
                waited = self.wait() => if waited.is_none() { return },
            }
        }
    }

    /// Waits for something to send; none once they may watch no more, or there is nothing to watch.
    async fn wait(&mut self) -> Option<()> {
        if self.asked.elapsed() >= ASK {
            self.may_watch().await?;
        }
        if self.server.0.ending.is_cancelled() {
            return None;
        }
        if self.is_behind {
            return self.catch_up().await;
        }
        let news = tokio::select! {
            news = tokio::time::timeout(ASK, self.receiver.recv()) => news,
            () = self.server.0.ending.cancelled() => return None,
        };
        match news {
            // It is time to ask.
            Err(_) => {}
            Ok(Ok(News::Lines(lines))) => self.take(&lines),
            Ok(Ok(News::First(revision, line))) => self.replace(revision, line),
            Ok(Ok(News::Rest(event))) => self.ready.push_back(event),
            Ok(Ok(News::Gone) | Err(broadcast::error::RecvError::Closed)) => return None,
            Ok(Err(broadcast::error::RecvError::Lagged(_))) => self.is_behind = true,
        }
        Some(())
    }

    /// Takes the lines that come next.
    fn take(&mut self, lines: &[(u64, Bytes)]) {
        for (line, event) in lines {
            if *line > self.next {
                self.is_behind = true;
                return;
            }
            if *line == self.next {
                self.ready.push_back(event.clone());
                self.next += 1;
            }
        }
    }

    /// Tells them of another first line, unless they have it, or none yet.
    fn replace(&mut self, revision: u64, line: Bytes) {
        if revision > self.revision {
            self.revision = revision;
            if self.next > 0 {
                self.ready.push_back(line);
            }
        }
    }

    /// Reads what they did not get.
    async fn catch_up(&mut self) -> Option<()> {
        // What is read is newer than what waits.
        self.receiver = self.receiver.resubscribe();
        let read = async {
            let store = self.server.store();
            loop {
                // Before the lines, for it says how many there are at least.
                let watched = T::read(store, &self.id).await?;
                let first = if watched.revision() > self.revision {
                    Some(first(store, &self.id).await?)
                } else {
                    None
                };
                let lines = lines::<T>(store, &self.id, self.next).await?;
                if T::read(store, &self.id).await?.revision() == watched.revision() {
                    return Ok::<_, StoreError>((watched, first, lines));
                }
            }
        };
        match read.await {
            Ok((watched, first, lines)) => {
                if let Some(first) = first {
                    self.replace(watched.revision(), first);
                }
                self.take(&lines);
                self.is_behind = self.next < watched.lines();
                if !self.is_behind {
                    self.ready.push_back(of_rest(&watched));
                    if watched.waits().is_some() {
                        self.ready.push_back(of_waits(&watched, self.server.now()));
                    }
                }
                Some(())
            }
            Err(error) => {
                tracing::warn!(id = self.id, %error, "what is watched could not be read");
                // They connect anew.
                None
            }
        }
    }

    /// Whether they may still watch; none where not.
    async fn may_watch(&mut self) -> Option<()> {
        self.asked = Instant::now();
        let now = Visitor {
            at: self.server.now(),
            ..self.visitor.clone()
        };
        let known = Known::of(&self.headers, &self.server, &now).await.ok()??;
        self.server
            .store()
            .project(&known.member, &self.project)
            .await
            .ok()?;
        Some(())
    }
}
