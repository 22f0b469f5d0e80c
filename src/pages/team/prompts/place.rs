//! State that the parts of a prompt's page share.

use capo_api::{PromptShown, Role};
use leptos::prelude::*;

/// A prompt of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub project: String,
    pub prompt: String,
}

impl Place {
    pub(super) fn address(&self) -> String {
        format!("/team/projects/{}/prompts/{}", self.project, self.prompt)
    }

    /// The address of one of its versions.
    pub(super) fn version(&self, number: u64) -> String {
        format!("{}?version={number}", self.address())
    }
}

/// Where a label is to be moved, once somebody has seen what speaks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Move {
    pub label: String,
    pub to: u64,
}

/// A prompt as it is shown.
#[derive(Clone, Copy)]
pub(super) struct Page {
    place: StoredValue<Place>,
    /// The prompt as it was last, once it is known.
    pub prompt: Memo<Option<PromptShown>>,
    /// What whoever looks at it may do.
    pub role: Memo<Option<Role>>,
    /// The move that is asked about.
    pub asked: RwSignal<Option<Move>>,
}

impl Page {
    pub(super) fn new(place: Place, known: Memo<Option<(Role, PromptShown)>>) -> Self {
        let prompt =
            move |_: Option<&_>| known.with(|known| known.as_ref().map(|(_, prompt)| prompt.clone()));
        let role = move |_: Option<&_>| known.with(|known| known.as_ref().map(|(role, _)| *role));
        Self {
            place: StoredValue::new(place),
            prompt: Memo::new(prompt),
            role: Memo::new(role),
            asked: RwSignal::new(None),
        }
    }

    pub(super) fn place(self) -> Place {
        self.place.get_value()
    }

    /// Whether one may add versions and move labels; a reactive caller is told of changes.
    pub(super) fn may_write(self) -> bool {
        self.role.get().is_some_and(|role| role >= Role::Editor)
    }

    /// The version that a label is on.
    pub(super) fn on(self, label: &str) -> Option<u64> {
        self.prompt
            .with(|prompt| prompt.as_ref()?.labels.get(label).copied())
    }

    /// The newest version.
    pub(super) fn newest(self) -> Option<u64> {
        self.prompt.with(|prompt| Some(prompt.as_ref()?.newest))
    }

    /// The labels there are.
    pub(super) fn labels(self) -> Vec<String> {
        self.prompt.with(|prompt| {
            let labels = prompt.iter().flat_map(|prompt| prompt.labels.keys());
            labels.cloned().collect()
        })
    }
}

/// The labels of a version.
pub(super) fn tags(labels: Vec<String>) -> impl IntoView {
    let tag = |label| view! { <span class="tag plain">{label}</span> " " };
    labels.into_iter().map(tag).collect_view()
}
