//! Rewrites and updates that are ended before their time, and a run that goes on after them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use capo_core::journal::Status;
use capo_rewriter::stop::Stop;
use tempfile::TempDir;

use super::{Way, learned, run_of, same_within, whole};

const ROUNDS: u32 = 2;

/// An end that is asked for after so many passes, and the passes that were made.
fn after(passes: usize) -> (Stop, Arc<AtomicUsize>) {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&made);
    let stop = Stop::new(move || counted.fetch_add(1, Ordering::Relaxed) >= passes);
    (stop, made)
}

fn lines_of(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The policy after so many rounds as it lies on the disk.
fn weights(folder: &Path, rounds: u32) -> Vec<u8> {
    let file = format!("checkpoints/step-{rounds:08}/policy/model.safetensors");
    std::fs::read(folder.join(file)).expect("a checkpoint")
}

#[test]
fn a_run_that_is_stopped_at_any_pass_leaves_nothing_by_halves_and_goes_on_as_if_it_had_not_been() {
    let unbroken = TempDir::new().expect("a folder");
    let (stop, made) = after(usize::MAX);
    let way = Way {
        stop: Some(&stop),
        ..Way::default()
    };
    let (finished, lines) = run_of(&whole(), way, ROUNDS, Vec::new(), unbroken.path());
    let best = finished.expect("runs").best;
    let (mut rewrites_stopped, mut updates_stopped) = (0, 0);
    for passes in 0..made.load(Ordering::Relaxed) {
        let folder = TempDir::new().expect("a folder");
        let (stop, _) = after(passes);
        let way = Way {
            stop: Some(&stop),
            ..Way::default()
        };
        let (stopped, before) = run_of(&whole(), way, ROUNDS, Vec::new(), folder.path());
        let stopped = stopped.expect("ends");
        assert_eq!(stopped.status, Status::Stopped, "{passes}: {:?}", stopped.reason);
        assert_eq!(stopped.reason.as_deref(), Some("interrupted"), "{passes}");

        let count = |event: &str| {
            let begins = format!("{{\"event\":\"{event}\"");
            before.iter().filter(|line| line.starts_with(&begins)).count()
        };
        let taught = learned(&before).len();
        let kept = lines_of(&folder.path().join("samples.jsonl")).len();
        if count("round") == taught {
            rewrites_stopped += 1;
            assert_eq!(kept, 0, "{passes}: rewrites that nobody got");
        } else {
            updates_stopped += 1;
            assert!(kept > 0, "{passes}: what is to be learned from is still there");
        }
        let checkpoints = std::fs::read_dir(folder.path().join("checkpoints")).expect("a folder");
        let steps = checkpoints.filter(|entry| {
            let name = entry.as_ref().expect("an entry").file_name();
            name.to_string_lossy().starts_with("step-")
        });
        assert_eq!(
            steps.count(),
            taught.min(1),
            "{passes}: the last one alone is kept"
        );

        let (resumed, after) = run_of(&whole(), Way::default(), ROUNDS, before, folder.path());
        let resumed = resumed.expect("runs");
        assert_eq!((&resumed.reason, resumed.best), (&None, best), "{passes}");
        same_within(0.0, &learned(&lines), &learned(&after));
        assert!(
            weights(unbroken.path(), ROUNDS) == weights(folder.path(), ROUNDS),
            "{passes}: another policy"
        );
    }
    assert!(
        rewrites_stopped > 4 && updates_stopped > 2,
        "{rewrites_stopped} {updates_stopped}"
    );
}
