//! Building the models that a study's tables ask for.

use std::cell::RefCell;
use std::rc::Rc;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::Arc;
use std::time::Duration;

use capo_core::address::host;
use capo_core::backoff::{self, Backoff};
use capo_core::control::Control;
use capo_core::llm::{Llm, Role};
use capo_core::notice::Observer;
use http::{HeaderMap, HeaderName, HeaderValue};
use indexmap::IndexMap;
use indexmap::map::Entry;
use rig_reqwest::reqwest;
use serde_json::Value;

use crate::asking::Asking;
#[cfg(not(target_arch = "wasm32"))]
use crate::batching::Batcher;
use crate::breaker::Breaker;
use crate::call_price::CallPrice;
use crate::client::{Client, Endpoint};
#[cfg(not(target_arch = "wasm32"))]
use crate::connecting;
use crate::connecting::Connecting;
use crate::embedder::{Embedder, embedding, no_vectors, table_of_vectors};
use crate::error::BuildError;
use crate::gate::Gate;
use crate::limiter::Limiter;
use crate::local_models::{LocalError, LocalModels, NoLocalModels};
use crate::models::Models;
use crate::notice::{Notices, Trouble};
use crate::prices::PriceTable;
use crate::providers::{Access, Account, Connect, Key, List, Plan, Provider};
use crate::secret::{Keys, Redactor, Secret};
use crate::spec::ModelSpec;
use crate::table_checks::{Header, base_url, check_written, headers, no_header, origin};
use crate::transport::Wire;

/// How long a batch waits for a further call before it is handed in, and the pause after the first look at it.
const BATCH_WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// Builds the models of a study with the shipped price table.
///
/// `models` are its `[models.ROLE]` tables and `seed` is its seed, for the simulated models.
///
/// # Errors
///
/// The first table that does not read, or lacks a key.
pub fn build(models: &IndexMap<Role, Value>, keys: &dyn Keys, seed: u64) -> Result<Models, BuildError> {
    Builder::new(keys).seed(seed).build(models)
}

/// Builds models from tables, with everything that is not in the tables.
pub struct Builder<'a> {
    keys: &'a dyn Keys,
    seed: u64,
    prices: PriceTable,
    first_wait: Duration,
    batch_waits: (Duration, Duration),
    local: &'a dyn LocalModels,
    gate: Option<&'a dyn Gate>,
    control: Control,
    observer: Option<Observer>,
}

impl<'a> Builder<'a> {
    /// With keys from `keys`, the seed 0 and the shipped price table.
    pub fn new(keys: &'a dyn Keys) -> Self {
        Self {
            keys,
            seed: 0,
            prices: PriceTable::shipped(),
            first_wait: backoff::FIRST_WAIT,
            batch_waits: BATCH_WAITS,
            local: &NoLocalModels,
            gate: None,
            control: Control::new(),
            observer: None,
        }
    }

    /// The seed of simulated models that state none: the study's.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Another price table, such as the shipped one overridden by a user's
    /// ([`PriceTable::overridden_by`]).
    pub fn prices(mut self, prices: PriceTable) -> Self {
        self.prices = prices;
        self
    }

    /// The upper bound of the wait before the first retry, 1 second unless said; it doubles with
    /// every further one.
    pub fn first_wait(mut self, first_wait: Duration) -> Self {
        self.first_wait = first_wait;
        self
    }

    /// How long a batch waits for a further call before it is handed in, 1 second unless said, and the pause after the
    /// first look at it, 10 seconds unless said; the pauses grow to six times as much.
    pub fn batch_waits(mut self, quiet: Duration, look: Duration) -> Self {
        self.batch_waits = (quiet, look);
        self
    }

    /// Who opens the models of the provider `local`; without, there are none.
    pub fn local(mut self, models: &'a dyn LocalModels) -> Self {
        self.local = models;
        self
    }

    /// Whose keys are used, in place of those that the tables name.
    pub fn gate(mut self, gate: &'a dyn Gate) -> Self {
        self.gate = Some(gate);
        self
    }

    /// What interrupts the calls: that of the run. Interrupted, no call waits any longer for its turn, for a provider or
    /// for simulated time, and none is tried again; abandoned, those under way are dropped too. Both end in
    /// [`LlmError::Interrupted`](capo_core::llm::LlmError::Interrupted).
    pub fn control(mut self, control: Control) -> Self {
        self.control = control;
        self
    }

    /// Who is told when calls wait because a provider does not answer or asks for it.
    pub fn observer(mut self, observer: Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Builds the models. Roles with equal tables share one; models with the same provider, base
    /// URL, name and key share their limit of concurrent calls, the lowest that any of them states.
    ///
    /// # Errors
    ///
    /// The first table that does not read, or lacks a key.
    pub fn build(&self, models: &IndexMap<Role, Value>) -> Result<Models, BuildError> {
        let mut built: Vec<(ModelSpec, Rc<dyn Llm>)> = Vec::new();
        let mut endpoints = Endpoints::default();
        let mut result = Models::default();
        for (&role, table) in models {
            if role == Role::Embeddings {
                result.set(role, self.vectors(models, &mut endpoints)?);
                continue;
            }
            let spec = ModelSpec::parse(table).map_err(|message| BuildError::Spec { role, message })?;
            let model = match built.iter().find(|(other, _)| *other == spec) {
                Some((_, model)) => Rc::clone(model),
                None => match self.model(role, &spec, &mut endpoints)? {
                    Built::InProcess(model) => model,
                    Built::Http(client, _) => {
                        let batches = client.endpoint.wire.batches().cloned();
                        result.batches = result.batches.or(batches);
                        Rc::new(*client)
                    }
                },
            };
            result.set(role, Rc::clone(&model));
            built.push((spec, model));
        }
        Ok(result)
    }

    /// The model that makes vectors, of the table `[models.embeddings]`.
    ///
    /// # Errors
    ///
    /// When there is none, it does not read, its provider has no such models, or its key is missing.
    pub fn embedder(&self, models: &IndexMap<Role, Value>) -> Result<Embedder, BuildError> {
        let (spec, embed) = embedding(models)?;
        match self.single(Role::Embeddings, &spec)? {
            Built::Http(client, _) => Ok(Embedder::new(*client, embed)),
            Built::InProcess(_) => Err(no_vectors(&spec)),
        }
    }

    /// What makes vectors during a run.
    fn vectors(
        &self,
        models: &IndexMap<Role, Value>,
        endpoints: &mut Endpoints,
    ) -> Result<Rc<dyn Llm>, BuildError> {
        let (spec, embed) = table_of_vectors(models)?;
        match (self.model(Role::Embeddings, &spec, endpoints)?, embed) {
            (Built::Http(client, _), Some(embed)) => Ok(Rc::new(Embedder::new(*client, embed))),
            (Built::Http(..), None) => Err(no_vectors(&spec)),
            (Built::InProcess(model), _) => Ok(model),
        }
    }

    /// What models of a run still lack, table by table: keys and variables that are not set, and what is wrong with a
    /// table. Nothing is asked and no local model is opened.
    pub fn missing(&self, models: &IndexMap<Role, Value>) -> Vec<BuildError> {
        models
            .iter()
            .filter_map(|(&role, table)| match ModelSpec::parse(table) {
                Ok(spec) if spec.is_local() => None,
                Ok(spec) => self.single(role, &spec).err(),
                Err(message) => Some(BuildError::Spec { role, message }),
            })
            .collect()
    }

    /// One model, which shares nothing with others.
    pub(crate) fn single(&self, role: Role, spec: &ModelSpec) -> Result<Built, BuildError> {
        self.model(role, spec, &mut Endpoints::default())
    }

    /// What reaches a server that is asked for more than answers of a model. `server` says whose key it takes where
    /// the table does not, and errors call it by its title.
    pub(crate) fn server(&self, spec: &ModelSpec, server: &'static Provider) -> Result<Client, BuildError> {
        let role = Role::Rewriter;
        check_written(role, spec).map_err(|message| BuildError::Spec { role, message })?;
        let client = self.remote(role, spec, server, &mut Endpoints::default())?;
        Ok(Client {
            name: server.title.to_owned(),
            ..client
        })
    }

    /// What a model is asked over, in batches if it has a name to call it by there. `connecting` is told of connections
    /// that are slow to come about.
    fn wire(&self, in_batches: Option<String>, connecting: &Connecting) -> Result<Wire, BuildError> {
        if let Some(carrier) = self.gate.and_then(Gate::carrier) {
            return Ok(Wire::Carrier(carrier));
        }
        let http = http_client(self.gate.is_some(), connecting)?;
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(model) = in_batches {
            return Ok(Wire::Batches(Arc::new(Batcher::new(
                http,
                model,
                self.batch_waits,
            ))));
        }
        #[cfg(target_arch = "wasm32")]
        let _ = (in_batches, self.batch_waits);
        Ok(Wire::Http(http))
    }

    /// Refuses batches where they cannot be waited for.
    fn check_batch(&self) -> Result<(), String> {
        if cfg!(target_arch = "wasm32") {
            return Err("`batch` is for the command line: providers take no batches from a page".to_owned());
        }
        match self.gate {
            Some(_) => {
                Err("`batch` needs a key of your own: a shared key answers single calls alone".to_owned())
            }
            None => Ok(()),
        }
    }

    fn model(&self, role: Role, spec: &ModelSpec, endpoints: &mut Endpoints) -> Result<Built, BuildError> {
        let wrong = |message: String| BuildError::Spec { role, message };
        check_written(role, spec).map_err(wrong)?;
        let provider = spec.provider.get();
        let model = model_of(spec).map_err(wrong)?;
        match provider.access() {
            Access::InProcess(start) => {
                let plan = Plan {
                    name: format!("{}/{model}", provider.name),
                    model,
                    seed: spec.seed.unwrap_or(self.seed),
                    latency: spec.latency.unwrap_or(0.0),
                    limiter: endpoints
                        .get([provider.name, "", model, "", ""], spec.most_calls(), |_| {
                            Ok(Wire::Nowhere)
                        })?
                        .limiter
                        .clone(),
                    price: spec.price,
                    control: self.control.clone(),
                };
                start(plan).map(Built::InProcess).map_err(wrong)
            }
            Access::Local => {
                let name = format!("{}/{model}", provider.name);
                let model = self.local.open(&name, spec).map_err(|error| match error {
                    LocalError::Table(message) => wrong(message),
                    LocalError::Device(message) => BuildError::Device { role, message },
                })?;
                Ok(Built::InProcess(model))
            }
            Access::Http { list, .. } => {
                let client = self.remote(role, spec, provider, endpoints)?;
                Ok(Built::Http(Box::new(client), *list))
            }
        }
    }

    /// What reaches a server by HTTP. `provider` says whose key it takes where the table does not.
    fn remote(
        &self,
        role: Role,
        spec: &ModelSpec,
        provider: &'static Provider,
        endpoints: &mut Endpoints,
    ) -> Result<Client, BuildError> {
        let wrong = |message: String| BuildError::Spec { role, message };
        let model = model_of(spec).map_err(wrong)?;
        let Access::Http {
            connect,
            browser_headers,
            ..
        } = spec.provider.get().access()
        else {
            return Err(wrong(format!(
                "provider `{}` is no server",
                spec.provider.get().name
            )));
        };
        if spec.batch {
            self.check_batch().map_err(wrong)?;
        }
        let account = self.account(role, spec, provider, model)?;
        let mut secrets: Vec<Secret> = account.key.iter().cloned().collect();
        let mut headers = self
            .headers(spec, &account.base_url, &mut secrets)
            .map_err(wrong)?;
        if cfg!(target_arch = "wasm32") {
            for (name, value) in *browser_headers {
                headers.insert(*name, HeaderValue::from_static(value));
            }
        }
        let variable = account.variable.as_deref().unwrap_or_default();
        let most = spec.most_calls();
        let most = self.gate.map_or(most, |gate| most.min(gate.most_calls()));
        // Single calls of the same model keep a limit of their own.
        let way = if spec.batch { "batch" } else { "" };
        let place = [provider.name, &account.base_url, model, variable, way];
        let in_batches = spec.batch.then(|| format!("{}/{model}", provider.name));
        let endpoint = endpoints.get(place, most, |connecting| self.wire(in_batches, connecting))?;
        let client = self.client(spec, model, *connect, account, endpoint);
        Ok(Client {
            headers,
            redactor: Redactor::new(&secrets),
            ..client
        })
    }

    fn client(
        &self,
        spec: &ModelSpec,
        model: &str,
        connect: Connect,
        account: Account,
        endpoint: Rc<Endpoint>,
    ) -> Client {
        let provider = spec.provider.get();
        let place = host(&account.base_url);
        // People know a model by where the study asks it, not by the gate before it.
        let named = spec.base_url.as_deref().or(provider.base_url);
        let named = named.filter(|_| self.gate.is_some());
        let named = named.and_then(|address| base_url(address).ok());
        let known = named.map_or_else(|| place.clone(), |address| host(&address));
        let price = spec.price.or(account.price);
        let notices = Notices {
            observer: self.observer.clone(),
            model: format!("{}/{model}", provider.name),
            // A server that only its address tells from others is called by it.
            provider: provider.base_url.map_or(&*known, |_| provider.name).to_owned(),
            host: place,
            is_blind: cfg!(target_arch = "wasm32") || self.gate.is_some(),
        };
        Client {
            name: format!("{}/{model}", provider.name),
            model: model.to_owned(),
            connect,
            account,
            headers: HeaderMap::new(),
            rewrite_form: spec.rewrite_form.unwrap_or_default(),
            asking: Asking::of(spec, model),
            timeout: Duration::from_secs_f64(spec.timeout_seconds.unwrap_or(120.0)),
            backoff: Backoff {
                retries: spec.retries.unwrap_or(backoff::RETRIES),
                first_wait: self.first_wait,
            },
            abort_after: spec.abort_after.map_or(50, u32::from),
            endpoint,
            call_price: CallPrice::of(provider, model, price, &self.prices).with_share(spec.share_of_price()),
            redactor: Redactor::default(),
            turns: RefCell::default(),
            control: self.control.clone(),
            notices,
        }
    }

    fn account(
        &self,
        role: Role,
        spec: &ModelSpec,
        provider: &'static Provider,
        model: &str,
    ) -> Result<Account, BuildError> {
        let wrong = |message: String| BuildError::Spec { role, message };
        let named = spec.api_key_env.as_deref();
        let address = spec
            .base_url
            .as_deref()
            .or(provider.base_url)
            .ok_or_else(|| wrong(format!("provider `{}` needs a `base_url`", provider.name)))?;
        let base_url = base_url(address).map_err(wrong)?;
        if let Some(gate) = self.gate {
            let route = gate.route(provider, &base_url, model).map_err(wrong)?;
            return Ok(Account {
                key: Some(route.key),
                variable: Some("the shared key".to_owned()),
                base_url: route.base_url,
                price: route.price,
            });
        }
        let (variable, required) = match (named, provider.key) {
            _ if self.keys.are_added_at(&base_url) => return Ok(Account::without_key(base_url)),
            // A key that the study asks for is wanted whatever the provider needs.
            (Some(named), _) => (named, true),
            (None, Key::Required(usual)) => (usual, true),
            (None, Key::Optional(usual)) => (usual, false),
            (None, Key::None) => return Ok(Account::without_key(base_url)),
        };
        let key = self
            .keys
            .get(variable, &origin(&base_url))
            .map(|key| key.trim().to_owned());
        match key.filter(|key| !key.is_empty()) {
            Some(key) => {
                if !key.chars().all(|c| c.is_ascii_graphic()) {
                    let message = format!("the key in {variable} has characters no key can have");
                    return Err(wrong(message));
                }
                let (key, variable) = (Some(Secret::new(key)), Some(variable.to_owned()));
                Ok(Account {
                    key,
                    variable,
                    base_url,
                    price: None,
                })
            }
            None if required => Err(BuildError::MissingKey {
                role,
                provider: provider.name,
                variable: variable.to_owned(),
            }),
            None => Ok(Account::without_key(base_url)),
        }
    }

    /// The study's headers; values from variables are added to `secrets`.
    fn headers(
        &self,
        spec: &ModelSpec,
        base_url: &str,
        secrets: &mut Vec<Secret>,
    ) -> Result<HeaderMap, String> {
        let mut sent = HeaderMap::new();
        for (name, header) in headers(spec)? {
            let value = match header {
                Header::Written(value) => value,
                Header::Variable(variable) => {
                    let value = self.keys.get(variable, &origin(base_url));
                    let value = value.filter(|value| !value.trim().is_empty());
                    let value =
                        value.ok_or_else(|| format!("the header `{name}` needs {variable}: set it"))?;
                    secrets.push(Secret::new(value.clone()));
                    let value: Result<HeaderValue, _> = value.trim().parse();
                    let mut value =
                        value.map_err(|_| format!("the value of the header `{name}` cannot be sent"))?;
                    value.set_sensitive(true);
                    value
                }
            };
            let name = HeaderName::try_from(name).map_err(|_| no_header(name))?;
            sent.insert(name, value);
        }
        Ok(sent)
    }
}

/// The model that a table names, or its provider's usual one.
fn model_of(spec: &ModelSpec) -> Result<&str, String> {
    let provider = spec.provider.get();
    spec.model
        .as_deref()
        .or(provider.model)
        .ok_or_else(|| format!("provider `{}` needs a `model`", provider.name))
}

/// A model, and what else its provider can be asked.
pub(crate) enum Built {
    InProcess(Rc<dyn Llm>),
    Http(Box<Client>, List),
}

/// What is shared by provider, base URL, model, the variable of the key and the way of asking: limits and refusals are
/// a key's.
#[derive(Default)]
struct Endpoints(IndexMap<[String; 5], Rc<Endpoint>>);

impl Endpoints {
    fn get(
        &mut self,
        place: [&str; 5],
        most: usize,
        wire: impl FnOnce(&Connecting) -> Result<Wire, BuildError>,
    ) -> Result<Rc<Endpoint>, BuildError> {
        let endpoint = match self.0.entry(place.map(str::to_owned)) {
            Entry::Occupied(known) => Rc::clone(known.get()),
            Entry::Vacant(place) => {
                let connecting = Connecting::default();
                let endpoint = Endpoint {
                    limiter: Limiter::new(most),
                    breaker: Breaker::default(),
                    trouble: Trouble::default(),
                    wire: wire(&connecting)?,
                    connecting,
                };
                Rc::clone(place.insert(Rc::new(endpoint)))
            }
        };
        endpoint.limiter.at_most(most);
        Ok(endpoint)
    }
}

/// A client of our own for each place: a pool of connections must not outlive the runtime that drives them.
fn http_client(directly: bool, connecting: &Connecting) -> Result<reqwest::Client, BuildError> {
    let client = reqwest::Client::builder();
    // No user agent from a page: servers that list the headers they take from pages do not list
    // it. A redirect could carry a key to another host; a page cannot forbid the browser to follow.
    #[cfg(not(target_arch = "wasm32"))]
    let client = client
        .user_agent(concat!("capo/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        // Nobody waits a whole `timeout_seconds` to hear that there is nobody.
        .connect_timeout(connecting::PATIENCE)
        .connector_layer(tower::util::MapFutureLayer::new({
            let connecting = connecting.clone();
            move |connection| connecting::counted(connecting.clone(), connection)
        }));
    // A gate is on this machine, and what it is asked is for no proxy of the system's.
    #[cfg(not(target_arch = "wasm32"))]
    let client = if directly { client.no_proxy() } else { client };
    #[cfg(target_arch = "wasm32")]
    let _ = (directly, connecting);
    client
        .build()
        .map_err(|error| BuildError::Http(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use capo_core::arena::Models as _;
    use capo_core::llm::{ChatRequest, Message, RewriteForm};
    use futures::executor::block_on;
    use serde_json::json;

    use super::*;

    const KEY: &str = "sk-test-0123456789";

    fn build_one(table: Value) -> Result<Models, BuildError> {
        let keys = BTreeMap::from([
            ("OPENAI_API_KEY".to_owned(), KEY.to_owned()),
            ("BROKEN".to_owned(), "sk-\u{1F511}".to_owned()),
            ("EMPTY".to_owned(), " ".to_owned()),
        ]);
        build(&IndexMap::from([(Role::Agent, table)]), &keys, 7)
    }

    fn refused(table: Value) -> String {
        let message = build_one(table).unwrap_err().to_string();
        assert!(!message.contains(KEY), "{message}");
        message
    }

    fn openai(more: Value) -> Value {
        let mut table = json!({ "provider": "openai", "model": "m" });
        if let (Some(table), Value::Object(more)) = (table.as_object_mut(), more) {
            table.extend(more);
        }
        table
    }

    #[test]
    fn a_missing_key_names_variable_and_provider() {
        assert_eq!(
            refused(json!({ "provider": "anthropic", "model": "m" })),
            "models.agent: provider `anthropic` needs a key: set ANTHROPIC_API_KEY, or name \
             another variable with `api_key_env`"
        );
        assert!(refused(openai(json!({ "api_key_env": "EMPTY" }))).contains("set EMPTY"));
        assert!(refused(openai(json!({ "api_key_env": "BROKEN" }))).contains("BROKEN"));
    }

    #[test]
    fn a_key_written_into_the_study_is_refused_and_not_repeated() {
        let message = refused(openai(json!({ "api_key_env": KEY })));
        assert!(message.contains("name of a variable"), "{message}");
        for header in ["Authorization", "x-auth-token", "ocp-apim-subscription-key"] {
            let message = refused(openai(json!({ "headers": { header: KEY } })));
            assert!(message.contains("carries a key"), "{message}");
        }
        let url = format!("https://user:{KEY}@host/v1");
        assert!(refused(openai(json!({ "base_url": url }))).contains("no credentials"));
        let url = format!("https://host/v1?key={KEY}");
        assert!(refused(openai(json!({ "base_url": url }))).contains("no credentials"));
    }

    #[test]
    fn what_a_run_still_lacks_is_told_as_a_whole() {
        let tables = IndexMap::from([
            (Role::Agent, json!({ "provider": "anthropic", "model": "m" })),
            (
                Role::Judge,
                openai(json!({ "headers": { "x-gate": { "env": "GATE" } } })),
            ),
            (
                Role::Critic,
                json!({ "provider": "gemini", "model": "gemini-2.5-pro", "reasoning_effort": "none" }),
            ),
            (Role::User, json!({ "provider": "simulated" })),
            (Role::Rewriter, json!({ "provider": "local", "model": "nowhere" })),
            (Role::Embeddings, openai(json!({ "api_key_env": "OF_VECTORS" }))),
        ]);
        let keys = BTreeMap::from([("OPENAI_API_KEY".to_owned(), KEY.to_owned())]);
        let missing = Builder::new(&keys).missing(&tables);
        let said: Vec<String> = missing.iter().map(ToString::to_string).collect();
        assert_eq!(said.len(), 4, "{said:?}");
        for (said, words) in said.iter().zip([
            "set ANTHROPIC_API_KEY",
            "needs GATE",
            "models.critic: `reasoning_effort`",
            "set OF_VECTORS",
        ]) {
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn where_the_server_adds_the_key_none_is_wanted() {
        struct AddedAt(&'static str);
        impl Keys for AddedAt {
            fn get(&self, _: &str, _: &str) -> Option<String> {
                None
            }

            fn are_added_at(&self, base_url: &str) -> bool {
                base_url == self.0
            }
        }
        let table = |base_url: &str| openai(json!({ "base_url": base_url, "api_key_env": "CAPO_TOKEN" }));
        let missing = |base_url| {
            let tables = IndexMap::from([(Role::Agent, table(base_url))]);
            Builder::new(&AddedAt("https://capo.example/api/proxy/openai"))
                .missing(&tables)
                .len()
        };
        assert_eq!(missing("https://capo.example/api/proxy/openai"), 0);
        assert_eq!(missing("https://elsewhere.example/api/proxy/openai"), 1);
    }

    #[test]
    fn impossible_tables_are_refused() {
        assert!(refused(json!({ "provider": "openai" })).contains("needs a `model`"));
        let table = json!({ "provider": "openai-compatible", "model": "m" });
        assert!(refused(table).contains("needs a `base_url`"));
        for base_url in ["nowhere", "ftp://host", "http://"] {
            assert!(refused(openai(json!({ "base_url": base_url }))).contains("`base_url`"));
        }
        let message = refused(openai(json!({ "headers": { "a b": "c" } })));
        assert!(message.contains("no name for a header"), "{message}");
        let message = refused(openai(json!({ "headers": { "x-gate": { "env": "GATE" } } })));
        assert!(message.contains("needs GATE"), "{message}");
    }

    #[test]
    fn simulated_models_take_the_seed_of_the_study_unless_they_state_one() {
        let answer = |seed, table| {
            let models = build(&IndexMap::from([(Role::Agent, table)]), &BTreeMap::new(), seed);
            let model = models.unwrap().get(Role::Agent).unwrap();
            assert_eq!(model.name(), "simulated/sim-medium");
            let answer = block_on(model.chat(ChatRequest::new(vec![Message::user("Hello?")]))).unwrap();
            (answer.usage.seconds, answer.usage.usd)
        };
        let simulated = json!({ "provider": "simulated" });
        let first = answer(1, simulated.clone());
        assert_eq!(first, answer(1, simulated.clone()));
        assert_ne!(first.0, answer(2, simulated).0, "another seed, another luck");
        let stated = json!({ "provider": "simulated", "seed": 1, "price": { "input": 0, "output": 0 } });
        assert_eq!(answer(2, stated), (first.0, Some(0.0)));
        let unknown = json!({ "provider": "simulated", "model": "sim-tiny" });
        assert!(refused(unknown).contains("sim-tiny"));
    }

    #[test]
    fn a_model_is_asked_for_rewrites_as_its_table_says() {
        let form = |table| {
            build_one(table)
                .unwrap()
                .get(Role::Rewriter)
                .unwrap()
                .rewrite_form()
        };
        assert_eq!(form(openai(json!({}))), RewriteForm::Instructed);
        assert_eq!(
            form(openai(json!({ "rewrite_form": "learned" }))),
            RewriteForm::Learned
        );
        let simulated = json!({ "provider": "simulated", "rewrite_form": "learned" });
        assert!(refused(simulated).contains("`rewrite_form` means nothing for provider `simulated`"));
    }

    #[test]
    fn roles_fall_back_and_a_missing_one_says_so() {
        let models = build_one(openai(json!({}))).unwrap();
        for role in Role::ALL {
            let name = models.get(role).ok().map(|model| model.name().to_owned());
            let writes = role != Role::Embeddings;
            assert_eq!(name, writes.then(|| "openai/m".to_owned()), "{role}");
        }
        let empty = Models::default();
        let missing = "no model for the role `judge`: add a table [models.judge]";
        assert_eq!(empty.get(Role::Judge).err().unwrap().to_string(), missing);
        let error = block_on(empty.model(Role::Judge).chat(ChatRequest::default())).unwrap_err();
        assert_eq!(error.to_string(), missing);
    }
}
