//! Small choices of a person, in the browser's local storage. A report keeps none.

use super::is_report;

/// The choice that is kept under a name.
pub fn kept_choice(name: &str) -> Option<String> {
    local_storage()?.get_item(name).ok().flatten()
}

/// Keeps a choice, or that there is none. A browser that refuses forgets it with the tab.
pub fn keep_choice(name: &str, choice: Option<&str>) {
    if let Some(storage) = local_storage() {
        let _ = match choice {
            Some(choice) => storage.set_item(name, choice),
            None => storage.remove_item(name),
        };
    }
}

/// The storage itself, where there is one.
pub fn local_storage() -> Option<web_sys::Storage> {
    if is_report() {
        return None;
    }
    web_sys::window()?.local_storage().ok().flatten()
}
