//! The words of the field: what each means, where it stands and all together.

use leptos::ev;
use leptos::html::{Button, Dialog};
use leptos::prelude::*;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::Element;

use super::{close_dialog, open_dialog, unique_id};
use crate::run::word::Word;

/// The id of the meaning that is shown beside a word.
const MEANING: &str = "meaning";

/// What is explained: in the dialog, and beside a word.
#[derive(Clone, Copy, Default)]
pub struct Glossary {
    asked: RwSignal<Option<Asked>>,
    beside: RwSignal<Option<Beside>>,
}

/// What stands before all other words in the dialog.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Word(Word),
    /// What the page shows.
    Page(&'static str),
}

/// A word whose meaning is shown beside it.
#[derive(Clone)]
struct Beside {
    word: Word,
    /// The id of its element.
    term: String,
    /// Where the meaning begins, in pixels of the whole page.
    x: f64,
    y: f64,
    /// Whether it stands above the word.
    above: bool,
}

impl Glossary {
    /// Says what a page shows, and then what all words mean.
    pub fn explain_page(self, shows: &'static str) {
        self.asked.set(Some(Asked::Page(shows)));
    }

    /// Shows a word's meaning on the side of its element where there is more room.
    fn explain(self, word: Word, term: &Element) {
        let (place, window) = (term.get_bounding_client_rect(), window());
        let height = document()
            .document_element()
            .map_or(0, |page| page.client_height());
        let above = place.top() + place.bottom() > f64::from(height);
        let edge = if above { place.top() } else { place.bottom() };
        let scrolled = |by: Result<f64, JsValue>| by.unwrap_or_default();
        self.beside.set(Some(Beside {
            word,
            term: term.id(),
            x: place.left() + scrolled(window.scroll_x()),
            y: edge + scrolled(window.scroll_y()),
            above,
        }));
    }

    /// The meaning stays while the pointer goes between it and its word, and while the word has the focus.
    fn pointer_left(self, event: &ev::PointerEvent) {
        let to = event
            .related_target()
            .and_then(|to| to.dyn_into::<Element>().ok());
        let stays = self.beside.with_untracked(|beside| {
            let term = &beside.as_ref()?.term;
            let under = to.and_then(|to| to.closest(&format!("#{MEANING}, #{term}")).ok()?);
            let focused = || {
                document()
                    .query_selector(&format!("#{term}:focus-visible"))
                    .ok()?
            };
            under.or_else(focused)
        });
        if stays.is_none() {
            self.hide();
        }
    }

    fn hide(self) {
        self.beside.set(None);
    }
}

/// A word of the field where it stands: its meaning on hover and focus, and in the glossary when it is pressed.
#[component]
pub fn Term(
    word: Word,
    /// As it is written here, if it is written otherwise.
    #[prop(optional)]
    shown: Option<&'static str>,
) -> impl IntoView {
    let glossary = use_context::<Glossary>().unwrap_or_default();
    let id = StoredValue::new(unique_id("term"));
    let node = NodeRef::<Button>::new();
    let is_explained = move || {
        let is_this = |beside: &Beside| id.with_value(|id| beside.term == *id);
        glossary
            .beside
            .with(|beside| beside.as_ref().is_some_and(is_this))
    };
    let explain = move || {
        if let Some(term) = node.get_untracked() {
            glossary.explain(word, &term);
        }
    };
    let focused = move |_| {
        // After a press of the pointer the dialog is there.
        let by_key = node.get_untracked().map(|term| term.matches(":focus-visible"));
        if let Some(Ok(true)) = by_key {
            explain();
        }
    };
    let open = move |_| {
        glossary.hide();
        glossary.asked.set(Some(Asked::Word(word)));
    };
    on_cleanup(move || {
        if untrack(is_explained) {
            glossary.hide();
        }
    });
    view! {
        <button
            type="button"
            class="link term"
            class:math=word.is_symbol()
            id=id.get_value()
            node_ref=node
            aria-describedby=move || is_explained().then_some(MEANING)
            on:pointerenter=move |_| explain()
            on:pointerleave=move |event| glossary.pointer_left(&event)
            on:focus=focused
            on:blur=move |_| glossary.hide()
            on:click=open
        >
            {shown.unwrap_or(word.text())}
        </button>
    }
}

/// The meaning beside a word, until that is left or Escape is pressed.
#[component]
fn Meaning(glossary: Glossary) -> impl IntoView {
    let listener = window_event_listener(ev::keydown, move |event| {
        if event.key() == "Escape" && glossary.beside.with_untracked(Option::is_some) {
            glossary.hide();
            // Nothing else is closed by the same key.
            event.prevent_default();
        }
    });
    on_cleanup(move || listener.remove());
    let meaning = move |beside: Beside| {
        view! {
            <p
                id=MEANING
                class="meaning"
                class:above=beside.above
                role="tooltip"
                style:--x=format!("{}px", beside.x)
                style:--y=format!("{}px", beside.y)
                on:pointerleave=move |event| glossary.pointer_left(&event)
            >
                {beside.word.meaning()}
            </p>
        }
    };
    move || glossary.beside.get().map(meaning)
}

/// All words with their meanings, after what the page shows or the word that is asked for; and the meaning beside a word.
#[component]
pub fn GlossaryDialog() -> impl IntoView {
    let glossary: Glossary = expect_context();
    let asked = glossary.asked;
    let node = NodeRef::<Dialog>::new();
    Effect::new(move |_| {
        if asked.with(Option::is_some) && node.get().is_some() {
            open_dialog(node);
        }
    });
    let words = move || {
        let mut words = Word::ALL;
        words.sort_by_key(|word| asked.get() != Some(Asked::Word(*word)));
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
    let all = "What the words mean";
    let title = move || match asked.get() {
        Some(Asked::Page(_)) => "This page",
        _ => all,
    };
    let page = move || match asked.get() {
        Some(Asked::Page(shows)) => Some(view! { <p>{shows}</p> <h2>{all}</h2> }),
        _ => None,
    };
    view! {
        <Meaning glossary/>
        <dialog node_ref=node aria-labelledby="glossary-title" on:close=move |_| asked.set(None)>
            <div class="sheet">
                <h2 id="glossary-title" tabindex="-1" autofocus>
                    {title}
                </h2>
                {page}
                <dl class="feedback">{words}</dl>
                <footer>
                    <button type="button" on:click=move |_| close_dialog(node)>
                        "Close"
                    </button>
                </footer>
            </div>
        </dialog>
    }
}
