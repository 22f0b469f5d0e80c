//! Documents of the team server's HTTP API, and a client that any transport serves. What runs are
//! told and say of themselves has core's types.
//!
//! Moments are text in RFC 3339, in UTC.

mod accounts;
mod certificates;
mod client;
mod data_sets;
mod keys;
mod names;
mod oidc;
mod paths;
mod problem;
mod projects;
mod prompts;
mod role;
mod runs;
mod trainings;

pub use accounts::{
    About, Credentials, FirstAdmin, InvitationMade, InvitationShown, MemberChange, MemberShown, Myself,
    NewInvitation, NewMember, NewToken, PasswordChange, SessionShown, TokenMade, TokenShown,
};
pub use certificates::{CertificatePage, CertificateShown, VersionNamed};
pub use client::{Answer, Body, Client, ClientError, Method, Transport};
pub use data_sets::{DataKind, DataSetDetail, DataSetShown, NewDataSet, data_set_path};
pub use keys::{
    AllowedModel, DailyLimits, KeyChange, KeySettings, KeyShown, LimitScope, LimitsShown, NewKey, ProjectKey,
    TokenPrice, UsageShown,
};
pub use names::{DataSetName, LabelName, MemberName, NameError, ProjectName, PromptName, Title};
pub use oidc::{IdentityShown, OIDC_RETURN, OidcRedirect, OidcRequest, OidcResponse};
pub use problem::Problem;
pub use projects::{
    EntryShown, Membership, NewProject, NewRole, ProjectChange, ProjectShown, export_path, import_path,
};
pub use prompts::{
    LabelMove, LabelMoved, LabelShown, MOST_PROMPT, NewVersion, PRODUCTION, PromptShown, VersionPage,
    VersionShown, WhichVersion,
};
pub use role::{Role, Scope, UnknownWord};
pub use runs::{
    FileShown, MOST_FILE, MOST_JOURNAL, NewBranch, NewRun, RunChange, RunDetail, RunOrder, RunOrigin,
    RunPage, RunShown, RunStage, RunWish, event, events_path, file_path, journal_path,
};
pub use trainings::{
    CheckpointShown, NewTraining, REWRITER, TRAINING_EVENT, TrainingDetail, TrainingKind, TrainingList,
    TrainingOrder, TrainingShown, TrainingStart, TrainingState, checkpoint_path, rewriter_model,
    training_events_path,
};

/// A moment in RFC 3339, in UTC.
pub type Moment = String;
