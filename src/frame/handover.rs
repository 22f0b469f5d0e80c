//! Handover of a study from another page to New study.

use leptos::prelude::*;
use web_sys::File;

use crate::live::Begun;

/// A study that comes from another page.
#[derive(Debug, Clone, PartialEq)]
pub enum Handed {
    /// The text of a study file, TOML or JSON.
    Text(String),
    /// What a run was started with.
    Run(Box<Begun>),
}

/// The study; whoever takes it in puts `None` in its place.
#[derive(Clone, Copy, Default)]
pub struct Handover(pub RwSignal<Option<Handed>>);

/// A file that New study takes in as if it had been dropped there.
#[derive(Clone, Copy)]
pub struct HandedFile(pub StoredValue<Option<File>, LocalStorage>);

impl Default for HandedFile {
    fn default() -> Self {
        Self(StoredValue::new_local(None))
    }
}
