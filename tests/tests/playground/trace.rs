//! The drawer with one rollout's trace.

use capo_browser::Browser;
use capo_tests::journal::events;
use capo_tests::program::run;
use capo_tests::study::Study;
use serde_json::{Value, json};

use crate::page;

/// Opens the trace of a rollout of the run at this path.
pub(crate) async fn open(browser: &Browser, run: &str, rollout: &Value) {
    let address = browser
        .js_with(
            "const [run, candidate, example] = arguments;
            return `${run}/candidate/${candidate}?trace=${encodeURIComponent(example)}`",
            vec![
                json!(run),
                rollout["candidate"].clone(),
                rollout["example"].clone(),
            ],
        )
        .await;
    browser.go(address.as_str().unwrap()).await;
    browser.until_shown("System prompt,").await;
}

/// A message with a call of a tool.
fn call(id: &str, name: &str) -> Value {
    let call = json!({ "id": id, "name": name, "arguments": { "line": "L1" } });
    json!({ "role": "assistant", "content": null, "tool_calls": [call] })
}

fn said(role: &str, content: &str) -> Value {
    json!({ "role": role, "content": content })
}

fn answered(id: &str, content: &str) -> Value {
    json!({ "role": "tool", "call_id": id, "content": content })
}

/// A trace as the tau2 domains leave it where both sides have tools.
fn of_both_sides() -> Value {
    json!({
        "messages": [
            said("assistant", "Hi!"),
            said("user", "No signal."),
            call("1", "get_line"),
            answered("1", "Error: Line not found"),
            call("2", "enable_roaming"),
            answered("2", "Roaming enabled"),
            said("assistant", "Please look."),
            said("user", "I looked. ###STOP###"),
        ],
        "outcome": "The task was not solved.",
        "details": {
            "termination_reason": "user_stop",
            "reward": 0.0,
            "reward_breakdown": { "ENV_ASSERTION": 0.0 },
            "checks": {
                "db": true,
                "assertions": [["assert_data", true], ["assert_roaming", false]],
                "actions": [["toggle", true]],
                "communicate": [],
                "natural": [],
            },
            "customer": [
                said("user", "Hi!"),
                said("assistant", "No signal."),
                said("user", "Please look."),
                call("1", "check_status_bar"),
                answered("1", "bars: 0"),
                said("assistant", "I looked. ###STOP###"),
            ],
            "changes": {
                "made": [
                    { "side": "assistant", "path": "lines.L1.roaming_enabled", "before": false, "after": true },
                    { "side": "user", "path": "device.vpn_details", "before": { "server": "a" }, "after": null },
                    { "side": "user", "path": "device.network_mode", "after": "4g_5g_preferred" },
                ],
                "left_out": 2,
            },
        },
    })
}

#[tokio::test]
async fn a_trace_tells_both_sides_calls_apart_and_what_they_changed() {
    let (study, _stub) = Study::new("http://unused").on_stub();
    run(&mut study.optimize()).expect_code(0);
    let mut lines = events(&study.journal());
    let at = lines.iter().position(|line| line["event"] == "rollout").unwrap();
    lines[at]["trace"] = of_both_sides();
    // What its details say, the kind of its workload knows.
    lines[0]["study"]["workload"] = json!({ "kind": "tau2", "domain": "telecom", "data": "data/tau2" });
    let rollout = lines[at].clone();
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(study.journal(), lines.join("\n") + "\n").unwrap();

    let browser = page::open("/runs").await;
    browser.choose("Journals to open", &study.journal()).await;
    browser.until_shown("Finished.").await;
    let path = browser.js("return location.pathname").await;
    open(&browser, path.as_str().unwrap(), &rollout).await;
    let turns = "return [...document.querySelectorAll('.talk > li')]
        .map((turn) => turn.innerText.replaceAll(/\\s+/g, ' ').trim())";
    assert_eq!(
        browser.js(turns).await,
        json!([
            "Agent Hi!",
            "User turn 1 No signal.",
            "Agent tool call get_line(line: \"L1\") Error: Line not found answered by an error",
            "Agent tool call enable_roaming(line: \"L1\") Roaming enabled",
            "Agent Please look.",
            "User tool call check_status_bar(line: \"L1\") bars: 0",
            "User turn 2 I looked. ###STOP###",
        ])
    );
    let facts = "return [...document.querySelectorAll('.drawer .facts tbody')].at(-1).innerText.split('\\n')
        .map((row) => row.split('\\t').map((cell) => cell.trim()))";
    assert_eq!(
        browser.js(facts).await,
        json!([
            ["Reward", "0", "the user ended the conversation"],
            ["Assertions", "not met", "1 of 2"],
            ["Reference calls", "–", "1 of 1, does not count"],
        ])
    );
    let changes = browser.text(".changes").await;
    let changes: Vec<&str> = changes.split_whitespace().collect();
    assert_eq!(
        changes.join(" "),
        "State changes: 1 on the agent’s side, 2 on the user’s side, 2 more not recorded \
         On the agent’s side lines.L1.roaming_enabled was false → is true \
         On the user’s side device.vpn_details was {\"server\":\"a\"} → is null \
         device.network_mode added 4g_5g_preferred"
    );
    assert_eq!(crate::barriers(&browser).await, Vec::<String>::new());

    // On a telephone it takes the width that there is.
    crate::on_telephone(&browser).await;
    assert!(crate::fits(&browser).await);
    let fits = "const body = document.querySelector('.drawer'); return body.scrollWidth <= body.clientWidth";
    assert_eq!(browser.js(fits).await, json!(true));
}
