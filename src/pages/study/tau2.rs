//! The domains of the tau2 benchmark, on data that a person has and this project may not ship.

use capo_workloads::tau2::folder;
use capo_workloads::tau2::settings::{DomainName, KIND};
use js_sys::{Function, Promise, Reflect};
use leptos::ev;
use leptos::prelude::*;
use serde_json::Value;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{
    DomException, DragEvent, File, FileSystemDirectoryEntry, FileSystemEntry, FileSystemFileEntry,
    FileSystemFlags,
};

use super::draft::{DESCRIPTIONS, EMBEDDINGS};
use super::field::{Wrong, id};
use super::file::text_of;
use super::form::{Form, Said};
use super::kept::note_benchmark;
use super::place::Place;
use super::rows::Exclude;
use super::setting_field::SettingField;
use super::workload::of_kind;
use crate::components::{Choose, removing, removing_by};
use crate::format;
use crate::frame::drop_target::{self, Kind};
use crate::live::keep_benchmark;
use crate::storage::Storage;

/// A file of a study's own beside the benchmark's.
struct Own {
    /// The key that names it.
    key: &'static str,
    title: &'static str,
    /// What the button says.
    words: &'static str,
    /// The ending of its name.
    accept: &'static str,
    explanation: &'static str,
}

static TOOL_DESCRIPTIONS: Own = Own {
    key: DESCRIPTIONS,
    title: "Tool descriptions",
    words: "Choose other descriptions",
    accept: ".json",
    explanation: "A JSON file with the lists assistant and user, in place of this project’s own descriptions of the \
                  tools. It may be dropped here too, and is kept with each run of the study.",
};

static VECTORS: Own = Own {
    key: EMBEDDINGS,
    title: "Vectors of the tasks",
    words: "Choose vectors",
    accept: ".jsonl",
    explanation: "What capo embed wrote, to cluster the tasks by meaning; without it, by the words they share.",
};

/// Where the benchmark's data may lie in a folder that was dropped.
const ROOTS: [&str; 3] = ["", "tau2/", "data/tau2/"];

/// The benchmark's data, and what of it is played.
#[component]
pub(super) fn Tau2() -> impl IntoView {
    let fields = of_kind(
        KIND,
        &[
            "domain",
            "split",
            "tasks",
            "clusters",
            "seed",
            "reference",
            "policy",
            "max_steps",
            "max_errors",
        ],
    )
    .into_iter()
    .map(|setting| view! { <SettingField place=Place::Workload setting explained=true/> })
    .collect_view();
    let form = expect_context::<Form>();
    // What was chosen for another split can be left out.
    let takes_vectors = form.memo(|study| {
        Place::Workload.text(study, "split") == "cluster-shift" || study.workload.contains_key(EMBEDDINGS)
    });
    view! {
        <p class="note">
            "Customers of an airline, a shop and a telephone company want something done; the agent talks to them and \
             acts through tools on their records. Models play both, and the benchmark’s rules decide."
        </p>
        <Data/>
        <div class="fields wide">{fields}</div>
        <OwnFile file=&TOOL_DESCRIPTIONS/>
        {move || takes_vectors.get().then(|| view! { <OwnFile file=&VECTORS/> })}
        <Exclude explanation="One id of a task a line; docs/tau2.md lists tasks that are known to be wrong."/>
    }
}

/// Which domains this browser keeps, or a place to drop them.
#[component]
fn Data() -> impl IntoView {
    let form = expect_context::<Form>();
    look_for_data(form);
    let domain = form.memo(|study| Place::Workload.text(study, "domain"));
    let is_missing = move || {
        let named =
            |domains: &Vec<DomainName>| domain.with(|name| domains.iter().any(|one| one.name() == name));
        !form.benchmark.with(named)
    };
    let here = move || {
        form.benchmark
            .with(|domains| domains.iter().map(|domain| domain.name()).collect::<Vec<_>>())
    };
    let kept = move || {
        let here = here();
        (!here.is_empty()).then(|| {
            let domains = format::capitalized(&words(&here));
            let forget = move |event: ev::MouseEvent| {
                let button = event.current_target().and_then(|target| target.dyn_into().ok());
                spawn_local(async move {
                    let forgotten = match Storage::open().await {
                        Ok(storage) => storage.forget_benchmark().await,
                        Err(error) => Err(error),
                    };
                    match forgotten {
                        Ok(()) => removing_by(button, || form.benchmark.set(Vec::new())),
                        Err(error) => form.said.set(Some(Said::Failed(error.to_string()))),
                    }
                });
            };
            view! {
                <div class="file">
                    <span>
                        <b>{domains}</b>
                        " "
                        <span class="quiet">"kept in this browser"</span>
                    </span>
                    <button type="button" class="link" on:click=forget>
                        "Forget the benchmark"
                    </button>
                </div>
            }
        })
    };
    view! {
        {kept}
        <Show when=is_missing fallback=|| view! { <Wrong key="workload.data"/> }>
            <Drop/>
        </Show>
    }
}

#[component]
fn Drop() -> impl IntoView {
    let form = expect_context::<Form>();
    let busy = form.taking_in;
    let chosen = Callback::new(move |files: Vec<File>| {
        let files = files.into_iter().map(|file| (path(&file), file)).collect();
        keep(form, files, None);
    });
    view! {
        <div class="drop" id="f-workload-data" tabindex="-1">
            <p>
                "Drop the folder " <code>"data/tau2"</code> " of a checkout of tau2-bench, the checkout itself, or a ZIP \
                 of it."
            </p>
            <div class="row">
                <Choose
                    words="Choose the folder"
                    label="Folder of the benchmark"
                    accept=""
                    folder=true
                    disabled=busy.into()
                    chosen
                />
                <Choose
                    words="Choose a ZIP"
                    label="ZIP of the benchmark"
                    accept=".zip"
                    disabled=busy.into()
                    chosen
                />
            </div>
            <p class="note" role="status">
                {move || {
                    if busy.get() {
                        "Reading the files…"
                    } else {
                        "Its data are not part of Capo. They stay in this browser, for all studies; models see one task at a \
                         time."
                    }
                }}
            </p>
            <div class="field">
                <Wrong key="workload.data"/>
            </div>
        </div>
    }
}

/// A file that the study has, or a way to choose one.
#[component]
fn OwnFile(file: &'static Own) -> impl IntoView {
    let form = expect_context::<Form>();
    let key = Place::Workload.path(file.key);
    let id = id(&key);
    let named = Memo::new(move |_| {
        form.draft.with(|draft| {
            let path = Place::Workload.text(&draft.study, file.key);
            let here = draft.files.contains_key(&path);
            draft
                .study
                .workload
                .contains_key(file.key)
                .then_some((path, here))
        })
    });
    let chosen = Callback::new(move |files: Vec<File>| {
        for chosen in files {
            spawn_local(async move {
                match text_of(&chosen).await {
                    Ok(text) => take_own(form, file.key, &chosen.name(), text),
                    Err(message) => form.said.set(Some(Said::Failed(message))),
                }
            });
        }
    });
    let leave_out = move |event: ev::MouseEvent| {
        removing(&event, || form.renew(|draft| draft.leave_out(file.key)));
    };
    let there = move || {
        named.get().map(|(path, here)| {
            let state = if here {
                "goes with the study"
            } else {
                "not here yet"
            };
            view! {
                <div class="file">
                    <span>
                        <b>{path}</b>
                        " "
                        <span class="quiet">{state}</span>
                    </span>
                    <button
                        type="button"
                        class="link"
                        on:click=leave_out
                    >
                        "Leave out"
                    </button>
                </div>
            }
        })
    };
    view! {
        <div class="field" role="group" aria-label=file.title id=id tabindex="-1">
            <span class="lab">{file.title}</span>
            {there}
            <div class="row">
                <Choose words=file.words label=file.title accept=file.accept chosen/>
            </div>
            <span class="note">{file.explanation}</span>
            <Wrong key/>
        </div>
    }
}

/// The key that a file belongs to which was dropped: one under which the study names it, or that of what it
/// holds.
pub(super) fn key_of(form: Form, name: &str, text: &str) -> Option<&'static str> {
    let names = |key: &&str| {
        let named = form
            .draft
            .with_untracked(|draft| Place::Workload.text(&draft.study, key));
        named.rsplit('/').next() == Some(name)
    };
    let holds = |text: &str, key| serde_json::from_str(text).is_ok_and(|value: Value| value[key].is_array());
    let named = [DESCRIPTIONS, EMBEDDINGS].into_iter().find(names);
    named.or_else(|| match drop_target::kind(name) {
        Kind::Study => holds(text, "assistant").then_some(DESCRIPTIONS),
        Kind::Journal => holds(text.lines().next()?, "vector").then_some(EMBEDDINGS),
        Kind::Table | Kind::Unknown => None,
    })
}

/// Takes the file of a key in, and goes over to the benchmark.
pub(super) fn take_own(form: Form, key: &str, name: &str, text: String) {
    form.renew(|draft| draft.take_own(key, name, text));
    form.said.set(Some(Said::Done(format!("{name} was taken in."))));
}

/// "airline, retail and telecom".
fn words(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// Looks which domains this browser keeps.
fn look_for_data(form: Form) {
    spawn_local(async move {
        let paths = match Storage::open().await {
            Ok(storage) => storage.benchmark_paths().await,
            Err(error) => Err(error),
        };
        match paths {
            Ok(paths) => {
                let is_here = |domain: &DomainName| {
                    folder::files(*domain)
                        .iter()
                        .all(|path| paths.iter().any(|here| here == path))
                };
                let here = DomainName::ALL.into_iter().filter(is_here).collect::<Vec<_>>();
                // The page may be left by then.
                if form.benchmark.try_with_untracked(|known| *known != here) == Some(true) {
                    form.benchmark.set(here);
                }
            }
            Err(error) => form.said.set(Some(Said::Failed(error.to_string()))),
        }
    });
}

/// Has files kept, and goes over to the benchmark. The `member` is who took them from a project, if they are of one.
fn keep(form: Form, files: Vec<(String, File)>, member: Option<String>) {
    form.taking_in.set(true);
    spawn_local(async move {
        let kept = keep_benchmark(files).await;
        if let (Ok(()), Some(member)) = (&kept, member) {
            note_benchmark(&member);
        }
        // The page may be left by then.
        let _ = form.taking_in.try_set(false);
        match kept {
            Ok(()) => {
                form.renew(|draft| draft.take_kind(KIND));
                form.said
                    .set(Some(Said::Done("The benchmark was taken in.".to_owned())));
                look_for_data(form);
            }
            Err(message) => form.said.set(Some(Said::Failed(message))),
        }
    });
}

/// Takes a dropped folder or archive in; false where it is neither.
pub(super) fn take_dropped(form: Form, event: &DragEvent) -> bool {
    let Some(transfer) = event.data_transfer() else {
        return false;
    };
    let entry = transfer
        .items()
        .get(0)
        .and_then(|item| item.webkit_get_as_entry().ok().flatten());
    if let Some(entry) = entry.filter(FileSystemEntry::is_directory) {
        let folder: FileSystemDirectoryEntry = entry.unchecked_into();
        if !form.taking_in.get_untracked() {
            form.taking_in.set(true);
            spawn_local(async move {
                match files_of(&folder).await {
                    Ok(files) => keep(form, files, None),
                    Err(message) => {
                        // The page may be left by then.
                        let _ = form.taking_in.try_set(false);
                        form.said.try_set(Some(Said::Failed(message)));
                    }
                }
            });
        }
        return true;
    }
    let file = transfer.files().and_then(|files| files.get(0));
    file.is_some_and(|file| take_archive(form, &file, None))
}

/// Takes an archive in, which a `member` took from a project if it is of one; false where it is none.
pub(super) fn take_archive(form: Form, file: &File, member: Option<String>) -> bool {
    let is_one = file.name().to_lowercase().ends_with(".zip");
    if is_one && !form.taking_in.get_untracked() {
        keep(form, vec![(file.name(), file.clone())], member);
    }
    is_one
}

/// What is needed of a folder, wherever in it the benchmark lies. Nothing else of it is looked at.
///
/// # Errors
/// A file that is there and cannot be read.
async fn files_of(folder: &FileSystemDirectoryEntry) -> Result<Vec<(String, File)>, String> {
    let mut files = Vec::new();
    for root in ROOTS {
        for path in DomainName::ALL.into_iter().flat_map(folder::files) {
            if let Some(file) = file_at(folder, &format!("{root}{path}")).await? {
                files.push(((*path).to_owned(), file));
            }
        }
        if !files.is_empty() {
            break;
        }
    }
    Ok(files)
}

/// A file of a folder; `None` where there is none.
///
/// # Errors
/// It is there and cannot be read.
async fn file_at(folder: &FileSystemDirectoryEntry, path: &str) -> Result<Option<File>, String> {
    let found = Promise::new(&mut |resolve: Function, reject: Function| {
        folder.get_file_with_path_and_options_and_callback_and_callback(
            Some(path),
            &FileSystemFlags::new(),
            &resolve,
            &reject,
        );
    });
    let unreadable = |error: &JsValue| {
        let reason = error.dyn_ref().map(DomException::message).unwrap_or_default();
        format!(
            "{path} is in the folder but cannot be read ({reason}). Choose the folder instead of dropping it."
        )
    };
    let entry: FileSystemFileEntry = match JsFuture::from(found).await {
        Ok(entry) => entry.unchecked_into(),
        Err(error) if is_absence(&error) => return Ok(None),
        Err(error) => return Err(unreadable(&error)),
    };
    let read = Promise::new(&mut |resolve: Function, reject: Function| {
        entry.file_with_callback_and_callback(&resolve, &reject);
    });
    let file = JsFuture::from(read).await;
    file.map_err(|error| unreadable(&error))
        .map(|file| file.dyn_into().ok())
}

/// Whether there is nothing at the path, or something that is no file.
fn is_absence(error: &JsValue) -> bool {
    let error = error.dyn_ref().map(DomException::name);
    error.is_some_and(|name| ["NotFoundError", "TypeMismatchError"].contains(&name.as_str()))
}

/// A file's path within the folder that was chosen, else its name.
fn path(file: &File) -> String {
    let path = Reflect::get(file, &JsValue::from_str("webkitRelativePath")).ok();
    let path = path
        .and_then(|path| path.as_string())
        .filter(|path| !path.is_empty());
    path.unwrap_or_else(|| file.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_listed_in_words() {
        assert_eq!(words(&["airline"]), "airline");
        assert_eq!(
            words(&["airline", "retail", "telecom"]),
            "airline, retail and telecom"
        );
    }
}
