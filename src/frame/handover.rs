//! A study on its way to New study.

use leptos::prelude::*;

/// The text of a study file, TOML or JSON, that was dropped on another page; whoever takes it in
/// puts `None` in its place.
#[derive(Clone, Copy, Default)]
pub struct Handover(pub RwSignal<Option<String>>);
