//! The words of the field: what each means, where it stands and all together.

use leptos::html::Dialog;
use leptos::prelude::*;

use super::{close_dialog, open_dialog};

/// Each word with its meaning.
const WORDS: [(&str, &str); 11] = [
    (
        "J",
        "The score that prompts are ranked by: the objective less each constraint’s multiplier times its residual. It moves \
         with the multipliers, so values of different rounds do not compare.",
    ),
    (
        "λ",
        "A constraint’s multiplier: how much being over its threshold costs in J. It rises after a round over the threshold \
         and falls after one inside, down to 0.",
    ),
    (
        "threshold",
        "The most that a cost’s mean over the examples may be.",
    ),
    (
        "slack",
        "How far inside its threshold a cost is. Where it is over, how far over.",
    ),
    (
        "residual",
        "A cost less its threshold, divided by the constraint’s scale: above 0 it is over, at 0 or below inside.",
    ),
    (
        "feasible",
        "With every cost at or under its threshold, on the examples that are named beside it.",
    ),
    (
        "rollout",
        "One example done once with one prompt, from the first message to the measurements.",
    ),
    (
        "round",
        "Some prompts are rewritten, the children measured, the multipliers moved, and the best kept.",
    ),
    (
        "pool",
        "The prompts that are kept after a round: the next parents are drawn from them.",
    ),
    ("seed prompt", "The prompt that the search starts from."),
    (
        "held-out examples",
        "Examples that the search never sees. The best prompt is measured on them once, at the end.",
    ),
];

fn meaning(word: &str) -> Option<&'static str> {
    let known = WORDS.iter().find(|(known, _)| *known == word);
    known.map(|(_, meaning)| *meaning)
}

/// The word whose meaning is asked for, or an empty one for all.
#[derive(Clone, Copy, Default)]
pub struct Glossary(RwSignal<Option<&'static str>>);

impl Glossary {
    /// Shows all words.
    pub fn show(self) {
        self.0.set(Some(""));
    }
}

/// A word of the field where it stands: its meaning on hover, and in the glossary when it is pressed.
#[component]
pub fn Term(
    /// Which.
    word: &'static str,
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
    let is_symbol = word.chars().count() == 1;
    view! {
        <button type="button" class="link term" class:math=is_symbol title=meaning(word) on:click=open>
            {shown.unwrap_or(word)}
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
        let mut words = WORDS.to_vec();
        words.sort_by_key(|(word, _)| asked.get() != Some(*word));
        let row = |(word, meaning): (&'static str, &'static str)| {
            view! {
                <div>
                    <dt>{word}</dt>
                    <dd>{meaning}</dd>
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_that_stands_on_a_page_has_a_meaning() {
        for word in ["J", "λ", "slack", "residual", "rollout", "pool"] {
            assert!(
                meaning(word).is_some_and(|meaning| meaning.ends_with('.')),
                "{word}"
            );
        }
        assert_eq!(meaning("oracle"), None);
    }
}
