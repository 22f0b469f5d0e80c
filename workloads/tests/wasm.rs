//! Workloads, natively and in WebAssembly: the same splits and the same measurements, so that a run
//! of the browser can be resumed and verified natively.

use std::cell::RefCell;
use std::rc::Rc;

use capo_core::llm::{
    AssistantMessage, CallUsage, ChatRequest, ChatResponse, Finish, LlmError, Message, Role,
};
use capo_core::workload::{Caller, Rollout, RolloutContext, RolloutError, Split, Workload};
use capo_workloads::files::MemoryFiles;
use futures::future::{FutureExt, LocalBoxFuture};
use serde_json::{Value, json};

/// What the table below draws for the search and holds out, with the seed 3.
const OPTIMIZE: [&str; 5] = ["q3", "q5", "q6", "q8", "q2"];
const EVALUATE: [&str; 3] = ["q4", "q1", "q0"];
/// SHA-256 of the table's files.
const FINGERPRINT: &str = "2f780b72bf3df65d6b4c9926dde05d3bc2184cb2349f68e0ef1f8a211cfab483";

/// What the airline below searches on when its tasks are shifted, and holds out.
const SHIFTED: [&str; 4] = ["2", "11", "5", "8"];
const HELD_OUT: [&str; 3] = ["0", "4", "13"];

/// Says what it was told to, in order.
struct Scripted(RefCell<Vec<&'static str>>);

impl Caller for Scripted {
    fn call(&self, _: Role, _: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        let text = self.0.borrow_mut().remove(0);
        let answer = ChatResponse {
            message: AssistantMessage {
                content: Some(text.to_owned()),
                tool_calls: Vec::new(),
            },
            finish: Finish::Stop,
            usage: CallUsage {
                input_tokens: 20,
                output_tokens: 7,
                usd: Some(0.25),
                seconds: 1.5,
            },
            failed_tries: None,
        };
        async { Ok(answer) }.boxed_local()
    }
}

fn build(settings: &Value, files: &MemoryFiles) -> Result<Rc<dyn Workload>, String> {
    let settings = settings.as_object().expect("a table of settings");
    capo_workloads::build(settings, files, 0)
        .map(|mut workloads| workloads.remove(0))
        .map_err(|error| error.to_string())
}

async fn roll(
    workload: &dyn Workload,
    example: &str,
    answers: &[&'static str],
) -> Result<Rollout, RolloutError> {
    let caller = Scripted(RefCell::new(answers.to_vec()));
    let context = RolloutContext {
        prompt: "Réponds.",
        example,
        repeat: 0,
        seed: u64::MAX,
        caller: &caller,
    };
    workload.rollout(context).await
}

fn table() -> Rc<dyn Workload> {
    let settings = json!({
        "kind": "table", "data": "sums.csv", "user": "What is {{ q }}?",
        "id": "id", "seed": 3, "optimize": 5, "evaluate": 3,
        "metric": [
            { "type": "numeric", "name": "accuracy", "expected": "{{ a }}" },
            { "type": "regex", "name": "marked", "pattern": "#### (\\d+)$" },
            { "type": "contains", "name": "named", "expected": "élan", "ignore_case": true },
            { "type": "json_schema", "name": "no_object", "schema": "object.json", "invert": true },
            { "type": "refusal", "name": "refused", "should_refuse": false },
            { "type": "length", "name": "graphemes", "unit": "graphemes" },
            { "type": "length", "name": "wordy", "unit": "words", "limit": 3 },
            { "type": "latency", "name": "seconds" },
            { "type": "dollars", "name": "price" },
            { "type": "judge", "name": "polite", "rubric": "Is it polite?", "worst": 1, "best": 5 },
        ],
    });
    let rows: Vec<String> = (0..9).map(|n| format!("q{n},{n}+{n},{}\r\n", 2 * n)).collect();
    let files = MemoryFiles::new()
        .with("sums.csv", format!("\u{feff}id,q,a\r\n{}", rows.concat()))
        .with("object.json", "{\"type\": \"object\"}");
    build(&settings, &files).expect("a table")
}

fn a_table_is_split_as_recorded() {
    let table = table();
    assert_eq!(
        (
            table.examples(Split::Optimize),
            table.examples(Split::Evaluate),
            table.fingerprint().as_str()
        ),
        (
            OPTIMIZE.map(str::to_owned).as_slice(),
            EVALUATE.map(str::to_owned).as_slice(),
            FINGERPRINT
        )
    );
}

/// Customers who want one of three things, in words of their own.
fn airline() -> Rc<dyn Workload> {
    let wishes = [
        "cancel the flight and get the money back",
        "add two bags and a suitcase",
        "move to business class with a window seat",
    ];
    let ids: Vec<String> = (0..14).map(|number| number.to_string()).collect();
    let tasks: Vec<Value> = ids
        .iter()
        .zip(wishes.iter().cycle())
        .map(|(id, wish)| {
            let own = "please ".repeat(id.len());
            let instructions = json!(format!("You want to {wish}, {own}number {id}."));
            json!({ "id": id, "user_scenario": { "instructions": instructions } })
        })
        .collect();
    let files = MemoryFiles::new()
        .with(
            "tau2/domains/airline/db.json",
            r#"{"flights": {}, "users": {}, "reservations": {}}"#,
        )
        .with("tau2/domains/airline/policy.md", "Be kind.")
        .with("tau2/domains/airline/tasks.json", json!(tasks).to_string())
        .with(
            "tau2/domains/airline/split_tasks.json",
            json!({ "base": ids }).to_string(),
        )
        .with("tau2/user_simulator/simulation_guidelines.md", "Be brief.");
    let settings = json!({ "kind": "tau2", "domain": "airline", "data": "tau2", "split": "cluster-shift" });
    build(&settings, &files).expect("an airline")
}

fn tasks_are_shifted_as_recorded() {
    let airline = airline();
    assert_eq!(
        (
            airline.examples(Split::Optimize),
            airline.examples(Split::Evaluate)
        ),
        (
            SHIFTED.map(str::to_owned).as_slice(),
            HELD_OUT.map(str::to_owned).as_slice()
        )
    );
}

async fn an_answer_is_measured_by_every_kind_of_metric() {
    let table = table();
    let answers = [
        "<think>hm</think>E\u{301}lan, ÉLAN! #### 4",
        r#"{"reason": "ok", "score": 4}"#,
    ];
    let rollout = roll(&*table, "q2", &answers).await.expect("a rollout");
    let measured: Vec<(&str, f64)> = rollout
        .measurements
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    assert_eq!(
        measured,
        [
            ("accuracy", 1.0),
            ("marked", 1.0),
            ("named", 1.0),
            ("no_object", 1.0),
            ("refused", 0.0),
            ("graphemes", 18.0),
            ("wordy", 1.0),
            ("seconds", 1.5),
            ("price", 0.25),
            ("polite", 0.75),
            ("prompt_length", 0.008),
        ]
    );
    assert_eq!(rollout.trace.messages[0], Message::user("What is 2+2?"));
}

async fn the_help_desk_opens() {
    let desk = build(&json!({ "kind": "desk" }), &MemoryFiles::new()).expect("a desk");
    let (optimize, evaluate) = (desk.examples(Split::Optimize), desk.examples(Split::Evaluate));
    assert_eq!((optimize.len(), evaluate.len()), (74, 40));
    let rollout = roll(&*desk, &evaluate[0], &["Let me see."; 30])
        .await
        .expect("a rollout");
    assert_eq!(rollout.measurements["success"], 0.0);
    assert!(rollout.measurements["turns"] >= 1.0);
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use futures::executor::block_on;

    #[test]
    fn a_table_is_split_as_recorded() {
        super::a_table_is_split_as_recorded();
    }

    #[test]
    fn tasks_are_shifted_as_recorded() {
        super::tasks_are_shifted_as_recorded();
    }

    #[test]
    fn an_answer_is_measured_by_every_kind_of_metric() {
        block_on(super::an_answer_is_measured_by_every_kind_of_metric());
    }

    #[test]
    fn the_help_desk_opens() {
        block_on(super::the_help_desk_opens());
    }
}

#[cfg(target_arch = "wasm32")]
mod wasm {
    use capo_core::llm::FailureKind;
    use capo_core::workload::{RolloutError, Split, Workload};
    use capo_workloads::files::MemoryFiles;
    use serde_json::{Value, json};
    use wasm_bindgen_test::wasm_bindgen_test;

    use super::{Rc, build, roll};

    #[wasm_bindgen_test]
    fn a_table_is_split_as_recorded() {
        super::a_table_is_split_as_recorded();
    }

    #[wasm_bindgen_test]
    fn tasks_are_shifted_as_recorded() {
        super::tasks_are_shifted_as_recorded();
    }

    #[wasm_bindgen_test]
    async fn an_answer_is_measured_by_every_kind_of_metric() {
        super::an_answer_is_measured_by_every_kind_of_metric().await;
    }

    #[wasm_bindgen_test]
    async fn the_help_desk_opens() {
        super::the_help_desk_opens().await;
    }

    fn external(more: Value) -> Result<Rc<dyn Workload>, String> {
        let mut settings = json!({
            "kind": "external", "data": "d.jsonl", "evaluate": 1,
            "metric": [{ "name": "correct", "direction": "objective" }],
        });
        if let (Value::Object(settings), Value::Object(more)) = (&mut settings, more) {
            settings.extend(more);
        }
        let files = MemoryFiles::new().with("d.jsonl", "{\"q\": 1}\n{\"q\": 2}\n");
        build(&settings, &files)
    }

    #[wasm_bindgen_test]
    fn a_command_is_refused() {
        let error = external(json!({ "command": ["python3", "agent.py"] })).err();
        let error = error.expect("no commands here");
        assert!(error.contains("a browser cannot run commands"), "{error}");
    }

    #[wasm_bindgen_test]
    fn a_scorer_that_is_a_command_is_refused() {
        let settings = json!({
            "kind": "table", "data": "d.jsonl", "evaluate": 1, "user": "{{ q }}",
            "metric": [{ "type": "command", "name": "tone", "command": ["sh"] }],
        });
        let files = MemoryFiles::new().with("d.jsonl", "{\"q\": 1}\n{\"q\": 2}\n");
        let error = build(&settings, &files).err().expect("no commands here");
        assert!(
            error.starts_with("workload.metric[0].command: a browser cannot run commands"),
            "{error}"
        );
    }

    #[wasm_bindgen_test]
    async fn an_endpoint_that_is_not_there_is_a_failure_not_a_score() {
        let workload = external(json!({ "endpoint": "http://127.0.0.1:1/roll" }));
        let workload = workload.expect("a workload");
        let example = &workload.examples(Split::Optimize)[0];
        let Err(RolloutError::Failed {
            kind,
            message,
            retryable,
            ..
        }) = roll(&*workload, example, &[]).await
        else {
            panic!("nobody answers");
        };
        assert_eq!((kind, retryable), (FailureKind::Tool, true));
        assert!(
            message.starts_with("external agent http://127.0.0.1:1/roll: no answer"),
            "{message}"
        );
    }
}
