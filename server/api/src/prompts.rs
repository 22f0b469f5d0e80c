//! Documents about the prompts that a project keeps for programs, and how they are asked for.

use std::collections::BTreeMap;

use capo_core::reading::evidence::Evidence;
use serde::{Deserialize, Serialize};

use crate::client::requests;
use crate::paths::{before_of, of_project, part};
use crate::{Client, ClientError, Moment, Title, Transport};

/// Bytes of a prompt's text, at most.
pub const MOST_PROMPT: usize = 256 << 10;

/// The label that a person moves, and no token.
pub const PRODUCTION: &str = "production";

/// A prompt as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PromptShown {
    /// Its name in addresses.
    pub name: String,
    /// The version that each label is on.
    pub labels: BTreeMap<String, u64>,
    /// Its newest version; versions count from 1.
    pub newest: u64,
    /// When a version was added or a label moved.
    pub touched_at: Moment,
}

/// A version of a prompt. Nothing of it ever changes but its labels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VersionShown {
    /// Name of the prompt.
    pub name: String,
    /// Counts up from 1.
    pub version: u64,
    /// The prompt itself.
    pub text: String,
    /// SHA-256 of the text, in hexadecimal digits: the id of the candidate in a run.
    pub sha256: String,
    /// SHA-256 of text and evidence together. Who moves a label here has seen both, and says so by it.
    pub fingerprint: String,
    /// The labels that are on it.
    pub labels: Vec<String>,
    /// What somebody says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Id of the run that it comes from, which may be deleted by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What that run says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub evidence: Option<Evidence>,
    /// Name of the member who added it, with that of the token if a program did it.
    pub created_by: String,
    /// When it was added.
    pub created_at: Moment,
}

/// A page of a prompt's versions, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VersionPage {
    /// The versions, at most 20.
    pub versions: Vec<VersionShown>,
    /// Where there are more: what `before` is for the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
}

/// A version that is to be added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "a version has either `text`, or `run` and, unless the run's best prompt is meant, `candidate`; \
                 beside it there may be a `note`, one line of 1 to 200 characters"
)]
pub enum NewVersion {
    /// A text that no run speaks for.
    Text {
        /// The prompt itself.
        text: String,
        /// What to say of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<Title>,
    },
    /// A prompt of a run of the project that has ended.
    Run {
        /// Id of the run.
        run: String,
        /// SHA-256 of the prompt, or its first 6 or more digits; the run's best prompt unless stated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        candidate: Option<String>,
        /// What to say of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<Title>,
    },
}

/// A label and the version that it is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LabelShown {
    /// Its name.
    pub label: String,
    /// The version.
    pub version: u64,
    /// Who moved it there.
    pub moved_by: String,
    /// When it was moved there.
    pub moved_at: Moment,
}

/// Where a label is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LabelMove {
    /// The version.
    pub version: u64,
    /// The `fingerprint` of that version: that whoever moves the label has its text and its numbers before them.
    pub seen: String,
    /// The version that the label is on, 0 where there is no such label yet: if it is on another by now, it is not moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<u64>,
}

/// A move of a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LabelMoved {
    /// Counts up from 1.
    pub number: u64,
    /// When it was moved.
    pub at: Moment,
    /// Name of the member, with that of the token if a program did it.
    pub actor: String,
    /// The version before; left out where there was no such label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The version from then on; left out where the label was taken away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
}

/// Which version is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhichVersion<'a> {
    /// The newest one.
    Newest,
    /// The one that a label is on.
    Label(&'a str),
    /// The one of a number.
    Number(u64),
}

requests! {
    /// The prompts of a project, by name.
    prompts(project: &str): Get of_project(project, "/prompts") => Vec<PromptShown>;
    /// The versions of a prompt, the newest first, or those before one of a number.
    prompt_versions(project: &str, name: &str, before: Option<u64>):
        Get before_of(&of_prompt(project, name, "/versions"), before) => VersionPage;
    /// Adds a version, and with the first one the prompt.
    add_prompt_version(project: &str, name: &str, new: &NewVersion):
        Post of_prompt(project, name, "/versions"), new => VersionShown;
    /// Deletes a prompt with its versions and labels.
    delete_prompt(project: &str, name: &str): Delete of_prompt(project, name, "") => ();
    /// Moves a label to a version, the first time too, and back.
    move_label(project: &str, name: &str, label: &str, to: &LabelMove):
        Put of_label(project, name, label, ""), to => LabelShown;
    /// The moves of a label, the latest first, or those before one of a number.
    label_history(project: &str, name: &str, label: &str, before: Option<u64>):
        Get before_of(&of_label(project, name, label, "/history"), before) => Vec<LabelMoved>;
}

impl<T: Transport> Client<T> {
    /// A version of a prompt.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn prompt(
        &self,
        project: &str,
        name: &str,
        which: WhichVersion<'_>,
    ) -> Result<VersionShown, ClientError> {
        let query = match which {
            WhichVersion::Newest => String::new(),
            WhichVersion::Label(label) => format!("?label={}", part(label)),
            WhichVersion::Number(number) => format!("?version={number}"),
        };
        self.get(&of_prompt(project, name, &query)).await
    }

    /// The version that a label is on; `None` where there is no such label.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn label(
        &self,
        project: &str,
        name: &str,
        label: &str,
    ) -> Result<Option<LabelShown>, ClientError> {
        match self.get(&of_label(project, name, label, "")).await {
            Err(error) if error.status() == Some(404) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Takes a label away from the version that it is thought to be on.
    ///
    /// # Errors
    /// See [`ClientError`]; where it is on another version by now, it is refused.
    pub async fn remove_label(
        &self,
        project: &str,
        name: &str,
        label: &str,
        was: u64,
    ) -> Result<(), ClientError> {
        let path = of_label(project, name, label, "");
        self.delete(&format!("{path}?was={was}")).await
    }
}

fn of_prompt(project: &str, name: &str, rest: &str) -> String {
    of_project(project, &format!("/prompts/{}{rest}", part(name)))
}

fn of_label(project: &str, name: &str, label: &str, rest: &str) -> String {
    of_prompt(project, name, &format!("/labels/{}{rest}", part(label)))
}
