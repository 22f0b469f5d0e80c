//! Agents behind HTTP endpoints.

use std::cell::Cell;
use std::time::Duration;

use futures::future::join_all;
use tokio::net::TcpListener;

use super::*;
use crate::outside::testing::{http, serve};

#[tokio::test(flavor = "current_thread")]
async fn http_failures_are_told_apart_without_secrets() {
    tokio::task::LocalSet::new()
        .run_until(async {
            let secret = std::env::var(SECRET).unwrap();
            for (status, head, expected_kind, expected_retry, says) in [
                (
                    "401 Unauthorized",
                    "",
                    FailureKind::Authentication,
                    false,
                    "check the environment variable CARGO_MANIFEST_DIR",
                ),
                (
                    "429 Too Many Requests",
                    "retry-after: 301\r\n",
                    FailureKind::RateLimit,
                    true,
                    "it asks to wait 301; lower workload.concurrency",
                ),
                (
                    "500 Internal Server Error",
                    "",
                    FailureKind::Tool,
                    true,
                    "HTTP 500",
                ),
                ("404 Not Found", "", FailureKind::Tool, false, "HTTP 404"),
                (
                    "302 Found",
                    "location: http://127.0.0.1:9/\r\n",
                    FailureKind::Tool,
                    false,
                    "redirects are not followed",
                ),
            ] {
                let body = format!("bad key {secret}");
                let endpoint = serve(move |request| {
                    let seen = request.to_lowercase().contains("x-key: ");
                    let response = http(status, head, &body);
                    async move {
                        if seen {
                            response
                        } else {
                            http("200 OK", "", "no key")
                        }
                    }
                })
                .await;
                let workload =
                    build(json!({"endpoint": endpoint, "headers_env": {"X-Key": SECRET}})).unwrap();
                let (kind, retryable, message) = failure(&*workload).await;
                assert_eq!((kind, retryable), (expected_kind, expected_retry), "{message}");
                assert!(message.contains(says), "{message}");
                assert!(!message.contains(&secret), "{message}");
            }
        })
        .await;
}

#[tokio::test(flavor = "current_thread")]
async fn an_agent_that_asks_to_slow_down_is_waited_for_by_all() {
    tokio::task::LocalSet::new()
        .run_until(async {
            let requests = Rc::new(Cell::new(0));
            let count = Rc::clone(&requests);
            let endpoint = serve(move |_| {
                count.set(count.get() + 1);
                // The first rollout is refused twice.
                let response = match count.get() {
                    1 | 2 => http("429 Too Many Requests", "retry-after: 0.2\r\n", "busy"),
                    _ => http("200 OK", "", GOOD),
                };
                async move { response }
            })
            .await;
            let workload = build(json!({"endpoint": endpoint, "concurrency": 1, "retries": 5})).unwrap();
            let start = std::time::Instant::now();
            let rollouts = join_all(["1", "2"].map(|example| roll(&*workload, example, "p"))).await;
            assert!(rollouts.iter().all(Result::is_ok), "{rollouts:?}");
            assert_eq!(requests.get(), 4);
            assert!(start.elapsed() >= Duration::from_millis(400));
        })
        .await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_refused_answer_keeps_what_it_cost() {
    tokio::task::LocalSet::new()
        .run_until(async {
            let body =
                r#"{"protocol": 1, "measurements": {"correct": 1}, "usage": {"calls": 3, "usd": 0.5}}"#;
            let endpoint = serve(move |_| async move { http("200 OK", "", body) }).await;
            let error = roll(&*build(json!({"endpoint": endpoint})).unwrap(), "1", "p")
                .await
                .unwrap_err();
            let RolloutError::Failed { message, usage, .. } = error else {
                panic!("{error}");
            };
            assert!(message.contains("no measurement `words`"), "{message}");
            let usage = usage.role(Role::Agent);
            assert_eq!((usage.calls, usage.usd), (3, Some(0.5)));
        })
        .await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_failure_costs_something_unknown_unless_the_request_was_not_taken() {
    tokio::task::LocalSet::new()
        .run_until(async {
            for (status, body, timeout, known) in [
                ("200 OK", "not JSON", 5.0, false),
                ("200 OK", r#"{"protocol": 2, "measurements": {}}"#, 5.0, false),
                ("500 Internal Server Error", "", 5.0, false),
                ("200 OK", "too slow", 0.2, false),
                ("401 Unauthorized", "", 5.0, true),
                ("404 Not Found", "", 5.0, true),
                ("503 Service Unavailable", "", 5.0, true),
            ] {
                let endpoint = serve(move |_| async move {
                    if body == "too slow" {
                        tokio::time::sleep(Duration::from_secs(30)).await;
                    }
                    http(status, "", body)
                })
                .await;
                let workload = build(json!({"endpoint": endpoint, "timeout": timeout})).unwrap();
                let error = roll(&*workload, "1", "p").await.unwrap_err();
                let RolloutError::Failed { message, usage, .. } = error else {
                    panic!("{error}");
                };
                assert_eq!(usage.total().usd.is_some(), known, "{message}");
                assert_eq!(usage.is_empty(), known, "{message}");
            }
            let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr();
            let endpoint = format!("http://{}/", gone.unwrap());
            let workload = build(json!({"endpoint": endpoint})).unwrap();
            let error = roll(&*workload, "1", "p").await.unwrap_err();
            assert!(
                matches!(&error, RolloutError::Failed { usage, .. } if usage.is_empty()),
                "{error}"
            );
        })
        .await;
}

#[tokio::test(flavor = "current_thread")]
async fn an_endpoint_that_is_not_there_or_too_slow_is_named() {
    tokio::task::LocalSet::new()
        .run_until(async {
            let gone = TcpListener::bind("127.0.0.1:0")
                .await
                .unwrap()
                .local_addr()
                .unwrap();
            let (kind, retryable, message) =
                failure(&*build(json!({"endpoint": format!("http://{gone}/")})).unwrap()).await;
            assert_eq!((kind, retryable), (FailureKind::Tool, true));
            assert!(
                message.contains(&gone.to_string()) && message.contains("is it running and reachable?"),
                "{message}"
            );

            let slow = serve(|_| async {
                tokio::time::sleep(Duration::from_secs(30)).await;
                http("200 OK", "", GOOD)
            })
            .await;
            let (kind, _, message) =
                failure(&*build(json!({"endpoint": slow, "timeout": 0.2})).unwrap()).await;
            assert_eq!(kind, FailureKind::Timeout, "{message}");
        })
        .await;
}

#[tokio::test(flavor = "current_thread")]
async fn no_more_rollouts_run_at_a_time_than_allowed() {
    tokio::task::LocalSet::new()
        .run_until(async {
            let (running, most) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
            let seen = Rc::clone(&most);
            let endpoint = serve(move |_| {
                let (running, most) = (Rc::clone(&running), Rc::clone(&most));
                async move {
                    running.set(running.get() + 1);
                    most.set(most.get().max(running.get()));
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    running.set(running.get() - 1);
                    http("200 OK", "", GOOD)
                }
            })
            .await;
            let workload = build(json!({"endpoint": endpoint, "concurrency": 2, "timeout": 0.4})).unwrap();
            let examples = ["1", "2", "3", "4", "5", "6", "7", "8"].repeat(2);
            // Waiting for a turn does not count against the timeout: 16 rollouts of 50 ms take 0.4 s.
            let rollouts = join_all(examples.iter().map(|example| roll(&*workload, example, "p"))).await;
            assert!(rollouts.iter().all(Result::is_ok), "{rollouts:?}");
            assert_eq!(seen.get(), 2);
        })
        .await;
}
