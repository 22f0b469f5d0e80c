//! The study as a file or a link, in and out.

use capo_core::study::{Format, Study};
use leptos::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::File;

use super::draft::Draft;
use super::form::{Form, Said};
use super::link;
use super::on_server::OnServer;
use super::preview;
use super::rows;
use super::tau2;
use super::team_data::{KeepStudy, TeamData};
use crate::components::Choose;
use crate::download::file_name;
use crate::format;
use crate::frame::drop_target::{self, Kind};
use crate::frame::handover::{Handed, HandedFile, Handover};
use crate::live::Begun;
use crate::team::Team;

/// Import, export, link.
#[component]
pub(super) fn StudyFile() -> impl IntoView {
    let form = expect_context::<Form>();
    let import = Callback::new(move |files: Vec<File>| {
        for file in files {
            take_file(form, file, None);
        }
    });
    let export = move |_| match as_file(form) {
        Ok((name, toml)) => download(form, &name, toml),
        Err(message) => form.said.set(Some(Said::Failed(message))),
    };
    let copy = move |_| match written(form).and_then(|study| link::fragment(&study)) {
        Ok(fragment) => copy_link(form, &fragment),
        Err(message) => form.said.set(Some(Said::Failed(message))),
    };
    let data = Memo::new(move |_| {
        form.draft
            .with(|draft| draft.named_files().into_keys().collect::<Vec<_>>())
    });
    let download_data = move |name: String| {
        let file = name.clone();
        let save = move |_| {
            let text = form.draft.with_untracked(|draft| draft.files.get(&file).cloned());
            download(form, &file, text.as_deref().unwrap_or_default().to_owned());
        };
        view! {
            <button type="button" on:click=save>
                "Save "
                {name}
            </button>
        }
    };
    let said = move || match form.said.get()? {
        Said::RowsUnread(_) => None,
        Said::Done(words) => Some(view! { <p class="note" role="status">{words}</p> }.into_any()),
        Said::Mend(words) => Some(
            view! {
                <div class="msg" role="alert">
                    <b>"It cannot run or be passed on yet."</b>
                    <span>{words}</span>
                </div>
            }
            .into_any(),
        ),
        Said::Failed(words) => Some(
            view! {
                <div class="msg" role="alert">
                    <b>"Nothing was changed."</b>
                    <span>{words}</span>
                </div>
            }
            .into_any(),
        ),
    };
    view! {
        <section class="plate" aria-labelledby="file-title">
            <header>
                <h2 class="pt" id="file-title">
                    "Study file"
                </h2>
            </header>
            <div class="row">
                <Choose words="Import TOML" label="Study file" accept=".toml,.json" chosen=import/>
                <TeamData studies=true/>
                <button type="button" on:click=export>
                    "Export TOML"
                </button>
                <button type="button" on:click=copy>
                    "Copy link"
                </button>
                <For each=move || data.get() key=Clone::clone let(name)>
                    {download_data(name)}
                </For>
            </div>
            <p class="note">
                "The link carries the study, never a key"
                {move || data.with(|data| !data.is_empty()).then_some(" and not the data file")} "."
            </p>
            <KeepStudy/>
            {said}
        </section>
    }
}

/// The study as a file: its name, and its text.
///
/// # Errors
/// What is wrong with it.
pub(super) fn as_file(form: Form) -> Result<(String, String), String> {
    let study = written(form)?;
    let toml = study.to_toml().map_err(|error| error.to_string())?;
    Ok((format!("{}.toml", file_name(&study.study.name, None)), toml))
}

/// The study as it stands, if it is one.
fn written(form: Form) -> Result<Study, String> {
    form.checked.get_untracked().map_err(|problems| {
        let first = problems.into_iter().next();
        first.map(|problem| problem.message).unwrap_or_default()
    })
}

/// Takes in a file: a study, the rows of a table, a file that a study of tau2 names, or a journal, which is
/// opened as a run. The `member` is who took it from a project of theirs, if it is of one.
pub(super) fn take_file(form: Form, file: File, member: Option<String>) {
    spawn_local(async move {
        let text = text_of(&file).await;
        // The page may be left by then.
        let Some(before) = form.draft.try_get_untracked() else {
            return;
        };
        match text {
            Ok(text) => take_text(form, file, text),
            Err(message) => return form.said.set(Some(Said::Failed(message))),
        }
        if let Some(member) = member {
            form.note_taken(before, member);
        }
    });
}

fn take_text(form: Form, file: File, text: String) {
    let name = file.name();
    if let Some(key) = tau2::key_of(form, &name, &text) {
        tau2::take_own(form, key, &name, text);
        return;
    }
    match drop_target::kind(&name) {
        Kind::Journal if name.to_lowercase().ends_with(".gz") || preview::is_journal(&text) => {
            form.journals.run(file);
        }
        Kind::Table if name.to_lowercase().ends_with(".tsv") => rows::take_tabs(form, &name, &text),
        // Rows may be written as a journal is, one JSON object a line.
        Kind::Journal | Kind::Table => rows::take(form, &name, text),
        Kind::Study => take_study(form, &name, &text, Format::of_path(&name)),
        Kind::Unknown => form.said.set(Some(Said::Failed(format!(
            "{name} was not taken in: studies end in .toml or .json, tables in .csv, .tsv or .jsonl, \
             journals in .jsonl or .jsonl.gz, archives of the tau2 benchmark in .zip."
        )))),
    }
}

/// Takes in a study that comes from another page, or a file that was chosen there.
pub(super) fn take_handed_over(form: Form, on_server: OnServer) {
    let (HandedFile(file), team) = (expect_context(), expect_context::<Team>());
    if let Some(file) = file.try_update_value(Option::take).flatten()
        && !tau2::take_archive(form, &file, Some(team.member()))
    {
        take_file(form, file, Some(team.member()));
    }
    let Handover(handed) = expect_context();
    Effect::new(move |_| {
        let Some(study) = handed.get() else {
            return;
        };
        handed.set(None);
        let text = match study {
            Handed::Text(text) => text,
            Handed::Run(begun) => return take_begun(form, on_server, *begun, team.member()),
        };
        // A study in JSON is an object; no TOML file begins with a brace.
        let is_json = text.trim_start().starts_with('{');
        let format = if is_json { Format::Json } else { Format::Toml };
        take_study(form, "The study", &text, format);
    });
}

fn take_study(form: Form, name: &str, text: &str, format: Format) {
    match Study::parse(text, format) {
        Ok(study) => {
            let mut next = Draft::of(study);
            form.draft.with_untracked(|former| next.succeed(former));
            put(form, next, format!("{name} was taken in."));
        }
        Err(error) => form.said.set(Some(Said::Failed(format!("{name}: {error}")))),
    }
}

/// Takes in what a run, or a training of a `member`, was started with, to be changed and run where that ran.
fn take_begun(form: Form, on_server: OnServer, begun: Begun, member: String) {
    let mut next = Draft::of(begun.study);
    // They belong to this study alone.
    next.restore(begun.files);
    next.taken_by = begun.project.is_some().then_some(member);
    on_server.choose(begun.project);
    let words = came(&next, &begun.no_text);
    put(form, next, words);
}

/// What came along with a study of its data files.
fn came(next: &Draft, no_text: &[String]) -> String {
    let words = match format::listed(no_text) {
        none if none.is_empty() => "The study was taken in.".to_owned(),
        names => format!("The study was taken in without {names}: of data files only text comes along."),
    };
    let mut lacking = next.named_paths();
    lacking.retain(|path| !next.files.contains_key(path) && !no_text.contains(path));
    if lacking.is_empty() {
        return words;
    }
    let names = format::listed(&lacking);
    format!("{words} Add what it names and did not come along, under Workload: {names}.")
}

/// Puts a study in place of the draft, and says so in `words`, with what may not be written into it.
pub(super) fn put(form: Form, next: Draft, words: String) {
    form.replace(next);
    let refused = form.draft.with_untracked(Draft::written_keys);
    form.said.set(Some(match refused.first() {
        None => Said::Done(words),
        Some(problem) => Said::Mend(format!("{words} In {}: {}", problem.key, problem.message)),
    }));
}

/// The text of a file.
pub(super) async fn text_of(file: &File) -> Result<String, String> {
    let name = file.name();
    let read = JsFuture::from(file.text()).await;
    read.ok()
        .and_then(|text| text.as_string())
        .ok_or_else(|| format!("{name} cannot be read. It may have been moved or changed meanwhile."))
}

/// Has the browser save a text as a file, or says why it does not.
fn download(form: Form, name: &str, text: String) {
    if let Err(message) = crate::download::offer_text(name, text) {
        form.said.set(Some(Said::Failed(message)));
    }
}

/// Puts this page's address with a study into the clipboard.
fn copy_link(form: Form, fragment: &str) {
    let window = window();
    let here = window.location().href().unwrap_or_default();
    let page = here.split('#').next().unwrap_or_default();
    let address = format!("{page}#{fragment}");
    // Pages from elsewhere over plain HTTP have no clipboard.
    if !window.is_secure_context() {
        return form.said.set(Some(Said::Done(format!("Copy this: {address}"))));
    }
    let copied = window.navigator().clipboard().write_text(&address);
    spawn_local(async move {
        form.said.set(Some(Said::Done(match JsFuture::from(copied).await {
            Ok(_) => "The link is in the clipboard.".into(),
            Err(_) => format!("The browser copies nothing for this page. Copy this: {address}"),
        })));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::study::place::Place;

    #[test]
    fn a_study_without_its_rows_says_what_to_add() {
        let mut next = Draft::new().unwrap();
        assert_eq!(came(&next, &[]), "The study was taken in.");
        next.take_kind("table");
        Place::Workload.set(&mut next.study, "data", Some("rows.csv".into()));
        assert!(came(&next, &[]).ends_with("under Workload: rows.csv."));
        let binary = came(&next, &["rows.csv".to_owned()]);
        assert!(
            binary.contains("without rows.csv") && !binary.contains("Workload"),
            "{binary}"
        );
        next.restore([("rows.csv".to_owned(), "question\na\n".into())].into());
        assert_eq!(came(&next, &[]), "The study was taken in.");
    }
}
