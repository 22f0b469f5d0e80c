//! The wire formats of OpenAI, Anthropic and Gemini, as another implementation of them reads and writes: the proxy of
//! LiteLLM, which hands every request on to `capo simulate`.
//!
//! Of `cargo xtask test --all`, which installs the proxy and names it in `CAPO_LITELLM`.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use capo_tests::journal::{events, of_kind};
use capo_tests::program::{Running, Server, command, run};
use capo_tests::tools::named;
use serde_json::Value;

const KEY: &str = "sk-of-this-test-alone";

/// A running proxy with one model, `sim`, that is `sim-medium` of an endpoint.
struct Proxy {
    _running: Running,
    origin: String,
}

impl Proxy {
    fn start(program: &str, folder: &Path, base_url: &str) -> Self {
        let configuration = folder.join("litellm.yaml");
        fs::write(
            &configuration,
            format!(
                "model_list:\n  - model_name: sim\n    litellm_params:\n      model: hosted_vllm/sim-medium\n      \
                 api_base: {base_url}\n      api_key: none\n\
                 general_settings:\n  master_key: {KEY}\nrouter_settings:\n  disable_cooldowns: true\n\
                 litellm_settings:\n  drop_params: true\n  num_retries: 0\n"
            ),
        )
        .unwrap();
        // Free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let log = fs::File::create(folder.join("litellm.log")).unwrap();
        let mut started = Command::new(program);
        started
            .args(["--host", "127.0.0.1", "--port", &port.to_string(), "--config"])
            .arg(&configuration)
            // It has prices of its own and asks for newer ones nowhere.
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .env("LITELLM_TELEMETRY", "False")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let running = Running::start_logged(&mut started);
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = fs::read_to_string(folder.join("litellm.log")).unwrap();
            assert!(begun.elapsed() < Duration::from_mins(3), "no proxy: {log}");
            std::thread::sleep(Duration::from_millis(200));
        }
        Self {
            _running: running,
            origin: format!("http://127.0.0.1:{port}"),
        }
    }
}

fn study(provider: &str, base_url: &str) -> String {
    format!(
        r#"
[study]
name = "desk over {provider}"
rounds = 2

[workload]
kind = "desk"
optimize = 6
evaluate = 4

[prompt]
text = "You are a customer service agent. Help the customer with their request."

[objective]
metric = "success"

[[constraint]]
metric = "excess_tools"
threshold = 0.3

[models.agent]
provider = "{provider}"
base_url = "{base_url}"
model = "sim"
api_key_env = "LITELLM_KEY"
max_tokens = 4096
retries = 0
"#
    )
}

#[test]
fn a_proxy_of_three_formats_understands_every_request_and_is_understood() {
    let Some(program) = named("CAPO_LITELLM") else {
        return;
    };
    let simulated = Server::simulate(&[]);
    let folder = tempfile::tempdir().unwrap();
    let proxy = Proxy::start(&program, folder.path(), &simulated.base_url);
    for (provider, path) in [("openai-compatible", "/v1"), ("anthropic", ""), ("gemini", "")] {
        let file = folder.path().join(format!("{provider}.toml"));
        fs::write(&file, study(provider, &format!("{}{path}", proxy.origin))).unwrap();
        let journal = folder.path().join(format!("{provider}.jsonl"));
        let ended = run(command(["optimize", "--json"])
            .arg(&file)
            .arg("--journal")
            .arg(&journal)
            .env("LITELLM_KEY", KEY));
        assert!(
            matches!(ended.code, Some(0 | 2)),
            "{provider}: {ended:?}\n{}",
            fs::read_to_string(folder.path().join("litellm.log")).unwrap()
        );
        run(command(["journal", "verify"]).arg(&journal)).expect_code(0);
        let events = events(&journal);
        assert!(of_kind(&events, "failure").is_empty(), "{provider}");
        let rollouts = of_kind(&events, "rollout");
        // Tools are called, their results are read, and dialogues come to a good end.
        let with_tools = |event: &&Value| {
            let messages = event["trace"]["messages"].as_array().unwrap();
            messages.iter().any(|message| message["tool_calls"].is_array())
        };
        assert!(
            rollouts.iter().filter(|event| with_tools(event)).count() * 2 > rollouts.len(),
            "{provider}: tools"
        );
        assert!(
            rollouts
                .iter()
                .any(|event| event["measurements"]["success"] == 1.0),
            "{provider}: no success"
        );
        for event in rollouts {
            let usage = &event["usage"]["agent"];
            assert!(
                usage["input_tokens"].as_u64() > Some(0) && usage["output_tokens"].as_u64() > Some(0),
                "{provider}: {usage}"
            );
        }
        assert!(!of_kind(&events, "critique").is_empty() && !of_kind(&events, "rewrite").is_empty());
    }
}
