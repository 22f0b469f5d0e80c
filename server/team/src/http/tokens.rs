//! Personal tokens.

use axum::extract::State;
use axum::http::StatusCode;
use capo_api::{NewToken, TokenMade, TokenShown};
use capo_gateway::TOKEN;

use super::Server;
use super::caller::Caller;
use super::extract::{Json, Path, moment};
use super::problem::Refusal;
use crate::secret::Secret;
use crate::store::{Millis, Token};

/// Days that a token lives at most.
const MOST_DAYS: u32 = 366;

fn shown(token: Token) -> TokenShown {
    TokenShown {
        id: token.id,
        name: token.name,
        scope: token.scope,
        created_at: moment(token.created_at),
        seen_at: token.seen_at.map(moment),
        expires_at: moment(token.expires_at),
    }
}

/// One's own tokens, expired ones too.
#[utoipa::path(
    get, path = "/api/tokens", operation_id = "tokens", security(("session" = [])),
    responses((status = 200, body = Vec<TokenShown>))
)]
pub(super) async fn list(
    State(server): State<Server>,
    caller: Caller,
) -> Result<Json<Vec<TokenShown>>, Refusal> {
    caller.in_person()?;
    let tokens = server.store().tokens(&caller.member).await?;
    Ok(Json(tokens.into_iter().map(shown).collect()))
}

/// Makes a token.
#[utoipa::path(
    post, path = "/api/tokens", operation_id = "add_token", request_body = NewToken, security(("session" = [])),
    responses((status = 201, body = TokenMade))
)]
pub(super) async fn add(
    State(server): State<Server>,
    caller: Caller,
    Json(new): Json<NewToken>,
) -> Result<(StatusCode, Json<TokenMade>), Refusal> {
    caller.in_person()?;
    if !(1..=MOST_DAYS).contains(&new.days) {
        return Err(Refusal::invalid(format!("A token lives 1 to {MOST_DAYS} days.")));
    }
    let secret = Secret::new(TOKEN);
    let expires_at = caller.visitor.at + Millis::from(new.days) * 24 * 60 * 60 * 1000;
    let token = server
        .store()
        .add_token(
            &caller.actor(),
            &caller.member,
            &secret,
            new.name.as_str(),
            new.scope,
            expires_at,
        )
        .await?;
    let made = TokenMade {
        token: shown(token),
        secret: secret.reveal().to_owned(),
    };
    Ok((StatusCode::CREATED, Json(made)))
}

/// Withdraws one of one's tokens.
#[utoipa::path(
    delete, path = "/api/tokens/{id}", operation_id = "withdraw_token", params(("id" = String, Path)),
    security(("session" = [])), responses((status = 204))
)]
pub(super) async fn withdraw(
    State(server): State<Server>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    caller.in_person()?;
    server
        .store()
        .withdraw_token(&caller.actor(), &caller.member, &id)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
