//! The draft as this browser keeps it, so that a reload loses nothing, and the one that it took the place of.
//!
//! The study lies in local storage, which is read before the form is drawn; the files it names may be
//! large, and lie in the database. Each tab keeps its own there under a name that stands beside the study, so
//! that those of one are never taken for another's. A key gets into neither: what one may have been written
//! into is left out. What somebody took from a project of theirs is deleted when they sign out.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use gloo_timers::callback::Timeout;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use wasm_bindgen_futures::spawn_local;

use super::draft::Draft;
use super::form::Form;
use crate::live::fresh_id;
use crate::storage::{Storage, local_storage};
use crate::team::Team;
use crate::worker::protocol::DataFiles;

/// Where a draft lies in local storage, and whose its files are in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Draft,
    /// The one whose place it took last.
    Former,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Self::Draft => "capo.draft",
            Self::Former => "capo.draft.former",
        }
    }
}

/// Where it stands in local storage who took files of the tau2 benchmark from a project.
const BENCHMARK_TAKEN: &str = "capo.benchmark.taken";

/// How long a draft must rest before it is kept, in milliseconds.
const REST: u32 = 200;

/// A draft as it lies in local storage.
#[derive(Serialize, Deserialize)]
struct Record {
    /// What its files are called in the database; empty where it has none.
    files: String,
    draft: Draft,
}

/// What this tab last read from a place, or wrote there.
#[derive(Default)]
struct Known {
    draft: Option<String>,
    called: String,
    files: DataFiles,
}

thread_local! {
    static KNOWN: RefCell<BTreeMap<Place, Known>> = const { RefCell::new(BTreeMap::new()) };
}

/// What there is beside the draft, in this tab: the draft whose place it took, and what is to be said of keeping.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Keeping {
    /// The draft whose place it took last, to be taken up again.
    pub(super) former: Option<Draft>,
    /// The keys in the study of what is left out, since it may hold a key.
    pub(super) left_out: Vec<String>,
    /// What this browser does not keep of it and why, in a sentence.
    pub(super) refused: Option<String>,
    /// Why one that was kept is not shown.
    pub(super) unread: Option<String>,
}

/// See [`Keeping`].
pub(super) fn keeping() -> ArcRwSignal<Keeping> {
    thread_local! {
        static KEEPING: ArcRwSignal<Keeping> = ArcRwSignal::new(Keeping::default());
    }
    KEEPING.with(Clone::clone)
}

/// The draft that was kept, without its files; none where there is none that this page can read.
pub(super) fn read() -> Option<Draft> {
    let (draft, former) = (read_at(Place::Draft), read_at(Place::Former));
    say(|keeping| {
        keeping.unread = draft.as_ref().err().cloned();
        keeping.former = former.ok().flatten();
    });
    draft.ok().flatten()
}

fn read_at(place: Place) -> Result<Option<Draft>, String> {
    let text = local_storage().and_then(|local| local.get_item(place.name()).ok().flatten());
    let Some(text) = text else { return Ok(None) };
    let record: Record = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let mut draft = record.draft;
    draft.awaits = Some(record.files.clone()).filter(|called| !called.is_empty());
    KNOWN.with_borrow_mut(|known| {
        let known = known.entry(place).or_default();
        known.draft = written(&draft.without_secrets().0);
        known.called = record.files;
    });
    Ok(Some(draft))
}

fn written(draft: &Draft) -> Option<String> {
    serde_json::to_string(draft).ok()
}

/// Keeps the draft as it changes here: a tab in which nobody changes it leaves alone what another one keeps.
pub(super) fn follow(form: Form) {
    thread_local! {
        static REST_TIMER: RefCell<Option<Timeout>> = const { RefCell::new(None) };
    }
    // One that nobody has changed is not kept.
    form.draft.with_untracked(|draft| {
        KNOWN.with_borrow_mut(|known| {
            let known = known.entry(Place::Draft).or_default();
            if known.draft.is_none() {
                known.draft = written(&draft.without_secrets().0);
            }
        });
    });
    spawn_local(restore(form));
    Effect::new(move |_| {
        form.draft.track();
        REST_TIMER.set(Some(Timeout::new(REST, move || keep_draft(form))));
    });
    // What was typed last is kept too.
    let leaving = window_event_listener_untyped("pagehide", move |_| keep_draft(form));
    on_cleanup(move || {
        leaving.remove();
        keep_draft(form);
    });
}

/// Fills in the files of the drafts that were read without them.
async fn restore(form: Form) {
    let awaits = |draft: &Draft| draft.awaits.is_some();
    let former_awaits = keeping().with_untracked(|keeping| keeping.former.as_ref().is_some_and(awaits));
    if !former_awaits && form.draft.try_with_untracked(awaits) != Some(true) {
        return;
    }
    let mut found = DataFiles::new();
    for place in [Place::Draft, Place::Former] {
        let files = match Storage::open().await {
            Ok(storage) => storage.files(place.name()).await,
            Err(error) => Err(error),
        };
        match files {
            Ok(files) => found.extend(files),
            // They are left where they are: they may be given back another time.
            Err(error) => {
                return say(|keeping| {
                    keeping.refused = Some(format!(
                        "This browser does not give its data files back ({error}): take them in again, or reload the page."
                    ));
                });
            }
        }
    }
    // The page may be gone by now.
    let of_draft = form.draft.try_with_untracked(|draft| draft.awaits.clone());
    if let Some(Some(called)) = of_draft {
        let files = called_so(&found, &called);
        know(Place::Draft, &called, &files);
        form.renew(|draft| draft.restore(files));
    }
    say(|keeping| {
        if let Some(former) = &mut keeping.former
            && let Some(called) = former.awaits.clone()
        {
            let files = called_so(&found, &called);
            know(Place::Former, &called, &files);
            former.restore(files);
        }
    });
}

/// The files of this name among those in the database.
fn called_so(found: &DataFiles, called: &str) -> DataFiles {
    let of = |(path, text): (&String, &Arc<str>)| {
        let path = path.strip_prefix(called)?.strip_prefix('/')?;
        Some((path.to_owned(), Arc::clone(text)))
    };
    found.iter().filter_map(of).collect()
}

/// Notes which files lie in the database for a place, if these are still meant.
fn know(place: Place, called: &str, files: &DataFiles) {
    KNOWN.with_borrow_mut(|known| {
        let known = known.entry(place).or_default();
        if known.called == called {
            known.files.clone_from(files);
        }
    });
}

fn keep_draft(form: Form) {
    // The page may be gone by now.
    let _ = form.draft.try_with_untracked(|draft| keep(Place::Draft, draft));
}

/// Keeps the draft whose place was taken, or that there is none.
pub(super) fn keep_former(former: Option<Draft>) {
    if let Some(former) = &former {
        keep(Place::Former, former);
    } else {
        KNOWN.with_borrow_mut(|known| known.remove(&Place::Former));
        if let Some(local) = local_storage() {
            // What is not forgotten is offered once more.
            let _ = local.remove_item(Place::Former.name());
        }
    }
    say(|keeping| keeping.former = former);
}

fn keep(place: Place, draft: &Draft) {
    let (kept, left_out) = draft.without_secrets();
    if place == Place::Draft {
        say(|keeping| keeping.left_out = left_out);
    }
    let Some(text) = written(&kept) else { return };
    let files = draft.kept_files();
    let changed = KNOWN.with_borrow_mut(|all| {
        let known = all.entry(place).or_default();
        let same_files = match &draft.awaits {
            Some(called) => known.called == *called,
            None => are_same(&files, &known.files),
        };
        if same_files && known.draft.as_ref() == Some(&text) {
            return None;
        }
        known.draft = Some(text);
        if let Some(called) = &draft.awaits {
            known.called.clone_from(called);
            return Some((known.called.clone(), None));
        }
        // What lies there may be another tab's by now.
        if same_files && called_at(place).as_ref() == Some(&known.called) {
            return Some((known.called.clone(), None));
        }
        known.called = if files.is_empty() {
            String::new()
        } else {
            fresh_id(js_sys::Date::now())
        };
        known.files.clone_from(&files);
        Some((known.called.clone(), Some(files)))
    });
    let Some((called, files)) = changed else { return };
    let record = Record {
        files: called.clone(),
        draft: kept,
    };
    let text = serde_json::to_string(&record).unwrap_or_default();
    let refused = match local_storage() {
        Some(local) => local
            .set_item(place.name(), &text)
            .err()
            .map(|_| "its storage is full or blocked"),
        None => Some("it stores nothing for this page"),
    };
    if place == Place::Draft {
        say(|keeping| {
            keeping.refused = refused.map(|why| {
                format!("This browser does not keep it as a draft, for {why}: export it before you close this tab.")
            });
            keeping.unread = None;
        });
    }
    if let Some(files) = files {
        let named = |(path, text): (String, Arc<str>)| (format!("{called}/{path}"), text);
        let named: DataFiles = files.into_iter().map(named).collect();
        spawn_local(async move {
            let put = match Storage::open().await {
                Ok(storage) => storage.put_files(place.name(), &named).await,
                Err(error) => Err(error),
            };
            if let Err(error) = put
                && place == Place::Draft
                && !named.is_empty()
            {
                say(|keeping| {
                    keeping.refused = Some(format!(
                        "This browser keeps it as a draft, but not its data files ({error})."
                    ));
                });
            }
        });
    }
}

/// Forgets, here and in the browser's storage, the drafts and the benchmark that somebody took from a project once they sign out, in this tab
/// or another, or somebody else signs in. Where a session has ended by itself they wait for who signs in again.
pub fn forget_with_the_team(team: Team) {
    let standing = team.standing();
    Effect::new(move |before: Option<u32>| {
        let departures = team.departures();
        let has_left = before.is_some_and(|before| before != departures);
        let member = standing.with(|standing| standing.member().map(str::to_owned));
        forget(|taken_by| is_gone(taken_by, has_left, member.as_deref()));
        departures
    });
}

/// Whether what a member took is to go, where somebody `has_left`, or somebody is signed in now.
fn is_gone(taken_by: &str, has_left: bool, member: Option<&str>) -> bool {
    has_left || member.is_some_and(|member| member != taken_by)
}

/// Notes that a member took files of the tau2 benchmark from a project: what is kept of it goes with them.
pub(super) fn note_benchmark(member: &str) {
    if let Some(local) = local_storage() {
        // Where nothing can be noted, the benchmark can be forgotten by hand.
        let _ = local.set_item(BENCHMARK_TAKEN, member);
    }
}

fn forget_benchmark(is_gone: impl Fn(&str) -> bool) {
    let taken_by = local_storage().and_then(|local| local.get_item(BENCHMARK_TAKEN).ok().flatten());
    if taken_by.is_none_or(|taken_by| !is_gone(&taken_by)) {
        return;
    }
    spawn_local(async move {
        // Where it fails the note stays, and it is tried when somebody leaves again.
        if let Ok(storage) = Storage::open().await
            && storage.forget_benchmark().await.is_ok()
            && let Some(local) = local_storage()
        {
            let _ = local.remove_item(BENCHMARK_TAKEN);
            Form::lose_benchmark();
        }
    });
}

fn forget(is_gone: impl Fn(&str) -> bool) {
    forget_benchmark(&is_gone);
    let is_taken = |draft: &Draft| draft.taken_by.as_deref().is_some_and(&is_gone);
    say(|keeping| keeping.former = keeping.former.take().filter(|former| !is_taken(former)));
    for place in [Place::Draft, Place::Former] {
        if taken_at(place).is_none_or(|taken_by| !is_gone(&taken_by)) {
            continue;
        }
        KNOWN.with_borrow_mut(|known| known.remove(&place));
        if let Some(local) = local_storage() {
            // Who can read it can remove it.
            let _ = local.remove_item(place.name());
        }
        spawn_local(async move {
            if let Ok(storage) = Storage::open().await {
                // What is left, without a name by now, goes with the next draft that is kept.
                let _ = storage.put_files(place.name(), &DataFiles::new()).await;
            }
        });
    }
    if let Some(new) = Form::forget(is_taken) {
        // One that nobody has changed is not kept, in place of another tab's.
        let known = Known {
            draft: written(&new.without_secrets().0),
            ..Known::default()
        };
        KNOWN.with_borrow_mut(|all| all.insert(Place::Draft, known));
    }
}

/// Who took the draft that lies at a place now from a project.
fn taken_at(place: Place) -> Option<String> {
    #[derive(Deserialize)]
    struct Lies {
        draft: Taken,
    }
    #[derive(Deserialize)]
    struct Taken {
        taken_by: Option<String>,
    }
    let text = local_storage()?.get_item(place.name()).ok().flatten()?;
    serde_json::from_str::<Lies>(&text).ok()?.draft.taken_by
}

/// What the files are called of the draft that lies at a place now.
fn called_at(place: Place) -> Option<String> {
    #[derive(Deserialize)]
    struct Called {
        files: String,
    }
    let text = local_storage()?.get_item(place.name()).ok().flatten()?;
    let called: Called = serde_json::from_str(&text).ok()?;
    Some(called.files)
}

/// Changes what there is beside the draft, where that makes a difference.
fn say(change: impl FnOnce(&mut Keeping)) {
    let keeping = keeping();
    let said = keeping.get_untracked();
    let mut next = said.clone();
    change(&mut next);
    if next != said {
        keeping.set(next);
    }
}

fn are_same(one: &DataFiles, other: &DataFiles) -> bool {
    one.len() == other.len()
        && one.iter().all(|(path, text)| {
            let held = other.get(path);
            held.is_some_and(|held| Arc::ptr_eq(text, held) || text == held)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_another_tab_are_left_alone() {
        let found = DataFiles::from([
            ("1a/rows.csv".to_owned(), "mine".into()),
            ("1ab/rows.csv".to_owned(), "another's".into()),
            ("2/data/more.csv".to_owned(), "another's".into()),
        ]);
        let mine = called_so(&found, "1a");
        assert_eq!(mine.len(), 1);
        assert_eq!(&*mine["rows.csv"], "mine");
        assert!(called_so(&found, "2").into_keys().eq(["data/more.csv"]));
    }

    #[test]
    fn what_was_taken_goes_with_who_took_it_and_waits_where_a_session_has_ended() {
        assert!(is_gone("ada", true, None));
        assert!(is_gone("ada", false, Some("bea")));
        assert!(!is_gone("ada", false, Some("ada")) && !is_gone("ada", false, None));
    }

    #[test]
    fn a_record_reads_as_it_was_written() {
        let draft = Draft::new().unwrap();
        let record = Record {
            files: "1a".into(),
            draft: draft.clone(),
        };
        let text = serde_json::to_string(&record).unwrap();
        let read: Record = serde_json::from_str(&text).unwrap();
        assert_eq!((read.files.as_str(), read.draft), ("1a", draft));
    }
}
