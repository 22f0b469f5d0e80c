//! Waits for providers: who is told of them, and what ends them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use capo_core::control::Control;
use capo_core::llm::{CallUsage, ChatResponse, FailureKind, Llm, LlmError, Role};
use capo_models::{Builder, Notice, Wait};
use indexmap::IndexMap;
use serde_json::{Value, json};
use wiremock::{MockServer, ResponseTemplate};

use crate::server::{KEY, PLAIN, models_of, question, received};

/// Long beside every test: waits end because they are ended.
const FIRST_WAIT: Duration = Duration::from_hours(1);

fn price() -> Value {
    json!({ "input": 1.0, "output": 1.0 })
}

/// A model that `control` interrupts.
fn steered(table: Value, control: &Control) -> Rc<dyn Llm> {
    let models = models_of([(Role::Agent, table)], |builder| {
        builder.first_wait(FIRST_WAIT).control(control.clone())
    });
    models.get(Role::Agent).unwrap()
}

/// What becomes of `call` when something is said 100 ms after its start. It must not take long.
async fn after_a_moment<T>(call: impl Future<Output = T>, say: impl FnOnce()) -> T {
    let started = Instant::now();
    let saying = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        say();
        Instant::now()
    };
    let (outcome, said) = futures::future::join(call, saying).await;
    assert!(started.elapsed() >= Duration::from_millis(100));
    assert!(
        said.elapsed() < Duration::from_millis(500),
        "{:?}",
        said.elapsed()
    );
    outcome
}

fn interrupted(answer: Result<ChatResponse, LlmError>) -> CallUsage {
    match answer.unwrap_err() {
        LlmError::Interrupted { usage } => usage,
        other => panic!("{other:?}"),
    }
}

fn nobody_there() -> Value {
    // Port 1 of loopback is never served.
    json!({ "provider": "openai-compatible", "model": "m", "base_url": "http://127.0.0.1:1/v1" })
}

#[tokio::test]
async fn an_interruption_ends_the_wait_that_a_provider_asked_for() {
    let server = MockServer::start().await;
    let slow = ResponseTemplate::new(429).insert_header("retry-after", "120");
    PLAIN.serve(&server, vec![slow]).await;
    let control = Control::new();
    let model = steered(PLAIN.table(&server, &json!({})), &control);
    let held = async {
        // This one waits for its turn while everybody is held.
        tokio::time::sleep(Duration::from_millis(50)).await;
        model.chat(question()).await
    };
    let both = futures::future::join(model.chat(question()), held);
    let (first, second) = after_a_moment(both, || control.interrupt()).await;
    assert_eq!(interrupted(first).usd, Some(0.0));
    assert_eq!(interrupted(second).usd, Some(0.0));
    assert_eq!(received(&server).await.len(), 1);
    // Nothing new begins.
    interrupted(model.chat(question()).await);
    assert_eq!(received(&server).await.len(), 1);
}

#[tokio::test]
async fn an_interruption_ends_the_wait_for_a_provider_that_is_not_there() {
    let control = Control::new();
    let model = steered(nobody_there(), &control);
    interrupted(after_a_moment(model.chat(question()), || control.interrupt()).await);
}

#[tokio::test]
async fn what_failed_tries_consumed_outlives_an_interruption() {
    let server = MockServer::start().await;
    PLAIN.serve(&server, vec![PLAIN.says("")]).await;
    let control = Control::new();
    let model = steered(PLAIN.table(&server, &json!({ "price": price() })), &control);
    let usage = interrupted(after_a_moment(model.chat(question()), || control.interrupt()).await);
    assert_eq!((usage.input_tokens, usage.output_tokens), (11, 7));
    assert!((usage.usd.unwrap() - 18e-6).abs() < 1e-12);
}

#[tokio::test]
async fn a_call_under_way_may_still_be_answered_but_none_that_waits_for_its_turn() {
    let server = MockServer::start().await;
    let slow = PLAIN.says("Here.").set_delay(Duration::from_millis(300));
    PLAIN.serve(&server, vec![slow]).await;
    let control = Control::new();
    let model = steered(PLAIN.table(&server, &json!({ "concurrency": 1 })), &control);
    let both = futures::future::join(model.chat(question()), model.chat(question()));
    let (first, second) = after_a_moment(both, || control.interrupt()).await;
    assert_eq!(first.unwrap().message.text(), "Here.");
    assert_eq!(interrupted(second).usd, Some(0.0));
    assert_eq!(received(&server).await.len(), 1);
}

#[tokio::test]
async fn a_call_that_is_dropped_counts_as_one_that_was_not_answered_in_time() {
    let server = MockServer::start().await;
    let slow = PLAIN.says("too late").set_delay(Duration::from_secs(30));
    PLAIN.serve(&server, vec![slow]).await;
    let control = Control::new();
    let model = steered(PLAIN.table(&server, &json!({ "price": price() })), &control);
    let usage = interrupted(after_a_moment(model.chat(question()), || control.abandon()).await);
    // "Be kind." and "Hello?" have 14 characters.
    assert_eq!((usage.input_tokens, usage.output_tokens), (3, 0));
    assert!((usage.usd.unwrap() - 3e-6).abs() < 1e-12);
    assert!((0.05..1.0).contains(&usage.seconds), "{}", usage.seconds);
}

#[tokio::test]
async fn simulated_time_and_waits_for_vectors_end_too() {
    let control = Control::new();
    let model = steered(json!({ "provider": "simulated", "latency": 1000 }), &control);
    let usage = interrupted(after_a_moment(model.chat(question()), || control.interrupt()).await);
    assert_eq!((usage.input_tokens, usage.usd), (0, Some(0.0)));

    let control = Control::new();
    let keys: BTreeMap<String, String> = BTreeMap::new();
    let builder = Builder::new(&keys)
        .first_wait(FIRST_WAIT)
        .control(control.clone());
    let embedder = builder
        .embedder(&IndexMap::from([(Role::Embeddings, nobody_there())]))
        .unwrap();
    let texts = ["the bag".to_owned()];
    let embedded = after_a_moment(embedder.embed(&texts), || control.interrupt()).await;
    assert!(
        matches!(embedded, Err(LlmError::Interrupted { .. })),
        "{embedded:?}"
    );
}

/// A model, and what is said of its waits.
fn watched(table: Value) -> (Rc<dyn Llm>, Rc<RefCell<Vec<Notice>>>) {
    let notices = Rc::new(RefCell::new(Vec::new()));
    let told = Rc::clone(&notices);
    let models = models_of([(Role::Agent, table)], |builder| {
        let observer = move |notice: &Notice| told.borrow_mut().push(notice.clone());
        builder
            .first_wait(Duration::from_millis(2))
            .observer(Rc::new(observer))
    });
    (models.get(Role::Agent).unwrap(), notices)
}

fn waits(notices: &RefCell<Vec<Notice>>) -> Vec<Wait> {
    let waiting = |notice: &Notice| match notice {
        Notice::Waiting(wait) => Some(wait.clone()),
        Notice::Answered { .. } | Notice::Batch(_) => None,
    };
    notices.borrow().iter().filter_map(waiting).collect()
}

#[tokio::test]
async fn who_cannot_be_reached_is_told_of_with_every_try() {
    let mut table = nobody_there();
    table["retries"] = json!(2);
    let (model, notices) = watched(table);
    model.chat(question()).await.unwrap_err();
    let waits = waits(&notices);
    let said: Vec<String> = waits.iter().map(Wait::to_string).collect();
    assert_eq!(
        said,
        [
            "cannot reach 127.0.0.1:1: trying again in 1 s, 2 of 3",
            "cannot reach 127.0.0.1:1: trying again in 1 s, 3 of 3",
        ]
    );
    assert_eq!(
        (waits[0].kind, waits[0].is_asked),
        (FailureKind::Unreachable, false)
    );
    assert_eq!(waits[0].model, "openai-compatible/m");
    assert!(
        waits[0]
            .message
            .starts_with("cannot reach http://127.0.0.1:1/v1: ")
    );
    assert_eq!(notices.borrow().len(), 2, "nobody answered");
}

/// An address that lets connections begin and never answers them, while what is beside it lives.
fn nobody_listens() -> (std::net::SocketAddr, (socket2::Socket, Vec<socket2::Socket>)) {
    let tcp = || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    };
    let listener = tcp();
    listener
        .bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into())
        .unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    // Whoever comes when the queue is full is not answered.
    let queued = (0..4).map(|_| {
        let socket = tcp();
        let _ = socket.connect(&address);
        socket
    });
    let queued = queued.collect();
    (address.as_socket().unwrap(), (listener, queued))
}

#[tokio::test]
async fn a_connection_that_does_not_come_about_is_told_of_within_two_seconds() {
    let (address, _silent) = nobody_listens();
    let (model, notices) = watched(json!({
        "provider": "openai-compatible", "model": "m", "base_url": format!("http://{address}/v1"), "retries": 0,
    }));
    let (started, call) = (Instant::now(), model.chat(question()));
    let told = async {
        while notices.borrow().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        started.elapsed()
    };
    let (told, refused) = futures::future::join(told, call).await;
    refused.unwrap_err();
    assert!(
        told < Duration::from_secs(4),
        "{told:?}, where a call waits for 10 s"
    );
    let said: Vec<String> = waits(&notices).iter().map(Wait::to_string).collect();
    assert_eq!(said, [format!("cannot reach {address}: no connection after 2 s")]);
}

#[tokio::test]
async fn an_answer_that_is_slow_over_a_good_connection_is_no_trouble() {
    let server = MockServer::start().await;
    let slow = PLAIN.says("Now.").set_delay(Duration::from_millis(2500));
    PLAIN.serve(&server, vec![slow]).await;
    let (model, notices) = watched(PLAIN.table(&server, &json!({})));
    model.chat(question()).await.unwrap();
    assert_eq!(notices.borrow().len(), 0);
}

#[tokio::test]
async fn a_wait_that_is_asked_for_is_told_of_and_so_is_its_end() {
    let server = MockServer::start().await;
    let slow = ResponseTemplate::new(429)
        .insert_header("retry-after", "0.2")
        .set_body_json(json!({ "error": { "message": format!("slow down, {KEY}\u{1b}[2J") } }));
    let busy = ResponseTemplate::new(503).set_body_json(json!({ "error": { "message": "busy" } }));
    PLAIN.serve(&server, vec![slow, busy, PLAIN.says("Now.")]).await;
    let (model, notices) = watched(PLAIN.table(&server, &json!({})));
    for _ in 0..2 {
        model.chat(question()).await.unwrap();
    }
    let host = server.address().to_string();
    let waits = waits(&notices);
    assert_eq!(
        waits[0].to_string(),
        format!("{host} asked to wait 1 s (rate limit), 2 of 6")
    );
    assert!((0.2..0.3).contains(&waits[0].seconds), "{}", waits[0].seconds);
    assert!(
        !waits[0].message.contains(KEY) && !waits[0].message.contains('\u{1b}'),
        "{}",
        waits[0].message
    );
    assert_eq!(
        waits[1].to_string(),
        format!("{host} failed (HTTP 503: busy): trying again in 1 s, 3 of 6")
    );
    let answered = Notice::Answered {
        model: "openai-compatible/test-model".to_owned(),
        host,
    };
    assert_eq!(notices.borrow()[2..], [answered], "said once");
}

#[tokio::test]
async fn an_allowance_that_is_used_up_is_told_of_before_the_next_call() {
    let server = MockServer::start().await;
    let last = PLAIN
        .says("The last one.")
        .insert_header("x-ratelimit-remaining-requests", "0")
        .insert_header("x-ratelimit-reset-requests", "20s");
    PLAIN.serve(&server, vec![last]).await;
    let mut table = PLAIN.table(&server, &json!({}));
    table["provider"] = json!("openai");
    let (model, notices) = watched(table);
    model.chat(question()).await.unwrap();
    let said: Vec<String> = waits(&notices).iter().map(Wait::to_string).collect();
    assert_eq!(said, ["openai asked to wait 20 s (rate limit)"]);
}
