//! What the team server and its clients say to each other: documents, and a client that any transport serves.
//!
//! Moments are text in RFC 3339, in UTC.

mod accounts;
mod client;
mod keys;
mod names;
mod problem;
mod projects;
mod role;

pub use accounts::{
    About, Credentials, FirstAdmin, InvitationMade, InvitationShown, MemberChange, MemberShown, Myself,
    NewInvitation, NewMember, NewToken, PasswordChange, SessionShown, TokenMade, TokenShown,
};
pub use client::{Answer, Client, ClientError, Method, Transport};
pub use keys::{
    AllowedModel, DailyLimits, KeyChange, KeySettings, KeyShown, LimitScope, LimitsShown, NewKey, ProjectKey,
    TokenPrice, UsageShown,
};
pub use names::{MemberName, NameError, ProjectName, Title};
pub use problem::Problem;
pub use projects::{EntryShown, Membership, NewProject, NewRole, ProjectChange, ProjectShown};
pub use role::{Role, Scope, UnknownWord};

/// A moment in RFC 3339, in UTC.
pub type Moment = String;
