//! Workers that join a team server through PostgreSQL, and are killed at any moment; a database that goes away, is restarted, or
//! has no room.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

mod team_server;

#[path = "team_server/database.rs"]
mod database;
#[path = "team_server/postgres.rs"]
mod postgres;
#[path = "team_server/shared_key.rs"]
mod shared_key;
#[path = "team_server/small_disk.rs"]
mod small_disk;

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use capo_tests::arithmetic::luck;
use capo_tests::journal::{events, outcome};
use capo_tests::program::{Running, Server, command, read, run, wait_until};
use capo_tests::stub::Stub;
use capo_tests::study::Study;
use capo_tests::tools::named;
use database::{database_on, psql};
use nix::sys::signal::Signal;
use postgres::{OnSmallDisk, Postgres};
use serde_json::{Value, json};
use shared_key::{SECRET, shared_key};
use team_server::{PASSWORD, ask, create_user, serving};
use tempfile::TempDir;

/// Calls at once, as [`Study::new`] has it: so many are in flight when a worker is killed, or its database is away.
const CONCURRENCY: u64 = 4;

/// How long the stub takes for an answer.
const LATENCY: Duration = Duration::from_millis(15);

/// A server on a database that workers join.
struct Team {
    folder: TempDir,
    database: String,
    server: Server,
    token: String,
}

impl Team {
    /// With a project whose members may ask `provider` with the team's key, and a server that works on so many runs itself.
    fn new(database: String, provider: &str, runs: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let data = folder.path().join("data");
        create_user(&data, &["ada", "--admin", "--database", &database], PASSWORD).expect_code(0);
        let mut serve = serving(&data, "127.0.0.1:0");
        serve.args([
            "--runs",
            runs,
            "--lease",
            "2",
            "--rate",
            "0",
            "--database",
            &database,
        ]);
        let server = Server::start_logged(&mut serve, &folder.path().join("log"));
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

    fn shown(&self, id: &str) -> Value {
        let bearer = format!("Bearer {}", self.token);
        let headers = [("authorization", bearer.as_str())];
        let shown = ask(
            &self.server,
            "GET",
            &format!("/api/runs/{id}"),
            &headers,
            &Value::Null,
        );
        assert!(shown.body["stage"] != "failed", "{}", shown.body);
        shown.body
    }

    /// Lines of a run's journal.
    fn lines(&self, id: &str) -> u64 {
        self.shown(id)["lines"].as_u64().unwrap()
    }

    /// How often somebody began to work on a run.
    fn claims(&self, id: &str) -> u64 {
        let fence = psql(
            &self.database,
            &format!("SELECT fence FROM runs WHERE id = '{id}'"),
        );
        fence.trim_end().parse().unwrap()
    }
}

/// A study whose uninterrupted run is known, with the stub that its run on a team server asks.
struct Known {
    study: Study,
    stub: Stub,
    outcome: Vec<Value>,
    requests: u64,
}

impl Known {
    /// Of a study whose models are nowhere yet.
    fn new(study: Study) -> Self {
        let reference = Stub::start_with(LATENCY, None, study.models().script());
        let stub = Stub::start_with(LATENCY, Some(SECRET), study.models().script());
        let study = study.with("http://unused", &reference.base_url);
        let whole = study.file("whole.jsonl");
        run(&mut study.optimize_to(&whole)).expect_code(0);
        let request_log = reference.request_log();
        assert!(
            request_log.most_open as u64 <= CONCURRENCY,
            "{} at once",
            request_log.most_open
        );
        Self {
            study: study.with(&reference.base_url, &stub.base_url),
            stub,
            outcome: outcome(&events(&whole)),
            requests: request_log.requests,
        }
    }

    /// Starts it on a team server, and returns the run's id. Nothing is answered until it is let through.
    fn start(&self, team: &Team) -> String {
        self.stub.let_through(0);
        let mut start = team.command(
            &self.study,
            "optimize study.toml --remote --project sums --detach",
        );
        run(&mut start).expect_code(0).stdout.trim_end().to_owned()
    }

    /// Lets so many more questions be answered, and waits until others wait for that.
    fn go_on(&self, more: u64) {
        let before = self.stub.requests();
        self.stub.let_through(more);
        wait_until("questions that wait", || {
            let request_log = self.stub.request_log();
            request_log.requests > before && request_log.open > 0 && self.stub.is_held()
        });
    }

    /// Lets the run end, expects what the uninterrupted one says, and returns how many questions of any kind were asked again.
    fn end(&self, team: &Team, id: &str) -> u64 {
        self.stub.let_all_through();
        wait_until("the end of the run", || team.shown(id)["stage"] == "ended");
        let pull = format!("runs pull {id} --journal pulled.jsonl");
        run(&mut team.command(&self.study, &pull)).expect_code(0);
        let pulled = self.study.file("pulled.jsonl");
        run(command(["journal", "verify"]).arg(&pulled)).expect_code(0);
        assert_eq!(
            outcome(&events(&pulled)),
            self.outcome,
            "rounds and result of the uninterrupted run"
        );
        let text = read(&pulled);
        assert!(!text.contains(SECRET) && !text.contains("capo_run_"));
        self.stub.requests() - self.requests
    }
}

/// Ends a worker as a person does.
fn stop(mut worker: Running) {
    worker.signal(Signal::SIGINT);
    assert!(worker.wait(Duration::from_mins(1)).unwrap().success());
}

/// A relay to the database that can be closed: what goes over it is cut off, and nothing comes through.
struct Relay {
    address: SocketAddr,
    is_open: Arc<AtomicBool>,
    ends: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn to(database: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Self {
            address: listener.local_addr().unwrap(),
            is_open: Arc::new(AtomicBool::new(true)),
            ends: Arc::default(),
        };
        let (is_open, ends) = (Arc::clone(&relay.is_open), Arc::clone(&relay.ends));
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
        relay
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

/// A number that a variable may hold.
fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().unwrap())
}

/// So many workers are killed as `CAPO_TEST_KILLS` says, at moments that `CAPO_TEST_SEED` draws, else others each time; without
/// both six at the same moments.
#[test]
fn workers_that_are_killed_lose_nothing_and_pay_again_at_most_for_what_was_in_flight() {
    let Some(server) = named("CAPO_TEST_POSTGRES") else {
        return;
    };
    let stated = number("CAPO_TEST_KILLS");
    let times = stated.unwrap_or(6);
    let drawn = stated.map_or(0, |_| UNIX_EPOCH.elapsed().unwrap().as_millis() as u64);
    let seed = number("CAPO_TEST_SEED").unwrap_or(drawn);
    println!("{times} kills, drawn with CAPO_TEST_SEED={seed}");
    // More kills need a longer run.
    let longer = format!("rounds = 4\nrepeats = {}", 1 + times / 10);
    let known = Known::new(Study::new("http://unused").with("rounds = 4", &longer));
    let team = Team::new(database_on(&server), &known.stub.base_url, "0");
    let mut workers = [team.worker(), team.worker()];
    let id = known.start(&team);
    // With those that a kill finds waiting, it is no more in all than the run needs: every kill finds it at work.
    let share = (9 * known.requests / 10 / times).checked_sub(CONCURRENCY);
    let share = share.filter(|share| *share > 0).unwrap();
    let (mut last, mut was_starting) = (0, false);
    for kill in 0..times {
        let drawn = |what: &str| luck(&(seed, kill, what));
        let lines = team.lines(&id);
        let before = known.stub.requests();
        known.stub.let_through(share);
        // Never two in a row: who takes a run up time and again without a further line fails it.
        let is_starting = !was_starting && drawn("starting") < 0.3;
        let place = if is_starting {
            // The one that was started last, before, while or after it claims the run.
            thread::sleep(Duration::from_secs(1).mul_f64(drawn("later")));
            last
        } else {
            let questions = (share as f64 * drawn("questions")) as u64;
            wait_until("work since the last kill", || {
                known.stub.requests() >= before + questions && team.lines(&id) > lines
            });
            // While it is answered, while that is written down, or between two questions.
            thread::sleep(LATENCY.mul_f64(2.0 * drawn("later")));
            // Whichever has the run, one of the two is killed; the other one keeps it, or takes it over.
            usize::from(drawn("which") < 0.5)
        };
        workers[place].signal(Signal::SIGKILL);
        let status = workers[place].wait(Duration::from_mins(1)).unwrap();
        assert_eq!(status.signal(), Some(9), "kill {kill}: {status}");
        workers[place] = team.worker();
        (last, was_starting) = (place, is_starting);
    }
    let paid_again = known.end(&team, &id);
    // Who takes a run over pays again for what was in flight where it was before, and no worker asks more at once.
    let taken_over = team.claims(&id) - 1;
    let most = CONCURRENCY * taken_over;
    let requests = known.requests;
    println!("taken over {taken_over} times: {paid_again} of {requests} calls were in flight and paid again");
    assert!(
        paid_again <= most,
        "{paid_again} calls were paid again, not {most}; CAPO_TEST_SEED={seed}"
    );
    for worker in workers {
        stop(worker);
    }
}

#[test]
fn a_database_that_is_away_for_a_while_ends_no_run_and_has_at_most_what_was_in_flight_paid_again() {
    let Some(server) = named("CAPO_TEST_POSTGRES") else {
        return;
    };
    let known = Known::new(Study::new("http://unused"));
    let database = database_on(&server);
    let (user, rest) = database.split_once('@').unwrap();
    let (address, name) = rest.split_once('/').unwrap();
    let relay = Relay::to(address.parse().unwrap());
    let through = format!("{user}@{}/{name}", relay.address);
    let team = Team::new(through, &known.stub.base_url, "0");
    let worker = team.worker();
    let id = known.start(&team);
    // Shorter than the patience of who writes, and longer: then it is claimed anew.
    let absences = [Duration::from_secs(1), Duration::from_secs(10)];
    for absence in absences {
        known.go_on(known.requests / 4);
        relay.close();
        known.stub.let_through(CONCURRENCY);
        thread::sleep(absence);
        relay.open();
    }
    let paid_again = known.end(&team, &id);
    let most = CONCURRENCY * absences.len() as u64;
    assert!(
        paid_again <= most,
        "{paid_again} calls were paid again, not {most}"
    );
    stop(worker);
}

#[test]
fn a_database_that_is_restarted_ends_no_run_and_has_at_most_what_was_in_flight_paid_again() {
    let Some(postgres) = Postgres::to_restart() else {
        return;
    };
    let restarts = 2;
    // A worker has the run, and then the server itself.
    for runs in ["0", "1"] {
        let known = Known::new(Study::new("http://unused"));
        let team = Team::new(database_on(postgres.address()), &known.stub.base_url, runs);
        let worker = (runs == "0").then(|| team.worker());
        let id = known.start(&team);
        for _ in 0..restarts {
            let before = known.stub.requests();
            known.stub.let_through(known.requests / 4);
            // In the midst of them: what is answered meanwhile is written down once it is back.
            wait_until("half of the questions", || {
                known.stub.requests() > before + known.requests / 8
            });
            postgres.restart();
        }
        let paid_again = known.end(&team, &id);
        let most = CONCURRENCY * restarts;
        assert!(
            paid_again <= most,
            "--runs {runs}: {paid_again} calls were paid again, not {most}"
        );
        if let Some(worker) = worker {
            stop(worker);
        }
    }
}

#[test]
fn a_database_on_a_full_disk_ends_no_run_and_has_at_most_what_was_in_flight_paid_again() {
    let Some(postgres) = OnSmallDisk::start() else {
        return;
    };
    let known = Known::new(Study::new("http://unused"));
    let team = Team::new(postgres.database.clone(), &known.stub.base_url, "1");
    let id = known.start(&team);
    known.go_on(known.requests / 4);
    // Room for long lines alone, which lie apart.
    psql(
        &team.database,
        "INSERT INTO lines SELECT id, 99999, (SELECT string_agg(md5(number::text), '') FROM generate_series(1, 2048) AS number) \
         FROM runs; DELETE FROM lines WHERE line = 99999",
    );
    psql(&team.database, "VACUUM (TRUNCATE OFF) lines");
    postgres.fill();
    // Of these some find room in pages that are there.
    known.stub.let_through(known.requests / 2);
    let is_left = "SELECT lease_until < 1000 * extract(epoch FROM clock_timestamp()) FROM runs";
    wait_until("nobody to work on it", || {
        psql(&team.database, is_left).trim_end() == "t"
    });
    let bearer = format!("Bearer {}", team.token);
    let add = |text: &str| {
        let path = "/api/projects/sums/prompts/long/versions";
        let headers = [("authorization", bearer.as_str())];
        ask(&team.server, "POST", path, &headers, &json!({ "text": text })).status
    };
    // What repeats itself takes up less.
    let long: String = (0..4_000).map(|number| luck(&number).to_string()).collect();
    assert_eq!(add(&long), 507);
    // Not for want of room for the claim itself.
    psql(&team.database, "UPDATE runs SET claims = claims");
    let claims = team.claims(&id);
    wait_until("it to be refused to who would take it up", || {
        let log = read(&team.folder.path().join("log"));
        log.matches("no run could be claimed").count() > 5
    });
    assert_eq!(team.claims(&id), claims);
    assert_eq!(team.shown(&id)["stage"], "running");
    postgres.clear();
    let paid_again = known.end(&team, &id);
    let most = CONCURRENCY * (team.claims(&id) - 1);
    assert!(
        paid_again <= most,
        "{paid_again} calls were paid again, not {most}"
    );
    assert_eq!(add(&long), 201);
}
