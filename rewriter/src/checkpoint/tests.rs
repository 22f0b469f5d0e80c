use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::*;

fn identity() -> Identity {
    Identity {
        study: json!({ "study": { "name": "desk", "seed": 0 } }),
        model: json!({ "hidden_size": 8 }),
        weights: "ab12".into(),
        settings: json!({ "learning_rate": 1e-4 }),
    }
}

fn progress(step: u64, merit: Option<f64>) -> Progress {
    Progress {
        step,
        random: RandomState {
            seed: 7,
            counters: BTreeMap::from([("shuffle".into(), step)]),
        },
        merit,
        state: json!({ "patience": 2, "loss": 0.1 + 0.2 }),
    }
}

fn contents(step: u64) -> Contents<'static> {
    let text = move |path: &Path| fs::write(path, step.to_string()).map_err(FileError::io(path));
    Contents::new()
        .with("optimizer.safetensors", text)
        .with("adapter", move |folder: &Path| {
            fs::create_dir(folder).map_err(FileError::io(folder))?;
            text(&folder.join("adapter_config.json"))
        })
}

fn keep(last: usize, best: bool) -> Retention {
    Retention {
        last: NonZeroUsize::new(last).expect("at least one"),
        best,
    }
}

fn open(folder: &TempDir) -> Checkpoints {
    Checkpoints::open(folder.path(), identity(), keep(100, true)).expect("opens")
}

fn temporary() -> TempDir {
    TempDir::new().expect("a folder")
}

fn steps(folder: &TempDir) -> Vec<u64> {
    let checkpoints = list(folder.path()).expect("lists");
    checkpoints.iter().map(Checkpoint::step).collect()
}

fn names(folder: &TempDir) -> Vec<String> {
    let mut names: Vec<String> = folders_in(folder.path())
        .expect("reads")
        .iter()
        .map(|path| name_of(path).to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn what_was_saved_comes_back() {
    let folder = temporary();
    let checkpoints = open(&folder);
    assert_eq!(checkpoints.latest().expect("reads"), None);
    let saved = checkpoints
        .save(progress(3, Some(-0.5)), contents(3))
        .expect("saves");
    let latest = checkpoints.latest().expect("reads").expect("there is one");
    assert_eq!(latest, saved);
    assert_eq!(latest.progress(), &progress(3, Some(-0.5)));
    assert_eq!(latest.identity(), &identity());
    let read = |path: PathBuf| fs::read_to_string(path).expect("reads");
    assert_eq!(read(latest.path("optimizer.safetensors").expect("is there")), "3");
    let adapter = latest.path("adapter").expect("is there");
    assert_eq!(read(adapter.join("adapter_config.json")), "3");
    let missing = latest.path("adap").expect_err("is not there").to_string();
    assert!(missing.contains("`adap`"), "{missing}");
}

#[test]
fn the_last_and_the_best_are_kept() {
    let folder = temporary();
    let checkpoints = Checkpoints::open(folder.path(), identity(), keep(2, true)).expect("opens");
    for (step, merit) in [(10, 0.1), (20, 0.9), (30, 0.9), (40, 0.2), (50, 0.3)] {
        checkpoints
            .save(progress(step, Some(merit)), contents(step))
            .expect("saves");
    }
    assert_eq!(
        names(&folder),
        ["step-00000020", "step-00000040", "step-00000050"]
    );
    let best = checkpoints.best().expect("reads").expect("there is one");
    assert_eq!(best.step(), 20);
}

#[test]
fn another_training_is_refused_with_each_difference() {
    let folder = temporary();
    open(&folder).save(progress(1, None), contents(1)).expect("saves");
    let mut other = identity();
    other.study["study"]["seed"] = json!(1);
    other.weights = "cd34".into();
    other.settings["rank"] = json!(8);
    let why = Checkpoints::open(folder.path(), other, keep(1, true)).expect_err("must be refused");
    let CheckpointError::OtherTraining { differences, .. } = why else {
        panic!("{why}");
    };
    assert_eq!(
        differences,
        [
            "study.study.seed: 0 → 1",
            "weights: \"ab12\" → \"cd34\"",
            "settings.rank: (absent) → 8"
        ]
    );
    assert_eq!(steps(&folder), [1]);
}

#[test]
fn leftovers_are_passed_over_and_removed_by_the_next_training() {
    let folder = temporary();
    open(&folder).save(progress(1, None), contents(1)).expect("saves");
    for name in [".capo-tmp-step-00000002", ".capo-tmp-old-step-00000000"] {
        let left = folder.path().join(name);
        fs::create_dir(&left).expect("made");
        fs::write(left.join("optimizer.safetensors"), "hal").expect("written");
    }
    assert_eq!(steps(&folder), [1]);
    let checkpoints = open(&folder);
    assert_eq!(names(&folder), ["step-00000001"]);
    checkpoints.save(progress(2, None), contents(2)).expect("saves");
    assert_eq!(steps(&folder), [1, 2]);
}

#[test]
fn foreign_folders_and_damaged_checkpoints_are_errors() {
    let refused = |spoil: &dyn Fn(&Path), part: &str| {
        let folder = temporary();
        open(&folder).save(progress(1, None), contents(1)).expect("saves");
        spoil(folder.path());
        let why = list(folder.path()).expect_err("must be refused").to_string();
        assert!(why.contains(part), "{why}");
        assert!(why.lines().count() <= 3, "{why}");
        Checkpoints::open(folder.path(), identity(), keep(1, true)).expect_err("must be refused");
    };
    let make = |name: &'static str| move |folder: &Path| fs::create_dir(folder.join(name)).expect("made");
    refused(&make("photos"), "photos is no checkpoint");
    refused(&make("step-2"), "step-2 is no checkpoint");
    refused(&make("step-00000002"), "checkpoint.json");
    let change = |file: &'static str, text: &'static str| {
        move |folder: &Path| fs::write(folder.join("step-00000001").join(file), text).expect("written")
    };
    refused(&change("optimizer.safetensors", "12"), "has 2 bytes instead of 1");
    refused(&change("checkpoint.json", "{\"format\": 1"), "checkpoint.json");
    refused(&change("checkpoint.json", "{\"format\": 2}"), "newer Capo");
    refused(
        &|folder: &Path| {
            fs::remove_file(folder.join("step-00000001/adapter/adapter_config.json")).expect("removed");
        },
        "adapter/adapter_config.json",
    );
    refused(
        &|folder: &Path| {
            let from = folder.join("step-00000001");
            fs::rename(from, folder.join("step-00000005")).expect("renamed");
        },
        "step 1",
    );
}

#[test]
fn files_beside_the_checkpoints_do_not_matter() {
    let folder = temporary();
    fs::write(folder.path().join("events.out"), "x").expect("written");
    open(&folder).save(progress(1, None), contents(1)).expect("saves");
    assert_eq!(steps(&folder), [1]);
}

#[test]
fn a_save_that_fails_leaves_what_was_there() {
    let folder = temporary();
    let checkpoints = open(&folder);
    checkpoints.save(progress(1, None), contents(1)).expect("saves");
    let full = |path: &Path| Err(FileError::io(path)(ErrorKind::StorageFull.into()));
    let nothing = |_: &Path| Ok(());
    let names_taken = [
        contents(2).with("last", full),
        contents(2).with("last", nothing),
        contents(2).with("adapter", nothing),
        contents(2).with("checkpoint.json", nothing),
        contents(2).with("../outside", nothing),
        contents(2).with("", nothing),
    ];
    for contents in names_taken {
        checkpoints
            .save(progress(2, None), contents)
            .expect_err("must fail");
        assert_eq!(names(&folder), ["step-00000001"]);
    }
    let nan = checkpoints.save(progress(2, Some(f64::NAN)), contents(2));
    assert!(matches!(nan, Err(CheckpointError::Content(_))), "{nan:?}");
    let again = checkpoints.save(progress(1, None), contents(1));
    assert!(matches!(again, Err(CheckpointError::Exists(_))), "{again:?}");
    checkpoints.save(progress(2, None), contents(2)).expect("saves");
    assert_eq!(steps(&folder), [1, 2]);
}

#[test]
fn a_second_training_waits_its_turn() {
    let folder = temporary();
    let first = open(&folder);
    let second = Checkpoints::open(folder.path(), identity(), keep(1, true));
    assert!(matches!(second, Err(CheckpointError::Locked(_))), "{second:?}");
    drop(first);
    open(&folder);
}

#[test]
fn an_identity_hashes_all_weights() {
    let folder = temporary();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
    write("config.json", "{\"hidden_size\": 8}");
    write("model.safetensors", "abc");
    let of_model = || Identity::of_model(folder.path(), json!("s"), json!(1)).expect("reads");
    let single = of_model();
    assert_eq!(
        single.weights,
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    write("1.safetensors", "ab");
    write("2.safetensors", "c");
    write(
        "model.safetensors.index.json",
        "{\"weight_map\": {\"x\": \"2.safetensors\", \"y\": \"1.safetensors\"}}",
    );
    assert_eq!(of_model(), single);
    write("2.safetensors", "d");
    assert_ne!(of_model(), single);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn retention_keeps_what_it_says(
        merits in prop::collection::vec(prop::option::of(0i8..4), 1..8), last in 1usize..4, keep_best: bool,
    ) {
        let folder = temporary();
        let checkpoints = Checkpoints::open(folder.path(), identity(), keep(last, keep_best)).expect("opens");
        for (step, merit) in (0..).zip(&merits) {
            checkpoints.save(progress(step, merit.map(f64::from)), contents(step)).expect("saves");
        }
        let highest = merits.iter().flatten().max();
        let best = merits.iter().position(|merit| merit.is_some() && merit.as_ref() == highest);
        let expected: Vec<u64> = (0..merits.len())
            .filter(|step| step + last >= merits.len() || (keep_best && Some(*step) == best))
            .map(|step| step as u64)
            .collect();
        prop_assert_eq!(steps(&folder), expected);
    }
}

#[test]
fn a_training_that_keeps_something_holds_its_folder_before_its_first_checkpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let identity = |seed: u64| Identity {
        study: json!("desk"),
        model: json!({}),
        weights: "0".into(),
        settings: json!({ "seed": seed }),
    };
    let open = |seed| Checkpoints::open(folder.path(), identity(seed), Retention::default());
    drop(open(1).expect("opens"));
    let other = open(2).expect("nothing was kept");
    other.hold().expect("writes");
    drop(other);
    let refused = open(1).expect_err("is another").to_string();
    assert!(
        refused.contains("settings.seed: 2 → 1") && refused.lines().count() == 1,
        "{refused}"
    );
    open(2).expect("opens");
}
