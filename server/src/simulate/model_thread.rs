//! The thread on which the models answer.
//!
//! [`Llm`] futures are not `Send`, the handlers of an HTTP server must be. So the models live on
//! one thread of their own, which runs every conversation as a local task, and handlers reach it
//! through a channel of plain data.

use std::cell::RefCell;
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
    /// Name of the model.
    pub(super) model: String,
    /// What tells it from earlier ones of its name; 0 where there are none.
    pub(super) version: i64,
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

/// The models of a thread.
struct Models {
    open: Box<dyn Fn(&str) -> Result<Rc<dyn Served>, String>>,
    /// Those that are open, by name and version, the one that was asked last at the end.
    opened: Vec<((String, i64), Rc<dyn Served>)>,
    /// How many stay open.
    most: usize,
}

impl Models {
    /// A model, which is opened unless it is.
    fn find(&mut self, name: &str, version: i64) -> Result<Rc<dyn Served>, String> {
        let is_it = |of: &(String, i64)| of.0 == name && of.1 == version;
        let found = match self.opened.iter().position(|(of, _)| is_it(of)) {
            Some(position) => self.opened.remove(position),
            None => {
                // Before the next one takes memory.
                self.opened.retain(|(of, _)| of.0 != name);
                if self.opened.len() >= self.most {
                    self.opened.remove(0);
                }
                ((name.to_owned(), version), (self.open)(name)?)
            }
        };
        let model = Rc::clone(&found.1);
        self.opened.push(found);
        Ok(model)
    }
}

/// A handle to the thread; the thread ends when the last handle is dropped.
#[derive(Clone)]
pub(super) struct ModelThread {
    questions: mpsc::UnboundedSender<Asked>,
}

impl ModelThread {
    /// Starts the thread and opens the named models on it, and others when they are asked; at most so many stay open.
    ///
    /// # Errors
    /// When a model cannot be opened or the thread not be started.
    pub(super) async fn start<E: Display>(
        names: Vec<String>,
        most: usize,
        open: impl Fn(&str) -> Result<Rc<dyn Served>, E> + Send + 'static,
    ) -> Result<Self, SimulateError> {
        let (questions, inbox) = mpsc::unbounded_channel();
        let (report, opened) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(SimulateError::Thread)?;
        let work = move || {
            let mut models = Models {
                open: Box::new(move |name: &str| open(name).map_err(|error| error.to_string())),
                opened: Vec::new(),
                most,
            };
            let opened = names.into_iter().try_for_each(|name| {
                let found = models.find(&name, 0).map(drop);
                found.map_err(|reason| SimulateError::Model { name, reason })
            });
            let is_ready = opened.is_ok();
            // When nobody listens for the report any more, the inbox is closed too.
            let _ = report.send(opened);
            if is_ready {
                LocalSet::new().block_on(&runtime, answer_all(models, inbox));
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
async fn answer_all(models: Models, mut inbox: mpsc::UnboundedReceiver<Asked>) {
    let models = Rc::new(RefCell::new(models));
    while let Some((question, reply)) = inbox.recv().await {
        let models = Rc::clone(&models);
        tokio::task::spawn_local(async move {
            let mut reply = reply;
            tokio::select! {
                biased;
                // A client that has gone away no longer waits for its answer.
                () = reply.closed() => {}
                answer = answer(&models, question) => drop(reply.send(answer)),
            }
        });
    }
}

async fn answer(models: &RefCell<Models>, question: Question) -> Answer {
    let found = models.borrow_mut().find(&question.model, question.version);
    match found {
        Ok(model) => model.answer(question).await,
        Err(reason) => {
            tracing::error!(model = question.model, reason, "a model cannot be opened");
            Err(Refusal::internal(format!(
                "The model {} cannot be opened; the server's log says why.",
                question.model
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::simulated;

    #[test]
    fn those_that_were_asked_last_stay_open() {
        let opened = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&opened);
        let mut models = Models {
            open: Box::new(move |name: &str| {
                seen.borrow_mut().push(name.to_owned());
                simulated(name, 0).map_err(|error| error.to_string())
            }),
            opened: Vec::new(),
            most: 2,
        };
        for (model, version, is_opened) in [
            ("sim-small", 0, true),
            ("sim-medium", 0, true),
            ("sim-small", 0, false),
            // In the place of the one that was asked longest ago.
            ("sim-large", 0, true),
            ("sim-small", 0, false),
            ("sim-medium", 0, true),
            // Another one of this name.
            ("sim-small", 1, true),
            ("sim-medium", 0, false),
        ] {
            let before = opened.borrow().len();
            assert!(models.find(model, version).is_ok());
            let now = opened.borrow().len();
            assert_eq!(now - before, usize::from(is_opened), "{model} {version}");
        }
        assert!(models.find("sim-none", 0).is_err());
    }
}
