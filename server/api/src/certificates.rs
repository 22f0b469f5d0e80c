//! Documents about what the runs of a project tested.

use capo_core::certificate::Certificate;
use serde::{Deserialize, Serialize};

use crate::Moment;
use crate::client::requests;
use crate::paths::{before_of, of_project};

/// A certificate as it is listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CertificateShown {
    /// Id of the run that tested the prompt, or of the journal of `capo certify` that was pushed.
    pub run: String,
    /// Its name for people.
    pub run_name: String,
    /// When it last changed, which its end is.
    pub at: Moment,
    /// How the prompt's text begins.
    pub prompt: String,
    /// The versions of the project's prompts that have this very text.
    pub versions: Vec<VersionNamed>,
    /// Verdict, confidence, examples and each constraint's p-value and bounds, as in the journal.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub certificate: Certificate,
}

/// A version of a prompt, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VersionNamed {
    /// Name of the prompt.
    pub prompt: String,
    /// Number of the version.
    pub version: u64,
}

/// A page of a list of certificates, those of runs that changed last first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CertificatePage {
    /// The certificates of at most 100 runs.
    pub certificates: Vec<CertificateShown>,
    /// Where there are more: what `before` is for the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

requests! {
    /// What the runs of a project tested, or what comes after a page of that.
    certificates(project: &str, before: Option<&str>):
        Get before_of(&of_project(project, "/certificates"), before) => CertificatePage;
}
