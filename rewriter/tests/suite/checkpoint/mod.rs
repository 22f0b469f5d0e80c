//! A training killed at any moment: what was saved is there, whole.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use capo_rewriter::checkpoint::{
    Checkpoint, Checkpoints, Contents, Identity, Progress, RandomState, Retention, list,
};
use capo_rewriter::error::FileError;
use serde_json::json;
use tempfile::TempDir;

/// Names the folder to the process that is killed.
const FOLDER: &str = "CAPO_TEST_CHECKPOINTS";
/// Bytes of each file; enough that writing them takes a while.
const SIZE: usize = 200_000;

fn open(folder: &Path) -> Checkpoints {
    let identity = Identity {
        study: json!("study"),
        model: json!("model"),
        weights: "hash".into(),
        settings: json!({}),
    };
    Checkpoints::open(folder, identity, Retention::default()).expect("opens")
}

fn filled(step: u64) -> Vec<u8> {
    vec![step as u8; SIZE]
}

fn contents(step: u64) -> Contents<'static> {
    let write = move |path: &Path| {
        fs::write(path, filled(step)).map_err(|source| FileError::Io {
            path: path.to_owned(),
            source,
        })
    };
    Contents::new().with("weights", write).with("moments", write)
}

/// Goes on from the latest checkpoint until it is killed.
#[test]
#[ignore = "started by the test below, which kills it"]
fn training() {
    let Some(folder) = env::var_os(FOLDER) else { return };
    let checkpoints = open(Path::new(&folder));
    let latest = checkpoints.latest().expect("reads");
    let done = latest.map_or(0, |checkpoint| checkpoint.step());
    for step in done + 1.. {
        let progress = Progress {
            step,
            random: RandomState::default(),
            merit: Some(-(step as f64)),
            state: json!(null),
        };
        checkpoints.save(progress, contents(step)).expect("saves");
    }
}

fn start(folder: &Path) -> Child {
    Command::new(env::current_exe().expect("this test"))
        .args(["checkpoint::training", "--exact", "--ignored"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("starts")
}

/// Read while it is written.
fn latest(folder: &Path) -> u64 {
    let checkpoints = list(folder).expect("reads");
    checkpoints.last().map_or(0, Checkpoint::step)
}

#[test]
fn a_killed_training_leaves_whole_checkpoints() {
    let folder = TempDir::new().expect("a folder");
    let mut reached = 0;
    for delay in [40, 75, 110, 55, 90, 125, 60, 85] {
        let mut child = start(folder.path());
        while latest(folder.path()) <= reached {
            sleep(Duration::from_millis(5));
        }
        sleep(Duration::from_millis(delay));
        child.kill().expect("kills");
        child.wait().expect("is gone");

        let checkpoints = list(folder.path()).expect("reads");
        for checkpoint in &checkpoints {
            for name in ["weights", "moments"] {
                let path = checkpoint.path(name).expect("is there");
                assert_eq!(fs::read(path).expect("reads"), filled(checkpoint.step()));
            }
        }
        reached = checkpoints.last().map_or(0, Checkpoint::step);
        // The best is the first; two more are kept, and one more that was not yet removed.
        assert!((1..=4).contains(&checkpoints.len()), "{}", checkpoints.len());
        assert_eq!(checkpoints[0].step(), 1);
    }
    assert!(reached >= 8, "only {reached} steps");
    drop(open(folder.path()));
    let leftovers = fs::read_dir(folder.path()).expect("reads").filter(|entry| {
        let name = entry.as_ref().expect("reads").file_name();
        name.to_string_lossy().starts_with(".capo-tmp-")
    });
    assert_eq!(leftovers.count(), 0);
}
