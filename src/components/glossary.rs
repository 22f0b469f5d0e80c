//! The words of the field: what each means, where it stands and all together.

use leptos::html::Dialog;
use leptos::prelude::*;

use super::{close_dialog, open_dialog};
use crate::run::word::Word;

/// The word whose meaning is asked for: it is shown before the others.
#[derive(Clone, Copy, Default)]
pub struct Glossary(RwSignal<Option<Word>>);

impl Glossary {
    /// Shows all words.
    pub fn show(self) {
        self.0.set(Word::ALL.first().copied());
    }
}

/// A word of the field where it stands: its meaning on hover, and in the glossary when it is pressed.
#[component]
pub fn Term(
    /// Which.
    word: Word,
    /// As it is written here, if it is written otherwise.
    #[prop(optional)]
    shown: Option<&'static str>,
) -> impl IntoView {
    let glossary = use_context::<Glossary>();
    let open = move |_| {
        if let Some(Glossary(asked)) = glossary {
            asked.set(Some(word));
        }
    };
    view! {
        <button type="button" class="link term" class:math=word.is_symbol() title=word.meaning() on:click=open>
            {shown.unwrap_or(word.text())}
        </button>
    }
}

/// All words with their meanings, the one that is asked for first.
#[component]
pub fn GlossaryDialog() -> impl IntoView {
    let Glossary(asked) = expect_context();
    let node = NodeRef::<Dialog>::new();
    Effect::new(move |_| {
        if asked.with(Option::is_some) && node.get().is_some() {
            open_dialog(node);
        }
    });
    let words = move || {
        let mut words = Word::ALL;
        words.sort_by_key(|word| asked.get() != Some(*word));
        let row = |word: Word| {
            view! {
                <div>
                    <dt>{word.text()}</dt>
                    <dd>{word.meaning()}</dd>
                </div>
            }
        };
        words.into_iter().map(row).collect_view()
    };
    view! {
        <dialog node_ref=node aria-labelledby="glossary-title" on:close=move |_| asked.set(None)>
            <div class="sheet">
                <h2 id="glossary-title">"What the words mean"</h2>
                <dl class="feedback">{words}</dl>
                <footer>
                    <button type="button" autofocus on:click=move |_| close_dialog(node)>
                        "Close"
                    </button>
                </footer>
            </div>
        </dialog>
    }
}
