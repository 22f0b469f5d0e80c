//! A project as one file: a tar archive of documents, journals and data files, in the order in which they are needed. Trainings
//! stay where they are: their folders lie on one machine, and name models there.
//!
//! | member | |
//! |---|---|
//! | `project.json` | [`ArchivedProject`] |
//! | `files/SHA256` | a data file that studies name, or a data set's |
//! | `data/ID.json` | [`capo_api::NewDataSet`], a data set's name and file |
//! | `runs/ID.json`, `runs/ID.jsonl` | [`ArchivedRun`], and its journal where it has one; branches after what they branch off |
//! | `prompts/NAME/NUMBER.json` | [`ArchivedVersion`], from 1 |
//! | `prompts/NAME/history.jsonl` | [`ArchivedMove`], label by label in order, at most [`MOST_LINES`], of each label the latest; not in format 1 |
//! | `prompts/NAME/labels.json` | the versions that labels are on |
//! | `audit.jsonl` | [`capo_api::EntryShown`], the earliest first, at most the latest [`MOST_LINES`]; not in format 1 |
//! | `end` | nothing: the archive is whole |

use std::collections::BTreeMap;

use capo_api::{LabelMoved, Membership, Moment, ProjectName, RunOrigin, Title};
use capo_core::reading::evidence::Evidence;
use serde::{Deserialize, Serialize};

/// The version of the format; what is of an earlier one is read, too.
pub(crate) const FORMAT: u32 = 2;

/// Lines of the audit log, or moves of a prompt's labels.
pub(crate) const MOST_LINES: usize = 50_000;

/// The first member, and the last one.
pub(crate) const PROJECT: &str = "project.json";
pub(crate) const END: &str = "end";

/// The project itself.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ArchivedProject {
    /// [`FORMAT`].
    pub(crate) format: u32,
    /// Its name in addresses.
    pub(crate) name: ProjectName,
    /// Its name for people.
    pub(crate) title: Title,
    /// When it was exported.
    pub(crate) exported_at: Moment,
    /// Who had which role in it, for people to read: nobody has one by this.
    pub(crate) members: Vec<Membership>,
}

/// A run without its journal.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ArchivedRun {
    pub(crate) id: String,
    pub(crate) name: Title,
    pub(crate) started_by: String,
    pub(crate) origin: RunOrigin,
    pub(crate) created_at: Moment,
    /// As TOML.
    pub(crate) study: String,
    /// SHA-256 of the data files that it names, by path.
    pub(crate) files: BTreeMap<String, String>,
    /// Whether its journal follows.
    pub(crate) has_journal: bool,
}

/// A version of a prompt.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ArchivedVersion {
    pub(crate) text: String,
    pub(crate) note: Option<Title>,
    pub(crate) run: Option<String>,
    pub(crate) evidence: Option<Evidence>,
    pub(crate) created_by: String,
    pub(crate) created_at: Moment,
}

/// A move of a label.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ArchivedMove {
    pub(crate) label: String,
    #[serde(flatten)]
    pub(crate) moved: LabelMoved,
}
