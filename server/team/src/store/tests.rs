//! Every test on both databases: PostgreSQL where `CAPO_TEST_POSTGRES` names a server, as `cargo xtask test` does.

mod files;
mod prompts;
mod statements;
mod trainings;

use std::future::Future;

use capo_gateway::{Limits, NanoUsd, Scope, SharedKey};
use proptest::prelude::*;

use super::keys::written;
use super::*;
use crate::fixture::DAY;
use crate::seal::MasterKey;
use crate::secret::{self, Secret};
use capo_api::{Role, Scope as TokenScope};

fn at(at: Millis) -> Actor {
    Actor {
        name: "root".into(),
        address: "192.0.2.1".into(),
        at,
    }
}

/// Makes two tests of one, each with an empty store: their names say in which database.
macro_rules! on_each_database {
    ($test:ident) => {
        mod $test {
            #[test]
            fn in_sqlite() {
                crate::store::tests::in_sqlite(super::$test);
            }

            #[test]
            fn in_postgres() {
                crate::store::tests::in_postgres(super::$test);
            }
        }
    };
}
pub(crate) use on_each_database;

/// Runs a test on an empty store of each kind.
pub(crate) fn on_each<F: Future<Output = ()>>(test: impl Fn(Store) -> F) {
    in_sqlite(&test);
    in_postgres(&test);
}

pub(crate) fn in_sqlite<F: Future<Output = ()>>(test: impl Fn(Store) -> F) {
    println!("in SQLite");
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::in_folder(folder.path()).await.unwrap();
        test(store.clone()).await;
        store.close().await;
    });
}

/// The same in a database of its own, where there is a server.
pub(crate) fn in_postgres<F: Future<Output = ()>>(test: impl Fn(Store) -> F) {
    let Some(server) = postgres() else { return };
    println!("in PostgreSQL");
    block_on(async {
        let name = format!("capo_{}", secret::id());
        sqlx::any::install_default_drivers();
        let admin = AnyPoolOptions::new()
            .max_connections(1)
            .connect(&format!("{server}postgres"))
            .await
            .unwrap();
        let run = |statement: String| {
            let admin = admin.clone();
            async move {
                let statement = sqlx::AssertSqlSafe(statement);
                sqlx::query(statement).execute(&admin).await.unwrap();
            }
        };
        run(format!("CREATE DATABASE {name}")).await;
        let store = Store::open(&format!("{server}{name}")).await.unwrap();
        test(store.clone()).await;
        store.close().await;
        run(format!("DROP DATABASE {name}")).await;
    });
}

fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test);
}

impl Store {
    /// Forgets all that it keeps, which is sooner done than another database is made.
    pub(crate) async fn empty(&self) {
        // What else there is goes with projects and members.
        let tables =
            "projects members audit keys master limits consumption reservations attempts leftovers processes";
        let deletions: Vec<String> = tables
            .split(' ')
            .map(|table| format!("DELETE FROM {table};"))
            .collect();
        // After those who settle what calls of before did cost, as these take it.
        let lock = "UPDATE locks SET name = name WHERE name = 'consumption';";
        let deletions = format!("BEGIN; {lock} {} COMMIT;", deletions.join(" "));
        sqlx::raw_sql(sqlx::AssertSqlSafe(deletions))
            .execute(&self.write)
            .await
            .unwrap();
    }

    /// Lets a file grow no more, as on a full disk, or again; whether this is one.
    pub(crate) async fn set_full(&self, is_full: bool) -> bool {
        let most = if is_full { 1 } else { u32::MAX - 1 };
        if self.is_sqlite {
            // Never below what it has.
            let pragma = format!("PRAGMA max_page_count = {most}");
            sqlx::raw_sql(sqlx::AssertSqlSafe(pragma))
                .execute(&self.write)
                .await
                .unwrap();
        }
        self.is_sqlite
    }
}

/// The address of a PostgreSQL server, with a slash at the end.
///
/// # Panics
/// Where continuous integration has none: a test that checks half must not pass there.
fn postgres() -> Option<String> {
    let server = std::env::var("CAPO_TEST_POSTGRES").ok();
    if server.is_none() {
        assert!(std::env::var_os("CI").is_none(), "no CAPO_TEST_POSTGRES");
        println!("skipped with PostgreSQL: CAPO_TEST_POSTGRES names no server");
    }
    server
}

async fn member(store: &Store, name: &str) -> Member {
    store.add_member(&at(0), name, "kept", false).await.unwrap()
}

#[test]
fn one_first_member_sets_the_server_up() {
    on_each(|store| async move {
        assert!(!store.is_set_up().await.unwrap());
        let actor = at(1);
        let (one, two) = tokio::join!(
            store.set_up(&actor, "ada", "kept"),
            store.set_up(&actor, "eve", "kept")
        );
        let (first, second) = if one.is_ok() { (one, two) } else { (two, one) };
        assert!(first.unwrap().is_admin);
        assert!(matches!(second, Err(StoreError::SetUp)), "{second:?}");
        assert!(store.is_set_up().await.unwrap());
        assert_eq!(store.members().await.unwrap().len(), 1);
    });
}

#[test]
fn a_name_belongs_to_one() {
    on_each(|store| async move {
        let ada = member(&store, "ada").await;
        let again = store.add_member(&at(0), "ada", "kept", false).await;
        assert!(matches!(again, Err(StoreError::Taken("member"))), "{again:?}");
        store.add_project(&at(0), &ada, "alpha", "Alpha").await.unwrap();
        let again = store.add_project(&at(0), &ada, "alpha", "Other").await;
        assert!(matches!(again, Err(StoreError::Taken("project"))), "{again:?}");
        // What failed left no line in the log.
        let actions: Vec<String> = store
            .audit(None, None, 10)
            .await
            .unwrap()
            .into_iter()
            .map(|line| line.action)
            .collect();
        assert_eq!(actions, ["project.create", "member.create"]);
    });
}

#[test]
fn somebody_always_administers_the_server() {
    on_each(|store| async move {
        store.set_up(&at(0), "ada", "kept").await.unwrap();
        store.add_member(&at(0), "bea", "kept", true).await.unwrap();
        let demote = |name: &'static str| {
            let store = store.clone();
            async move { store.change_member(&at(1), name, Some(false), None).await }
        };
        let (one, two) = tokio::join!(demote("ada"), demote("bea"));
        assert_eq!(
            usize::from(one.is_ok()) + usize::from(two.is_ok()),
            1,
            "{one:?} {two:?}"
        );
        let admins = store.members().await.unwrap();
        let admins: Vec<&Member> = admins.iter().filter(|member| member.is_admin).collect();
        let last = store
            .change_member(&at(2), &admins[0].name, None, Some(true))
            .await;
        assert!(
            admins.len() == 1 && matches!(last, Err(StoreError::LastAdmin)),
            "{last:?}"
        );
        let nobody = store.change_member(&at(2), "zoe", Some(true), None).await;
        assert!(matches!(nobody, Err(StoreError::Missing("member"))));
    });
}

#[test]
fn a_session_lasts_while_it_is_used_and_not_for_ever() {
    on_each(|store| async move {
        let ada = member(&store, "ada").await;
        let secret = Secret::new("");
        store.sign_in(&at(0), &ada, &secret, "browser").await.unwrap();
        let known = async |now: Millis| store.session(&secret, now).await.unwrap().is_some();
        assert!(known(13 * DAY).await);
        assert!(known(26 * DAY).await, "it was used on day 13");
        assert!(!known(41 * DAY).await, "and not for 15 days since");
        let other = Secret::new("");
        assert!(store.session(&other, 0).await.unwrap().is_none());
        // Used every day, it ends after 90.
        store.sign_in(&at(0), &ada, &other, "browser").await.unwrap();
        for day in 1..90 {
            assert!(
                store.session(&other, day * DAY).await.unwrap().is_some(),
                "day {day}"
            );
        }
        assert!(store.session(&other, 90 * DAY).await.unwrap().is_none());
    });
}

#[test]
fn sessions_end_with_the_password_and_with_the_right_to_sign_in() {
    on_each(|store| async move {
        store.set_up(&at(0), "root", "kept").await.unwrap();
        let ada = member(&store, "ada").await;
        let secrets = [Secret::new(""), Secret::new("")];
        let mut ids = Vec::new();
        for secret in &secrets {
            ids.push(store.sign_in(&at(0), &ada, secret, "browser").await.unwrap().id);
        }
        let token = Secret::new("capo_");
        store
            .add_token(&at(0), &ada, &token, "ci", TokenScope::Write, DAY)
            .await
            .unwrap();
        store
            .set_password(&at(1), &ada, "other", Some(&ids[0]))
            .await
            .unwrap();
        assert_eq!(
            store.credentials("ada").await.unwrap().unwrap().1.as_deref(),
            Some("other")
        );
        let left: Vec<String> = store
            .sessions(&ada, 1)
            .await
            .unwrap()
            .into_iter()
            .map(|session| session.id)
            .collect();
        assert_eq!(left, [ids[0].clone()]);
        store
            .change_member(&at(2), "ada", None, Some(true))
            .await
            .unwrap();
        assert!(store.session(&secrets[0], 2).await.unwrap().is_none());
        assert!(store.token(&token, 2).await.unwrap().is_none());
        store
            .change_member(&at(3), "ada", None, Some(false))
            .await
            .unwrap();
        assert!(
            store.session(&secrets[0], 3).await.unwrap().is_none(),
            "what ended stays ended"
        );
        assert!(store.token(&token, 3).await.unwrap().is_none());
    });
}

#[test]
fn a_token_is_its_owners_and_ends() {
    on_each(|store| async move {
        let (ada, eve) = (member(&store, "ada").await, member(&store, "eve").await);
        let secret = Secret::new("capo_");
        let token = store
            .add_token(&at(0), &ada, &secret, "ci", TokenScope::Read, DAY)
            .await
            .unwrap();
        let (found, owner) = store.token(&secret, DAY - 1).await.unwrap().unwrap();
        assert_eq!((found.scope, owner.name.as_str()), (TokenScope::Read, "ada"));
        assert_eq!(store.tokens(&ada).await.unwrap()[0].seen_at, Some(DAY - 1));
        assert!(store.token(&secret, DAY).await.unwrap().is_none());
        let of_other = store.withdraw_token(&at(1), &eve, &token.id).await;
        assert!(matches!(of_other, Err(StoreError::Missing("token"))));
        store.withdraw_token(&at(1), &ada, &token.id).await.unwrap();
        assert!(store.token(&secret, 1).await.unwrap().is_none());
        assert_eq!(store.audit(None, None, 1).await.unwrap()[0].subject, "ci");
    });
}

#[test]
fn a_project_is_seen_by_those_who_have_a_role() {
    on_each(|store| async move {
        let root = store.set_up(&at(0), "root", "kept").await.unwrap();
        let (ada, eve) = (member(&store, "ada").await, member(&store, "eve").await);
        let alpha = store.add_project(&at(0), &ada, "alpha", "Alpha").await.unwrap();
        store.add_project(&at(0), &eve, "beta", "Beta").await.unwrap();
        let names = |projects: Vec<(Project, Role)>| -> Vec<(String, Role)> {
            projects
                .into_iter()
                .map(|(project, role)| (project.name, role))
                .collect()
        };
        let admin = |name: &str| (name.to_owned(), Role::Admin);
        assert_eq!(names(store.projects(&ada).await.unwrap()), [admin("alpha")]);
        assert_eq!(
            names(store.projects(&root).await.unwrap()),
            [admin("alpha"), admin("beta")]
        );
        let unseen = store.project(&eve, "alpha").await;
        assert!(matches!(unseen, Err(StoreError::Missing("project"))));
        store
            .set_role(&at(1), &alpha, "eve", Some(Role::Viewer))
            .await
            .unwrap();
        store
            .set_role(&at(1), &alpha, "eve", Some(Role::Editor))
            .await
            .unwrap();
        assert_eq!(store.project(&eve, "alpha").await.unwrap().1, Role::Editor);
        assert_eq!(store.project(&root, "alpha").await.unwrap().1, Role::Admin);
        store.set_role(&at(2), &alpha, "eve", None).await.unwrap();
        let twice = store.set_role(&at(2), &alpha, "eve", None).await;
        assert!(matches!(twice, Err(StoreError::Missing("member"))));
        store.delete_project(&at(3), &alpha).await.unwrap();
        assert!(store.projects(&ada).await.unwrap().is_empty());
        let log = store.audit(Some(&alpha.id), None, 100).await.unwrap();
        assert_eq!(log[0].action, "project.delete");
        assert_eq!(log.last().unwrap().action, "project.create");
    });
}

#[test]
fn an_invitation_serves_once() {
    on_each(|store| async move {
        let ada = member(&store, "ada").await;
        let alpha = store.add_project(&at(0), &ada, "alpha", "Alpha").await.unwrap();
        let secret = Secret::new("");
        let to = Invited::Project(&alpha, Role::Editor);
        store.invite(&at(0), &ada, &secret, to, DAY).await.unwrap();
        assert_eq!(store.invitations(Some(&alpha), 1).await.unwrap().len(), 1);
        assert!(store.invitations(None, 1).await.unwrap().is_empty());
        let late = store.follow_invitation(&at(DAY), &secret, "eve", "kept").await;
        assert!(matches!(late, Err(StoreError::Missing("invitation"))));
        let taken = store.follow_invitation(&at(1), &secret, "ada", "kept").await;
        assert!(
            matches!(taken, Err(StoreError::Taken("member"))),
            "and it can be tried again"
        );
        let follow = |name: &'static str| {
            let (store, secret) = (store.clone(), secret.clone());
            async move { store.follow_invitation(&at(1), &secret, name, "kept").await }
        };
        let (one, two) = tokio::join!(follow("eve"), follow("zoe"));
        let (won, lost) = if one.is_ok() { (one, two) } else { (two, one) };
        assert!(matches!(lost, Err(StoreError::Missing("invitation"))), "{lost:?}");
        assert_eq!(
            store.project(&won.unwrap(), "alpha").await.unwrap().1,
            Role::Editor
        );
        let withdrawn = Secret::new("");
        let to = Invited::Server { is_admin: true };
        let invitation = store.invite(&at(2), &ada, &withdrawn, to, DAY).await.unwrap();
        let elsewhere = store
            .withdraw_invitation(&at(2), Some(&alpha), &invitation.id)
            .await;
        assert!(matches!(elsewhere, Err(StoreError::Missing("invitation"))));
        store
            .withdraw_invitation(&at(2), None, &invitation.id)
            .await
            .unwrap();
        assert!(!store.is_invited(&withdrawn, 2).await.unwrap());
    });
}

#[test]
fn the_log_is_read_in_pages() {
    on_each(|store| async move {
        for number in 0..5 {
            store
                .add_member(&at(number), &number.to_string(), "kept", false)
                .await
                .unwrap();
        }
        let first = store.audit(None, None, 2).await.unwrap();
        assert_eq!((first[0].subject.as_str(), first[1].subject.as_str()), ("4", "3"));
        let next = store.audit(None, Some(first[1].id), 10).await.unwrap();
        assert_eq!((next[0].subject.as_str(), next.len()), ("2", 3));
    });
}

#[test]
fn attempts_wait_longer_and_longer_and_are_forgotten() {
    on_each(|store| async move {
        let attempt = async |at: Millis| store.attempt("ada from here", 2, at).await.unwrap();
        assert_eq!(
            (attempt(0).await, attempt(0).await, attempt(0).await),
            (None, None, None)
        );
        assert_eq!(attempt(400).await, Some(600), "a second from the third on");
        assert_eq!(attempt(1000).await, None);
        assert_eq!(attempt(1000).await, Some(2000), "twice as long");
        assert_eq!(store.attempt("bea from here", 2, 1000).await.unwrap(), None);
        let mut at = 3000;
        for _ in 0..20 {
            assert_eq!(attempt(at).await, None);
            let wait = attempt(at).await.unwrap();
            assert!(wait <= 900_000, "{wait}");
            at += wait;
        }
        assert_eq!(attempt(at).await, None);
        assert_eq!(attempt(at).await, Some(900_000));
        at += 2 * DAY;
        assert_eq!(
            (attempt(at).await, attempt(at).await, attempt(at).await),
            (None, None, None),
            "a day is enough"
        );
        store.forget_attempts("ada from here", false).await.unwrap();
        assert_eq!(attempt(at).await, None, "a right one does not count");
        store.forget_attempts("ada from here", true).await.unwrap();
        assert_eq!(
            (attempt(at).await, attempt(at).await, attempt(at).await),
            (None, None, None)
        );
        // At once they are counted one by one.
        let all = futures::future::join_all((0..20).map(|_| store.attempt("at once", 5, 0))).await;
        let allowed = all.iter().filter(|attempt| matches!(attempt, Ok(None))).count();
        assert_eq!(allowed, 6);
    });
}

fn key(settings: &serde_json::Value) -> SharedKey {
    let mut record = serde_json::json!({
        "id": "openai", "provider": "openai", "projects": ["p"], "models": [{ "name": "gpt-*" }],
    });
    for (name, value) in settings.as_object().unwrap() {
        record[name] = value.clone();
    }
    serde_json::from_value(record).unwrap()
}

fn payers() -> ChargedTo {
    ChargedTo {
        key: "openai".into(),
        project: "p".into(),
        member: "m".into(),
    }
}

#[test]
fn of_many_for_the_last_cent_as_many_as_it_pays_for_are_let_through() {
    on_each(|store| async move {
        let limits = Limits {
            usd_per_day: Some(NanoUsd::from(100)),
            requests_per_day: None,
        };
        let limits = [Limits::default(), limits, Limits::default()];
        let each = NanoUsd::from(30);
        let reserved =
            futures::future::join_all((0..8).map(|_| store.reserve(payers(), limits, each, 0))).await;
        let reserved: Vec<_> = reserved
            .into_iter()
            .filter_map(|reserved| reserved.unwrap().ok())
            .collect();
        assert_eq!(reserved.len(), 3);
        let project = async || {
            let used = store.used_since(0).await.unwrap();
            used.into_iter()
                .find(|used| used.scope == Scope::Project)
                .unwrap()
                .consumption
        };
        assert_eq!(project().await.reserved, NanoUsd::from(90));
        let settled = reserved
            .iter()
            .map(|aside| store.settle(aside, NanoUsd::from(10)));
        futures::future::join_all(settled)
            .await
            .into_iter()
            .for_each(Result::unwrap);
        store.settle(&reserved[0], NanoUsd::from(50)).await.unwrap();
        let after = project().await;
        assert_eq!(
            (after.used, after.reserved, after.requests),
            (NanoUsd::from(30), NanoUsd::ZERO, 3)
        );
        let next_day = store
            .reserve(payers(), limits, NanoUsd::from(100), DAY)
            .await
            .unwrap();
        assert!(next_day.is_ok());
    });
}

#[test]
fn what_a_request_did_cost_counts_at_the_next_reservation() {
    on_each(|store| async move {
        let limits = Limits {
            usd_per_day: Some(NanoUsd::from(100)),
            requests_per_day: None,
        };
        let limits = [limits, Limits::default(), Limits::default()];
        let reserve = |most: u64| store.reserve(payers(), limits, NanoUsd::from(most), 0);
        let first = reserve(90).await.unwrap().unwrap();
        assert!(reserve(20).await.unwrap().is_err());
        let settled = store.settle(&first, NanoUsd::from(10));
        let (settled, second) = futures::future::join(settled, reserve(90)).await;
        settled.unwrap();
        assert!(second.unwrap().is_ok());
        let used = store.used_since(0).await.unwrap()[0].consumption;
        assert_eq!((used.used.get(), used.reserved.get(), used.requests), (10, 90, 2));
        assert_eq!(store.take_over(0, true).await.unwrap(), 1, "of the second alone");
    });
}

#[test]
fn what_an_ended_process_left_is_taken_over_and_nothing_of_those_that_live() {
    on_each(|store| async move {
        let other = |process: &str| Store {
            process: process.into(),
            ..store.clone()
        };
        let (ended, lives) = (other("ended"), other("lives"));
        let ada = member(&store, "ada").await;
        let project = store.add_project(&at(0), &ada, "alpha", "Alpha").await.unwrap();
        let limits = [Limits::default(); 3];
        let mut leases = Vec::new();
        for store in [&ended, &lives] {
            store.beat(0).await.unwrap();
            let aside = store.reserve(payers(), limits, NanoUsd::from(30), 0).await;
            aside.unwrap().unwrap();
            let new = AddedRun {
                study: "a".into(),
                ..AddedRun::default()
            };
            store.add_run(&at(0), &project, &ada, new).await.unwrap();
            leases.push(store.claim(0, DAY, 8).await.unwrap().unwrap().0);
        }
        store.beat(100_000).await.unwrap();
        lives.beat(100_000).await.unwrap();
        assert_eq!(
            store.take_over(100_000, false).await.unwrap(),
            0,
            "it may be slow"
        );
        assert_eq!(store.take_over(150_000, false).await.unwrap(), 1);
        let reserved = store.used_since(0).await.unwrap()[0].consumption;
        assert_eq!((reserved.used.get(), reserved.reserved.get()), (30, 30));
        let claimed = store.claim(150_000, DAY, 8).await.unwrap().unwrap();
        assert_eq!(claimed.0.id, leases[0].id);
        assert!(store.claim(150_000, DAY, 8).await.unwrap().is_none());
        assert_eq!(
            store.take_over(150_000, true).await.unwrap(),
            1,
            "who is alone takes all"
        );
    });
}

#[test]
fn limits_are_kept_and_go_with_their_key() {
    on_each(|store| async move {
        let master = MasterKey::new();
        assert!(store.is_master(&master).await.unwrap());
        store
            .add_key(&at(0), &key(&serde_json::json!({})), "sk-1", &master)
            .await
            .unwrap();
        let limits = Limits {
            usd_per_day: NanoUsd::from_usd(2.5),
            requests_per_day: None,
        };
        store
            .set_limits(&at(0), (Scope::Key, "openai"), "openai", limits)
            .await
            .unwrap();
        assert_eq!(store.limits(Scope::Key, "openai").await.unwrap(), limits);
        assert_eq!(
            store.all_limits().await.unwrap(),
            [(Scope::Key, "openai".to_owned(), limits)]
        );
        let said = store.audit(None, None, 1).await.unwrap()[0].subject.clone();
        assert_eq!(said, "openai: dollars a day $2.5, requests a day no limit");
        store.delete_key(&at(0), "openai").await.unwrap();
        assert_eq!(
            store.limits(Scope::Key, "openai").await.unwrap(),
            Limits::default()
        );
    });
}

#[test]
fn a_key_goes_where_it_was_given_for_and_opens_with_one_master_key() {
    on_each(|store| async move {
        let (master, other) = (MasterKey::new(), MasterKey::new());
        let first = serde_json::json!({});
        assert!(!store.has_master().await.unwrap());
        assert!(
            store.is_master(&master).await.unwrap(),
            "the first one becomes it"
        );
        assert!(!store.is_master(&other).await.unwrap());
        let refused = store.add_key(&at(0), &key(&first), "sk-1", &other).await;
        assert!(matches!(refused, Err(StoreError::OtherMasterKey)), "{refused:?}");
        store
            .add_key(&at(0), &key(&first), "sk-1", &master)
            .await
            .unwrap();
        let (record, sealed): (String, String) = sqlx::query_as("SELECT record, sealed FROM keys")
            .fetch_one(&store.read)
            .await
            .unwrap();
        for clear in ["sk-1", &secret::hex(b"sk-1")] {
            assert!(!record.contains(clear) && !sealed.contains(clear));
        }
        let wider = key(&serde_json::json!({ "projects": ["p", "q"] }));
        store.change_key(&at(0), &wider, None, &master).await.unwrap();
        let opened = |kept: Option<StoredKey>| kept.unwrap().open(&master).unwrap();
        assert_eq!(opened(store.key("openai").await.unwrap()), "sk-1");
        let elsewhere = key(&serde_json::json!({ "base_url": "https://evil.example" }));
        let refused = store.change_key(&at(0), &elsewhere, None, &master).await;
        assert!(matches!(refused, Err(StoreError::OtherHost)), "{refused:?}");
        store
            .change_key(&at(0), &elsewhere, Some("sk-2"), &master)
            .await
            .unwrap();
        assert_eq!(opened(store.key("openai").await.unwrap()), "sk-2");
        // Who writes the database cannot send it elsewhere either.
        let record = written(key(&first).record());
        sqlx::query("UPDATE keys SET record = $1")
            .bind(record)
            .execute(&store.write)
            .await
            .unwrap();
        assert!(store.key("openai").await.unwrap().unwrap().open(&master).is_err());
        assert!(
            store.reseal(&at(1), &master, &other).await.is_err(),
            "all or nothing"
        );
        assert!(store.is_master(&master).await.unwrap());
        store
            .change_key(&at(0), &key(&first), Some("sk-3"), &master)
            .await
            .unwrap();
        assert_eq!(store.reseal(&at(1), &master, &other).await.unwrap(), 1);
        assert!(store.is_master(&other).await.unwrap() && !store.is_master(&master).await.unwrap());
        assert_eq!(
            store.key("openai").await.unwrap().unwrap().open(&other).unwrap(),
            "sk-3"
        );
    });
}

#[test]
fn who_was_dismissed_does_not_come_back_by_an_invitation_of_their_own() {
    on_each(|store| async move {
        store.set_up(&at(0), "root", "kept").await.unwrap();
        let ada = store.add_member(&at(0), "ada", "kept", true).await.unwrap();
        let alpha = store.add_project(&at(0), &ada, "alpha", "Alpha").await.unwrap();
        let secrets = [Secret::new(""), Secret::new("")];
        let to_server = Invited::Server { is_admin: true };
        store
            .invite(&at(0), &ada, &secrets[0], to_server, DAY)
            .await
            .unwrap();
        let to_project = Invited::Project(&alpha, Role::Admin);
        store
            .invite(&at(0), &ada, &secrets[1], to_project, DAY)
            .await
            .unwrap();
        store
            .change_member(&at(1), "ada", Some(false), None)
            .await
            .unwrap();
        assert!(!store.is_invited(&secrets[0], 1).await.unwrap());
        assert!(
            store.is_invited(&secrets[1], 1).await.unwrap(),
            "still of the project"
        );
        store
            .set_role(&at(1), &alpha, "ada", Some(Role::Editor))
            .await
            .unwrap();
        assert!(!store.is_invited(&secrets[1], 1).await.unwrap());
        let log = store.audit(None, None, 2).await.unwrap();
        assert_eq!(
            (log[1].action.as_str(), log[0].action.as_str()),
            ("member.demote", "role.editor")
        );
    });
}

#[test]
fn what_a_newer_version_wrote_is_left_alone() {
    on_each(|store| async move {
        sqlx::query("UPDATE _sqlx_migrations SET version = 9000 WHERE version = 3")
            .execute(&store.write)
            .await
            .unwrap();
        let backend = store.write.acquire().await.unwrap().backend_name().to_owned();
        let migrations = if backend == "SQLite" { &SQLITE } else { &POSTGRES };
        let last = migrations.iter().map(|migration| migration.version).max();
        let refused = migrate(migrations, &store.write).await;
        assert!(
            matches!(refused, Err(StoreError::Newer { found: 9000, known }) if Some(known) == last),
            "{refused:?}"
        );
    });
}

#[tokio::test]
async fn a_wrong_address_says_what_one_looks_like() {
    for wrong in ["mysql://root:secret@host/capo", "capo.db", ""] {
        let error = Store::open(wrong).await.unwrap_err().to_string();
        assert!(
            error.contains("sqlite:PATH") && !error.contains("secret"),
            "{wrong}: {error}"
        );
    }
    let error = Store::open("sqlite:/no/such/folder/capo.db")
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("unable to open"), "{error}");
}

#[tokio::test]
async fn a_path_has_any_characters() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("100% of it? #1 ü");
    std::fs::create_dir(&odd).unwrap();
    let store = Store::in_folder(&odd).await.unwrap();
    store.answers().await.unwrap();
    assert!(odd.join("capo.db").exists());
}

#[cfg(unix)]
#[tokio::test]
async fn a_database_in_a_folder_is_nobody_elses() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let _store = Store::in_folder(folder.path()).await.unwrap();
    for name in ["capo.db", "capo.db-wal", "capo.db-shm"] {
        let file = std::fs::metadata(folder.path().join(name)).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn text_is_kept_as_it_is(title in "[^\0]{0,40}") {
        let title = format!("'; DROP TABLE members; --{title}\\");
        on_each(|store| {
            let title = title.clone();
            async move {
                let ada = member(&store, "ada").await;
                store.add_project(&at(0), &ada, "alpha", &title).await.unwrap();
                assert_eq!(store.project(&ada, "alpha").await.unwrap().0.title, title);
            }
        });
    }
}
