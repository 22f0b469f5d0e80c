//! Sentences with prompts and symbols in them.

use leptos::prelude::*;
use leptos_router::components::A;
use leptos_router::hooks::use_params_map;

use super::Term;
use crate::format;
use crate::run::sentence::{Piece, Sentence};

/// A sentence; prompts in it lead to their page.
#[component]
pub fn Words(
    /// What it says.
    sentence: Sentence,
    /// Whether it is one of many, whose symbols would be too many stops for the keyboard: they are explained on hover alone.
    #[prop(optional)]
    among_many: bool,
) -> impl IntoView {
    let params = use_params_map();
    let run = params.with_untracked(|params| params.get("run").unwrap_or_default());
    let piece = move |piece: Piece| match piece {
        Piece::Text(text) => text.into_any(),
        Piece::Symbol(word) if among_many => {
            view! { <span class="math" title=word.meaning()>{word.text()}</span> }.into_any()
        }
        Piece::Symbol(word) => view! { <Term word/> }.into_any(),
        Piece::Prompt(candidate) => {
            let address = format!("/run/{run}/candidate/{candidate}");
            let whole = candidate.to_string();
            view! {
                <A href=address attr:class="id" attr:title=whole>
                    {format::id(&candidate)}
                </A>
            }
            .into_any()
        }
    };
    sentence.into_pieces().into_iter().map(piece).collect_view()
}
