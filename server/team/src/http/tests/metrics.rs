//! Metrics: what is counted, and who may read it.

use axum::extract::ConnectInfo;

use super::*;
use crate::telemetry::Metrics;

const TOKEN: &str = "a-token-of-the-scraper";

impl Team {
    /// The same team behind a server that counts.
    async fn measured(token: Option<&str>) -> Self {
        let mut team = Self::new().await;
        let token = token.map(Secret::presented);
        let settings = Settings {
            master: Some(team.master.clone()),
            metrics: Some(Metrics::of_this_thread(token.as_ref())),
            ..Settings::default()
        };
        team.server = Server::new(team.store.clone(), || NOW, settings).unwrap();
        team.router = router(team.server.clone(), None);
        team
    }

    /// The figures as somebody at an address gets them.
    async fn scrape(&self, address: &str, headers: &[(&'static str, &str)]) -> (u16, String) {
        let mut request = Request::get("/metrics").body(Body::empty()).unwrap();
        let peer: std::net::SocketAddr = address.parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(peer));
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let response = self.send(request).await;
        let status = response.status().as_u16();
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }
}

#[tokio::test]
async fn without_a_token_only_this_machine_reads_what_is_counted() {
    let team = Team::measured(None).await;
    for near in ["127.0.0.1:4000", "[::1]:4000", "[::ffff:127.0.0.1]:4000"] {
        assert_eq!(team.scrape(near, &[]).await.0, 200, "{near}");
        for name in ["x-forwarded-for", "forwarded", "x-real-ip", "via"] {
            let (status, text) = team.scrape(near, &[(name, "127.0.0.1")]).await;
            assert_eq!(status, 403, "{name}");
            assert!(text.contains("--metrics-token-file"), "{text}");
        }
    }
    for (host, status) in [
        ("localhost:8787", 200),
        ("127.0.0.1:8787", 200),
        ("[::1]:8787", 200),
        ("made-to-lead-here.example:8787", 403),
        ("capo.example.org", 403),
    ] {
        let (got, _) = team.scrape("127.0.0.1:4000", &[("host", host)]).await;
        assert_eq!(got, status, "{host}");
    }
    assert_eq!(team.scrape("192.0.2.1:4000", &[]).await.0, 403);
    let silent = Team::new().await;
    assert_eq!(
        silent.scrape("127.0.0.1:4000", &[]).await.0,
        404,
        "it was not asked for"
    );
}

#[tokio::test]
async fn a_token_opens_it_from_anywhere() {
    let team = Team::measured(Some(TOKEN)).await;
    let right = format!("Bearer {TOKEN}");
    assert_eq!(
        team.scrape("192.0.2.1:4000", &[("authorization", &right)])
            .await
            .0,
        200
    );
    assert_eq!(team.scrape("127.0.0.1:4000", &[]).await.0, 401);
    let wrong = team
        .scrape("127.0.0.1:4000", &[("authorization", "Bearer x")])
        .await;
    assert_eq!(wrong.0, 401);
    assert!(!wrong.1.contains(TOKEN));
}

#[tokio::test]
async fn routes_runs_and_refusals_are_counted_and_nobody_is_named() {
    let team = Team::measured(None).await;
    assert_eq!(
        team.ask(Who::Editor, "GET", "/api/runs/RUN", Value::Null).await.0,
        200
    );
    assert_eq!(
        team.ask(Who::Nobody, "GET", "/api/runs/RUN", Value::Null).await.0,
        401
    );
    let made_up = team.request(
        Who::Nobody,
        &"BREW".parse().unwrap(),
        "/api/projects",
        &Value::Null,
    );
    assert_eq!(team.send(made_up).await.status(), 405);
    let call = json!({ "model": "llama", "messages": [] });
    let (status, refused) = team
        .ask(Who::Editor, "POST", "/api/proxy/openai/v1/chat/completions", call)
        .await;
    assert_eq!(
        (status, &refused["type"]),
        (403, &json!("/problems/model-not-allowed"))
    );
    let watch = team.request(Who::Viewer, &Method::GET, "/api/runs/RUN/events", &Value::Null);
    let watching = team.send(watch).await;
    let (_, text) = team.scrape("127.0.0.1:4000", &[]).await;
    for line in [
        r#"capo_http_request_duration_seconds_count{route="/api/runs/{run}",method="GET",status="200"} 1"#,
        r#"capo_http_request_duration_seconds_bucket{route="/api/runs/{run}",method="GET",status="401",le="600"} "#,
        r#"capo_http_request_duration_seconds_count{route="/api/projects",method="other",status="405"} 1"#,
        r#"capo_refusals_total{kind="not-signed-in"} 1"#,
        r#"capo_refusals_total{kind="model-not-allowed"} 1"#,
        "capo_runs{stage=\"paused\"} 1\n",
        "capo_runs{stage=\"running\"} 0\n",
        "capo_watchers 1\n",
        r#"capo_database_connections{pool="write",state="idle"} "#,
    ] {
        assert!(text.contains(line), "no {line} in\n{text}");
    }
    drop(watching);
    let names = ["vera", "BREW", "alpha", "First", "llama"].map(str::to_owned);
    let ids = team.ids.iter().map(|(_, id)| id.clone());
    let secrets = team.secrets.iter().map(|(_, secret)| secret.reveal().to_owned());
    for word in names.into_iter().chain(ids).chain(secrets) {
        assert!(!text.contains(&word), "{word} in\n{text}");
    }
}
