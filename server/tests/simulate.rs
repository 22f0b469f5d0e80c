//! The simulated endpoint over real HTTP, in front of a model that answers by rule.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

use std::convert::Infallible;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use capo_core::llm::{
    AssistantMessage, CallUsage, ChatRequest, ChatResponse, FailureKind, Finish, Llm, LlmError, Message,
    ToolCall,
};
use capo_server::simulate::{ServeOptions, SimulateError, Tally, serve};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// Says back what it was asked, calls the first tool when the user says "call", says what the user
/// tells it to "say", and fails or panics when told to.
struct Echo {
    name: String,
    /// Told of every question.
    asked: Arc<Notify>,
    /// Makes the model, and so its futures, not `Send`, as the contract allows.
    _local: Rc<()>,
}

impl Llm for Echo {
    fn name(&self) -> &str {
        &self.name
    }

    fn chat(&self, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        self.asked.notify_one();
        async move {
            let last = request.messages.last().cloned();
            let message = match last {
                Some(Message::User { content }) if content == "call" => AssistantMessage {
                    content: None,
                    tool_calls: vec![ToolCall {
                        id: "call_1".into(),
                        name: request.tools[0].name.clone(),
                        arguments: json!({"order": 7}),
                    }],
                },
                Some(Message::User { content }) if content == "too long" => {
                    return Err(LlmError::failed(
                        FailureKind::ContextLength,
                        false,
                        "8,000 tokens at most",
                    ));
                }
                Some(Message::User { content }) if content == "panic" => panic!("told to"),
                Some(Message::User { content }) if content.starts_with("say ") => AssistantMessage {
                    content: Some(content["say ".len()..].to_owned()),
                    tool_calls: Vec::new(),
                },
                _ => AssistantMessage {
                    content: Some(
                        json!({
                            "messages": request.messages,
                            "tools": request.tools.len(),
                            "seed": request.seed,
                        })
                        .to_string(),
                    ),
                    tool_calls: Vec::new(),
                },
            };
            let finish = if message.tool_calls.is_empty() {
                Finish::Stop
            } else {
                Finish::ToolCalls
            };
            let usage = CallUsage {
                input_tokens: 100,
                output_tokens: 40,
                usd: None,
                seconds: 0.2,
            };
            Ok(ChatResponse {
                message,
                finish,
                usage,
                failed_tries: None,
            })
        }
        .boxed_local()
    }
}

/// A server of [`Echo`] models, stopped with [`Served::stop`].
struct Served {
    base: String,
    client: Client,
    asked: Arc<Notify>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<Tally, SimulateError>>,
}

impl Served {
    async fn start(options: ServeOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let options = ServeOptions {
            models: vec!["echo".into(), "other".into()],
            ..options
        };
        let asked = Arc::<Notify>::default();
        let told = Arc::clone(&asked);
        let open = move |name: &str| {
            let model: Rc<dyn Llm> = Rc::new(Echo {
                name: name.into(),
                asked: Arc::clone(&told),
                _local: Rc::default(),
            });
            Ok::<_, Infallible>(model)
        };
        let task = tokio::spawn(serve(listener, options, open, async {
            let _ = stopped.await;
        }));
        Self {
            base,
            client: Client::new(),
            asked,
            stop,
            task,
        }
    }

    async fn post(&self, body: &Value) -> Response {
        let url = format!("{}/v1/chat/completions", self.base);
        self.client.post(url).json(body).send().await.unwrap()
    }

    /// Sends the head of a request and waits until the server asks for its body: from then on the
    /// request is under way.
    async fn begin(&self, body: &Value) -> TcpStream {
        let address = self.base.strip_prefix("http://").unwrap();
        let mut connection = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n",
            body.to_string().len()
        );
        connection.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 25];
        connection.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n");
        connection
    }

    /// Posts and expects an error: its status and message.
    async fn refused(&self, body: &Value) -> (u16, String) {
        let response = self.post(body).await;
        let status = response.status().as_u16();
        let body: Value = response.json().await.unwrap();
        (status, body["error"]["message"].as_str().unwrap().to_owned())
    }

    async fn stop(self) -> Tally {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap()
    }
}

fn ask(text: &str) -> Value {
    json!({"model": "echo", "messages": [{"role": "user", "content": text}]})
}

/// What [`Echo`] says it was asked.
async fn heard(response: Response) -> Value {
    let body: Value = response.json().await.unwrap();
    serde_json::from_str(body["choices"][0]["message"]["content"].as_str().unwrap()).unwrap()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn a_conversation_reaches_the_model_as_it_was_sent() {
    let served = Served::start(ServeOptions::default()).await;
    let response = served
        .post(&json!({
            "model": "echo",
            "seed": 5,
            "temperature": 0.7,
            "top_p": 0.9,
            "tools": [{"type": "function", "function": {"name": "get_order", "parameters": {"type": "object"}}}],
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "Where is "}, {"type": "text", "text": "it?"}]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "get_order", "arguments": "{\"order\": 7}"}},
                    {"id": "b", "type": "function", "function": {"name": "get_order", "arguments": "order 7"}},
                ]},
                {"role": "tool", "tool_call_id": "a", "content": "shipped"},
            ],
        }))
        .await;
    assert_eq!(response.headers()["openai-processing-ms"], "200");
    let heard = heard(response).await;
    let expected = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "tool_calls": [
            {"id": "a", "name": "get_order", "arguments": {"order": 7}},
            {"id": "b", "name": "get_order", "arguments": "order 7"},
        ]},
        {"role": "tool", "call_id": "a", "content": "shipped"},
    ]);
    assert_eq!(heard["messages"], expected);
    assert_eq!((&heard["seed"], &heard["tools"]), (&json!(5), &json!(1)));
}

#[tokio::test]
async fn an_answer_has_the_shape_clients_expect() {
    let served = Served::start(ServeOptions::default()).await;
    let mut request = ask("call");
    request["tools"] = json!([{"type": "function", "function": {"name": "get_order"}}]);
    let body: Value = served.post(&request).await.json().await.unwrap();
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(body["model"], "echo");
    assert!(body["id"].as_str().unwrap().starts_with("chatcmpl-"));
    assert_eq!(
        body["choices"],
        json!([{
            "index": 0,
            "message": {"role": "assistant", "content": null, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "get_order", "arguments": "{\"order\":7}"}},
            ]},
            "logprobs": null,
            "finish_reason": "tool_calls",
        }])
    );
    assert_eq!(
        body["usage"],
        json!({"prompt_tokens": 100, "completion_tokens": 40, "total_tokens": 140})
    );
}

#[tokio::test]
async fn forbidding_tools_hides_them() {
    let served = Served::start(ServeOptions::default()).await;
    let mut request = ask("hello");
    request["tools"] = json!([{"type": "function", "function": {"name": "get_order"}}]);
    request["tool_choice"] = json!("none");
    assert_eq!(heard(served.post(&request).await).await["tools"], 0);
}

/// The chunks of a streamed answer, after which comes the end.
async fn streamed(response: Response) -> Vec<Value> {
    assert_eq!(
        response.headers()["content-type"],
        "text/event-stream; charset=utf-8"
    );
    let text = response.text().await.unwrap();
    let mut events: Vec<&str> = text
        .split("\n\n")
        .filter(|event| !event.is_empty())
        .map(|event| event.strip_prefix("data: ").unwrap())
        .collect();
    assert_eq!(events.pop(), Some("[DONE]"));
    events
        .into_iter()
        .map(|event| serde_json::from_str(event).unwrap())
        .collect()
}

/// The texts at a place of each chunk, set one after another.
fn joined(chunks: &[Value], place: &str) -> String {
    chunks
        .iter()
        .filter_map(|chunk| chunk.pointer(place)?.as_str())
        .collect()
}

#[tokio::test]
async fn a_streamed_answer_is_the_whole_one_in_chunks() {
    let served = Served::start(ServeOptions::default()).await;
    let mut request = ask("say one two  three\nfour");
    request["stream"] = json!(true);
    let chunks = streamed(served.post(&request).await).await;
    assert_eq!(
        joined(&chunks, "/choices/0/delta/content"),
        "one two  three\nfour"
    );
    assert_eq!(joined(&chunks, "/choices/0/delta/role"), "assistant");
    assert_eq!(joined(&chunks, "/choices/0/finish_reason"), "stop");
    for chunk in &chunks {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        assert_eq!(
            (&chunk["id"], &chunk["model"]),
            (&chunks[0]["id"], &json!("echo"))
        );
        assert!(chunk.get("usage").is_none(), "not asked for: {chunk}");
    }

    request = ask("call");
    request["stream"] = json!(true);
    request["stream_options"] = json!({"include_usage": true});
    request["tools"] = json!([{"type": "function", "function": {"name": "get_order"}}]);
    request["tool_choice"] = json!("required");
    let chunks = streamed(served.post(&request).await).await;
    let call = "/choices/0/delta/tool_calls/0";
    assert_eq!(joined(&chunks, &format!("{call}/id")), "call_1");
    assert_eq!(joined(&chunks, &format!("{call}/function/name")), "get_order");
    assert_eq!(
        joined(&chunks, &format!("{call}/function/arguments")),
        "{\"order\":7}"
    );
    assert_eq!(joined(&chunks, "/choices/0/finish_reason"), "tool_calls");
    let (last, others) = chunks.split_last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["total_tokens"], 140);
    assert!(others.iter().all(|chunk| chunk["usage"].is_null()));
}

#[tokio::test]
async fn an_answer_ends_before_a_stop_sequence() {
    let served = Served::start(ServeOptions::default()).await;
    for (stop, text) in [
        (json!("###"), "one two "),
        (json!(["four", "two"]), "one "),
        (json!("five"), "one two ### four"),
        (json!("one"), ""),
    ] {
        let mut request = ask("say one two ### four");
        request["stop"] = stop;
        let body: Value = served.post(&request).await.json().await.unwrap();
        let choice = &body["choices"][0];
        assert_eq!(
            (&choice["message"]["content"], &choice["finish_reason"]),
            (&json!(text), &json!("stop"))
        );
        let written = body["usage"]["completion_tokens"].as_u64().unwrap();
        assert_eq!(written, 40 * text.len() as u64 / 16, "{text}");
    }
}

#[tokio::test]
async fn json_and_calls_are_given_where_the_model_gives_them_and_never_made_up() {
    let served = Served::start(ServeOptions::default()).await;
    let schema = |properties: Value| {
        let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
        let schema = json!({"type": "object", "properties": properties, "required": required});
        json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}})
    };
    let object = json!({"type": "json_object"});
    let one = schema(json!({"answer": {"type": "string"}}));
    let two = schema(json!({"answer": {"type": "string"}, "sure": {"type": "boolean"}}));
    let number = schema(json!({"answer": {"type": "number"}}));
    for (text, format, expected) in [
        ("7", json!({"type": "text"}), Some("7")),
        (r#"{"answer": "7"}"#, object.clone(), Some(r#"{"answer": "7"}"#)),
        ("7", object, None),
        ("7", one.clone(), Some(r#"{"answer":"7"}"#)),
        (r#"{"answer": "7"}"#, one, Some(r#"{"answer": "7"}"#)),
        (r#"{"answer": "7"}"#, two, None),
        ("7", number, None),
    ] {
        let mut request = ask(&format!("say {text}"));
        request["response_format"] = format;
        let response = served.post(&request).await;
        let status = response.status();
        let body: Value = response.json().await.unwrap();
        if let Some(expected) = expected {
            assert_eq!(body["choices"][0]["message"]["content"], expected, "{request}");
            continue;
        }
        assert_eq!(
            (status.as_u16(), &body["error"]["param"]),
            (400, &json!("response_format"))
        );
        assert!(
            !body.to_string().contains("alone"),
            "other prompts are understood, too: {body}"
        );
    }

    let mut request = ask("call");
    request["tools"] = json!([
        {"type": "function", "function": {"name": "get_order"}},
        {"type": "function", "function": {"name": "refund"}},
    ]);
    request["tool_choice"] = json!({"type": "function", "function": {"name": "refund"}});
    let body: Value = served.post(&request).await.json().await.unwrap();
    assert_eq!(
        body["choices"][0]["message"]["tool_calls"][0]["function"]["name"],
        "refund"
    );
    request["messages"][0]["content"] = json!("say no");
    let (status, message) = served.refused(&request).await;
    assert_eq!(status, 400);
    assert!(message.contains("cannot be made to call a tool"), "{message}");
}

#[tokio::test]
async fn a_model_can_be_looked_up() {
    let served = Served::start(ServeOptions::default()).await;
    let get = async |path: &str| {
        let url = format!("{}/v1/models{path}", served.base);
        served.client.get(url).send().await.unwrap()
    };
    let listed: Value = get("").await.json().await.unwrap();
    let one: Value = get("/echo").await.json().await.unwrap();
    assert_eq!(one, listed["data"][0]);
    for unknown in ["/gpt-5", "/owner/name"] {
        let response = get(unknown).await;
        assert_eq!(response.status(), 404);
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["error"]["code"], "model_not_found");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(
            message.contains(&unknown[1..]) && message.contains("does not exist"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn a_limit_on_tokens_cuts_text_and_usage() {
    let served = Served::start(ServeOptions::default()).await;
    let whole: Value = served.post(&ask("hello")).await.json().await.unwrap();
    for name in ["max_tokens", "max_completion_tokens"] {
        let mut request = ask("hello");
        request[name] = json!(10);
        let cut: Value = served.post(&request).await.json().await.unwrap();
        assert_eq!(cut["choices"][0]["finish_reason"], "length");
        assert_eq!(cut["usage"]["completion_tokens"], 10);
        let length = |body: &Value| body["choices"][0]["message"]["content"].as_str().unwrap().len();
        assert!(
            length(&cut).abs_diff(length(&whole) / 4) <= 5,
            "a quarter of the tokens, a quarter of the text"
        );
        request[name] = json!(40);
        let whole: Value = served.post(&request).await.json().await.unwrap();
        assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    }
}

#[tokio::test]
async fn what_cannot_be_honoured_is_refused_by_name() {
    let served = Served::start(ServeOptions::default()).await;
    for (field, value, part) in [
        ("stream", json!("yes"), "must be true or false, not \"yes\""),
        (
            "stream_options",
            json!({"include_usage": true}),
            "set `stream` to true",
        ),
        ("n", json!(2), "One answer per request"),
        ("logprobs", json!(true), "tells probabilities"),
        ("top_logprobs", json!(3), "tells probabilities"),
        ("stop", json!(["a", ""]), "at most 4, none of them empty"),
        ("stop", json!(["a", "b", "c", "d", "e"]), "at most 4"),
        ("stop", json!(7), "a string or a list"),
        ("tool_choice", json!("required"), "there are no `tools`"),
        ("tool_choice", json!("often"), "must be auto, none, required"),
        (
            "tool_choice",
            json!({"type": "function", "function": {"name": "fly"}}),
            "\"fly\", which is not among",
        ),
        (
            "tools",
            json!([{"type": "function"}]),
            "`tools[0].function` is missing",
        ),
        (
            "response_format",
            json!({"type": "yaml"}),
            "use text, json_object or json_schema",
        ),
        ("response_format", json!("json"), "must be an object"),
        ("temperature", json!(3), "must lie in 0 to 2"),
        ("temperature", json!("hot"), "`temperature` must be a number"),
        ("max_tokens", json!(0), "at least 1"),
        (
            "max_tokens",
            json!(-1),
            "`max_tokens` is -1; it must be a whole number of at least 1",
        ),
        ("max_completion_tokens", json!(1.5), "whole number of at least 1"),
        ("model", json!(null), "`model` is missing"),
        ("seed", json!(0.5), "64-bit integer"),
        ("messages", json!([]), "`messages` is empty"),
        (
            "messages",
            json!([{"role": "robot", "content": "hi"}]),
            "Unknown role \"robot\"",
        ),
        (
            "messages",
            json!([{"role": "tool", "content": "hi"}]),
            "tool_call_id",
        ),
        (
            "messages",
            json!([{"role": "user", "content": [{"type": "image_url"}]}]),
            "\"image_url\" cannot be read",
        ),
        ("messages", json!([{"role": "user"}]), "needs `content`"),
        ("messages", json!("hi"), "`messages` must be a list, not \"hi\""),
        ("messages", json!(["hi"]), "`messages[0]` must be an object"),
    ] {
        let mut request = ask("hello");
        request[field] = value;
        let response = served.post(&request).await;
        assert_eq!(response.status(), 400, "{request}");
        let body: Value = response.json().await.unwrap();
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{request}: {message}");
        let parameter = body["error"]["param"].as_str().unwrap();
        assert!(parameter.starts_with(field), "{parameter} of {request}");
        for jargon in ["expected", "invalid type", "u64", "struct"] {
            assert!(!message.contains(jargon), "{message}");
        }
    }
    let url = format!("{}/v1/chat/completions", served.base);
    for (text, part) in [
        ("{\"model\":", "not JSON: it cannot be read from line 1"),
        ("[1]", "must be a JSON object"),
    ] {
        let response = served.client.post(&url).body(text).send().await.unwrap();
        assert_eq!(response.status(), 400);
        let body: Value = response.json().await.unwrap();
        assert!(
            body["error"]["message"].as_str().unwrap().contains(part),
            "{body}"
        );
    }
    let mut request = ask("hello");
    request["model"] = json!("gpt-5");
    let (status, message) = served.refused(&request).await;
    assert_eq!(status, 404);
    assert!(
        message.contains("\"gpt-5\"") && message.contains("echo, other"),
        "{message}"
    );
    assert_eq!(served.stop().await, Tally::from([("refused".into(), 31)]));
}

#[tokio::test]
async fn a_model_that_fails_or_panics_fails_that_request_alone() {
    let served = Served::start(ServeOptions::default()).await;
    let response = served.post(&ask("too long")).await;
    assert_eq!(response.status(), 400);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["error"]["code"], "context_length_exceeded");
    let (status, message) = served.refused(&ask("panic")).await;
    assert_eq!(status, 500);
    assert!(message.contains("echo broke down"), "{message}");
    assert_eq!(served.post(&ask("hello")).await.status(), 200);
}

#[tokio::test]
async fn an_unseeded_request_draws_again_unless_the_temperature_is_zero() {
    let seeds = async |seed: u64, temperature: f64| {
        let served = Served::start(ServeOptions {
            seed,
            ..ServeOptions::default()
        })
        .await;
        let mut request = ask("hello");
        request["temperature"] = json!(temperature);
        let first = heard(served.post(&request).await).await["seed"].as_u64().unwrap();
        let second = heard(served.post(&request).await).await["seed"].as_u64().unwrap();
        (first, second)
    };
    let (first, second) = seeds(1, 1.0).await;
    assert_ne!(first, second);
    assert_eq!(seeds(1, 1.0).await, (first, second), "a run can be repeated");
    assert_ne!(
        seeds(2, 1.0).await,
        (first, second),
        "another seed is another run"
    );
    let (first, second) = seeds(1, 0.0).await;
    assert_eq!(first, second);
}

#[tokio::test]
async fn the_key_is_demanded_where_one_is_set() {
    let served = Served::start(ServeOptions {
        key: Some("open sesame".into()),
        ..ServeOptions::default()
    })
    .await;
    let (status, message) = served.refused(&ask("hello")).await;
    assert_eq!(status, 401);
    assert!(!message.contains("sesame"), "the key must not leak");
    let url = format!("{}/v1/models", served.base);
    assert_eq!(
        served
            .client
            .get(&url)
            .bearer_auth("wrong")
            .send()
            .await
            .unwrap()
            .status(),
        401
    );
    let models: Value = served
        .client
        .get(&url)
        .bearer_auth("open sesame")
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let ids: Vec<_> = models["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| &model["id"])
        .collect();
    assert_eq!(ids, ["echo", "other"]);
    let health = served
        .client
        .get(format!("{}/health", served.base))
        .send()
        .await
        .unwrap();
    assert_eq!(health.json::<Value>().await.unwrap(), json!({"status": "ok"}));
}

#[tokio::test]
async fn a_page_of_any_origin_may_ask_with_a_key() {
    let served = Served::start(ServeOptions::default()).await;
    let url = format!("{}/v1/chat/completions", served.base);
    let preflight = served
        .client
        .request(reqwest::Method::OPTIONS, url)
        .header("origin", "https://playground.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,content-type")
        .send()
        .await
        .unwrap();
    assert!(preflight.status().is_success());
    let header = |name: &str| preflight.headers()[name].to_str().unwrap();
    assert_eq!(header("access-control-allow-origin"), "*");
    assert_eq!(
        header("access-control-allow-headers"),
        "authorization,content-type"
    );
    assert!(["*", "POST"].contains(&header("access-control-allow-methods")));
}

#[tokio::test]
async fn unknown_paths_and_methods_get_an_error_object() {
    let served = Served::start(ServeOptions::default()).await;
    for (path, expected) in [("/v1/completions", 404), ("/v1/chat/completions", 405)] {
        let response = served
            .client
            .get(format!("{}{path}", served.base))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), expected);
        let body: Value = response.json().await.unwrap();
        assert!(body["error"]["message"].is_string());
    }
}

#[tokio::test]
async fn injected_failures_look_like_real_ones() {
    let only = async |fault: &str| {
        Served::start(ServeOptions {
            faults: format!("{fault}=1").parse().unwrap(),
            retry_after: Duration::from_millis(1500),
            hang: Duration::from_millis(50),
            ..ServeOptions::default()
        })
        .await
    };

    let limited = only("429").await.post(&ask("hello")).await;
    assert_eq!(limited.status(), 429);
    assert_eq!(limited.headers()["retry-after"], "2");
    assert_eq!(limited.headers()["retry-after-ms"], "1500");
    assert_eq!(
        limited.json::<Value>().await.unwrap()["error"]["code"],
        "rate_limit_exceeded"
    );

    let broken = only("500").await.post(&ask("hello")).await;
    assert_eq!(broken.status(), 500);
    assert!(!broken.headers().contains_key("retry-after"));

    let malformed = only("malformed").await.post(&ask("hello")).await;
    assert_eq!(malformed.status(), 200);
    let text = malformed.text().await.unwrap();
    assert!(text.starts_with('{') && serde_json::from_str::<Value>(&text).is_err());

    let empty = only("empty")
        .await
        .post(&ask("hello"))
        .await
        .json::<Value>()
        .await
        .unwrap();
    assert_eq!(
        empty["choices"][0]["message"],
        json!({"role": "assistant", "content": null})
    );
    assert_eq!(
        empty["usage"]["prompt_tokens"], 100,
        "an empty answer is paid for"
    );

    let started = Instant::now();
    assert_eq!(only("timeout").await.post(&ask("hello")).await.status(), 504);
    assert!(started.elapsed() >= Duration::from_millis(50));
}

#[tokio::test]
async fn faults_repeat_under_their_seed_whatever_the_order() {
    let outcomes = async |texts: Vec<String>, fault_seed: u64| {
        let options = ServeOptions {
            faults: "500=0.3,429=0.3".parse().unwrap(),
            fault_seed,
            ..ServeOptions::default()
        };
        let served = Served::start(options).await;
        let mut outcomes = Vec::new();
        for text in &texts {
            outcomes.push((text.clone(), served.post(&ask(text)).await.status().as_u16()));
        }
        outcomes.sort();
        outcomes
    };
    let texts: Vec<String> = (0..40).map(|index| format!("question {}", index % 20)).collect();
    let forward = outcomes(texts.clone(), 1).await;
    assert_eq!(forward, outcomes(texts.iter().rev().cloned().collect(), 1).await);
    assert_ne!(forward, outcomes(texts, 2).await);
    let kinds: std::collections::BTreeSet<u16> = forward.iter().map(|&(_, status)| status).collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), [200, 429, 500]);
}

#[tokio::test]
async fn latency_scales_the_seconds_the_model_states() {
    let served = Served::start(ServeOptions {
        latency: 0.5,
        ..ServeOptions::default()
    })
    .await;
    let started = Instant::now();
    served.post(&ask("hello")).await;
    assert!(
        started.elapsed() >= Duration::from_millis(100),
        "half of 0.2 simulated seconds"
    );
}

#[tokio::test]
async fn every_request_leaves_a_line_also_one_whose_client_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("served.jsonl");
    let options = ServeOptions {
        latency: 1e6,
        log: Some(path.clone()),
        ..ServeOptions::default()
    };
    let served = Served::start(options).await;
    let url = format!("{}/v1/chat/completions", served.base);
    let impatient = tokio::spawn(served.client.post(url).json(&ask("hello")).send());
    served.asked.notified().await;
    impatient.abort();
    let deadline = Instant::now() + Duration::from_mins(1);
    while lines(&path).is_empty() {
        assert!(Instant::now() < deadline, "no line for the abandoned request");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    served.refused(&json!({"model": "echo"})).await;
    served.stop().await;

    let options = ServeOptions {
        log: Some(path.clone()),
        ..ServeOptions::default()
    };
    let served = Served::start(options).await;
    let mut seeded = ask("hello");
    seeded["seed"] = json!(3);
    for request in [&ask("hello"), &ask("hello"), &seeded] {
        served.post(request).await;
    }
    served.stop().await;

    let lines = lines(&path);
    let outcome: Vec<_> = lines.iter().map(|line| &line["outcome"]).collect();
    assert_eq!(outcome, ["abandoned", "refused", "ok", "ok", "ok"]);
    let status: Vec<_> = lines.iter().map(|line| &line["status"]).collect();
    assert_eq!(
        status,
        [&Value::Null, &json!(400), &json!(200), &json!(200), &json!(200)]
    );
    assert_eq!(lines[2]["body"], lines[3]["body"]);
    assert_eq!(
        (&lines[2]["attempt"], &lines[3]["attempt"]),
        (&json!(0), &json!(1))
    );
    assert_ne!(lines[3]["body"], lines[4]["body"]);
    assert_eq!(
        (&lines[4]["seed"], &lines[4]["output_tokens"]),
        (&json!(3), &json!(40))
    );
}

#[tokio::test]
async fn requests_that_hang_do_not_outlive_the_server() {
    let options = ServeOptions {
        faults: "timeout=1".parse().unwrap(),
        grace: Duration::from_mins(10),
        ..ServeOptions::default()
    };
    let served = Served::start(options).await;
    let mut hanging = served.begin(&ask("hello")).await;
    hanging
        .write_all(ask("hello").to_string().as_bytes())
        .await
        .unwrap();
    let tally = tokio::time::timeout(Duration::from_mins(1), served.stop())
        .await
        .unwrap();
    assert_eq!(tally, Tally::from([("timeout".into(), 1)]));
    let mut answer = String::new();
    hanging.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
}

#[tokio::test]
async fn a_client_that_stalls_does_not_keep_the_server() {
    let options = ServeOptions {
        grace: Duration::from_millis(50),
        ..ServeOptions::default()
    };
    let served = Served::start(options).await;
    let _stalled = served.begin(&ask("hello")).await;
    let tally = tokio::time::timeout(Duration::from_mins(1), served.stop())
        .await
        .expect("the server waits for a body that never comes");
    assert_eq!(tally, Tally::new());
}

#[tokio::test]
async fn a_model_that_cannot_be_opened_stops_the_start() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = ServeOptions {
        models: vec!["sim-huge".into()],
        ..ServeOptions::default()
    };
    let open = |_: &str| Err("there is no such model");
    let error = serve(listener, options, open, std::future::pending())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot serve the model \"sim-huge\": there is no such model"
    );
}
