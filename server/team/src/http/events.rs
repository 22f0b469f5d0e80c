//! The journal of a run as it grows: JSON Lines, and Server-Sent Events for those who watch.
//!
//! However many watch a run, one task looks for its new lines; who is slower than that reads what they missed themselves.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use capo_api::{Problem, Role, event};
use serde::Deserialize;
use tokio::sync::{broadcast, mpsc};
use tokio::time::Instant;
use utoipa::IntoParams;

use super::Server;
use super::caller::{Caller, Known, Visitor};
use super::extract::{Path, Query};
use super::problem::Refusal;
use super::runs::shown;
use crate::places::Place;
use crate::store::{Run, StoreError};

/// How often a run that is watched is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// How often it is asked whether who watches still may.
const ASK: Duration = Duration::from_secs(30);

/// Bytes of a journal that are read at once.
const AT_ONCE: usize = 1 << 20;

/// News that wait for a slow watcher, and events that they did not take yet.
const WAITING: usize = 64;
const UNTAKEN: usize = 16;

/// How long a watcher may take nothing of what there is.
const STALLED: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 60 });

/// What is new about a run.
#[derive(Debug, Clone)]
enum News {
    /// Lines from a number on.
    Lines(Arc<[(u64, String)]>),
    /// Another first line, and its revision.
    Study(u64, Arc<str>),
    /// Anything else.
    Run(Arc<Run>),
    /// It is there no more.
    Gone,
}

/// The runs that are watched now.
#[derive(Debug, Clone, Default)]
pub(super) struct Tails(Arc<Mutex<HashMap<String, broadcast::Sender<News>>>>);

impl Tails {
    /// What is new about a run from now on.
    fn follow(&self, server: &Server, run: &Run) -> broadcast::Receiver<News> {
        let mut tails = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = tails.get(&run.id) {
            return sender.subscribe();
        }
        let (sender, receiver) = broadcast::channel(WAITING);
        tails.insert(run.id.clone(), sender.clone());
        tokio::spawn(look_after(server.clone(), self.clone(), run.clone(), sender));
        receiver
    }

    /// Forgets a run that nobody watches any more; false while somebody does.
    fn forget(&self, run: &str, sender: &broadcast::Sender<News>) -> bool {
        let mut tails = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unwatched = sender.receiver_count() == 0;
        if is_unwatched {
            tails.remove(run);
        }
        is_unwatched
    }
}

/// Says what is new about a run for as long as somebody watches it.
async fn look_after(server: Server, tails: Tails, mut known: Run, sender: broadcast::Sender<News>) {
    loop {
        tokio::time::sleep(LOOK).await;
        if tails.forget(&known.id, &sender) {
            return;
        }
        match news(&server, &known).await {
            Ok((news, run)) => {
                for news in news {
                    // Nobody may listen by now.
                    let _ = sender.send(news);
                }
                known = run;
            }
            Err(StoreError::Missing(_)) => {
                // As above.
                let _ = sender.send(News::Gone);
            }
            Err(error) => tracing::warn!(run = known.id, %error, "a run that is watched could not be read"),
        }
    }
}

/// What is new since a run was as it is known.
async fn news(server: &Server, known: &Run) -> Result<(Vec<News>, Run), StoreError> {
    let run = server.store().run(&known.id).await?;
    let mut news = Vec::new();
    if run.revision != known.revision {
        let line = server.store().line(&run.id, 0).await?;
        news.push(News::Study(run.revision, line.into()));
    }
    let mut next = known.lines;
    while next < run.lines {
        let lines = server.store().lines(&run.id, next, AT_ONCE).await?;
        // What came since the run was read is told with it the next time.
        let lines: Vec<_> = lines.into_iter().filter(|(line, _)| *line < run.lines).collect();
        let Some((last, _)) = lines.last() else { break };
        next = last + 1;
        news.push(News::Lines(lines.into()));
    }
    let before = Run {
        lines: run.lines,
        touched_at: run.touched_at,
        ..known.clone()
    };
    if before != run {
        news.push(News::Run(Arc::new(run.clone())));
    }
    Ok((news, Run { lines: next, ..run }))
}

/// Where to begin.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct From {
    /// Number of the first line, from 0; 0 unless stated.
    from: Option<u64>,
}

/// The journal of a run, as JSON Lines.
#[utoipa::path(
    get, path = "/api/runs/{run}/journal", operation_id = "journal", params(("run" = String, Path), From),
    security(("session" = []), ("token" = [])),
    responses((status = 200, body = String, content_type = "application/x-ndjson"), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn journal(
    State(server): State<Server>,
    caller: Caller,
    Path(run): Path<String>,
    Query(from): Query<From>,
) -> Result<Response, Refusal> {
    let run = caller.run(&server, &run, Role::Viewer).await?;
    let pieces = futures::stream::try_unfold(from.from.unwrap_or(0), move |next| {
        let (server, id) = (server.clone(), run.id.clone());
        async move {
            let lines = server.store().lines(&id, next, AT_ONCE).await?;
            let Some((last, _)) = lines.last() else {
                return Ok::<_, StoreError>(None);
            };
            let next = last + 1;
            let text: String = lines.into_iter().map(|(_, line)| line + "\n").collect();
            Ok(Some((Bytes::from(text), next)))
        }
    });
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, Body::from_stream(pieces)).into_response())
}

/// A run from a line of its journal on, as Server-Sent Events: `line` (a line, whose number is the event's id), `study` (the
/// first line was replaced), `run` (anything else about it).
#[utoipa::path(
    get, path = "/api/runs/{run}/events", operation_id = "events", params(("run" = String, Path), From),
    security(("session" = []), ("token" = [])),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn events(
    State(server): State<Server>,
    caller: Caller,
    headers: HeaderMap,
    Path(run): Path<String>,
    Query(from): Query<From>,
) -> Result<Response, Refusal> {
    let run = caller.run(&server, &run, Role::Viewer).await?;
    // A browser that connects anew.
    let last = headers
        .get("last-event-id")
        .and_then(|last| last.to_str().ok()?.parse::<u64>().ok());
    let next = last.map_or(from.from.unwrap_or(0), |last| last.saturating_add(1));
    let place = server.0.bounds.watch(&caller.member.id)?;
    let receiver = server.0.tails.follow(&server, &run);
    let watcher = Watcher {
        ready: VecDeque::from([of_run(&run)]),
        revision: run.revision,
        run: run.id,
        project: run.project_name,
        visitor: caller.visitor,
        headers,
        receiver,
        next,
        is_behind: true,
        asked: Instant::now(),
        server,
        _place: place,
    };
    let (taker, events) = mpsc::channel(UNTAKEN);
    tokio::spawn(watcher.attend(taker));
    let events = futures::stream::unfold(events, |mut events| async {
        let event = events.recv().await?;
        Some((Ok::<_, Infallible>(event), events))
    });
    let mut response = Sse::new(events)
        .keep_alive(KeepAlive::new().interval(Duration::from_secs(15)))
        .into_response();
    // Proxies are not to wait for more.
    response
        .headers_mut()
        .insert("x-accel-buffering", axum::http::HeaderValue::from_static("no"));
    Ok(response)
}

/// Somebody who watches a run.
struct Watcher {
    server: Server,
    run: String,
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
    ready: VecDeque<Event>,
    /// When it was last asked whether they may watch.
    asked: Instant,
    _place: Place,
}

impl Watcher {
    /// Sends what there is for as long as they take it and may watch.
    async fn attend(mut self, taker: mpsc::Sender<Event>) {
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
            Ok(Ok(News::Study(revision, line))) => self.replace(revision, &line),
            Ok(Ok(News::Run(run))) => self.ready.push_back(of_run(&run)),
            Ok(Ok(News::Gone) | Err(broadcast::error::RecvError::Closed)) => return None,
            Ok(Err(broadcast::error::RecvError::Lagged(_))) => self.is_behind = true,
        }
        Some(())
    }

    /// Takes the lines that come next.
    fn take(&mut self, lines: &[(u64, String)]) {
        for (line, text) in lines {
            if *line > self.next {
                self.is_behind = true;
                return;
            }
            if *line == self.next {
                self.ready.push_back(of_line(*line, text));
                self.next += 1;
            }
        }
    }

    /// Tells them of another first line, unless they have it, or none yet.
    fn replace(&mut self, revision: u64, line: &str) {
        if revision > self.revision {
            self.revision = revision;
            if self.next > 0 {
                self.ready
                    .push_back(Event::default().event(event::STUDY).data(line));
            }
        }
    }

    /// Reads what they did not get.
    async fn catch_up(&mut self) -> Option<()> {
        let read = async {
            let store = self.server.store();
            loop {
                // Before the lines, for it says how many there are at least.
                let run = store.run(&self.run).await?;
                let first = if run.revision > self.revision {
                    Some(store.line(&self.run, 0).await?)
                } else {
                    None
                };
                let lines = store.lines(&self.run, self.next, AT_ONCE).await?;
                if store.run(&self.run).await?.revision == run.revision {
                    return Ok::<_, StoreError>((run, first, lines));
                }
            }
        };
        match read.await {
            Ok((run, first, lines)) => {
                if let Some(first) = first {
                    self.replace(run.revision, &first);
                }
                self.take(&lines);
                self.is_behind = self.next < run.lines;
                if !self.is_behind {
                    self.ready.push_back(of_run(&run));
                }
                Some(())
            }
            Err(error) => {
                tracing::warn!(run = self.run, %error, "a run that is watched could not be read");
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

fn of_line(line: u64, text: &str) -> Event {
    Event::default()
        .event(event::LINE)
        .id(line.to_string())
        .data(text)
}

fn of_run(run: &Run) -> Event {
    let document = serde_json::to_string(&shown(run.clone())).expect("documents are plain");
    Event::default().event(event::RUN).data(document)
}
