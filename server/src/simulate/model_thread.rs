//! The thread on which the models answer.
//!
//! [`Llm`] futures are not `Send`, the handlers of an HTTP server must be. So the models live on
//! one thread of their own, which runs every conversation as a local task, and handlers reach it
//! through a channel of plain data.

use std::fmt::Display;
use std::io;
use std::rc::Rc;
use std::thread;

use capo_core::llm::{ChatRequest, ChatResponse, Llm, LlmError, Message, ToolSpec};
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;

use super::SimulateError;

/// One conversation on its way to a model.
pub(super) struct Question {
    /// Position of the model among the names given to [`ModelThread::start`].
    pub(super) model: usize,
    pub(super) messages: Vec<Message>,
    pub(super) tools: Vec<ToolSpec>,
    pub(super) seed: Option<u64>,
}

type Answer = Result<ChatResponse, LlmError>;
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
        open: impl Fn(&str) -> Result<Rc<dyn Llm>, E> + Send + 'static,
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
async fn answer_all(models: Vec<Rc<dyn Llm>>, mut inbox: mpsc::UnboundedReceiver<Asked>) {
    while let Some((question, reply)) = inbox.recv().await {
        let model = Rc::clone(&models[question.model]);
        tokio::task::spawn_local(async move {
            let request = ChatRequest {
                messages: question.messages.into(),
                tools: question.tools.into(),
                seed: question.seed,
                reference: None,
            };
            // A client that has gone away no longer waits for its answer.
            let _ = reply.send(model.chat(request).await);
        });
    }
}
