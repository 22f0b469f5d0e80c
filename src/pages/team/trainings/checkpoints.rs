//! The checkpoints of a training.

use capo_api::{CheckpointShown, TrainingShown, checkpoint_path};
use leptos::prelude::*;

use super::words;
use crate::charts::unit::fixed;
use crate::pages::team::list::{List, Listing};
use crate::team::Server;

/// Lists them, each to be taken away; asked for anew whenever the training has moved on.
#[component]
pub(super) fn Checkpoints(
    project: String,
    id: String,
    #[prop(into)] training: Signal<Option<TrainingShown>>,
) -> impl IntoView {
    let (of, asked) = (project.clone(), id.clone());
    let key = |checkpoint: &CheckpointShown| format!("{checkpoint:?}");
    // What it rests on is not shown: it says that something may have changed.
    let moved = Memo::new(move |_| {
        training.with(|training| training.as_ref().map(|now| (now.state, now.lines / 50)))
    });
    let listing = Listing::new(key, async move |server: Server| {
        server.checkpoints(&of, &asked).await
    });
    Effect::new(move |_| {
        // Read, not only tracked: a memo that nobody reads knows of no change.
        moved.get();
        listing.load();
    });
    let cells = move |checkpoint: CheckpointShown| {
        let measured = match (checkpoint.loss, checkpoint.reward) {
            (Some(loss), _) => format!("{} nats a token", fixed(loss, 4)),
            (None, Some(reward)) => format!("reward {}", fixed(reward, 3)),
            (None, None) => "–".to_owned(),
        };
        let path = checkpoint_path(&project, &id, checkpoint.step);
        let counts = checkpoint
            .counts
            .then(|| view! { " " <span class="tag plain">"counts"</span> });
        let step = checkpoint.step;
        let what = if checkpoint.is_adapter {
            "adapter"
        } else {
            "whole model"
        };
        vec![
            view! { {step} {counts} }.into_any(),
            measured.into_any(),
            what.into_any(),
            words::size(checkpoint.bytes).into_any(),
            view! {
                <a href=path rel="external" download="">
                    "Download"
                    <span class="sr">" step " {step}</span>
                </a>
            }
            .into_any(),
        ]
    };
    let columns = &["Step", "Measured", "Holds", "Size", ""];
    let empty = "None yet. One is kept at each evaluation, or after each round of a search.";
    view! { <List id="checkpoints" title="Checkpoints" listing columns empty cells/> }
}
