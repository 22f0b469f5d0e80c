//! Annotations of the answers of two prompts: a note on an example, a thumb on an answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use capo_core::ids::CandidateId;
use leptos::leptos_dom::helpers::debounce;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::{Opened, Side};
use crate::components::{every, unique_id};
use crate::live::Run;
use crate::storage::{Note, Notes, RunRecord, Storage, StorageError, change_note, is_report};

/// The most characters of a note.
const LONGEST: u32 = 2_000;

/// How long nothing is typed before a note is kept.
const PAUSE: Duration = Duration::from_millis(400);

/// How often it is looked what other tabs keep.
const EVERY: Duration = Duration::from_millis(1500);

/// The notes of both sides' runs, as this browser keeps them. Copies are the same.
#[derive(Clone, Copy)]
pub(super) struct Noted {
    sides: Memo<[Side; 2]>,
    /// By the run's id.
    kept: RwSignal<BTreeMap<String, Notes>>,
    /// What became of the last change.
    said: RwSignal<Option<Result<(), String>>>,
}

impl Noted {
    /// Those that are kept, by other tabs too, as long as the caller lives; a report has none.
    pub(super) fn of(sides: Memo<[Side; 2]>) -> Option<Self> {
        if is_report() {
            return None;
        }
        let noted = Self {
            sides,
            kept: RwSignal::default(),
            said: RwSignal::default(),
        };
        Effect::new(move |_| sides.get().into_iter().for_each(|side| noted.read(side.run.id())));
        let look = move || {
            if !document().hidden() {
                let sides = sides.get_untracked().into_iter();
                sides.for_each(|side| noted.read(side.run.id()));
            }
        };
        every(|| Some(EVERY), look);
        Some(noted)
    }

    fn read(self, run: String) {
        spawn_local(async move {
            let read = async { Storage::open().await?.run(&run).await };
            // What cannot be read now is looked for again.
            if let Ok(Some(record)) = read.await {
                self.take(run, record.notes);
            }
        });
    }

    fn take(self, run: String, notes: Notes) {
        let same = |kept: &BTreeMap<String, Notes>| kept.get(&run) == Some(&notes);
        // The page may be left by then.
        if self.kept.try_with_untracked(same) == Some(false) {
            self.kept.update(|kept| _ = kept.insert(run, notes));
        }
    }

    fn note<T>(self, run: Run, example: &str, read: impl FnOnce(&Note) -> T) -> Option<T> {
        self.kept.with(|kept| kept.get(&run.id())?.get(example).map(read))
    }

    /// Changes a note where it is kept, then here; `done` follows unless it is refused.
    fn change(
        self,
        run: Run,
        example: String,
        change: impl FnOnce(&mut Note) + 'static,
        done: impl FnOnce() + 'static,
    ) {
        spawn_local(async move {
            let id = run.id();
            let change = |record: &mut RunRecord| change_note(&mut record.notes, &example, change);
            let changed = async { Storage::open().await?.change_run(&id, change).await };
            let said = match changed.await {
                Ok(Some(record)) => {
                    self.take(record.id, record.notes);
                    done();
                    Ok(())
                }
                Ok(None) => Err("this browser does not keep the run".to_owned()),
                Err(StorageError(why)) => Err(why),
            };
            let _ = self.said.try_set(Some(said));
        });
    }

    /// The examples with a note, or with a thumb on the answer of one of the prompts.
    pub(super) fn examples(self, prompts: [CandidateId; 2]) -> BTreeSet<String> {
        let both = self.sides.get().into_iter().zip(prompts);
        self.kept.with(|kept| {
            let of = |(side, prompt): (Side, CandidateId)| {
                let notes = kept.get(&side.run.id()).into_iter().flatten();
                let said =
                    notes.filter(move |(_, note)| !note.text.is_empty() || note.thumbs.contains_key(&prompt));
                said.map(|(example, _)| example.clone())
            };
            both.flat_map(of).collect()
        })
    }

    /// All of it as columns of a table: their names, and texts by example.
    pub(super) fn columns(self, prompts: [CandidateId; 2]) -> Vec<(String, BTreeMap<String, String>)> {
        let column = |run: Run, text: &dyn Fn(&Note) -> String| {
            let texts = |(example, note): (&String, &Note)| (example.clone(), text(note));
            self.kept
                .with_untracked(|kept| kept.get(&run.id()).into_iter().flatten().map(texts).collect())
        };
        let sides = self.sides.get_untracked();
        let notes = noting("note", &sides).into_iter();
        let notes = notes.map(|(run, name)| (name, column(run, &|note| note.text.clone())));
        let thumbs = sides.iter().zip(prompts).map(|(Side { run, name }, prompt)| {
            let word = |note: &Note| note.thumbs.get(&prompt).map_or("", |up| word(*up)).to_owned();
            (format!("thumb {name}"), column(*run, &word))
        });
        notes.chain(thumbs).collect()
    }

    /// What gives a thumb to the answer of one side.
    pub(super) fn thumbs(self, opened: &Opened, side: usize) -> impl IntoView + use<> {
        let Side { run, name } = opened.sides[side].clone();
        let (prompt, example) = (opened.prompts[side], StoredValue::new(opened.example.clone()));
        let given = Memo::new(move |_| {
            let thumb = |note: &Note| note.thumbs.get(&prompt).copied();
            self.note(run, &example.get_value(), thumb).flatten()
        });
        let button = move |up: bool| {
            let give = move |_| {
                let takes_back = given.get_untracked() == Some(up);
                let change = move |note: &mut Note| {
                    note.thumbs.insert(prompt, up);
                    note.thumbs.retain(|of, _| *of != prompt || !takes_back);
                };
                self.change(run, example.get_value(), change, || ());
            };
            let pressed = move || (given.get() == Some(up)).to_string();
            view! { <button type="button" aria-pressed=pressed on:click=give>"Thumb " {word(up)}</button> }
        };
        view! {
            <span class="seg" role="group" aria-label=format!("Your thumb on the answer with {name}")>
                {[true, false].map(button)}
            </span>
        }
    }

    /// Where notes on the open example are typed, and what is kept where.
    pub(super) fn fields(self, opened: &Opened) -> impl IntoView + use<> {
        self.said.set(None);
        let is_on_server = opened.sides.iter().any(|side| side.run.is_on_server());
        let fields = noting("Your note", &opened.sides).into_iter();
        let fields = fields.map(|(run, label)| self.field(run, opened.example.clone(), label));
        let is_kept = move || (self.said.get() == Some(Ok(()))).then_some("Kept.");
        let refused = move || {
            let why = self.said.get()?.err()?;
            Some(view! { <p class="note is-i" role="alert">"Not kept: " {why}</p> })
        };
        view! {
            {fields.collect_view()}
            <p class="note">
                {if is_on_server {
                    "Notes and thumbs on a run of the team are kept in this browser alone, as long as you are signed in. "
                } else {
                    "Notes and thumbs are kept with the run in this browser, not in its journal. "
                }}
                <span role="status">{is_kept}</span>
            </p>
            {refused}
        }
    }

    fn field(self, run: Run, example: String, label: String) -> impl IntoView + use<> {
        let (id, example) = (unique_id("note"), StoredValue::new(example));
        // What is not kept yet.
        let typed = RwSignal::new(None::<String>);
        let kept = move || {
            let text = self.note(run, &example.get_value(), |note| note.text.clone());
            text.unwrap_or_default()
        };
        let keep = move || {
            if let Some(text) = typed.try_get_untracked().flatten() {
                let written = text.clone();
                // More may be typed by then, or the example closed.
                let done = move || _ = typed.try_update(|typed| _ = typed.take_if(|typed| *typed == written));
                self.change(run, example.get_value(), |note| note.text = text, done);
            }
        };
        let mut later = debounce(PAUSE, move |()| keep());
        on_cleanup(keep);
        let input = move |event| {
            typed.set(Some(event_target_value(&event)));
            self.said.set(None);
            later(());
        };
        view! {
            <div class="field">
                <label for=id.clone()>{label}</label>
                <textarea
                    id=id
                    rows="3"
                    maxlength=LONGEST
                    prop:value=move || typed.get().unwrap_or_else(kept)
                    on:input=input
                    on:change=move |_| keep()
                ></textarea>
            </div>
        }
    }
}

fn word(up: bool) -> &'static str {
    if up { "up" } else { "down" }
}

/// The runs that have notes of their own, and what these are called: those on one run are on both its prompts.
fn noting(called: &str, sides: &[Side; 2]) -> Vec<(Run, String)> {
    let [first, second] = sides;
    if first.run == second.run {
        return vec![(second.run, called.to_owned())];
    }
    let each = sides.iter();
    each.map(|Side { run, name }| (*run, format!("{called} {name}")))
        .collect()
}
