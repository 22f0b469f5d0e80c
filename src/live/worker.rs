//! The page's end of a worker.

use std::rc::Rc;

use js_sys::Array;
use wasm_bindgen::prelude::*;
use web_sys::{ErrorEvent, MessageEvent, Worker, WorkerOptions, WorkerType};

use crate::worker::protocol::{Order, Report};

/// A worker and who listens to it. Ends with its last owner.
pub struct WorkerHandle {
    worker: Worker,
    _heard: Closure<dyn Fn(MessageEvent)>,
    _failed: Closure<dyn Fn(ErrorEvent)>,
}

impl WorkerHandle {
    /// Starts a worker and hands each of its reports to `hear`.
    ///
    /// # Errors
    /// When the browser starts none, in words.
    pub fn new(hear: impl Fn(Report) + 'static) -> Result<Rc<Self>, String> {
        let options = WorkerOptions::new();
        options.set_type(WorkerType::Module);
        let worker = Worker::new_with_options(&address(), &options).map_err(|_| {
            "This browser starts no worker for this page. Any from 2023 on will do.".to_owned()
        })?;
        let hear = Rc::new(hear);
        let heard = {
            let hear = Rc::clone(&hear);
            Closure::<dyn Fn(MessageEvent)>::new(move |message: MessageEvent| {
                let text = message.data().as_string().unwrap_or_default();
                hear(
                    serde_json::from_str(&text).unwrap_or_else(|error| Report::Failed {
                        message: format!(
                            "The page and its worker do not understand each other ({error}). Reload the page."
                        ),
                    }),
                );
            })
        };
        let failed = Closure::<dyn Fn(ErrorEvent)>::new(move |event: ErrorEvent| {
            hear(Report::Failed {
                message: format!(
                    "The worker of this run stopped ({}). Everything answered so far is kept: resume the run.",
                    event.message()
                ),
            });
        });
        worker.set_onmessage(Some(heard.as_ref().unchecked_ref()));
        worker.set_onerror(Some(failed.as_ref().unchecked_ref()));
        Ok(Rc::new(Self {
            worker,
            _heard: heard,
            _failed: failed,
        }))
    }

    /// Gives an order.
    pub fn tell(&self, order: &Order) {
        self.tell_with(order, &JsValue::UNDEFINED);
    }

    /// Gives an order with something beside it that is no text, such as a file.
    pub fn tell_with(&self, order: &Order, beside: &JsValue) {
        // Orders are plain data, and a worker that has ended has reported so.
        if let Ok(text) = serde_json::to_string(order) {
            let _ = self.worker.post_message(&Array::of2(&text.into(), beside));
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
