//! Sign-in by an OpenID Connect issuer: authorisation code with PKCE (Core 1.0, section 3.1; RFC 7636).

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use capo_api::MemberName;
use capo_core::error_chain::with_causes;
use openidconnect::core::{
    CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod, CoreErrorResponseType, CoreIdTokenVerifier,
    CoreJwsSigningAlgorithm, CoreProviderMetadata, CoreUserInfoClaims,
};
use openidconnect::{
    AuthType, AuthorizationCode, ClaimsVerificationError, ClientId, ClientSecret, CsrfToken, EndUserEmail,
    EndpointMaybeSet, EndpointNotSet, EndpointSet, HttpRequest, HttpResponse, IssuerUrl, Nonce,
    OAuth2TokenResponse as _, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope,
    StandardErrorResponse, TokenResponse as _,
};

use crate::secret::Secret;
use crate::store::{Identity, Millis};

/// How long the issuer may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// Bytes of an answer, at most.
const MOST: usize = 1 << 20;

/// How long what the issuer says of itself, and its keys, is taken for true; and how soon it is asked again for a key that
/// is not among them.
const KNOWN: Millis = 60 * 60 * 1000;
const KEYS_KNOWN: Millis = 60 * 1000;

/// Signatures that only the issuer can make: none, and those of a shared secret, are not among them.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// Characters of a name, at most, so that a number can follow it.
const LONGEST_NAME: usize = 60;

/// An issuer, and who may come in by it.
#[derive(Debug, Clone)]
pub struct OidcSettings {
    /// Its address, as it writes it itself.
    pub issuer: String,
    /// What it knows this server by.
    pub client_id: String,
    /// By which this server proves that it is the one; a public client has none.
    pub client_secret: Option<Secret>,
    /// What people call it.
    pub name: String,
    /// Domains whose verified e-mail addresses make an account by themselves.
    pub domains: Vec<String>,
}

/// Why it is not known who somebody is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OidcError {
    /// The issuer does not answer, or not as one does.
    #[error("{0}")]
    Unreached(String),
    /// What it says of the person does not hold.
    #[error("the id_token: {0}")]
    Untrusted(String),
    /// It does not take the code.
    #[error("the code is unknown, used or expired")]
    CodeRefused,
}

/// What goes along to the issuer, and must hold when the browser comes back.
pub(crate) struct Flow {
    pub(crate) state: String,
    pub(crate) nonce: String,
    /// What PKCE proves by that the code was asked for here.
    pub(crate) verifier: String,
    /// Where the issuer sends the browser back to.
    pub(crate) redirect: String,
}

/// Somebody as the issuer describes them.
#[derive(Debug)]
pub(crate) struct Person {
    pub(crate) identity: Identity,
    /// An e-mail address that the issuer has verified.
    email: Option<String>,
    username: Option<String>,
    /// Whether the issuer said all that it was asked.
    pub(crate) is_whole: bool,
}

/// An issuer, and what it last said of itself.
#[derive(Debug)]
pub(crate) struct Oidc {
    settings: OidcSettings,
    http: reqwest::Client,
    known: Mutex<Option<(Arc<CoreProviderMetadata>, Millis)>>,
}

/// A client as an issuer's description makes it.
type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

impl Oidc {
    /// # Errors
    /// When the system has no certificates to trust.
    pub(crate) fn new(settings: OidcSettings) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(ANSWER)
            // What an issuer of https says to be asked elsewhere is so, too.
            .https_only(settings.issuer.starts_with("https:"))
            .no_proxy()
            .build()?;
        Ok(Self {
            settings,
            http,
            known: Mutex::default(),
        })
    }

    /// What people call it.
    pub(crate) fn name(&self) -> &str {
        &self.settings.name
    }

    /// The issuer's page at which somebody says who they are.
    ///
    /// # Errors
    /// When the issuer does not say where that is.
    pub(crate) async fn page(&self, flow: &Flow, at: Millis) -> Result<String, OidcError> {
        let client = self.client(&*self.described(at, KNOWN).await?, flow)?;
        let verifier = PkceCodeVerifier::new(flow.verifier.clone());
        let (state, nonce) = (flow.state.clone(), flow.nonce.clone());
        let (url, ..) = client
            .authorize_url(
                CoreAuthenticationFlow::AuthorizationCode,
                || CsrfToken::new(state),
                || Nonce::new(nonce),
            )
            .add_scopes(["email", "profile"].map(|scope| Scope::new(scope.into())))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier))
            .url();
        Ok(url.into())
    }

    /// Learns who came back with a code.
    ///
    /// # Errors
    /// When the issuer does not answer, does not take the code, or says of the person what does not hold.
    pub(crate) async fn identify(&self, code: String, flow: &Flow, at: Millis) -> Result<Person, OidcError> {
        let mut client = self.client(&*self.described(at, KNOWN).await?, flow)?;
        let send = |request| send(self.http.clone(), request);
        let tokens = client
            .exchange_code(AuthorizationCode::new(code))
            .map_err(|_| OidcError::Unreached("it names no token endpoint".into()))?
            .set_pkce_verifier(PkceCodeVerifier::new(flow.verifier.clone()))
            .request_async(&send)
            .await
            .map_err(of_token)?;
        let untrusted = |why: &str| OidcError::Untrusted(why.into());
        let token = tokens.id_token().ok_or_else(|| untrusted("there is none"))?;
        let nonce = Nonce::new(flow.nonce.clone());
        let mut claims = token.claims(&verifier(&client, at), &nonce);
        if let Err(ClaimsVerificationError::SignatureVerification(_)) = claims {
            // The issuer may have other keys by now.
            client = self.client(&*self.described(at, KEYS_KNOWN).await?, flow)?;
            claims = token.claims(&verifier(&client, at), &nonce);
        }
        let claims = claims.map_err(|error| untrusted(&with_causes(&error)))?;
        if claims
            .authorized_party()
            .is_some_and(|party| party.as_str() != self.settings.client_id)
        {
            return Err(untrusted("it was made out to another client (azp)"));
        }
        let mut email = verified(claims.email(), claims.email_verified());
        let mut username = claims.preferred_username().map(|name| name.to_string());
        let mut is_whole = true;
        // Many issuers say who it is only when they are asked once more.
        if claims.email().is_none() && client.user_info_url().is_some() {
            let said = client
                .user_info(tokens.access_token().clone(), Some(claims.subject().clone()))
                .map_err(|error| OidcError::Unreached(error.to_string()))?
                .request_async(&send)
                .await;
            let said: Option<CoreUserInfoClaims> = said
                // Who has an account is known without.
                .inspect_err(
                    |error| tracing::warn!(%error, "the user info endpoint of the OpenID Connect issuer"),
                )
                .ok();
            is_whole = said.is_some();
            if let Some(said) = said {
                email = verified(said.email(), said.email_verified());
                username = username.or_else(|| said.preferred_username().map(|name| name.to_string()));
            }
        }
        let subject = claims.subject().to_string();
        let label = email.clone().or_else(|| username.clone());
        Ok(Person {
            identity: Identity {
                issuer: self.settings.issuer.clone(),
                label: label.unwrap_or_else(|| subject.clone()),
                subject,
            },
            email,
            username,
            is_whole,
        })
    }

    /// Whether somebody without an account may make one by themselves.
    pub(crate) fn may_join(&self, person: &Person) -> bool {
        let domain = person.email.as_ref().and_then(|email| email.rsplit_once('@'));
        domain.is_some_and(|(_, domain)| {
            let domains = self.settings.domains.iter();
            domains.into_iter().any(|one| one.eq_ignore_ascii_case(domain))
        })
    }

    /// What the issuer says of itself, with its keys, no older than this.
    async fn described(&self, at: Millis, oldest: Millis) -> Result<Arc<CoreProviderMetadata>, OidcError> {
        if let Some((described, read_at)) = &*self.known()
            && (0..oldest).contains(&(at - read_at))
        {
            return Ok(described.clone());
        }
        let issuer = IssuerUrl::new(self.settings.issuer.clone());
        let issuer = issuer.map_err(|error| OidcError::Unreached(error.to_string()))?;
        let send = |request| send(self.http.clone(), request);
        let described = CoreProviderMetadata::discover_async(issuer, &send).await;
        let described = described.map_err(|error| OidcError::Unreached(with_causes(&error)))?;
        let described = Arc::new(described);
        *self.known() = Some((described.clone(), at));
        Ok(described)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Option<(Arc<CoreProviderMetadata>, Millis)>> {
        // Nothing panics while it is held.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client(&self, described: &CoreProviderMetadata, flow: &Flow) -> Result<Client, OidcError> {
        let OidcSettings {
            client_id,
            client_secret,
            ..
        } = &self.settings;
        let secret = client_secret
            .as_ref()
            .map(|secret| ClientSecret::new(secret.reveal().to_owned()));
        let redirect = RedirectUrl::new(flow.redirect.clone());
        let redirect = redirect.map_err(|error| OidcError::Unreached(error.to_string()))?;
        // In the header unless the issuer only reads it in the body.
        let methods = described.token_endpoint_auth_methods_supported();
        let is_in_body = methods.is_some_and(|methods| {
            methods.contains(&CoreClientAuthMethod::ClientSecretPost)
                && !methods.contains(&CoreClientAuthMethod::ClientSecretBasic)
        });
        let kind = if is_in_body {
            AuthType::RequestBody
        } else {
            AuthType::BasicAuth
        };
        let id = ClientId::new(client_id.clone());
        let client = CoreClient::from_provider_metadata(described.clone(), id, secret);
        Ok(client.set_redirect_uri(redirect).set_auth_type(kind))
    }
}

impl Person {
    /// What they may be called here, if nobody is yet.
    pub(crate) fn name(&self) -> String {
        let names = [&self.email, &self.username].into_iter().flatten();
        let names = names.filter_map(|name| MemberName::try_from(name.clone()).ok());
        let mut names = names.filter(|name| name.as_str().len() <= LONGEST_NAME);
        names
            .next()
            .map_or_else(|| "member".into(), |name| name.as_str().to_owned())
    }
}

/// What an id_token must stand: signature, issuer, audience and time.
fn verifier(client: &Client, at: Millis) -> CoreIdTokenVerifier<'_> {
    let now = UNIX_EPOCH + Duration::from_millis(at.max(0) as u64);
    client
        .id_token_verifier()
        .set_allowed_algs(ALGORITHMS)
        .set_time_fn(move || now.into())
}

fn verified(email: Option<&EndUserEmail>, is_verified: Option<bool>) -> Option<String> {
    email
        .filter(|_| is_verified == Some(true))
        .map(|email| email.to_string())
}

/// Why there is no token, in words that repeat nothing of what was sent or answered.
fn of_token(error: RequestTokenError<io::Error, StandardErrorResponse<CoreErrorResponseType>>) -> OidcError {
    match error {
        RequestTokenError::ServerResponse(said) if *said.error() == CoreErrorResponseType::InvalidGrant => {
            OidcError::CodeRefused
        }
        RequestTokenError::ServerResponse(said) => {
            OidcError::Unreached(format!("its token endpoint says {}", said.error().as_ref()))
        }
        RequestTokenError::Request(error) => OidcError::Unreached(with_causes(&error)),
        RequestTokenError::Parse(..) | RequestTokenError::Other(_) => {
            OidcError::Unreached("its token endpoint answers what is no token".into())
        }
    }
}

/// Carries a request of the library.
async fn send(http: reqwest::Client, request: HttpRequest) -> io::Result<HttpResponse> {
    let request = request.try_into().map_err(io::Error::other)?;
    let mut answer = http.execute(request).await.map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(io::Error::other)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MOST {
            return Err(io::Error::other("the answer is larger than 1 MiB"));
        }
    }
    let mut response = HttpResponse::new(bytes);
    *response.status_mut() = answer.status();
    *response.headers_mut() = std::mem::take(answer.headers_mut());
    Ok(response)
}
