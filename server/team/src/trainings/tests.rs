//! Trainings whose process is a shell, on both databases.

use capo_api::{TrainingStart, TrainingState};
use tokio_util::sync::CancellationToken;

use super::work::train;
use super::*;
use crate::files::Files;
use crate::fixture::{self, DAY};
use crate::http::{Server, Settings};
use crate::store::tests::on_each;
use crate::store::{
    Actor, AddedRun, AddedTraining, KeptCheckpoint, Member, Millis, Project, Store, Training,
};

/// Trains by a script of a shell, which is in the training's folder.
pub(crate) struct Shell(pub(crate) &'static str);

impl Trainer for Shell {
    fn check(&self, _: TrainingKind, study: &str, _: &str) -> Result<(), String> {
        if study.is_empty() {
            Err("the study is empty".into())
        } else {
            Ok(())
        }
    }

    fn model(&self, begin: &Begin, journals: &[PathBuf], into: &Path) -> Option<Command> {
        if matches!(begin, Begin::Model(_)) {
            return None;
        }
        let mut command = Command::new("sh");
        command
            .args(["-c", "mkdir \"$0\" && cp \"$1\" \"$0\""])
            .arg(into)
            .args(journals);
        Some(command)
    }

    fn command(&self, job: &Job) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", self.0]).current_dir(&job.folder);
        command
    }

    fn rewind(&self, _: &Path) -> Result<(), String> {
        Ok(())
    }

    fn checkpoints(&self, folder: &Path) -> Result<Vec<CheckpointShown>, String> {
        let there = self.policy(folder, 2).map(|_| CheckpointShown {
            step: 2,
            loss: Some(0.5),
            reward: None,
            counts: true,
            is_adapter: false,
            bytes: 3,
        });
        Ok(there.into_iter().collect())
    }

    fn policy(&self, folder: &Path, step: u64) -> Result<PathBuf, String> {
        let policy = folder.join("checkpoints/2/policy");
        if step == 2 && policy.is_dir() {
            Ok(policy)
        } else {
            Err("there is none".into())
        }
    }

    fn rewriter(&self, _: &Path, _: &ModelSpec, _: Stopped) -> Result<Rc<dyn Llm>, LocalError> {
        Err(LocalError::Device("a shell rewrites nothing".into()))
    }
}

/// A process's settings over a folder.
pub(crate) fn by_shell(script: &'static str, folder: &Path) -> Trainings {
    Trainings {
        trainer: Arc::new(Shell(script)),
        folder: folder.to_owned(),
        models: Some(folder.join("models")),
        at_once: 1,
        lease: Duration::from_secs(30),
    }
}

fn now() -> Millis {
    jiff::Timestamp::now().as_millisecond()
}

fn by() -> Actor {
    fixture::by("ada", now())
}

/// A server with a project, and a run in it.
struct Place {
    server: Server,
    store: Store,
    project: Project,
    member: Member,
    run: String,
    folder: tempfile::TempDir,
    /// Where checkpoints are kept.
    files: tempfile::TempDir,
}

/// A server with a folder for trainings of its own.
fn machine(store: &Store, script: &'static str, files: &Path) -> (Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        trainings: Some(by_shell(script, folder.path())),
        files: Some(Files::in_folder(files).unwrap()),
        ..Settings::default()
    };
    (Server::new(store.clone(), now, settings).unwrap(), folder)
}

impl Place {
    async fn new(store: Store, script: &'static str) -> Self {
        let member = store.set_up(&by(), "ada", "kept").await.unwrap();
        let project = store.add_project(&by(), &member, "alpha", "Alpha").await.unwrap();
        let added = AddedRun {
            stage: Some(capo_api::RunStage::Ended),
            lines: vec!["a line".into()],
            ..AddedRun::default()
        };
        let run = store.add_run(&by(), &project, &member, added).await.unwrap().id;
        let files = tempfile::tempdir().unwrap();
        let (server, folder) = machine(&store, script, files.path());
        Self {
            server,
            store,
            project,
            member,
            run,
            folder,
            files,
        }
    }

    fn work(&self) -> (CancellationToken, tokio::task::JoinHandle<std::io::Result<()>>) {
        let (ending, server) = (CancellationToken::new(), self.server.clone());
        let told = ending.clone();
        let task = tokio::spawn(async move { train(server, told.cancelled_owned()).await });
        (ending, task)
    }

    async fn add(&self, start: TrainingStart) -> Training {
        let new = AddedTraining {
            name: "nightly".into(),
            kind: TrainingKind::Sft,
            study: "[study]".into(),
            files: std::collections::BTreeMap::new(),
            settings: "[sft]".into(),
            start,
            runs: vec![self.run.clone()],
            full: true,
            run: None,
        };
        self.store
            .add_training(&by(), &self.project, &self.member, new)
            .await
            .unwrap()
    }

    async fn once(&self, training: &Training, is_there: impl Fn(&Training) -> bool) -> Training {
        for _ in 0..600 {
            let now = self.store.training(&training.id).await.unwrap();
            if is_there(&now) {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!(
            "half a minute later: {:?}",
            self.store.training(&training.id).await.unwrap()
        );
    }

    /// What is kept of a training, once that is a checkpoint at least.
    async fn kept(&self, training: &Training) -> Vec<KeptCheckpoint> {
        let kept = async || self.store.checkpoints(&training.id).await.unwrap();
        until(async || !kept().await.is_empty()).await;
        kept().await
    }

    async fn lines(&self, training: &Training) -> Vec<String> {
        let lines = self.store.training_lines(&training.id, 0).await.unwrap();
        lines.into_iter().map(|(_, line)| line).collect()
    }
}

async fn until(holds: impl AsyncFn() -> bool) {
    for _ in 0..600 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("half a minute later it does not hold");
}

fn fresh() -> TrainingStart {
    TrainingStart::Fresh {
        vocabulary: None,
        hidden: None,
        layers: None,
        context: None,
    }
}

#[test]
fn a_process_is_told_to_end_and_goes_on() {
    on_each(|store| async move {
        let place = Place::new(
            store,
            "echo step >> training.jsonl; cat; echo kept >> training.jsonl; exit 3",
        )
        .await;
        let training = place.add(fresh()).await;
        let (ending, task) = place.work();
        place.once(&training, |now| now.lines == 1).await;
        let input = place.folder.path().join(&training.id).join("input");
        let journal = std::fs::read_to_string(input.join("model").join(format!("{}.jsonl", place.run)));
        assert_eq!(journal.unwrap(), "a line\n");
        assert_eq!(
            std::fs::read_to_string(input.join("study/study.toml")).unwrap(),
            "[study]"
        );
        place.store.stop_training(&by(), &training).await.unwrap();
        let stopped = place
            .once(&training, |now| now.state == TrainingState::Stopped)
            .await;
        assert_eq!((stopped.error, place.lines(&training).await.len()), (None, 2));
        // What it learns from is there already, whatever became of the run.
        let run = place.store.run(&place.run).await.unwrap();
        place.store.delete_run(&by(), &run).await.unwrap();
        place
            .store
            .resume_training(&by(), &training, &place.member)
            .await
            .unwrap();
        place.once(&training, |now| now.lines == 3).await;
        // A server that ends leaves it to the next start.
        ending.cancel();
        task.await.unwrap().unwrap();
        let left = place.store.training(&training.id).await.unwrap();
        assert_eq!((left.state, left.lines), (TrainingState::Queued, 4));
        assert_eq!(place.lines(&training).await, ["step", "kept", "step", "kept"]);
    });
}

#[test]
fn a_process_that_breaks_down_is_begun_again_and_one_that_fails_says_why() {
    on_each(|store| async move {
        // Killed the first time.
        let script =
            "test -e once || { touch once; kill -9 $$; }; echo 'error: no pairs in ./here' >&2; exit 1";
        let place = Place::new(store, script).await;
        let training = place.add(fresh()).await;
        let (ending, task) = place.work();
        let failed = place
            .once(&training, |now| now.state == TrainingState::Failed)
            .await;
        assert_eq!(failed.error.as_deref(), Some("no pairs in ./here"));
        assert!(place.folder.path().join(&training.id).join("once").exists());
        let elsewhere = place
            .add(TrainingStart::Model {
                name: "../nano".into(),
            })
            .await;
        let failed = place
            .once(&elsewhere, |now| now.state == TrainingState::Failed)
            .await;
        assert!(failed.error.unwrap().contains("no model `../nano`"));
        ending.cancel();
        task.await.unwrap().unwrap();
    });
}

#[test]
fn a_process_that_outlives_its_server_is_waited_for() {
    on_each(|store| async move {
        let place = Place::new(store, "exit 0").await;
        let training = place.add(fresh()).await;
        let folder = place.folder.path().join(&training.id);
        std::fs::create_dir(&folder).unwrap();
        let held = std::fs::File::create(folder.join(LOCK)).unwrap();
        held.lock().unwrap();
        let (ending, task) = place.work();
        place
            .once(&training, |now| now.state == TrainingState::Running)
            .await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(
            place.store.training(&training.id).await.unwrap().state,
            TrainingState::Running
        );
        drop(held);
        place
            .once(&training, |now| now.state == TrainingState::Done)
            .await;
        ending.cancel();
        task.await.unwrap().unwrap();
    });
}

/// Writes a checkpoint, and learns until it is told to end.
const LEARNS: &str = "mkdir -p checkpoints new/policy; echo learned > new/policy/weights; echo step >> training.jsonl; \
                      mv new checkpoints/2; cat; echo told >> training.jsonl; exit 3";

#[test]
fn a_checkpoint_is_another_machines_too_and_the_training_is_not() {
    on_each(|store| async move {
        let mut place = Place::new(store, LEARNS).await;
        let training = place.add(fresh()).await;
        let (ending, task) = place.work();
        let kept = place.kept(&training).await;
        ending.cancel();
        task.await.unwrap().unwrap();

        let object = place.files.path().join(&kept[0].object);
        let whole = std::fs::read(&object).unwrap();
        let at = whole.windows(7).position(|bytes| bytes == b"learned").unwrap();
        let mut damaged = whole.clone();
        damaged[at] = b'L';
        std::fs::write(&object, damaged).unwrap();
        let (server, folder) = machine(&place.store, LEARNS, place.files.path());
        let policies = server.policies().unwrap();
        let refused = policies.policy(&training.id, None).await.unwrap_err();
        assert!(refused.contains("does not hand this one out"), "{refused}");
        let brought = folder.path().join("rewriters");
        assert_eq!(brought.read_dir().unwrap().count(), 0, "nothing is left of it");
        std::fs::write(&object, whole).unwrap();
        let (one, two) = tokio::join!(
            policies.policy(&training.id, None),
            policies.policy(&training.id, Some(2))
        );
        let policy = one.unwrap();
        assert_eq!(two.unwrap(), policy);
        assert!(policy.starts_with(brought.join(&kept[0].sha256)));
        let weights = std::fs::read_to_string(policy.join("weights"));
        assert_eq!(weights.unwrap(), "learned\n");
        // What was brought stays as it is, wherever it came from.
        std::fs::remove_file(&object).unwrap();
        assert_eq!(policies.policy(&training.id, None).await.unwrap(), policy);

        place.server = server;
        let (ending, task) = place.work();
        let failed = place
            .once(&training, |now| now.state == TrainingState::Failed)
            .await;
        assert!(failed.error.unwrap().contains("is not on this machine"));
        assert_eq!(place.lines(&training).await, ["step", "told"]);
        assert_eq!(place.kept(&training).await, kept);
        ending.cancel();
        task.await.unwrap().unwrap();
    });
}

/// Writes a checkpoint, and loses it once it is told to end.
const LOSES: &str = "mkdir -p checkpoints new/policy; echo learned > new/policy/weights; echo step >> training.jsonl; \
                     mv new checkpoints/2; cat; rm -r checkpoints; echo told >> training.jsonl; exit 3";

#[test]
fn what_is_kept_stays_where_the_folder_of_checkpoints_is_gone() {
    on_each(|store| async move {
        let place = Place::new(store, LOSES).await;
        let training = place.add(fresh()).await;
        let (ending, task) = place.work();
        let kept = place.kept(&training).await;
        place.store.stop_training(&by(), &training).await.unwrap();
        place
            .once(&training, |now| now.state == TrainingState::Stopped)
            .await;
        // It would begin anew, and its log be cut to nothing.
        place
            .store
            .resume_training(&by(), &training, &place.member)
            .await
            .unwrap();
        let failed = place
            .once(&training, |now| now.state == TrainingState::Failed)
            .await;
        let error = failed.error.unwrap();
        assert!(
            error.contains("a checkpoint of step 2, and its folder has none"),
            "{error}"
        );
        assert_eq!(place.lines(&training).await, ["step", "told"]);
        assert_eq!(place.store.checkpoints(&training.id).await.unwrap(), kept);
        ending.cancel();
        task.await.unwrap().unwrap();
    });
}

impl Place {
    /// Takes the place of checkpoints away, until the folder that is returned is put back.
    fn take_away(&self) -> PathBuf {
        let away = self.folder.path().join("away");
        std::fs::rename(self.files.path(), &away).unwrap();
        std::fs::write(self.files.path(), "").unwrap();
        away
    }
}

#[test]
fn a_training_goes_on_while_the_place_of_its_checkpoints_is_away() {
    on_each(|store| async move {
        let place = Place::new(store, LEARNS).await;
        let training = place.add(fresh()).await;
        let away = place.take_away();
        let (ending, task) = place.work();
        let begun = async || place.store.leftovers(now() + 2 * DAY).await.unwrap();
        until(async || !begun().await.is_empty()).await;
        place.once(&training, |now| now.lines == 1).await;
        assert!(place.store.checkpoints(&training.id).await.unwrap().is_empty());
        let begun = begun().await;
        std::fs::remove_file(place.files.path()).unwrap();
        std::fs::rename(&away, place.files.path()).unwrap();
        let kept = place.kept(&training).await;
        assert_eq!(
            [kept[0].object.clone()].as_slice(),
            begun,
            "the same is tried again"
        );
        place.store.stop_training(&by(), &training).await.unwrap();
        let stopped = place
            .once(&training, |now| now.state == TrainingState::Stopped)
            .await;
        assert_eq!((stopped.error, stopped.lines), (None, 2));
        ending.cancel();
        task.await.unwrap().unwrap();
    });
}

#[test]
fn an_outcome_is_told_beside_what_could_not_be_kept() {
    let script =
        "mkdir -p checkpoints/2/policy; echo step >> training.jsonl; echo 'error: no memory' >&2; exit 1";
    on_each(move |store| async move {
        let place = Place::new(store, script).await;
        let training = place.add(fresh()).await;
        let away = place.take_away();
        let (ending, task) = place.work();
        let failed = place
            .once(&training, |now| now.state == TrainingState::Failed)
            .await;
        let error = failed.error.unwrap();
        assert!(
            error.starts_with("no memory\n") && error.contains("could not be kept"),
            "{error}"
        );
        ending.cancel();
        task.await.unwrap().unwrap();
        std::fs::remove_file(place.files.path()).unwrap();
        std::fs::rename(&away, place.files.path()).unwrap();
    });
}

#[test]
fn models_are_named_among_those_that_are_there() {
    let folder = tempfile::tempdir().unwrap();
    for model in ["models/nano", "models/empty", "other"] {
        std::fs::create_dir_all(folder.path().join(model)).unwrap();
    }
    for model in ["models/nano", "other"] {
        std::fs::write(folder.path().join(model).join("config.json"), "{}").unwrap();
    }
    let trainings = by_shell("", folder.path());
    assert_eq!(trainings.models(), ["nano"]);
    assert!(trainings.model("nano").is_some());
    for name in ["../other", "empty", "", ".", "nano/"] {
        assert_eq!(trainings.model(name), None, "{name}");
    }
}
