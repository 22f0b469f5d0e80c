//! Calls that are handed to a provider many at a time, at half the price, and answered within a day.
//!
//! A [`Batcher`] stands where HTTP does for others: it takes the requests that the provider library makes, and answers
//! each as its own reply would have been, so that failures, prices and further tries are the usual ones. Nobody drives a
//! batch but those who wait for it. What is durable of it, and why, [`Batches`] says.

mod again;
mod outcome;

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use capo_core::address::host;
use capo_core::batches::Batches;
use capo_core::error_chain::with_causes;
use capo_core::ids::sha256_hex;
use capo_core::llm::FailureKind;
use capo_core::notice::{BatchUnderWay, Notice, Wait};
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, StreamExt};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use indexmap::IndexMap;
use rig_core::http_client::Result as Answered;
use rig_reqwest::reqwest;
use serde_json::{Value, json};

pub(crate) use self::outcome::Stopped;
use self::outcome::{Outcome, UPLOADED, called, cancelled, expired, failed, refusal, reply, status_of};
use crate::limiter::MOST_IN_BATCH;
use crate::time;

/// The most bytes that the calls of a batch ask: `OpenAI` takes 200 MB, Anthropic 256 MB.
const MOST_ASKED: usize = 100 << 20;

/// Most bytes of a batch's answers that are read.
const MOST_ANSWERED: usize = 1 << 30;

/// How long one request about a batch may take, with all that it carries.
const PATIENCE: Duration = Duration::from_mins(10);

/// How many times longer than the first the pauses between looks at a batch become.
const LONGEST_PAUSE: u32 = 6;

/// What `OpenAI` answers the calls of a batch as.
const ENDPOINT: &str = "/v1/chat/completions";

/// Hands requests in together.
pub(crate) struct Batcher {
    client: Arc<BatchClient>,
    state: Mutex<State>,
}

/// What every batch needs.
struct BatchClient {
    http: reqwest::Client,
    /// Provider and model, for people.
    model: String,
    quiet: Duration,
    look: Duration,
    batches: Batches,
}

#[derive(Default)]
struct State {
    /// The last batch, which may still take requests.
    open: Option<(Arc<Mutex<Collected>>, Running)>,
    /// Those of an earlier process, by their ids.
    earlier: HashMap<String, Running>,
}

/// A batch on its way to its answers, driven by all who wait for it.
type Running = Shared<BoxFuture<'static, Arc<Answers>>>;

/// The requests of a batch by what tells them apart.
#[derive(Default)]
struct Collected {
    requests: IndexMap<String, Bytes>,
    bytes: usize,
    is_closed: bool,
}

/// Where, as whom and in whose form a provider is asked about batches.
#[derive(Clone)]
struct BatchApi {
    is_anthropic: bool,
    /// What the addresses of batches and files begin with.
    root: String,
    headers: HeaderMap,
}

/// What came of a batch.
struct Answers {
    given: Mutex<HashMap<String, Outcome>>,
    /// What all others hear.
    rest: Outcome,
    /// Whether the provider is done with it: else it may answer later, and is paid for.
    has_ended: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Batcher {
    /// Batches of a model that wait `quiet` for a further request and are looked at after `look` and again.
    pub(crate) fn new(http: reqwest::Client, model: String, (quiet, look): (Duration, Duration)) -> Self {
        let batches = Batches::default();
        let client = BatchClient {
            http,
            model,
            quiet,
            look,
            batches,
        };
        Self {
            client: Arc::new(client),
            state: Mutex::default(),
        }
    }

    pub(crate) fn batches(&self) -> &Batches {
        &self.client.batches
    }

    /// The reply to a request, from the batch that it is in. `draw` tells it from others with the same words.
    pub(crate) async fn answer(&self, request: Request<Bytes>, draw: u64) -> Answered<Response<Bytes>> {
        let (parts, body) = request.into_parts();
        let key = format!("{:.32}-{draw:x}", sha256_hex(&body));
        let api = BatchApi::of(&parts);
        if let Some(earlier) = self.earlier(&key, &api) {
            let answers = earlier.await;
            let answer = lock(&answers.given).remove(&key);
            match answer {
                Some(answer) if answer.is_success() => return answer.reply(),
                // What failed there is asked anew.
                _ if answers.has_ended => {}
                _ => return answers.rest.reply(),
            }
        }
        let running = self.join(&key, body, api);
        let answers = running.await;
        let answer = lock(&answers.given).remove(&key);
        answer.as_ref().unwrap_or(&answers.rest).reply()
    }

    /// The batch of an earlier process that a request is in.
    fn earlier(&self, key: &str, api: &BatchApi) -> Option<Running> {
        let (id, calls) = self.client.batches.claim(key)?;
        let mut state = lock(&self.state);
        let running = state.earlier.entry(id).or_insert_with_key(|id| {
            let (client, api, id) = (Arc::clone(&self.client), api.clone(), id.clone());
            let waiting = async move { Arc::new(client.wait_again(&api, &id, calls).await) };
            waiting.boxed().shared()
        });
        Some(running.clone())
    }

    /// Puts a request into the batch that is being collected.
    fn join(&self, key: &str, body: Bytes, api: BatchApi) -> Running {
        let mut state = lock(&self.state);
        let has_room = |(open, _): &(Arc<Mutex<Collected>>, Running)| lock(open).has_room(key, body.len());
        let standing = state.open.clone().filter(has_room);
        let (open, running) = standing.unwrap_or_else(|| {
            let open: Arc<Mutex<Collected>> = Arc::default();
            let running = Arc::clone(&self.client).work(Arc::clone(&open), api);
            (open, running.boxed().shared())
        });
        lock(&open).add(key, body);
        state.open = Some((open, running.clone()));
        running
    }
}

impl Collected {
    /// Whether a request may come in beside the others, none of which is the same.
    fn has_room(&self, key: &str, bytes: usize) -> bool {
        let is_full = self.requests.len() == MOST_IN_BATCH || self.bytes + bytes > MOST_ASKED;
        !self.is_closed && !is_full && !self.requests.contains_key(key)
    }

    fn add(&mut self, key: &str, body: Bytes) {
        self.bytes += body.len();
        self.requests.insert(key.to_owned(), body);
    }

    /// Takes no further request where none came since there were so `many`.
    fn close_after(&mut self, many: usize) -> bool {
        self.is_closed = self.requests.len() == many;
        self.is_closed
    }
}

impl BatchClient {
    /// Collects requests until no further one comes, hands them in and waits for the answers.
    async fn work(self: Arc<Self>, open: Arc<Mutex<Collected>>, api: BatchApi) -> Arc<Answers> {
        loop {
            let many = lock(&open).requests.len();
            time::sleep(self.quiet).await;
            if lock(&open).close_after(many) {
                break;
            }
        }
        let requests = std::mem::take(&mut lock(&open).requests);
        loop {
            let answers = match self.hand_in(&api, &requests).await {
                Ok(id) => self.wait(&api, &id, requests.len(), self.look).await,
                Err(refusal) => Answers::none(refusal, false),
            };
            if !answers.found_no_room() || !self.batches.are_under_way() {
                return Arc::new(answers);
            }
            let why = "as many tokens wait in batches as may";
            self.tell(&api, FailureKind::RateLimit, why.to_owned(), self.look);
            while self.batches.are_under_way() {
                time::sleep(self.look).await;
            }
        }
    }

    /// Hands a batch in and notes it. Returns its id. Where the provider lists its batches it is noted before as well, by
    /// what tells in that list whether it took this one, and handed in once this is written.
    async fn hand_in(&self, api: &BatchApi, requests: &IndexMap<String, Bytes>) -> Result<String, Outcome> {
        let _handing_in = self.batches.hand_in();
        let keys: Vec<String> = requests.keys().cloned().collect();
        let (name, asked) = if api.is_anthropic {
            let name = self.name_after_latest(api, &keys[0]).await?;
            let asked = requests.iter().map(|(id, body)| {
                let params = parsed(body);
                json!({ "custom_id": id, "params": params })
            });
            (name, json!({ "requests": asked.collect::<Vec<_>>() }))
        } else {
            let lines = requests.iter().map(|(id, body)| {
                let body = parsed(body);
                json!({ "custom_id": id, "method": "POST", "url": ENDPOINT, "body": body }).to_string()
            });
            let (kind, form) = form(&lines.collect::<Vec<_>>().join("\n"));
            let file = self
                .ask(api, Method::POST, "/files", Some((&*kind, form)))
                .await?;
            let file = identifier(&parsed(&file)["id"])?;
            let name = format!("{UPLOADED}{file}");
            let asked = json!({ "input_file_id": file, "endpoint": ENDPOINT, "completion_window": "24h" });
            (Some(name), asked)
        };
        if let Some(name) = &name {
            self.batches.note(name, keys.clone());
        }
        if !self.batches.written().await {
            let why = "the journal cannot be written, so the batch was not handed in";
            return Err(Outcome::Stopped(why.to_owned()));
        }
        let asked = Some(("application/json", asked.to_string().into()));
        let taken = self.ask(api, Method::POST, "/batches", asked).await;
        let taken = taken.and_then(|said| identifier(&parsed(&said)["id"]));
        if let Some(name) = name
            && taken.as_ref().is_err_and(Outcome::is_doubtful)
        {
            // Whoever asks again finds it if it was taken all the same.
            self.batches.recall(&name, &keys);
        }
        let id = taken?;
        self.batches.note(&id, keys);
        Ok(id)
    }

    /// Looks at a batch until it is answered, at first after `pause`.
    async fn wait(&self, api: &BatchApi, id: &str, calls: usize, pause: Duration) -> Answers {
        let watched = self.watch(api, id, calls, pause).await;
        watched.unwrap_or_else(|refusal| Answers::none(refusal.of(id), false))
    }

    /// The same, or why it could not be looked at.
    async fn watch(
        &self,
        api: &BatchApi,
        id: &str,
        calls: usize,
        pause: Duration,
    ) -> Result<Answers, Outcome> {
        self.batches.wait_for(BatchUnderWay {
            model: self.model.clone(),
            id: id.to_owned(),
            calls,
        });
        let answers = self.insist(api, id, pause, || self.look_at(api, id)).await;
        self.batches.ended(id);
        answers
    }

    /// Looks until there is something, at first after `pause`. What passes is waited for, however long it takes.
    async fn insist<T, Looked>(
        &self,
        api: &BatchApi,
        id: &str,
        mut pause: Duration,
        look: impl Fn() -> Looked,
    ) -> Result<T, Outcome>
    where
        Looked: Future<Output = Result<Option<T>, Outcome>>,
    {
        let mut is_told = false;
        loop {
            time::sleep(pause).await;
            pause = (2 * pause).clamp(self.look, LONGEST_PAUSE * self.look);
            let looked = look().await;
            if looked.is_ok() && std::mem::take(&mut is_told) {
                let (model, host) = (self.model.clone(), host(&api.root));
                self.batches.tell(Notice::Answered { model, host });
            }
            match looked {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => {}
                Err(refusal) if refusal.passes() => {
                    if !std::mem::replace(&mut is_told, true) {
                        let (kind, why) = refusal.in_short();
                        self.tell(api, kind, format!("{}: {why}", called(id)), pause);
                    }
                }
                Err(refusal) => return Err(refusal),
            }
        }
    }

    /// Tells why a batch is waited for.
    fn tell(&self, api: &BatchApi, kind: FailureKind, message: String, pause: Duration) {
        let provider = self.model.split('/').next().unwrap_or_default();
        self.batches.tell(Notice::Waiting(Wait {
            model: self.model.clone(),
            provider: provider.to_owned(),
            host: host(&api.root),
            kind,
            message,
            seconds: pause.as_secs_f64(),
            is_asked: false,
            next_try: None,
        }));
    }

    /// The answers of a batch, if it has ended.
    async fn look_at(&self, api: &BatchApi, id: &str) -> Result<Option<Answers>, Outcome> {
        let batch = parsed(&self.get(api, &format!("/batches/{id}")).await?);
        let status = if api.is_anthropic {
            "processing_status"
        } else {
            "status"
        };
        let mut files = Vec::new();
        // A request that no line answers was worked on and may be paid for, as an answer that does not read.
        let mut rest: Outcome = match batch[status].as_str() {
            // Not where `results_url` leads, which may be another host: the key goes along.
            Some("ended") => {
                files.push(format!("/batches/{id}/results"));
                Response::new(Bytes::new()).into()
            }
            Some("completed") => Response::new(Bytes::new()).into(),
            Some("expired") => expired().into(),
            Some("cancelled") => cancelled(),
            Some("failed") => failed(&batch["errors"]["data"][0]),
            Some(_) => return Ok(None),
            // Such as the page of something in between.
            None => return Err(Outcome::Unsent("the reply tells nothing of a batch".to_owned())),
        };
        for file in ["output_file_id", "error_file_id"] {
            if !batch[file].is_null() {
                files.push(format!("/files/{}/content", identifier(&batch[file])?));
            }
        }
        let mut given = HashMap::new();
        for file in files {
            let lines = match self.get(api, &file).await {
                Err(Outcome::Said(reply)) if reply.status() == StatusCode::NOT_FOUND => {
                    let why = format!("the provider keeps the answers of batch {id} no longer");
                    rest = Outcome::Stopped(why);
                    continue;
                }
                lines => lines?,
            };
            let lines = lines.split(|byte| *byte == b'\n').map(parsed);
            given.extend(lines.filter_map(|line| api.answer(&line)));
        }
        Ok(Some(Answers {
            given: Mutex::new(given),
            ..Answers::none(rest, true)
        }))
    }

    async fn get(&self, api: &BatchApi, address: &str) -> Result<Bytes, Outcome> {
        self.ask(api, Method::GET, address, None).await
    }

    /// Asks the provider about batches or files.
    async fn ask(
        &self,
        api: &BatchApi,
        method: Method,
        address: &str,
        sent: Option<(&str, Bytes)>,
    ) -> Result<Bytes, Outcome> {
        let request = self.http.request(method, format!("{}{address}", api.root));
        let mut request = request.headers(api.headers.clone());
        if let Some((kind, body)) = sent {
            request = request.header(CONTENT_TYPE, kind).body(body);
        }
        let unsent = |error: reqwest::Error| Outcome::Unsent(with_causes(&error));
        let asked = async {
            let came = request.send().await.map_err(unsent)?;
            let (status, headers) = (came.status(), came.headers().clone());
            let mut body = BytesMut::new();
            let mut chunks = pin!(came.bytes_stream());
            while let Some(chunk) = chunks.next().await {
                body.extend_from_slice(&chunk.map_err(unsent)?);
                if body.len() > MOST_ANSWERED {
                    let why = "the answers of the batch are larger than 1 GiB, which is not read";
                    return Err(Outcome::from(refusal(StatusCode::PAYLOAD_TOO_LARGE, why)));
                }
            }
            if status.is_success() {
                return Ok(body.freeze());
            }
            let mut said = reply(status, body.freeze());
            *said.headers_mut() = headers;
            Err(Outcome::from(said))
        };
        let late = |_| {
            let why = "no answer within 10 minutes";
            Err(Outcome::from(refusal(StatusCode::REQUEST_TIMEOUT, why)))
        };
        time::timeout(PATIENCE, asked).await.unwrap_or_else(late)
    }
}

impl BatchApi {
    /// As a request is made that is handed in.
    fn of(parts: &Parts) -> Self {
        let address = parts.uri.to_string();
        // Anthropic's batches stand below the address of single messages, `OpenAI`'s beside it.
        let beside = address.strip_suffix("/chat/completions");
        let mut headers = parts.headers.clone();
        headers.remove(CONTENT_TYPE);
        headers.remove(CONTENT_LENGTH);
        Self {
            is_anthropic: beside.is_none(),
            root: beside.unwrap_or(&address).to_owned(),
            headers,
        }
    }

    /// What a line of answers says: to which request, and what its own reply would have been. Nothing if it does not
    /// read.
    fn answer(&self, line: &Value) -> Option<(String, Outcome)> {
        let (error, result) = (&line["error"], &line["result"]);
        let of = |status, body: &Value| Some(Outcome::from(reply(status, body.to_string().into())));
        let answer = if self.is_anthropic {
            match result["type"].as_str() {
                Some("succeeded") => of(StatusCode::OK, &result["message"]),
                Some("errored") => of(status_of(&result["error"]), &result["error"]),
                Some("expired") => Some(expired().into()),
                Some("canceled") => Some(cancelled()),
                // It was worked on, and may be paid for.
                _ => of(StatusCode::OK, &Value::Null),
            }
        } else {
            match error["code"].as_str() {
                Some("batch_expired") => Some(expired().into()),
                Some("batch_cancelled") => Some(cancelled()),
                Some(_) => of(StatusCode::INTERNAL_SERVER_ERROR, &json!({ "error": error })),
                None => {
                    let status = u16::try_from(line["response"]["status_code"].as_u64()?).ok()?;
                    of(StatusCode::from_u16(status).ok()?, &line["response"]["body"])
                }
            }
        };
        Some((line["custom_id"].as_str()?.to_owned(), answer?))
    }
}

impl Answers {
    fn none(rest: Outcome, has_ended: bool) -> Self {
        let given = Mutex::default();
        Self {
            given,
            rest,
            has_ended,
        }
    }

    /// Whether the provider did not begin to work on it, for as much waits there as may.
    fn found_no_room(&self) -> bool {
        let is_refused =
            |reply: &Response<Bytes>| self.has_ended && reply.status() == StatusCode::TOO_MANY_REQUESTS;
        matches!(&self.rest, Outcome::Said(reply) if is_refused(reply))
    }
}

/// A JSON text; null if it is none.
fn parsed(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap_or_default()
}

/// An id as it may stand in an address.
fn identifier(id: &Value) -> Result<String, Outcome> {
    let is_plain = |id: &&str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        !id.is_empty() && id.chars().all(plain)
    };
    let id = id.as_str().filter(is_plain).map(str::to_owned);
    let nameless = || refusal(StatusCode::BAD_GATEWAY, "the reply names no batch or file");
    id.ok_or_else(|| Outcome::from(nameless()))
}

/// The form that uploads the lines of a batch: its type and itself.
fn form(lines: &str) -> (String, Bytes) {
    let boundary = format!("capo-{:.32}", sha256_hex(lines));
    let form = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"batch.jsonl\"\r\n\
         Content-Type: application/jsonl\r\n\r\n{lines}\r\n--{boundary}--\r\n"
    );
    (format!("multipart/form-data; boundary={boundary}"), form.into())
}
