//! The thread on which the models answer.
//!
//! [`Llm`] futures are not `Send`, the handlers of an HTTP server must be. So the models live on
//! one thread of their own, which runs every conversation as a local task, and handlers reach it
//! through a channel of plain data.

use std::fmt::Display;
use std::io;
use std::rc::Rc;
use std::thread;

use capo_core::llm::{ChatRequest, ChatResponse, Llm, Message, ToolSpec};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;

use super::SimulateError;
use super::refusal::Refusal;
use super::wire::{self, Wishes};

/// One conversation on its way to a model.
pub(crate) struct Question {
    /// Position of the model among the names given to [`ModelThread::start`].
    pub(super) model: usize,
    pub(crate) messages: Vec<Message>,
    pub(super) tools: Vec<ToolSpec>,
    pub(super) seed: Option<u64>,
    pub(crate) wishes: Wishes,
}

impl Question {
    /// The conversation, as models take it.
    pub(crate) fn into_request(self) -> ChatRequest {
        ChatRequest {
            messages: self.messages.into(),
            tools: self.tools.into(),
            seed: self.seed,
        }
    }
}

/// A model that is served.
pub(crate) trait Served {
    /// Answers as the question wishes.
    fn answer(&self, question: Question) -> LocalBoxFuture<'_, Answer>;
}

/// A model that knows no wishes: what is longer than its answer may be is cut.
pub(super) struct Cut(pub(super) Rc<dyn Llm>);

impl Served for Cut {
    fn answer(&self, question: Question) -> LocalBoxFuture<'_, Answer> {
        let longest = question.wishes.max_tokens;
        let answer = async move {
            let mut answer = self.0.chat(question.into_request()).await?;
            if let Some(max_tokens) = longest {
                wire::cut(&mut answer, max_tokens);
            }
            Ok(answer)
        };
        answer.boxed_local()
    }
}

pub(crate) type Answer = Result<ChatResponse, Refusal>;
type Asked = (Question, oneshot::Sender<Answer>);

/// A handle to the thread; the thread ends when the last handle is dropped.
#[derive(Clone)]
pub(super) struct ModelThread {
    questions: mpsc::UnboundedSender<Asked>,
}

impl ModelThread {
    /// Starts the thread and opens the named models on it.
    ///
    /// # Errors
    /// When a model cannot be opened or the thread not be started.
    pub(super) async fn start<E: Display>(
        names: Vec<String>,
        open: impl Fn(&str) -> Result<Rc<dyn Served>, E> + Send + 'static,
    ) -> Result<Self, SimulateError> {
        let (questions, inbox) = mpsc::unbounded_channel();
        let (report, opened) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(SimulateError::Thread)?;
        let work = move || {
            let models = names.iter().map(|name| {
                open(name).map_err(|error| SimulateError::Model {
                    name: name.clone(),
                    reason: error.to_string(),
                })
            });
            // When nobody listens for the report any more, the inbox is closed too.
            match models.collect() {
                Ok(models) => {
                    let _ = report.send(Ok(()));
                    LocalSet::new().block_on(&runtime, answer_all(models, inbox));
                }
                Err(error) => {
                    let _ = report.send(Err(error));
                }
            }
        };
        thread::Builder::new()
            .name("models".into())
            .spawn(work)
            .map_err(SimulateError::Thread)?;
        match opened.await {
            Ok(result) => result.map(|()| Self { questions }),
            Err(_) => Err(SimulateError::Thread(io::Error::other(
                "it stopped while opening a model",
            ))),
        }
    }

    /// Asks a model. `None` when it panicked instead of answering.
    pub(super) async fn ask(&self, question: Question) -> Option<Answer> {
        let (reply, answer) = oneshot::channel();
        self.questions.send((question, reply)).ok()?;
        answer.await.ok()
    }
}

/// Runs every conversation as a local task until no handle is left.
async fn answer_all(models: Vec<Rc<dyn Served>>, mut inbox: mpsc::UnboundedReceiver<Asked>) {
    while let Some((question, reply)) = inbox.recv().await {
        let model = Rc::clone(&models[question.model]);
        tokio::task::spawn_local(async move {
            let mut reply = reply;
            tokio::select! {
                biased;
                // A client that has gone away no longer waits for its answer.
                () = reply.closed() => {}
                answer = model.answer(question) => drop(reply.send(answer)),
            }
        });
    }
}
