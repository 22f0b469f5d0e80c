//! How soon the team server listens, and what it costs under load: answers while many runs are under way and many watch
//! one of them, and what its proxy adds to a call.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark prints figures, or ends"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

const RUNS: u64 = 50;
const WATCHERS: usize = 500;
const READERS: usize = 4;
/// How long is measured once everybody is there.
const MEASURED: Duration = Duration::from_secs(30);
/// Calls that are made directly and through the proxy, by turns.
const CALLS: usize = 400;

const PASSWORD: &str = "correct horse battery staple";

/// The shipped study, whose models take a fiftieth of the time that they say they do.
const STUDY: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../studies/help-desk.toml"));
const LATENCY: &str = "latency = 0.02";

/// A server of its own, killed when dropped.
struct Served {
    process: Child,
    base_url: String,
    /// From its start to its word that it listens.
    started_in: Duration,
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Served {
    fn start(data: &Path) -> Self {
        let capo = env!("CARGO_BIN_EXE_capo");
        let mut admin = Command::new(capo)
            .args(["admin", "create-user", "ada", "--admin", "--data"])
            .arg(data)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("capo starts");
        let mut stdin = admin.stdin.take().expect("it is piped");
        writeln!(stdin, "{PASSWORD}").expect("it reads");
        drop(stdin);
        assert!(admin.wait().expect("it ends").success());
        let began = Instant::now();
        let mut process = Command::new(capo)
            .args(["serve", "--addr", "127.0.0.1:0", "--api-only"])
            // One member asks for everybody here.
            .args(["--runs", "64", "--runs-per-member", "64", "--rate", "0", "--data"])
            .arg(data)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("capo starts");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("it is piped");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("it says where it listens");
        let started_in = began.elapsed();
        let base_url = line
            .trim()
            .strip_prefix("listening on ")
            .expect("an address")
            .to_owned();
        Self {
            process,
            base_url,
            started_in,
        }
    }

    /// The most memory that it had, in MB.
    fn peak_memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()));
        let status = status.expect("Linux says how much memory a process has");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kib.expect("a number of kB") * 1024.0 / 1e6
    }
}

/// Somebody who is signed in, and a program of theirs.
#[derive(Clone)]
struct Member {
    http: Client,
    base_url: String,
    cookie: String,
    token: String,
}

impl Member {
    async fn sign_in(base_url: &str) -> Self {
        let mut member = Self {
            http: Client::new(),
            base_url: base_url.to_owned(),
            cookie: String::new(),
            token: String::new(),
        };
        let credentials = json!({ "name": "ada", "password": PASSWORD });
        let entered = member.post_in_page("/api/session", &credentials).send().await;
        let entered = entered.expect("an answer");
        let cookie = entered.headers()["set-cookie"].to_str().expect("text");
        member.cookie = cookie.split(';').next().expect("a cookie").to_owned();
        let new = json!({ "name": "bench", "scope": "write", "days": 1 });
        let made = granted(member.post_in_page("/api/tokens", &new)).await;
        member.token = made["secret"].as_str().expect("a token").to_owned();
        let project = json!({ "name": "bench", "title": "Bench" });
        granted(member.post_in_page("/api/projects", &project)).await;
        member
    }

    /// As the page of who is signed in does.
    fn post_in_page(&self, path: &str, body: &Value) -> RequestBuilder {
        let url = format!("{}{path}", self.base_url);
        let request = self.http.post(url).header("origin", &self.base_url);
        request.header("cookie", &self.cookie).json(body)
    }

    fn get(&self, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.base_url);
        self.http.get(url).bearer_auth(&self.token)
    }

    fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        let url = format!("{}{path}", self.base_url);
        self.http.post(url).bearer_auth(&self.token).json(body)
    }
}

async fn granted(request: RequestBuilder) -> Value {
    let answer = request.send().await.expect("an answer");
    let status = answer.status();
    let text = answer.text().await.expect("a body");
    assert!(status.is_success(), "{status}: {text}");
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

/// Milliseconds below which so many hundredths of them lie.
fn percentile(times: &mut [f64], percent: usize) -> f64 {
    times.sort_by(f64::total_cmp);
    let place = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(place).copied().unwrap_or(f64::NAN)
}

async fn timed(request: RequestBuilder) -> f64 {
    let began = Instant::now();
    let answer = request.send().await.expect("an answer");
    assert!(answer.status().is_success(), "{}", answer.status());
    answer.bytes().await.expect("a body");
    1000.0 * began.elapsed().as_secs_f64()
}

/// A provider that answers at once.
async fn provider() -> String {
    let answer = axum::Json(json!({
        "id": "1", "object": "chat.completion", "created": 1, "model": "gpt-5",
        "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "Yes." } }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 }
    }));
    let router = axum::Router::new().fallback(axum::routing::any(async move || answer.clone()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a free port");
    let address = listener.local_addr().expect("a bound address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/v1")
}

/// What a call costs directly and through the proxy: milliseconds at the median.
async fn proxied(member: &Member) -> (f64, f64) {
    let base_url = provider().await;
    let settings = json!({
        "provider": "openai-compatible", "base_url": base_url, "private_host": true, "projects": ["bench"],
        "models": [{ "name": "gpt-*", "price": { "input": 1.0, "output": 1.0 } }],
    });
    let key = json!({ "name": "stub", "settings": settings, "secret": "sk-stub" });
    granted(member.post_in_page("/api/keys", &key)).await;
    let body =
        json!({ "model": "gpt-5", "max_tokens": 5, "messages": [{ "role": "user", "content": "Yes?" }] });
    let (mut direct, mut through) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        direct.push(
            timed(
                member
                    .http
                    .post(format!("{base_url}/chat/completions"))
                    .json(&body),
            )
            .await,
        );
        through.push(timed(member.post("/api/proxy/stub/chat/completions", &body)).await);
    }
    (percentile(&mut direct, 50), percentile(&mut through, 50))
}

async fn load(served: &Served, member: &Member) {
    let mut ids = Vec::new();
    for seed in 0..RUNS {
        let study = STUDY.replace("seed = 0 ", &format!("seed = {seed} ")).replace(
            "provider = \"simulated\"",
            &format!("provider = \"simulated\"\n{LATENCY}"),
        );
        let new = json!({ "name": format!("Run {seed}"), "study": study });
        let run = granted(member.post("/api/projects/bench/runs", &new)).await;
        ids.push(run["id"].as_str().expect("an id").to_owned());
    }
    let received = Arc::new(AtomicU64::new(0));
    let path = format!("/api/runs/{}/events", ids[0]);
    // One after the other: of one member's requests the server answers fewer at a time.
    for _ in 0..WATCHERS {
        let answer = member.get(&path).send().await.expect("an answer");
        assert_eq!(answer.status(), 200, "everybody watches");
        let received = Arc::clone(&received);
        tokio::spawn(async move {
            let mut pieces = answer.bytes_stream();
            while let Some(Ok(piece)) = pieces.next().await {
                received.fetch_add(piece.len() as u64, Relaxed);
            }
        });
    }
    let before = received.load(Relaxed);
    let began = Instant::now();
    let readers = (0..READERS).map(|reader| {
        let (member, ids) = (member.clone(), ids.clone());
        tokio::spawn(async move {
            let mut times = Vec::new();
            while began.elapsed() < MEASURED {
                let run = format!("/api/runs/{}", ids[(times.len() + reader) % ids.len()]);
                for path in ["/api/runs", &run, "/api/projects"] {
                    times.push(timed(member.get(path)).await);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            times
        })
    });
    let times = futures::future::join_all(readers).await;
    let mut times: Vec<f64> = times
        .into_iter()
        .flat_map(|times| times.expect("it ends"))
        .collect();
    let streamed = (received.load(Relaxed) - before) as f64 / 1e6 / MEASURED.as_secs_f64();
    let listed = granted(member.get("/api/runs")).await;
    let runs = listed["runs"].as_array().expect("runs");
    let under_way = runs.iter().filter(|run| run["stage"] == "running").count();
    let lines: u64 = runs.iter().filter_map(|run| run["lines"].as_u64()).sum();
    println!("runs                     {RUNS}, of which {under_way} are under way at the end");
    println!("journal lines            {lines}");
    println!("watchers of one run      {WATCHERS}, who get {streamed:.1} MB/s");
    println!(
        "reads of the API         {}, {:.1} ms at the median, {:.1} ms at p99",
        times.len(),
        percentile(&mut times, 50),
        percentile(&mut times, 99)
    );
    println!("most memory              {:.0} MB", served.peak_memory());
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("threads").block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let served = Served::start(folder.path());
        println!("listens after            {:.0} ms", 1000.0 * served.started_in.as_secs_f64());
        let member = Member::sign_in(&served.base_url).await;
        let (direct, through) = proxied(&member).await;
        println!(
            "a call to a provider     {direct:.2} ms directly, {through:.2} ms through the proxy, {:.2} ms more",
            through - direct
        );
        load(&served, &member).await;
    });
}
