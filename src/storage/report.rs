//! The runs of a report: this page in one file, with their journals in it. What unpacks them there is
//! `xtask/src/page/report.js`.

use capo_core::journal::{LineId, parse_line, slim};
use capo_core::run_state::RunState;
use wasm_bindgen::JsCast as _;
use web_sys::{Element, NodeList};

use super::{RunRecord, StorageError};

/// The elements with the journals.
const JOURNALS: &str = "script[data-journal]";

/// A run whose journal lies in the document.
pub(super) struct Reported {
    pub(super) record: RunRecord,
    lines: Vec<String>,
}

impl Reported {
    /// All lines, without traces where these are not wanted.
    pub(super) fn text(&self, is_slim: bool) -> String {
        if !is_slim {
            return self.lines.join("\n");
        }
        let lines: Vec<_> = self.lines.iter().map(|line| slim(line)).collect();
        lines.join("\n")
    }

    /// One line, if there is one of this number.
    pub(super) fn line(&self, line: LineId, is_slim: bool) -> Option<String> {
        let line = self.lines.get(line as usize)?;
        Some(if is_slim {
            slim(line).into_owned()
        } else {
            line.clone()
        })
    }
}

/// Whether this page is a report, which shows the runs in it, reads nothing else and keeps nothing.
pub fn is_report() -> bool {
    !runs_of_report().is_empty()
}

/// The ids of the runs of this report; none where it is no report.
pub fn runs_of_report() -> Vec<String> {
    let runs = journals().map_or(0, |journals| journals.length());
    (1..=runs).map(|place| place.to_string()).collect()
}

/// None in a worker.
fn journals() -> Option<NodeList> {
    web_sys::window()?.document()?.query_selector_all(JOURNALS).ok()
}

/// The runs of this report.
///
/// # Errors
/// When a journal does not read.
pub(super) fn read() -> Result<Vec<Reported>, StorageError> {
    let Some(found) = journals() else {
        return Ok(Vec::new());
    };
    let mut runs = Vec::new();
    for (place, id) in (0..).zip(runs_of_report()) {
        let Some(journal) = found.get(place) else { continue };
        let name = journal
            .dyn_ref::<Element>()
            .and_then(|element| element.get_attribute("data-journal"));
        let name = name.unwrap_or_default();
        let text = journal.text_content().unwrap_or_default();
        let read = reported(&id, &name, &text);
        runs.push(read.map_err(|why| StorageError(format!("{name}: {why}")))?);
    }
    Ok(runs)
}

fn reported(id: &str, name: &str, text: &str) -> Result<Reported, String> {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut state = RunState::default();
    for (place, line) in lines.iter().enumerate() {
        let event = parse_line(&slim(line), place + 1).map_err(|error| error.to_string())?;
        state.apply(&event, place as LineId)?;
    }
    Ok(Reported {
        record: RunRecord::of(id, &state, format!("from {name}"))?,
        lines,
    })
}
