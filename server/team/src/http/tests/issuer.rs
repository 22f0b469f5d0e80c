//! An OpenID Connect issuer that says what it is told to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use openidconnect::core::{
    CoreEdDsaPrivateSigningKey, CoreIdToken, CoreIdTokenClaims, CoreJsonWebKeySet, CoreJwsSigningAlgorithm,
};
use openidconnect::url::form_urlencoded;
use openidconnect::{
    Audience, EmptyAdditionalClaims, EndUserEmail, EndUserUsername, IssuerUrl, JsonWebKeyId, Nonce,
    PkceCodeChallenge, PkceCodeVerifier, PrivateSigningKey, StandardClaims, SubjectIdentifier,
};
use tokio::net::TcpListener;

use super::*;

/// Where it sends a browser back to.
pub(super) const CALLBACK: &str = "http://localhost:8787/sign-in/return";

/// An issuer's key, of a seed that is the same three bytes over and over.
fn signing_key(id: &str, seed: [&str; 2]) -> CoreEdDsaPrivateSigningKey {
    let [first, rest] = seed;
    // PKCS #8: its head for Ed25519, the seed's length and the seed.
    let body = format!("MC4CAQAwBQYDK2VwBCIE{first}{}", rest.repeat(10));
    let kind = "PRIVATE KEY";
    let pem = format!("-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n");
    CoreEdDsaPrivateSigningKey::from_ed25519_pem(&pem, Some(JsonWebKeyId::new(id.into()))).unwrap()
}

pub(super) fn first_key() -> CoreEdDsaPrivateSigningKey {
    signing_key("first", ["ICAg", "ICAg"])
}

pub(super) fn second_key(id: &str) -> CoreEdDsaPrivateSigningKey {
    signing_key(id, ["IEFB", "QUFB"])
}

/// What a code stands for.
pub(super) struct Grant {
    pub(super) challenge: String,
    pub(super) id_token: String,
}

#[derive(Default)]
pub(super) struct IssuerState {
    pub(super) grants: HashMap<String, Grant>,
    keys: Value,
    pub(super) user_info: Value,
    pub(super) is_down: bool,
}

#[derive(Clone)]
pub(super) struct Issuer {
    pub(super) url: String,
    pub(super) state: Arc<Mutex<IssuerState>>,
}

impl Issuer {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            state: Arc::default(),
        };
        issuer.sign_with(&first_key());
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(described))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .route("/me", get(user_info))
            .with_state(issuer.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        issuer
    }

    pub(super) fn sign_with(&self, key: &CoreEdDsaPrivateSigningKey) {
        let keys = CoreJsonWebKeySet::new(vec![key.as_verification_key()]);
        self.state.lock().unwrap().keys = serde_json::to_value(keys).unwrap();
    }
}

async fn described(State(issuer): State<Issuer>) -> Result<axum::Json<Value>, StatusCode> {
    if issuer.state.lock().unwrap().is_down {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    let url = &issuer.url;
    Ok(axum::Json(json!({
        "issuer": url,
        "authorization_endpoint": format!("{url}/authorize"),
        "token_endpoint": format!("{url}/token"),
        "userinfo_endpoint": format!("{url}/me"),
        "jwks_uri": format!("{url}/keys"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["EdDSA", "none"],
    })))
}

async fn keys(State(issuer): State<Issuer>) -> axum::Json<Value> {
    axum::Json(issuer.state.lock().unwrap().keys.clone())
}

async fn user_info(State(issuer): State<Issuer>, headers: HeaderMap) -> axum::Json<Value> {
    assert_eq!(headers["authorization"], "Bearer access");
    axum::Json(issuer.state.lock().unwrap().user_info.clone())
}

/// Gives the token of a code once, to who has asked for the code and knows the client's secret.
async fn token(
    State(issuer): State<Issuer>,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, axum::Json<Value>) {
    assert!(headers["authorization"].to_str().unwrap().starts_with("Basic "));
    let sent: HashMap<String, String> = form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    assert_eq!(
        (&*sent["grant_type"], &*sent["redirect_uri"]),
        ("authorization_code", CALLBACK)
    );
    let verifier = PkceCodeVerifier::new(sent["code_verifier"].clone());
    let challenge = PkceCodeChallenge::from_code_verifier_sha256(&verifier);
    let grant = issuer.state.lock().unwrap().grants.remove(&sent["code"]);
    let Some(grant) = grant.filter(|grant| grant.challenge == challenge.as_str()) else {
        let why = format!("no code {}", sent["code"]);
        let refused = json!({ "error": "invalid_grant", "error_description": why });
        return (StatusCode::BAD_REQUEST, axum::Json(refused));
    };
    let tokens = json!({ "access_token": "access", "token_type": "Bearer", "id_token": grant.id_token });
    (StatusCode::OK, axum::Json(tokens))
}

/// What the issuer says of somebody.
#[derive(Clone)]
pub(super) struct Said {
    pub(super) issuer: String,
    pub(super) audience: &'static str,
    pub(super) subject: &'static str,
    pub(super) nonce: String,
    pub(super) until: Millis,
    pub(super) email: Option<&'static str>,
    pub(super) is_verified: bool,
    pub(super) username: Option<&'static str>,
}

impl Said {
    pub(super) fn claims(&self) -> CoreIdTokenClaims {
        let at = |millis: Millis| (UNIX_EPOCH + Duration::from_millis(millis as u64)).into();
        let claims = StandardClaims::new(SubjectIdentifier::new(self.subject.into()))
            .set_email(self.email.map(|email| EndUserEmail::new(email.into())))
            .set_email_verified(self.email.map(|_| self.is_verified))
            .set_preferred_username(self.username.map(|name| EndUserUsername::new(name.into())));
        CoreIdTokenClaims::new(
            IssuerUrl::new(self.issuer.clone()).unwrap(),
            vec![Audience::new(self.audience.into())],
            at(self.until),
            at(NOW),
            claims,
            EmptyAdditionalClaims {},
        )
        .set_nonce(Some(Nonce::new(self.nonce.clone())))
    }

    pub(super) fn signed(&self, key: &CoreEdDsaPrivateSigningKey) -> String {
        signed(self.claims(), key)
    }
}

pub(super) fn signed(claims: CoreIdTokenClaims, key: &CoreEdDsaPrivateSigningKey) -> String {
    let token = CoreIdToken::new(claims, key, CoreJwsSigningAlgorithm::EdDsa, None, None);
    token.unwrap().to_string()
}
