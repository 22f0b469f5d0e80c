//! Prompts for programs.

use std::collections::BTreeMap;

use capo_core::reading::evidence::Evidence;
use serde_json::json;

use super::*;

fn text(text: &str) -> AddedVersion {
    AddedVersion {
        text: text.into(),
        ..AddedVersion::default()
    }
}

fn evidence(mean: f64) -> Evidence {
    let estimate = json!({ "success": { "mean": mean, "standard_error": 0.1, "n": 4 } });
    serde_json::from_value(json!({
        "study": "desk", "status": "feasible", "objective": "success", "thresholds": {}, "evaluation": estimate,
        "seed_evaluation": {}, "feasibility": { "search": true, "held_out": true, "certified": null }, "holds": true,
    }))
    .unwrap()
}

async fn project(store: &Store) -> Project {
    let ada = member(store, "ada").await;
    store.add_project(&at(0), &ada, "alpha", "Alpha").await.unwrap()
}

#[test]
fn a_version_has_one_number_and_says_something_new() {
    on_each(|store| async move {
        let alpha = project(&store).await;
        let add = async |new: &AddedVersion| {
            let added = store.add_prompt_version(&at(1), &alpha, "greeting", new).await;
            let (version, is_new) = added.unwrap();
            (version.number, is_new)
        };
        let (one, two, three) = (text("one"), text("two"), text("three"));
        let (one, two, three) = tokio::join!(add(&one), add(&two), add(&three));
        let mut numbers = [one.0, two.0, three.0];
        numbers.sort_unstable();
        assert_eq!((numbers, one.1 && two.1 && three.1), ([1, 2, 3], true));
        assert_eq!(add(&text("four")).await, (4, true));
        assert_eq!(add(&text("four")).await, (4, false));
        let from = |run: &str, mean: f64| AddedVersion {
            source: Some((run.into(), evidence(mean))),
            ..text("four")
        };
        assert_eq!(add(&from("r", 0.1 + 0.2)).await, (5, true));
        assert_eq!(
            add(&from("r", 0.1 + 0.2)).await,
            (5, false),
            "every digit was kept"
        );
        assert_eq!(add(&text("four")).await, (5, false));
        assert_eq!(add(&from("r", 0.3)).await, (6, true));
        assert_eq!(add(&from("s", 0.3)).await, (7, true));
        let prompt = store.prompt(&alpha, "greeting").await.unwrap();
        let versions = store.prompt_versions(&prompt, Some(7), 2).await.unwrap();
        assert_eq!((versions[0].number, versions[1].number, prompt.newest), (6, 5, 7));
        assert_eq!(versions[0].sha256, versions[1].sha256);
        assert_ne!(versions[0].fingerprint, versions[1].fingerprint);
        let lines = store.audit(Some(&alpha.id), None, 10).await.unwrap();
        let added = lines.iter().filter(|line| line.action == "prompt.add");
        assert_eq!(added.count(), 7, "what says nothing new leaves no line");
    });
}

#[test]
fn a_label_is_where_the_last_move_left_it() {
    on_each(|store| async move {
        let alpha = project(&store).await;
        for version in ["one", "two"] {
            let added = store
                .add_prompt_version(&at(1), &alpha, "greeting", &text(version))
                .await;
            added.unwrap();
        }
        let prompt = store.prompt(&alpha, "greeting").await.unwrap();
        let go = async |to: Option<u64>, was: Option<u64>| {
            store.move_label(&at(2), &prompt, "production", to, was).await
        };
        let missing = go(None, None).await;
        assert!(
            matches!(missing, Err(StoreError::Missing("label"))),
            "{missing:?}"
        );
        let missing = go(Some(3), None).await;
        assert!(
            matches!(missing, Err(StoreError::Missing("version"))),
            "{missing:?}"
        );
        assert_eq!(store.labels(&prompt).await.unwrap(), [].into());
        // Of two who saw that it is nowhere, one moves it.
        let (one, two) = tokio::join!(go(Some(1), Some(0)), go(Some(2), Some(0)));
        assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
        let stale = one.and(two).unwrap_err();
        assert!(
            matches!(stale, StoreError::LabelMoved { version: Some(_), .. }),
            "{stale:?}"
        );
        go(Some(1), None).await.unwrap();
        go(Some(2), Some(1)).await.unwrap();
        go(Some(2), Some(2)).await.unwrap();
        go(Some(1), Some(2)).await.unwrap();
        assert_eq!(
            store.labels(&prompt).await.unwrap(),
            [("production".to_owned(), 1)].into()
        );
        let listed = store.prompts(&alpha).await.unwrap();
        assert_eq!((listed[0].0.touched_at, listed[0].1["production"]), (2, 1));
        go(None, Some(1)).await.unwrap();
        let moves = store.label_moves(&prompt, "production", None, 2).await.unwrap();
        let moves: Vec<_> = moves.iter().map(|moved| (moved.from, moved.to)).collect();
        assert_eq!(moves, [(Some(1), None), (Some(2), Some(1))]);
        let others = store.label_moves(&prompt, "candidate", None, 2).await.unwrap();
        assert_eq!(others, []);
    });
}

#[test]
fn prompts_go_with_their_project_and_stay_without_their_run() {
    on_each(|store| async move {
        let alpha = project(&store).await;
        let ada = store.member("ada").await.unwrap();
        let added = AddedRun {
            name: "First".into(),
            ..AddedRun::default()
        };
        let run = store.add_run(&at(0), &alpha, &ada, added).await.unwrap();
        let new = AddedVersion {
            note: Some("the first".into()),
            source: Some((run.id.clone(), evidence(0.5))),
            ..text("Greet.")
        };
        let (kept, _) = store
            .add_prompt_version(&at(1), &alpha, "greeting", &new)
            .await
            .unwrap();
        let prompt = store.prompt(&alpha, "greeting").await.unwrap();
        store
            .move_label(&at(2), &prompt, "production", Some(1), None)
            .await
            .unwrap();
        store.delete_run(&at(3), &run).await.unwrap();
        let after = store.prompt_version(&prompt, 1).await.unwrap();
        assert_eq!(
            (&after, &after.run, &after.evidence),
            (&kept, &Some(run.id), &Some(evidence(0.5)))
        );
        store.delete_prompt(&at(4), &prompt).await.unwrap();
        let again = store.delete_prompt(&at(4), &prompt).await;
        assert!(matches!(again, Err(StoreError::Missing("prompt"))), "{again:?}");
        // One of the same name begins anew.
        let (anew, _) = store
            .add_prompt_version(&at(5), &alpha, "greeting", &new)
            .await
            .unwrap();
        assert_eq!(anew.number, 1);
        let prompt = store.prompt(&alpha, "greeting").await.unwrap();
        assert_eq!(store.labels(&prompt).await.unwrap(), [].into());
        assert_eq!(
            store.label_moves(&prompt, "production", None, 9).await.unwrap(),
            []
        );
        store
            .move_label(&at(6), &prompt, "production", Some(1), None)
            .await
            .unwrap();
        store.delete_project(&at(7), &alpha).await.unwrap();
        for table in ["prompts", "prompt_versions", "labels", "label_moves"] {
            let statement = sqlx::AssertSqlSafe(format!("SELECT * FROM {table}"));
            let left = sqlx::query(statement).fetch_all(&store.read).await.unwrap();
            assert_eq!(left.len(), 0, "{table}");
        }
    });
}

#[test]
fn what_is_imported_in_parts_is_counted_through() {
    on_each(|store| async move {
        let alpha = project(&store).await;
        for version in ["one", "two"] {
            let new = text(version);
            let added = store.add_prompt_version(&at(1), &alpha, "greeting", &new).await;
            added.unwrap();
        }
        let prompt = store.prompt(&alpha, "greeting").await.unwrap();
        // The last move of the first label takes it away.
        let moves = |label: &str, count: u64| {
            let places = [None, Some(1), Some(2)];
            let moved = (0..count).map(move |place| Moved {
                number: place + 7,
                at: 0,
                actor: "eve".into(),
                from: places[usize::try_from(place % 3).unwrap()],
                to: places[usize::try_from((place + 1) % 3).unwrap()],
            });
            moved.map(|moved| (label.to_owned(), moved)).collect::<Vec<_>>()
        };
        let all = [moves("candidate", 1500), moves("production", 1000)].concat();
        store.import_label_moves(&at(2), &prompt, &all).await.unwrap();
        let labels = store.labels(&prompt).await.unwrap();
        assert_eq!(labels, BTreeMap::from([("production".to_owned(), 1)]));
        let kept = store.all_label_moves(&prompt).await.unwrap();
        let numbers: Vec<u64> = kept.iter().map(|(_, moved)| moved.number).collect();
        assert_eq!(numbers, (1..=1500).chain(1..=1000).collect::<Vec<u64>>());
        let places = |(label, moved): &(String, Moved)| (label.clone(), moved.from, moved.to);
        assert!(kept.iter().map(places).eq(all.iter().map(places)));

        let line = |number: i64| Entry {
            id: number,
            at: number,
            actor: "eve".into(),
            address: String::new(),
            action: "label.move".into(),
            subject: format!("line {number}"),
            project: Some(alpha.id.clone()),
        };
        let lines: Vec<Entry> = (1..=2500).map(line).collect();
        store.import_audit(&at(2), &alpha.id, &lines).await.unwrap();
        let mut kept = store.audit(Some(&alpha.id), Some(1), 5000).await.unwrap();
        kept.reverse();
        let ids = kept.iter().map(|line| line.id);
        assert!(ids.eq(-2499..=0));
        let subjects = kept.iter().map(|line| &line.subject);
        assert!(subjects.eq(lines.iter().map(|line| &line.subject)));
    });
}
