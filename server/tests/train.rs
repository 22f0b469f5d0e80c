//! `train` and `rewriter` as a person uses them: a small model from nothing, on a small help desk.

#![cfg(feature = "train")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const STUDY: &str = r#"
[study]
name = "small desk"
method = "METHOD"
rounds = 3

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

# Every other text is another length: rewrites by a model that can hardly write differ in reward, whatever they ask for.
[[constraint]]
metric = "prompt_length"
threshold = 0.05

[models.agent]
provider = "simulated"
"#;

/// So little that a test bears it; a model of this size learns how prompts look, and no more.
const SETTINGS: &str = r"
[sft]
epochs = EPOCHS
batch = 4
learning_rate = 3e-3
evaluate_every = 2

[grpo]
learning_rate = 1e-3

[drawing]
max_new_tokens = 200
";

/// [`SETTINGS`] with so many epochs of imitation.
fn settings_of(epochs: u32) -> String {
    SETTINGS.replace("EPOCHS", &epochs.to_string())
}

struct Place(tempfile::TempDir);

struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Ended {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {}", self.shown()))
    }

    fn shown(&self) -> String {
        format!("exit code {}\n{}\n{}", self.code, self.stdout, self.stderr)
    }

    #[track_caller]
    fn refused(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{}", self.shown());
        let error = self
            .stderr
            .find("error")
            .map_or("", |start| &self.stderr[start..]);
        assert!((1..=3).contains(&error.lines().count()), "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in: {}", self.stderr);
        }
    }
}

impl Place {
    /// A folder with a small model and the journal of a run.
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        std::fs::write(place.path("capo.toml"), STUDY.replace("METHOD", "capo")).unwrap();
        std::fs::write(place.path("dcapo.toml"), STUDY.replace("METHOD", "dcapo")).unwrap();
        std::fs::write(place.path("settings.toml"), settings_of(6)).unwrap();
        let run = place.capo("optimize capo.toml --journal run.jsonl --json");
        assert!([0, 2].contains(&run.code), "{}", run.shown());
        let made = place.capo(
            "rewriter new --journals run.jsonl --out nano --vocabulary 600 --hidden 32 --layers 1 --context 1600",
        );
        assert_eq!(made.code, 0, "{}", made.shown());
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_capo"));
        command.args(line.split_whitespace()).current_dir(self.0.path());
        command
    }

    fn capo(&self, line: &str) -> Ended {
        Ended::of(self.command(line).output().unwrap())
    }

    fn lines(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path(name)).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

const SFT: &str =
    "train sft capo.toml --journals run.jsonl --model nano --full --settings settings.toml --out sft --json";
const GRPO: &str = "train grpo dcapo.toml --init sft --full --settings settings.toml --out grpo --json";

#[test]
fn a_rewriter_is_trained_searches_learns_and_answers() {
    let place = Place::new();

    let trained = place.capo(SFT);
    assert_eq!(trained.code, 0, "{}", trained.shown());
    let outcome = trained.json();
    assert_eq!(outcome["status"], "done");
    let steps = outcome["steps"].as_u64().unwrap();
    assert!(place.path(outcome["checkpoint"].as_str().unwrap()).is_dir());
    let events = place.lines("sft/training.jsonl");
    let losses: Vec<f64> = events
        .iter()
        .filter(|event| event["event"] == "step")
        .map(|event| event["loss"].as_f64().unwrap())
        .collect();
    assert_eq!(losses.len() as u64, steps);
    assert!(losses[losses.len() - 1] < losses[0], "{losses:?}");
    assert!(place.path("sft/tensorboard").is_dir());

    // The same command finds it done; another training is not mixed with it.
    let again = place.capo(SFT);
    assert_eq!((again.code, again.json()), (0, outcome));
    assert_eq!(place.lines("sft/training.jsonl"), events);
    let other = place.capo(&format!("{SFT} --epochs 3"));
    other.refused(1, &["belongs to another training", "epochs"]);

    let learned = place.capo(GRPO);
    assert!([0, 2].contains(&learned.code), "{}", learned.shown());
    let figures: Vec<Value> = place
        .lines("grpo/journal.jsonl")
        .into_iter()
        .filter(|line| line["event"] == "learned")
        .map(|line| line["figures"].clone())
        .collect();
    assert_eq!(figures.len(), 3);
    for name in ["rewrites", "completion_tokens", "peak_memory_bytes"] {
        assert!(
            figures[0][name].as_f64().is_some_and(|figure| figure > 0.0),
            "{figures:?}"
        );
    }
    let verified = place.capo("journal verify grpo/journal.jsonl");
    assert_eq!(verified.code, 0, "{}", verified.shown());
    let again = place.capo(GRPO);
    assert_eq!(
        (again.code, again.json()["best"].clone()),
        (learned.code, learned.json()["best"].clone())
    );

    // What belongs together is kept together.
    std::fs::rename(place.path("grpo/journal.jsonl"), place.path("elsewhere.jsonl")).unwrap();
    place.capo(GRPO).refused(1, &["grpo", "3 rounds", "--out"]);
    std::fs::rename(place.path("elsewhere.jsonl"), place.path("grpo/journal.jsonl")).unwrap();

    // As the rewriter of another search, whose critic is the agent's model.
    let study = STUDY.replace("METHOD", "dcapo")
        + "\n[models.rewriter]\nprovider = \"local\"\nmodel = \"grpo\"\nmax_tokens = 100\n";
    std::fs::write(place.path("local.toml"), study).unwrap();
    let searched = place.capo("optimize local.toml --journal local.jsonl --json");
    assert!([0, 2].contains(&searched.code), "{}", searched.shown());
    let rewrites = searched.json()["usage"]["by_role"]["rewriter"]["calls"].clone();
    assert!(
        rewrites.as_u64().is_some_and(|calls| calls > 0),
        "{}",
        searched.stdout
    );

    // A device that is not there is no fault of the study.
    let mut elsewhere = place.command("optimize local.toml --journal elsewhere.jsonl");
    Ended::of(elsewhere.env("CAPO_DEVICE", "cuda:99").output().unwrap())
        .refused(1, &["models.rewriter", "cuda", "CAPO_DEVICE"]);
    assert!(!place.path("elsewhere.jsonl").exists());

    let merged = place.capo("rewriter merge grpo --out merged");
    assert_eq!(merged.code, 0, "{}", merged.shown());
    assert!(place.path("merged/model.safetensors").is_file());
    place
        .capo("rewriter merge grpo --out merged")
        .refused(1, &["merged"]);
}

#[test]
fn adapters_are_trained_and_go_on() {
    let place = Place::new();
    let line = SFT.replace(" --full", "");
    let trained = place.capo(&line);
    assert_eq!(trained.code, 0, "{}", trained.shown());
    let checkpoint = trained.json()["checkpoint"].as_str().unwrap().to_owned();
    let adapter = place.path(&checkpoint).join("policy/adapter_config.json");
    let adapter: Value = serde_json::from_str(&std::fs::read_to_string(adapter).unwrap()).unwrap();
    assert_eq!(
        (adapter["r"].clone(), adapter["peft_type"].clone()),
        (json!(16), json!("LORA"))
    );
    // Other numbers would give another curve.
    place
        .capo(&format!("{line} --device cpu --dtype bf16"))
        .refused(1, &["belongs to another training", "dtype", "bf16"]);
    let line = GRPO.replace(" --full", "");
    let learned = place.capo(&line);
    assert!([0, 2].contains(&learned.code), "{}", learned.shown());
    // How many are drawn together does not.
    let settings = settings_of(6).replace("[drawing]", "[drawing]\nmax_batch = 3");
    std::fs::write(place.path("settings.toml"), settings).unwrap();
    let again = place.capo(&line);
    assert_eq!(again.code, learned.code, "{}", again.shown());
    let other = settings_of(6).replace("max_new_tokens = 200", "max_new_tokens = 199");
    std::fs::write(place.path("settings.toml"), other).unwrap();
    place
        .capo(&line)
        .refused(1, &["belongs to another training", "max_new_tokens"]);
}

/// Runs a command until its training wrote so many more lines with an event to a file, and sends it a signal then,
/// unless it has ended before. Gives what it ended with.
#[cfg(unix)]
fn signalled(place: &Place, line: &str, (file, event, more): (&str, &str, usize), signal: &str) -> Output {
    let named = format!("\"event\":\"{event}\"");
    let written = || {
        let bytes = std::fs::read(place.path(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).matches(&named).count()
    };
    let before = written();
    let mut command = place.command(line);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() {
        if written() >= before + more {
            let sent = Command::new("kill")
                .args([signal, &child.id().to_string()])
                .status();
            assert!(sent.unwrap().success());
            break;
        }
        if begun.elapsed().as_secs() > 100 {
            child.kill().unwrap();
            panic!("no further {event} in {file}: {:?}", child.wait_with_output());
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.wait_with_output().unwrap()
}

/// The points of a training's curves: the event, its step or round, and its numbers, of which a round that taught
/// nothing has fewer.
#[cfg(unix)]
type Curve = Vec<(String, u64, Vec<Option<f64>>)>;

#[cfg(unix)]
fn curve(place: &Place, file: &str) -> Curve {
    let point = |line: Value| {
        let event = line["event"].as_str()?;
        let (numbers, names): (&Value, &[&str]) = match event {
            "step" => (&line, &["loss", "gradient_norm", "learning_rate"]),
            "evaluation" => (&line, &["loss"]),
            "learned" => (&line["figures"], &["loss", "gradient_norm", "entropy", "reward"]),
            _ => return None,
        };
        let step = line.get("step").or(line.get("round"))?.as_u64()?;
        let numbers = names.iter().map(|name| numbers[name].as_f64());
        Some((event.to_owned(), step, numbers.collect()))
    };
    place.lines(file).into_iter().filter_map(point).collect()
}

#[cfg(unix)]
#[track_caller]
fn same_curve(one: &Curve, other: &Curve) {
    let steps = |curve: &Curve| -> Vec<(String, u64)> {
        curve
            .iter()
            .map(|(event, step, _)| (event.clone(), *step))
            .collect()
    };
    assert_eq!(steps(one), steps(other));
    let has_learned = |point: &(String, u64, Vec<Option<f64>>)| point.2.get(1).is_some_and(Option::is_some);
    assert!(
        one.iter().filter(|point| has_learned(point)).count() > 1,
        "{one:?}"
    );
    let close = |pair: (&Option<f64>, &Option<f64>)| match pair {
        (Some(one), Some(other)) => (one - other).abs() <= 1e-6,
        (one, other) => one == other,
    };
    for (one, other) in one.iter().zip(other) {
        assert!(one.2.iter().zip(&other.2).all(close), "{one:?} {other:?}");
    }
}

#[cfg(unix)]
#[test]
fn trainings_that_are_killed_or_interrupted_come_to_the_same() {
    use std::os::unix::process::ExitStatusExt as _;

    let place = Place::new();
    // Long enough to be interrupted three times.
    std::fs::write(place.path("settings.toml"), settings_of(8)).unwrap();
    let trained = place.capo(SFT);
    assert_eq!(trained.code, 0, "{}", trained.shown());
    let again = SFT.replace("--out sft", "--out again");
    for steps in [1, 4] {
        let killed = signalled(&place, &again, ("again/training.jsonl", "step", steps), "-KILL");
        assert_eq!(killed.status.signal(), Some(9), "{killed:?}");
    }
    let stopped = signalled(&place, &again, ("again/training.jsonl", "step", 1), "-INT");
    let said = String::from_utf8(stopped.stderr).unwrap();
    assert_eq!(stopped.status.code(), Some(3), "{said}");
    let command = told_to_go_on(&said);
    let outcome: Value = serde_json::from_slice(&stopped.stdout).unwrap();
    assert_eq!(outcome["status"], "stopped");
    let ended = place.capo(command);
    assert_eq!(ended.code, 0, "{}", ended.shown());
    assert_eq!(
        ended.json()["best_evaluation_loss"],
        trained.json()["best_evaluation_loss"]
    );
    same_curve(
        &curve(&place, "sft/training.jsonl"),
        &curve(&place, "again/training.jsonl"),
    );

    let learned = place.capo(GRPO);
    assert!([0, 2].contains(&learned.code), "{}", learned.shown());
    let again = GRPO.replace("--out grpo", "--out online");
    // While it draws, once it has learned, and while it draws with what it learned.
    for event in ["rewrite", "learned", "rewrite"] {
        let killed = signalled(&place, &again, ("online/journal.jsonl", event, 1), "-KILL");
        assert_eq!(killed.status.signal(), Some(9), "{killed:?}");
    }
    let stopped = signalled(&place, &again, ("online/journal.jsonl", "round", 1), "-INT");
    let said = String::from_utf8(stopped.stderr).unwrap();
    assert_eq!(stopped.status.code(), Some(3), "{said}");
    let command = told_to_go_on(&said);
    let ended = place.capo(command);
    assert_eq!(ended.code, learned.code, "{}", ended.shown());
    assert_eq!(ended.json()["best"], learned.json()["best"]);
    same_curve(
        &curve(&place, "grpo/journal.jsonl"),
        &curve(&place, "online/journal.jsonl"),
    );
    let verified = place.capo("journal verify online/journal.jsonl");
    assert_eq!(verified.code, 0, "{}", verified.shown());
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_an_answer_of_a_rewriter_in_this_process() {
    let place = Place::new();
    let made = place.capo(
        "rewriter new --journals run.jsonl --out slow --vocabulary 600 --hidden 96 --layers 3 --context 30000",
    );
    assert_eq!(made.code, 0, "{}", made.shown());
    let study = STUDY.replace("METHOD", "capo")
        + "\n[models.rewriter]\nprovider = \"local\"\nmodel = \"slow\"\nmax_tokens = 25000\n";
    std::fs::write(place.path("local.toml"), study).unwrap();
    for signal in ["-INT", "-TERM"] {
        // It draws from the first critique on, until a model that has learned nothing happens to end.
        let line = "optimize local.toml --journal local.jsonl --json";
        let stopped = Ended::of(signalled(&place, line, ("local.jsonl", "critique", 1), signal));
        assert_eq!(stopped.code, 3, "{}", stopped.shown());
        assert_eq!(stopped.json()["status"], "stopped");
        told_to_go_on(&stopped.stderr);
        let lines = place.lines("local.jsonl");
        let rewrites = lines.iter().filter(|line| line["event"] == "rewrite");
        assert_eq!(rewrites.count(), 0, "{lines:?}");
        let verified = place.capo("journal verify local.jsonl");
        assert_eq!(verified.code, 0, "{}", verified.shown());
        std::fs::remove_file(place.path("local.jsonl")).unwrap();
    }
}

/// The arguments of the last command that standard error names to go on with.
fn told_to_go_on(said: &str) -> &str {
    let (_, command) = said.rsplit_once("To go on, run: capo ").unwrap();
    command.lines().next().unwrap()
}

/// A short training whose checkpoints are all kept, in `grpo`, from a fine-tuned model, whose checkpoint is returned.
fn trained_by_rounds(place: &Place, full: &str) -> PathBuf {
    let settings = format!("{}\n[checkpoints]\nlast = 9\n", settings_of(10));
    std::fs::write(place.path("settings.toml"), settings).unwrap();
    let study = STUDY.replace("METHOD", "dcapo") + "\n[method]\nparents = 3\nchildren = 6\n";
    std::fs::write(place.path("dcapo.toml"), study).unwrap();
    let trained = place.capo(SFT);
    assert_eq!(trained.code, 0, "{}", trained.shown());
    let learned = place.capo(&GRPO.replace("--full", full));
    assert!([0, 2].contains(&learned.code), "{}", learned.shown());
    place.path(trained.json()["checkpoint"].as_str().unwrap())
}

/// J(child) − J(parent) of every rewrite of a round that gave a child, from the journal's own lines.
fn gains(place: &Place, round: u64) -> Vec<f64> {
    let lines = place.lines("grpo/journal.jsonl");
    let of = |event: &str| -> Vec<Value> {
        let of_round = |line: &&Value| line["event"] == event && line["round"] == round;
        lines.iter().filter(of_round).cloned().collect()
    };
    let closed = of("round")[0].clone();
    let lagrangian = |id: &Value| {
        closed["scores"][id.as_str().unwrap()]["lagrangian"]
            .as_f64()
            .unwrap()
    };
    of("rewrite")
        .iter()
        .filter(|rewrite| !rewrite["child"].is_null())
        .map(|rewrite| lagrangian(&rewrite["child"]) - lagrangian(&rewrite["parent"]))
        .collect()
}

#[test]
fn the_alignment_of_a_training_is_measured() {
    let place = Place::new();
    trained_by_rounds(&place, "--full");
    let measured = place.capo("rewriter alignment grpo --device cpu --out pairs.json --json");
    assert_eq!(measured.code, 0, "{}", measured.shown());
    let found = measured.json();
    assert_eq!(found["device"], "cpu");
    let rounds = found["rounds"].as_array().unwrap();
    let names: Vec<u64> = rounds
        .iter()
        .map(|round| round["round"].as_u64().unwrap())
        .collect();
    assert_eq!(names, [1, 2], "the first round has no checkpoint before it");
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let close = |one: f64, other: f64| (one - other).abs() <= 1e-9 * other.abs().max(1e-9);
    let mut everyone = Vec::new();
    for (round, told) in [1, 2].into_iter().zip(rounds) {
        let expected = gains(&place, round);
        assert!(
            expected.len() > 1,
            "too few children to measure: {}",
            measured.shown()
        );
        assert_eq!(told["pairs"], expected.len(), "{told}");
        assert_eq!(told["too_long"], 0, "{told}");
        assert!(
            close(told["gain"]["mean"].as_f64().unwrap(), mean(&expected)),
            "{told} {expected:?}"
        );
        everyone.extend(expected);
    }
    assert!(
        close(found["all"]["gain"]["mean"].as_f64().unwrap(), mean(&everyone)),
        "{found}"
    );

    // The means are those of the pairs, of which none is left out; advantages of a parent's children sum to 0.
    let written: Value = serde_json::from_slice(&std::fs::read(place.path("pairs.json")).unwrap()).unwrap();
    assert_eq!(written["all"], found["all"]);
    let each = written["each"].as_array().unwrap();
    for figure in ["hidden", "parameters", "gain"] {
        let values: Vec<f64> = each.iter().map(|pair| pair[figure].as_f64().unwrap()).collect();
        assert_eq!(values.len(), everyone.len());
        assert!(
            close(found["all"][figure]["mean"].as_f64().unwrap(), mean(&values)),
            "{figure}: {found}"
        );
        assert!(
            values.iter().any(|value| *value != 0.0),
            "{figure} says nothing: {values:?}"
        );
    }
    let centred = each
        .iter()
        .filter(|pair| pair["parent"] == 0 && pair["round"] == 1);
    let sum: f64 = centred.map(|pair| pair["advantage"].as_f64().unwrap()).sum();
    assert!(sum.abs() < 1e-9, "{sum}");

    let page = place.capo("rewriter alignment grpo --device cpu");
    assert_eq!(page.code, 0, "{}", page.shown());
    for part in [
        "round 1",
        "round 2",
        "all",
        "⟨ĝ_z, z⁺ − z⟩",
        "⟨ĝ_θ, Δθ⟩",
        "95 % intervals",
    ] {
        assert!(page.stdout.contains(part), "no {part:?} in {}", page.stdout);
    }

    misplaced(&place);
}

/// What does not belong together is named, and what is missing.
fn misplaced(place: &Place) {
    const ALIGNMENT: &str = "rewriter alignment grpo --device cpu";
    place
        .capo("rewriter alignment nano")
        .refused(1, &["nano", "no training of `capo train grpo`", "--out"]);
    place
        .capo("rewriter alignment sft")
        .refused(1, &["sft", "but of `capo train sft`"]);
    place
        .capo(&format!("{ALIGNMENT} --dtype bf16"))
        .refused(1, &["all weights learn in F32 only"]);
    let journal = place.path("grpo/journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::remove_file(&journal).unwrap();
    place.capo(ALIGNMENT).refused(1, &["journal.jsonl is not there"]);
    let rounds: Vec<usize> = text
        .match_indices("{\"event\":\"round\"")
        .map(|(at, _)| at)
        .collect();
    std::fs::write(&journal, &text[..rounds[2]]).unwrap();
    place
        .capo(ALIGNMENT)
        .refused(1, &["tells of 2 rounds", "step-00000003 learned from 3"]);
    std::fs::copy(place.path("run.jsonl"), &journal).unwrap();
    place
        .capo(ALIGNMENT)
        .refused(1, &["are of different trainings", "journal.jsonl", "study.study"]);
    std::fs::write(&journal, &text).unwrap();
    std::fs::rename(
        place.path("grpo/checkpoints/step-00000002"),
        place.path("elsewhere"),
    )
    .unwrap();
    place.capo(ALIGNMENT).refused(
        1,
        &[
            "checkpoints of the steps 1, 3",
            "two in a row",
            "`last` under [checkpoints]",
        ],
    );
}

#[test]
fn the_alignment_of_an_adapter_takes_the_model_it_learned_beside() {
    let place = Place::new();
    let model = trained_by_rounds(&place, "").join("policy");
    let means = |line: &str| {
        let measured = place.capo(line);
        assert_eq!(measured.code, 0, "{}", measured.shown());
        let found = measured.json();
        ["hidden", "parameters"].map(|figure| found["all"][figure]["mean"].as_f64().unwrap())
    };
    let fine = means("rewriter alignment grpo --device cpu --json");
    assert!(fine.iter().all(|mean| *mean != 0.0), "{fine:?}");
    let coarse = means("rewriter alignment grpo --device cpu --dtype bf16 --json");
    for (fine, coarse) in fine.iter().zip(coarse) {
        assert!(
            (fine - coarse).abs() < 0.1 * fine.abs(),
            "{coarse} in BF16 instead of {fine}"
        );
    }
    place
        .capo("rewriter alignment grpo --dtype f16")
        .refused(1, &["F16"]);

    let weights = model.join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&weights, bytes).unwrap();
    place
        .capo("rewriter alignment grpo --device cpu")
        .refused(1, &["policy is not the model", "weights"]);
}

#[test]
fn a_rewriter_is_transferred_to_other_studies() {
    const TRANSFER: &str = "experiment transfer --rewriter sft --study dcapo.toml --study brief.toml --seeds 2 \
                            --max-tokens 200 --out transfer";
    let place = Place::new();
    std::fs::write(place.path("settings.toml"), settings_of(8)).unwrap();
    let trained = place.capo(SFT);
    assert_eq!(trained.code, 0, "{}", trained.shown());
    let brief = STUDY
        .replace("METHOD", "capo")
        .replace("small desk", "brief desk")
        .replace("threshold = 0.05", "threshold = 1.0")
        + "\n[method]\nlambda_init = 2.5\n[feedback]\nform = \"trajectory\"\n";
    std::fs::write(place.path("brief.toml"), brief).unwrap();

    let planned = place.capo(&format!("{TRANSFER} --dry-run"));
    assert_eq!(planned.code, 0, "{}", planned.shown());
    assert!(!place.path("transfer").exists(), "a dry run touches nothing");

    let moved = place.capo(TRANSFER);
    assert_eq!(moved.code, 0, "{}", moved.shown());
    for part in [
        "Held-out results on small desk (dcapo)",
        "Held-out results on brief desk (brief)",
        "excess_tools (≤ 0.3)",
        "AllSat, fresh",
    ] {
        assert!(moved.stdout.contains(part), "no {part:?} in {}", moved.stdout);
    }
    for file in [
        "report.md",
        "held-out-dcapo.csv",
        "held-out-brief.csv",
        "paper.csv",
    ] {
        assert!(place.path("transfer").join(file).is_file(), "{file}");
    }
    let report: Value =
        serde_json::from_slice(&std::fs::read(place.path("transfer/report.json")).unwrap()).unwrap();
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    let mut journals = Vec::new();
    for run in runs {
        let (key, seed) = (run["variant"].as_str().unwrap(), run["seed"].as_u64().unwrap());
        let journal = format!("transfer/journals/transfer-{key}-seed-{seed}.journal.jsonl");
        one_round(&place, &journal, run);
        assert!(run["fresh"]["objective"].is_number(), "{run}");
        journals.push((journal.clone(), std::fs::read(place.path(&journal)).unwrap()));
    }
    assert!(
        runs.iter().any(|run| run["candidates"].as_u64().unwrap() > 1),
        "no rewrite gave a prompt: {}",
        moved.stdout
    );

    // What is finished is not run again, and stays the rewriter's own.
    let again = place.capo(TRANSFER);
    assert_eq!((again.code, again.stdout), (0, moved.stdout));
    for (journal, bytes) in journals {
        assert!(
            std::fs::read(place.path(&journal)).unwrap() == bytes,
            "{journal} was touched"
        );
    }
    place
        .capo(&TRANSFER.replace("--rewriter sft", "--rewriter nano"))
        .refused(1, &["rewriter.json", "another rewriter", "--out"]);

    place
        .capo("experiment transfer --study dcapo.toml")
        .refused(64, &["--rewriter"]);
    place
        .capo("experiment transfer --rewriter sft")
        .refused(64, &["--study"]);
    place
        .capo("experiment transfer --rewriter nowhere --study dcapo.toml")
        .refused(1, &["nowhere", "owner/name@revision"]);
    place
        .capo(&format!("{TRANSFER} --study ./brief.toml"))
        .refused(64, &["`brief`", "different names"]);
    place
        .capo("experiment beta --study capo.toml --rewriter sft")
        .refused(64, &["--rewriter is for `transfer`"]);
    place
        .capo("experiment beta --study capo.toml --study brief.toml")
        .refused(64, &["2 studies"]);
}

/// A journal of one round of four rewrites of the seed prompt, told its evidence, of which the best by J was chosen.
fn one_round(place: &Place, journal: &str, run: &Value) {
    let verified = place.capo(&format!("journal verify {journal}"));
    assert_eq!(verified.code, 0, "{}", verified.shown());
    let lines = place.lines(journal);
    let of = |event: &str| -> Vec<&Value> { lines.iter().filter(|line| line["event"] == event).collect() };
    let study = &of("study")[0]["study"];
    assert_eq!(study["models"]["rewriter"]["provider"], "local");
    let seed = &of("candidate")[0]["id"];
    let critiques = of("critique");
    assert_eq!(
        (critiques.len(), &critiques[0]["candidate"]),
        (1, seed),
        "the seed prompt alone is criticised"
    );
    assert!(!critiques[0]["feedback"].as_str().unwrap().is_empty());
    let rewrites = of("rewrite");
    assert_eq!(rewrites.len(), 4);
    assert!(rewrites.iter().all(|rewrite| rewrite["parent"] == *seed));
    let rounds = of("round");
    assert_eq!((rounds.len(), of("learned").len()), (1, 0));
    let lambda = if study["study"]["name"] == "brief desk" {
        2.5
    } else {
        1.0
    };
    for (metric, multiplier) in rounds[0]["multipliers"].as_object().unwrap() {
        assert_eq!(multiplier, lambda, "{metric}");
    }
    let scores = rounds[0]["scores"].as_object().unwrap();
    let lagrangian = |score: &Value| score["lagrangian"].as_f64().unwrap();
    let children = scores
        .iter()
        .filter(|(id, _)| id.as_str() != seed.as_str().unwrap());
    let best = children.max_by(|(_, one), (_, other)| lagrangian(one).total_cmp(&lagrangian(other)));
    let finished = of("finished")[0];
    if let Some((_, score)) = best {
        let chosen = finished["best"].as_str().unwrap();
        assert_ne!(chosen, seed.as_str().unwrap());
        assert_eq!(lagrangian(&scores[chosen]), lagrangian(score), "{journal}");
    }
    assert_eq!(run["candidates"], scores.len());
    assert_eq!(
        run["evaluate"]["objective"],
        finished["evaluation"]["success"]["mean"]
    );
    assert_eq!(
        run["seed_prompt"]["objective"],
        finished["seed_evaluation"]["success"]["mean"]
    );
}

#[tokio::test]
async fn a_rewriter_is_served() {
    let place = Place::new();
    let mut server = place
        .command("rewriter serve nano --port 0 --max-tokens 20 --temperature 0")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line
        .trim()
        .strip_prefix("listening on ")
        .unwrap_or_else(|| panic!("{line}"));
    let client = reqwest::Client::new();
    let ask = async |wishes: Value| {
        let mut body =
            json!({ "model": "rewriter", "messages": [{ "role": "user", "content": "Rewrite this." }] });
        body.as_object_mut()
            .unwrap()
            .extend(wishes.as_object().unwrap().clone());
        let answer = client.post(format!("{address}/chat/completions")).json(&body);
        let answer = answer.send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let text = |answer: &Value| {
        answer["choices"][0]["message"]["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let tokens = |answer: &Value| answer["usage"]["completion_tokens"].as_u64().unwrap();

    let (status, usual) = ask(json!({ "seed": 1 })).await;
    assert_eq!(status, 200, "{usual}");
    assert!((1..=20).contains(&tokens(&usual)), "{usual}");
    // The likeliest rewrite is the same with every seed.
    assert_eq!(text(&usual), text(&ask(json!({ "seed": 2 })).await.1));
    let warm = async |seed: u64| text(&ask(json!({ "seed": seed, "temperature": 2.0 })).await.1);
    assert_ne!(warm(1).await, warm(2).await);
    let (_, short) = ask(json!({ "seed": 1, "max_tokens": 3 })).await;
    assert!(tokens(&short) <= 3, "{short}");
    assert!(text(&usual).starts_with(&text(&short)), "{usual} {short}");
    let (_, long) = ask(json!({ "seed": 1, "max_tokens": 100_000 })).await;
    assert_eq!(text(&long), text(&usual));

    let (status, refused) = ask(json!({ "messages": [{ "role": "system", "content": "Be brief." }] })).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("messages")));
    let (status, refused) = ask(json!({ "top_p": 0.0 })).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("top_p")));
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn what_cannot_be_trained_is_named() {
    let place = Place::new();
    place
        .capo("train grpo capo.toml --init nano --out grpo")
        .refused(64, &["capo.toml", "dcapo"]);
    place
        .capo("train sft capo.toml --journals run.jsonl --model nowhere --out sft")
        .refused(1, &["nowhere", "owner/name@revision"]);
    place
        .capo("train sft capo.toml --journals nothing.jsonl --model nano --out sft")
        .refused(1, &["nothing.jsonl"]);
    place
        .capo(&format!("{SFT} --learning-rate 2"))
        .refused(64, &["learning rate", "at most 1"]);
    std::fs::write(place.path("wrong.toml"), "[sft]\nepoch = 1\n").unwrap();
    place
        .capo(&SFT.replace("settings.toml", "wrong.toml"))
        .refused(64, &["wrong.toml", "epoch"]);
    // What was refused holds nobody to anything.
    let weights = std::fs::read(place.path("nano/model.safetensors")).unwrap();
    std::fs::write(place.path("nano/model.safetensors"), b"short").unwrap();
    place.capo(SFT).refused(1, &["model.safetensors"]);
    std::fs::write(place.path("nano/model.safetensors"), weights).unwrap();
    let trained = place.capo(SFT);
    assert_eq!(trained.code, 0, "{}", trained.shown());
}
