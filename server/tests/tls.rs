//! `capo serve` with a certificate of its own.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use capo_tests::program::{Server, command, run};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::json;
use tempfile::TempDir;

const PASSWORD: &str = "correct horse battery staple";

/// A certificate for this machine that was valid until the end of a year, and its key, both in PEM.
fn certificate(until: i32) -> (String, String) {
    let mut params = CertificateParams::new(["localhost".into(), "127.0.0.1".into()]).unwrap();
    params.not_before = date_time_ymd(2001, 1, 1);
    params.not_after = date_time_ymd(until, 12, 31);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

fn put(folder: &Path, (certificate, key): &(String, String)) {
    std::fs::write(folder.join("cert.pem"), certificate).unwrap();
    std::fs::write(folder.join("key.pem"), key).unwrap();
}

fn serving(folder: &Path) -> Command {
    let mut serve = command(["serve", "--addr", "127.0.0.1:0", "--api-only", "--data"]);
    serve.arg(folder.join("data"));
    serve.arg("--tls-cert").arg(folder.join("cert.pem"));
    serve.arg("--tls-key").arg(folder.join("key.pem"));
    serve
}

/// A client with no connection yet that trusts one certificate.
fn client((certificate, _): &(String, String)) -> reqwest::Client {
    let certificate = reqwest::Certificate::from_pem(certificate.as_bytes()).unwrap();
    reqwest::Client::builder()
        .tls_certs_only([certificate])
        .no_proxy()
        .build()
        .unwrap()
}

async fn is_alive(server: &Server, certificate: &(String, String)) -> bool {
    let asked = client(certificate).get(format!("{}/healthz", server.base_url));
    asked.send().await.is_ok_and(|answer| answer.status() == 200)
}

#[tokio::test]
async fn cookies_and_headers_are_those_of_https_and_a_new_certificate_is_taken_up() {
    let folder = TempDir::new().unwrap();
    let first = certificate(2199);
    put(folder.path(), &first);
    let mut server = Server::start(&mut serving(folder.path()));
    assert!(server.base_url.starts_with("https://127.0.0.1:"));
    let line = server.next_line();
    let call = format!(
        "POST {}/api/set-up with name, password and the secret ",
        server.base_url
    );
    let (_, secret) = line.split_once(&call).unwrap();

    // Who connects and says nothing keeps nobody waiting; who speaks no TLS gets nothing.
    let address = server.base_url.trim_start_matches("https://").to_owned();
    let silent = TcpStream::connect(&address).unwrap();
    let plain = reqwest::get(format!("http://{address}/healthz")).await;
    assert!(plain.is_err());
    let set_up = json!({ "secret": secret, "name": "ada", "password": PASSWORD });
    let asked = client(&first).post(format!("{}/api/set-up", server.base_url));
    let made = asked.json(&set_up).send().await.unwrap();
    assert_eq!(made.status(), 201);
    assert_eq!(made.headers()["strict-transport-security"], "max-age=63072000");
    let cookie = made.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(
        cookie.starts_with("__Host-capo_session=") && cookie.contains("Secure"),
        "{cookie}"
    );
    let asked = client(&first).get(format!("{}/api/sessions", server.base_url));
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let sessions = asked.header("cookie", cookie).send().await.unwrap();
    let sessions: serde_json::Value = sessions.json().await.unwrap();
    assert_eq!(sessions[0]["address"], "127.0.0.1", "{sessions}");

    let second = certificate(2199);
    put(folder.path(), &second);
    assert!(is_alive(&server, &first).await, "not before it is told");
    server.hang_up();
    for _ in 0..100 {
        if is_alive(&server, &second).await {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(is_alive(&server, &second).await && !is_alive(&server, &first).await);
    put(folder.path(), &certificate(2002));
    server.hang_up();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(
        is_alive(&server, &second).await,
        "one that has ended is not taken up"
    );
    drop(silent);
    server.stop();
}

#[test]
fn files_that_do_not_do_are_named() {
    let folder = TempDir::new().unwrap();
    let (first, second) = (certificate(2199), certificate(2199));
    let refused = |parts: &[&str]| {
        let ended = run(serving(folder.path()).stdout(Stdio::null())).expect_code(1);
        assert!(!ended.stderr.contains("PRIVATE KEY-----\n"), "{}", ended.stderr);
        ended.expect_error(parts);
    };
    refused(&["the certificate", "cert.pem", "No such file"]);
    std::fs::write(folder.path().join("cert.pem"), &first.0).unwrap();
    refused(&["the private key", "key.pem", "No such file"]);
    put(folder.path(), &(first.0.clone(), second.1.clone()));
    refused(&["key.pem is not that of the certificate", "cert.pem"]);
    put(folder.path(), &(first.1.clone(), first.0.clone()));
    refused(&["cert.pem", "-----BEGIN CERTIFICATE-----"]);
    put(folder.path(), &(first.0.clone(), first.0));
    refused(&["key.pem", "-----BEGIN PRIVATE KEY-----"]);
    put(folder.path(), &certificate(2002));
    refused(&["cert.pem ended on 2002-12-31", "get another one"]);
    let mut late = CertificateParams::new(["localhost".into()]).unwrap();
    late.not_before = date_time_ymd(2198, 1, 1);
    late.not_after = date_time_ymd(2199, 1, 1);
    let key = KeyPair::generate().unwrap();
    let late = late.self_signed(&key).unwrap();
    put(folder.path(), &(late.pem(), key.serialize_pem()));
    refused(&["cert.pem is valid from 2198-01-01"]);

    let mut half = command(["serve", "--api-only", "--tls-cert", "cert.pem"]);
    run(&mut half).expect_code(64).expect_error(&["--tls-key"]);
    run(serving(folder.path()).args(["--public-url", "http://capo.example.org"]))
        .expect_code(64)
        .expect_error(&["--public-url must begin with https://"]);
    let mut open = command(["serve", "--metrics", "--public-url", "https://capo.example.org"]);
    run(&mut open)
        .expect_code(64)
        .expect_error(&["--metrics-token-file"]);
    let token = folder.path().join("token");
    let mut file = std::fs::File::create(&token).unwrap();
    writeln!(file, "short-secret").unwrap();
    let mut short = command(["serve", "--api-only", "--metrics", "--metrics-token-file"]);
    let short = run(short.arg(&token)).expect_code(1);
    assert!(!short.stderr.contains("short-secret"));
    short.expect_error(&["at least 16"]);
}
