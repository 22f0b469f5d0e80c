//! Documents about members and how they sign in.

use serde::{Deserialize, Serialize};

use crate::{MemberName, Moment, Role, Scope, Title};

/// What a page learns before anybody signs in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct About {
    /// Version of the program.
    pub version: String,
    /// Whether the server has members; else the link that it prints at its start makes the first one.
    pub is_set_up: bool,
    /// What people call the OpenID Connect issuer at which they can sign in, too.
    #[serde(default)]
    pub oidc: Option<String>,
    /// Whether people have accounts here, with passwords, that are made and ended here; else an operator says elsewhere who is
    /// a member, whose token then stands in place of a password, and here are projects' runs and shared keys alone.
    #[serde(default = "yes")]
    pub has_accounts: bool,
    /// Who is signed in.
    pub member: Option<Myself>,
}

fn yes() -> bool {
    true
}

/// Who is signed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Myself {
    /// Their name.
    pub name: String,
    /// Whether they administer the server.
    pub is_admin: bool,
    /// Whether they have a password.
    pub has_password: bool,
}

/// The first administrator.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FirstAdmin {
    /// What stands behind `#` in the link that the server prints at its start.
    pub secret: String,
    /// What they will sign in with.
    pub name: MemberName,
    /// At least 10 characters, and none that others guess.
    pub password: String,
}

/// Name and password.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// What one signs in with.
    pub name: MemberName,
    /// As it was chosen.
    pub password: String,
}

/// A signed-in browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SessionShown {
    /// 32 hexadecimal digits; not the secret.
    pub id: String,
    /// Whether it is the one that asks.
    pub is_current: bool,
    /// When it began.
    pub created_at: Moment,
    /// When it was last used, to the minute.
    pub seen_at: Moment,
    /// Until when, unless it is used before.
    pub expires_at: Moment,
    /// Where it was signed in from.
    pub address: String,
    /// What the browser calls itself.
    pub browser: String,
}

/// A token as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenShown {
    /// 32 hexadecimal digits; not the secret.
    pub id: String,
    /// What its owner calls it.
    pub name: String,
    /// What it may be used for.
    pub scope: Scope,
    /// When it was made.
    pub created_at: Moment,
    /// When it was last used, to the minute.
    pub seen_at: Option<Moment>,
    /// Until when it may be used.
    pub expires_at: Moment,
}

/// A new token.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenMade {
    /// What is listed of it.
    #[serde(flatten)]
    pub token: TokenShown,
    /// What a program sends as `Authorization: Bearer SECRET`. It is shown this once.
    pub secret: String,
}

/// What a token is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What its owner calls it.
    pub name: Title,
    /// What it may be used for.
    pub scope: Scope,
    /// How long: 1 to 366 days.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 366))]
    pub days: u32,
}

/// A member as administrators see them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MemberShown {
    /// What they sign in with.
    pub name: String,
    /// Whether they administer the server.
    pub is_admin: bool,
    /// Since when they are here.
    pub created_at: Moment,
    /// Since when they may not sign in.
    pub disabled_at: Option<Moment>,
}

/// What is to change about a member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MemberChange {
    /// Whether they administer the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_admin: Option<bool>,
    /// Whether they may not sign in. Who may not loses all sessions and tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_disabled: Option<bool>,
}

/// The old and the new password.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PasswordChange {
    /// The present one.
    pub old: String,
    /// At least 10 characters, and none that others guess.
    pub new: String,
}

/// An invitation as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct InvitationShown {
    /// 32 hexadecimal digits; not the secret.
    pub id: String,
    /// The role in the project, of an invitation to one.
    pub role: Option<Role>,
    /// Whether who follows it administers the server.
    pub is_admin: bool,
    /// The member who invited.
    pub invited_by: String,
    /// When the invitation was made.
    pub created_at: Moment,
    /// Until when it can be followed.
    pub expires_at: Moment,
}

/// A new invitation.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct InvitationMade {
    /// What is listed of it.
    #[serde(flatten)]
    pub invitation: InvitationShown,
    /// The path of the page on which it is followed, with the secret behind `#`. It is shown this once.
    pub link: String,
}

/// What somebody is invited to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewInvitation {
    /// To administer the server.
    #[serde(default)]
    pub is_admin: bool,
}

/// A new member, who follows an invitation.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewMember {
    /// What stands behind `#` in the link.
    pub secret: String,
    /// What they will sign in with.
    pub name: MemberName,
    /// At least 10 characters, and none that others guess.
    pub password: String,
}
