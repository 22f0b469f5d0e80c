//! The draft as this browser keeps it, so that a reload loses nothing.
//!
//! The study lies in local storage, which is read before the form is drawn; the files it names may be
//! large, and lie in the database. A key gets into neither: no study holds one, and what one was written
//! into by mistake is not kept.

use std::cell::RefCell;
use std::sync::Arc;

use gloo_timers::callback::Timeout;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::draft::Draft;
use super::form::Form;
use crate::storage::Storage;
use crate::worker::protocol::DataFiles;

/// Where the study lies in local storage, and whose the files are in the database.
const NAME: &str = "capo.draft";

/// How long a draft must rest before it is kept, in milliseconds.
const REST: u32 = 200;

fn local() -> Option<web_sys::Storage> {
    window().local_storage().ok().flatten()
}

/// The draft that was kept, without its files; none where there is none that this page can read.
pub(super) fn read() -> Option<Draft> {
    let text = local()?.get_item(NAME).ok().flatten()?;
    serde_json::from_str(&text).ok()
}

/// Keeps the draft as it changes. A browser that keeps nothing goes without.
pub(super) fn follow(form: Form) {
    thread_local! {
        static REST_TIMER: RefCell<Option<Timeout>> = const { RefCell::new(None) };
    }
    // The files that are kept; none is known before those of an earlier draft were looked for.
    let kept = StoredValue::new(None::<DataFiles>);
    let keep_files = move || {
        let files = form.draft.try_with_untracked(Draft::named_files);
        let known = kept.try_get_value().flatten();
        let (Some(files), Some(known)) = (files, known) else {
            return;
        };
        if !are_same(&files, &known) {
            kept.set_value(Some(files.clone()));
            spawn_local(async move {
                if let Ok(storage) = Storage::open().await {
                    let _ = storage.put_files(NAME, &files).await;
                }
            });
        }
    };
    spawn_local(async move {
        let found = match Storage::open().await {
            Ok(storage) => storage.files(NAME).await.unwrap_or_default(),
            Err(_) => DataFiles::new(),
        };
        // The page may be gone by now.
        let misses = form.draft.try_with_untracked(|draft| {
            let mut named = draft.named_paths().into_iter();
            named.any(|path| found.contains_key(&path) && !draft.files.contains_key(&path))
        });
        if misses == Some(true) {
            let files = found.clone();
            form.renew(|draft| {
                for (path, text) in files {
                    draft.files.entry(path).or_insert(text);
                }
            });
        }
        let _ = kept.try_set_value(Some(found));
        keep_files();
    });
    Effect::new(move |_| {
        form.draft.track();
        let keep = move || {
            keep_study(form);
            keep_files();
        };
        REST_TIMER.set(Some(Timeout::new(REST, keep)));
    });
    // What was typed last is kept too.
    let leaving = window_event_listener_untyped("pagehide", move |_| keep_study(form));
    on_cleanup(move || {
        leaving.remove();
        keep_study(form);
    });
}

fn keep_study(form: Form) {
    let draft = form.draft.try_with_untracked(Draft::without_secrets).flatten();
    let text = draft.and_then(|draft| serde_json::to_string(&draft).ok());
    if let (Some(text), Some(local)) = (text, local()) {
        let _ = local.set_item(NAME, &text);
    }
}

fn are_same(one: &DataFiles, other: &DataFiles) -> bool {
    one.len() == other.len()
        && one.iter().all(|(path, text)| {
            let held = other.get(path);
            held.is_some_and(|held| Arc::ptr_eq(text, held) || text == held)
        })
}
