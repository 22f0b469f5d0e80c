//! Bounds on what is asked at a time.

use std::num::NonZeroU32;

use super::*;
use crate::http::bounds::WATCHERS;
use crate::store::tests::on_each_database;

impl Team {
    /// The same team behind a server that answers one request a second of each caller.
    async fn bounded(store: Store) -> Self {
        let mut team = Self::on(store).await;
        let settings = Settings {
            rate: NonZeroU32::new(1),
            is_behind_proxy: true,
            ..Settings::default()
        };
        team.server = Server::new(team.store.clone(), || NOW, settings).unwrap();
        team.router = router(team.server.clone(), None);
        team
    }

    async fn from(&self, address: &str, mut request: Request<Body>) -> Response {
        let headers = request.headers_mut();
        headers.insert("x-forwarded-for", address.parse().unwrap());
        self.send(request).await
    }

    fn listing(&self, who: Who) -> Request<Body> {
        self.request(who, &Method::GET, "/api/projects", &Value::Null)
    }

    async fn once_watched_by(&self, watchers: usize) {
        for _ in 0..500 {
            if self.server.watching() == watchers {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{} watch, not {watchers}", self.server.watching());
    }

    /// Requests that are answered until one is refused.
    async fn until_refused(&self, address: &str, request: impl Fn(u32) -> Request<Body>) -> (u32, Response) {
        for count in 0..500 {
            let response = self.from(address, request(count)).await;
            if response.status() == 429 {
                return (count, response);
            }
        }
        panic!("nothing was refused");
    }
}

on_each_database!(who_asks_too_fast_is_told_when_to_come_back);
async fn who_asks_too_fast_is_told_when_to_come_back(store: Store) {
    let team = Team::bounded(store).await;
    let (answered, refused) = team
        .until_refused("192.0.2.1", |_| team.listing(Who::Viewer))
        .await;
    assert!(answered >= 4, "{answered}");
    assert_eq!(refused.headers()["retry-after"], "1");
    assert_eq!(refused.headers()["content-type"], "application/problem+json");
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(refused.headers()[name], value);
    }
    let problem = document(refused).await;
    assert_eq!(problem["type"], "/problems/too-many-requests");
    // Others at the same address may still, and a call to a model has limits of its own.
    let other = team.from("192.0.2.1", team.listing(Who::Editor)).await;
    assert_eq!(other.status(), 200);
    let call = team.request(
        Who::Viewer,
        &Method::GET,
        "/api/proxy/openai/v1/models",
        &Value::Null,
    );
    assert_ne!(team.from("192.0.2.1", call).await.status(), 429);
}

on_each_database!(made_up_tokens_count_with_the_address_that_they_come_from);
async fn made_up_tokens_count_with_the_address_that_they_come_from(store: Store) {
    let team = Team::bounded(store).await;
    let (answered, _) = team
        .until_refused("2001:db8::1", |count| {
            let mut request = team.listing(Who::Nobody);
            let token = format!("Bearer capo_{count}");
            request
                .headers_mut()
                .insert("authorization", token.parse().unwrap());
            request
        })
        .await;
    assert!(answered >= 16, "{answered}");
    // Of IPv6 the whole network of a subscriber.
    let neighbour = team
        .until_refused("2001:db8::2", |_| team.listing(Who::Viewer))
        .await;
    assert!(neighbour.0 < 4, "{}", neighbour.0);
    let elsewhere = team.from("2001:db8:1::1", team.listing(Who::Editor)).await;
    assert_eq!(elsewhere.status(), 200);
    let mut alive = Request::get("/healthz").body(Body::empty()).unwrap();
    for _ in 0..50 {
        let response = team.from("2001:db8::1", alive).await;
        assert_eq!(response.status(), 200);
        alive = Request::get("/healthz").body(Body::empty()).unwrap();
    }
}

on_each_database!(so_many_watch_and_no_more_and_nobody_more_than_a_share);
async fn so_many_watch_and_no_more_and_nobody_more_than_a_share(store: Store) {
    let team = Team::on(store).await;
    let bounds = &team.server.0.bounds;
    let watch = |who| team.request(who, &Method::GET, "/api/runs/RUN/events", &Value::Null);
    let vera = team.store.member("vera").await.unwrap().id;
    let mut places: Vec<_> = (1..WATCHERS / 4).map(|_| bounds.watch(&vera).unwrap()).collect();
    let last = team.send(watch(Who::Viewer)).await;
    assert_eq!(last.status(), 200);
    let refused = team.send(watch(Who::Viewer)).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "2");
    assert_eq!(document(refused).await["type"], "/problems/busy");
    drop(last);
    team.once_watched_by(places.len()).await;
    let again = team.send(watch(Who::Viewer)).await;
    assert_eq!(again.status(), 200, "who goes makes room");
    places.extend((0..).map_while(|who| bounds.watch(&format!("{}", who % 8)).ok()));
    assert_eq!(team.send(watch(Who::Editor)).await.status(), 503, "all are taken");
}

on_each_database!(a_member_whose_requests_hang_keeps_nobody_else_out);
async fn a_member_whose_requests_hang_keeps_nobody_else_out(store: Store) {
    let team = Team::on(store).await;
    let bounds = &team.server.0.bounds;
    let vera = team.store.member("vera").await.unwrap().id;
    let held: Vec<_> = (0..).map_while(|_| bounds.attend(&vera).ok()).collect();
    assert_eq!(team.send(team.listing(Who::Viewer)).await.status(), 503);
    assert_eq!(team.send(team.listing(Who::Editor)).await.status(), 200);
    drop(held);
    assert_eq!(team.send(team.listing(Who::Viewer)).await.status(), 200);
}

on_each_database!(who_takes_nothing_of_what_they_watch_loses_their_place);
async fn who_takes_nothing_of_what_they_watch_loses_their_place(store: Store) {
    let team = Team::on(store).await;
    let run = &team.ids.iter().find(|(name, _)| *name == "RUN").unwrap().1;
    let kept = team.store.run(run).await.unwrap();
    let member = team.store.member("ada").await.unwrap();
    let (project, _) = team.store.project(&member, &kept.project_name).await.unwrap();
    let long = AddedRun {
        lines: (0..5000)
            .map(|line| format!("{line}{}", " ".repeat(100)))
            .collect(),
        stage: Some(capo_api::RunStage::Paused),
        ..AddedRun::default()
    };
    let long = team
        .store
        .add_run(&by("ada"), &project, &member, long)
        .await
        .unwrap();
    let path = format!("/api/runs/{}/events", long.id);
    let stalled = team
        .send(team.request(Who::Viewer, &Method::GET, &path, &Value::Null))
        .await;
    assert_eq!((stalled.status().as_u16(), team.server.watching()), (200, 1));
    team.once_watched_by(0).await;
    drop(stalled);
}

#[tokio::test]
async fn a_request_that_is_never_answered_is_given_up() {
    let team = Team::empty().await;
    // No password is hashed any more.
    team.server.0.hashing.forget_permits(HASHES);
    let first = json!({ "secret": team.set_up.0.reveal(), "name": "ada", "password": PASSWORD });
    let mut asked = std::pin::pin!(team.ask(Who::Nobody, "POST", "/api/set-up", first));
    // What the database is asked before takes its own time.
    let soon = tokio::time::timeout(Duration::from_secs(1), &mut asked).await;
    assert!(soon.is_err(), "{soon:?}");
    tokio::time::pause();
    let paused = tokio::time::Instant::now();
    let (status, problem) = asked.await;
    assert_eq!((status, &problem["type"]), (503, &json!("/problems/unavailable")));
    assert!(paused.elapsed() <= Duration::from_secs(30));
}
