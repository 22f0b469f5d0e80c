//! Scorers of a user's own, over real processes and real HTTP on loopback.

use std::cell::Cell;

use capo_core::ids::CandidateId;
use capo_core::notice::Notice;
use capo_core::usage::Usage;

use super::*;
use crate::outside::testing::{http, serve};

/// A variable that every test run has, in the part of a secret.
const SECRET: &str = "CARGO_MANIFEST_DIR";

/// An agent that says hello, and what else was said.
#[derive(Default)]
struct Run {
    told: RefCell<Vec<String>>,
}

impl Caller for Run {
    fn call(&self, role: Role, _: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        assert_eq!(role, Role::Agent);
        let Message::Assistant(message) = Message::assistant("Hello.") else {
            unreachable!("an assistant message");
        };
        let response = ChatResponse {
            message,
            finish: Finish::Stop,
            usage: CallUsage::default(),
            failed_tries: None,
        };
        async { Ok(response) }.boxed_local()
    }

    fn tell(&self, notice: &Notice) {
        self.told.borrow_mut().push(match notice {
            Notice::Waiting(wait) => wait.to_string(),
            Notice::Answered { model, .. } => format!("{model} answers"),
            Notice::Batch(batch) => batch.to_string(),
        });
    }

    fn consumed(&self, usage: &Usage) {
        panic!("a scorer's try was counted: {usage:?}");
    }
}

/// A table with a metric `tone` and perhaps more, each of them a scorer's.
fn scored(common: &Value, metrics: &[Value]) -> Rc<dyn Workload> {
    let metric = |own: &Value| with(with(json!({"retries": 0}), common), own);
    let metrics: Vec<Value> = metrics.iter().map(metric).collect();
    build(&with(sums(), &json!({"metric": metrics})))
        .unwrap()
        .remove(0)
}

fn python(code: &str) -> Value {
    json!({"type": "command", "command": ["python3", "-c", code]})
}

/// A program that says this, whatever it is told.
fn saying(answer: &str) -> Value {
    python(&format!(
        "import sys; sys.stdin.read(); sys.stdout.write({answer:?})"
    ))
}

async fn score(workload: &dyn Workload, run: &Run) -> Result<Rollout, RolloutError> {
    let context = RolloutContext {
        prompt: "Be kind.",
        example: "2",
        repeat: 1,
        seed: u64::MAX,
        caller: run,
    };
    workload.rollout(context).await
}

async fn failure(workload: &dyn Workload) -> (FailureKind, bool, String) {
    match score(workload, &Run::default()).await {
        Err(RolloutError::Failed {
            kind,
            message,
            retryable,
            usage,
            keeps_answers,
        }) => {
            assert!(usage.is_empty(), "{usage:?}");
            assert!(keeps_answers, "{message}");
            (kind, retryable, message)
        }
        other => panic!("no failure of the scorer's: {other:?}"),
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_program_is_asked_once_and_gives_several_metrics_and_words() {
    let folder = std::env::temp_dir().join(format!("capo-scorer-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("calls").display().to_string();
    let code = format!(
        "import json, sys; request = sys.stdin.readline(); assert sys.stdin.read() == ''; \
         open({file:?}, 'a').write('x'); print(json.dumps({{'tone': 0.25, 'length': 6, 'words': request}}))"
    );
    let metrics = [
        json!({"name": "tone"}),
        json!({"name": "rude", "field": "tone", "invert": true}),
        json!({"name": "length", "direction": "cost", "max": 100}),
    ];
    let rollout = score(&*scored(&python(&code), &metrics), &Run::default())
        .await
        .unwrap();
    let measured: Vec<(&str, f64)> = rollout
        .measurements
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    assert_eq!(
        measured,
        [
            ("tone", 0.25),
            ("rude", 0.75),
            ("length", 6.0),
            ("prompt_length", 0.008)
        ]
    );
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 1);
    std::fs::remove_dir_all(&folder).unwrap();

    let mut outcome = rollout.trace.outcome.lines();
    let request = outcome.next().unwrap().strip_prefix("tone = 0.25: ").unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(request).unwrap(),
        json!({
            "prompt_id": CandidateId::of("Be kind.").to_string(), "example_id": "2",
            "example": {"q": "2+2", "a": "4"}, "answer": "Hello.", "repeat": 1, "seed": (1_u64 << 53) - 1,
        })
    );
    assert_eq!(outcome.collect::<Vec<_>>(), ["rude = 0.75", "length = 6"]);
    assert!(rollout.external_usage.is_empty());
}

#[tokio::test(flavor = "current_thread")]
async fn the_documented_program_scores() {
    let code = shared::guide_blocks("own-table.md", "python").remove(0);
    let metrics = [
        json!({"name": "tone"}),
        json!({"name": "jargon", "direction": "cost"}),
    ];
    let rollout = score(&*scored(&python(&code), &metrics), &Run::default()).await;
    assert_eq!(rollout.unwrap().trace.outcome, "tone = 1: Jargon:\njargon = 0");
}

#[tokio::test(flavor = "current_thread")]
async fn a_program_is_told_the_prompt_where_it_is_to_be() {
    let code =
        "import json, sys; r = json.load(sys.stdin); print(json.dumps({'tone': r['prompt'] == 'Be kind.'}))";
    let metrics = [json!({"name": "tone", "with_prompt": true})];
    let rollout = score(&*scored(&python(code), &metrics), &Run::default()).await;
    assert_eq!(rollout.unwrap().measurements["tone"], 1.0);
}

#[tokio::test(flavor = "current_thread")]
async fn answers_that_cannot_be_used_are_named_and_no_scores() {
    let metrics = [
        json!({"name": "tone"}),
        json!({"name": "length", "direction": "cost"}),
    ];
    for (answer, problem) in [
        ("hello", "its answer is not a JSON object: expected a value"),
        ("[0.5]", "its answer is not a JSON object"),
        (r#"{"length": 1}"#, "no measurement `tone`; it has: length"),
        (
            r#"{"tone": NaN, "length": 1}"#,
            "`tone` is not a number (NaN, infinite or null)",
        ),
        (
            r#"{"tone": 1, "length": Infinity}"#,
            "`length` is not a number (NaN, infinite or null)",
        ),
        (r#"{"tone": "1"}"#, "`tone` is not a number but \"1\""),
        (r#"{"tone": 1.5}"#, "`tone` is 1.5, outside its range 0 to 1"),
        (
            r#"{"tone": 1, "length": -1}"#,
            "`length` is -1, outside its range 0",
        ),
        (r#"{"tone": 1, "words": 3}"#, "`words` of its answer is no text"),
    ] {
        let (kind, retryable, message) = failure(&*scored(&saying(answer), &metrics)).await;
        assert_eq!((kind, retryable), (FailureKind::Malformed, true), "{message}");
        assert!(
            message.contains("`: the scorer python3: ") && message.contains(problem),
            "{answer}: {message}"
        );
        assert!(crate::is_scorers_failure(&message));
    }
}

#[tokio::test(flavor = "current_thread")]
async fn what_a_program_says_is_kept_without_secrets() {
    let secret = std::env::var(SECRET).unwrap();
    let answer = |tone: &str| {
        python(&format!(
            "import json, os; s = os.environ['{SECRET}']; print(json.dumps({{'tone': {tone}, 'words': 'used ' + s}}))"
        ))
    };
    let metrics = [json!({"name": "tone", "env": [SECRET]})];
    let rollout = score(&*scored(&answer("1"), &metrics), &Run::default())
        .await
        .unwrap();
    assert_eq!(rollout.trace.outcome, "tone = 1: used [redacted]");
    let (_, _, message) = failure(&*scored(&answer("s"), &metrics)).await;
    assert!(
        message.contains("[redacted]") && !message.contains(&secret),
        "{message}"
    );

    let second = [
        json!({"name": "kind", "env": [SECRET]}),
        json!({"name": "tone", "env": [SECRET]}),
    ];
    let code = format!("import json, os; print(json.dumps({{'kind': 1, 'tone': os.environ['{SECRET}']}}))");
    let (_, _, message) = failure(&*scored(&python(&code), &second)).await;
    assert!(
        message.starts_with("metric `tone`: ")
            && message.contains("[redacted]")
            && !message.contains(&secret),
        "{message}"
    );

    let unset = [json!({"name": "tone", "env": ["CAPO_NO_SUCH_VARIABLE"]})];
    let (kind, retryable, message) = failure(&*scored(&saying("{}"), &unset)).await;
    assert_eq!((kind, retryable), (FailureKind::Authentication, false));
    let lacks =
        "`env` of metric `tone` names the environment variable CAPO_NO_SUCH_VARIABLE, but it is not set";
    assert!(message.ends_with(lacks), "{message}");
    let metric = with(saying("{}"), &unset[0]);
    let settings = with(sums(), &json!({"set": [{"metric": [metric]}]}));
    assert_eq!(
        crate::missing(settings.as_object().unwrap(), &MemoryFiles::new()),
        [lacks]
    );
}

#[tokio::test(flavor = "current_thread")]
async fn what_a_program_says_is_told_up_to_a_length() {
    let metrics = [json!({"name": "tone"})];
    let saying = |answer: &str| python(&format!("import json; print(json.dumps({answer}))"));
    let long = saying("{'tone': 1, 'words': 'w' * 5000}");
    let rollout = score(&*scored(&long, &metrics), &Run::default()).await.unwrap();
    let told = format!("tone = 1: {}… (cut after 4000 characters)", "w".repeat(4000));
    assert_eq!(rollout.trace.outcome, told);
    for answer in ["{'tone': 'v' * 5000}", "{'n' * 5000: 1}"] {
        let (_, _, message) = failure(&*scored(&saying(answer), &metrics)).await;
        assert!(message.ends_with("… (cut after 1000 characters)"), "{message}");
        assert!(message.len() < 1200, "{message}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn an_endpoint_is_asked_again_and_once_for_all_its_metrics() {
    tokio::task::LocalSet::new()
        .run_until(async {
            let requests = Rc::new(Cell::new(0));
            let count = Rc::clone(&requests);
            let endpoint = serve(move |request| {
                count.set(count.get() + 1);
                assert!(request.contains(r#""answer":"Hello.""#), "{request}");
                let response = match count.get() {
                    1 => http("503 Service Unavailable", "retry-after: 0\r\n", "starting"),
                    2 => http("200 OK", "", r#"{"tone": 7}"#),
                    _ => http("200 OK", "", r#"{"tone": 1, "length": 6, "words": "Short."}"#),
                };
                async move { response }
            })
            .await;
            let common = json!({"type": "http", "endpoint": endpoint, "retries": 2});
            let metrics = [
                json!({"name": "tone"}),
                json!({"name": "length", "direction": "cost"}),
            ];
            let run = Run::default();
            let rollout = score(&*scored(&common, &metrics), &run).await.unwrap();
            assert_eq!(rollout.trace.outcome, "tone = 1: Short.\nlength = 6");
            assert_eq!(requests.get(), 3);
            let told = run.told.borrow();
            assert!(told[0].starts_with("the scorer asked to wait 1 s"), "{told:?}");
            assert_eq!(told.last().unwrap(), "scorer answers");
        })
        .await;
}

#[test]
fn bad_settings_of_scorers_are_refused_by_key() {
    let (program, endpoint) = (
        saying("{}"),
        json!({"type": "http", "endpoint": "http://127.0.0.1:1/"}),
    );
    for (metric, expected) in [
        (
            json!({"type": "command", "name": "m"}),
            "workload.metric[0].command: is empty",
        ),
        (
            json!({"type": "http", "name": "m", "endpoint": "https://x/?key=sk-1"}),
            "workload.metric[0].endpoint: must not hold a query",
        ),
        (
            with(
                endpoint,
                &json!({"name": "m", "headers": {"Authorization": "Bearer sk-1"}}),
            ),
            "workload.metric[0].headers.Authorization: carries a key",
        ),
        (
            with(program.clone(), &json!({"name": "words"})),
            "workload.metric[0].field: `words` of the answer are for the critic",
        ),
        (
            with(program.clone(), &json!({"name": "m", "max": 5})),
            "workload.metric[0].direction: an objective lies between 0 and 1",
        ),
        (
            with(program.clone(), &json!({"name": "m", "timeout": 0})),
            "workload.metric[0].timeout: must be above 0",
        ),
        (
            with(
                program,
                &json!({"name": "m", "direction": "cost", "invert": true}),
            ),
            "workload.metric[0].invert: only a metric between 0 and 1",
        ),
        (
            json!(["command", "m", ["sh"]]),
            "workload.metric[0]: write each metric as a [[workload.metric]] table",
        ),
    ] {
        let error = problem(&json!({"metric": [metric]}));
        assert!(error.starts_with(expected), "{expected}: {error}");
        assert!(!error.contains("sk-1"), "{error}");
    }
}

#[test]
fn what_a_study_asks_outside_is_found_before_it_is_built() {
    let metric = json!({"type": "http", "name": "tone", "endpoint": "https://scorer.example/?key=sk-1"});
    let mut settings = with(sums(), &json!({"set": [{"name": "s", "metric": [metric]}]}));
    let settings = settings.as_object_mut().unwrap();
    assert!(crate::asks_outside(settings));
    assert_eq!(crate::endpoints(settings), ["https://scorer.example/?key=sk-1"]);
    assert_eq!(
        crate::asked_outside(settings),
        ["https://scorer.example/?key=sk-1"]
    );
    let error = crate::check_written(settings).unwrap_err().to_string();
    assert!(
        error.starts_with("workload.set[0].metric[0].endpoint: must not hold a query"),
        "{error}"
    );
    settings.remove("set");
    assert!(!crate::asks_outside(settings));
    let program = json!({"type": "command", "name": "tone", "command": ["sh", "tone.sh"]});
    settings.insert("metric".to_owned(), json!([program, program]));
    assert_eq!(crate::asked_outside(settings), ["sh tone.sh"]);

    // What a scorer gives is known before it can be asked.
    let metrics =
        json!([{"type": "command", "name": "tone"}, {"type": "http", "name": "kind", "endpoint": ""}]);
    settings.insert("metric".to_owned(), metrics);
    let declared = crate::declared(settings).unwrap();
    let names: Vec<&str> = declared.metrics.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["tone", "kind", MetricSpec::prompt_length().name.as_str()]);
}
