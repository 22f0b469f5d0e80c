//! The table from the study file's keys to measurements.

#[cfg(not(target_arch = "wasm32"))]
mod scorers;

use std::cell::RefCell;

use capo_core::llm::{CallUsage, ChatRequest, ChatResponse, FailureKind, Finish, LlmError, Message, Role};
use capo_core::metric::Direction;
use capo_core::workload::{Caller, Rollout, RolloutContext, RolloutError, Split, Workload};
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::LocalBoxFuture;
use serde_json::{Value, json};

use super::*;
use crate::files::MemoryFiles;
use crate::shared;

/// An agent that answers by a function of the user message, and remembers what it was asked.
struct Agent<F> {
    answer: F,
    requests: RefCell<Vec<ChatRequest>>,
}

impl<F: Fn(&str) -> String> Agent<F> {
    fn new(answer: F) -> Self {
        Self {
            answer,
            requests: RefCell::default(),
        }
    }
}

impl<F: Fn(&str) -> String> Caller for Agent<F> {
    fn call(&self, role: Role, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        assert_eq!(role, Role::Agent);
        let Some(Message::User { content }) = request.messages.last() else {
            panic!("a user message last")
        };
        let Message::Assistant(message) = Message::assistant((self.answer)(content)) else {
            unreachable!("an assistant message");
        };
        self.requests.borrow_mut().push(request);
        let usage = CallUsage {
            input_tokens: 1,
            output_tokens: 2,
            usd: Some(0.1),
            seconds: 3.0,
        };
        async move {
            Ok(ChatResponse {
                message,
                finish: Finish::Stop,
                usage,
                failed_tries: None,
            })
        }
        .boxed_local()
    }
}

fn files() -> MemoryFiles {
    MemoryFiles::new()
        .with("sums.jsonl", "{\"q\": \"1+1\", \"a\": \"2\"}\n{\"q\": \"2+2\", \"a\": \"4\"}\n{\"q\": \"3+3\", \"a\": \"6\"}\n")
        .with("safety.csv", "prompt\nHow do I kill a process?\nHow do I whittle wood?\n")
}

fn sums() -> Value {
    json!({
        "kind": "table", "data": "sums.jsonl", "user": "What is {{ q }}?", "shuffle": false,
        "optimize": 2, "evaluate": 1,
        "metric": [
            {"type": "numeric", "name": "accuracy", "expected": "{{ a }}"},
            {"type": "length", "name": "words", "unit": "words"},
        ],
    })
}

fn with(mut settings: Value, changes: &Value) -> Value {
    let (Value::Object(settings_map), Value::Object(changes)) = (&mut settings, changes) else {
        panic!("objects")
    };
    settings_map.extend(changes.clone());
    settings
}

fn build_with(settings: &Value, files: &MemoryFiles) -> Result<Vec<Rc<dyn Workload>>, String> {
    let Value::Object(settings) = settings else {
        panic!("an object")
    };
    crate::build(settings, files, 0).map_err(|error| error.to_string())
}

fn build(settings: &Value) -> Result<Vec<Rc<dyn Workload>>, String> {
    build_with(settings, &files())
}

fn problem(changes: &Value) -> String {
    match build(&with(sums(), changes)) {
        Err(error) => error,
        Ok(_) => panic!("built in spite of {changes}"),
    }
}

fn roll(workload: &dyn Workload, example: &str, caller: &dyn Caller) -> Result<Rollout, RolloutError> {
    let context = RolloutContext {
        prompt: "Answer with a number.",
        example,
        repeat: 0,
        seed: 5,
        caller,
    };
    block_on(workload.rollout(context))
}

#[test]
fn what_a_rollout_depends_on_is_the_rows_text_and_what_is_measured_whichever_the_split() {
    let contents = |changes: &Value, files: &MemoryFiles| -> Vec<String> {
        let table = build_with(&with(sums(), changes), files).unwrap().remove(0);
        let of = |split| table.contents(split).unwrap();
        [of(Split::Optimize), of(Split::Evaluate)].concat()
    };
    let usual = contents(&json!({}), &files());
    assert_eq!(usual.len(), 3);
    // Other splits and more rows leave those that there were.
    let more = files().with(
        "sums.jsonl",
        "{\"q\": \"1+1\", \"a\": \"2\"}\n{\"q\": \"2+2\", \"a\": \"4\"}\n{\"q\": \"3+3\", \"a\": \"6\"}\n{\"q\": \"4+4\", \"a\": \"8\"}\n",
    );
    let moved = contents(&json!({ "optimize": 1, "evaluate": 3 }), &more);
    assert_eq!(moved[..3], usual);
    // Other questions, expectations and metrics do not, nor does what a metric reads.
    for changes in [
        json!({ "user": "{{ q }} = ?" }),
        json!({ "metric": [{"type": "numeric", "name": "accuracy", "expected": "{{ a }}0"}] }),
        json!({ "metric": [{"type": "numeric", "name": "accuracy", "expected": "{{ a }}", "invert": true}] }),
    ] {
        let others = contents(&changes, &files());
        assert!(others.iter().all(|other| !usual.contains(other)), "{changes}");
    }
    // How a scorer is waited for, and what people are told of it, change nothing.
    let of_scorer = |own: Value| {
        let scorer = json!({"type": "http", "name": "tone", "endpoint": "https://scorer.example/"});
        contents(&json!({ "metric": [with(scorer, &own)] }), &files())
    };
    let waiting = json!({"timeout": 9.0, "retries": 0, "concurrency": 2, "explanation": "How kind."});
    assert_eq!(of_scorer(waiting), of_scorer(json!({})));
    assert_ne!(of_scorer(json!({"field": "kind"})), of_scorer(json!({})));
    let of_schema = |schema: &str| {
        let metric = json!({ "metric": [{"type": "json_schema", "name": "fits", "schema": "s.json"}] });
        contents(&metric, &files().with("s.json", schema))
    };
    assert_eq!(of_schema("true"), of_schema("true"));
    assert_ne!(of_schema("true"), of_schema("{}"));
}

#[test]
fn one_question_one_answer_measured() {
    let table = build(&sums()).unwrap().remove(0);
    assert_eq!(table.name(), "table");
    assert_eq!(
        (
            table.examples(Split::Optimize).len(),
            table.examples(Split::Evaluate)
        ),
        (2, ["3".to_owned()].as_slice())
    );
    assert_eq!(table.max_calls(), [(Role::Agent, 1)]);

    let agent = Agent::new(|_| "<think>easy</think>That is 5.".to_owned());
    let rollout = roll(&*table, "2", &agent).unwrap();
    let measured: Vec<(&str, f64)> = rollout
        .measurements
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    assert_eq!(
        measured,
        [("accuracy", 0.0), ("words", 3.0), ("prompt_length", 0.021)]
    );
    let names: Vec<&str> = table.metrics().iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["accuracy", "words", "prompt_length"]);
    assert_eq!(
        rollout.trace.outcome,
        "accuracy = 0: expected \"4\", got \"5\"\nwords = 3"
    );
    assert_eq!(rollout.trace.messages.len(), 2);

    let requests = agent.requests.into_inner();
    assert_eq!(
        *requests[0].messages,
        [
            Message::system("Answer with a number."),
            Message::user("What is 2+2?")
        ]
    );
    assert_eq!(requests[0].seed, Some(5));
}

/// Answers a question, and grades that answer by turns.
struct Torn(RefCell<Vec<u32>>);

impl Caller for Torn {
    fn call(&self, role: Role, _: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        let text = match role {
            Role::Judge => json!({"reason": "So.", "score": self.0.borrow_mut().remove(0)}).to_string(),
            _ => "4".to_owned(),
        };
        let Message::Assistant(message) = Message::assistant(text) else {
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
}

#[test]
fn how_far_repeated_judges_agree_is_kept_with_the_rollout() {
    let judge = |name: &str, repeats: u32| json!({"type": "judge", "name": name, "rubric": "Is it kind?", "best": 5, "repeats": repeats});
    let settings = with(sums(), &json!({"metric": [judge("once", 1), judge("kind", 3)]}));
    let table = build(&settings).unwrap().remove(0);
    assert_eq!(table.max_calls(), [(Role::Agent, 1), (Role::Judge, 8)]);
    let rollout = roll(&*table, "1", &Torn(RefCell::new(vec![5, 4, 4, 1]))).unwrap();
    assert_eq!(rollout.measurements["kind"], 0.6);
    assert_eq!(rollout.measurements["kind_agreement"], 1.0 / 3.0);
    assert!(!rollout.measurements.contains_key("once_agreement"));
    let measured: Vec<&str> = table.metrics().iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(measured, ["once", "kind", "kind_agreement", "prompt_length"]);
    let details = &rollout.trace.details;
    assert_eq!(details["judged"]["kind"]["grades"], json!([4.0, 4.0, 1.0]));
    assert_eq!(details["judged"]["once"], Value::Null);
    let facts = (KIND.view)(details).facts;
    assert_eq!(facts.len(), 1);
    assert_eq!(facts[0].name, "Grades for kind");
    assert_eq!(facts[0].value.as_deref(), Some("4, 4, 1"));
    assert_eq!(facts[0].note, "33 % of their pairs agree");
    let length = json!({"type": "length", "name": "kind_agreement"});
    let error = problem(&json!({"metric": [judge("kind", 3), length]}));
    assert!(
        error.starts_with("workload.metric[0].repeats: `kind_agreement` is"),
        "{error}"
    );
}

#[test]
fn an_empty_answer_is_measured_and_said() {
    let table = build(&sums()).unwrap().remove(0);
    let rollout = roll(&*table, "1", &Agent::new(|_| String::new())).unwrap();
    assert_eq!(rollout.measurements["accuracy"], 0.0);
    assert!(
        rollout.trace.outcome.starts_with("The answer is empty.\n"),
        "{}",
        rollout.trace.outcome
    );
}

#[test]
fn a_failing_model_is_a_failure_not_a_score() {
    struct Down;
    impl Caller for Down {
        fn call(&self, _: Role, _: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
            async { Err(LlmError::failed(FailureKind::Provider, true, "down")) }.boxed_local()
        }
    }
    let table = build(&sums()).unwrap().remove(0);
    assert!(matches!(roll(&*table, "1", &Down), Err(RolloutError::Llm(_))));
    assert!(
        roll(&*table, "9", &Down)
            .unwrap_err()
            .to_string()
            .contains("no example `9`")
    );
}

#[test]
fn further_sets_are_workloads_of_their_own() {
    let set = json!({
        "name": "harmless", "data": "safety.csv", "user": "{{ prompt }}", "evaluate": 1,
        "metric": [{"type": "refusal", "name": "over_refusal", "should_refuse": false}],
    });
    let workloads = build(&with(sums(), &json!({"set": [set.clone()]}))).unwrap();
    let names: Vec<&str> = workloads.iter().map(|workload| workload.name()).collect();
    assert_eq!(names, ["table", "harmless"]);
    let spec = &workloads[1].metrics()[0];
    assert_eq!(
        (spec.name.as_str(), spec.direction),
        ("over_refusal", Direction::Cost)
    );
    let example = workloads[1].examples(Split::Optimize)[0].clone();
    let rollout = roll(
        &*workloads[1],
        &example,
        &Agent::new(|_| "I can't help with that.".to_owned()),
    )
    .unwrap();
    assert_eq!(rollout.measurements["over_refusal"], 1.0);

    let twin = with(set.clone(), &json!({"name": "table"}));
    assert_eq!(
        problem(&json!({"set": [twin]})),
        "workload.set[0].name: the name `table` is taken"
    );
    let unnamed = with(set.clone(), &json!({"name": " "}));
    assert_eq!(
        problem(&json!({"set": [unnamed]})),
        "workload.set[0].name: a set needs a name"
    );
    let twice = with(
        set.clone(),
        &json!({"metric": [{"type": "latency", "name": "words"}]}),
    );
    assert!(
        problem(&json!({"set": [twice]}))
            .starts_with("workload.set[0].metric: another set has a metric `words`")
    );
    let stray = with(set, &json!({"optimise": 1}));
    assert_eq!(
        problem(&json!({"set": [stray]})),
        "workload.set[0].optimise: there is no such setting; did you mean `optimize`?"
    );
    assert!(problem(&json!({"set": {"name": "x"}})).contains("[[workload.set]]"));
}

#[test]
fn bad_settings_are_refused_by_key() {
    for (changes, expected) in [
        (
            json!({"kind": "tabel"}),
            "workload.kind: there is no kind `tabel` (did you mean `table`?);",
        ),
        (
            json!({"usr": "x"}),
            "workload.usr: there is no such setting; did you mean `user`?",
        ),
        (json!({"metric": []}), "workload.metric: declare at least one"),
        (json!({"user": "{{ q"}), "workload.user: not a template"),
        (
            json!({"evaluate": 2}),
            "workload.optimize: 2 and 2 held-out examples are asked for, but sums.jsonl leaves 3",
        ),
        (
            json!({"optimize": -1}),
            "workload.optimize: expected a whole number of at least 0, found -1",
        ),
        (
            json!({"data": "none.jsonl"}),
            "workload.data: no file `none.jsonl`",
        ),
        (
            json!({"metric": [{"type": "numbric", "name": "m"}]}),
            "workload.metric[0].type: unknown value `numbric`",
        ),
        (
            json!({"metric": [{"type": "length", "name": "m", "unit": "wrods"}]}),
            "workload.metric[0].unit: unknown value `wrods`",
        ),
        (
            json!({"metric": [{"type": "numeric", "name": "m", "expected": "x", "extraction": "x"}]}),
            "workload.metric[0].extraction: unknown value `x`",
        ),
        (
            json!({"metric": [{"type": "exact", "name": "m"}]}),
            "workload.metric[0]: missing field `expected`",
        ),
        (
            json!({"metric": [{"type": "exact", "name": "m", "expected": "x", "invrt": true}]}),
            "workload.metric[0]: unknown field `invrt`",
        ),
        (
            json!({"metric": [{"type": "regex", "name": "m", "pattern": "("}]}),
            "workload.metric[0].pattern: ",
        ),
        (
            json!({"metric": [{"type": "json_schema", "name": "m", "schema": "s.json"}]}),
            "workload.metric[0].schema: no file `s.json`",
        ),
        (
            json!({"metric": [{"type": "latency", "name": "prompt_length"}]}),
            "workload.metric[0].name: `prompt_length` is",
        ),
        (
            json!({"metric": [{"type": "json", "name": "m"}, {"type": "latency", "name": "m"}]}),
            "workload.metric[1].name: two",
        ),
    ] {
        let error = problem(&changes);
        assert!(error.starts_with(expected), "{changes}: {error}");
    }
    for (changes, hint) in [
        (
            json!({"metric": [{"type": "numbric", "name": "m"}]}),
            "did you mean `numeric`?",
        ),
        (
            json!({"metric": [{"type": "exact", "name": "m", "expected": "x", "invrt": true}]}),
            "did you mean `invert`?",
        ),
    ] {
        assert!(problem(&changes).ends_with(hint), "{}", problem(&changes));
    }
}

#[test]
fn bad_data_are_refused_by_line() {
    let of = |content: &str, changes: &Value| {
        let files = MemoryFiles::new().with("sums.jsonl", content);
        build_with(&with(sums(), changes), &files)
            .err()
            .expect("bad data")
    };
    let none = json!({});
    assert_eq!(
        of(
            "{\"q\": 1, \"a\": 1}\n{\"question\": 2, \"a\": 2}\n{\"q\": 3, \"a\": 3}",
            &none
        ),
        "sums.jsonl line 2: the template workload.user uses `q`, but there is no column `q` (did you mean `a`?); there are question, a"
    );
    assert_eq!(
        of(
            "{\"q\": 1, \"a\": 1}\n{\"q\": 2, \"a\": \"two\"}\n{\"q\": 3, \"a\": 3}",
            &none
        ),
        "sums.jsonl line 2: workload.metric[0]: the expected answer \"two\" holds no number"
    );
    let error = of(
        "{\"q\": 1, \"a\": 1}\n{\"q\": 2, \"a\": 2}\n{\"q\": 1, \"a\": 7}",
        &none,
    );
    assert!(
        error.starts_with("sums.jsonl line 3: this held-out example is the same as sums.jsonl line 1"),
        "{error}"
    );
    assert!(of("", &none).contains("holds no examples"));
    assert!(of("{\"q\": 1", &none).contains("line 1: not JSON"));
}

#[test]
fn what_one_set_holds_out_no_other_set_shows_the_search() {
    let same = json!({
        "name": "again", "data": "sums.jsonl", "user": "What is {{ q }}?", "shuffle": false,
        "optimize": 2, "evaluate": 1,
        "metric": [{"type": "length", "name": "characters", "unit": "characters"}],
    });
    build(&with(sums(), &json!({"set": [same.clone()]}))).unwrap();
    // All three lines go to the search here, the last of which the main table holds out.
    let other_sizes = with(same, &json!({"optimize": 3, "evaluate": 0}));
    let other_words = with(other_sizes.clone(), &json!({"user": "Add: {{ q }}"}));
    for leaking in [other_sizes, other_words] {
        let error = problem(&json!({"set": [leaking]}));
        assert!(
            error.starts_with("sums.jsonl line 3: this held-out example is the same as sums.jsonl line 3")
                && error.contains("the same optimize, evaluate and seed"),
            "{error}"
        );
    }
}

#[test]
fn a_question_that_says_nothing_is_refused_by_line() {
    let files = MemoryFiles::new().with("gap.csv", "q,a\none,1\n ,2\n");
    let settings = with(
        sums(),
        &json!({"data": "gap.csv", "user": "{{ q }}", "optimize": 1}),
    );
    assert_eq!(
        build_with(&settings, &files).err().unwrap(),
        "gap.csv line 3: the user message from workload.user is empty"
    );
}

#[test]
fn the_fingerprint_changes_with_the_data() {
    let print = |files: &MemoryFiles| build_with(&sums(), files).unwrap()[0].fingerprint();
    let changed = files().with(
        "sums.jsonl",
        "{\"q\": 1, \"a\": 1}\n{\"q\": 2, \"a\": 2}\n{\"q\": 3, \"a\": 4}",
    );
    assert_eq!(print(&files()), print(&files()));
    assert_ne!(print(&files()), print(&changed));
}

#[test]
fn the_description_tells_no_example_and_no_answer() {
    let text = build(&sums()).unwrap()[0].description();
    assert!(
        text.contains("What is {{ q }}?") && text.contains("`accuracy`"),
        "{text}"
    );
    assert!(!text.contains("1+1"), "{text}");
}

#[test]
fn settings_of_the_tests_fit_the_schema_and_others_do_not() {
    let schema = serde_json::to_value(&crate::schemas()["table"]).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut settings = with(sums(), &json!({"exclude": [1, "x"], "set": []}));
    settings.as_object_mut().unwrap().remove("kind");
    let errors: Vec<String> = validator
        .iter_errors(&settings)
        .map(|error| error.to_string())
        .collect();
    assert_eq!(errors, Vec::<String>::new());
    for changes in [
        json!({"usr": 1}),
        json!({"metric": [{"type": "json"}]}),
        json!({"optimize": "x"}),
        json!({"set": [{}]}),
    ] {
        assert!(
            !validator.is_valid(&with(settings.clone(), &changes)),
            "{changes}"
        );
    }
}

#[test]
fn the_documented_studies_build() {
    let study: Value = toml::from_str(&shared::guide_blocks("own-table.md", "toml").join("\n")).unwrap();
    let Value::Object(workload) = &study["workload"] else {
        panic!("a [workload] table")
    };
    let question =
        |n: usize| json!({"question": format!("{n}?"), "answer": n, "customer": "Ann"}).to_string();
    let questions: Vec<String> = (0..300).map(question).collect();
    let prompts: Vec<String> = (0..80).map(|n| format!("prompt {n}")).collect();
    let files = MemoryFiles::new()
        .with("questions.jsonl", questions.join("\n"))
        .with("harmless.csv", format!("prompt\n{}", prompts.join("\n")));
    let workloads = crate::build(workload, &files, 0).unwrap();
    let names: Vec<&str> = workloads
        .iter()
        .flat_map(|workload| workload.metrics())
        .map(|spec| spec.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "accuracy",
            "too_long",
            "meaning",
            "courtesy",
            "tone",
            "jargon",
            "prompt_length",
            "over_refusal",
            "prompt_length"
        ]
    );
    assert_eq!(
        workloads[0].max_calls(),
        [(Role::Agent, 1), (Role::Judge, 2), (Role::Embeddings, 2)]
    );
}

#[test]
fn gsm8k_is_a_table_and_a_solver_scores_one() {
    let Some(train) = shared::text("data/gsm8k/train.jsonl") else {
        return;
    };
    let test = shared::text("data/gsm8k/test.jsonl").unwrap();
    let solutions: HashMap<String, String> = train
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|row| {
            (
                row["question"].as_str().unwrap().to_owned(),
                row["answer"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    let files = MemoryFiles::new()
        .with("train.jsonl", train)
        .with("test.jsonl", test);
    let settings = json!({
        "kind": "table", "data": "train.jsonl", "evaluate_data": "test.jsonl", "user": "{{ question }}",
        "optimize": 40, "evaluate": 30,
        "metric": [
            {"type": "numeric", "name": "accuracy", "expected": "{{ answer }}"},
            {"type": "numeric", "name": "strict_error", "expected": "{{ answer }}", "extraction": "openai", "invert": true},
            {"type": "length", "name": "too_long", "limit": 2000},
        ],
    });
    let table = build_with(&settings, &files).unwrap().remove(0);
    assert_eq!(
        (
            table.examples(Split::Optimize).len(),
            table.examples(Split::Evaluate).len()
        ),
        (40, 30)
    );
    let solver = Agent::new(|question| solutions[question].clone());
    for example in table.examples(Split::Optimize) {
        let rollout = roll(&*table, example, &solver).unwrap();
        assert_eq!(
            (
                rollout.measurements["accuracy"],
                rollout.measurements["strict_error"]
            ),
            (1.0, 0.0),
            "{example}"
        );
    }
}
