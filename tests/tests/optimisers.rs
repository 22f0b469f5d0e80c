//! Other optimisers' own requests, answered by `capo simulate` and read by their own parsers.
//!
//! Of `cargo xtask test --all`, which installs the packages and names their Python in `CAPO_OPTIMISERS`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use capo_tests::program::{Server, command, run};
use capo_tests::tools::named;
use serde_json::Value;

/// Puts the packages' requests to an endpoint and prints what their parsers make of the answers.
const SCRIPT: &str = include_str!("../src/optimisers.py");

/// What stands in the requests and in the form of the answers, and in no prompt.
const FOREIGN: [&str; 9] = [
    "```",
    "<",
    "[[ ##",
    "Respond with",
    "Prompt 1",
    "Randomly mutate",
    "classif",
    "simpler",
    "cancel it",
];

/// Names a Python with the packages.
const PYTHON: &str = "CAPO_OPTIMISERS";

#[test]
fn other_optimisers_get_prompts_that_they_can_read() {
    let Some(python) = named(PYTHON) else { return };
    let simulated = Server::simulate(&[]);
    let ended = Command::new(python)
        .args(["-c", SCRIPT, &simulated.base_url])
        .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    let output = String::from_utf8(ended.stdout).unwrap();
    // Some packages print what they do.
    let asked = output
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut new: BTreeMap<String, usize> = BTreeMap::new();
    for line in asked {
        let text = |value: &Value| value.as_str().unwrap().trim().to_owned();
        let (tool, before) = (text(&line["tool"]), text(&line["before"]));
        let after: Vec<String> = line["after"].as_array().unwrap().iter().map(text).collect();
        assert!(
            !after.is_empty(),
            "{tool}: it read nothing from the answer\n{said}"
        );
        for prompt in &after {
            // Nothing of the request but the prompt, and nothing of the answer's form.
            let is_bare = !prompt.is_empty() && FOREIGN.iter().all(|text| !prompt.contains(text));
            assert!(is_bare, "{tool}: {prompt:?}");
        }
        let expected = match tool.as_str() {
            "ProTeGi gradients" | "ProTeGi edits" => 2,
            "promptolution several" => 3,
            _ => after.len(),
        };
        assert_eq!(after.len(), expected, "{tool}: {after:?}");
        if !before.is_empty() && tool != "ProTeGi gradients" {
            let shares = |prompt: &&String| before.split(". ").any(|sentence| prompt.contains(sentence));
            let of_it = after.iter().filter(shares).count();
            assert!(of_it > 0, "{tool} was given other prompts: {after:?}");
        }
        *new.entry(tool).or_default() += after.iter().filter(|prompt| **prompt != before).count();
    }
    assert_eq!(new.len(), 18, "{new:?}");
    for (tool, count) in new {
        assert!(count > 0, "{tool} was given the prompt that it had\n{output}");
    }
}

/// The guide that shows a whole program.
const GUIDE: &str = include_str!("../../docs/simulate.md");

#[test]
fn the_guides_program_finds_a_better_prompt() {
    let Some(python) = named(PYTHON) else { return };
    let program = GUIDE
        .split("```python\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let program = program.unwrap();
    assert!(program.contains("gepa.optimize"), "{program}");
    assert!(program.lines().count() <= 40, "{program}");
    let folder = tempfile::tempdir().unwrap();
    let study = Path::new(env!("CARGO_MANIFEST_DIR")).join("../studies/help-desk.toml");
    let mut serve = command(["evaluate", "--serve", "--port", "0", "--journal", "served.jsonl"]);
    let served = Server::start(serve.arg(&study).current_dir(folder.path()));
    let simulated = Server::simulate(&[]);
    let ended = Command::new(python)
        .args(["-c", program, &served.base_url, &simulated.base_url, "hinge"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    let output = String::from_utf8(ended.stdout).unwrap();
    let found: Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
    simulated.stop();
    served.stop();
    let journal = std::fs::read_to_string(folder.path().join("served.jsonl")).unwrap();
    let rollouts = journal.matches(r#"{"event":"rollout""#).count();
    assert!((1000..=3000).contains(&rollouts), "within its budget, {rollouts}");

    let best = folder.path().join("best.md");
    std::fs::write(best, found["prompt"].as_str().unwrap()).unwrap();
    let mut evaluate = command([
        "evaluate",
        "--json",
        "--split",
        "optimize",
        "--journal",
        "served.jsonl",
    ]);
    evaluate.args(["--prompt", "best.md"]).arg(study);
    // It meets every threshold where it was searched for.
    let found = run(evaluate.current_dir(folder.path())).expect_code(0).json();
    assert_eq!(
        found["usage"]["rollouts"], rollouts,
        "all of it was measured for GEPA"
    );
}
