//! A model behind HTTP: one call, tried as often as it makes sense.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use capo_core::llm::{
    CallUsage, ChatRequest, ChatResponse, FailureKind, Llm, LlmError, Message, RewriteForm,
};
use futures::future::LocalBoxFuture;
use http::HeaderMap;
use rig_core::completion::{CompletionRequest, CompletionResponse, GenerationOptions, Reasoning};
use rig_core::http_client::DynHttpClient;
use rig_core::wire::Operation;
use rig_core::{DynModel, ProviderError};

use crate::conversation::{self, Turns};
use crate::failure::Failure;
use crate::limiter::Limiter;
use crate::providers::{Account, Connect, List};
use crate::rate_limit;
use crate::retry::{Backoff, Breaker, LONGEST_ASKED};
use crate::secret::Redactor;
use crate::tariff::{self, Tariff};
use crate::time::{self, Instant};
use crate::transport::{Recorder, Reply};

/// What all clients of one model at one place share.
pub(crate) struct Endpoint {
    pub(crate) limiter: Limiter,
    pub(crate) breaker: Breaker,
}

/// What every request of a client carries.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asking {
    pub(crate) temperature: Option<f64>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) reasoning: Option<Reasoning>,
    /// Whether the provider samples by seed.
    pub(crate) seeds: bool,
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
    pub(crate) http: DynHttpClient,
    pub(crate) rewrite_form: RewriteForm,
    pub(crate) asking: Asking,
    pub(crate) timeout: Duration,
    pub(crate) backoff: Backoff,
    pub(crate) abort_after: u32,
    pub(crate) endpoint: Rc<Endpoint>,
    pub(crate) tariff: Tariff,
    pub(crate) redactor: Redactor,
    pub(crate) turns: RefCell<Turns>,
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
        self.tariff.is_known()
    }

    fn rewrite_form(&self) -> RewriteForm {
        self.rewrite_form
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
            .map_err(|message| self.error(FailureKind::Provider, false, &message, tariff::NOTHING))?;
        let asked_characters = characters(&chat);
        let attempt = async || self.attempt(request.clone(), asked_characters).await;
        let (answer, failed_tries) = self.persist(attempt).await?;
        Ok(ChatResponse {
            failed_tries,
            ..answer
        })
    }

    /// Tries until something comes of it or trying makes no sense any more. Returns what failed tries consumed
    /// beside the result, if any did.
    pub(crate) async fn persist<T>(
        &self,
        attempt: impl AsyncFn() -> Tried<T>,
    ) -> Result<(T, Option<CallUsage>), LlmError> {
        let mut spent = tariff::NOTHING;
        let mut failed_tries = None;
        for tries in 1.. {
            self.check_breaker(spent)?;
            let permit = self.endpoint.limiter.acquire().await;
            // Others may have failed while this call waited for its turn.
            self.check_breaker(spent)?;

            let started = Instant::now();
            let (failure, usage) = match attempt().await {
                Ok((result, hold)) => {
                    if let Some(hold) = hold {
                        self.endpoint.limiter.hold(hold.min(LONGEST_ASKED));
                    }
                    permit.succeeded();
                    self.endpoint.breaker.succeeded();
                    return Ok((result, failed_tries));
                }
                Err(failed) => failed,
            };
            spent = tariff::sum(spent, usage);
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
            time::sleep(wait).await;
        }
        unreachable!("tries are counted until a result or an error")
    }

    fn check_breaker(&self, spent: CallUsage) -> Result<(), LlmError> {
        match self.endpoint.breaker.given_up(self.abort_after) {
            Some((kind, message)) => Err(self.error(kind, false, &message, spent)),
            None => Ok(()),
        }
    }

    pub(crate) fn request(&self, chat: &ChatRequest) -> Result<CompletionRequest, String> {
        let mut options = GenerationOptions::new();
        options.reasoning = self.asking.reasoning;
        options.seed = chat
            .seed
            .filter(|_| self.asking.seeds)
            .map(conversation::portable_seed);
        let request = conversation::request(chat, &self.turns.borrow())?
            .temperature(self.asking.temperature)
            .max_tokens(self.asking.max_tokens)
            .options(options);
        Ok(request)
    }

    /// One try.
    async fn attempt(&self, request: CompletionRequest, asked_characters: usize) -> Tried<ChatResponse> {
        let Try {
            outcome,
            reply,
            seconds,
        } = self.send(request).await;
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
            FailureKind::Malformed => self.tariff.unreadable(asked_characters, &reply.body, seconds),
            // The provider's own says that nothing was generated.
            FailureKind::Timeout if failure.status.is_none() => {
                self.tariff.unanswered(asked_characters, seconds)
            }
            _ => CallUsage {
                seconds,
                ..tariff::NOTHING
            },
        };
        (failure, usage)
    }

    /// Sends one request and reads what comes back.
    pub(crate) async fn send(&self, request: CompletionRequest) -> Try<CompletionResponse> {
        self.send_through(self.connect, request).await
    }

    /// Sends one request to the model as `connect` reaches it, and reads what comes back.
    pub(crate) async fn send_through<Op: Operation>(
        &self,
        connect: fn(&Account, &str, Recorder) -> DynModel<Op>,
        request: Op::Request,
    ) -> Try<Op::Response> {
        let recorder = self.recorder();
        let model = connect(&self.account, &self.model, recorder.clone());
        self.timed(&recorder, model.call(request)).await
    }

    /// What becomes of a request that was made on `recorder`, within the time that a try may take.
    pub(crate) async fn timed<R>(
        &self,
        recorder: &Recorder,
        asked: impl Future<Output = Result<R, ProviderError>>,
    ) -> Try<R> {
        let started = Instant::now();
        let outcome = time::timeout(self.timeout, asked).await;
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
        Recorder::new(self.http.clone(), self.headers.clone())
    }

    fn judge(&self, response: &CompletionResponse, reply: &Reply, seconds: f64) -> Tried<ChatResponse> {
        let usage = self.tariff.answer(&response.usage, &response.raw, seconds);
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
        self.error(failure.kind, failure.retryable, &message, spent)
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
