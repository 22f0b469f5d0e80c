//! Providers' keys that projects share, their limits, and what was used of them.

use axum::extract::State;
use axum::http::StatusCode;
use capo_api::{
    AllowedModel, DailyLimits, KeyChange, KeySettings, KeyShown, LimitScope, LimitsShown, NewKey, ProjectKey,
    Role, TokenPrice, UsageShown,
};
use capo_gateway::{KeyRecord, Limits, ModelRule, NanoUsd, Scope, SharedKey};
use capo_models::ProviderName;
use capo_models::prices::Price;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Server;
use super::caller::Caller;
use super::extract::{Json, Path, Query, day, moment};
use super::problem::Refusal;
use crate::seal::MasterKey;
use crate::store::{StoreError, StoredKey, day_of};

/// Bytes of a provider's key, at most.
const MOST_KEY: usize = 4096;

fn price(price: TokenPrice) -> Price {
    Price {
        input: price.input,
        output: price.output,
        cached_input: price.cached_input,
        cache_write: price.cache_write,
    }
}

fn shown_price(price: &Price) -> TokenPrice {
    TokenPrice {
        input: price.input,
        output: price.output,
        cached_input: price.cached_input,
        cache_write: price.cache_write,
    }
}

/// The record of what an administrator says.
async fn checked(server: &Server, name: &str, settings: KeySettings) -> Result<SharedKey, Refusal> {
    let provider = ProviderName::find(&settings.provider)
        .ok_or_else(|| Refusal::invalid(format!("There is no provider {:?}.", settings.provider)))?;
    let mut projects = Vec::new();
    for project in &settings.projects {
        let id = server.store().project_id(project).await;
        projects.push(id.map_err(|error| match error {
            StoreError::Missing(_) => Refusal::invalid(format!("There is no project {project:?}.")),
            error => error.into(),
        })?);
    }
    let models = settings.models.into_iter().map(|model| ModelRule {
        name: model.name,
        price: model.price.map(price),
        default_max_output: model.default_max_output,
    });
    let record = KeyRecord {
        id: name.to_owned(),
        provider,
        base_url: settings.base_url,
        private_host: settings.private_host,
        projects,
        models: models.collect(),
    };
    SharedKey::try_from(record).map_err(|error| Refusal::invalid(format!("The key's {error}.")))
}

/// A provider's key, which goes into a header.
fn checked_secret(secret: &str) -> Result<&str, Refusal> {
    let secret = secret.trim();
    let is_plain =
        !secret.is_empty() && secret.len() <= MOST_KEY && secret.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain {
        Ok(secret)
    } else {
        Err(Refusal::invalid(
            "A provider's key is 1 to 4,096 printable ASCII characters without spaces.",
        ))
    }
}

fn checked_limits(limits: DailyLimits) -> Result<Limits, Refusal> {
    let usd_per_day = limits.usd.map(|usd| {
        let amount = NanoUsd::from_usd(usd).filter(|_| usd.is_finite());
        amount.ok_or_else(|| Refusal::invalid("A limit in dollars is 0 or more."))
    });
    Ok(Limits {
        usd_per_day: usd_per_day.transpose()?,
        requests_per_day: limits.requests,
    })
}

fn shown_limits(limits: Limits) -> DailyLimits {
    DailyLimits {
        usd: limits.usd_per_day.map(NanoUsd::usd),
        requests: limits.requests_per_day,
    }
}

/// All shared keys.
#[utoipa::path(
    get, path = "/api/keys", operation_id = "keys", security(("session" = []), ("token" = [])),
    responses((status = 200, body = Vec<KeyShown>))
)]
pub(super) async fn list(
    State(server): State<Server>,
    caller: Caller,
) -> Result<Json<Vec<KeyShown>>, Refusal> {
    caller.as_admin()?;
    let names = server.store().names().await?;
    let mut keys = Vec::new();
    for kept in server.store().keys().await? {
        let limits = server.store().limits(Scope::Key, &kept.key.record().id).await?;
        keys.push(shown(&kept, &names, limits, server.master()));
    }
    Ok(Json(keys))
}

fn shown(
    kept: &StoredKey,
    names: &std::collections::HashMap<String, String>,
    limits: Limits,
    master: Option<&MasterKey>,
) -> KeyShown {
    let record = kept.key.record();
    let models = record.models.iter().map(|rule| AllowedModel {
        name: rule.name.clone(),
        price: rule.price.as_ref().map(shown_price),
        default_max_output: rule.default_max_output,
    });
    KeyShown {
        name: record.id.clone(),
        settings: KeySettings {
            provider: record.provider.get().name.to_owned(),
            base_url: record.base_url.clone(),
            private_host: record.private_host,
            // Of one that was deleted nobody can ask any more.
            projects: record
                .projects
                .iter()
                .filter_map(|id| names.get(id).cloned())
                .collect(),
            models: models.collect(),
        },
        limits: shown_limits(limits),
        created_at: moment(kept.created_at),
        is_usable: master.is_some_and(|master| kept.open(master).is_ok()),
    }
}

/// Adds a key, which is encrypted and never shown again.
#[utoipa::path(
    post, path = "/api/keys", operation_id = "add_key", request_body = NewKey, security(("session" = [])),
    responses((status = 204))
)]
pub(super) async fn add(
    State(server): State<Server>,
    caller: Caller,
    Json(new): Json<NewKey>,
) -> Result<StatusCode, Refusal> {
    caller.as_admin_in_person()?;
    let master = server.master().ok_or_else(Refusal::sealed)?;
    let key = checked(&server, new.name.as_str(), new.settings).await?;
    let secret = checked_secret(&new.secret)?;
    server
        .store()
        .add_key(&caller.actor(), &key, secret, master)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Says other things of a key, or replaces it.
#[utoipa::path(
    put, path = "/api/keys/{name}", operation_id = "change_key", params(("name" = String, Path)),
    request_body = KeyChange, security(("session" = [])), responses((status = 204))
)]
pub(super) async fn change(
    State(server): State<Server>,
    caller: Caller,
    Path(name): Path<String>,
    Json(change): Json<KeyChange>,
) -> Result<StatusCode, Refusal> {
    caller.as_admin_in_person()?;
    let master = server.master().ok_or_else(Refusal::sealed)?;
    let key = checked(&server, &name, change.settings).await?;
    let secret = change.secret.as_deref().map(checked_secret).transpose()?;
    server
        .store()
        .change_key(&caller.actor(), &key, secret, master)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes a key away.
#[utoipa::path(
    delete, path = "/api/keys/{name}", operation_id = "delete_key", params(("name" = String, Path)),
    security(("session" = [])), responses((status = 204))
)]
pub(super) async fn delete(
    State(server): State<Server>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, Refusal> {
    caller.as_admin_in_person()?;
    server.store().delete_key(&caller.actor(), &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Says what a member, a project or a key may consume in a day.
#[utoipa::path(
    put, path = "/api/limits/{scope}/{name}", operation_id = "set_limits",
    params(("scope" = LimitScope, Path), ("name" = String, Path)), request_body = DailyLimits,
    security(("session" = [])), responses((status = 204))
)]
pub(super) async fn set_limits(
    State(server): State<Server>,
    caller: Caller,
    Path((scope, name)): Path<(LimitScope, String)>,
    Json(daily): Json<DailyLimits>,
) -> Result<StatusCode, Refusal> {
    caller.as_admin_in_person()?;
    let store = server.store();
    let (scope, subject) = match scope {
        LimitScope::Member => (Scope::Member, store.member(&name).await?.id),
        LimitScope::Project => (Scope::Project, store.project_id(&name).await?),
        LimitScope::Key => {
            let kept = store.key(&name).await?;
            (
                Scope::Key,
                kept.ok_or(StoreError::Missing("key"))?.key.record().id.clone(),
            )
        }
    };
    let limits = checked_limits(daily)?;
    store
        .set_limits(&caller.actor(), (scope, &subject), &name, limits)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// All limits.
#[utoipa::path(
    get, path = "/api/limits", operation_id = "limits", security(("session" = []), ("token" = [])),
    responses((status = 200, body = Vec<LimitsShown>))
)]
pub(super) async fn limits(
    State(server): State<Server>,
    caller: Caller,
) -> Result<Json<Vec<LimitsShown>>, Refusal> {
    caller.as_admin()?;
    let names = server.store().names().await?;
    let all = server.store().all_limits().await?;
    let shown = all.into_iter().map(|(scope, subject, limits)| LimitsShown {
        scope: shown_scope(scope),
        name: names.get(&subject).cloned().unwrap_or(subject),
        limits: shown_limits(limits),
    });
    Ok(Json(shown.collect()))
}

fn shown_scope(scope: Scope) -> LimitScope {
    match scope {
        Scope::Member => LimitScope::Member,
        Scope::Project => LimitScope::Project,
        Scope::Key => LimitScope::Key,
    }
}

/// From which day on.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Days {
    /// How many days, today included: 1 to 366; 30 unless stated.
    days: Option<u16>,
}

/// What was consumed by members, projects and keys, the latest day first.
#[utoipa::path(
    get, path = "/api/usage", operation_id = "usage", params(Days), security(("session" = []), ("token" = [])),
    responses((status = 200, body = Vec<UsageShown>))
)]
pub(super) async fn usage(
    State(server): State<Server>,
    caller: Caller,
    Query(days): Query<Days>,
) -> Result<Json<Vec<UsageShown>>, Refusal> {
    caller.as_admin()?;
    let days = u64::from(days.days.unwrap_or(30).clamp(1, 366));
    let names = server.store().names().await?;
    let used = server
        .store()
        .used_since((day_of(caller.visitor.at) + 1).saturating_sub(days))
        .await?;
    let shown = used.into_iter().map(|used| UsageShown {
        scope: shown_scope(used.scope),
        name: names.get(&used.subject).cloned().unwrap_or(used.subject),
        day: day(used.day),
        usd: used.consumption.used.usd(),
        reserved_usd: used.consumption.reserved.usd(),
        requests: used.consumption.requests,
    });
    Ok(Json(shown.collect()))
}

/// The keys that a project may use.
#[utoipa::path(
    get, path = "/api/projects/{project}/keys", operation_id = "project_keys", params(("project" = String, Path)),
    security(("session" = []), ("token" = [])), responses((status = 200, body = Vec<ProjectKey>))
)]
pub(super) async fn of_project(
    State(server): State<Server>,
    caller: Caller,
    Path(project): Path<String>,
) -> Result<Json<Vec<ProjectKey>>, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Viewer).await?;
    let keys = server.store().keys().await?;
    let shared = keys.iter().map(|kept| kept.key.record());
    let shared = shared.filter(|record| record.projects.contains(&project.id));
    let shown = shared.map(|record| ProjectKey {
        name: record.id.clone(),
        provider: record.provider.get().name.to_owned(),
        models: record.models.iter().map(|rule| rule.name.clone()).collect(),
        base_url: format!("/api/proxy/{}", record.id),
        provider_base_url: record.base_url.clone(),
    });
    Ok(Json(shown.collect()))
}
