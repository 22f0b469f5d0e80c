//! Standard error: lines for people, or JSON, above what moves there.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::MultiProgress;

use crate::progress::log;
use crate::terminal::{harmless, writable};

/// The moving lines on standard error, where that is a terminal. What is drawn elsewhere there tears them.
pub(crate) static SCREEN: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Whether everything said on standard error is JSON.
static JSON: AtomicBool = AtomicBool::new(false);

/// From now on everything that is said on standard error is JSON, one object a line.
pub(crate) fn log_as_json() {
    JSON.store(true, Ordering::Relaxed);
}

/// Writes a warning or an error to standard error; as JSON where that is asked for.
pub(crate) fn warn(text: &str) {
    let text = text.trim_end();
    if is_json() {
        let level = if text.starts_with("error: ") {
            "ERROR"
        } else {
            "WARN"
        };
        say_exactly(&log::message(level, text));
    } else {
        say(text);
    }
}

/// Whether everything said on standard error is JSON.
pub(crate) fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// Writes a line for people to standard error, above what moves there; see [`harmless`]. As JSON where that is asked for.
pub(crate) fn say(text: &str) {
    if is_json() {
        return say_exactly(&log::message("INFO", text));
    }
    let text = harmless(text);
    if io::stderr().is_terminal() {
        say_exactly(&writable(&text));
    } else {
        say_exactly(&text);
    }
}

/// Writes a line to standard error as it is. Where that cannot be written there is nobody to tell.
pub(crate) fn say_exactly(text: &str) {
    let _ = if SCREEN.is_hidden() {
        writeln!(io::stderr().lock(), "{text}")
    } else {
        SCREEN.println(text)
    };
}
