//! A vLLM server: adapters loaded and unloaded, tokens sampled for tokens.

use std::collections::BTreeMap;
use std::time::Duration;

use capo_core::llm::{FailureKind, Finish, LlmError};
use capo_models::vllm::{TokenAnswer, TokenRequest, Vllm, VllmSpec};
use capo_models::{BuildError, Builder};
use serde_json::{Value, json};
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::server::{KEY, received};

const ASKED: TokenRequest<'_> = TokenRequest {
    adapter: "capo-1",
    prompt: &[3, 1, 4],
    seed: 0x1_8000_0007,
    max_tokens: 5,
    stop_tokens: &[2, 9],
    temperature: 0.5,
    top_k: 0,
    top_p: 1.0,
    min_p: 0.25,
};

fn build(table: Value) -> Result<Vllm, BuildError> {
    let spec: VllmSpec = serde_json::from_value(table).unwrap();
    let keys = BTreeMap::from([("VLLM_API_KEY".to_owned(), KEY.to_owned())]);
    let builder = Builder::new(&keys).first_wait(Duration::from_millis(2));
    Vllm::new(&spec, &builder)
}

/// A server that answers what is sent to `place` with these replies, in turn.
async fn serve(place: &str, replies: Vec<ResponseTemplate>) -> (MockServer, Vllm) {
    let server = MockServer::start().await;
    for (index, reply) in replies.into_iter().enumerate() {
        let mock = Mock::given(path(format!("/v1/{place}"))).respond_with(reply);
        let mock = mock.up_to_n_times(1).with_priority(index as u8 + 1);
        mock.mount(&server).await;
    }
    let vllm = build(json!({ "base_url": format!("{}/v1/", server.uri()), "retries": 2 })).unwrap();
    (server, vllm)
}

fn reply(status: u16, body: Value) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_json(body)
}

fn choice(more: Value) -> Value {
    let mut choice = json!({ "index": 0, "text": "aa", "finish_reason": "stop", "token_ids": [7, 7, 2] });
    if let (Some(choice), Value::Object(more)) = (choice.as_object_mut(), more) {
        choice.extend(more);
    }
    json!({ "id": "c", "object": "text_completion", "choices": [choice] })
}

async fn complete(replies: Vec<ResponseTemplate>) -> (Result<TokenAnswer, LlmError>, usize) {
    let (server, vllm) = serve("completions", replies).await;
    let answer = vllm.complete(&ASKED).await;
    (answer, received(&server).await.len())
}

fn said<T: std::fmt::Debug>(outcome: Result<T, LlmError>) -> String {
    let message = outcome.unwrap_err().to_string();
    assert!(!message.contains(KEY), "{message}");
    assert!(message.starts_with("vLLM: "), "{message}");
    message
}

#[tokio::test]
async fn tokens_and_all_settings_are_sent_and_tokens_come_back() {
    let answered = choice(json!({ "prompt_token_ids": [3, 1, 4] }));
    let (server, vllm) = serve("completions", vec![reply(200, answered)]).await;
    let answer = vllm.complete(&ASKED).await.unwrap();
    assert_eq!((answer.tokens, answer.finish), (vec![7, 7, 2], Finish::Stop));
    assert_eq!((answer.usage.input_tokens, answer.usage.output_tokens), (3, 3));
    let (request, body) = received(&server).await.remove(0);
    assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(
        body,
        json!({
            "model": "capo-1", "prompt": [3, 1, 4], "n": 1, "seed": 7, "max_tokens": 5,
            "temperature": 0.5, "top_k": -1, "top_p": 1.0, "min_p": 0.25,
            "presence_penalty": 0.0, "frequency_penalty": 0.0, "repetition_penalty": 1.0,
            "ignore_eos": true, "stop_token_ids": [2, 9], "return_token_ids": true,
        })
    );
}

#[tokio::test]
async fn the_longest_answer_is_one_and_a_stop_token_at_its_end_ends_it() {
    let longest = json!({ "finish_reason": "length", "token_ids": [7, 7, 7, 7, 7] });
    let (answer, _) = complete(vec![reply(200, choice(longest))]).await;
    assert_eq!(answer.unwrap().finish, Finish::Length);
    let ended = json!({ "finish_reason": "length", "token_ids": [7, 7, 7, 7, 9] });
    let (answer, _) = complete(vec![reply(200, choice(ended))]).await;
    assert_eq!(answer.unwrap().finish, Finish::Stop);
}

#[tokio::test]
async fn answers_that_do_not_say_what_was_sampled_are_refused_at_once() {
    for (more, part) in [
        (json!({ "token_ids": null }), "vLLM 0.10.2 or later"),
        (json!({ "token_ids": [7, -1] }), "`token_ids`"),
        (json!({ "token_ids": [7, 7] }), "2 tokens was cut off"),
        (json!({ "token_ids": [] }), "0 tokens was cut off"),
        (json!({ "token_ids": [2, 7, 2] }), "3 tokens was cut off"),
        (json!({ "finish_reason": "abort" }), "finish_reason abort"),
        (
            json!({ "finish_reason": "length", "token_ids": [7, 7, 7] }),
            "3 tokens was cut off",
        ),
        (json!({ "prompt_token_ids": [1, 3, 1, 4] }), "another prompt"),
    ] {
        let (answer, requests) = complete(vec![reply(200, choice(more)); 3]).await;
        let message = said(answer);
        assert!(message.contains(part), "no {part:?} in: {message}");
        assert_eq!(requests, 1, "another answer would be no better: {message}");
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    let busy = reply(503, json!({ "error": { "message": "starting" } }));
    let half = ResponseTemplate::new(200).set_body_string("{\"choices\":[{\"token_ids\":[7,");
    let (answer, requests) = complete(vec![busy, half.clone(), reply(200, choice(json!({})))]).await;
    let answer = answer.unwrap();
    assert_eq!((answer.tokens.len(), requests), (3, 3));
    assert!(answer.failed_tries.is_some());
    let (answer, requests) = complete(vec![half; 3]).await;
    let message = said(answer);
    assert!(message.contains("the answer is no JSON"), "{message}");
    assert_eq!(requests, 3);
}

#[tokio::test]
async fn an_adapter_is_loaded_and_unloaded_by_name_and_path() {
    let success =
        ResponseTemplate::new(200).set_body_string("Success: LoRA adapter 'capo-1' added successfully.");
    let (server, vllm) = serve("load_lora_adapter", vec![success.clone()]).await;
    Mock::given(method("POST"))
        .and(path("/v1/unload_lora_adapter"))
        .respond_with(success)
        .mount(&server)
        .await;
    vllm.load("capo-1", "/shared/capo/1").await.unwrap();
    vllm.unload("capo-1").await.unwrap();
    let bodies: Vec<Value> = received(&server)
        .await
        .into_iter()
        .map(|(_, body)| body)
        .collect();
    let loaded = json!({ "lora_name": "capo-1", "lora_path": "/shared/capo/1" });
    assert_eq!(bodies, [loaded, json!({ "lora_name": "capo-1" })]);
}

#[tokio::test]
async fn what_is_so_already_is_no_failure() {
    let there =
        json!({ "error": { "message": "The lora adapter 'capo-1' has already been loaded.", "code": 400 } });
    let (_server, vllm) = serve("load_lora_adapter", vec![reply(400, there)]).await;
    vllm.load("capo-1", "/shared/capo/1").await.unwrap();
    let gone = json!({ "error": { "message": "The lora adapter 'capo-1' cannot be found.", "code": 404 } });
    let (_server, vllm) = serve("unload_lora_adapter", vec![reply(404, gone)]).await;
    vllm.unload("capo-1").await.unwrap();
}

#[tokio::test]
async fn a_server_that_loads_nothing_is_told_how_to_start() {
    let absent = reply(404, json!({ "detail": "Not Found" }));
    let (_server, vllm) = serve("load_lora_adapter", vec![absent.clone()]).await;
    let message = said(vllm.load("capo-1", "/shared/capo/1").await);
    assert!(
        message.contains("VLLM_ALLOW_RUNTIME_LORA_UPDATING=True") && message.contains("--enable-lora"),
        "{message}"
    );
    let (_server, vllm) = serve("unload_lora_adapter", vec![absent]).await;
    assert!(said(vllm.unload("capo-1").await).contains("VLLM_ALLOW_RUNTIME_LORA_UPDATING"));
}

#[tokio::test]
async fn an_adapter_that_cannot_be_served_is_refused_in_the_servers_words() {
    let unseen = json!({ "error": { "message": "No adapter found for /shared/capo/1", "code": 404 } });
    let (_server, vllm) = serve("load_lora_adapter", vec![reply(404, unseen)]).await;
    let message = said(vllm.load("capo-1", "/shared/capo/1").await);
    assert!(
        message.contains("No adapter found for /shared/capo/1") && message.contains("`server_folder`"),
        "{message}"
    );
    let large =
        json!({ "error": { "message": "LoRA rank 32 is greater than max_lora_rank 16.", "code": 400 } });
    let (server, vllm) = serve("load_lora_adapter", vec![reply(400, large)]).await;
    let message = said(vllm.load("capo-1", "/shared/capo/1").await);
    assert!(message.contains("max_lora_rank 16"), "{message}");
    assert_eq!(received(&server).await.len(), 1);
}

#[tokio::test]
async fn a_refused_key_is_named_by_its_variable() {
    let refused = reply(401, json!({ "error": format!("Unauthorized: {KEY}") }));
    let (_server, vllm) = serve("load_lora_adapter", vec![refused]).await;
    let error = vllm.load("capo-1", "/shared/capo/1").await;
    assert!(matches!(
        error,
        Err(LlmError::Failed {
            kind: FailureKind::Authentication,
            ..
        })
    ));
    assert!(said(error).contains("VLLM_API_KEY"));
}

#[tokio::test]
async fn models_are_listed_by_name() {
    let server = MockServer::start().await;
    let list =
        json!({ "object": "list", "data": [{ "id": "base" }, { "id": "capo-1", "root": "/shared/capo/1" }] });
    Mock::given(method("GET"))
        .and(path("/v1/models"))
        .respond_with(reply(200, list))
        .mount(&server)
        .await;
    let vllm = build(json!({ "base_url": format!("{}/v1", server.uri()) })).unwrap();
    assert_eq!(vllm.models().await.unwrap(), ["base", "capo-1"]);
}

#[test]
fn tables_are_held_to_the_rules_of_models() {
    for (table, part) in [
        (
            json!({ "base_url": format!("http://{KEY}@host/v1") }),
            "no credentials",
        ),
        (
            json!({ "base_url": "http://host/v1", "api_key_env": KEY }),
            "name of a variable",
        ),
        (
            json!({ "base_url": "http://host/v1", "api_key_env": "ABSENT" }),
            "set ABSENT",
        ),
        (
            json!({ "base_url": "http://host/v1", "headers": { "x-api-key": KEY } }),
            "carries a key",
        ),
    ] {
        let message = build(table).err().unwrap().to_string();
        assert!(message.contains(part) && !message.contains(KEY), "{message}");
    }
}
