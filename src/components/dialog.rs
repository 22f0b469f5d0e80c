//! Dialogs, opened and closed.

use leptos::html::Dialog;
use leptos::prelude::*;

/// Opens a dialog of the page, if that was not left by then.
pub fn open_dialog(node: NodeRef<Dialog>) {
    if let Some(dialog) = node.try_get_untracked().flatten() {
        // Fails only when it is open already.
        let _ = dialog.show_modal();
    }
}

/// Closes it.
pub fn close_dialog(node: NodeRef<Dialog>) {
    if let Some(dialog) = node.try_get_untracked().flatten() {
        dialog.close();
    }
}
