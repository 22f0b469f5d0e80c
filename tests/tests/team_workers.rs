//! Workers that join a team server through PostgreSQL, and are killed at any moment.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

#[expect(dead_code, reason = "other tests use other parts")]
mod team_server;

#[path = "team_server/shared_key.rs"]
mod shared_key;

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use capo_tests::arithmetic::luck;
use capo_tests::journal::{events, outcome};
use capo_tests::program::{Running, Server, command, run, wait_until};
use capo_tests::stub::{Question, Stub};
use capo_tests::study::Study;
use nix::sys::signal::Signal;
use shared_key::{SECRET, shared_key};
use team_server::{PASSWORD, create_user};
use tempfile::TempDir;

/// Calls at once, as [`Study::new`] has it.
const CONCURRENCY: u64 = 4;

/// A new database on the server that `CAPO_TEST_POSTGRES` names.
///
/// # Panics
/// Where continuous integration names none.
fn database() -> Option<String> {
    let Ok(server) = std::env::var("CAPO_TEST_POSTGRES") else {
        assert!(std::env::var_os("CI").is_none(), "no CAPO_TEST_POSTGRES");
        println!("skipped: CAPO_TEST_POSTGRES names no server");
        return None;
    };
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_micros();
    let name = format!("capo_workers_{now}");
    let made = Command::new("psql")
        .args([
            &format!("{server}postgres"),
            "--quiet",
            "--command",
            &format!("CREATE DATABASE {name}"),
        ])
        .status();
    assert!(made.unwrap().success());
    Some(format!("{server}{name}"))
}

/// A server that works on no run itself, on a database that workers join.
struct Team {
    folder: TempDir,
    database: String,
    server: Server,
    token: String,
}

impl Team {
    /// With a project whose members may ask `provider` with the team's key.
    fn new(database: String, provider: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let data = folder.path().join("data");
        create_user(&data, &["ada", "--admin", "--database", &database], PASSWORD).expect_code(0);
        let mut serve = command([
            "serve",
            "--addr",
            "127.0.0.1:0",
            "--api-only",
            "--runs",
            "0",
            "--data",
        ]);
        serve.arg(&data).args(["--database", &database]);
        let server = Server::start(&mut serve);
        let token = shared_key(&server, provider);
        Self {
            folder,
            database,
            server,
            token,
        }
    }

    /// Another worker, as it runs on another machine.
    fn worker(&self) -> Running {
        let key = self.folder.path().join("data/master.key");
        let mut worker = command([
            "worker",
            "--lease",
            "2",
            "--database",
            &self.database,
            "--master-key-file",
        ]);
        let files = self.folder.path().join("data/files");
        Running::start(worker.arg(key).arg("--files").arg(files))
    }

    /// A command of the member, in the folder of a study.
    fn command(&self, study: &Study, line: &str) -> Command {
        let mut command = command(line.split_whitespace());
        command
            .current_dir(study.file("."))
            .env("CAPO_TOKEN", &self.token)
            .env("CAPO_REMOTE", &self.server.base_url);
        command
    }

    fn is_over(&self, study: &Study, id: &str) -> bool {
        let shown = run(&mut self.command(study, &format!("runs show {id} --json"))).expect_code(0);
        let stage = shown.json()["stage"].clone();
        assert!(stage != "failed", "{}", shown.stdout);
        stage == "ended"
    }
}

/// A way to the database that can be closed: what goes over it is cut off, as when the database is restarted.
struct Way {
    address: SocketAddr,
    is_open: Arc<AtomicBool>,
    ends: Arc<Mutex<Vec<TcpStream>>>,
}

impl Way {
    fn to(database: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let way = Self {
            address: listener.local_addr().unwrap(),
            is_open: Arc::new(AtomicBool::new(true)),
            ends: Arc::default(),
        };
        let (is_open, ends) = (Arc::clone(&way.is_open), Arc::clone(&way.ends));
        thread::spawn(move || {
            for here in listener.incoming().flatten() {
                let there = TcpStream::connect(database).unwrap();
                let mut ends = ends.lock().unwrap();
                if !is_open.load(SeqCst) {
                    continue;
                }
                for (from, to) in [(&here, &there), (&there, &here)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(move || {
                        // Whoever goes away closes the other end, too.
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                ends.extend([here, there]);
            }
        });
        way
    }

    fn open(&self) {
        self.is_open.store(true, SeqCst);
    }

    fn close(&self) {
        let mut ends = self.ends.lock().unwrap();
        self.is_open.store(false, SeqCst);
        for end in ends.drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

/// How often a worker is killed: `CAPO_TEST_KILLS`, six unless stated.
fn kills() -> u64 {
    std::env::var("CAPO_TEST_KILLS").map_or(6, |kills| kills.parse().unwrap())
}

#[test]
fn workers_that_are_killed_lose_nothing_and_pay_again_at_most_for_what_was_in_flight() {
    let Some(database) = database() else { return };
    let study = Study::new("http://unused");
    let latency = Duration::from_millis(15);
    let reference = Stub::start_with(latency, None, study.models().script());
    let stub = Stub::start_with(latency, Some(SECRET), study.models().script());
    let study = study.with("http://unused", &reference.base_url);
    let whole = study.file("whole.jsonl");
    run(&mut study.optimize_to(&whole)).expect_code(0);
    let study = study.with(&reference.base_url, &stub.base_url);
    let requests = reference.requests();

    let team = Team::new(database, &stub.base_url);
    let mut workers = [team.worker(), team.worker()];
    let started = run(&mut team.command(&study, "optimize study.toml --remote --project sums --detach"));
    let id = started.clone().expect_code(0).stdout.trim_end().to_owned();
    let times = kills();
    stub.admit(requests / 10);
    for kill in 0..times {
        let before = stub.requests();
        wait_until("questions that wait", || {
            let books = stub.books();
            books.requests > before && books.open > 0 && stub.is_held()
        });
        // Whichever has the run, one of the two is killed; the other one keeps it, or takes it over.
        let place = usize::from(luck(&("which", kill)) < 0.5);
        workers[place].signal(Signal::SIGKILL);
        workers[place].wait(Duration::from_mins(1)).unwrap();
        workers[place] = team.worker();
        // No more in all than the run needs, so that every kill finds it at work.
        stub.admit((0.8 * requests as f64 / times as f64) as u64);
    }
    stub.admit_all();
    wait_until("the end of the run", || team.is_over(&study, &id));

    run(&mut team.command(&study, &format!("runs pull {id} --journal pulled.jsonl"))).expect_code(0);
    let pulled = study.file("pulled.jsonl");
    run(command(["journal", "verify"]).arg(&pulled)).expect_code(0);
    assert_eq!(
        outcome(&events(&pulled)),
        outcome(&events(&whole)),
        "rounds and result of the uninterrupted run"
    );
    let paid_again = stub.books().repeats(Question::is_rollout);
    assert!(
        paid_again <= times * CONCURRENCY,
        "{paid_again} rollouts were paid again at {times} kills"
    );
    println!("{times} kills: {paid_again} rollouts were in flight and paid again, of {requests} requests");
    let text = std::fs::read_to_string(&pulled).unwrap();
    assert!(!text.contains(SECRET) && !text.contains("capo_run_"));
    for mut worker in workers {
        worker.signal(Signal::SIGINT);
        assert!(worker.wait(Duration::from_mins(1)).unwrap().success());
    }
}

#[test]
fn a_database_that_is_away_for_a_while_ends_no_run_and_has_at_most_what_was_in_flight_paid_again() {
    let Some(database) = database() else { return };
    let study = Study::new("http://unused");
    let latency = Duration::from_millis(15);
    let reference = Stub::start_with(latency, None, study.models().script());
    let stub = Stub::start_with(latency, Some(SECRET), study.models().script());
    let study = study.with("http://unused", &reference.base_url);
    let whole = study.file("whole.jsonl");
    run(&mut study.optimize_to(&whole)).expect_code(0);
    let study = study.with(&reference.base_url, &stub.base_url);
    let requests = reference.requests();

    let (user, rest) = database.split_once('@').unwrap();
    let (address, name) = rest.split_once('/').unwrap();
    let way = Way::to(address.parse().unwrap());
    let through = format!("{user}@{}/{name}", way.address);
    let team = Team::new(through, &stub.base_url);
    let mut worker = team.worker();
    let started = run(&mut team.command(&study, "optimize study.toml --remote --project sums --detach"));
    let id = started.clone().expect_code(0).stdout.trim_end().to_owned();
    // Shorter than the patience of who writes, and longer: then it is claimed anew.
    let absences = [Duration::from_secs(1), Duration::from_secs(10)];
    for absence in absences {
        let before = stub.requests();
        stub.admit(requests / 4);
        wait_until("questions that wait", || {
            let books = stub.books();
            books.requests > before && books.open > 0 && stub.is_held()
        });
        way.close();
        stub.admit(CONCURRENCY);
        thread::sleep(absence);
        way.open();
    }
    stub.admit_all();
    wait_until("the end of the run", || team.is_over(&study, &id));

    run(&mut team.command(&study, &format!("runs pull {id} --journal pulled.jsonl"))).expect_code(0);
    let pulled = study.file("pulled.jsonl");
    run(command(["journal", "verify"]).arg(&pulled)).expect_code(0);
    assert_eq!(
        outcome(&events(&pulled)),
        outcome(&events(&whole)),
        "rounds and result of the uninterrupted run"
    );
    let paid_again = stub.books().repeats(Question::is_rollout);
    let most = absences.len() as u64 * CONCURRENCY;
    assert!(
        paid_again <= most,
        "{paid_again} rollouts were paid again, not {most}"
    );
    worker.signal(Signal::SIGINT);
    assert!(worker.wait(Duration::from_mins(1)).unwrap().success());
}
