//! Storage of a real browser: journals, records, files. Run in headless Chromium.

#![cfg(target_arch = "wasm32")]
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::cell::RefCell;
use std::rc::Rc;

use capo_api::RunStage;
use capo_core::journal::{JournalStore, slim};
use capo_core::reading::progress::{Progress, Times};
use capo_web::storage::lock::{self, NotHeld};
use capo_web::storage::{RunRecord, RunStatus, Saved, ServerRun, Storage, StoredJournal, mirror_id};
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
    let stored = storage.slim_lines("whole-and-slim", 0).await.unwrap();
    assert_eq!(stored.chunks, expected);
    assert_eq!((stored.end, stored.torn), (3, false));
    // The chunk that holds the line asked for comes whole.
    let late = storage.slim_lines("whole-and-slim", 1).await.unwrap();
    assert_eq!((late.first, late.end), (0, 3));
    let last = storage.slim_lines("whole-and-slim", 2).await.unwrap();
    assert_eq!(last.numbered().collect::<Vec<_>>(), [(2, line(2).as_str())]);
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
    assert_eq!(
        whole(&storage, "goes-on").await,
        (0..4).map(line).collect::<Vec<_>>()
    );
}

/// The lines that the browser keeps of a run.
async fn whole(storage: &Storage, run: &str) -> Vec<String> {
    let lines = storage.whole_lines(run).await.unwrap();
    lines.numbered().map(|(_, line)| line.to_owned()).collect()
}

#[wasm_bindgen_test]
async fn two_tabs_never_write_over_each_other() {
    let storage = Storage::open().await.unwrap();
    let (mut one, _) = journal(Some(&storage), "two-tabs", 0);
    for number in 0..3 {
        one.append(&line(number)).unwrap();
    }
    one.flush().unwrap();
    one.sync().await.unwrap();
    // Another tab goes on from there, with two lines at once.
    let (mut other, _) = journal(Some(&storage), "two-tabs", 3);
    other.append(&line(3)).unwrap();
    other.append(&line(4)).unwrap();
    other.flush().unwrap();
    other.sync().await.unwrap();

    // The first knows nothing of it and has two chunks, of which the second alone would find room.
    for number in [30, 40] {
        one.append(&line(number)).unwrap();
        one.flush().unwrap();
    }
    let error = one.sync().await.unwrap_err();
    assert!(error.0.contains("another tab"), "{error}");
    assert!(one.flush().is_err(), "it goes on with nothing that is not kept");
    let both: Vec<String> = (0..5).map(line).collect();
    assert_eq!(whole(&storage, "two-tabs").await, both);

    // Its next session reads anew, and leaves out what does not continue there.
    let stored = storage.slim_lines("two-tabs", 0).await.unwrap();
    let (mut next, _) = journal(Some(&storage), "two-tabs", stored.end);
    assert_eq!(next.take_over(&one), 2);
    next.append(&line(5)).unwrap();
    next.settle().await;
    next.sync().await.unwrap();
    assert_eq!(
        whole(&storage, "two-tabs").await,
        (0..6).map(line).collect::<Vec<_>>()
    );
}

#[wasm_bindgen_test]
async fn what_memory_alone_held_is_written_by_the_next_session() {
    let storage = Storage::open().await.unwrap();
    let (mut stored, _) = journal(Some(&storage), "taken-over", 0);
    stored.append(&line(0)).unwrap();
    stored.settle().await;
    // The browser refused what came then.
    let (mut refused, _) = journal(None, "taken-over", 1);
    refused.append(&line(1)).unwrap();
    refused.flush().unwrap();
    refused.append(ROLLOUT).unwrap();
    let (next, _) = journal(Some(&storage), "taken-over", 1);
    assert_eq!(next.take_over(&refused), 0);
    assert_eq!(next.unsaved_slim(), [line(1), slim(ROLLOUT).into_owned()]);
    assert_eq!(next.len(), 3);
    next.settle().await;
    assert!(next.unsaved().is_empty());
    assert_eq!(
        whole(&storage, "taken-over").await,
        [line(0), line(1), ROLLOUT.to_owned()]
    );
}

#[wasm_bindgen_test]
async fn lines_beyond_a_missing_one_are_left_out_and_cut() {
    let storage = Storage::open().await.unwrap();
    for first in [0, 1, 5] {
        let lines = [line(first)];
        storage
            .add_lines("torn", first as u64, &lines, &lines)
            .await
            .unwrap();
    }
    let torn = storage.slim_lines("torn", 0).await.unwrap();
    assert_eq!((torn.end, torn.torn), (2, true));
    storage.cut_lines("torn", torn.end).await.unwrap();
    assert_eq!(storage.line("torn", 5).await.unwrap(), None);
    let whole = storage.whole_lines("torn").await.unwrap();
    assert_eq!((whole.end, whole.torn), (2, false));
}

#[wasm_bindgen_test]
async fn a_lock_is_held_by_one_and_seen_by_all() {
    let held = lock::hold("locked").await.unwrap();
    assert_eq!(lock::hold("locked").await.err(), Some(NotHeld::Busy));
    assert!(lock::held().await.contains("locked"));
    drop(held);
    // The browser lets go when it has told the promise's end.
    for _ in 0..100 {
        if lock::hold("locked").await.is_ok() {
            return;
        }
    }
    panic!("the lock is not let go of");
}

#[wasm_bindgen_test]
async fn a_record_is_changed_only_where_there_is_one() {
    let storage = Storage::open().await.unwrap();
    storage.put_run(&record("changed", 1.0)).await.unwrap();
    let changed = storage.change_run("changed", |record| record.status = RunStatus::Paused);
    assert_eq!(changed.await.unwrap().unwrap().status, RunStatus::Paused);
    assert_eq!(
        storage.run("changed").await.unwrap().unwrap().status,
        RunStatus::Paused
    );
    let gone = storage.change_run("nobody", |record| record.status = RunStatus::Paused);
    assert_eq!(gone.await.unwrap(), None);
    assert_eq!(storage.run("nobody").await.unwrap(), None);
}

#[wasm_bindgen_test]
async fn lines_without_a_record_are_found() {
    let storage = Storage::open().await.unwrap();
    let lines = [line(0), line(1)];
    for run in ["left-over", "listed"] {
        storage.add_lines(run, 0, &lines, &lines).await.unwrap();
        storage.add_lines(run, 2, &lines, &lines).await.unwrap();
    }
    storage.put_run(&record("listed", 1.0)).await.unwrap();
    let unlisted = storage.unlisted().await.unwrap();
    assert_eq!(unlisted.iter().filter(|run| *run == "left-over").count(), 1);
    assert!(!unlisted.contains(&"listed".to_owned()));
}

#[wasm_bindgen_test]
async fn the_first_line_can_be_replaced() {
    let storage = Storage::open().await.unwrap();
    let (mut store, told) = journal(Some(&storage), "replaced", 0);
    store.append("old").unwrap();
    store.append(&line(1)).unwrap();
    assert_eq!(store.replace_first("new").await.unwrap(), 0);
    let expected = vec![format!("new\n{}", line(1))];
    assert_eq!(storage.whole_lines("replaced").await.unwrap().chunks, expected);
    let slim = storage.slim_lines("replaced", 0).await.unwrap();
    assert_eq!(slim.chunks, expected);
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
        progress: Progress::default(),
        times: Times::default(),
        pilot: None,
        check: None,
        server: None,
        notes: <_>::default(),
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
        .runs
        .into_iter()
        .map(|run| run.id)
        .collect();
    ids.retain(|id| id == "first" || id == "second");
    assert_eq!(ids, ["second", "first"], "the last touched comes first");
    assert_eq!(&*storage.files("first").await.unwrap()["rows.csv"], "a,b\n1,2\n");

    storage.delete_run("first").await.unwrap();
    assert_eq!(storage.run("first").await.unwrap(), None);
    assert!(storage.files("first").await.unwrap().is_empty());
    assert!(whole(&storage, "first").await.is_empty());
    assert_eq!(&*storage.files("second").await.unwrap()["rows.csv"], "other");
}

#[wasm_bindgen_test]
async fn mirrors_of_the_server_s_runs_are_forgotten_together_and_no_others() {
    let storage = Storage::open().await.unwrap();
    let (mine, theirs) = (record("beside-a-mirror", 1.0), mirror_id("09af"));
    let mirror = RunRecord {
        server: Some(ServerRun {
            id: "09af".into(),
            project: "help-desk".into(),
            started_by: "ada".into(),
            stage: RunStage::Running,
            wish: None,
            error: None,
            start_at: None,
            lines: 1,
            revision: 0,
            is_of_training: false,
        }),
        ..record(&theirs, 2.0)
    };
    for record in [&mine, &mirror] {
        storage.put_run(record).await.unwrap();
        let lines = [line(0)];
        storage.add_lines(&record.id, 0, &lines, &lines).await.unwrap();
    }
    assert_eq!(storage.run(&theirs).await.unwrap(), Some(mirror));
    // Another tab may write lines of one whose record is gone.
    let late = mirror_id("fa90");
    storage.add_lines(&late, 0, &[line(0)], &[line(0)]).await.unwrap();
    storage.delete_mirrors().await.unwrap();
    assert_eq!(storage.run(&theirs).await.unwrap(), None);
    for gone in [&theirs, &late] {
        assert!(whole(&storage, gone).await.is_empty());
    }
    assert!(storage.has_record(&mine.id).await.unwrap());
    assert_eq!(whole(&storage, &mine.id).await.len(), 1);
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
