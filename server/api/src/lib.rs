//! What the team server and its clients say to each other: documents, and a client that any transport serves. What runs are
//! told and say of themselves has core's types.
//!
//! Moments are text in RFC 3339, in UTC.

mod accounts;
mod client;
mod keys;
mod names;
mod problem;
mod projects;
mod prompts;
mod role;
mod runs;

pub use accounts::{
    About, Credentials, FirstAdmin, InvitationMade, InvitationShown, MemberChange, MemberShown, Myself,
    NewInvitation, NewMember, NewToken, PasswordChange, SessionShown, TokenMade, TokenShown,
};
pub use client::{Answer, Body, Client, ClientError, Method, Transport};
pub use keys::{
    AllowedModel, DailyLimits, KeyChange, KeySettings, KeyShown, LimitScope, LimitsShown, NewKey, ProjectKey,
    TokenPrice, UsageShown,
};
pub use names::{LabelName, MemberName, NameError, ProjectName, PromptName, Title};
pub use problem::Problem;
pub use projects::{EntryShown, Membership, NewProject, NewRole, ProjectChange, ProjectShown};
pub use prompts::{
    LabelMove, LabelMoved, LabelShown, MOST_PROMPT, NewVersion, PRODUCTION, PromptShown, VersionPage,
    VersionShown, WhichVersion,
};
pub use role::{Role, Scope, UnknownWord};
pub use runs::{
    FileShown, MOST_FILE, MOST_JOURNAL, NewBranch, NewRun, RunChange, RunDetail, RunOrder, RunOrigin,
    RunPage, RunShown, RunStage, RunWish, event, events_path, journal_path,
};

/// A moment in RFC 3339, in UTC.
pub type Moment = String;
