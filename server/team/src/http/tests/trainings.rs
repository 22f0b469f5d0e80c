//! Trainings over HTTP: what is started, told, watched and fetched.

use std::io::Read as _;

use axum::Extension;
use capo_api::{RunStage, TrainingKind, TrainingStart, TrainingState};

use super::*;
use crate::store::tests::on_each_database;
use crate::store::{AddedTraining, NotKept, Project, Training};
use crate::trainings::Offered;

/// A run that trainings learn from, and a training that has a checkpoint.
pub(super) async fn added(team: &Team, project: &Project, member: &Member) -> (String, Training) {
    let store = &team.store;
    let run = AddedRun {
        name: "Learned from".into(),
        study: STUDY.into(),
        stage: Some(RunStage::Ended),
        lines: vec!["{}".into()],
        ..AddedRun::default()
    };
    let run = store.add_run(&by("ada"), project, member, run).await.unwrap().id;
    let new = AddedTraining {
        name: "Nightly".into(),
        kind: TrainingKind::Sft,
        study: STUDY.into(),
        files: std::collections::BTreeMap::new(),
        settings: String::new(),
        start: TrainingStart::Model { name: "nano".into() },
        runs: vec![run.clone()],
        full: true,
        run: None,
    };
    let training = store
        .add_training(&by("ada"), project, member, new)
        .await
        .unwrap();
    let policy = team
        .trainings
        .path()
        .join(&training.id)
        .join("checkpoints/2/policy");
    std::fs::create_dir_all(&policy).unwrap();
    std::fs::write(policy.join("config.json"), "{}\n").unwrap();
    (run, training)
}

impl Team {
    async fn start_training(&self, change: impl FnOnce(&mut Value)) -> (u16, Value) {
        let mut new =
            json!({ "name": "Second", "kind": "sft", "start": { "from": "fresh" }, "runs": ["LEARNED"] });
        change(&mut new);
        self.ask(Who::Editor, "POST", "/api/projects/alpha/trainings", new)
            .await
    }

    async fn bytes(&self, path: &str) -> (u16, Vec<u8>) {
        let response = self
            .send(self.request(Who::Viewer, &Method::GET, path, &Value::Null))
            .await;
        let status = response.status().as_u16();
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, bytes.to_vec())
    }
}

#[tokio::test]
async fn a_training_starts_from_what_is_there() {
    let team = Team::new().await;
    let (status, started) = team.start_training(|_| {}).await;
    assert_eq!((status, &started["state"]), (201, &json!("queued")), "{started}");
    let (status, detail) = team
        .ask(
            Who::Viewer,
            "GET",
            &format!(
                "/api/projects/alpha/trainings/{}",
                started["id"].as_str().unwrap()
            ),
            Value::Null,
        )
        .await;
    assert_eq!(
        (status, &detail["study"]),
        (200, &json!(STUDY)),
        "that of the run"
    );
    let (status, later) = team
        .start_training(|new| new["start"] = json!({ "from": "training", "training": "TRAINING", "step": 2 }))
        .await;
    assert_eq!((status, &later["start"]["step"]), (201, &json!(2)), "{later}");
    let grpo = |new: &mut Value| {
        new["kind"] = json!("grpo");
        new["study"] = json!(STUDY);
    };
    let (status, searching) = team.start_training(grpo).await;
    assert_eq!(status, 201, "{searching}");
    let search = searching["run"].as_str().unwrap();
    let (_, run) = team
        .ask(Who::Viewer, "GET", &format!("/api/runs/{search}"), Value::Null)
        .await;
    assert_eq!(
        (&run["name"], &run["stage"]),
        (&json!("Second"), &json!("queued"))
    );
    for (method, path) in [
        ("POST", format!("/api/runs/{search}/orders")),
        ("DELETE", format!("/api/runs/{search}")),
    ] {
        let body = if method == "POST" {
            json!({ "order": "resume" })
        } else {
            Value::Null
        };
        let (status, problem) = team.ask(Who::Editor, method, &path, body).await;
        assert!(
            status == 409 && problem["detail"].as_str().unwrap().contains("training Second"),
            "{problem}"
        );
    }

    for (what, value, said) in [
        ("runs", json!([]), "`runs`"),
        ("runs", json!(["RUN"]), "no journal"),
        ("runs", json!(["0"]), "no run 0"),
        (
            "start",
            json!({ "from": "model", "name": "../../etc" }),
            "no model",
        ),
        (
            "start",
            json!({ "from": "training", "training": "0" }),
            "no training 0",
        ),
        (
            "start",
            json!({ "from": "training", "training": "TRAINING", "step": 3 }),
            "step 3",
        ),
        ("start", json!({ "from": "fresh", "layers": 9000 }), "`layers`"),
        (
            "start",
            json!({ "from": "fresh", "hidden": 4096, "layers": 64 }),
            "million weights",
        ),
        ("start", json!({ "from": "afar" }), "afar"),
        ("study", json!(""), "empty"),
    ] {
        let (status, problem) = team.start_training(|new| new[what] = value.clone()).await;
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(
            status == 422 && detail.contains(said),
            "{what} {value}: {status} {detail}"
        );
    }
    // Of nothing else there is a study to search in.
    let (status, of_run) = team.start_training(|new| new["kind"] = json!("grpo")).await;
    assert_eq!(status, 201, "{of_run}");
    let nowhere = |new: &mut Value| {
        new["kind"] = json!("grpo");
        new["runs"] = json!([]);
        new["start"] = json!({ "from": "training", "training": "TRAINING" });
    };
    let (status, problem) = team.start_training(nowhere).await;
    assert!(
        status == 422 && problem["detail"].as_str().unwrap().contains("in whose study"),
        "{problem}"
    );
    // Nor is the study what was checked, where a file of its data takes its place.
    for path in ["../rows.csv", "study.toml"] {
        let outside = |new: &mut Value| {
            grpo(new);
            new["files"] = json!({ path: "0" });
        };
        let (status, problem) = team.start_training(outside).await;
        assert!(
            status == 422 && problem["detail"].as_str().unwrap().contains("below"),
            "{problem}"
        );
    }
}

#[tokio::test]
async fn a_checkpoint_is_an_archive() {
    let team = Team::new().await;
    let (status, bytes) = team
        .bytes("/api/projects/alpha/trainings/TRAINING/checkpoints/2")
        .await;
    assert_eq!(status, 200);
    let mut archive = tar::Archive::new(bytes.as_slice());
    let mut files = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        files.push((entry.path().unwrap().display().to_string(), text));
    }
    files.retain(|(_, text)| !text.is_empty());
    let [(path, text)] = files.as_slice() else {
        panic!("{files:?}");
    };
    assert!(
        path.starts_with("rewriter-") && path.ends_with("-2/config.json") && text == "{}\n",
        "{path}"
    );
    let (status, _) = team
        .bytes("/api/projects/alpha/trainings/TRAINING/checkpoints/3")
        .await;
    assert_eq!(status, 404);
    // Of another project nobody gets anything, whatever they know.
    let (status, _) = team
        .ask(
            Who::Stranger,
            "GET",
            "/api/projects/beta/trainings/TRAINING",
            Value::Null,
        )
        .await;
    assert_eq!(status, 404);
    let folder = team
        .trainings
        .path()
        .join(&team.ids.iter().find(|(name, _)| *name == "TRAINING").unwrap().1);
    assert!(folder.is_dir());
    let (status, _) = team
        .ask(
            Who::Editor,
            "DELETE",
            "/api/projects/alpha/trainings/TRAINING",
            Value::Null,
        )
        .await;
    assert!(status == 204 && !folder.exists());
}

#[tokio::test]
async fn a_run_asks_the_rewriter_of_a_training_of_its_project() {
    let team = Team::new().await;
    let start = async |model: &str| {
        let study = format!("{STUDY}\n[models.rewriter]\nprovider = \"local\"\nmodel = \"{model}\"\n");
        let new = json!({ "name": "Rewritten", "study": study });
        team.ask(Who::Editor, "POST", "/api/projects/alpha/runs", new)
            .await
    };
    let (status, run) = start("training:TRAINING").await;
    assert_eq!(status, 201, "{run}");
    for (model, said) in [("training:0", "no training 0"), ("../nano", "training:ID")] {
        let (status, problem) = start(model).await;
        assert!(
            status == 422 && problem["detail"].as_str().unwrap().contains(said),
            "{problem}"
        );
    }
    let worker = super::runs::Worker::of(&team);
    let ended = team.ended(run["id"].as_str().unwrap()).await;
    worker.end().await;
    assert!(
        ended["error"]
            .as_str()
            .unwrap()
            .contains("a shell rewrites nothing"),
        "{ended}"
    );
}

#[tokio::test]
async fn what_a_training_came_to_is_offered_to_who_has_its_project() {
    let team = Team::new().await;
    let names = async |Extension(Offered(offered)): Extension<Offered>| {
        let names: Vec<String> = offered.iter().map(|one| one.name.clone()).collect();
        axum::Json(names)
    };
    let settings = Settings {
        models: Some(Router::new().route("/v1/models", axum::routing::get(names))),
        trainings: Some(by_shell("", team.trainings.path())),
        ..Settings::default()
    };
    let server = Server::new(team.store.clone(), || NOW, settings).unwrap();
    let routes = router(server, None);
    let offered = async |who: Who| {
        let request = team.request(who, &Method::GET, "/api/models/v1/models", &Value::Null);
        document(routes.clone().oneshot(request).await.unwrap()).await
    };
    let (lease, training) = team.store.claim_training(NOW, NOW + DAY).await.unwrap().unwrap();
    assert_eq!(offered(Who::Root).await, json!([]), "it has not ended");
    let left = crate::store::TrainingOutcome {
        state: TrainingState::Done,
        error: None,
        in_order: true,
    };
    team.store.leave_training(&lease, &left, NOW).await.unwrap();
    let name = format!("training:{}", training.id);
    for who in ALL.into_iter().filter(|who| *who != Who::Nobody) {
        let expected = match who {
            Who::Stranger => json!([]),
            _ => json!([name]),
        };
        assert_eq!(offered(who).await, expected, "{who:?}");
    }
    assert_eq!(offered(Who::Nobody).await["status"], 401);
}

#[tokio::test]
async fn a_server_that_trains_nothing_says_so() {
    let team = Team::new().await;
    let settings = Settings::default();
    let server = Server::new(team.store.clone(), || NOW, settings).unwrap();
    let request = team.request(
        Who::Viewer,
        &Method::GET,
        "/api/projects/alpha/trainings",
        &Value::Null,
    );
    let response = router(server, None).oneshot(request).await.unwrap();
    assert_eq!(response.status(), 501);
    let problem = document(response).await;
    assert_eq!(problem["type"], "/problems/no-trainings");
}

on_each_database!(a_log_is_watched_from_any_line);
async fn a_log_is_watched_from_any_line(store: Store) {
    let team = Team::on(store).await;
    let (lease, training) = team.store.claim_training(NOW, NOW + DAY).await.unwrap().unwrap();
    let append = async |lines: [&str; 2], reached| -> Result<(), NotKept> {
        let lines = lines.map(str::to_owned);
        team.store.append_to_training(&lease, &lines, reached, NOW).await
    };
    append(["{\"step\":1}", "{\"step\":2}"], 2).await.unwrap();
    let path = "/api/projects/alpha/trainings/TRAINING/events?from=1";
    let mut watched = team.watch_path(path, None).await;
    let mut events = Vec::new();
    while events.len() < 3 {
        events.push(watched.next().await.unwrap());
    }
    assert_eq!(
        (events[0].0.as_str(), events[1].1, events[1].2.as_str()),
        ("training", Some(1), "{\"step\":2}")
    );
    append(["{\"step\":2}", "{\"step\":3}"], 3).await.unwrap();
    let mut lines = Vec::new();
    while lines.len() < 2 {
        let (name, id, _) = watched.next().await.unwrap();
        if name == "line" {
            lines.push(id.unwrap());
        }
    }
    assert_eq!(lines, [2, 3]);
    let left = crate::store::TrainingOutcome {
        state: TrainingState::Done,
        error: None,
        in_order: true,
    };
    team.store.leave_training(&lease, &left, NOW).await.unwrap();
    loop {
        let (name, _, data) = watched.next().await.unwrap();
        if name == "training" && data.contains("\"done\"") {
            break;
        }
    }
    assert_eq!(team.store.training(&training.id).await.unwrap().lines, 4);
}
