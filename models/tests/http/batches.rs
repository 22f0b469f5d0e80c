//! Calls that are handed in together: what is sent, how answers come back, and what a later process finds.

use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use capo_core::arena::Models as _;
use capo_core::batches::Batches;
use capo_core::control::Control;
use capo_core::llm::{ChatRequest, ChatResponse, FailureKind, Llm, LlmError, Message, Role};
use capo_core::notice::Notice;
use capo_models::prices::PriceTable;
use futures::future::{Either, join_all, select};
use serde_json::{Value, json};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::server::{KEY, SUBJECTS, Subject, Wire, models_of};

const BOTH: [Subject; 2] = [SUBJECTS[0], SUBJECTS[1]];

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Answered,
    Refused,
    Expired,
    Cancelled,
    /// The line about it is cut.
    Cut,
}

/// A provider of batches, which are worked on until they may end.
struct Provider {
    subject: Subject,
    /// By the number of the batch and of the request in it, from 0.
    fate: fn(usize, usize) -> Fate,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    uploaded: Vec<Value>,
    uploads: usize,
    batches: Vec<Vec<Value>>,
    /// The files of the calls of each batch.
    files: Vec<Value>,
    /// The status with which it is not said that a batch was taken.
    silence: Option<u16>,
    is_slow: bool,
    /// How long it takes to be answered that a batch is taken.
    taking: Duration,
    /// What looks at batches get in place of what they ask for.
    refusal: Option<(u16, &'static str)>,
    /// What is said of the batch of this id.
    said: Option<(&'static str, u16, Value)>,
    /// Whether a gateway that lists no batches is in front of it.
    is_unlisted: bool,
    /// The batches that were looked at.
    looked: Vec<String>,
}

impl Provider {
    async fn start(subject: Subject, fate: fn(usize, usize) -> Fate) -> (MockServer, Arc<Self>) {
        let server = MockServer::start().await;
        let provider = Arc::new(Self {
            subject,
            fate,
            state: Mutex::default(),
        });
        let answering = Arc::clone(&provider);
        Mock::given(any())
            .respond_with(move |request: &Request| answering.respond(request))
            .mount(&server)
            .await;
        (server, provider)
    }

    fn respond(&self, request: &Request) -> ResponseTemplate {
        let key = match self.subject.wire {
            Wire::Anthropic => request.headers.get("x-api-key"),
            _ => request.headers.get("authorization"),
        };
        if !key.is_some_and(|key| key.to_str().unwrap().ends_with(KEY)) {
            return ResponseTemplate::new(401).set_body_json(json!({ "error": { "message": "who?" } }));
        }
        let mut state = self.state.lock().unwrap();
        let path = request.url.path();
        let place = path.trim_start_matches("/v1/messages").trim_start_matches("/v1");
        let parts: Vec<&str> = place.split('/').skip(1).collect();
        let text = String::from_utf8_lossy(&request.body).into_owned();
        if let ("GET", ["batches", id]) = (request.method.as_str(), &parts[..]) {
            state.looked.push((*id).to_owned());
            if let Some((status, body)) = state.refusal {
                return ResponseTemplate::new(status).set_body_string(body);
            }
            if let Some((_, status, said)) = state.said.as_ref().filter(|(of, ..)| of == id) {
                return ResponseTemplate::new(*status).set_body_json(said);
            }
        }
        let said = match (request.method.as_str(), &parts[..]) {
            ("POST", ["files"]) => {
                assert!(text.contains("name=\"purpose\"\r\n\r\nbatch\r\n"), "{text}");
                let lines = text.lines().filter(|line| line.starts_with('{'));
                state.uploaded = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
                state.uploads += 1;
                json!({ "id": format!("file-{}", state.uploads) })
            }
            ("POST", ["batches"]) => {
                let asked: Value = serde_json::from_str(&text).unwrap();
                let requests = asked["requests"].as_array().cloned();
                let requests = requests.unwrap_or_else(|| {
                    state.files.push(asked["input_file_id"].clone());
                    assert_eq!(asked["completion_window"], "24h");
                    std::mem::take(&mut state.uploaded)
                });
                state.batches.push(requests);
                if let Some(status) = state.silence.take() {
                    return ResponseTemplate::new(status);
                }
                let taken = json!({ "id": format!("batch_{}", state.batches.len() - 1) });
                return ResponseTemplate::new(200)
                    .set_body_json(taken)
                    .set_delay(state.taking);
            }
            ("GET", ["batches"]) if state.is_unlisted => return ResponseTemplate::new(405),
            // The latest first, one a page.
            ("GET", ["batches"]) => {
                let cursor = match self.subject.wire {
                    Wire::Anthropic => "after_id",
                    _ => "after",
                };
                let after = request.url.query_pairs().find(|(name, _)| name == cursor);
                let end = after.map_or(state.batches.len(), |(_, id)| {
                    id.replace("batch_", "").parse().unwrap()
                });
                let listed = (0..end).rev().take(1);
                let listed = listed.map(|batch| {
                    json!({
                        "id": format!("batch_{batch}"),
                        "input_file_id": state.files.get(batch),
                        "request_counts": { "processing": state.batches[batch].len(), "succeeded": 0 },
                    })
                });
                json!({ "data": listed.collect::<Vec<_>>(), "has_more": end > 1 })
            }
            ("GET", ["batches", _]) if state.is_slow => {
                json!({ "status": "in_progress", "processing_status": "in_progress" })
            }
            ("GET", ["batches", _]) if self.subject.wire == Wire::Anthropic => {
                json!({ "processing_status": "ended", "results_url": "http://127.0.0.1:1/elsewhere" })
            }
            ("GET", ["batches", id]) => {
                let [output, errors] = ["output", "error"].map(|kind| id.replace("batch", kind));
                json!({ "status": "completed", "output_file_id": output, "error_file_id": errors })
            }
            ("GET", ["batches" | "files", id, _]) => {
                let (kind, batch) = id.split_once('_').unwrap();
                let batch: usize = batch.parse().unwrap();
                let fates = state.batches[batch].iter().enumerate();
                let fates = fates.map(|(number, request)| ((self.fate)(batch, number), request));
                let lines = fates.filter(|(fate, _)| match kind {
                    "output" => *fate == Fate::Answered,
                    "error" => *fate != Fate::Answered,
                    _ => true,
                });
                // Answers come in any order.
                let lines = lines.map(|(fate, request)| self.line(fate, request)).rev();
                return ResponseTemplate::new(200).set_body_string(lines.collect::<Vec<_>>().join("\n"));
            }
            other => panic!("{other:?}"),
        };
        ResponseTemplate::new(200).set_body_json(said)
    }

    /// The line that says what became of a request. Its answer repeats what was asked.
    fn line(&self, fate: Fate, request: &Value) -> String {
        let id = &request["custom_id"];
        let busy = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "busy" } });
        let line = if self.subject.wire == Wire::Anthropic {
            let answer = self.subject.answer(&request["params"]["messages"].to_string());
            let result = match fate {
                Fate::Refused => json!({ "type": "errored", "error": busy }),
                Fate::Expired => json!({ "type": "expired" }),
                Fate::Cancelled => json!({ "type": "canceled" }),
                Fate::Answered | Fate::Cut => json!({ "type": "succeeded", "message": answer }),
            };
            json!({ "custom_id": id, "result": result })
        } else {
            assert_eq!(
                (&request["method"], &request["url"]),
                (&json!("POST"), &json!(self.subject.path))
            );
            let answer = self.subject.answer(&request["body"]["messages"].to_string());
            let ended = |code: &str| json!({ "code": code, "message": "too late" });
            let (response, error) = match fate {
                Fate::Refused => (json!({ "status_code": 503, "body": busy }), Value::Null),
                Fate::Expired => (Value::Null, ended("batch_expired")),
                Fate::Cancelled => (Value::Null, ended("batch_cancelled")),
                Fate::Answered | Fate::Cut => (json!({ "status_code": 200, "body": answer }), Value::Null),
            };
            json!({ "custom_id": id, "response": response, "error": error })
        };
        let line = line.to_string();
        match fate {
            Fate::Cut => line[..line.len() / 2].to_owned(),
            _ => line,
        }
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }

    fn be_slow(&self, is_slow: bool) {
        self.set(|state| state.is_slow = is_slow);
    }

    /// Waits until something holds of it.
    async fn until(&self, holds: impl Fn(&State) -> bool) {
        while !holds(&self.state.lock().unwrap()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// How many requests each batch has.
    fn sizes(&self) -> Vec<usize> {
        self.state.lock().unwrap().batches.iter().map(Vec::len).collect()
    }
}

/// A model whose calls are handed in together, and their batches.
fn batching(server: &MockServer, subject: Subject, more: Value, control: &Control) -> (Rc<dyn Llm>, Batches) {
    let mut table = subject.table(server, &json!({ "batch": true }));
    if let (Some(table), Value::Object(more)) = (table.as_object_mut(), more) {
        table.extend(more);
    }
    let prices = format!(
        "date = \"2026-11-27\"\n[[price]]\nprovider = \"{}\"\nmodel = \"test-model\"\ninput = 2.0\noutput = 4.0",
        subject.provider
    );
    let models = models_of([(Role::Agent, table)], |builder| {
        builder
            .first_wait(Duration::from_millis(2))
            .batch_waits(Duration::from_millis(100), Duration::from_millis(5))
            .prices(PriceTable::parse(&prices).unwrap())
            .control(control.clone())
    });
    (models.get(Role::Agent).unwrap(), models.batches().unwrap())
}

/// Three requests, of which the last two differ in their seed alone.
fn questions() -> [ChatRequest; 3] {
    [("First?", 1), ("Second?", 1), ("Second?", 2)].map(|(text, seed)| ChatRequest {
        seed: Some(seed),
        ..ChatRequest::new(vec![Message::system("Be kind."), Message::user(text)])
    })
}

async fn ask(model: &Rc<dyn Llm>) -> Vec<Result<ChatResponse, LlmError>> {
    join_all(questions().map(|question| model.chat(question))).await
}

/// The answers to [`questions`], each to its own.
async fn answers(model: &Rc<dyn Llm>) -> Vec<ChatResponse> {
    let answers: Vec<ChatResponse> = ask(model).await.into_iter().map(Result::unwrap).collect();
    for (answer, text) in answers.iter().zip(["First?", "Second?", "Second?"]) {
        assert!(answer.message.text().contains(text), "{answer:?}");
    }
    answers
}

/// The batches that are noted with the id that the provider gave them.
fn taken(batches: &Batches) -> Vec<(String, Vec<String>)> {
    let mut noted = batches.take_noted();
    noted.retain(|(id, _)| id.starts_with("batch_"));
    noted
}

/// Waits until a batch that was taken is noted, while `calls` are under way, which are then dropped.
async fn noted(calls: impl Future, batches: &Batches) -> Vec<(String, Vec<String>)> {
    let noted = async {
        loop {
            match taken(batches) {
                none if none.is_empty() => tokio::time::sleep(Duration::from_millis(5)).await,
                noted => break noted,
            }
        }
    };
    match select(pin!(calls), pin!(noted)).await {
        Either::Left(_) => panic!("nothing was noted"),
        Either::Right((noted, _)) => noted,
    }
}

#[tokio::test]
async fn calls_that_come_together_are_one_batch_at_half_the_listed_price() {
    for subject in BOTH {
        let (server, provider) = Provider::start(subject, |_, _| Fate::Answered).await;
        let (model, batches) = batching(&server, subject, json!({}), &Control::new());
        for answer in answers(&model).await {
            assert_eq!((answer.usage.input_tokens, answer.usage.output_tokens), (11, 7));
            let listed = (2.0 * 11.0 + 4.0 * 7.0) / 1e6;
            assert!((answer.usage.usd.unwrap() - listed / 2.0).abs() < 1e-12);
            assert_eq!(answer.failed_tries, None);
        }
        assert_eq!(provider.sizes(), [3], "{}", subject.provider);
        let noted = taken(&batches);
        assert_eq!(
            (noted.len(), noted[0].0.as_str(), noted[0].1.len()),
            (1, "batch_0", 3)
        );

        let stated = json!({ "price": { "input": 2, "output": 4 } });
        let (model, _) = batching(&server, subject, stated, &Control::new());
        let usd = answers(&model).await[0].usage.usd.unwrap();
        assert!(
            (usd - 50e-6).abs() < 1e-12,
            "what the study states is what it costs: {usd}"
        );
    }
}

/// What a journal tells of the batch of a process that ended while it waited for it.
async fn left(subject: Subject, server: &MockServer, provider: &Provider) -> Vec<(String, Vec<String>)> {
    provider.be_slow(true);
    let (first, batches) = batching(server, subject, json!({}), &Control::new());
    let journaled = noted(ask(&first), &batches).await;
    provider.be_slow(false);
    journaled
}

/// The model of a later process, which knows the batches of earlier ones.
fn recalling(server: &MockServer, subject: Subject, journaled: &[(String, Vec<String>)]) -> Rc<dyn Llm> {
    let (model, batches) = batching(server, subject, json!({ "retries": 0 }), &Control::new());
    for (id, requests) in journaled {
        batches.recall(id, requests);
    }
    model
}

/// How large the batches are that two processes hand in, the first of which ends while it waits.
async fn resumed(subject: Subject, fate: fn(usize, usize) -> Fate) -> Vec<usize> {
    let (server, provider) = Provider::start(subject, fate).await;
    let journaled = left(subject, &server, &provider).await;
    answers(&recalling(&server, subject, &journaled)).await;
    provider.sizes()
}

/// What the model says why all of its calls ended, for which no prompt can be blamed.
async fn stopped(model: &Rc<dyn Llm>) -> String {
    let failures = ask(model).await.into_iter().map(Result::unwrap_err);
    let messages: Vec<String> = failures
        .map(|failure| match failure {
            LlmError::Failed {
                kind: FailureKind::Stopped,
                message,
                retryable: false,
                ..
            } => message,
            other => panic!("{other:?}"),
        })
        .collect();
    messages.join("\n")
}

#[tokio::test]
async fn a_batch_that_was_cancelled_stops_the_run_and_is_asked_anew_by_the_next() {
    for subject in BOTH {
        let fate = |batch: usize, _: usize| {
            if batch == 0 {
                Fate::Cancelled
            } else {
                Fate::Answered
            }
        };
        let (server, provider) = Provider::start(subject, fate).await;
        let (model, batches) = batching(&server, subject, json!({}), &Control::new());
        let why = stopped(&model).await;
        assert!(why.contains("cancelled at the provider"), "{why}");
        assert_eq!(provider.sizes(), [3]);
        answers(&recalling(&server, subject, &batches.take_noted())).await;
        assert_eq!(provider.sizes(), [3, 3]);
    }
}

/// What `OpenAI` says of a batch that it did not begin to work on.
fn failed(code: &str) -> Value {
    json!({ "status": "failed", "errors": { "data": [{ "code": code, "message": "not so" }] } })
}

#[tokio::test]
async fn a_batch_that_failed_as_a_whole_stops_the_run() {
    let (server, provider) = Provider::start(SUBJECTS[0], |_, _| Fate::Answered).await;
    provider.set(|state| state.said = Some(("batch_0", 200, failed("billing_hard_limit_reached"))));
    let (model, _) = batching(&server, SUBJECTS[0], json!({}), &Control::new());
    let why = stopped(&model).await;
    assert!(why.contains("not so"), "{why}");
    assert_eq!(provider.sizes(), [3]);
}

#[tokio::test]
async fn a_batch_that_finds_no_room_beside_others_is_handed_in_again_once_they_have_ended() {
    let (server, provider) = Provider::start(SUBJECTS[0], |_, _| Fate::Answered).await;
    provider.set(|state| {
        state.is_slow = true;
        state.said = Some(("batch_1", 200, failed("token_limit_exceeded")));
    });
    let (model, _) = batching(&server, SUBJECTS[0], json!({}), &Control::new());
    let another = async {
        provider.until(|state| !state.batches.is_empty()).await;
        model
            .chat(ChatRequest::new(vec![Message::user("Third?")]))
            .await
            .unwrap()
    };
    let ending = async {
        let is_second = |id: &String| id == "batch_1";
        provider.until(|state| state.looked.iter().any(is_second)).await;
        let looks = provider.state.lock().unwrap().looked.len();
        provider.until(|state| state.looked.len() > looks + 5).await;
        provider.be_slow(false);
    };
    let (first, another, ()) = futures::future::join3(answers(&model), another, ending).await;
    for answer in first.iter().chain([&another]) {
        assert_eq!(answer.failed_tries, None);
    }
    assert_eq!(provider.sizes(), [3, 1, 1]);
}

#[tokio::test]
async fn a_batch_that_may_not_be_looked_at_is_named_and_nothing_of_it_is_asked_anew() {
    for subject in BOTH {
        let (server, provider) = Provider::start(subject, |_, _| Fate::Answered).await;
        let journaled = left(subject, &server, &provider).await;
        for refusal in [
            (403, "a proxy"),
            (404, r#"{"error":{"message":"no such batch"}}"#),
        ] {
            provider.set(|state| state.refusal = Some(refusal));
            let why = stopped(&recalling(&server, subject, &journaled)).await;
            assert!(
                why.contains(&format!("batch_0 could not be looked at: HTTP {}", refusal.0)),
                "{why}"
            );
        }
        provider.set(|state| state.refusal = None);
        answers(&recalling(&server, subject, &journaled)).await;
        assert_eq!(provider.sizes(), [3]);
    }
}

#[tokio::test]
async fn looks_that_fail_for_a_while_are_told_once_and_waited_out() {
    for refusal in [(503, "busy"), (200, "<html>Log in</html>")] {
        let (server, provider) = Provider::start(SUBJECTS[0], |_, _| Fate::Answered).await;
        provider.set(|state| state.refusal = Some(refusal));
        let (model, batches) = batching(&server, SUBJECTS[0], json!({}), &Control::new());
        let mending = async {
            provider.until(|state| state.looked.len() > 3).await;
            provider.set(|state| state.refusal = None);
        };
        futures::future::join(answers(&model), mending).await;
        let told = batches.take_news();
        assert!(
            matches!(
                &told[..],
                [Notice::Batch(_), Notice::Waiting(_), Notice::Answered { .. }]
            ),
            "{told:?}"
        );
        assert_eq!(provider.sizes(), [3]);
    }
}

#[tokio::test]
async fn a_later_process_waits_for_the_batch_that_a_killed_one_handed_in() {
    for subject in BOTH {
        assert_eq!(resumed(subject, |_, _| Fate::Answered).await, [3]);
    }
}

/// What a journal tells of a process that was killed before it heard that its batch was taken, if it was.
async fn unheard(
    subject: Subject,
    server: &MockServer,
    provider: &Provider,
    is_taken: bool,
) -> Vec<(String, Vec<String>)> {
    let before = provider.sizes().len();
    provider.set(|state| state.taking = Duration::from_mins(1));
    let (killed, batches) = batching(server, subject, json!({}), &Control::new());
    let taken = provider.until(|state| state.batches.len() > before);
    let is_heard = matches!(select(pin!(ask(&killed)), pin!(taken)).await, Either::Left(_));
    assert!(!is_heard);
    provider.set(|state| {
        state.taking = Duration::ZERO;
        if !is_taken {
            state.batches.truncate(before);
            state.files.truncate(before);
        }
    });
    let noted = batches.take_noted();
    assert_eq!(noted.len(), 1, "before it is handed in");
    noted
}

/// Has somebody else hand in a batch of as many calls.
async fn hand_in_another(subject: Subject, server: &MockServer) {
    let (another, _) = batching(server, subject, json!({}), &Control::new());
    let chat = |seed| ChatRequest {
        seed: Some(seed),
        ..ChatRequest::new(vec![Message::user("Third?")])
    };
    join_all((0..3).map(|seed| another.chat(chat(seed)))).await;
}

#[tokio::test]
async fn a_batch_whose_taking_was_not_answered_is_found_by_what_was_noted_before() {
    for subject in BOTH {
        let (server, provider) = Provider::start(subject, |_, _| Fate::Answered).await;
        hand_in_another(subject, &server).await;
        let noted = unheard(subject, &server, &provider, true).await;
        // Another one is listed before it.
        hand_in_another(subject, &server).await;
        answers(&recalling(&server, subject, &noted)).await;
        assert_eq!(provider.sizes(), [3, 3, 3], "{}", subject.provider);

        // Or by the same process, be it that what stands between says 200 without a word.
        for status in [502, 200] {
            let (server, provider) = Provider::start(subject, |_, _| Fate::Answered).await;
            provider.set(|state| state.silence = Some(status));
            let (model, _) = batching(&server, subject, json!({}), &Control::new());
            answers(&model).await;
            assert_eq!(provider.sizes(), [3], "{} {status}", subject.provider);
        }
    }
}

#[tokio::test]
async fn what_anothers_batch_may_be_is_waited_for_before_anything_is_asked_anew() {
    let (server, provider) = Provider::start(SUBJECTS[1], |_, _| Fate::Answered).await;
    let noted = unheard(SUBJECTS[1], &server, &provider, true).await;
    hand_in_another(SUBJECTS[1], &server).await;
    provider.set(|state| {
        // The other one was taken before.
        state.batches.swap(0, 1);
        state.is_slow = true;
        state.looked.clear();
    });
    let ending = async {
        provider.until(|state| state.looked.len() > 2).await;
        provider.be_slow(false);
    };
    let later = recalling(&server, SUBJECTS[1], &noted);
    futures::future::join(answers(&later), ending).await;
    assert_eq!(provider.sizes(), [3, 3]);
    let looked = provider.state.lock().unwrap().looked.clone();
    assert_eq!(
        (&*looked[0], looked.last().unwrap().as_str()),
        ("batch_0", "batch_1")
    );
}

#[tokio::test]
async fn what_anothers_batch_may_be_ends_no_run_by_being_removed() {
    let (server, provider) = Provider::start(SUBJECTS[1], |_, _| Fate::Answered).await;
    let noted = unheard(SUBJECTS[1], &server, &provider, true).await;
    hand_in_another(SUBJECTS[1], &server).await;
    provider.set(|state| {
        state.batches.swap(0, 1);
        state.said = Some(("batch_0", 404, json!({})));
    });
    answers(&recalling(&server, SUBJECTS[1], &noted)).await;
    assert_eq!(provider.sizes(), [3, 3]);
}

#[tokio::test]
async fn a_gateway_that_lists_no_batches_is_given_them() {
    let (server, provider) = Provider::start(SUBJECTS[1], |_, _| Fate::Answered).await;
    provider.set(|state| state.is_unlisted = true);
    let (model, batches) = batching(&server, SUBJECTS[1], json!({}), &Control::new());
    answers(&model).await;
    assert_eq!((provider.sizes(), batches.take_noted().len()), (vec![3], 1));
}

#[tokio::test]
async fn a_batch_that_was_noted_and_not_taken_is_asked_anew_and_anothers_is_not_taken_for_it() {
    for subject in BOTH {
        let (server, provider) = Provider::start(subject, |_, _| Fate::Answered).await;
        let noted = unheard(subject, &server, &provider, false).await;
        hand_in_another(subject, &server).await;
        answers(&recalling(&server, subject, &noted)).await;
        assert_eq!(provider.sizes(), [3, 3], "{}", subject.provider);
    }
}

#[tokio::test]
async fn what_failed_in_an_earlier_process_is_asked_anew() {
    for subject in BOTH {
        let sizes = resumed(subject, |batch, number| match (batch, number) {
            (0, 0) => Fate::Expired,
            _ => Fate::Answered,
        });
        assert_eq!(sizes.await, [3, 1]);
    }
}

#[tokio::test]
async fn what_failed_expired_or_does_not_read_is_asked_anew_and_the_last_is_paid_for() {
    for subject in BOTH {
        let fate = |batch: usize, number: usize| match (batch, number) {
            (0, 0) => Fate::Refused,
            (0, 1) => Fate::Expired,
            (0, _) => Fate::Cut,
            _ => Fate::Answered,
        };
        let (server, provider) = Provider::start(subject, fate).await;
        let (model, _) = batching(&server, subject, json!({}), &Control::new());
        let failed = answers(&model).await;
        let read = failed
            .iter()
            .map(|answer| answer.failed_tries.unwrap().input_tokens);
        // "Be kind." and "Second?" have 15 characters.
        assert_eq!(read.collect::<Vec<_>>(), [0, 0, 3]);
        let sizes = provider.sizes();
        assert_eq!((sizes[0], sizes[1..].iter().sum::<usize>()), (3, 3));
    }
}

#[tokio::test]
async fn a_key_that_is_refused_hands_nothing_in() {
    for subject in BOTH {
        let (server, provider) = Provider::start(subject, |_, _| Fate::Answered).await;
        let wrong = json!({ "api_key_env": "OTHER_KEY" });
        let (model, batches) = batching(&server, subject, wrong, &Control::new());
        for answer in ask(&model).await {
            let refused = answer.unwrap_err();
            let kind = FailureKind::Authentication;
            assert!(
                matches!(refused, LlmError::Failed { kind: told, .. } if told == kind),
                "{refused:?}"
            );
        }
        assert_eq!((provider.sizes(), batches.take_noted()), (vec![], vec![]));
    }
}

#[tokio::test]
async fn an_interruption_leaves_the_batch_and_counts_nothing() {
    for subject in BOTH {
        let (server, provider) = Provider::start(subject, |_, _| Fate::Answered).await;
        provider.set(|state| {
            state.is_slow = true;
            // It is interrupted meanwhile.
            state.taking = Duration::from_millis(300);
        });
        let control = Control::new();
        let (model, batches) = batching(&server, subject, json!({}), &control);
        let interrupting = async {
            provider.until(|state| !state.batches.is_empty()).await;
            control.interrupt();
        };
        let (answers, ()) = futures::future::join(ask(&model), interrupting).await;
        for answer in answers {
            match answer.unwrap_err() {
                LlmError::Interrupted { usage } => {
                    assert_eq!((usage.input_tokens, usage.usd), (0, Some(0.0)));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(taken(&batches).len(), 1);
        let asked = server.received_requests().await.unwrap();
        assert!(asked.iter().all(|request| !request.url.path().contains("cancel")));
    }
}
