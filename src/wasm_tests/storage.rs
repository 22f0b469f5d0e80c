//! What a real browser keeps: journals, records, files. Run in headless Chromium.

#![cfg(target_arch = "wasm32")]
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::cell::RefCell;
use std::rc::Rc;

use capo_core::journal::JournalStore;
use capo_web::storage::{Progress, RunRecord, RunStatus, Saved, Storage, StoredJournal, slim};
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

const ROLLOUT: &str = r#"{"event":"rollout","example":"e1","trace":{"messages":[{"role":"user","content":"hello"}]},"usage":{}}"#;

fn line(number: usize) -> String {
    format!(r#"{{"event":"round","round":{number}}}"#)
}

/// A journal with its reports.
fn journal(storage: Option<&Storage>, run: &str, lines: u64) -> (StoredJournal, Rc<RefCell<Vec<Saved>>>) {
    let told = Rc::new(RefCell::new(Vec::new()));
    let teller = Rc::clone(&told);
    let observer = Rc::new(move |saved| teller.borrow_mut().push(saved));
    (StoredJournal::new(storage.cloned(), run, lines, observer), told)
}

#[wasm_bindgen_test]
async fn lines_are_kept_whole_and_slim() {
    let storage = Storage::open().await.unwrap();
    let (mut store, told) = journal(Some(&storage), "whole-and-slim", 0);
    assert_eq!(store.append(&line(0)).unwrap(), 0);
    assert_eq!(store.append(ROLLOUT).unwrap(), 1);
    store.flush().unwrap();
    assert_eq!(store.append(&line(2)).unwrap(), 2);
    store.flush().unwrap();
    store.sync().await.unwrap();

    let slimmed = slim(ROLLOUT).into_owned();
    let expected = vec![format!("{}\n{slimmed}", line(0)), line(2)];
    assert_eq!(storage.slim_chunks("whole-and-slim").await.unwrap(), expected);
    assert_eq!(store.read(1).await.unwrap(), ROLLOUT);
    assert_eq!(storage.line("whole-and-slim", 2).await.unwrap(), Some(line(2)));
    assert_eq!(storage.line("whole-and-slim", 3).await.unwrap(), None);
    assert!(store.unsaved().is_empty());
    let first = Saved::Lines {
        first: 0,
        lines: vec![line(0), slimmed],
    };
    assert_eq!(told.borrow()[0], first);
}

#[wasm_bindgen_test]
async fn a_journal_goes_on_where_it_ended() {
    let storage = Storage::open().await.unwrap();
    let (mut store, _) = journal(Some(&storage), "goes-on", 0);
    for number in 0..3 {
        store.append(&line(number)).unwrap();
        store.flush().unwrap();
    }
    store.sync().await.unwrap();
    let (mut again, _) = journal(Some(&storage), "goes-on", 3);
    assert_eq!(again.append(&line(3)).unwrap(), 3);
    again.sync().await.unwrap();
    again.flush().unwrap();
    again.sync().await.unwrap();
    let whole = storage.whole_chunks("goes-on").await.unwrap().join("\n");
    let expected: Vec<String> = (0..4).map(line).collect();
    assert_eq!(whole, expected.join("\n"));
}

#[wasm_bindgen_test]
async fn the_first_line_can_be_replaced() {
    let storage = Storage::open().await.unwrap();
    let (mut store, told) = journal(Some(&storage), "replaced", 0);
    store.append("old").unwrap();
    store.append(&line(1)).unwrap();
    assert_eq!(store.replace_first("new").await.unwrap(), 0);
    let expected = vec![format!("new\n{}", line(1))];
    assert_eq!(storage.whole_chunks("replaced").await.unwrap(), expected);
    assert_eq!(told.borrow().last(), Some(&Saved::Study("new".into())));
}

#[wasm_bindgen_test]
async fn without_storage_lines_stay_in_memory() {
    let (mut store, _) = journal(None, "memory", 0);
    store.append(ROLLOUT).unwrap();
    store.flush().unwrap();
    store.sync().await.unwrap();
    assert_eq!(store.read(0).await.unwrap(), ROLLOUT);
    assert_eq!(store.unsaved(), [(0, vec![ROLLOUT.to_owned()])]);
    assert!(store.read(1).await.is_err());
}

fn record(id: &str, touched: f64) -> RunRecord {
    RunRecord {
        id: id.into(),
        name: format!("run {id}"),
        method: "capo".into(),
        about: String::new(),
        objective: "success".into(),
        status: RunStatus::Running,
        study: "[study]".into(),
        created: 0.0,
        touched,
        size: 0,
        progress: Progress::default(),
    }
}

#[wasm_bindgen_test]
async fn runs_are_listed_and_deleted_with_everything_of_theirs() {
    let storage = Storage::open().await.unwrap();
    storage.put_run(&record("first", 1.0)).await.unwrap();
    storage.put_run(&record("second", 2.0)).await.unwrap();
    storage.put_file("first", "rows.csv", "a,b\n1,2\n").await.unwrap();
    storage.put_file("second", "rows.csv", "other").await.unwrap();
    let (mut store, _) = journal(Some(&storage), "first", 0);
    store.append(&line(0)).unwrap();
    store.flush().unwrap();
    store.sync().await.unwrap();

    let mut ids: Vec<String> = storage
        .runs()
        .await
        .unwrap()
        .into_iter()
        .map(|run| run.id)
        .collect();
    ids.retain(|id| id == "first" || id == "second");
    assert_eq!(ids, ["second", "first"], "the last touched comes first");
    assert_eq!(&*storage.files("first").await.unwrap()["rows.csv"], "a,b\n1,2\n");

    storage.delete_run("first").await.unwrap();
    assert_eq!(storage.run("first").await.unwrap(), None);
    assert!(storage.files("first").await.unwrap().is_empty());
    assert!(storage.whole_chunks("first").await.unwrap().is_empty());
    assert_eq!(&*storage.files("second").await.unwrap()["rows.csv"], "other");
}

#[wasm_bindgen_test]
async fn the_vault_keeps_and_forgets() {
    let storage = Storage::open().await.unwrap();
    storage.put_in_vault("keys", "encrypted").await.unwrap();
    assert_eq!(
        storage.in_vault("keys").await.unwrap().as_deref(),
        Some("encrypted")
    );
    storage.forget_in_vault("keys").await.unwrap();
    assert_eq!(storage.in_vault("keys").await.unwrap(), None);
}
