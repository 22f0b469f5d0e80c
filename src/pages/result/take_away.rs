//! The menu of what can be downloaded.

use capo_core::summary::Summary;
use leptos::ev;
use leptos::html::{Button, Div};
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::spawn_local;
use web_sys::{Element, HtmlElement, Node};

use super::prompt::Best;
use crate::download::{self, Kind};
use crate::live::{self, Folded, Run, Runs};
use crate::run::code::{self, Language};
use crate::run::{regression, report};
use crate::storage::is_report;

/// Where an entry of the menu says its place, from 0.
const PLACE: &str = "data-place";

/// What can be taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// A file made of what the page knows.
    Document(Document),
    /// The prompt as a call of the agent’s model.
    Call(Language),
    /// The held-out rows.
    Rows,
    /// The study that measures prompts on them.
    StudyOfRows,
    /// Every line as it was written.
    Journal,
    /// The journal packed, with traces or without.
    Packed(bool),
    /// This page in one file, with traces or without.
    Report(bool),
}

/// A file made of what the page knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Document {
    Prompt,
    Text,
    Json,
    Markdown,
}

impl Taken {
    const ALL: [Self; 14] = [
        Self::Document(Document::Prompt),
        Self::Document(Document::Text),
        Self::Document(Document::Json),
        Self::Document(Document::Markdown),
        Self::Call(Language::Curl),
        Self::Call(Language::Python),
        Self::Call(Language::TypeScript),
        Self::Rows,
        Self::StudyOfRows,
        Self::Report(false),
        Self::Report(true),
        Self::Journal,
        Self::Packed(true),
        Self::Packed(false),
    ];

    fn words(self) -> &'static str {
        match self {
            Self::Document(Document::Prompt) => "Prompt alone (text)",
            Self::Document(Document::Text) => "Result (text)",
            Self::Document(Document::Json) => "Result (JSON)",
            Self::Document(Document::Markdown) => "Report (Markdown)",
            Self::Call(Language::Curl) => "Call of the model (curl)",
            Self::Call(Language::Python) => "Call of the model (Python)",
            Self::Call(Language::TypeScript) => "Call of the model (TypeScript)",
            Self::Rows => "Held-out rows, to test prompts on (JSONL)",
            Self::StudyOfRows => "Study of the held-out rows (TOML)",
            Self::Report(false) => "This page in one file, opens offline (HTML)",
            Self::Report(true) => "This page in one file, with traces (HTML)",
            Self::Journal => "Journal (JSONL)",
            Self::Packed(true) => "Journal, compressed (JSONL.gz)",
            Self::Packed(false) => "Journal without traces, compressed (JSONL.gz)",
        }
    }

    /// Whether there is no such thing before the run has ended.
    fn needs_end(self) -> bool {
        !matches!(
            self,
            // Nothing goes on from a journal without traces.
            Self::Document(Document::Prompt)
                | Self::Call(_)
                | Self::Journal
                | Self::Packed(true)
                | Self::Report(_)
        )
    }

    /// Whether it is to be had here: a report is such a file already, has as many traces as it was made with, and no worker to
    /// write calls. Rows are only where the run's files are.
    fn is_offered(self, is_report: bool, has_rows: bool) -> bool {
        match self {
            Self::Rows | Self::StudyOfRows => has_rows,
            Self::Call(_) | Self::Packed(_) | Self::Report(_) => !is_report,
            Self::Document(_) | Self::Journal => true,
        }
    }
}

/// The name of files about a run, without an ending.
fn file_name(run: Run) -> String {
    run.peek(|folded| {
        let study = folded.state.study();
        let name = study.map_or("", |started| started.study.study.name.as_str());
        download::file_name(name, Best::of(folded).map(|best| best.id))
    })
}

/// Makes a file and offers it.
///
/// # Errors
/// Why there is none, in words.
pub(super) async fn take(runs: Runs, run: Run, what: Taken) -> Result<(), String> {
    let name = file_name(run);
    match what {
        Taken::Rows | Taken::StudyOfRows => {
            let files = runs.begun(run).await?.files;
            let made = run.peek(|folded| regression::regression(&folded.state, &files, &name));
            let (study, rows) = made?;
            let (ending, text) = match what {
                Taken::Rows => ("jsonl", rows),
                _ => ("toml", study),
            };
            download::offer_text(&format!("{}.{ending}", regression::file_name(&name)), text)
        }
        Taken::Journal => download::offer_journal(run, &name).await,
        Taken::Packed(with_traces) => download::offer_packed_journal(run, &name, with_traces).await,
        Taken::Report(with_traces) => download::offer_report(run, &name, with_traces).await,
        Taken::Call(language) => {
            let asked = run.peek(|folded| {
                let best = Best::of(folded).ok_or("There is no prompt yet.")?;
                code::asked(&folded.state, best.id)
            })?;
            let request = live::written(asked.clone()).await?;
            let text = code::code(&request, &asked.table, language);
            download::offer(&name, Kind::Code(language.ending()), [text])
        }
        Taken::Document(document) => {
            let made = run.peek(|folded| content(folded, document, &name));
            let (name, kind, text) = made?;
            download::offer(&name, kind, [text])
        }
    }
}

/// A file's name, kind and text.
fn content(folded: &Folded, document: Document, name: &str) -> Result<(String, Kind, String), String> {
    let state = &folded.state;
    let unfinished = || "The run has not ended, so there is no result yet.".to_owned();
    let plain = name.to_owned();
    Ok(match document {
        Document::Prompt => {
            let best = Best::of(folded).ok_or("There is no prompt yet.")?;
            (format!("{name}-prompt"), Kind::Text, best.text)
        }
        Document::Text => (plain, Kind::Text, report::text(state).ok_or_else(unfinished)?),
        Document::Markdown => (
            plain,
            Kind::Markdown,
            report::markdown(state).ok_or_else(unfinished)?,
        ),
        Document::Json => {
            let journal = format!("{name}.{}", Kind::Journal.ending());
            let finished = state.finished().ok_or_else(unfinished)?;
            let summary = Summary::new(state, finished, journal);
            let json = serde_json::to_string_pretty(&summary).map_err(|error| error.to_string())?;
            (plain, Kind::Json, json + "\n")
        }
    })
}

/// A button with a menu under it.
#[component]
pub(super) fn TakeAway(run: Run, best: Memo<Option<Best>>) -> impl IntoView {
    let runs = expect_context::<Runs>();
    let host = NodeRef::<Div>::new();
    let button = NodeRef::<Button>::new();
    let open = RwSignal::new(false);
    let failed = RwSignal::new(None::<String>);
    let said = RwSignal::new(None::<String>);
    let ended = Memo::new(move |_| run.read(|folded| folded.state.finished().is_some()));
    let close = move || {
        open.set(false);
        if let Some(button) = button.get_untracked() {
            // A button that is gone takes no focus.
            let _ = button.focus();
        }
    };
    let outside = window_event_listener(ev::pointerdown, move |event| {
        let target = event.target().and_then(|target| target.dyn_into::<Node>().ok());
        let inside = host
            .get_untracked()
            .is_some_and(|host| host.contains(target.as_ref()));
        if !inside {
            open.set(false);
        }
    });
    on_cleanup(move || outside.remove());
    let keys = move |event: ev::KeyboardEvent| {
        match event.key().as_str() {
            "Escape" if open.get_untracked() => close(),
            "ArrowDown" if open.get_untracked() => step(host, 1),
            "ArrowUp" if open.get_untracked() => step(host, -1),
            _ => return,
        }
        event.prevent_default();
    };
    let pick = move |what: Taken| {
        close();
        said.set(Some("The file is being made.".to_owned()));
        spawn_local(async move {
            let taken = take(runs, run, what).await;
            let is_of_rows = matches!(what, Taken::Rows | Taken::StudyOfRows) && taken.is_ok();
            let command = is_of_rows.then(|| {
                let command = regression::command(&file_name(run));
                format!(
                    "With the rows, their study and the prompt alone in one folder, its models’ keys in variables: \
                     {command}"
                )
            });
            // The page may be left by then.
            let _ = said.try_set(command);
            let _ = failed.try_set(taken.err());
        });
    };
    Effect::new(move |_| {
        if open.get() {
            request_animation_frame(move || step(host, 1));
        }
    });
    let entries = move || {
        let has_rows = run.has_files() && run.peek(|folded| regression::is_of_rows(&folded.state));
        let shown = Taken::ALL
            .into_iter()
            .filter(|what| ended.get() || !what.needs_end())
            .filter(|what| what.is_offered(is_report(), has_rows));
        shown
            .enumerate()
            .map(|(place, what)| {
                view! {
                    <li role="none">
                        <button
                            type="button"
                            role="menuitem"
                            tabindex="-1"
                            data-place=place
                            on:click=move |_| pick(what)
                        >
                            {what.words()}
                        </button>
                    </li>
                }
            })
            .collect_view()
    };
    view! {
        <div class="menu-host" node_ref=host on:keydown=keys>
            <button
                type="button"
                node_ref=button
                aria-haspopup="menu"
                aria-expanded=move || open.get().to_string()
                disabled=move || best.with(Option::is_none)
                on:click=move |_| open.update(|open| *open = !*open)
            >
                "Download…"
            </button>
            <Show when=move || open.get()>
                <ul class="menu" role="menu" aria-label="Download">
                    {entries}
                </ul>
            </Show>
        </div>
        <span class="note" role="status">
            {said}
        </span>
        {move || failed.get().map(|message| view! { <span class="note is-i" role="alert">{message}</span> })}
    }
}

/// Moves the focus among the menu's entries, from none to the first.
fn step(host: NodeRef<Div>, step: isize) {
    let place = |element: &Element| element.get_attribute(PLACE)?.parse::<isize>().ok();
    let next = match document().active_element().as_ref().and_then(place) {
        Some(at) => at + step,
        None => 0,
    };
    let entry = host.get_untracked().and_then(|host| {
        let selector = format!("[{PLACE}=\"{next}\"]");
        host.query_selector(&selector).ok().flatten()
    });
    if let Some(entry) = entry.and_then(|entry| entry.dyn_into::<HtmlElement>().ok()) {
        // As above.
        let _ = entry.focus();
    }
}
