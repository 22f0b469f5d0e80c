//! Server-Sent Events of a run of a team server.

use capo_api::{ClientError, RunShown, event, events_path};
use capo_core::backoff::{Backoff, FIRST_WAIT};
use capo_core::notice::Wait;
use eventsource_stream::{EventStreamError, Eventsource as _};
use futures::StreamExt as _;
use futures::stream::LocalBoxStream;

use super::server::{Server, in_words};

/// A connection that breaks is made anew for about a quarter of an hour.
const AGAIN: Backoff = Backoff {
    retries: 34,
    first_wait: FIRST_WAIT,
};

/// What a server says of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerEvent {
    /// Where it stands. All lines of which it speaks were told, unless it is the first thing that is said.
    Run(Box<RunShown>),
    /// The next line of its journal.
    Line(String),
    /// The first line is this one from now on.
    Study(String),
    /// The model that it waits for, if it waits for one.
    Waits(Option<Wait>),
    /// Lines are told anew from the first one on; what was told of them does not hold.
    Anew,
    /// The connection broke, for this reason; it is made again.
    Lost(String),
}

type Stream = LocalBoxStream<'static, Result<eventsource_stream::Event, EventStreamError<reqwest::Error>>>;

/// What a server says of a run from the first line of its journal on, over as many connections as that takes.
pub struct Events<'a> {
    server: &'a Server,
    run: &'a str,
    /// The line that comes next, from 0.
    next: u64,
    /// How often the first line was replaced.
    revision: Option<u64>,
    stream: Option<Stream>,
    /// Whether nothing was said on this connection.
    is_fresh: bool,
    /// How often it was tried in vain to hear anything.
    tries: u32,
}

impl<'a> Events<'a> {
    /// Of a run, by its whole id. Nothing is asked yet.
    pub fn new(server: &'a Server, run: &'a str) -> Self {
        Self {
            server,
            run,
            next: 0,
            revision: None,
            stream: None,
            is_fresh: true,
            tries: 0,
        }
    }

    /// The next thing that is said; waits for it.
    ///
    /// # Errors
    /// When the server refuses, says what no server of this version says, or is not reached for long.
    pub async fn next(&mut self) -> Result<ServerEvent, ClientError> {
        loop {
            let Some(stream) = &mut self.stream else {
                if let Some(lost) = self.connect().await? {
                    return Ok(lost);
                }
                continue;
            };
            let reason = match stream.next().await {
                Some(Ok(said)) => match self.understood(said)? {
                    Some(told) => return Ok(told),
                    None => continue,
                },
                Some(Err(EventStreamError::Transport(error))) => in_words(error),
                Some(Err(_)) => return Err(ClientError::UnexpectedAnswer { status: 200 }),
                None => "the connection was closed".to_owned(),
            };
            if let Some(lost) = self.lost(reason) {
                return Ok(lost);
            }
        }
    }

    async fn connect(&mut self) -> Result<Option<ServerEvent>, ClientError> {
        if self.tries > 0 {
            let wait = AGAIN.wait(self.tries, None, jitter()).ok_or_else(|| {
                ClientError::Unreached("no connection came about for a quarter of an hour".to_owned())
            })?;
            tokio::time::sleep(wait).await;
        }
        match self.server.stream(&events_path(self.run, self.next)).await {
            Ok(response) => {
                self.stream = Some(response.bytes_stream().eventsource().boxed_local());
                self.is_fresh = true;
                Ok(None)
            }
            Err(error) if may_pass(&error) => Ok(self.lost(error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// Lets go of the connection. What is told of it, once until another one serves.
    fn lost(&mut self, reason: String) -> Option<ServerEvent> {
        self.stream = None;
        self.tries += 1;
        (self.tries == 1).then_some(ServerEvent::Lost(reason))
    }

    /// What an event says; nothing where it says nothing new.
    fn understood(&mut self, said: eventsource_stream::Event) -> Result<Option<ServerEvent>, ClientError> {
        self.tries = 0;
        let unexpected = ClientError::UnexpectedAnswer { status: 200 };
        let is_fresh = std::mem::replace(&mut self.is_fresh, false);
        match said.event.as_str() {
            event::RUN => {
                let run: RunShown = serde_json::from_str(&said.data).map_err(|_| unexpected)?;
                let known = self.revision.replace(run.revision);
                let is_other = known.is_some_and(|known| known != run.revision) || run.lines < self.next;
                if is_fresh && self.next > 0 && is_other {
                    self.next = 0;
                    self.stream = None;
                    return Ok(Some(ServerEvent::Anew));
                }
                Ok(Some(ServerEvent::Run(Box::new(run))))
            }
            event::LINE => {
                let number: u64 = said.id.parse().map_err(|_| unexpected.clone())?;
                if number > self.next {
                    return Err(unexpected);
                }
                if number < self.next {
                    return Ok(None);
                }
                self.next += 1;
                Ok(Some(ServerEvent::Line(said.data)))
            }
            event::STUDY => Ok(Some(ServerEvent::Study(said.data))),
            event::WAITS => Ok(serde_json::from_str(&said.data).ok().map(ServerEvent::Waits)),
            // A later version may say more.
            _ => Ok(None),
        }
    }
}

/// Whether it may go better another time.
fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Unreached(_) => true,
        ClientError::Refused(problem) => problem.status >= 500 || matches!(problem.status, 408 | 429),
        // Such as a reverse proxy, while the server behind it starts.
        ClientError::UnexpectedAnswer { status } => *status >= 500 || *status == 429,
    }
}

/// Uniform in [0, 1), as far as the moment is chance.
fn jitter() -> f64 {
    f64::from(jiff::Timestamp::now().subsec_nanosecond()) / 1e9
}
