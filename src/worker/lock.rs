//! One tab at a time works on a run.

use std::cell::RefCell;
use std::rc::Rc;

use futures::channel::oneshot;
use js_sys::{Function, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;

/// A run that no other tab works on as long as this lives.
pub(super) struct Held {
    release: Option<Function>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(release) = &self.release {
            // The browser lets go by itself when the worker ends.
            let _ = release.call0(&JsValue::UNDEFINED);
        }
    }
}

/// Keeps other tabs from working on `run`, through the Web Locks API.
///
/// # Errors
/// When another tab works on it, in words.
pub(super) async fn hold(run: &str) -> Result<Held, String> {
    let Some((locks, request)) = locks() else {
        // A browser without locks: nothing can be kept from other tabs.
        return Ok(Held { release: None });
    };
    let (sender, receiver) = oneshot::channel();
    let sender = Rc::new(RefCell::new(Some(sender)));
    let granted = Closure::once_into_js(move |lock: JsValue| {
        let mut release = None;
        // Held until the promise is resolved; a lock that is not available is null.
        let held = Promise::new(&mut |resolve, _| release = Some(resolve));
        if lock.is_null() {
            release = None;
        }
        if let Some(sender) = sender.take() {
            // The receiver waits below.
            let _ = sender.send(release);
        }
        if lock.is_null() {
            JsValue::UNDEFINED
        } else {
            held.into()
        }
    });
    let options = Object::new();
    let asked = Reflect::set(&options, &"ifAvailable".into(), &true.into())
        .and_then(|_| request.call3(&locks, &format!("capo-run-{run}").into(), &options, &granted));
    asked.map_err(|_| "This browser refuses to lock the run for this tab.".to_owned())?;
    match receiver.await {
        Ok(Some(release)) => Ok(Held {
            release: Some(release),
        }),
        _ => Err("This run goes on in another tab. Watch it there, or pause it there first.".to_owned()),
    }
}

/// The lock manager and its `request`, where there are any.
fn locks() -> Option<(JsValue, Function)> {
    let navigator = Reflect::get(&js_sys::global(), &"navigator".into()).ok()?;
    let locks = Reflect::get(&navigator, &"locks".into()).ok()?;
    let request = Reflect::get(&locks, &"request".into()).ok()?;
    Some((locks, request.dyn_into().ok()?))
}
