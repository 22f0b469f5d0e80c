//! Rows of somebody's own: taken in by drop, choice or paste, shown, and their columns put to use.

use capo_core::study::Study;
use capo_workloads::data::{self, ASKED, EXPECTED};
use leptos::ev;
use leptos::prelude::*;
use serde_json::{Value, json};
use web_sys::{ClipboardEvent, File};

use super::columns::Use;
use super::draft::Draft;
use super::field::{TextField, Wrong};
use super::file::take_file;
use super::form::{Form, Said};
use super::labels::label;
use super::measured::DUPLICATE;
use super::place::Place;
use super::preview::{self, Preview};
use super::problem::Problem;
use super::team_data::TeamData;
use crate::components::{Choose, removing};
use crate::format::count;

/// Takes in a file with tab-separated columns, as spreadsheets write them: it becomes one with commas,
/// which every door reads.
pub(super) fn take_tabs(form: Form, name: &str, text: &str) {
    let name = format!("{}.csv", name.strip_suffix(".tsv").unwrap_or(name));
    match preview::without_tabs(text) {
        Ok(text) => take(form, &name, text),
        Err(message) => refuse(form, format!("{name}: {message}")),
    }
}

/// Says why rows were not taken in: where they go, if that is in sight.
fn refuse(form: Form, message: String) {
    if form.draft.with_untracked(Draft::takes_rows) {
        form.said.set(Some(Said::RowsUnread(message)));
    } else {
        form.said.set(Some(Said::Failed(message)));
    }
}

/// Takes rows in: as the file that the study misses, or in place of those it has.
pub(super) fn take(form: Form, name: &str, text: String) {
    let preview = match Preview::of(name, &text) {
        Ok(preview) => preview,
        Err(message) => return refuse(form, format!("{name}: {message}")),
    };
    form.renew(|draft| add(draft, name, text, &preview));
    form.said.set(Some(Said::Done(format!(
        "{name} was taken in, {} rows.",
        count(preview.count as u64)
    ))));
}

fn add(draft: &mut Draft, name: &str, text: String, preview: &Preview) {
    let named = draft.named_paths();
    let missed = named.iter().find(|path| {
        let last = path.rsplit('/').next();
        last == Some(name) && !draft.files.contains_key(*path)
    });
    if let Some(path) = missed.cloned() {
        draft.files.insert(path, text.into());
        return;
    }
    if !draft.takes_rows() {
        draft.take_kind("table");
    }
    for path in draft.named_paths() {
        draft.files.remove(&path);
    }
    draft.files.insert(name.to_owned(), text.into());
    draft.name_after(name);
    let study = &mut draft.study;
    for key in ["format", "id", "exclude", "optimize", "evaluate_data"] {
        Place::Workload.set(study, key, None);
    }
    Place::Workload.set(study, "data", Some(name.into()));
    Place::Workload.set(study, "evaluate", Some(json!(preview.count / 3)));
    draft.forget_wrong("workload.");
    // An agent that measures itself is sent the whole row; of its columns only the name is anybody's.
    let names_only = !has_template(&draft.study);
    let study = &mut draft.study;
    let guesses = [
        (Use::Message, ASKED),
        (Use::Expected, EXPECTED),
        (Use::Name, &["id", "name", "key"][..]),
    ];
    for (used, names) in guesses {
        if names_only && used != Use::Name {
            continue;
        }
        let guess = data::guess(&preview.columns, names);
        if let Some(column) = guess.filter(|column| used == Use::Name || data::template(column).is_some()) {
            used.put(column, study);
        }
    }
}

/// Whether what is asked about a row is written from its columns.
fn has_template(study: &Study) -> bool {
    capo_workloads::of(&study.workload).is_some_and(|kind| kind.has("user"))
}

/// Examples to leave out, by what names them.
#[component]
pub(super) fn Exclude(
    #[prop(default = "One a line: their ids, or without an id column the numbers of their lines.")]
    explanation: &'static str,
) -> impl IntoView {
    let form = expect_context::<Form>();
    let asking = form.asking;
    let twins = Memo::new(move |_| {
        let of_twins = |problem: &Problem| problem.key == DUPLICATE;
        form.measured
            .with(|measured| measured.problem.as_ref().is_some_and(of_twins))
    });
    let busy = Memo::new(move |_| asking.duplicates.with(Option::is_some));
    let find = move |_| {
        if !busy.get_untracked() {
            let (workload, files, seed) = form.draft.with_untracked(|draft| {
                (
                    draft.study.workload.clone(),
                    draft.files.clone(),
                    draft.study.study.seed,
                )
            });
            asking.find_duplicates(workload, files, seed);
        }
    };
    Effect::new(move |_| {
        let Some(search) = asking.duplicates.get() else {
            return;
        };
        let Some(found) = search.found else { return };
        asking.duplicates.set(None);
        let same = form.draft.with_untracked(|draft| {
            draft.study.workload == search.workload
                && draft.files == search.files
                && draft.study.study.seed == search.seed
        });
        // What names a row in one table may name another in the next.
        if !same {
            return form.said.set(Some(Said::Failed(
                "The rows or their settings were changed while duplicates were looked for. Press “Leave all \
                 duplicates out” once more."
                    .to_owned(),
            )));
        }
        form.renew(|draft| {
            let left_out = excluded(&draft.study);
            exclude(&mut draft.study, &format!("{left_out}\n{}", found.join("\n")));
        });
        let words = crate::format::counted(found.len(), "example");
        form.said.set(Some(Said::Done(format!(
            "{} left out, as the others ask the same.",
            crate::format::capitalized(&words)
        ))));
    });
    view! {
        <Show when=move || twins.get()>
            <div class="row">
                <button type="button" on:click=find>
                    {move || if busy.get() { "Looking through the rows…" } else { "Leave all duplicates out" }}
                </button>
            </div>
        </Show>
        <TextField
            key="workload.exclude"
            label=label("workload.exclude")
            explanation
            lines=2
            code=true
            read=excluded
            write=|study, text| exclude(study, &text)
        />
    }
}

fn excluded(study: &Study) -> String {
    let ids = study.workload.get("exclude").and_then(Value::as_array);
    let written = |id: &Value| id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    let ids: Vec<String> = ids.into_iter().flatten().map(written).collect();
    ids.join("\n")
}

fn exclude(study: &mut Study, text: &str) {
    let ids: Vec<&str> = text.lines().map(str::trim).filter(|id| !id.is_empty()).collect();
    Place::Workload.set(study, "exclude", (!ids.is_empty()).then(|| json!(ids)));
}

/// The rows, or a place to drop them.
#[component]
pub(super) fn Rows() -> impl IntoView {
    let form = expect_context::<Form>();
    let preview = Preview::of_rows(form);
    let rows = move || match preview.get() {
        None => view! { <Drop/> }.into_any(),
        Some(Ok((path, preview))) => view! { <Taken path preview/> }.into_any(),
        Some(Err(message)) => view! {
            {unread(message)}
            <Drop/>
        }
        .into_any(),
    };
    let refused = move || match form.said.get() {
        Some(Said::RowsUnread(message)) => Some(unread(message)),
        _ => None,
    };
    view! {
        {refused}
        {rows}
    }
}

fn unread(message: String) -> impl IntoView {
    view! {
        <div class="msg" role="alert">
            <b>"These rows do not read."</b>
            <span>{message}</span>
        </div>
    }
}

#[component]
fn Drop() -> impl IntoView {
    let form = expect_context::<Form>();
    let chosen = Callback::new(move |files: Vec<File>| {
        for file in files {
            take_file(form, file, None);
        }
    });
    let take_text = move |text: &str| match preview::notation(text) {
        "tsv" => take_tabs(form, "rows.tsv", text),
        notation => take(form, &format!("rows.{notation}"), text.to_owned()),
    };
    let paste = move |event: ClipboardEvent| {
        let text = event
            .clipboard_data()
            .and_then(|data| data.get_data("text/plain").ok())
            .unwrap_or_default();
        if !text.trim().is_empty() {
            event.prevent_default();
            take_text(&text);
        }
    };
    // Rows that were typed count once the field is left.
    let typed = move |event| {
        let text = event_target_value(&event);
        if !text.trim().is_empty() {
            take_text(&text);
        }
    };
    view! {
        <div
            class="drop"
            id="f-workload-data"
            tabindex="-1"
        >
            <p>"Drop a CSV or TSV file with a header line, or JSON Lines with one object a line."</p>
            <div class="row">
                <Choose
                    words="Choose a file"
                    label="Rows"
                    accept=".csv,.tsv,.jsonl,.ndjson"
                    chosen
                />
                <TeamData/>
            </div>
            <textarea
                class="code"
                rows="2"
                aria-label="Paste rows here"
                placeholder="or paste rows here"
                on:paste=paste
                on:change=typed
            ></textarea>
            <p class="note">"The rows stay in this browser; models see one of them at a time."</p>
            <div class="field">
                <Wrong key="workload.data"/>
                <Wrong key="workload.evaluate_data"/>
            </div>
        </div>
    }
}

/// The first rows, and what each column is used as.
#[component]
fn Taken(path: String, preview: Preview) -> impl IntoView {
    let form = expect_context::<Form>();
    let mapped = form.memo(has_template);
    let size = format!(
        "{} rows, {} characters",
        count(preview.count as u64),
        count(preview.characters as u64)
    );
    let remove = {
        let path = path.clone();
        move |event: ev::MouseEvent| {
            let remove = |draft: &mut Draft| {
                draft.files.remove(&path);
            };
            removing(&event, || form.renew(remove));
        }
    };
    let columns = preview.columns.clone();
    let heads = columns
        .iter()
        .cloned()
        .map(|column| view! { <Head column mapped/> })
        .collect_view();
    let rows = preview
        .rows
        .into_iter()
        .enumerate()
        .map(|(index, cells)| {
            let cells = cells
                .into_iter()
                .zip(columns.clone())
                .map(|(cell, column)| {
                    let missing = cell.is_empty();
                    let ignored = form.memo(move |study| Use::of(&column, study) == Use::Unused);
                    view! {
                        <td class:missing=missing class:ignored=move || mapped.get() && ignored.get()>
                            {cell}
                        </td>
                    }
                })
                .collect_view();
            view! {
                <tr>
                    <th scope="row">{index + 1}</th>
                    {cells}
                </tr>
            }
        })
        .collect_view();
    view! {
        <div class="file">
            <span>
                <b>{path}</b>
                " "
                <span class="quiet">{size}</span>
            </span>
            <button type="button" class="link" on:click=remove>
                "Take another"
            </button>
        </div>
        <div class="scroll" tabindex="0" role="group" aria-label="First rows, scroll sideways">
            <table class="preview">
                <thead>
                    <tr>
                        <th scope="col">
                            <span class="sr">"Row"</span>
                        </th>
                        {heads}
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

#[component]
fn Head(column: String, mapped: Memo<bool>) -> impl IntoView {
    let form = expect_context::<Form>();
    let name = column.clone();
    let used = form.memo(move |study| Use::of(&name, study));
    let spelled = data::template(&column).is_some();
    let label = format!("Use of column {column}");
    let choice = {
        let column = column.clone();
        move || {
            mapped.get().then(|| {
                let column = column.clone();
                let change = move |event| {
                    let chosen = event_target_value(&event);
                    let chosen = Use::ALL.into_iter().find(|used| used.name() == chosen);
                    if let Some(chosen) = chosen {
                        form.renew(|draft| chosen.put(&column, &mut draft.study));
                    }
                };
                let options = Use::ALL
                    .into_iter()
                    .filter(|used| spelled || matches!(used, Use::Unused | Use::Name))
                    .map(|one| {
                        view! {
                            <option value=one.name() prop:selected=move || used.get() == one>
                                {one.name()}
                            </option>
                        }
                    })
                    .collect_view();
                view! {
                    <select aria-label=label.clone() on:change=change>
                        {options}
                    </select>
                }
            })
        }
    };
    let note = (!spelled).then(|| {
        view! {
            <span class="note">"To use it, name it with letters, digits and _ only."</span>
        }
    });
    view! {
        <th scope="col" class:ignored=move || mapped.get() && used.get() == Use::Unused>
            <span class="name">{column}</span>
            {choice}
            {note}
        </th>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::study::measured::Measured;

    fn with(name: &str, text: &str) -> Draft {
        let mut draft = Draft::new().unwrap();
        add(
            &mut draft,
            name,
            text.to_owned(),
            &Preview::of(name, text).unwrap(),
        );
        draft
    }

    #[test]
    fn rows_become_a_workload_that_can_run() {
        let draft = with("rows.csv", "question,answer\na,1\nb,2\nc,3\n");
        assert_eq!(Use::of("question", &draft.study), Use::Message);
        assert_eq!(Use::of("answer", &draft.study), Use::Expected);
        let measured = Measured::of(&draft.study.workload, &draft.files, 0);
        assert_eq!(measured.problem, None);
        assert_eq!((measured.optimize, measured.evaluate), (2, 1));
        draft.checked().unwrap();
        let mut chosen = Draft::new().unwrap();
        chosen.take_kind("table");
        let text = "question,answer\na,1\nb,2\nc,3\n";
        add(
            &mut chosen,
            "rows.csv",
            text.into(),
            &Preview::of("rows.csv", text).unwrap(),
        );
        assert_eq!(chosen.study, draft.study);
    }

    #[test]
    fn an_agent_of_one_s_own_is_told_of_no_columns() {
        let mut draft = Draft::new().unwrap();
        draft.take_kind("external");
        Place::Workload.set(
            &mut draft.study,
            "endpoint",
            Some("http://127.0.0.1:9/run".into()),
        );
        let text = "id,question,answer\nx,a,1\ny,b,2\nz,c,3\n";
        add(
            &mut draft,
            "rows.csv",
            text.into(),
            &Preview::of("rows.csv", text).unwrap(),
        );
        assert_eq!(Place::Workload.text(&draft.study, "id"), "id");
        let measured = Measured::of(&draft.study.workload, &draft.files, 0);
        assert_eq!(measured.problem, None);
    }

    #[test]
    fn examples_are_left_out_by_id() {
        let mut draft = with("rows.csv", "id,question,answer\nx,a,1\ny,b,2\nz,c,3\nw,d,4\n");
        exclude(&mut draft.study, "x\n\n y ");
        assert_eq!(excluded(&draft.study), "x\ny");
        let measured = Measured::of(&draft.study.workload, &draft.files, 0);
        assert_eq!(
            (measured.problem, measured.optimize, measured.evaluate),
            (None, 1, 1)
        );
        exclude(&mut draft.study, "");
        assert!(!draft.study.workload.contains_key("exclude"));
    }

    #[test]
    fn a_column_is_used_as_one_thing() {
        let mut draft = with("rows.csv", "question,answer\na,1\nb,2\nc,3\n");
        Use::Name.put("answer", &mut draft.study);
        assert_eq!(Use::of("answer", &draft.study), Use::Name);
        Use::Unused.put("answer", &mut draft.study);
        assert_eq!(Use::of("answer", &draft.study), Use::Unused);
        assert!(!draft.study.workload.contains_key("id"));
    }

    #[test]
    fn a_file_that_the_study_misses_takes_its_place() {
        let mut draft = with("rows.csv", "question,answer\na,1\nb,2\nc,3\n");
        Place::Workload.set(&mut draft.study, "evaluate_data", Some("data/more.csv".into()));
        let text = "question,answer\nd,4\n";
        add(
            &mut draft,
            "more.csv",
            text.into(),
            &Preview::of("more.csv", text).unwrap(),
        );
        assert_eq!(draft.files.len(), 2);
        assert!(draft.files.contains_key("data/more.csv"));
    }
}
