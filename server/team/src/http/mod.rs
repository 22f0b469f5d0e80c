//! The routes.

mod audit;
mod bounds;
mod caller;
mod certificates;
mod checkpoints;
mod data_sets;
mod described;
mod events;
mod export;
mod extract;
mod files;
mod health;
mod import;
mod keys;
mod members;
mod models;
mod oidc;
mod page;
mod pieces;
mod problem;
mod projects;
mod prompts;
mod proxy;
#[cfg(test)]
mod proxy_tests;
mod runs;
mod scrape;
mod sessions;
mod tail;
#[cfg(test)]
mod tests;
mod tokens;
mod trainings;
mod viewer;

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use extract::moment;
pub use page::{Page, PageError};

use capo_gateway::{DEFAULT_MAX_BODY, Gateway, PAGE_HEADERS};
use capo_models::prices::PriceTable;

use crate::files::Files;
use crate::oidc::{Oidc, OidcSettings};
use crate::password;
use crate::places::Place;
use crate::seal::MasterKey;
use crate::secret::Secret;
use crate::spans;
use crate::store::{Millis, Store};
use crate::telemetry::Metrics;
use crate::trainings::{Policies, Trainings};
use problem::Refusal;

/// Bytes of a document that is sent here, at most.
const MOST_BODY: usize = 1 << 20;

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Passwords that are hashed at a time: each takes 19 MiB and a core.
const HASHES: usize = 2;

/// Journals and studies that are read through at a time.
const READINGS: usize = 2;

/// Files and journals that are sent at a time: a journal is held in memory.
const UPLOADS: usize = 4;

/// How long a request waits for its turn.
const SOON: Duration = Duration::from_secs(20);

/// How long an upload may take.
const UPLOAD: Duration = Duration::from_mins(15);

/// What the routes work on.
#[derive(Clone)]
pub struct Server(Arc<Parts>);

struct Parts {
    store: Store,
    clock: Box<dyn Fn() -> Millis + Send + Sync>,
    set_up: Option<SetUp>,
    /// Scheme, host and port under which people reach the server, if a reverse proxy stands before it.
    public_url: Option<String>,
    hashing: Arc<Semaphore>,
    /// Calls to providers that are under way.
    calls: TaskTracker,
    is_behind_proxy: bool,
    is_encrypted: bool,
    /// Opens providers' keys; `None` where it is missing.
    master: Option<MasterKey>,
    /// Where the bytes of data files lie.
    files: Option<Files>,
    gateway: Gateway,
    providers: proxy::Providers,
    /// Where people can sign in, too.
    oidc: Option<Oidc>,
    /// Who may ask models for a run, by the hash of its pass.
    passes: Mutex<HashMap<String, PassHolder>>,
    /// Something about runs has changed that workers have not heard of.
    runs_changed: Notify,
    tails: tail::Tails,
    trainings: Option<Trainings>,
    /// Journals and studies that are read through at a time: each may be large.
    reading: Arc<Semaphore>,
    verifying: Arc<Semaphore>,
    uploads: Arc<Semaphore>,
    bounds: bounds::Bounds,
    metrics: Option<Metrics>,
    models: Option<Router>,
    /// Cancelled when the server ends: whoever watches a run is let go.
    ending: CancellationToken,
}

/// On whose account a run asks models.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PassHolder {
    /// Id of the member.
    member: String,
    /// Id of the project.
    project: String,
}

/// How a server is made.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Who has this secret may make the first member.
    pub set_up: Option<SetUp>,
    /// Where people reach the server when that is not where it listens, such as `https://capo.example.org`.
    pub public_url: Option<String>,
    /// Encrypts providers' keys; without it none can be used or added.
    pub master: Option<MasterKey>,
    /// Where the bytes of data files lie; without it none can be kept or read.
    pub files: Option<Files>,
    /// Whether a reverse proxy says in `X-Forwarded-For` where requests come from. Without one anybody could.
    pub is_behind_proxy: bool,
    /// Whether it is reached over TLS of its own.
    pub is_encrypted: bool,
    /// Bytes of a request to a provider, at most; 1 MiB unless stated.
    pub max_body: Option<usize>,
    /// Requests a second of each caller; without it as many as they like.
    pub rate: Option<NonZeroU32>,
    /// What is counted, served at `/metrics`.
    pub metrics: Option<Metrics>,
    /// Models of its own, served below `/api/models` to who is signed in or has a token.
    pub models: Option<Router>,
    /// Where people can sign in, too.
    pub oidc: Option<OidcSettings>,
    /// How rewriters are trained; without it nobody does.
    pub trainings: Option<Trainings>,
}

/// The secret by which the first administrator is made.
#[derive(Debug, Clone)]
pub struct SetUp(Secret);

impl SetUp {
    /// A new one.
    pub fn new() -> Self {
        Self(Secret::new(""))
    }

    /// The address of the page on which it is used: the secret stands behind `#`, which no browser sends to a server.
    pub fn link(&self, server: &str) -> String {
        format!("{}/set-up#{}", server.trim_end_matches('/'), self.0.reveal())
    }

    /// The secret itself, for who has no page.
    pub fn secret(&self) -> &str {
        self.0.reveal()
    }
}

impl Default for SetUp {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    /// A server over a store and a clock.
    ///
    /// # Errors
    /// When the system has no certificates by which providers and issuers are known.
    pub fn new(
        store: Store,
        clock: impl Fn() -> Millis + Send + Sync + 'static,
        settings: Settings,
    ) -> Result<Self, reqwest::Error> {
        Ok(Self(Arc::new(Parts {
            store,
            clock: Box::new(clock),
            set_up: settings.set_up,
            public_url: settings
                .public_url
                .map(|url| url.trim_end_matches('/').to_owned()),
            hashing: Arc::new(Semaphore::new(HASHES)),
            calls: TaskTracker::new(),
            is_behind_proxy: settings.is_behind_proxy,
            is_encrypted: settings.is_encrypted,
            master: settings.master,
            files: settings.files,
            gateway: Gateway {
                origins: Vec::new(),
                prices: Arc::new(PriceTable::shipped()),
                max_body: settings.max_body.unwrap_or(DEFAULT_MAX_BODY),
            },
            providers: proxy::Providers::new(proxy::Public(proxy::System))?,
            oidc: settings.oidc.map(Oidc::new).transpose()?,
            passes: Mutex::default(),
            runs_changed: Notify::new(),
            tails: tail::Tails::default(),
            trainings: settings.trainings,
            reading: Arc::new(Semaphore::new(READINGS)),
            verifying: Arc::new(Semaphore::new(1)),
            uploads: Arc::new(Semaphore::new(UPLOADS)),
            bounds: bounds::Bounds::new(settings.rate),
            metrics: settings.metrics,
            models: settings.models,
            ending: CancellationToken::new(),
        })))
    }

    /// How many watch runs.
    pub(crate) fn watching(&self) -> usize {
        self.0.bounds.watching()
    }

    /// Lets go of those who watch runs: the server is about to end.
    pub fn end(&self) {
        self.0.ending.cancel();
    }

    /// Waits until every call to a provider has ended and was counted, those of callers who have gone away, too. To be
    /// called when no more requests are taken.
    pub async fn finish(&self) {
        self.0.calls.close();
        self.0.calls.wait().await;
    }

    fn calls(&self) -> &TaskTracker {
        &self.0.calls
    }

    fn is_behind_proxy(&self) -> bool {
        self.0.is_behind_proxy
    }

    fn master(&self) -> Option<&MasterKey> {
        self.0.master.as_ref()
    }

    fn gateway(&self) -> &Gateway {
        &self.0.gateway
    }

    fn providers(&self) -> &proxy::Providers {
        &self.0.providers
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    pub(crate) fn now(&self) -> Millis {
        (self.0.clock)()
    }

    /// How rewriters are trained here, if they are.
    pub(crate) fn trainings(&self) -> Option<&Trainings> {
        self.0.trainings.as_ref()
    }

    /// The policies of trainings, if this process trains.
    pub(crate) fn policies(&self) -> Option<Policies> {
        let trainings = self.trainings()?.clone();
        Some(Policies::new(
            trainings,
            self.store().clone(),
            self.0.files.clone(),
        ))
    }

    /// What models cost unless somebody says otherwise.
    pub(crate) fn prices(&self) -> &Arc<PriceTable> {
        &self.0.gateway.prices
    }

    /// Lets a run or a training ask models on the account of a member and a project, by the pass that is returned.
    pub(crate) fn issue_pass(&self, member: &str, project: &str) -> Secret {
        let pass = Secret::new(caller::PASS);
        let holder = PassHolder {
            member: member.to_owned(),
            project: project.to_owned(),
        };
        self.passes(|passes| passes.insert(pass.hash(), holder));
        pass
    }

    /// Lets it ask no more.
    pub(crate) fn dismiss(&self, pass: &Secret) {
        self.passes(|passes| passes.remove(&pass.hash()));
    }

    fn pass_holder(&self, pass: &Secret) -> Option<PassHolder> {
        self.passes(|passes| passes.get(&pass.hash()).cloned())
    }

    fn passes<T>(&self, change: impl FnOnce(&mut HashMap<String, PassHolder>) -> T) -> T {
        // Nothing panics while it has them.
        change(&mut self.0.passes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until something about runs has changed here.
    pub(crate) async fn runs_changed(&self) {
        self.0.runs_changed.notified().await;
    }

    /// Says that something about runs has changed.
    pub(crate) fn tell_of_runs(&self) {
        self.0.runs_changed.notify_one();
    }

    /// The right to read a study with its data, or a journal, through.
    async fn reader(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        permit(&self.0.reading).await
    }

    /// The right to verify a journal, which may take long.
    async fn verifier(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        permit(&self.0.verifying).await
    }

    /// The right of a member to send something large, or to be sent it.
    async fn upload(&self, caller: &caller::Caller) -> Result<(Place, OwnedSemaphorePermit), Refusal> {
        let place = self.0.bounds.upload(&caller.member.id)?;
        Ok((place, permit(&self.0.uploads).await?))
    }

    /// Whether cookies may go over encrypted connections only.
    fn is_secure(&self) -> bool {
        let url = self.0.public_url.as_ref();
        self.0.is_encrypted || url.is_some_and(|url| url.starts_with("https://"))
    }

    /// Whether an `Origin` is this server's own page: of the public URL where there is one, else of the host that was asked.
    fn is_own_origin(&self, origin: &str, host: Option<&str>) -> bool {
        if let Some(url) = &self.0.public_url {
            return url.eq_ignore_ascii_case(origin);
        }
        let (_, of_origin) = origin.split_once("://").unwrap_or_default();
        host.is_some_and(|host| !host.is_empty() && host.eq_ignore_ascii_case(of_origin))
    }

    async fn hashed(&self, password: String) -> Result<String, Refusal> {
        self.hashing(move || password::hash(&password)).await
    }

    async fn hashing<T: Send + 'static>(
        &self,
        hash: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let permit = self.0.hashing.clone().acquire_owned().await;
        in_background(permit.map_err(|_| Refusal::internal())?, hash).await
    }
}

/// One of so many at a time, soon.
async fn permit(of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Refusal> {
    let permit = tokio::time::timeout(SOON, of.clone().acquire_owned()).await;
    let permit = permit.map_err(|_| Refusal::busy())?;
    permit.map_err(|_| Refusal::internal())
}

/// Does something that takes its time on a thread of its own. The permit ends with the work, which goes on when whoever
/// asked for it has gone.
async fn in_background<T: Send + 'static>(
    permit: OwnedSemaphorePermit,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(permit);
        done
    });
    done.await.map_err(|_| Refusal::internal())
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Capo",
        description = "The team server. Browsers sign in and get a cookie; programs send a personal token. A refusal is a \
                       problem document (RFC 9457). What is asked below `/api/proxy/KEY` and answered there is as the \
                       provider of the shared key has it, and not described here: docs/team-server.md says more."
    ),
    components(schemas(capo_api::Problem))
)]
struct Described;

/// The document that describes the routes, OpenAPI 3.1.
pub fn openapi() -> Document {
    routes_described().1
}

fn routes_described() -> (Router<Server>, Document) {
    let mut described = Described::openapi();
    let components = described.components.get_or_insert_default();
    components.add_security_scheme(
        "session",
        SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new(caller::COOKIE))),
    );
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme("token", SecurityScheme::Http(bearer));
    let router = OpenApiRouter::with_openapi(described)
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(health::about))
        .routes(routes!(sessions::set_up))
        .routes(routes!(sessions::sign_in, sessions::sign_out))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::end))
        .routes(routes!(oidc::request))
        .routes(routes!(oidc::response))
        .routes(routes!(oidc::identities))
        .routes(routes!(oidc::unlink))
        .routes(routes!(tokens::list, tokens::add))
        .routes(routes!(tokens::withdraw))
        .routes(routes!(members::set_password))
        .routes(routes!(members::list))
        .routes(routes!(members::change))
        .routes(routes!(members::invitations, members::invite))
        .routes(routes!(members::withdraw_invitation))
        .routes(routes!(members::follow_invitation))
        .routes(routes!(projects::list, projects::add))
        .routes(routes!(projects::show, projects::retitle, projects::delete))
        .routes(routes!(projects::members))
        .routes(routes!(projects::set_role, projects::remove))
        .routes(routes!(projects::invitations, projects::invite))
        .routes(routes!(projects::withdraw_invitation))
        .routes(routes!(projects::audit))
        .routes(routes!(export::export))
        .routes(routes!(import::import))
        .routes(routes!(keys::list, keys::add))
        .routes(routes!(keys::change, keys::delete))
        .routes(routes!(keys::limits))
        .routes(routes!(keys::set_limits))
        .routes(routes!(keys::usage))
        .routes(routes!(keys::of_project))
        .routes(routes!(runs::list))
        .routes(routes!(runs::add))
        .routes(routes!(runs::show, runs::change, runs::delete))
        .routes(routes!(runs::order))
        .routes(routes!(runs::branch))
        .routes(routes!(runs::push))
        .routes(routes!(certificates::list))
        .routes(routes!(events::journal))
        .routes(routes!(events::events))
        .routes(routes!(files::show, files::put))
        .routes(routes!(files::content))
        .routes(routes!(data_sets::list, data_sets::add))
        .routes(routes!(data_sets::show, data_sets::delete))
        .routes(routes!(data_sets::content))
        .routes(routes!(prompts::list))
        .routes(routes!(prompts::show, prompts::delete))
        .routes(routes!(prompts::versions, prompts::add))
        .routes(routes!(
            prompts::label,
            prompts::move_label,
            prompts::remove_label
        ))
        .routes(routes!(prompts::history))
        .routes(routes!(trainings::list, trainings::add))
        .routes(routes!(trainings::show, trainings::delete))
        .routes(routes!(trainings::order))
        .routes(routes!(trainings::events))
        .routes(routes!(checkpoints::list))
        .routes(routes!(checkpoints::fetch))
        .routes(routes!(audit::list));
    let (router, mut document) = router.split_for_parts();
    document.merge(models::Models::openapi());
    described::complete(&mut document);
    (router, document)
}

/// Answers that a request took too long.
async fn in_time(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    // What is sent may be large, or what it starts may take long.
    let takes_long = ["/journals", "/branches", "/versions", "/data", "/import"]
        .iter()
        .any(|end| path.ends_with(end));
    let is_upload = takes_long || path.contains("/files/");
    let patience = if is_upload { UPLOAD } else { PATIENCE };
    let route = request.extensions().get::<MatchedPath>().cloned();
    let answered = tokio::time::timeout(patience, next.run(request)).await;
    answered.unwrap_or_else(|_| Refusal::late(route.as_ref()).into_response())
}

/// The proxy alone, by which the runs of a worker ask models.
pub(crate) fn proxy_router(server: Server) -> Router {
    Router::new()
        .route("/api/proxy/{key}/{*path}", axum::routing::any(proxy::proxy))
        .with_state(server)
}

/// Lets who is known ask the server's own models, and the rewriters of their projects: calls as those that the proxy passes on.
async fn known(
    State(server): State<Server>,
    caller: caller::Caller,
    mut request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let _place = server.0.bounds.call(&caller.member.id)?;
    let offered = trainings::offered(&server, &caller.member).await?;
    request.extensions_mut().insert(offered);
    // Of the places for other requests it takes none.
    drop(caller);
    Ok(next.run(request).await)
}

/// All routes over a server, and the page where there is one.
pub fn router(server: Server, page: Option<Page>) -> Router {
    let (routes, document) = routes_described();
    let document = Bytes::from(serde_json::to_vec(&document).expect("the document is plain"));
    let with = |name: HeaderName, value: &'static str| {
        SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value))
    };
    let secure = server
        .is_secure()
        .then_some(HeaderValue::from_static("max-age=63072000"));
    let is_measured = server.0.metrics.is_some();
    let known = axum::middleware::from_fn_with_state(server.clone(), known);
    let models = server.0.models.clone();
    let models = models.map_or_else(Router::new, |models| models.route_layer(known).with_state(()));
    let mut router = routes
        .route(
            "/api/openapi.json",
            axum::routing::get(async move || {
                ([(header::CONTENT_TYPE, "application/json")], document.clone())
            }),
        )
        .route("/api/docs", axum::routing::get(viewer::page))
        .route("/api/docs/{file}", axum::routing::get(viewer::file))
        .method_not_allowed_fallback(async || Refusal::method())
        .route(
            "/api/{*rest}",
            axum::routing::any(async || Refusal::missing("address")),
        )
        .layer(DefaultBodyLimit::max(MOST_BODY))
        .layer(axum::middleware::from_fn(in_time))
        // Models think for longer, and their answers are not held here.
        .route("/api/proxy/{key}/{*path}", axum::routing::any(proxy::proxy))
        .nest("/api/models", models)
        .layer(axum::middleware::from_fn_with_state(
            server.clone(),
            bounds::bounded,
        ))
        // An answer is one member's, and a browser keeps none of it.
        .layer(with(header::CACHE_CONTROL, "no-store"))
        .with_state(server.clone());
    // Where nothing is counted nothing is there, and not the page: programs ask.
    router = router.route("/metrics", axum::routing::get(scrape::scrape).with_state(server));
    router = match page {
        Some(page) => router.fallback_service(page.service()),
        None => router.fallback(async || Refusal::missing("address")),
    };
    for (name, value) in PAGE_HEADERS {
        router = router.layer(with(HeaderName::from_static(name), value));
    }
    router
        .layer(with(
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ))
        .layer(tower::util::option_layer(secure.map(|value| {
            SetResponseHeaderLayer::if_not_present(header::STRICT_TRANSPORT_SECURITY, value)
        })))
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
            tracing::error!("a request panicked");
            Refusal::internal().into_response()
        }))
        .layer(axum::middleware::from_fn(spans::traced))
        .layer(tower::util::option_layer(
            is_measured.then(|| axum::middleware::from_fn(scrape::counted)),
        ))
}
