//! Trying again, and stopping to.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use capo_core::notice::Notice;
use capo_core::usage::Usage;
use futures::FutureExt;
use futures_timer::Delay;
use tokio::net::TcpListener;

use super::*;
use crate::outside::testing::{converse, http, serve};

/// Remembers what failed tries consumed, and may be told to stop.
#[derive(Default)]
struct Run {
    consumed: RefCell<Vec<Usage>>,
    told: RefCell<Vec<String>>,
    interrupted: Cell<bool>,
    /// After how long somebody interrupts a wait, and no longer waits for what is under way.
    patience: Option<Duration>,
}

impl Run {
    fn until(&self) -> LocalBoxFuture<'_, ()> {
        async {
            match self.patience {
                Some(patience) => Delay::new(patience).await,
                None => futures::future::pending().await,
            }
            self.interrupted.set(true);
        }
        .boxed_local()
    }
}

impl Caller for Run {
    fn call(&self, role: Role, _: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        panic!("an external agent asked the {role}");
    }

    fn may_go_on(&self) -> Result<(), LlmError> {
        if self.interrupted.get() {
            return Err(LlmError::Interrupted {
                usage: capo_core::llm::CallUsage::default(),
            });
        }
        Ok(())
    }

    // Only those who wait for it learn of it.
    fn interrupted(&self) -> LocalBoxFuture<'_, ()> {
        self.until()
    }

    fn abandoned(&self) -> LocalBoxFuture<'_, ()> {
        self.until()
    }

    fn tell(&self, notice: &Notice) {
        self.told.borrow_mut().push(match notice {
            Notice::Waiting(wait) => wait.to_string(),
            Notice::Answered { .. } => "answered".to_owned(),
            Notice::Batch(batch) => batch.to_string(),
        });
    }

    fn consumed(&self, usage: &Usage) {
        self.consumed.borrow_mut().push(usage.clone());
    }
}

fn interrupted(rollout: &Result<Rollout, RolloutError>) -> bool {
    matches!(rollout, Err(RolloutError::Llm(LlmError::Interrupted { .. })))
}

#[tokio::test(flavor = "current_thread")]
async fn an_endpoint_may_fail_for_a_while() {
    tokio::task::LocalSet::new()
        .run_until(async {
            let requests = Rc::new(Cell::new(0));
            let count = Rc::clone(&requests);
            let endpoint = serve(move |_| {
                count.set(count.get() + 1);
                let response = match count.get() {
                    1 => http("503 Service Unavailable", "retry-after: 0\r\n", "starting"),
                    2 => http("502 Bad Gateway", "", "broken"),
                    // The connection ends without an answer.
                    3 => String::new(),
                    4 => http("200 OK", "", "not JSON"),
                    _ => http("200 OK", "", GOOD),
                };
                async move { response }
            })
            .await;
            let workload = build(json!({"endpoint": endpoint, "retries": 4})).unwrap();
            let run = Run::default();
            let rollout = roll_for(&run, &*workload, "1", "p").await.unwrap();
            assert_eq!((rollout.measurements["words"], requests.get()), (3.0, 5));
            let consumed: Vec<bool> = run.consumed.borrow().iter().map(Usage::is_empty).collect();
            assert_eq!(consumed, [true, false, false, false], "a 503 did no work");
            let told = run.told.borrow();
            let [first, .., lost, unread, last] = told.as_slice() else {
                panic!("{told:?}");
            };
            assert!(first.starts_with("the agent asked to wait 1 s"), "{first}");
            assert!(
                lost.starts_with("cannot reach 127.0.0.1:") && lost.ends_with("4 of 5"),
                "{lost}"
            );
            assert!(unread.starts_with("the agent gave no usable answer"), "{unread}");
            assert_eq!(last, "answered");
        })
        .await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_refused_connection_is_waited_out() {
    tokio::task::LocalSet::new()
        .run_until(async {
            let place = TcpListener::bind("127.0.0.1:0")
                .await
                .unwrap()
                .local_addr()
                .unwrap();
            let workload = build(json!({"endpoint": format!("http://{place}/"), "retries": 9})).unwrap();
            tokio::task::spawn_local(async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                let listener = TcpListener::bind(place).await.unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    let answer = |_| async { http("200 OK", "", GOOD) };
                    converse(stream, &answer).await;
                }
            });
            let rollouts = ["1", "2", "3"].map(|example| roll(&*workload, example, "p"));
            for rollout in futures::future::join_all(rollouts).await {
                assert_eq!(rollout.unwrap().measurements["words"], 3.0);
            }
        })
        .await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_command_that_fails_now_and_then_is_tried_again_and_said_to_be() {
    let folder = std::env::temp_dir().join(format!("capo-flaky-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("tries").display().to_string();
    // Fails, then says what is no answer, then answers.
    let code = format!(
        "import os, sys; n = os.path.getsize({file:?}) if os.path.exists({file:?}) else 0; \
         open({file:?}, 'a').write('x'); sys.exit('no luck') if n == 0 else print('hm' if n == 1 else {GOOD:?})"
    );
    let command = json!(["python3", "-c", code]);
    for (retries, says) in [(0, "no luck"), (1, "(tried 2 times)"), (2, "")] {
        let _ = std::fs::remove_file(&file);
        let workload = build(json!({"command": command, "retries": retries})).unwrap();
        match roll(&*workload, "1", "p").await {
            Ok(rollout) => assert_eq!((retries, rollout.measurements["words"]), (2, 3.0)),
            Err(error) => {
                let message = error.to_string();
                assert!(
                    message.ends_with(says) && !says.is_empty(),
                    "{retries}: {message}"
                );
            }
        }
        assert_eq!(std::fs::metadata(&file).unwrap().len(), retries + 1);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test(flavor = "current_thread")]
async fn an_interruption_ends_waits_at_once() {
    tokio::task::LocalSet::new()
        .run_until(async {
            let endpoint =
                serve(|_| async { http("429 Too Many Requests", "retry-after: 200\r\n", "busy") }).await;
            let workload = build(json!({"endpoint": endpoint, "retries": 5})).unwrap();
            let run = Run {
                patience: Some(Duration::from_millis(100)),
                ..Run::default()
            };
            let start = Instant::now();
            let rollout = tokio::time::timeout(Duration::from_secs(20), roll_for(&run, &*workload, "1", "p"));
            assert!(interrupted(&rollout.await.unwrap()));
            assert!(start.elapsed() < Duration::from_secs(10));
        })
        .await;
}

#[tokio::test(flavor = "current_thread")]
async fn what_is_under_way_is_dropped_and_counted_once_nobody_waits_for_it() {
    let workload = build(json!({"command": ["sleep", "60"], "retries": 5})).unwrap();
    let run = Run {
        patience: Some(Duration::from_millis(100)),
        ..Run::default()
    };
    let rollout = tokio::time::timeout(Duration::from_secs(20), roll_for(&run, &*workload, "1", "p"));
    assert!(interrupted(&rollout.await.unwrap()));
    let consumed = run.consumed.borrow();
    assert_eq!(
        (consumed.len(), consumed[0].total().usd),
        (1, None),
        "what it cost is unknown"
    );
}
