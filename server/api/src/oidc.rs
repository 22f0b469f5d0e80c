//! Documents about signing in at an OpenID Connect issuer.

use serde::{Deserialize, Serialize};

use crate::Moment;

/// The path of the page to which an issuer sends people back: what is registered there, behind the server's own address.
pub const OIDC_RETURN: &str = "/sign-in/return";

/// What somebody goes to the issuer for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "to", rename_all = "kebab-case", deny_unknown_fields)]
pub enum OidcRequest {
    /// Sign in.
    SignIn,
    /// Give the account that one is signed in to one more way to do so.
    Link,
    /// Follow an invitation.
    Join {
        /// What stands behind `#` in its link.
        secret: String,
    },
}

/// Where the browser goes now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OidcRedirect {
    /// The issuer's page, with what is asked of it.
    pub url: String,
}

/// What the browser comes back with.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct OidcResponse {
    /// For which the server learns at the issuer who it is.
    pub code: String,
    /// By which it knows that this browser asked.
    pub state: String,
}

/// An identity by which one signs in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IdentityShown {
    /// 32 hexadecimal digits.
    pub id: String,
    /// The issuer's address.
    pub issuer: String,
    /// What the issuer calls them: an e-mail address, a name, or what it knows them by.
    pub label: String,
    /// Since when it is linked.
    pub created_at: Moment,
    /// When somebody last signed in by it.
    pub seen_at: Option<Moment>,
}
