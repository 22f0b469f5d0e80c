//! A run's way to the gate of shared keys: the same decisions as for whoever asks from outside, without leaving the worker.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use capo_api::Role;
use capo_gateway::{Caller, Request as Asked, SharedKey, split_path};
use capo_hosted::SharedKeys;
use capo_models::gate::{Carrier, Gate, Route};
use capo_models::providers::Provider;
use futures::StreamExt as _;
use futures::channel::oneshot;
use futures::future::LocalBoxFuture;
use http::{Request, Response, StatusCode};
use tokio::sync::Semaphore;
use worker::Env;
use worker::wasm_bindgen_futures::spawn_local;

use crate::call::Call;
use crate::configuration::Configuration;
use crate::refusal::Refusal;
use crate::runtime::plain;

/// Calls at a time, and rollouts: the runtime has connections for no more.
pub(super) const MOST_CALLS: usize = 6;

/// Bytes of an answer, at most: an object has little memory.
const MOST_ANSWER: usize = 16 << 20;

/// On whose account a run asks, and how.
struct Account {
    env: Env,
    configuration: Configuration,
    member: String,
    project: String,
    places: Arc<Semaphore>,
}

/// The keys of a run's project.
pub(super) struct Keys {
    shared: SharedKeys,
    account: Rc<Account>,
}

impl Keys {
    pub(super) fn new(env: Env, configuration: Configuration, member: &str, project: &str) -> Self {
        let keys: Vec<SharedKey> = configuration.keys_of(project).cloned().collect();
        Self {
            shared: SharedKeys {
                keys,
                // Nobody listens there: what is sent is carried, see below.
                origin: "https://capo.invalid".into(),
                pass: "of-a-run".into(),
            },
            account: Rc::new(Account {
                env,
                configuration,
                member: member.to_owned(),
                project: project.to_owned(),
                places: Arc::new(Semaphore::new(MOST_CALLS)),
            }),
        }
    }
}

impl Gate for Keys {
    fn route(&self, provider: &'static Provider, base_url: &str, model: &str) -> Result<Route, String> {
        self.shared.route(provider, base_url, model)
    }

    fn most_calls(&self) -> usize {
        MOST_CALLS
    }

    fn carrier(&self) -> Option<Arc<dyn Carrier>> {
        #[expect(
            clippy::arc_with_non_send_sync,
            reason = "there is one thread here, and where there are more the trait asks for it"
        )]
        Some(Arc::new(ToGate(Rc::clone(&self.account))))
    }
}

struct ToGate(Rc<Account>);

impl Carrier for ToGate {
    fn carry(&self, request: Request<Bytes>) -> LocalBoxFuture<'static, Response<Bytes>> {
        let account = Rc::clone(&self.0);
        Box::pin(async move { account.ask(&request).await.unwrap_or_else(Refusal::into_http) })
    }
}

impl Account {
    async fn ask(&self, request: &Request<Bytes>) -> Result<Response<Bytes>, Refusal> {
        // Of all models together.
        let place = Arc::clone(&self.places).acquire_owned().await;
        let (id, path) = split_path(request.uri().path()).ok_or_else(Refusal::missing)?;
        let member = self.configuration.named(&self.member);
        let role = member.and_then(|member| member.projects.get(&self.project));
        // Who was removed is nobody.
        let caller = role.map(|role| Caller {
            project: self.project.clone(),
            may_run: *role >= Role::Editor,
        });
        let asked = Asked {
            method: request.method(),
            path,
            query: request.uri().query(),
            headers: request.headers(),
            body: request.body(),
        };
        let call = Call::check(
            &self.env,
            &self.configuration,
            Vec::new(),
            caller,
            member.map(|member| (self.member.as_str(), member)),
            self.configuration.key(id),
            &asked,
        )?;
        // It goes on without a run that no longer waits for it: what was sent is paid for.
        let (tell, told) = oneshot::channel();
        spawn_local(async move {
            call.make(None, tell).await;
            drop(place);
        });
        let mut answer = told.await.unwrap_or_else(|_| Err(Refusal::unreached()))?;
        let mut body = Vec::new();
        let mut pieces = answer.stream().map_err(|_| Refusal::unreached())?;
        while let Some(piece) = pieces.next().await {
            body.extend(piece.map_err(|_| Refusal::unreached())?);
            if body.len() > MOST_ANSWER {
                return Err(Refusal::unreached());
            }
        }
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() =
            StatusCode::from_u16(answer.status_code()).map_err(|_| Refusal::unreached())?;
        *response.headers_mut() = plain(answer.headers());
        Ok(response)
    }
}
