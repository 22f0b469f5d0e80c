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
use tokio::sync::{Semaphore, mpsc, oneshot};
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
            ..ChatRequest::default()
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
type Job = (Question, oneshot::Sender<Answer>);

/// Opens a model by name.
type Open = Box<dyn Fn(&str) -> Result<Rc<dyn Served>, String>>;

/// The models of a thread.
struct Models {
    open: Open,
    /// Those that are open, by name and version, the one that was asked last at the end.
    opened: Vec<((String, i64), Rc<dyn Served>)>,
    /// How many stay open.
    most: usize,
}

impl Models {
    /// A model, which is opened unless it is.
    fn find(&mut self, name: &str, version: i64) -> Result<Rc<dyn Served>, String> {
        let is_it = |of: &(String, i64)| of.0 == name && of.1 == version;
        let found = if let Some(position) = self.opened.iter().position(|(of, _)| is_it(of)) {
            self.opened.remove(position)
        } else {
            let opened = (self.open)(name)?;
            // One that answers would keep its memory.
            let mut idle = self.opened.iter().map(|(_, model)| Rc::strong_count(model) == 1);
            if self.opened.len() >= self.most
                && let Some(position) = idle.position(|is_idle| is_idle)
            {
                self.opened.remove(position);
            }
            ((name.to_owned(), version), opened)
        };
        let model = Rc::clone(&found.1);
        self.opened.push(found);
        Ok(model)
    }
}

/// A handle to the thread; the thread ends when the last handle is dropped.
#[derive(Clone)]
pub(super) struct ModelThread {
    questions: mpsc::UnboundedSender<Job>,
}

impl ModelThread {
    /// Starts the thread and opens the named models on it, and others when they are asked; at most so many stay open, and
    /// answer at a time.
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
async fn answer_all(models: Models, mut inbox: mpsc::UnboundedReceiver<Job>) {
    let places = Rc::new(Semaphore::new(models.most.min(Semaphore::MAX_PERMITS)));
    let models = Rc::new(RefCell::new(models));
    while let Some((question, reply)) = inbox.recv().await {
        let (models, places) = (Rc::clone(&models), Rc::clone(&places));
        tokio::task::spawn_local(async move {
            let mut reply = reply;
            tokio::select! {
                biased;
                // A client that has gone away no longer waits for its answer.
                () = reply.closed() => {}
                answer = answer(&models, &places, question) => drop(reply.send(answer)),
            }
        });
    }
}

async fn answer(models: &RefCell<Models>, places: &Semaphore, question: Question) -> Answer {
    // Whoever asks keeps a model open.
    let _place = places.acquire().await;
    let found = models.borrow_mut().find(&question.model, question.version);
    match found {
        Ok(model) => model.answer(question).await,
        Err(reason) => Err(unopened(&question.model, &reason)),
    }
}

/// Of a model that cannot be opened; why, is for the log.
pub(super) fn unopened(model: &str, reason: &str) -> Refusal {
    tracing::error!(model, reason, "a model cannot be opened");
    Refusal::internal(format!(
        "The model {model} cannot be opened; the server's log says why."
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use futures::future::join_all;

    use super::*;
    use crate::simulate::simulated;

    /// A model that counts how many of them there are, and were at once.
    struct Counted(Arc<[AtomicUsize; 2]>);

    impl Counted {
        fn new(counts: &Arc<[AtomicUsize; 2]>) -> Self {
            let now = counts[0].fetch_add(1, SeqCst) + 1;
            counts[1].fetch_max(now, SeqCst);
            Self(Arc::clone(counts))
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0[0].fetch_sub(1, SeqCst);
        }
    }

    impl Served for Counted {
        fn answer(&self, _: Question) -> LocalBoxFuture<'_, Answer> {
            let answer = async {
                // Whoever else asks has its turn meanwhile.
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                Answer::Err(Refusal::internal(""))
            };
            answer.boxed_local()
        }
    }

    #[tokio::test]
    async fn as_many_as_are_asked_at_once_take_no_more_memory_than_stay_open_and_one_that_is_opened() {
        let counts = Arc::new([const { AtomicUsize::new(0) }; 2]);
        let seen = Arc::clone(&counts);
        let open = move |_: &str| Ok::<_, String>(Rc::new(Counted::new(&seen)) as Rc<dyn Served>);
        let thread = ModelThread::start(Vec::new(), 2, open).await.unwrap();
        let asked = (0..8).map(|model| {
            thread.ask(Question {
                model: format!("model {model}"),
                version: 0,
                messages: Vec::new(),
                tools: Vec::new(),
                seed: None,
                wishes: Wishes::default(),
            })
        });
        for answer in join_all(asked).await {
            assert!(answer.is_some());
        }
        assert_eq!(counts[1].load(SeqCst), 3);
    }

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
        let before = opened.borrow().len();
        assert!(models.find("sim-small", 1).is_ok() && models.find("sim-medium", 0).is_ok());
        assert_eq!(
            opened.borrow().len(),
            before,
            "one that does not open takes no place"
        );
    }
}
