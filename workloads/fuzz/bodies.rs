//! What strangers may hand to Capo: a study, a template, a journal, a provider's answer. Nothing in them may
//! panic, hang or fill the memory.
//!
//! The fuzz targets run these, and so does `tests/hostile.rs` of the workloads with texts drawn at random.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread;

use capo_core::arena::RunOptions;
use capo_core::budget::Budget;
use capo_core::journal::{Journal, MemoryJournal};
use capo_core::llm::{ChatRequest, Message, Role};
use capo_core::problem::Problem;
use capo_core::study::{Format, Study};
use capo_workloads::files::MemoryFiles;
use indexmap::IndexMap;
use serde_json::json;

/// Texts that mutations begin with, one of each kind.
pub(crate) const STUDY: &str = r#"
[study]
name = "bills"
method = "capo"
rounds = 2
repeats = 1
[workload]
kind = "table"
data = "rows.jsonl"
user = "{{ question }}{% for c in choices %}{{ loop.index }}. {{ c }}{% endfor %}"
evaluate = 1
[[workload.metric]]
type = "numeric"
name = "accuracy"
expected = "{{ answer }}"
[[workload.metric]]
type = "regex"
name = "short"
pattern = "^.{1,80}$"
[[workload.metric]]
type = "length"
name = "words"
unit = "words"
limit = 120
[prompt]
text = "Answer."
[objective]
metric = "accuracy"
[[constraint]]
metric = "words"
threshold = 0.1
scale = 1.0
from_round = 1
[budget]
rollouts = 400
usd = 1.5
[method]
parents = 1
children = 2
pool = 2
[models.agent]
provider = "openai"
model = "m"
temperature = 0.5
price = { input = 1.0, output = 2.0 }
"#;

/// A template with everything that tables need.
pub(crate) const TEMPLATE: &str = "{% set l = ['A', 'B'] %}{{ question | upper | replace('A', l[0]) }}\
    {% for c in choices if c is defined %}{{ loop.index ~ '. ' ~ c }}{% else %}-{% endfor %}\
    {{ '%5.2f' | format(answer) }}{{ choices | join(', ') | tojson }}{% if answer > 3 and not x is defined %}y{% endif %}";

/// An answer that calls a tool, as most providers write it.
pub(crate) const ANSWER: &str = r#"{"id":"r","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hm","tool_calls":[{"id":"c","type":"function","function":{"name":"look_up","arguments":"{\"order\": [7, {}]}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}"#;

/// A short run of the study above, as its journal tells it.
pub(crate) static JOURNAL: LazyLock<String> = LazyLock::new(|| {
    let (head, _) = STUDY.split_once("[models.agent]").expect("models");
    let text = format!("{head}[models.agent]\nprovider = \"simulated\"\n");
    let store = run(Study::parse(&text, Format::Toml).expect("a study")).expect("a run");
    let lines = store.lines().join("\n");
    lines + "\n"
});

/// Carries a study out, as far as it can be.
fn run(study: Study) -> Option<MemoryJournal> {
    let seed = study.study.seed;
    let models = capo_models::build(&study.models, &BTreeMap::<String, String>::new(), seed).ok()?;
    let workloads = capo_workloads::build(&study.workload, &files(), seed).ok()?;
    let problem = Problem::new(study, workloads).ok()?;
    let store = MemoryJournal::new();
    let journal = Journal::create(Box::new(store.clone()));
    let run = capo_core::optimize(problem, journal, Rc::new(models), RunOptions::default());
    futures::executor::block_on(run).ok()?;
    Some(store)
}

/// Searches a little by simulated models, unless somebody outside this program would be asked.
pub(crate) fn search(mut study: Study) -> Option<MemoryJournal> {
    if capo_workloads::asks_outside(&study.workload) {
        return None;
    }
    study.models = IndexMap::from([(Role::Agent, json!({ "provider": "simulated" }))]);
    study.budget = Budget {
        rollouts: Some(5),
        calls: Some(200),
        ..Budget::default()
    };
    run(study)
}

fn files() -> MemoryFiles {
    let row = |n| format!("{{\"question\": \"q{n}\", \"answer\": {n}, \"choices\": [\"a\", \"b\"]}}");
    let rows: Vec<String> = (0..4).map(row).collect();
    MemoryFiles::new().with("rows.jsonl", rows.join("\n"))
}

/// Reads a study, builds what it works on, looks at its models, and searches a little.
pub(crate) fn study(text: &str) {
    for format in [Format::Toml, Format::Json] {
        let Ok(study) = Study::parse(text, format) else {
            continue;
        };
        let _ = capo_models::check_tables(&study.models);
        let _ = capo_workloads::check_written(&study.workload);
        if let Ok(workloads) = capo_workloads::build(&study.workload, &files(), study.study.seed)
            && let Ok(problem) = Problem::new(study.clone(), workloads)
        {
            let _ = capo_models::roles(&problem);
            problem.id();
            search(study);
        }
    }
}

/// Builds a table whose user message is a template, which renders every row.
pub(crate) fn template(text: &str) {
    let workload = json!({
        "kind": "table", "data": "rows.jsonl", "user": text, "evaluate": 1,
        "metric": [{ "type": "length", "name": "length" }],
    });
    if let Some(workload) = workload.as_object() {
        let _ = capo_workloads::build(workload, &files(), 0);
    }
}

/// Opens a journal and verifies it.
pub(crate) fn journal(text: &str) {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let numbered = (0..).zip(&lines).map(Ok);
    let _ = Journal::open(Box::new(MemoryJournal::from_lines(lines.clone())), numbered);
    let _ = futures::executor::block_on(capo_core::verify(&lines));
}

/// Has a model answer with a body, and goes on with the conversation. The first byte chooses the provider.
pub(crate) fn answer(bytes: &[u8]) {
    const PROVIDERS: [&str; 4] = ["openai-compatible", "anthropic", "gemini", "ollama"];
    let Some((first, body)) = bytes.split_first() else {
        return;
    };
    *SERVER.body.lock().unwrap_or_else(PoisonError::into_inner) = body.to_vec();
    let provider = PROVIDERS[usize::from(first % 4)];
    let base = format!("http://127.0.0.1:{}/v1", SERVER.port);
    let table = json!({
        "provider": provider, "model": "m", "base_url": base, "api_key_env": "KEY", "retries": 0,
        "timeout_seconds": 20.0,
    });
    let keys = BTreeMap::from([("KEY".to_owned(), "sk-0123456789".to_owned())]);
    thread_local! {
        static RUNTIME: RefCell<Option<tokio::runtime::Runtime>> = const { RefCell::new(None) };
    }
    RUNTIME.with_borrow_mut(|runtime| {
        let runtime = runtime.get_or_insert_with(|| {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            builder.enable_all().build().expect("an event queue")
        });
        let models = capo_models::build(&IndexMap::from([(Role::Agent, table)]), &keys, 0).expect("a model");
        let model = models.get(Role::Agent).expect("an agent");
        runtime.block_on(async {
            let mut messages = vec![Message::system("Be kind."), Message::user("Where is order 7?")];
            for _ in 0..2 {
                let request = ChatRequest {
                    messages: messages.clone().into(),
                    ..ChatRequest::default()
                };
                let Ok(answer) = model.chat(request).await else {
                    return;
                };
                let calls = answer.message.tool_calls.clone();
                messages.push(Message::Assistant(answer.message));
                messages.extend(calls.iter().map(|call| Message::tool(call.id.clone(), "none")));
                messages.push(Message::user("And now?"));
            }
        });
    });
}

/// A provider on loopback that answers every request with one body.
struct Server {
    port: u16,
    body: Arc<Mutex<Vec<u8>>>,
}

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let body = Arc::<Mutex<Vec<u8>>>::default();
    let said = Arc::clone(&body);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
            while !is_whole(&request) {
                match stream.read(&mut buffer) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => request.extend_from_slice(&buffer[..count]),
                }
            }
            let body = said.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
            );
            let _ = stream.write_all(&[head.as_bytes(), &body].concat());
        }
    });
    Server { port, body }
});

/// Whether a request has come with its whole body.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
        let length = head.to_lowercase();
        let length = length
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
        body.len() >= length.unwrap_or(0_usize)
    })
}

/// A text changed in places that the bytes choose: parts doubled, dropped, nested, moved, and replaced by what
/// readers stumble over.
pub(crate) fn changed(text: &str, bytes: &[u8]) -> String {
    const ODD: [&str; 24] = [
        "",
        "\0",
        "\u{feff}",
        "\u{2028}",
        "\n",
        "\"",
        "\\",
        "{{",
        "}}",
        "{%",
        "%}",
        "[",
        "]",
        "nan",
        "inf",
        "-1",
        "1e-320",
        "1e308",
        "18446744073709551615",
        "99999999999999999999",
        "null",
        "true",
        "not ",
        "q ~ ",
    ];
    let mut text = text.to_owned();
    for edit in bytes.chunks_exact(5).take(24) {
        let place = |high: u8, low: u8| {
            let at = usize::from(u16::from_be_bytes([high, low])) % (text.len() + 1);
            (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
        };
        let (one, other) = (place(edit[1], edit[2]), place(edit[3], edit[4]));
        let (start, end) = (one.min(other), one.max(other).min(one.min(other) + 64));
        let end = (start..=end)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(start);
        let part = text[start..end].to_owned();
        let put = match edit[0] % 8 {
            0 => String::new(),
            1 => part.repeat(2),
            2 => part.repeat(1 + usize::from(edit[4]) * 4),
            3 => part.chars().rev().collect(),
            _ => ODD[usize::from(edit[4]) % ODD.len()].repeat(1 + usize::from(edit[3] % 3)),
        };
        if text.len() + put.len() < 1 << 18 {
            text.replace_range(start..end, &put);
        }
    }
    text
}
