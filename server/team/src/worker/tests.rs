//! Runs carried out by workers, on both databases.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

use capo_api::{RunStage, RunWish};
use capo_core::journal::{Event, Journal, MemoryJournal, Status, SteerEvent, parse_line};
use capo_core::verify;
use capo_hosted::{Prepared, SharedKeys};
use futures::executor::block_on;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::fixture::{self, STUDY};
use crate::http::Settings;
use crate::seal::MasterKey;
use crate::store::tests::on_each;
use crate::store::{Actor, AddedRun, AddedVersion, Member, Millis, Project, Store};
use capo_workloads::files::MemoryFiles;

/// As long as a worker has a run here.
const LEASE: Millis = 30_000;

/// The same with models that take their time.
fn slow() -> String {
    STUDY.replace("model = \"sim-medium\"", "model = \"sim-medium\"\nlatency = 0.05")
}

fn now() -> Millis {
    jiff::Timestamp::now().as_millisecond()
}

fn by(name: &str) -> Actor {
    fixture::by(name, now())
}

/// A server with a project, and a worker that is told to end.
struct Place {
    server: Server,
    store: Store,
    project: Project,
    member: Member,
    master: MasterKey,
    folder: tempfile::TempDir,
}

/// What a machine's server has, with data files in a folder that all share.
fn settings(master: &MasterKey, folder: &std::path::Path) -> Settings {
    Settings {
        master: Some(master.clone()),
        files: Some(crate::Files::in_folder(folder).unwrap()),
        ..Settings::default()
    }
}

struct Worker {
    ending: CancellationToken,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Worker {
    fn on(server: Server) -> Self {
        let ending = CancellationToken::new();
        let told = ending.clone();
        let task =
            tokio::spawn(
                async move { work(server, WorkerSettings::default(), told.cancelled_owned()).await },
            );
        Self { ending, task }
    }

    async fn end(self) {
        self.ending.cancel();
        self.task.await.unwrap().unwrap();
    }
}

impl Place {
    async fn new(store: Store) -> Self {
        Self::with_clock(store, now).await
    }

    async fn with_clock(store: Store, clock: impl Fn() -> Millis + Send + Sync + 'static) -> Self {
        let member = store.set_up(&by("ada"), "ada", "kept").await.unwrap();
        let project = store
            .add_project(&by("ada"), &member, "alpha", "Alpha")
            .await
            .unwrap();
        let master = MasterKey::new();
        assert!(store.is_master(&master).await.unwrap());
        let folder = tempfile::tempdir().unwrap();
        Self {
            server: Server::new(store.clone(), clock, settings(&master, folder.path())).unwrap(),
            store,
            project,
            member,
            master,
            folder,
        }
    }

    fn worker(&self) -> Worker {
        Worker::on(self.server.clone())
    }

    /// A worker on another machine, which has a clock of its own.
    fn worker_elsewhere(&self, clock: impl Fn() -> Millis + Send + Sync + 'static) -> Worker {
        let settings = settings(&self.master, self.folder.path());
        Worker::on(Server::new(self.store.clone(), clock, settings).unwrap())
    }

    /// Shares the key of a provider with the project.
    async fn share_key(&self, base_url: &str) {
        let record = json!({
            "id": "team", "provider": "openai-compatible", "base_url": base_url, "private_host": true,
            "projects": [self.project.id],
            "models": [{ "name": "gpt-*", "price": { "input": 1.0, "output": 1.0 } }],
        });
        let key = serde_json::from_value(record).unwrap();
        self.store
            .add_key(&by("ada"), &key, "sk-the-key", &self.master)
            .await
            .unwrap();
    }

    async fn add(&self, study: &str) -> Run {
        let added = AddedRun {
            name: "small".into(),
            study: study.into(),
            method: "capo".into(),
            objective: "success".into(),
            ..AddedRun::default()
        };
        self.store
            .add_run(&by("ada"), &self.project, &self.member, added)
            .await
            .unwrap()
    }

    /// The run, once it is at a stage.
    async fn once(&self, run: &Run, is_there: impl Fn(&Run) -> bool) -> Run {
        for _ in 0..1200 {
            let now = self.store.run(&run.id).await.unwrap();
            if is_there(&now) {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("a minute later: {:?}", self.store.run(&run.id).await.unwrap());
    }

    async fn ended(&self, run: &Run) -> Run {
        self.once(run, |run| matches!(run.stage, RunStage::Ended | RunStage::Failed))
            .await
    }

    /// How often a run was claimed, once it has ended.
    async fn claims(&self, run: &Run) -> u64 {
        let mut lease = Lease {
            id: run.id.clone(),
            fence: 1,
        };
        while !self.store.was_appended(&lease, run.lines).await.unwrap() {
            lease.fence += 1;
            assert!(lease.fence < 100, "{run:?}");
        }
        lease.fence.unsigned_abs()
    }

    async fn lines(&self, run: &Run) -> Vec<String> {
        let lines = self.store.lines(&run.id, 0, usize::MAX).await.unwrap();
        assert!((0..).zip(&lines).all(|(number, (line, _))| number == *line));
        lines.into_iter().map(|(_, line)| line).collect()
    }
}

/// Each effect stands once in a journal that follows from itself.
fn check(lines: &[String]) {
    block_on(verify(lines)).unwrap();
    let mut paid = BTreeSet::new();
    for (number, line) in (1..).zip(lines) {
        if let Event::Rollout(rollout) = parse_line(line, number).unwrap() {
            let effect = serde_json::to_string(&rollout.effect()).unwrap();
            assert!(paid.insert(effect), "paid twice: {line}");
        }
    }
}

#[test]
fn a_run_is_carried_out_as_anywhere_else() {
    on_each(|store| async move {
        let place = Place::new(store).await;
        let run = place.add(STUDY).await;
        let worker = place.worker();
        let ended = place.ended(&run).await;
        worker.end().await;
        assert_eq!((ended.stage, &ended.error), (RunStage::Ended, &None));
        assert!(matches!(
            ended.status,
            Some(Status::Feasible | Status::Infeasible)
        ));
        let lines = place.lines(&run).await;
        assert_eq!(lines.len() as u64, ended.lines);
        check(&lines);
        let numbered = (0..).zip(&lines).map(Ok);
        let journal = Journal::open(Box::new(MemoryJournal::new()), numbered).unwrap();
        assert_eq!(ended.progress, Progress::of(journal.state()));
        assert!(ended.progress.rollouts > 0 && ended.times.last() > 0.0);
    });
}

#[test]
fn a_run_that_is_paused_goes_on_where_it_was() {
    on_each(|store| async move {
        let place = Place::new(store).await;
        let run = place.add(&slow()).await;
        let worker = place.worker();
        place.once(&run, |run| run.lines > 5).await;
        place.store.wish(&by("ada"), &run, RunWish::Pause).await.unwrap();
        let paused = place.once(&run, |run| run.stage == RunStage::Paused).await;
        assert_eq!((paused.status, paused.wish), (Some(Status::Stopped), None));
        let again = place.store.wish(&by("ada"), &paused, RunWish::Pause).await;
        assert!(matches!(again, Err(crate::store::StoreError::AtRest)));
        place
            .store
            .resume_run(&by("ada"), &paused, &place.member, None)
            .await
            .unwrap();
        let ended = place.ended(&run).await;
        worker.end().await;
        assert_eq!(ended.error, None);
        assert!(ended.status != Some(Status::Stopped) && ended.lines > paused.lines);
        check(&place.lines(&run).await);
    });
}

#[test]
fn a_server_that_ends_leaves_its_runs_to_the_next() {
    on_each(|store| async move {
        let place = Place::new(store).await;
        let run = place.add(&slow()).await;
        let worker = place.worker();
        place.once(&run, |run| run.lines > 5).await;
        worker.end().await;
        let left = place.store.run(&run.id).await.unwrap();
        assert_eq!(left.stage, RunStage::Queued);
        let worker = place.worker();
        let ended = place.ended(&run).await;
        worker.end().await;
        assert!(ended.status != Some(Status::Stopped), "{ended:?}");
        check(&place.lines(&run).await);
    });
}

#[test]
fn a_disk_that_is_full_for_a_while_costs_nothing() {
    on_each(|store| async move {
        if !store.set_full(false).await {
            return;
        }
        let place = Place::new(store.clone()).await;
        let run = place.add(&slow()).await;
        let worker = place.worker();
        place.once(&run, |run| run.lines > 5).await;
        store.set_full(true).await;
        let large = AddedVersion {
            text: "x".repeat(1 << 18),
            note: None,
            source: None,
            made: None,
        };
        let refused = store
            .add_prompt_version(&by("ada"), &place.project, "large", &large)
            .await;
        let refused = refused.unwrap_err();
        assert!(refused.is_full(), "{refused}");
        tokio::time::sleep(Duration::from_secs(3)).await;
        store.set_full(false).await;
        let ended = place.ended(&run).await;
        worker.end().await;
        assert_eq!(ended.error, None);
        let lines = place.lines(&run).await;
        check(&lines);
        assert_eq!(lines.len(), uninterrupted(&place, &slow()).await.len());
    });
}

#[test]
fn a_run_for_whose_lines_there_is_no_room_is_not_taken_up_again_until_there_is() {
    on_each(|store| async move {
        if !store.set_full(false).await {
            return;
        }
        let place = Place::new(store.clone()).await;
        place.add(STUDY).await;
        store.claim(now(), now() - 1, 8).await.unwrap().unwrap();
        // More often than a run is taken up without a line.
        for _ in 0..5 {
            // After a refusal it is another connection.
            store.set_full(true).await;
            let refused = store.claim(now(), now() + LEASE, 8).await.unwrap_err();
            assert!(refused.is_full(), "{refused}");
        }
        store.set_full(false).await;
        let (lease, run) = store.claim(now(), now() + LEASE, 8).await.unwrap().unwrap();
        assert_eq!((lease.fence, run.stage), (2, RunStage::Running));
        assert!(place.lines(&run).await.is_empty());
    });
}

/// The lines of a run that nothing befalls.
async fn uninterrupted(place: &Place, study: &str) -> Vec<String> {
    let run = place.add(study).await;
    let worker = place.worker();
    place.ended(&run).await;
    worker.end().await;
    place.lines(&run).await
}

/// The calls of a journal's longest conversation.
fn longest(lines: &[String]) -> u64 {
    let calls = (1..)
        .zip(lines)
        .filter_map(|(number, line)| match parse_line(line, number).unwrap() {
            Event::Rollout(rollout) => Some(rollout.usage.total().calls),
            _ => None,
        });
    calls.max().unwrap()
}

#[test]
fn clocks_that_jump_and_differ_cost_no_line_of_a_run_and_no_call_beyond_those_in_flight() {
    on_each(|store| async move {
        const HOUR: Millis = 3_600_000;
        /// Conversations of the run at a time.
        const CONCURRENCY: u64 = 2;
        let counted = Arc::new(AtomicUsize::new(0));
        let base_url = provider(Arc::clone(&counted), Duration::from_millis(50)).await;
        let study = STUDY.replace(
            "provider = \"simulated\"\nmodel = \"sim-medium\"",
            &format!(
                "provider = \"openai-compatible\"\nmodel = \"gpt-5\"\nbase_url = \"{base_url}\"\n\
                 concurrency = {CONCURRENCY}"
            ),
        );
        let ahead = Arc::new(AtomicI64::new(0));
        let jumping = Arc::clone(&ahead);
        let place = Place::with_clock(store, move || now() + jumping.load(Relaxed)).await;
        place.share_key(&base_url).await;
        let run = place.add(&study).await;
        let beyond = async |lines: u64| {
            place
                .once(&run, |run| run.lines > lines || run.stage == RunStage::Ended)
                .await
        };
        let worker = place.worker();
        beyond(2).await;
        ahead.store(HOUR / 2, Relaxed);
        beyond(5).await;
        let other = place.worker_elsewhere(|| now() + HOUR);
        for (lines, jump) in [(8, 2 * HOUR), (14, -HOUR)] {
            beyond(lines).await;
            ahead.store(jump, Relaxed);
        }
        let ended = place.ended(&run).await;
        other.end().await;
        worker.end().await;
        assert_eq!(ended.error, None);
        let lines = place.lines(&run).await;
        check(&lines);
        let asked = counted.load(Relaxed);
        let whole = uninterrupted(&place, &study).await;
        assert_eq!(lines.len(), whole.len());
        let paid_again = asked - (counted.load(Relaxed) - asked);
        // Once at first, and once more for each clock that came to be ahead of the one by which it was claimed.
        let claims = place.claims(&ended).await;
        assert!((2..=5).contains(&claims), "claimed {claims} times");
        // Whoever loses it had so many conversations under way, which are held anew.
        let most = (claims - 1) * CONCURRENCY * longest(&whole);
        assert!(
            paid_again as u64 <= most,
            "{paid_again} calls were paid again at {claims} claims, not {most}"
        );
    });
}

#[test]
fn who_lost_a_run_writes_nothing_more() {
    on_each(|store| async move {
        let place = Place::new(store.clone()).await;
        let run = place.add(STUDY).await;
        let text = |text: &str| vec![text.to_owned()];
        let (first, _) = store.claim(now(), now() + LEASE, 8).await.unwrap().unwrap();
        store.append(&first, 0, &text("a"), None, now()).await.unwrap();
        assert!(
            store.claim(now(), now() + LEASE, 8).await.unwrap().is_none(),
            "it is taken"
        );
        // Nothing was heard of it for so long.
        let later = now() + LEASE + 1;
        let (second, taken) = store.claim(later, later + LEASE, 8).await.unwrap().unwrap();
        assert_eq!((taken.id, taken.lines), (run.id.clone(), 1));
        let is_lost = |kept: Result<(), NotKept>| assert!(matches!(kept, Err(NotKept::Lost)), "{kept:?}");
        is_lost(store.append(&first, 1, &text("b"), None, now()).await);
        is_lost(store.replace_first_line(&first, "c").await);
        is_lost(store.renew(&first, later).await.map(|_| ()));
        let left = RunOutcome {
            stage: RunStage::Ended,
            status: None,
            error: None,
            tested: None,
        };
        is_lost(store.leave(&first, &left, now()).await);
        store.append(&second, 1, &text("d"), None, now()).await.unwrap();
        // The same lines once more, as after an answer that did not arrive.
        is_lost(store.append(&second, 1, &text("d"), None, now()).await);
        assert_eq!(place.lines(&run).await, ["a", "d"]);
    });
}

#[test]
fn lines_whose_commit_nobody_confirmed_are_tried_again_and_stand_once() {
    on_each(|store| async move {
        let place = Place::new(store.clone()).await;
        let run = place.add(STUDY).await;
        let (lease, _) = store.claim(now(), now() + LEASE, 8).await.unwrap().unwrap();
        let text = |text: &str| vec![text.to_owned(), text.to_owned()];
        let unconfirmed = || NotKept::from(sqlx::Error::PoolTimedOut);
        let (lines, tries) = (text("a"), AtomicUsize::new(0));
        let append = || async {
            store.append(&lease, 0, &lines, None, now()).await?;
            match tries.fetch_add(1, Relaxed) {
                0 => Err(unconfirmed()),
                _ => Ok(()),
            }
        };
        rows::append_once(&store, &lease, 2, append).await.unwrap();
        assert_eq!(place.lines(&run).await, lines);
        // Another worker has the run before they are tried again, and writes as many lines.
        let (lines, others, tries) = (text("b"), text("c"), AtomicUsize::new(0));
        let append = || async {
            if tries.fetch_add(1, Relaxed) > 0 {
                return store.append(&lease, 2, &lines, None, now()).await;
            }
            let later = now() + LEASE + 1;
            let (other, _) = store.claim(later, later + LEASE, 8).await?.unwrap();
            store.append(&other, 2, &others, None, now()).await?;
            Err(unconfirmed())
        };
        let refused = rows::append_once(&store, &lease, 4, append).await;
        assert!(matches!(refused, Err(NotKept::Lost)), "{refused:?}");
        assert_eq!(place.lines(&run).await, ["a", "a", "c", "c"]);
    });
}

#[test]
fn nobody_has_more_runs_at_a_time_than_they_may() {
    on_each(|store| async move {
        let place = Place::new(store.clone()).await;
        for _ in 0..3 {
            place.add(STUDY).await;
        }
        let claim = || store.claim(now(), now() + LEASE, 2);
        let (one, two) = (claim().await.unwrap().unwrap(), claim().await.unwrap().unwrap());
        assert_ne!(one.0.id, two.0.id);
        assert!(claim().await.unwrap().is_none());
        let left = RunOutcome {
            stage: RunStage::Ended,
            status: None,
            error: None,
            tested: None,
        };
        store.leave(&one.0, &left, now()).await.unwrap();
        assert!(claim().await.unwrap().is_some());
    });
}

#[test]
fn a_run_waits_for_its_time() {
    on_each(|store| async move {
        let place = Place::new(store.clone()).await;
        let added = AddedRun {
            study: STUDY.into(),
            start_at: Some(now() + 60_000),
            ..AddedRun::default()
        };
        place
            .store
            .add_run(&by("ada"), &place.project, &place.member, added)
            .await
            .unwrap();
        assert!(store.claim(now(), now() + LEASE, 8).await.unwrap().is_none());
        let then = now() + 61_000;
        assert!(store.claim(then, then + LEASE, 8).await.unwrap().is_some());
    });
}

#[test]
fn a_change_by_hand_is_taken_up_once() {
    on_each(|store| async move {
        let place = Place::new(store).await;
        let run = place.add(STUDY).await;
        let threshold = |value: f64| SteerEvent {
            thresholds: Some([("human_requests".to_owned(), value)].into()),
            ..SteerEvent::default()
        };
        let multiplier = SteerEvent {
            multipliers: Some([("human_requests".to_owned(), 2.0)].into()),
            ..SteerEvent::default()
        };
        let store = &place.store;
        store.steer(&by("ada"), &run, &threshold(0.1)).await.unwrap();
        store
            .withdraw_steers(&by("ada"), &run, &threshold(0.0))
            .await
            .unwrap();
        store.steer(&by("ada"), &run, &multiplier).await.unwrap();
        store.steer(&by("ada"), &run, &threshold(0.2)).await.unwrap();
        let worker = place.worker();
        place.ended(&run).await;
        worker.end().await;
        let lines = place.lines(&run).await;
        let steers: Vec<SteerEvent> = (1..)
            .zip(&lines)
            .filter_map(|(number, line)| match parse_line(line, number).unwrap() {
                Event::Steer(steer) => Some(steer),
                _ => None,
            })
            .collect();
        assert_eq!(steers.len(), 2, "{steers:?}");
        assert_eq!(steers[0].multipliers, multiplier.multipliers);
        assert_eq!(steers[1].thresholds, threshold(0.2).thresholds);
        assert_eq!(store.open_steers(&run.id).await.unwrap(), []);
        check(&lines);
    });
}

#[test]
fn changes_in_several_rounds_are_all_taken_up() {
    on_each(|store| async move {
        let place = Place::new(store).await;
        let run = place.add(&slow()).await;
        let worker = place.worker();
        let threshold = |value: f64| SteerEvent {
            round: 7,
            thresholds: Some([("human_requests".to_owned(), value)].into()),
            ..SteerEvent::default()
        };
        place.once(&run, |run| run.lines > 1).await;
        place
            .store
            .steer(&by("ada"), &run, &threshold(0.1))
            .await
            .unwrap();
        for _ in 0..600 {
            if place.store.open_steers(&run.id).await.unwrap().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        place
            .store
            .steer(&by("ada"), &run, &threshold(0.2))
            .await
            .unwrap();
        let ended = place.ended(&run).await;
        // What came too late for a round waits for the next session.
        if !place.store.open_steers(&run.id).await.unwrap().is_empty() {
            let larger = slow().replace("rollouts = 2000", "rollouts = 3000");
            place
                .store
                .resume_run(&by("ada"), &ended, &place.member, Some(&larger))
                .await
                .unwrap();
            place.once(&run, |run| run.stage != RunStage::Queued).await;
            place.ended(&run).await;
        }
        worker.end().await;
        let lines = place.lines(&run).await;
        let of_thresholds: Vec<f64> = (1..)
            .zip(&lines)
            .filter_map(|(number, line)| match parse_line(line, number).unwrap() {
                Event::Steer(steer) => Some(steer.thresholds?["human_requests"]),
                _ => None,
            })
            .collect();
        let open: Vec<f64> = place
            .store
            .open_steers(&run.id)
            .await
            .unwrap()
            .into_iter()
            .map(|(_, change)| change.thresholds.unwrap()["human_requests"])
            .collect();
        assert_eq!(
            [of_thresholds.as_slice(), &open].concat(),
            [0.1, 0.2],
            "none is lost, none is taken up twice"
        );
        assert!(of_thresholds.contains(&0.1));
        check(&lines);
    });
}

#[test]
fn a_run_that_ends_its_workers_is_left_alone() {
    on_each(|store| async move {
        let place = Place::new(store.clone()).await;
        let run = place.add(STUDY).await;
        let mut later = now();
        let mut claims = 0;
        while store.claim(later, later + LEASE, 8).await.unwrap().is_some() {
            later += LEASE + 1;
            claims += 1;
        }
        let failed = store.run(&run.id).await.unwrap();
        assert_eq!((claims, failed.stage), (4, RunStage::Failed));
        assert!(
            failed
                .error
                .is_some_and(|error| error.contains("the servers' logs"))
        );
        // One of which nothing is heard is stopped without its worker.
        let run = place.add(STUDY).await;
        store.claim(now(), now() - 1, 8).await.unwrap().unwrap();
        store.wish(&by("ada"), &run, RunWish::Stop).await.unwrap();
        assert_eq!(store.run(&run.id).await.unwrap().stage, RunStage::Ended);
    });
}

#[test]
fn what_is_told_at_the_last_moment_counts() {
    on_each(|store| async move {
        let place = Place::new(store.clone()).await;
        for (wish, stage) in [
            (RunWish::Pause, RunStage::Paused),
            (RunWish::Stop, RunStage::Ended),
        ] {
            let run = place.add(STUDY).await;
            let (lease, _) = store.claim(now(), now() + LEASE, 8).await.unwrap().unwrap();
            store.wish(&by("ada"), &run, wish).await.unwrap();
            let left = RunOutcome {
                stage: RunStage::Queued,
                status: Some(Status::Stopped),
                error: None,
                tested: None,
            };
            store.leave(&lease, &left, now()).await.unwrap();
            assert_eq!(store.run(&run.id).await.unwrap().stage, stage);
        }
    });
}

#[test]
fn what_the_server_does_not_run_is_told_with_why() {
    let keys = SharedKeys {
        keys: Vec::new(),
        origin: "http://127.0.0.1:1".into(),
        pass: "capo_run_x".into(),
    };
    let refused = |study: &str| {
        let prepared = Prepared::new(study, &MemoryFiles::new());
        match prepared.and_then(|prepared| prepared.check_models(&keys)) {
            Ok(()) => String::new(),
            Err(why) => why,
        }
    };
    let agent = |table: &str| STUDY.replace("provider = \"simulated\"\nmodel = \"sim-medium\"", table);
    assert_eq!(refused(STUDY), "");
    for (study, words) in [
        (
            agent("provider = \"openai\"\nmodel = \"gpt-5\""),
            "no shared key for provider `openai`",
        ),
        (
            agent("provider = \"openai\"\nmodel = \"gpt-5\"\nbase_url = \"http://169.254.169.254/v1\""),
            "no shared key",
        ),
        (
            format!("{STUDY}\n[models.rewriter]\nprovider = \"local\"\nmodel = \"/etc\""),
            "of models of its own",
        ),
        (
            STUDY.replace(
                "kind = \"desk\"\noptimize = 12\nevaluate = 6",
                "kind = \"external\"\ncommand = [\"sh\"]",
            ),
            "does not do",
        ),
        (
            STUDY.replace(
                "kind = \"desk\"\noptimize = 12\nevaluate = 6",
                "kind = \"table\"\nmetric = [{ type = \"command\", name = \"tone\", command = [\"sh\"] }]",
            ),
            "does not do",
        ),
        (
            STUDY.replace(
                "kind = \"desk\"\noptimize = 12\nevaluate = 6",
                "kind = \"table\"\nset = [{ metric = [{ type = \"http\", name = \"tone\" }] }]",
            ),
            "does not do",
        ),
        (STUDY.replace("kind = \"desk\"", "kind = \"table\""), "data"),
        (STUDY.replace("text = ", "file = "), "was not loaded"),
        (
            STUDY.replace("rounds = 2", "rounds = 2\nrepeats = 4000000000"),
            "study.repeats",
        ),
    ] {
        let why = refused(&study);
        assert!(why.contains(words), "{words}: {why}");
    }
}

/// A provider whose answer solves nothing and takes a while, and that counts who asks with which key.
async fn provider(counted: Arc<AtomicUsize>, latency: Duration) -> String {
    let answer = move |headers: axum::http::HeaderMap| {
        let counted = Arc::clone(&counted);
        async move {
            assert_eq!(headers["authorization"], "Bearer sk-the-key");
            counted.fetch_add(1, Relaxed);
            tokio::time::sleep(latency).await;
            axum::Json(json!({
                "id": "1", "object": "chat.completion", "created": 1, "model": "gpt-5",
                "choices": [{ "index": 0, "finish_reason": "stop",
                    "message": { "role": "assistant", "content": "You hand nobody over." } }],
                "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 }
            }))
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().fallback(axum::routing::any(answer));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    format!("http://{address}/v1")
}

#[test]
fn a_run_asks_with_its_projects_key_and_within_its_members_limits() {
    on_each(|store| async move {
        let counted = Arc::new(AtomicUsize::new(0));
        let base_url = provider(Arc::clone(&counted), Duration::ZERO).await;
        let place = Place::new(store.clone()).await;
        place.share_key(&base_url).await;
        let limits = capo_gateway::Limits {
            requests_per_day: Some(4),
            ..capo_gateway::Limits::default()
        };
        store
            .set_limits(
                &by("ada"),
                (capo_gateway::Scope::Member, &place.member.id),
                "ada",
                limits,
            )
            .await
            .unwrap();
        let rewriter = format!(
            "{STUDY}\n[models.rewriter]\nprovider = \"openai-compatible\"\nmodel = \"gpt-5\"\nbase_url = \"{base_url}\"\n\
             retries = 0\n"
        );
        let run = place.add(&rewriter).await;
        let worker = place.worker();
        let ended = place.ended(&run).await;
        worker.end().await;
        assert_eq!(
            counted.load(Relaxed),
            4,
            "as many as its member may ask a day: {ended:?}"
        );
        assert_eq!(ended.status, Some(Status::Failed));
        let lines = place.lines(&run).await.join("\n");
        assert!(
            !lines.contains("sk-the-key") && !lines.contains("capo_run_"),
            "{lines}"
        );
    });
}

#[test]
fn a_provider_that_is_not_there_is_told_of_until_the_run_ends() {
    on_each(|store| async move {
        let place = Place::new(store).await;
        // Port 1 of loopback is never served.
        let base_url = "http://127.0.0.1:1/v1";
        place.share_key(base_url).await;
        let agent = format!("provider = \"openai-compatible\"\nmodel = \"gpt-5\"\nbase_url = \"{base_url}\"");
        let study = STUDY.replace("provider = \"simulated\"\nmodel = \"sim-medium\"", &agent);
        let run = place.add(&study).await;
        let worker = place.worker();
        let waiting = place.once(&run, |run| run.waits.is_some()).await;
        let (wait, _) = waiting.waits.unwrap();
        assert!(
            wait.to_string().starts_with("127.0.0.1:1 failed (HTTP 502"),
            "{wait:?}"
        );
        assert!(!format!("{wait:?}").contains("capo_run_"), "{wait:?}");
        place.store.wish(&by("ada"), &run, RunWish::Stop).await.unwrap();
        assert_eq!(place.ended(&run).await.waits, None);
        worker.end().await;
    });
}

#[test]
fn a_study_whose_data_are_gone_says_so_and_can_be_resumed() {
    on_each(|store| async move {
        let place = Place::new(store.clone()).await;
        // What it holds was never written.
        let object = store.begin_file(&place.project, now()).await.unwrap();
        let sha256 = "0".repeat(64);
        store
            .put_file(&by("ada"), &place.project, &sha256, 1, &object)
            .await
            .unwrap();
        let added = AddedRun {
            study: STUDY.into(),
            files: BTreeMap::from([("rows.csv".to_owned(), sha256)]),
            ..AddedRun::default()
        };
        let run = store
            .add_run(&by("ada"), &place.project, &place.member, added)
            .await
            .unwrap();
        let worker = place.worker();
        let failed = place.ended(&run).await;
        worker.end().await;
        assert_eq!(failed.stage, RunStage::Failed);
        assert!(
            failed
                .error
                .as_ref()
                .is_some_and(|error| error.contains("rows.csv")),
            "{failed:?}"
        );
        store
            .resume_run(&by("ada"), &failed, &place.member, None)
            .await
            .unwrap();
        let queued = store.run(&run.id).await.unwrap();
        assert_eq!((queued.stage, queued.error), (RunStage::Queued, None));
    });
}
