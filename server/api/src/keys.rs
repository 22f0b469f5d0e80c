//! Documents about providers' keys that projects share.

use serde::{Deserialize, Serialize};

use crate::{Moment, ProjectName};

/// What a model's tokens cost, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = TokenPrice))]
#[serde(deny_unknown_fields)]
pub struct TokenPrice {
    /// Of tokens read.
    pub input: f64,
    /// Of tokens written.
    pub output: f64,
    /// Read from the provider's cache; as `input` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
    /// Written into it; as `input` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

/// Models that may be asked with a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AllowedModel {
    /// The name of a model, or with `*` at its end the beginning of names.
    pub name: String,
    /// What tokens cost, in place of the price table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<TokenPrice>,
    /// The most tokens of an answer when the request states no maximum and a limit in dollars applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_max_output: Option<u64>,
}

/// What an administrator says of a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct KeySettings {
    /// Whose key it is, as `provider` in a study.
    pub provider: String,
    /// Where the API is, as `base_url` in a study; the provider's own place if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Whether that host may be in a private network and be called without encryption.
    #[serde(default)]
    pub private_host: bool,
    /// Names of the projects that may use it.
    pub projects: Vec<String>,
    /// The models that may be asked; any other is refused.
    pub models: Vec<AllowedModel>,
}

/// A key as it is listed. The key itself is never shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyShown {
    /// Its name in `/api/proxy/NAME/`.
    pub name: String,
    /// What is said of it.
    #[serde(flatten)]
    pub settings: KeySettings,
    /// What it may cost a day.
    pub limits: DailyLimits,
    /// When it was added.
    pub created_at: Moment,
    /// Whether the server can open it: not when its master key is missing or another one.
    pub is_usable: bool,
}

/// A new key.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// Its name in `/api/proxy/NAME/`.
    pub name: ProjectName,
    /// What is said of it.
    pub settings: KeySettings,
    /// The provider's key. It is encrypted and never shown again.
    pub secret: String,
}

/// What is to change about a key.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct KeyChange {
    /// What is said of it from now on.
    pub settings: KeySettings,
    /// Another key of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// The most that may be consumed in a day (UTC); no limit where nothing is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DailyLimits {
    /// US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// Requests let through, whatever came of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
}

/// What limits are set for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum LimitScope {
    /// One person.
    Member,
    /// All members of a project together.
    Project,
    /// All that use a key together.
    Key,
}

/// What a member, a project or a key may consume in a day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LimitsShown {
    /// Member, project or key.
    pub scope: LimitScope,
    /// Its name; its id when it is gone.
    pub name: String,
    /// The most that it may consume.
    pub limits: DailyLimits,
}

/// What somebody or something consumed on a day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UsageShown {
    /// Member, project or key.
    pub scope: LimitScope,
    /// Its name; its id when it is gone.
    pub name: String,
    /// The day in UTC, such as `2026-11-26`.
    pub day: String,
    /// Paid for, in US dollars.
    pub usd: f64,
    /// Set aside for requests that are under way, in US dollars.
    pub reserved_usd: f64,
    /// Requests let through.
    pub requests: u64,
}

/// A key that a project may use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProjectKey {
    /// Its name.
    pub name: String,
    /// Whose key it is.
    pub provider: String,
    /// The models that may be asked, with `*` at the end of a beginning.
    pub models: Vec<String>,
    /// Where models are asked with it, as `base_url` in a study.
    pub base_url: String,
    /// Where the provider's API is, as `base_url` in a study that runs on the server; the provider's own place if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_base_url: Option<String>,
}
