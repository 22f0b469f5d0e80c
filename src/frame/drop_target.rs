//! Files dropped anywhere on any page.

use leptos::ev;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::components::A;
use leptos_router::hooks::{use_location, use_navigate};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{DragEvent, File};

use super::address::{base, use_page};
use super::handover::{Handed, Handover};
use super::imports::Imports;
use crate::live::Runs;

/// What a file is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A run's, or rows that are written one JSON object a line.
    Journal,
    /// A study.
    Study,
    /// A table of examples.
    Table,
    /// Nothing that this page reads.
    Unknown,
}

/// What a file is, by its name.
pub fn kind(name: &str) -> Kind {
    let name = name.to_lowercase();
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("jsonl" | "ndjson") => Kind::Journal,
        Some("gz") if name.ends_with(".jsonl.gz") => Kind::Journal,
        Some("toml" | "json") => Kind::Study,
        Some("csv" | "tsv") => Kind::Table,
        _ => Kind::Unknown,
    }
}

/// What to do about a file that is not taken in here.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Notice {
    words: String,
    /// Whether New study is where it belongs.
    on_new_study: bool,
}

/// Takes in journals and studies wherever on the page they are dropped. Fields that take files of
/// their own prevent the event's default before it arrives here.
#[component]
pub fn DropTarget() -> impl IntoView {
    let handover = expect_context::<Handover>();
    let navigate = use_navigate();
    let page = use_page();
    let held = RwSignal::new(false);
    let notice = RwSignal::new(None::<Notice>);

    let open_journal = use_open_journal();
    let take = move |file: File| {
        let name = file.name();
        match kind(&name) {
            Kind::Journal => open_journal.run(file),
            Kind::Study => {
                let navigate = navigate.clone();
                spawn_local(async move {
                    let text = JsFuture::from(file.text()).await.ok();
                    match text.and_then(|text| text.as_string()) {
                        Some(text) => {
                            handover.0.set(Some(Handed::Text(text)));
                            navigate("/study", NavigateOptions::default());
                        }
                        None => notice.set(Some(Notice {
                            words: format!("{name} could not be read. Nothing was taken in; drop it again."),
                            on_new_study: false,
                        })),
                    }
                });
            }
            Kind::Table => notice.set(Some(Notice {
                words: format!("{name} is a table. Tables are dropped on New study, as its examples."),
                on_new_study: true,
            })),
            Kind::Unknown => notice.set(Some(Notice {
                words: format!(
                    "{name} was not taken in: journals end in .jsonl or .jsonl.gz, studies in .toml or .json, tables in .csv."
                ),
                on_new_study: false,
            })),
        }
    };

    let listeners = [
        window_event_listener(ev::dragenter, move |event| {
            held.set(carries_files(&event));
        }),
        window_event_listener(ev::dragover, move |event| {
            if carries_files(&event) {
                event.prevent_default();
            }
        }),
        window_event_listener(ev::dragleave, move |event| {
            // Nothing is entered instead: the file left the window.
            if event.related_target().is_none() {
                held.set(false);
            }
        }),
        window_event_listener(ev::drop, move |event| {
            held.set(false);
            if event.default_prevented() || !carries_files(&event) {
                return;
            }
            event.prevent_default();
            dropped(&event).into_iter().for_each(take.clone());
        }),
    ];
    on_cleanup(move || listeners.into_iter().for_each(WindowListenerHandle::remove));

    // New study says itself what it takes, and a place that takes files of its own stays in sight.
    let has_place = || {
        document()
            .query_selector(".drop")
            .is_ok_and(|place| place.is_some())
    };
    let shown = move || held.get() && page.with(|page| page != "/study") && !has_place();
    view! {
        <Show when=shown>
            <div class="drop-page">
                <p>
                    "Drop it here" <span class="note">"a journal (.jsonl, .jsonl.gz) to open, or a study (.toml, .json) to set up"</span>
                </p>
            </div>
        </Show>
        <div class="toasts" role="status">
            {move || notice.get().map(|shown| view! { <Toast shown notice/> })}
        </div>
    }
}

/// Keeps the journal in a file as a run, seen on the list of runs as it is read, and opens it.
pub fn use_open_journal() -> Callback<File> {
    let runs = expect_context::<Runs>();
    let imports = expect_context::<Imports>();
    let navigate = use_navigate();
    // The router's own: it outlives the page that is left for the list of runs.
    let (path, base) = (use_location().pathname, base());
    let on_runs = move || path.with_untracked(|path| path.strip_prefix(base.as_str()) == Some("/runs"));
    Callback::new(move |file: File| {
        if !on_runs() {
            navigate("/runs", NavigateOptions::default());
        }
        let (navigate, on_runs) = (navigate.clone(), on_runs.clone());
        imports.read(runs, file, move |run| {
            // Whoever went elsewhere meanwhile finds it in the list.
            if on_runs() {
                navigate(&format!("/run/{}", run.id()), NavigateOptions::default());
            }
        });
    })
}

#[component]
fn Toast(shown: Notice, notice: RwSignal<Option<Notice>>) -> impl IntoView {
    let link = shown
        .on_new_study
        .then(|| view! { <A href="/study" on:click=move |_| notice.set(None)>"New study"</A> });
    view! {
        <div class="toast">
            <span>{shown.words} " " {link}</span>
            <button type="button" class="link" on:click=move |_| notice.set(None)>
                "Dismiss"
            </button>
        </div>
    }
}

fn carries_files(event: &DragEvent) -> bool {
    let types = event.data_transfer().map(|transfer| transfer.types());
    types.is_some_and(|types| types.iter().any(|kind| kind == "Files"))
}

/// The files that somebody let go of.
pub fn dropped(event: &DragEvent) -> Vec<File> {
    let files = event.data_transfer().and_then(|transfer| transfer.files());
    files.map_or_else(Vec::new, |files| {
        (0..files.length()).filter_map(|index| files.get(index)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_their_names() {
        assert_eq!(kind("airline-nine.jsonl"), Kind::Journal);
        assert_eq!(kind("Airline-nine.jsonl.gz"), Kind::Journal);
        assert_eq!(kind("rows.csv.gz"), Kind::Unknown);
        assert_eq!(kind("study.v2.TOML"), Kind::Study);
        assert_eq!(kind("rows.csv"), Kind::Table);
        assert_eq!(kind("README"), Kind::Unknown);
    }
}
