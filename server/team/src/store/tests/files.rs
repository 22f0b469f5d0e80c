//! Data files and data sets: what holds them, what lets them go, and those of an older database.

use std::collections::BTreeMap;

use capo_api::DataKind;

use super::*;

const HOUR: Millis = 60 * 60 * 1000;

async fn project(store: &Store) -> (Member, Project) {
    let ada = member(store, "ada").await;
    let project = store.add_project(&at(0), &ada, "alpha", "Alpha").await.unwrap();
    (ada, project)
}

/// Keeps a file at a moment, and returns its object.
async fn keep(store: &Store, project: &Project, sha256: &str, now: Millis) -> String {
    let object = store.begin_file(project, now).await.unwrap();
    store
        .put_file(&at(now), project, sha256, 3, &object)
        .await
        .unwrap();
    object
}

fn naming(sha256: &str) -> AddedRun {
    AddedRun {
        study: "a".into(),
        files: BTreeMap::from([("a.csv".into(), sha256.into()), ("b.csv".into(), sha256.into())]),
        ..AddedRun::default()
    }
}

fn set_of(sha256: &str, name: &str) -> AddedDataSet {
    AddedDataSet {
        name: name.into(),
        kind: DataKind::Csv,
        sha256: sha256.into(),
        rows: 1,
        columns: vec!["q".into()],
        first: vec![vec!["\u{0} <b>".into()]],
    }
}

#[test]
fn a_file_stays_while_somebody_needs_it() {
    on_each(|store| async move {
        let (ada, alpha) = project(&store).await;
        for sha256 in ["run", "set", "asked", "nobody"] {
            keep(&store, &alpha, sha256, 0).await;
        }
        let run = store.add_run(&at(1), &alpha, &ada, naming("run")).await.unwrap();
        let set = store
            .add_data_set(&at(1), &alpha, &set_of("set", "a.csv"))
            .await
            .unwrap();
        assert!(store.file(&alpha, "asked", 2 * HOUR).await.unwrap().is_some());
        keep(&store, &alpha, "next", 2 * HOUR).await;
        let there = async |sha256: &str| store.kept_file(&alpha.id, sha256).await.unwrap().is_some();
        assert!(there("run").await && there("set").await && there("asked").await);
        assert!(!there("nobody").await);
        // What is named anew is there, or is said to be missing: none vanishes in between.
        let gone = store.add_run(&at(3), &alpha, &ada, naming("nobody")).await;
        assert!(matches!(gone, Err(StoreError::Missing("data file"))), "{gone:?}");
        let gone = store
            .add_data_set(&at(3), &alpha, &set_of("nobody", "b.csv"))
            .await;
        assert!(matches!(gone, Err(StoreError::Missing("data file"))), "{gone:?}");
        let again = store.add_data_set(&at(3), &alpha, &set_of("run", "a.csv")).await;
        assert!(matches!(again, Err(StoreError::Taken("data set"))), "{again:?}");
        assert_eq!(store.first_rows(&alpha, &set.id).await.unwrap(), [["\u{0} <b>"]]);
        store.delete_data_set(&at(5 * HOUR), &alpha, &set).await.unwrap();
        store.delete_run(&at(5 * HOUR), &run).await.unwrap();
        assert!(!there("run").await && !there("set").await && !there("next").await);
    });
}

#[test]
fn a_run_and_a_cleaning_at_once_leave_no_run_without_its_file() {
    on_each(|store| async move {
        let (ada, alpha) = project(&store).await;
        for turn in 0..20 {
            keep(&store, &alpha, "a", 0).await;
            let held = store
                .add_run(&at(3 * HOUR), &alpha, &ada, AddedRun::default())
                .await
                .unwrap();
            let (actor, of) = (at(3 * HOUR), at(3 * HOUR));
            let (added, deleted) = tokio::join!(
                store.add_run(&actor, &alpha, &ada, naming("a")),
                store.delete_run(&of, &held)
            );
            deleted.unwrap();
            let is_there = store.kept_file(&alpha.id, "a").await.unwrap().is_some();
            match added {
                Ok(run) => {
                    assert!(is_there, "turn {turn}");
                    store.delete_run(&at(9 * HOUR), &run).await.unwrap();
                }
                Err(StoreError::Missing("data file")) => assert!(!is_there, "turn {turn}"),
                Err(error) => panic!("{error}"),
            }
        }
    });
}

#[test]
fn objects_that_nothing_needs_are_known_after_a_while() {
    on_each(|store| async move {
        let (ada, alpha) = project(&store).await;
        let broken_off = store.begin_file(&alpha, 0).await.unwrap();
        let first = keep(&store, &alpha, "a", 0).await;
        let twice = store.begin_file(&alpha, 0).await.unwrap();
        store.put_file(&at(0), &alpha, "a", 3, &twice).await.unwrap();
        assert_eq!(
            store.kept_file(&alpha.id, "a").await.unwrap().unwrap().object,
            first
        );
        store.add_run(&at(0), &alpha, &ada, naming("a")).await.unwrap();
        store
            .add_data_set(&at(0), &alpha, &set_of("a", "a.csv"))
            .await
            .unwrap();
        assert_eq!(store.leftovers(HOUR - 1).await.unwrap(), [""; 0]);
        let mut left = store.leftovers(HOUR).await.unwrap();
        left.sort();
        let mut expected = [broken_off, twice];
        expected.sort();
        assert_eq!(left, expected);
        for object in &left {
            store.forget_leftover(object).await.unwrap();
        }
        // With all that is in a project.
        store.delete_project(&at(HOUR), &alpha).await.unwrap();
        assert_eq!(store.leftovers(HOUR).await.unwrap(), [""; 0]);
        assert_eq!(store.leftovers(2 * HOUR).await.unwrap(), [first]);
        // One that was begun too long ago may be gone.
        let beta = store.add_project(&at(0), &ada, "beta", "Beta").await.unwrap();
        let late = store.begin_file(&beta, 0).await.unwrap();
        store.forget_leftover(&late).await.unwrap();
        let refused = store.put_file(&at(2 * HOUR), &beta, "b", 3, &late).await;
        assert!(matches!(refused, Err(StoreError::Missing(_))), "{refused:?}");
    });
}

#[test]
fn files_of_an_older_database_are_taken_out_of_it() {
    on_each(|store| async move {
        let (ada, alpha) = project(&store).await;
        let is_sqlite = store.is_sqlite;
        let dropped = if is_sqlite {
            ""
        } else {
            "DROP FUNCTION leave_object;"
        };
        let back = format!(
            "DROP TABLE checkpoints; DROP TABLE data_sets; DROP TABLE run_files; DROP TABLE files; DROP TABLE leftovers; {dropped} \
             ALTER TABLE contents RENAME TO files; DELETE FROM _sqlx_migrations WHERE version IN (7, 10);"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(back))
            .execute(&store.write)
            .await
            .unwrap();
        for sha256 in ["named", "unnamed"] {
            sqlx::query(
                "INSERT INTO files (project, sha256, size, created_at, content) VALUES ($1, $2, 3, 5, $3)",
            )
            .bind(&alpha.id)
            .bind(sha256)
            .bind(sha256.as_bytes())
            .execute(&store.write)
            .await
            .unwrap();
        }
        sqlx::query(
            "INSERT INTO runs (id, project, member, name, origin, study, files, method, objective, stage, created_at, \
             touched_at, fence, lease_until, lines, revision, steered, claims, progress, times) VALUES ('r', $1, $2, '', \
             '{}', '', '{\"a.csv\":\"named\",\"b.csv\":\"named\",\"c.csv\":\"gone\"}', '', '', 'paused', 0, 0, 0, 0, 0, 0, 0, 0, \
             '{}', '[]')",
        )
        .bind(&alpha.id)
        .bind(&ada.id)
        .execute(&store.write)
        .await
        .unwrap();
        migrate(if is_sqlite { &SQLITE } else { &POSTGRES }, &store.write)
            .await
            .unwrap();
        keep(&store, &alpha, "next", 2 * HOUR).await;
        assert!(store.kept_file(&alpha.id, "unnamed").await.unwrap().is_none());
        let named = store.kept_file(&alpha.id, "named").await.unwrap().unwrap();
        assert_eq!((named.size, named.created_at), (3, 5));
        let (object, content) = store.content().await.unwrap().unwrap();
        assert_eq!((&object, content.as_slice()), (&named.object, &b"named"[..]));
        store.content_written(&object).await.unwrap();
        assert!(store.content().await.unwrap().is_none());
    });
}
