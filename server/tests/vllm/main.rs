//! `train grpo` whose rewrites a vLLM server draws, over HTTP on this machine.

#![cfg(feature = "train")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod stub;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use stub::{Call, Fault, KEY, Stub};

const STUDY: &str = r#"
[study]
name = "small desk"
method = "METHOD"
rounds = 3

[workload]
kind = "desk"
optimize = 4
evaluate = 2

[prompt]
text = "You are a customer service agent. Help the customer with their request."

[objective]
metric = "success"

[[constraint]]
metric = "excess_tools"
threshold = 0.3

[models.agent]
provider = "simulated"

[method]
parents = 2
children = 3
"#;

const TRAIN: &str = "train grpo dcapo.toml --init nano --settings settings.toml --out grpo --json";

struct Place(tempfile::TempDir);

struct Ended {
    code: i32,
    said: String,
}

impl Place {
    /// A folder with a small model.
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for method in ["capo", "dcapo"] {
            let study = STUDY.replace("METHOD", method);
            fs::write(place.path(&format!("{method}.toml")), study).unwrap();
        }
        let run = place.capo("optimize capo.toml --journal run.jsonl --json");
        assert!([0, 2].contains(&run.code), "{}", run.said);
        let made = "rewriter new --journals run.jsonl --out nano --vocabulary 600 --hidden 32 --layers 1 --context 1600";
        let made = place.capo(made);
        assert_eq!(made.code, 0, "{}", made.said);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_capo"));
        command.args(line.split_whitespace());
        command.current_dir(self.0.path()).env("VLLM_API_KEY", KEY);
        command
    }

    fn capo(&self, line: &str) -> Ended {
        let output = self.command(line).output().unwrap();
        let said = [output.stdout, output.stderr].map(|part| String::from_utf8(part).unwrap());
        let said = said.concat();
        assert!(!said.contains(KEY), "{said}");
        Ended {
            code: output.status.code().unwrap(),
            said,
        }
    }

    /// Writes the settings of a training with rewrites of a server.
    fn set(&self, stub: &Stub, more: &str) {
        let base_url = &stub.base_url;
        let settings = format!(
            "[grpo]\nlearning_rate = 1e-2\n[lora]\nrank = 4\nalpha = 8.0\n[drawing]\nmax_new_tokens = 40\n\
             [drawing.sampling]\ntemperature = 0.7\n\
             [sampler]\nprovider = \"vllm\"\nbase_url = \"{base_url}\"\n{more}"
        );
        fs::write(self.path("settings.toml"), settings).unwrap();
    }

    /// Trains with rewrites of a server, which is asked for each of them once.
    fn train(&self, stub: &Stub, more: &str) -> Ended {
        self.set(stub, &format!("retries = 0\n{more}"));
        let ended = self.capo(TRAIN);
        assert_no_key(self.0.path());
        ended
    }

    fn lines(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(name)).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn assert_no_key(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_no_key(&path);
        } else {
            let bytes = fs::read(&path).unwrap();
            let has_key = bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes());
            assert!(!has_key, "{}", path.display());
        }
    }
}

/// The loads of some calls with the places of what follows: name, path and weights.
fn loads(calls: &[Call]) -> Vec<(usize, &str, &str, &[u8])> {
    let load = |(place, call): (usize, &'_ Call)| match call {
        Call::Load { .. } => Some(place),
        _ => None,
    };
    let places = calls.iter().enumerate().filter_map(load);
    places
        .map(|place| match &calls[place] {
            Call::Load { name, path, weights } => (place, name.as_str(), path.as_str(), &weights[..]),
            _ => unreachable!("only loads are left"),
        })
        .collect()
}

#[test]
fn each_round_is_drawn_from_the_adapter_as_it_is() {
    let (place, stub) = (Place::new(), Stub::start(Fault::None));
    let trained = place.train(&stub, "");
    assert!([0, 2].contains(&trained.code), "{}", trained.said);
    let calls = stub.calls();
    let loads = loads(&calls);
    assert_eq!(loads.len(), 3, "{calls:?}");
    assert_eq!(loads[0].0, 0, "an adapter is loaded before anything is drawn");
    for (step, (at, name, path, _)) in (0_usize..).zip(&loads) {
        let folder = place.path(&format!("grpo/served/step-{step:08}"));
        assert_eq!(Path::new(path), folder);
        let next = loads.get(step + 1).map_or(calls.len() - 1, |next| next.0);
        let mut draws = &calls[at + 1..next];
        if step > 0 {
            // The former adapter goes as soon as its follower is there.
            assert_eq!(draws[0], Call::Unload(loads[step - 1].1.to_owned()));
            draws = &draws[1..];
        }
        assert!(!draws.is_empty());
        for draw in draws {
            let Call::Complete(body) = draw else {
                panic!("{draw:?}")
            };
            assert_eq!(body["model"], *name);
            assert_eq!(
                (&body["max_tokens"], &body["return_token_ids"]),
                (&40.into(), &true.into())
            );
            assert!(
                (body["temperature"].as_f64().unwrap() - 0.7).abs() < 1e-6,
                "{body}"
            );
        }
    }
    assert_ne!(loads[0].3, loads[1].3, "the adapter learned");
    assert_eq!(
        calls.last(),
        Some(&Call::Unload(loads[2].1.to_owned())),
        "nothing is left behind"
    );
    assert!(stub.loaded().is_empty() && !place.path("grpo/served").exists());

    let learned = place.lines("grpo/journal.jsonl");
    let figures: Vec<_> = learned.iter().filter(|line| line["event"] == "learned").collect();
    assert_eq!(figures.len(), 3);
    let first = &figures[0]["figures"];
    assert!(first["training_samples"].as_f64().unwrap() > 0.0, "{first}");
    assert!(
        (first["ratio"].as_f64().unwrap() - 1.0).abs() < 1e-4,
        "what drew is what learns: {first}"
    );
    assert!(first["surprise"].as_f64().unwrap() > 0.0, "{first}");
    assert_eq!(place.capo("journal verify grpo/journal.jsonl").code, 0);

    // Drawn here, it would be another training.
    fs::write(
        place.path("local.toml"),
        "[grpo]\nlearning_rate = 1e-2\n[lora]\nrank = 4\nalpha = 8.0\n\
        [drawing]\nmax_new_tokens = 40\n[drawing.sampling]\ntemperature = 0.7\n",
    )
    .unwrap();
    let other = place.capo("train grpo dcapo.toml --init nano --settings local.toml --out grpo --json");
    assert_eq!(other.code, 1, "{}", other.said);
    assert!(other.said.contains("sampler"), "{}", other.said);
}

#[test]
fn a_training_that_goes_on_loads_the_adapter_that_it_stopped_with() {
    let whole = Place::new();
    let stub = Stub::start(Fault::None);
    whole.train(&stub, "");

    // The server dies in the second round, and comes back without any adapter.
    let place = Place::new();
    let first = loads(&stub.calls())[1].0 - 1;
    let dying = Stub::start(Fault::Completions(first + 2));
    let ended = place.train(&dying, "");
    assert_eq!(ended.code, 1, "{}", ended.said);
    assert!(ended.said.contains("the engine is dead"), "{}", ended.said);
    assert_eq!(
        dying.loaded().len(),
        1,
        "what a failed run leaves is found by the next one"
    );
    let checkpoint = fs::read(place.path("grpo/checkpoints/step-00000001/policy/adapter_model.safetensors"));
    let samples = place.lines("grpo/samples.jsonl");
    assert!(
        samples.iter().all(|sample| sample.get("logprobs").is_none()),
        "{samples:?}"
    );

    let again = Stub::start(Fault::None);
    let ended = place.train(&again, "");
    assert!([0, 2].contains(&ended.code), "{}", ended.said);
    let calls = again.calls();
    let loads = loads(&calls);
    assert_eq!((loads.len(), loads[0].0), (2, 0));
    assert_eq!(loads[0].3, checkpoint.unwrap(), "the checkpoint's adapter");
    assert_eq!(dying.loaded(), [loads[0].1], "under the same name");

    // What was drawn before is not drawn again, and seeds and tokens are those of an unbroken run.
    assert_eq!(asked(&[&stub]), asked(&[&dying, &again]));
}

/// What servers were asked to draw, and did.
fn asked(stubs: &[&Stub]) -> Vec<String> {
    let calls = stubs.iter().flat_map(|stub| stub.calls());
    let bodies = calls.filter_map(body);
    let mut asked: Vec<String> = bodies
        .map(|body| format!("{} {}", body["seed"], body["prompt"]))
        .collect();
    asked.sort_unstable();
    asked
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_waits_and_calls_and_the_training_goes_on() {
    let whole = Place::new();
    let unbroken = Stub::start(Fault::None);
    whole.train(&unbroken, "");
    let first = loads(&unbroken.calls())[1].0 - 1;
    for fault in [Fault::Busy(first + 2), Fault::Silent(first + 2)] {
        let (place, stub) = (Place::new(), Stub::start(fault));
        place.set(&stub, "retries = 9\n");
        let mut command = place.command(TRAIN);
        let mut training = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(training.stderr.take().unwrap());
        let mut heard = String::new();
        if matches!(fault, Fault::Busy(_)) {
            while !heard.contains("trying again in") {
                assert_ne!(
                    said.read_line(&mut heard).unwrap(),
                    0,
                    "not told of its wait: {heard}"
                );
            }
        } else {
            while stub.unanswered() == 0 {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        let interrupted = Instant::now();
        let pid = training.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &pid])
                .status()
                .unwrap()
                .success()
        );
        said.read_to_string(&mut heard).unwrap();
        assert_eq!(training.wait().unwrap().code(), Some(3), "{heard}");
        // Two seconds, and more for a machine that has other things to do.
        assert!(interrupted.elapsed() < Duration::from_secs(5), "{heard}");
        assert!(heard.contains("To go on, run: capo train grpo"), "{heard}");
        assert_eq!(stub.loaded(), [""; 0], "nothing is left behind");

        let again = Stub::start(Fault::None);
        let ended = place.train(&again, "");
        assert!([0, 2].contains(&ended.code), "{}", ended.said);
        assert_eq!(asked(&[&unbroken]), asked(&[&stub, &again]));
    }
}

fn body(call: Call) -> Option<Value> {
    match call {
        Call::Complete(body) => Some(body),
        _ => None,
    }
}

#[test]
fn what_a_server_has_no_room_for_gets_no_child() {
    let (place, stub) = (Place::new(), Stub::start(Fault::NoRoom));
    let trained = place.train(&stub, "");
    assert!([0, 2].contains(&trained.code), "{}", trained.said);
    let lines = place.lines("grpo/journal.jsonl");
    let learned: Vec<_> = lines.iter().filter(|line| line["event"] == "learned").collect();
    assert_eq!(learned.len(), 3, "every round was learned from");
    let sum = |name: &str| {
        learned
            .iter()
            .map(|line| line["figures"][name].as_f64().unwrap())
            .sum::<f64>()
    };
    assert!(
        sum("children") > 0.0 && sum("children") < sum("rewrites"),
        "{learned:?}"
    );
    assert!(sum("training_samples") > 0.0, "{learned:?}");
}

#[test]
fn what_a_killed_training_left_on_the_server_is_unloaded_at_the_end() {
    let (place, stub) = (Place::new(), Stub::start(Fault::None));
    place.train(&stub, "");
    let calls = stub.calls();
    let last = loads(&calls)[2].1;
    // As if it had been killed between its last rewrite and its end.
    stub.has(last);
    stub.has("capo-of-another-training");
    fs::create_dir(place.path("grpo/served")).unwrap();
    let again = place.train(&stub, "");
    assert!([0, 2].contains(&again.code), "{}", again.said);
    assert_eq!(stub.loaded(), ["capo-of-another-training"]);
    assert!(!place.path("grpo/served").exists());
}

#[test]
fn what_a_server_lacks_is_said_with_what_to_do() {
    let place = Place::new();
    for (fault, parts) in [
        (
            Fault::NoLoading,
            ["VLLM_ALLOW_RUNTIME_LORA_UPDATING=True", "--enable-lora"],
        ),
        (Fault::NoTokens, ["token_ids", "0.10.2"]),
    ] {
        let ended = place.train(&Stub::start(fault), "");
        assert_eq!(ended.code, 1, "{}", ended.said);
        for part in parts {
            assert!(ended.said.contains(part), "no {part:?} in {}", ended.said);
        }
        fs::remove_dir_all(place.path("grpo")).unwrap();
    }
    let stub = Stub::start(Fault::None);
    let ended = place.train(&stub, "server_folder = \"/nowhere/desk\"\n");
    assert_eq!(ended.code, 1, "{}", ended.said);
    for part in ["/nowhere/desk/served/step-00000000", "`server_folder`"] {
        assert!(ended.said.contains(part), "no {part:?} in {}", ended.said);
    }
    let ended = place.train(&stub, "api_key_env = \"NO_SUCH_VARIABLE\"\n");
    assert_eq!(ended.code, 1, "{}", ended.said);
    assert!(ended.said.contains("set NO_SUCH_VARIABLE"), "{}", ended.said);
    fs::write(
        place.path("mixed.toml"),
        "[sampler]\nprovider = \"local\"\nbase_url = \"http://x/v1\"\n",
    )
    .unwrap();
    let ended = place.capo("train grpo dcapo.toml --init nano --settings mixed.toml --out grpo");
    assert_eq!(ended.code, 64, "{}", ended.said);
    assert!(ended.said.contains("base_url"), "{}", ended.said);
    let ended = place.train(&stub, "api_key_env = \"VLLM_API_KEY\"\nbase_ur = \"x\"\n");
    assert_eq!(ended.code, 64, "{}", ended.said);
    let trained = place.train(&stub, "");
    assert!([0, 2].contains(&trained.code), "{}", trained.said);
    let full =
        place.capo("train grpo dcapo.toml --init nano --full --settings settings.toml --out full --json");
    assert_eq!(full.code, 64, "{}", full.said);
    assert!(full.said.contains("without --full"), "{}", full.said);
}
