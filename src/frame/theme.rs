//! Light, dark, or what the system says.

use leptos::prelude::*;

use crate::storage::{keep_choice, kept_choice};

/// Where the choice is kept; `public/theme.js` reads it before the first paint.
const STORED: &str = "capo.theme";

/// A person's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// As the system.
    System,
    /// Always light.
    Light,
    /// Always dark.
    Dark,
}

impl Choice {
    /// As it is written on screens and in storage.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::System => Self::Light,
            Self::Light => Self::Dark,
            Self::Dark => Self::System,
        }
    }
}

/// The theme of the page.
#[derive(Clone, Copy)]
pub struct Theme(RwSignal<Choice>);

impl Default for Theme {
    fn default() -> Self {
        Self(RwSignal::new(match kept_choice(STORED).as_deref() {
            Some("light") => Choice::Light,
            Some("dark") => Choice::Dark,
            _ => Choice::System,
        }))
    }
}

impl Theme {
    /// The choice.
    pub fn get(self) -> Choice {
        self.0.get()
    }

    /// Takes the next choice, shows and keeps it.
    pub fn turn(self) {
        let next = self.0.get_untracked().next();
        self.0.set(next);
        if let Some(root) = document().document_element() {
            // Neither fails for an attribute of this name.
            let _ = match next {
                Choice::System => root.remove_attribute("data-theme"),
                chosen => root.set_attribute("data-theme", chosen.name()),
            };
        }
        keep_choice(STORED, (next != Choice::System).then(|| next.name()));
    }
}
