//! The page's end of a worker.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use capo_models::WrittenRequest;
use futures::channel::oneshot;
use leptos::prelude::{on_cleanup, set_timeout_with_handle};
use wasm_bindgen::prelude::*;
use web_sys::{ErrorEvent, Event, MessageEvent, Worker, WorkerOptions, WorkerType};

use crate::worker::protocol::{Message, ModelRequest, Order, Report, stamp};

thread_local! {
    static SPARE: RefCell<Option<Spare>> = const { RefCell::new(None) };
}

/// A worker that nobody has asked for yet.
struct Spare {
    worker: Worker,
    _broke: Closure<dyn Fn(Event)>,
}

impl Spare {
    fn start() -> Option<Self> {
        let worker = start().ok()?;
        // Whoever needs a worker then starts one, and is told what is wrong with it.
        let broke = Closure::<dyn Fn(Event)>::new(|_| {
            if let Some(spare) = SPARE.take() {
                spare.worker.set_onerror(None);
                spare.worker.terminate();
            }
        });
        worker.set_onerror(Some(broke.as_ref().unchecked_ref()));
        Some(Self {
            worker,
            _broke: broke,
        })
    }
}

/// Has a worker loaded so long after a page began to be drawn, unless that is left before, for the first who
/// needs one: loaded only when a run begins, it would take the processor from the page that shows the run.
pub fn prepare_worker(after: Duration) {
    let timer = set_timeout_with_handle(
        || {
            SPARE.with_borrow_mut(|spare| {
                if spare.is_none() {
                    *spare = Spare::start();
                }
            });
        },
        after,
    );
    if let Ok(timer) = timer {
        on_cleanup(move || timer.clear());
    }
}

/// A worker and who listens to it. Ends with its last owner.
pub struct WorkerHandle {
    worker: Worker,
    /// The module this page runs.
    build: Option<String>,
    _heard: Closure<dyn Fn(MessageEvent)>,
    _broke: Closure<dyn Fn(Event)>,
}

impl WorkerHandle {
    /// Takes the worker that was prepared, or starts one, and hands each of its reports to `hear`. `broke` is told, in words, when it did
    /// not load or crashed: it answers nothing any more, but holds what it held until it is dropped.
    ///
    /// # Errors
    /// When the browser starts none, in words.
    pub fn new(
        hear: impl Fn(Report) + 'static,
        broke: impl Fn(String) + 'static,
    ) -> Result<Rc<Self>, String> {
        let worker = SPARE.take().map_or_else(start, |spare| Ok(spare.worker))?;
        let heard = Closure::<dyn Fn(MessageEvent)>::new(move |message: MessageEvent| {
            let text = message.data().as_string().unwrap_or_default();
            hear(
                serde_json::from_str(&text).unwrap_or_else(|error| Report::Failed {
                    message: format!(
                        "The page and its worker do not understand each other ({error}). Reload the page."
                    ),
                }),
            );
        });
        let broke = Closure::<dyn Fn(Event)>::new(move |event: Event| {
            broke(match event.dyn_ref::<ErrorEvent>() {
                Some(error) => error.message(),
                // A script that did not load has no more to say.
                None => "its script did not load".to_owned(),
            });
        });
        worker.set_onmessage(Some(heard.as_ref().unchecked_ref()));
        worker.set_onerror(Some(broke.as_ref().unchecked_ref()));
        Ok(Rc::new(Self {
            worker,
            build: document_meta("capo-build").as_deref().and_then(stamp),
            _heard: heard,
            _broke: broke,
        }))
    }

    /// Gives an order.
    pub fn tell(&self, order: &Order) {
        self.tell_with(order, &JsValue::UNDEFINED);
    }

    /// Gives an order with something beside it that is no text, such as a file.
    pub fn tell_with(&self, order: &Order, beside: &JsValue) {
        // Orders are plain data, and a worker that has ended has reported so.
        if let Ok(order) = serde_json::to_string(order) {
            let message = Message {
                order,
                beside: beside.clone(),
                build: self.build.clone(),
            };
            let _ = self.worker.post_message(&message.pack());
        }
    }
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        // What it said last may still be on its way.
        self.worker.set_onmessage(None);
        self.worker.set_onerror(None);
        self.worker.terminate();
    }
}

/// Has a worker of its own carry out one order, and returns what `answer` finds in its reports. `does` says in words what the
/// worker is for, and `left` what becomes of that when it stops.
///
/// # Errors
/// What the answer says, or that there is none, in words.
pub(super) async fn carried_out<T: 'static>(
    order: &Order,
    beside: &JsValue,
    (does, left): (&'static str, &'static str),
    answer: impl Fn(Report) -> Option<Result<T, String>> + 'static,
) -> Result<T, String> {
    let (sender, receiver) = oneshot::channel();
    let sender = RefCell::new(Some(sender));
    let tell = Rc::new(move |answer: Result<T, String>| {
        if let Some(sender) = sender.take() {
            // Whoever asked may have gone elsewhere.
            let _ = sender.send(answer);
        }
    });
    let broke = Rc::clone(&tell);
    let worker = WorkerHandle::new(
        move |report| match report {
            Report::Failed { message } => tell(Err(message)),
            report => {
                if let Some(answer) = answer(report) {
                    tell(answer);
                }
            }
        },
        move |reason| {
            broke(Err(format!(
                "The worker that {does} stopped ({reason}). {left} Reload the page, then try again."
            )));
        },
    )?;
    worker.tell_with(order, beside);
    let stopped = |_| format!("The worker that {does} stopped. {left}");
    receiver.await.map_err(stopped)?
}

/// How a model is asked, as only a worker knows.
///
/// # Errors
/// Why there is no such call, in words.
pub async fn written(asked: ModelRequest) -> Result<WrittenRequest, String> {
    let words = ("writes calls", "Nothing was downloaded.");
    carried_out(
        &Order::Write(asked),
        &JsValue::UNDEFINED,
        words,
        |report| match report {
            Report::Written { request } => Some(request),
            _ => None,
        },
    )
    .await
}

fn start() -> Result<Worker, String> {
    let options = WorkerOptions::new();
    options.set_type(WorkerType::Module);
    Worker::new_with_options(&address(), &options)
        .map_err(|_| "This browser starts no worker for this page. Any from 2023 on will do.".to_owned())
}

/// Where the worker's script lies; the build stamps it with the hash of its content.
fn address() -> String {
    let named = document_meta("capo-worker");
    named.unwrap_or_else(|| "/worker.js".to_owned())
}

/// The content of a `<meta>` element of the page.
pub fn document_meta(name: &str) -> Option<String> {
    let document = web_sys::window()?.document()?;
    let meta = document
        .query_selector(&format!("meta[name=\"{name}\"]"))
        .ok()??;
    meta.get_attribute("content")
}
