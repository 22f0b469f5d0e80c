//! One tab at a time works on a run, by the Web Locks API.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use futures::channel::oneshot;
use js_sys::{Array, Function, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

/// What the names of runs' locks begin with.
const PREFIX: &str = "capo-run-";

/// A run that no other tab works on as long as this lives.
pub struct RunLock {
    release: Option<Function>,
}

impl Drop for RunLock {
    fn drop(&mut self) {
        if let Some(release) = &self.release {
            // The browser lets go by itself when the page or worker ends.
            let _ = release.call0(&JsValue::UNDEFINED);
        }
    }
}

/// Why a run is not held.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotHeld {
    /// Somebody works on it.
    #[error("This run goes on in another tab. Watch it there, or pause it there first.")]
    Busy,
    /// The browser does not say.
    #[error("This browser refuses to lock the run for this tab.")]
    Refused,
}

/// Whether this browser has locks. Without them nothing can be kept from other tabs.
pub fn available() -> bool {
    locks("request").is_some()
}

/// Keeps other tabs from working on `run`.
///
/// # Errors
/// When somebody works on it, in words.
pub async fn hold(run: &str) -> Result<RunLock, NotHeld> {
    let Some((locks, request)) = locks("request") else {
        return Ok(RunLock { release: None });
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
        .and_then(|_| request.call3(&locks, &format!("{PREFIX}{run}").into(), &options, &granted));
    asked.map_err(|_| NotHeld::Refused)?;
    match receiver.await {
        Ok(Some(release)) => Ok(RunLock {
            release: Some(release),
        }),
        _ => Err(NotHeld::Busy),
    }
}

/// Ids of the runs that some tab works on, this one included; none where the browser does not say.
pub async fn held() -> BTreeSet<String> {
    asked().await.unwrap_or_default()
}

async fn asked() -> Option<BTreeSet<String>> {
    let (locks, query) = locks("query")?;
    let promise: Promise = query.call0(&locks).ok()?.dyn_into().ok()?;
    let snapshot = JsFuture::from(promise).await.ok()?;
    let held = Array::from(&Reflect::get(&snapshot, &"held".into()).ok()?);
    let name = |lock: JsValue| Reflect::get(&lock, &"name".into()).ok()?.as_string();
    let names = held.iter().filter_map(name);
    Some(
        names
            .filter_map(|name| Some(name.strip_prefix(PREFIX)?.to_owned()))
            .collect(),
    )
}

/// The lock manager and one of its functions, where there are any.
fn locks(function: &str) -> Option<(JsValue, Function)> {
    let navigator = Reflect::get(&js_sys::global(), &"navigator".into()).ok()?;
    let locks = Reflect::get(&navigator, &"locks".into()).ok()?;
    let function = Reflect::get(&locks, &function.into()).ok()?;
    Some((locks, function.dyn_into().ok()?))
}
