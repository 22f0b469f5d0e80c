//! The program as it is run on a machine with a GPU, here on the processor.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use capo_tests::shared::shared;
use serde_json::Value;

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_capo-measure"))
}

fn shape() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("shapes/micro")
}

fn text(output: &Output) -> String {
    let [out, error] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{out}{error}")
}

fn all(out: &Path, reference: &Path) -> Output {
    program()
        .args(["all", "--device", "cpu", "--dtype", "f32", "--decode", "1,3"])
        .args([
            "--train",
            "2x16",
            "--new-tokens",
            "60",
            "--reps",
            "2",
            "--peak-tflops",
            "1",
        ])
        .arg("--shapes")
        .arg(shape())
        .arg("--reference")
        .arg(reference)
        .arg("--out")
        .arg(out)
        .output()
        .expect("it starts")
}

#[test]
fn a_campaign_measures_everything_and_writes_lines_and_a_table() {
    let Some(reference) = shared("parity/qwen3") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let output = all(folder.path(), &reference);
    assert!(output.status.success(), "{}", text(&output));
    let lines = std::fs::read_to_string(folder.path().join("results.jsonl")).expect("written");
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["mode"], "parity");
    for (line, batch) in lines[1..3].iter().zip([1, 3]) {
        assert_eq!((&line["mode"], &line["batch"]), (&"decode".into(), &batch.into()));
        assert!(line["tokens_per_s"].as_f64() > Some(0.0), "{line}");
    }
    let step = &lines[3];
    assert_eq!((&step["mode"], &step["seq"]), (&"train".into(), &16.into()));
    // Random weights know nothing of 512 tokens.
    let loss = step["loss"].as_f64().expect("a loss");
    assert!((loss - 512f64.ln()).abs() < 0.5, "{loss}");
    let table = std::fs::read_to_string(folder.path().join("table.md")).expect("written");
    assert!(table.contains("Parity with PyTorch in f32: passed."), "{table}");
    assert!(table.contains("| micro | decode, batch 3  |"), "{table}");
    assert!(table.contains("| micro | LoRA step 2 × 16 |"), "{table}");
    assert_eq!(
        text(&output).matches(": passed in").count(),
        10,
        "{}",
        text(&output)
    );

    let again = all(folder.path(), &reference);
    assert!(!again.status.success() && text(&again).contains("results.jsonl"));
}

#[test]
fn parity_that_fails_is_a_failure() {
    let Some(reference) = shared("parity/qwen3") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    for entry in std::fs::read_dir(&reference).expect("reads") {
        let entry = entry.expect("reads");
        let target = folder.path().join(entry.file_name());
        std::os::unix::fs::symlink(entry.path(), target).expect("a link");
    }
    let changed = folder.path().join("grpo.json");
    let original = std::fs::read_to_string(&changed).expect("reads");
    let mut file: Value = serde_json::from_str(&original).expect("JSON");
    let number = &mut file["ref_logps_t07"][0][0];
    *number = (number.as_f64().expect("a number") + 0.01).into();
    std::fs::remove_file(&changed).expect("the link goes");
    std::fs::write(&changed, file.to_string()).expect("written");

    let output = program()
        .args(["parity", "--device", "cpu", "--reference"])
        .arg(folder.path())
        .output()
        .expect("it starts");
    let text = text(&output);
    assert!(!output.status.success(), "{text}");
    assert!(
        text.contains("log-probabilities of completions: FAILED"),
        "{text}"
    );
    assert!(text.contains("\nlogits: passed"), "{text}");
}

#[test]
fn a_device_that_is_not_there_is_named() {
    let output = program()
        .args(["speed", "--device", "cuda:7", "--mode", "decode", "--shape"])
        .arg(shape())
        .output()
        .expect("it starts");
    let text = text(&output);
    assert!(!output.status.success());
    assert!(text.contains("cuda") && text.contains("cpu (x86_64)"), "{text}");
}
