//! A model behind HTTP: one call, tried as often as it makes sense.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use capo_core::backoff::{Backoff, LONGEST_ASKED};
use capo_core::control::Control;
use capo_core::llm::{
    CallUsage, ChatRequest, ChatResponse, FailureKind, Llm, LlmError, Message, RewriteForm,
};
use futures::future::{Either, LocalBoxFuture, select};
use http::{HeaderMap, StatusCode};
use rig_core::completion::{CompletionRequest, CompletionResponse};
use rig_core::wire::Operation;
use rig_core::{DynModel, ProviderError};

use crate::asking::{Asking, asked};
use crate::breaker::Breaker;
use crate::call_price::{self, CallPrice};
use crate::connecting::{self, Connecting};
use crate::conversation::{self, CallIds, Turns};
use crate::failure::Failure;
use crate::limiter::Limiter;
use crate::notice::{Notices, Trouble};
use crate::providers::{Account, Connect, List};
use crate::rate_limit;
use crate::secret::Redactor;
use crate::time::{self, Instant};
use crate::transport::{Recorder, Reply, Wire};

/// How often it is looked whether a batch is handed in that nobody is to be dropped before.
const A_MOMENT: Duration = Duration::from_millis(50);

/// What all clients of one model at one place share.
pub(crate) struct Endpoint {
    pub(crate) limiter: Limiter,
    pub(crate) breaker: Breaker,
    pub(crate) trouble: Trouble,
    pub(crate) wire: Wire,
    pub(crate) connecting: Connecting,
}

/// What a try came to: a result and how long the provider wants the next call to wait, or a failure and what
/// it consumed.
pub(crate) type Tried<T> = Result<(T, Option<Duration>), (Failure, CallUsage)>;

/// A model behind HTTP.
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) model: String,
    pub(crate) connect: Connect,
    pub(crate) account: Account,
    pub(crate) headers: HeaderMap,
    pub(crate) rewrite_form: RewriteForm,
    pub(crate) asking: Asking,
    pub(crate) timeout: Duration,
    pub(crate) backoff: Backoff,
    pub(crate) abort_after: u32,
    pub(crate) endpoint: Rc<Endpoint>,
    pub(crate) call_price: CallPrice,
    pub(crate) redactor: Redactor,
    pub(crate) turns: RefCell<Turns>,
    pub(crate) control: Control,
    pub(crate) notices: Notices,
}

/// One request and what became of it.
pub(crate) struct Try<R> {
    pub(crate) outcome: Result<R, Failure>,
    pub(crate) reply: Reply,
    pub(crate) seconds: f64,
}

impl Llm for Client {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_priced(&self) -> bool {
        self.call_price.is_known()
    }

    fn rewrite_form(&self) -> RewriteForm {
        self.rewrite_form
    }

    fn keeps_turns(&self) -> bool {
        self.asking.keeps_turns
    }

    fn chat(&self, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        Box::pin(self.answer(request))
    }
}

impl Client {
    /// Answers `chat`, trying again where that makes sense. What failed tries consumed stands
    /// beside the answer's own usage, or is the error's.
    async fn answer(&self, chat: ChatRequest) -> Result<ChatResponse, LlmError> {
        let request = self
            .request(&chat)
            .map_err(|message| self.error(FailureKind::Provider, false, &message, call_price::NOTHING))?;
        let asked_characters = characters(&chat);
        let draw = chat.seed.unwrap_or(0);
        let attempt = async || self.attempt(request.clone(), draw, asked_characters).await;
        let unanswered = |seconds| match self.endpoint.wire.batches() {
            // Whoever waits for the batch again pays for it.
            Some(_) => call_price::NOTHING,
            None => self.call_price.unanswered(asked_characters, seconds),
        };
        let (answer, failed_tries) = self.persist(attempt, unanswered).await?;
        Ok(ChatResponse {
            failed_tries,
            ..answer
        })
    }

    /// Tries until something comes of it or trying makes no sense any more. Returns what failed tries consumed
    /// beside the result, if any did. An interruption ends every wait, and once nobody waits for calls under way any
    /// more, a try is dropped: `unanswered` says what one may have consumed that took so many seconds until then.
    pub(crate) async fn persist<T>(
        &self,
        attempt: impl AsyncFn() -> Tried<T>,
        unanswered: impl Fn(f64) -> CallUsage,
    ) -> Result<(T, Option<CallUsage>), LlmError> {
        let mut spent = call_price::NOTHING;
        let mut failed_tries = None;
        for tries in 1.. {
            self.check_breaker(spent)?;
            let permit = self
                .unless_interrupted(spent, self.endpoint.limiter.acquire())
                .await?;
            // Others may have failed while this call waited for its turn.
            self.check_breaker(spent)?;

            let started = Instant::now();
            let attempt = pin!(attempt());
            let tried = match select(pin!(self.watched(attempt, started)), pin!(self.let_go())).await {
                Either::Left((tried, _)) => tried,
                Either::Right(((), _)) => {
                    let usage = call_price::sum(spent, unanswered(started.elapsed().as_secs_f64()));
                    return Err(LlmError::Interrupted { usage });
                }
            };
            let (failure, usage) = match tried {
                Ok((result, hold)) => {
                    self.notices.answered(&self.endpoint.trouble, started);
                    if let Some(hold) = hold.map(|hold| hold.min(LONGEST_ASKED)) {
                        self.endpoint.limiter.hold(hold);
                        self.notices.held(&self.endpoint.trouble, hold);
                    }
                    permit.succeeded();
                    self.endpoint.breaker.succeeded();
                    return Ok((result, failed_tries));
                }
                Err(failed) => failed,
            };
            spent = call_price::sum(spent, usage);
            failed_tries = Some(spent);
            let message = self.redactor.clean(&failure.message);
            self.endpoint.breaker.failed(&failure, &message, started);
            let wait = self.backoff.wait(tries, failure.wait, time::jitter());
            if failure.slow_down {
                // Nobody gets through to a provider that is down or asked everybody to wait.
                let everybody = failure.wait.is_some() || failure.kind != FailureKind::RateLimit;
                if let Some(wait) = wait.filter(|_| everybody) {
                    self.endpoint.limiter.hold(wait);
                }
                permit.slowed();
            } else {
                drop(permit);
            }
            let Some(wait) = wait.filter(|_| failure.retryable) else {
                return Err(self.give_up(&failure, &message, tries, spent));
            };
            let next_try = (tries + 1, self.backoff.retries.saturating_add(1));
            self.notices
                .waiting(&self.endpoint.trouble, &failure, &message, wait, next_try);
            self.unless_interrupted(spent, time::sleep(wait)).await?;
        }
        unreachable!("tries are counted until a result or an error")
    }

    /// What comes of a try. That no connection or no first answer comes is told before there is an outcome.
    async fn watched<T>(&self, attempt: impl Future<Output = T> + Unpin, started: Instant) -> T {
        let attempt = match select(attempt, pin!(time::sleep(connecting::TOLD_AFTER))).await {
            Either::Left((tried, _)) => return tried,
            Either::Right(((), attempt)) => attempt,
        };
        let Endpoint {
            connecting, trouble, ..
        } = &*self.endpoint;
        if connecting.is_slow() {
            self.notices.unconnected(trouble, started);
        }
        let quiet = connecting::QUIET.saturating_sub(connecting::TOLD_AFTER);
        match select(attempt, pin!(time::sleep(quiet))).await {
            Either::Left((tried, _)) => tried,
            Either::Right(((), attempt)) => {
                if self.notices.is_doubtful(trouble) {
                    let left = self.timeout.saturating_sub(connecting::QUIET);
                    self.notices.unanswered(trouble, left);
                }
                attempt.await
            }
        }
    }

    /// When tries under way are dropped: a batch is worked on without anybody who waits for it, once it is noted.
    async fn let_go(&self) {
        let Some(batches) = self.endpoint.wire.batches() else {
            return self.control.abandoned().await;
        };
        self.control.interrupted().await;
        while batches.is_handing_in() && !self.control.is_abandoned() {
            time::sleep(A_MOMENT).await;
        }
    }

    /// What comes of `wait`, unless the run is interrupted first.
    async fn unless_interrupted<T>(
        &self,
        spent: CallUsage,
        wait: impl Future<Output = T>,
    ) -> Result<T, LlmError> {
        let waited = time::unless(self.control.interrupted(), wait).await;
        waited.ok_or(LlmError::Interrupted { usage: spent })
    }

    fn check_breaker(&self, spent: CallUsage) -> Result<(), LlmError> {
        match self.endpoint.breaker.given_up(self.abort_after) {
            // It may be up again later, but for a refused key.
            Some((kind, message)) => {
                let later = kind != FailureKind::Authentication;
                Err(self.error(kind, later, &message, spent))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn request(&self, chat: &ChatRequest) -> Result<CompletionRequest, String> {
        asked(&self.asking, chat, &self.turns.borrow())
    }

    async fn attempt(
        &self,
        request: CompletionRequest,
        draw: u64,
        asked_characters: usize,
    ) -> Tried<ChatResponse> {
        let Try {
            outcome,
            reply,
            seconds,
        } = self.send(request, draw).await;
        match outcome {
            Ok(response) => self.judge(&response, &reply, seconds),
            Err(failure) => Err(self.consumed(failure, asked_characters, &reply, seconds)),
        }
    }

    /// A failure with what the try consumed.
    pub(crate) fn consumed(
        &self,
        failure: Failure,
        asked_characters: usize,
        reply: &Reply,
        seconds: f64,
    ) -> (Failure, CallUsage) {
        let usage = match failure.kind {
            FailureKind::Malformed => self.call_price.unreadable(asked_characters, &reply.body, seconds),
            // Whoever gave up waiting, here or in between, does not know what was generated; of a batch nothing was.
            FailureKind::Timeout if self.endpoint.wire.batches().is_none() => {
                self.call_price.unanswered(asked_characters, seconds)
            }
            _ => CallUsage {
                seconds,
                ..call_price::NOTHING
            },
        };
        (failure, usage)
    }

    /// Sends one request and reads what comes back. `draw` tells it from others with the same words.
    pub(crate) async fn send(&self, request: CompletionRequest, draw: u64) -> Try<CompletionResponse> {
        let recorder = self
            .recorder()
            .with_call_ids(CallIds::of(&request))
            .with_draw(draw);
        self.send_on(recorder, self.connect, request).await
    }

    /// Sends one request to the model as `connect` reaches it, and reads what comes back.
    pub(crate) async fn send_through<Op: Operation>(
        &self,
        connect: fn(&Account, &str, Recorder) -> DynModel<Op>,
        request: Op::Request,
    ) -> Try<Op::Response> {
        self.send_on(self.recorder(), connect, request).await
    }

    async fn send_on<Op: Operation>(
        &self,
        recorder: Recorder,
        connect: fn(&Account, &str, Recorder) -> DynModel<Op>,
        request: Op::Request,
    ) -> Try<Op::Response> {
        let model = connect(&self.account, &self.model, recorder.clone());
        self.timed(&recorder, model.call(request)).await
    }

    /// What becomes of a request that was made on `recorder`, within the time that a single call may take.
    pub(crate) async fn timed<R>(
        &self,
        recorder: &Recorder,
        asked: impl Future<Output = Result<R, ProviderError>>,
    ) -> Try<R> {
        let started = Instant::now();
        let outcome = match self.endpoint.wire.batches() {
            // A batch is paid for once it is handed in, and answered however long nobody can look at it.
            Some(_) => Ok(asked.await),
            None => time::timeout(self.timeout, asked).await,
        };
        let seconds = started.elapsed().as_secs_f64();
        let reply = recorder.reply();
        let outcome = match outcome {
            Err(_) => Err(Failure::timeout(self.timeout.as_secs_f64())),
            Ok(answer) => answer.map_err(|error| {
                Failure::read(
                    &error,
                    &reply,
                    &self.account.base_url,
                    self.account.variable.as_deref(),
                    time::since_epoch(),
                    &self.redactor,
                )
            }),
        };
        Try {
            outcome,
            reply,
            seconds,
        }
    }

    /// The models there are for this account, by name, if the provider says so within `patience`.
    pub(crate) async fn models(&self, list: List, patience: Duration) -> Option<Vec<String>> {
        let listing = list(&self.account, self.recorder());
        let models = time::timeout(patience, listing).await.ok()?.ok()?;
        Some(models.data.into_iter().map(|model| model.id).collect())
    }

    pub(crate) fn recorder(&self) -> Recorder {
        Recorder::new(self.endpoint.wire.clone(), self.headers.clone())
    }

    fn judge(&self, response: &CompletionResponse, reply: &Reply, seconds: f64) -> Tried<ChatResponse> {
        let usage = self.call_price.answer(&response.usage, &response.raw, seconds);
        let (message, finish) =
            conversation::answer(response).map_err(|message| (Failure::malformed(message), usage))?;
        self.turns.borrow_mut().remember(&message, response);
        let hold = rate_limit::wait(&reply.headers, time::since_epoch());
        Ok((
            ChatResponse {
                message,
                finish,
                usage,
                failed_tries: None,
            },
            hold,
        ))
    }

    fn give_up(&self, failure: &Failure, message: &str, tries: u32, spent: CallUsage) -> LlmError {
        let mut message = message.to_owned();
        if tries > 1 {
            message = format!("{message} (tried {tries} times)");
        }
        if let Some(wait) = failure.wait.filter(|wait| *wait > LONGEST_ASKED) {
            let (asked, most) = (wait.as_secs(), LONGEST_ASKED.as_secs());
            message =
                format!("{message} (it asks to wait {asked} s, more than the {most} s that are waited)");
        }
        if failure.kind == FailureKind::RateLimit {
            self.endpoint.breaker.gave_up(&message);
        }
        // What is not tried again now may succeed once it is paid for, or the model is there again.
        let of_account = [
            StatusCode::PAYMENT_REQUIRED,
            StatusCode::NOT_FOUND,
            StatusCode::TOO_MANY_REQUESTS,
        ];
        let later = failure.retryable || failure.status.is_some_and(|status| of_account.contains(&status));
        self.error(failure.kind, later, &message, spent)
    }

    fn error(&self, kind: FailureKind, retryable: bool, message: &str, usage: CallUsage) -> LlmError {
        let message = self.redactor.clean(&format!("{}: {message}", self.name));
        LlmError::Failed {
            kind,
            message,
            retryable,
            usage,
        }
    }
}

/// The characters of a conversation, for an estimate of its tokens.
fn characters(chat: &ChatRequest) -> usize {
    chat.messages
        .iter()
        .map(|message| match message {
            Message::System { content } | Message::User { content } | Message::Tool { content, .. } => {
                content.chars().count()
            }
            Message::Assistant(message) => message.text().chars().count(),
        })
        .sum()
}
