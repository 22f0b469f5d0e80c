//! Trainings: who has them, and what becomes of their lines.

use capo_api::{CheckpointShown, RunStage, TrainingKind, TrainingStart, TrainingState};
use capo_core::reading::progress::{Progress, Times};

use super::*;

fn new(kind: TrainingKind) -> AddedTraining {
    AddedTraining {
        name: "nightly".into(),
        kind,
        study: "[study]".into(),
        files: [("rows.csv".to_owned(), "00".to_owned())].into(),
        settings: "[sft]".into(),
        start: TrainingStart::Model { name: "nano".into() },
        runs: vec!["r".into()],
        full: true,
        run: (kind == TrainingKind::Grpo).then(|| AddedRun {
            name: "nightly".into(),
            method: "dcapo".into(),
            ..AddedRun::default()
        }),
    }
}

async fn place(store: &Store) -> (Project, Member) {
    let ada = member(store, "ada").await;
    let project = store.add_project(&at(0), &ada, "alpha", "Alpha").await.unwrap();
    (project, ada)
}

fn left(state: TrainingState) -> TrainingOutcome {
    TrainingOutcome {
        state,
        error: None,
        in_order: true,
    }
}

#[test]
fn a_training_is_one_process_at_a_time() {
    on_each(|store| async move {
        let (project, ada) = place(&store).await;
        let added = store
            .add_training(&at(1), &project, &ada, new(TrainingKind::Sft))
            .await
            .unwrap();
        assert_eq!(store.training(&added.id).await.unwrap(), added);
        assert_eq!(
            (added.state, added.run.as_ref(), added.full),
            (TrainingState::Queued, None, true)
        );
        let (one, two) = tokio::join!(store.claim_training(10, 20), store.claim_training(10, 20));
        let claimed = [one.unwrap(), two.unwrap()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>();
        let [(lease, running)] = claimed.as_slice() else {
            panic!("{claimed:?}");
        };
        assert_eq!(running.state, TrainingState::Running);
        store
            .append_to_training(lease, &["a".into(), "b".into()], 2, 11)
            .await
            .unwrap();
        assert!(matches!(
            store.delete_training(&at(12), &added).await,
            Err(StoreError::Working)
        ));
        // Nobody hears of it: the next one goes on, and the former writes nothing any more.
        let (next, going_on) = store.claim_training(20, 40).await.unwrap().unwrap();
        assert_eq!((going_on.lines, going_on.reached), (2, 2));
        let lost = store.append_to_training(lease, &["c".into()], 3, 21).await;
        assert!(matches!(lost, Err(NotKept::Lost)));
        assert!(matches!(
            store.renew_training(lease, 60).await,
            Err(NotKept::Lost)
        ));
        // What it does again stands again; how far it came does not fall.
        store
            .append_to_training(&next, &["b".into()], 2, 21)
            .await
            .unwrap();
        store.stop_training(&at(22), &added).await.unwrap();
        assert!(store.renew_training(&next, 60).await.unwrap());
        store
            .leave_training(&next, &left(TrainingState::Queued), 23)
            .await
            .unwrap();
        let stopped = store.training(&added.id).await.unwrap();
        assert_eq!(
            (stopped.state, stopped.stopping, stopped.reached),
            (TrainingState::Stopped, false, 2)
        );
        let lines = store.training_lines(&added.id, 1).await.unwrap();
        assert_eq!(lines, [(1, "b".to_owned()), (2, "b".to_owned())]);
        assert!(matches!(
            store.stop_training(&at(24), &added).await,
            Err(StoreError::AtRest)
        ));
        store.resume_training(&at(25), &added, &ada).await.unwrap();
        assert!(matches!(
            store.resume_training(&at(25), &added, &ada).await,
            Err(StoreError::GoesOn)
        ));
        store.delete_training(&at(26), &added).await.unwrap();
        assert!(matches!(
            store.training(&added.id).await,
            Err(StoreError::Missing("training"))
        ));
        let log = store.audit(Some(&project.id), None, 10).await.unwrap();
        let actions: Vec<String> = log.into_iter().map(|line| line.action).collect();
        assert_eq!(
            actions[..4],
            [
                "training.delete",
                "training.resume",
                "training.stop",
                "training.start"
            ]
        );
    });
}

#[test]
fn what_is_done_is_known_to_who_has_its_project() {
    on_each(|store| async move {
        let (project, ada) = place(&store).await;
        let sam = member(&store, "sam").await;
        store.add_project(&at(0), &sam, "beta", "Beta").await.unwrap();
        let added = store
            .add_training(&at(1), &project, &ada, new(TrainingKind::Sft))
            .await
            .unwrap();
        let (lease, _) = store.claim_training(2, 20).await.unwrap().unwrap();
        assert!(store.done_trainings(&ada).await.unwrap().is_empty());
        store
            .leave_training(&lease, &left(TrainingState::Done), 7)
            .await
            .unwrap();
        let root = Member {
            is_admin: true,
            ..sam.clone()
        };
        for (member, sees) in [(&ada, true), (&sam, false), (&root, true)] {
            let done = store.done_trainings(member).await.unwrap();
            let expected = sees.then(|| (added.id.clone(), 7));
            assert_eq!(done, Vec::from_iter(expected), "{member:?}");
        }
    });
}

#[test]
fn checkpoints_are_kept_by_who_has_the_training_and_leave_their_objects() {
    on_each(|store| async move {
        let (project, ada) = place(&store).await;
        let added = store
            .add_training(&at(1), &project, &ada, new(TrainingKind::Sft))
            .await
            .unwrap();
        let (lease, _) = store.claim_training(10, 20).await.unwrap().unwrap();
        let shown = |step, counts| CheckpointShown {
            step,
            loss: Some(0.1),
            reward: None,
            counts,
            is_adapter: true,
            bytes: 3,
        };
        let keep = async |shown: CheckpointShown, there: &[CheckpointShown]| {
            let step = shown.step;
            let new = KeptCheckpoint {
                shown,
                object: store.begin_checkpoint(&lease, &added, step, 10).await.unwrap(),
                sha256: "00".into(),
            };
            let kept = store.keep_checkpoints(&lease, Some(&new), there, 11).await;
            kept.map(|()| new)
        };
        let first = keep(shown(1, true), &[shown(1, true)]).await.unwrap();
        let there = [shown(1, false), shown(2, true)];
        let second = keep(shown(2, true), &there).await.unwrap();
        let kept = store.checkpoints(&added.id).await.unwrap();
        let first_now = KeptCheckpoint {
            shown: shown(1, false),
            ..first.clone()
        };
        assert_eq!(kept, [first_now, second.clone()]);
        store
            .keep_checkpoints(&lease, None, &there[1..], 12)
            .await
            .unwrap();
        let kept = store.checkpoints(&added.id).await.unwrap();
        assert_eq!(kept, std::slice::from_ref(&second));
        // One that was on its way for too long may be gone.
        let late = store.begin_checkpoint(&lease, &added, 3, 10).await.unwrap();
        let again = store.begin_checkpoint(&lease, &added, 3, 11).await.unwrap();
        assert_eq!(again, late, "of each try");
        store.forget_leftover(&late).await.unwrap();
        let late = KeptCheckpoint {
            shown: shown(3, true),
            object: late,
            ..second.clone()
        };
        let refused = store.keep_checkpoints(&lease, Some(&late), &there, 13).await;
        assert!(matches!(
            refused,
            Err(NotKept::Store(StoreError::Missing("upload any more")))
        ));
        let (next, _) = store.claim_training(20, 40).await.unwrap().unwrap();
        let lost = keep(shown(3, true), &there).await;
        assert!(matches!(lost, Err(NotKept::Lost)), "{lost:?}");
        assert_eq!(store.checkpoints(&added.id).await.unwrap(), kept);

        store
            .leave_training(&next, &left(TrainingState::Stopped), 21)
            .await
            .unwrap();
        store.delete_training(&at(22), &added).await.unwrap();
        assert!(store.checkpoints(&added.id).await.unwrap().is_empty());
        assert_eq!(store.leftovers(0).await.unwrap(), [""; 0]);
        let mut objects = store.leftovers(DAY / 24).await.unwrap();
        objects.sort();
        let mut expected = [first, second].map(|one| one.object);
        expected.sort();
        assert_eq!(objects, expected);
    });
}

#[test]
fn a_training_that_gets_no_further_is_left_alone() {
    on_each(|store| async move {
        let (project, ada) = place(&store).await;
        let added = store
            .add_training(&at(1), &project, &ada, new(TrainingKind::Sft))
            .await
            .unwrap();
        let (lease, _) = store.claim_training(0, 1).await.unwrap().unwrap();
        store
            .append_to_training(&lease, &["a".into()], 1, 0)
            .await
            .unwrap();
        // Each does the same line again, and ends without a word.
        for now in 1..5 {
            let (lease, _) = store.claim_training(now, now + 1).await.unwrap().unwrap();
            store
                .append_to_training(&lease, &["a".into()], 1, now)
                .await
                .unwrap();
        }
        assert_eq!(store.claim_training(9, 10).await.unwrap(), None);
        let failed = store.training(&added.id).await.unwrap();
        assert!(failed.state == TrainingState::Failed && failed.error.unwrap().contains("further"));
        store.resume_training(&at(11), &added, &ada).await.unwrap();
        assert!(store.claim_training(12, 13).await.unwrap().is_some());
    });
}

#[test]
fn a_training_for_whose_lines_there_is_no_room_is_not_taken_up_again_until_there_is() {
    in_sqlite(|store| async move {
        let (project, ada) = place(&store).await;
        store
            .add_training(&at(1), &project, &ada, new(TrainingKind::Sft))
            .await
            .unwrap();
        store.claim_training(0, 1).await.unwrap().unwrap();
        // More often than a training is taken up without getting further.
        for now in 1..6 {
            // After a refusal it is another connection.
            store.set_full(true).await;
            let refused = store.claim_training(now, now + 1).await.unwrap_err();
            assert!(refused.is_full(), "{refused}");
        }
        store.set_full(false).await;
        let (lease, _) = store.claim_training(6, 7).await.unwrap().unwrap();
        assert_eq!(lease.fence, 2);
    });
}

#[test]
fn what_an_ended_process_had_under_way_is_taken_over() {
    on_each(|store| async move {
        let (project, ada) = place(&store).await;
        let ended = Store {
            process: "ended".into(),
            ..store.clone()
        };
        store
            .add_training(&at(1), &project, &ada, new(TrainingKind::Sft))
            .await
            .unwrap();
        ended.beat(0).await.unwrap();
        let (lease, _) = ended.claim_training(0, DAY).await.unwrap().unwrap();
        store.take_over(100_000, false).await.unwrap();
        assert_eq!(
            store.claim_training(100_000, DAY).await.unwrap(),
            None,
            "it may be slow"
        );
        store.take_over(150_000, false).await.unwrap();
        let (next, _) = store.claim_training(150_000, DAY).await.unwrap().unwrap();
        assert_eq!((&next.id, next.fence), (&lease.id, lease.fence + 1));
    });
}

#[test]
fn the_search_of_a_training_is_no_workers() {
    on_each(|store| async move {
        let (project, ada) = place(&store).await;
        let added = store
            .add_training(&at(1), &project, &ada, new(TrainingKind::Grpo))
            .await
            .unwrap();
        let run = added.run.clone().unwrap();
        assert_eq!(
            store.training_of_run(&run).await.unwrap().as_deref(),
            Some("nightly")
        );
        assert_eq!(store.claim(5, 10, 8).await.unwrap(), None);
        let (lease, _) = store.claim_training(5, 30).await.unwrap().unwrap();
        let stands = async || store.run(&run).await.unwrap();
        assert_eq!(stands().await.stage, RunStage::Running);
        let lines = ["first", "second", "third"].map(str::to_owned);
        store.append_to_search(&lease, &run, 0, &lines, 6).await.unwrap();
        store
            .replace_first_of_search(&lease, &run, "frozen", 7)
            .await
            .unwrap();
        // A file that lost lines when the machine did.
        store
            .append_to_search(&lease, &run, 2, &["other".to_owned()], 8)
            .await
            .unwrap();
        let now = stands().await;
        assert_eq!((now.lines, now.revision), (3, 2));
        let kept: Vec<String> = store
            .lines(&run, 0, 1000)
            .await
            .unwrap()
            .into_iter()
            .map(|(_, line)| line)
            .collect();
        assert_eq!(kept, ["frozen", "second", "other"]);
        let progress = Progress {
            rollouts: 7,
            ..Progress::default()
        };
        store
            .note_search(&lease, &run, (&progress, &Times::default(), None))
            .await
            .unwrap();
        store
            .leave_training(&lease, &left(TrainingState::Done), 9)
            .await
            .unwrap();
        let ended = stands().await;
        assert_eq!((ended.stage, ended.progress.rollouts), (RunStage::Ended, 7));
        assert!(
            store
                .note_search(&lease, &run, (&progress, &Times::default(), None))
                .await
                .is_err()
        );
        store.delete_training(&at(10), &added).await.unwrap();
        assert_eq!(store.training_of_run(&run).await.unwrap(), None, "the run stays");
        assert_eq!(stands().await.stage, RunStage::Ended);
    });
}

#[test]
fn nobody_goes_on_with_a_search_whose_training_was_stopped_or_deleted() {
    on_each(|store| async move {
        let (project, ada) = place(&store).await;
        let add = async || {
            let added = store
                .add_training(&at(1), &project, &ada, new(TrainingKind::Grpo))
                .await;
            let added = added.unwrap();
            let run = added.run.clone().unwrap();
            (added, run)
        };
        let stage = async |run: &str| store.run(run).await.unwrap().stage;
        // Stopped when its process had broken down already.
        let (stopped, run) = add().await;
        let (lease, _) = store.claim_training(5, 30).await.unwrap().unwrap();
        let running = store.training(&stopped.id).await.unwrap();
        store.stop_training(&at(6), &running).await.unwrap();
        store
            .leave_training(&lease, &left(TrainingState::Queued), 7)
            .await
            .unwrap();
        let state = store.training(&stopped.id).await.unwrap().state;
        assert_eq!(
            (state, stage(&run).await),
            (TrainingState::Stopped, RunStage::Ended)
        );
        // Deleted before its turn came.
        let (deleted, run) = add().await;
        store.delete_training(&at(8), &deleted).await.unwrap();
        assert_eq!(stage(&run).await, RunStage::Paused);
        assert_eq!(store.claim(9, 20, 8).await.unwrap(), None);
    });
}
