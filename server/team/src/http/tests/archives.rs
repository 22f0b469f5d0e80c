//! Projects as files: from one server to another of either database, and what is no project.

use std::collections::BTreeMap;
use std::io::Read as _;

use futures::StreamExt as _;

use super::runs::Worker;
use super::*;
use crate::store::tests::on_each;

/// The members of an archive by their paths, in order.
fn members(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(archive);
    let read = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let (path, mut content) = (entry.path().unwrap().display().to_string(), Vec::new());
        entry.read_to_end(&mut content).unwrap();
        (path, content)
    });
    read.collect()
}

/// An archive of these.
fn archive(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in members {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        // A path may be one that the crate does not write by itself.
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        header.set_cksum();
        archive.append(&header, &content[..]).unwrap();
    }
    archive.into_inner().unwrap()
}

impl Team {
    pub(super) async fn export(&self, project: &str) -> Vec<u8> {
        let path = format!("/api/projects/{project}/export");
        let response = self
            .send(self.request(Who::Root, &Method::GET, &path, &Value::Null))
            .await;
        assert_eq!(response.status(), 200);
        let body = axum::body::to_bytes(response.into_body(), 1 << 26).await;
        body.unwrap().to_vec()
    }

    /// What an archive holds but what exports leave in the log.
    pub(super) async fn exported(&self, project: &str) -> Vec<(String, Vec<u8>)> {
        let mut members = members(&self.export(project).await);
        for (path, content) in &mut members {
            if path == "audit.jsonl" {
                let lines = String::from_utf8_lossy(content).into_owned();
                let lines = lines.lines().filter(|line| !line.contains("project.export"));
                *content = lines.collect::<String>().into_bytes();
            }
        }
        members
    }

    async fn import(&self, query: &str, archive: Vec<u8>) -> (u16, Value) {
        let path = format!("/api/projects/import{query}");
        let mut request = self.request(Who::Root, &Method::POST, &path, &Value::Null);
        *request.body_mut() = Body::from(archive);
        let response = self.send(request).await;
        (response.status().as_u16(), document(response).await)
    }

    async fn got(&self, path: &str) -> Value {
        let (status, document) = self.ask(Who::Root, "GET", path, Value::Null).await;
        assert_eq!(status, 200, "{document}");
        document
    }

    /// A project with a run that has ended, a branch of it, data that a study names, a prompt with evidence and a label, and a
    /// training, which stays where it is.
    async fn with_all() -> Self {
        let team = Self::new().await;
        // Its journal is none.
        let (status, _) = team
            .ask(Who::Editor, "DELETE", "/api/runs/LEARNED", Value::Null)
            .await;
        assert_eq!(status, 204);
        let worker = Worker::of(&team);
        let run = team.start(STUDY).await;
        team.ended(&run).await;
        worker.end().await;
        team.clock.fetch_add(1000, Relaxed);
        let branch = json!({ "name": "Branch", "round": 1, "start": false });
        let path = format!("/api/runs/{run}/branches");
        let (status, branch) = team.ask(Who::Editor, "POST", &path, branch).await;
        assert_eq!(status, 201, "{branch}");
        let ada = team.store.member("ada").await.unwrap();
        let (alpha, _) = team.store.project(&ada, "alpha").await.unwrap();
        let sha256 = crate::secret::sha256(b"question\n");
        let ada_writes = by("ada");
        let kept = team
            .server
            .keep_file(&ada_writes, &alpha, &sha256, Body::from("question\n"));
        assert!(kept.await.is_ok());
        let waiting = AddedRun {
            name: "Waiting".into(),
            study: STUDY.into(),
            method: "capo".into(),
            objective: "success".into(),
            files: BTreeMap::from([("data/a.csv".to_owned(), sha256)]),
            stage: Some(capo_api::RunStage::Paused),
            ..AddedRun::default()
        };
        team.store
            .add_run(&by("ada"), &alpha, &ada, waiting)
            .await
            .unwrap();
        let path = "/api/projects/alpha/prompts/greeting/versions";
        let (status, added) = team.ask(Who::Editor, "POST", path, json!({ "run": run })).await;
        assert_eq!(status, 201, "{added}");
        let prompt = team.store.prompt(&alpha, "greeting").await.unwrap();
        for to in [Some(1), Some(2), None] {
            team.store
                .move_label(&by("ed"), &prompt, "production", to, None)
                .await
                .unwrap();
        }
        team
    }
}

/// Moves of a label, or lines of the audit log, as another server shows them that has imported them.
fn imported(entries: &Value) -> Vec<Value> {
    let of = |entry: &Value| {
        let mut entry = entry.clone();
        entry["actor"] = json!(format!("{} (imported)", entry["actor"].as_str().unwrap()));
        entry
    };
    entries.as_array().unwrap().iter().map(of).collect()
}

/// The address of the history of a label that was taken away.
fn history(project: &str) -> String {
    format!("/api/projects/{project}/prompts/greeting/labels/production/history")
}

/// The lines of a project's log, the server's own first, and those of another server; where they came from under which ids
/// does not matter.
async fn log(team: &Team, project: &str) -> (Vec<Value>, Vec<Value>) {
    let log = team
        .got(&format!("/api/projects/{project}/audit?limit=500"))
        .await;
    let mut lines = log.as_array().unwrap().clone();
    let is_own = |line: &Value| line.get("imported").is_none();
    assert!(lines.is_sorted_by_key(|line| !is_own(line)), "{log}");
    for line in &mut lines {
        let id = line.as_object_mut().unwrap().remove("id").unwrap();
        assert_eq!(id.as_i64().unwrap() > 0, is_own(line), "{line}");
    }
    lines.into_iter().partition(is_own)
}

#[test]
fn a_project_moves_to_another_server_with_all_that_it_has() {
    on_each(|store| async move {
        let from = Team::with_all().await;
        let whole = from.export("alpha").await;
        let text = String::from_utf8_lossy(&whole);
        for secret in ["\"sk-1\"", "\"kept\""]
            .into_iter()
            .chain(from.secrets.iter().map(|(_, secret)| secret.reveal()))
        {
            assert!(!text.contains(secret), "{secret}");
        }

        let mut to = Team::over(store, tempfile::tempdir().unwrap()).await;
        let eve = to.store.set_up(&by("eve"), "eve", "kept").await.unwrap();
        let secret = Secret::new("");
        to.store.sign_in(&by("eve"), &eve, &secret, "test").await.unwrap();
        to.secrets.push((Who::Root, secret));
        to.clock.fetch_add(1000, Relaxed);
        let (status, made) = to.import("?name=beta", whole.clone()).await;
        assert_eq!(
            (status, &made["title"], &made["role"]),
            (201, &json!("Alpha"), &json!("admin")),
            "{made}"
        );
        let (again, _) = to.import("?name=beta", whole.clone()).await;
        assert_eq!(again, 409);
        let trainings = [
            from.got("/api/projects/alpha/trainings").await,
            to.got("/api/projects/beta/trainings").await,
        ];
        let there = trainings.map(|page| page["trainings"].as_array().unwrap().len());
        assert_eq!(there, [1, 0], "they stay with their folders");

        let known = [
            "name",
            "stage",
            "method",
            "objective",
            "created_at",
            "lines",
            "progress",
        ];
        let runs = [
            from.got("/api/runs?project=alpha").await,
            to.got("/api/runs?project=beta").await,
        ];
        // Some of them were added in one moment.
        let [there, here] = runs.each_ref().map(|page| {
            let mut runs: Vec<&Value> = page["runs"].as_array().unwrap().iter().collect();
            runs.sort_by_key(|run| run["name"].to_string());
            runs
        });
        assert_eq!((there.len(), here.len()), (4, 4));
        for (there, here) in there.iter().zip(here) {
            for field in known {
                assert_eq!(there[field], here[field], "{field}");
            }
            assert_eq!(
                here["started_by"],
                format!("{} (imported)", there["started_by"].as_str().unwrap())
            );
            assert_ne!(here["id"], there["id"]);
            let study = async |team: &Team, run: &Value| {
                let run = team
                    .got(&format!("/api/runs/{}", run["id"].as_str().unwrap()))
                    .await;
                (run["study"].clone(), run["files"].clone())
            };
            assert_eq!(study(&from, there).await, study(&to, here).await);
        }
        let of = |page: &Value, name: &str| {
            let runs = page["runs"].as_array().unwrap();
            runs.iter().find(|run| run["name"] == name).unwrap().clone()
        };
        let (ended, branch) = (of(&runs[1], "Help desk"), of(&runs[1], "Branch"));
        assert_eq!(ended["origin"]["from"], "pushed", "nobody here has seen it run");
        assert_eq!(
            (&branch["origin"]["from"], &branch["origin"]["run"]),
            (&json!("branch"), &ended["id"])
        );

        let prompt = |project: &str| format!("/api/projects/{project}/prompts/greeting/versions");
        let (there, here) = (from.got(&prompt("alpha")).await, to.got(&prompt("beta")).await);
        for number in 0..2 {
            let (there, here) = (&there["versions"][number], &here["versions"][number]);
            for field in ["version", "text", "sha256", "labels", "note", "created_at"] {
                assert_eq!(there[field], here[field], "{field}");
            }
        }
        let newest = &here["versions"][0];
        assert_eq!(
            (&newest["run"], &newest["created_by"]),
            (&ended["id"], &json!("ed (imported)"))
        );
        assert_eq!(newest["evidence"]["measured_elsewhere"], true);
        assert_eq!(here["versions"][1]["labels"], json!(["candidate"]));

        let moves = [from.got(&history("alpha")).await, to.got(&history("beta")).await];
        assert_eq!(moves[1], json!(imported(&moves[0])), "with its own times");
        let ((there, _), (own, foreign)) = (log(&from, "alpha").await, log(&to, "beta").await);
        let mut expected = imported(&json!(there));
        for line in &mut expected {
            line["imported"] = json!(true);
        }
        assert_eq!(foreign, expected);
        assert_eq!(there[0]["action"], "project.export");
        assert!(own.iter().all(|line| line["actor"] == "eve"), "{own:?}");
        let of_server = to.got("/api/audit?limit=500").await;
        let mut of_server = of_server.as_array().unwrap().iter();
        assert!(
            of_server.all(|line| line["actor"] == "eve"),
            "its own log knows nothing of it"
        );

        // And on to the next.
        let once_more = to.export("beta").await;
        let journals = |archive: &[u8]| -> Vec<Vec<u8>> {
            let journals = members(archive)
                .into_iter()
                .filter(|(path, _)| path.starts_with("runs/") && path.strip_suffix(".jsonl").is_some());
            journals.map(|(_, journal)| journal).collect()
        };
        assert_eq!(journals(&once_more), journals(&whole));
        let (status, refused) = from.import("?name=gamma", once_more).await;
        assert_eq!(status, 201, "{refused}");
        let (_, first) = &members(&from.export("gamma").await)[0];
        assert!(
            !String::from_utf8_lossy(first).contains("not yet"),
            "its title is its own"
        );
        assert_eq!(from.got(&history("gamma")).await, moves[1]);
        let (_, twice) = log(&from, "gamma").await;
        assert_eq!(twice.len(), own.len() + foreign.len() + 1, "and the export");
    });
}

#[tokio::test]
async fn what_is_no_whole_project_leaves_nothing() {
    let team = Team::with_all().await;
    let whole = members(&team.export("alpha").await);
    let without = |ending: &str| -> Vec<_> {
        let kept = whole.iter().filter(|(path, _)| !path.ends_with(ending));
        kept.cloned().collect()
    };
    let with = |place: usize, path: &str, content: &[u8]| {
        let mut members = whole.clone();
        members.insert(place, (path.to_owned(), content.to_vec()));
        archive(&members)
    };
    let older: Vec<_> = without("history.jsonl")
        .into_iter()
        .filter(|(path, _)| path != "audit.jsonl")
        .collect();
    let changed_in = |members: &[(String, Vec<u8>)], ending: &str, from: &str, to: &str| {
        let change = |(path, content): &(String, Vec<u8>)| {
            let text = String::from_utf8_lossy(content);
            let content = if path.ends_with(ending) {
                text.replace(from, to).into_bytes()
            } else {
                content.clone()
            };
            (path.clone(), content)
        };
        archive(&members.iter().map(change).collect::<Vec<_>>())
    };
    let changed = |ending: &str, from: &str, to: &str| changed_in(&whole, ending, from, to);
    let endless = format!("\"subject\":\"{}", "x".repeat(5000));
    let moves = whole.iter().find(|(path, _)| path.ends_with("history.jsonl"));
    let moves = String::from_utf8_lossy(&moves.unwrap().1).into_owned();
    let of = |label: &str| -> Vec<&str> {
        let label = format!("\"label\":\"{label}\"");
        moves.lines().filter(|line| line.contains(&label)).collect()
    };
    let (candidate, production) = (of("candidate").join("\n"), of("production"));
    assert_eq!((candidate.is_empty(), production.len()), (false, 3));
    let torn = archive(&whole);
    let mut link = tar::Header::new_ustar();
    link.set_entry_type(tar::EntryType::Symlink);
    link.set_path("files/0").unwrap();
    link.set_link_name("/etc/passwd").unwrap();
    link.set_size(0);
    link.set_cksum();
    let mut linked = archive(&whole[..1]);
    linked.splice(linked.len() - 1024..linked.len() - 1024, link.as_bytes().to_vec());
    let mut large = tar::Header::new_ustar();
    large.set_path("prompts/greeting/1.json").unwrap();
    large.set_size(7 << 30);
    large.set_cksum();
    let mut bomb = archive(&whole[..1]);
    bomb.splice(bomb.len() - 1024..bomb.len() - 1024, large.as_bytes().to_vec());
    for (archive, status, said) in [
        (b"no archive".to_vec(), 400, "broke off"),
        (archive(&whole[1..]), 422, "project.json"),
        (torn[..torn.len() / 2].to_vec(), 400, "broke off"),
        (archive(&without("end")), 422, "cut off"),
        (
            changed("project.json", "\"format\": 2", "\"format\": 3"),
            422,
            "format 3",
        ),
        (
            with(1, "../../etc/passwd", b"x"),
            422,
            "nothing that a server exports",
        ),
        (with(1, "files/../0", b"x"), 422, "nothing that a server exports"),
        (with(1, "files/0", b"x"), 422, "something else"),
        (linked, 422, "no plain file"),
        (bomb, 422, "larger than 4 MiB"),
        (archive(&without(".jsonl")), 422, "is missing"),
        (
            changed(".jsonl", "\"lagrangian\":0.", "\"lagrangian\":1."),
            422,
            "The run",
        ),
        (changed(".csv", "", ""), 201, ""),
        (
            archive(
                &whole
                    .iter()
                    .filter(|(path, _)| !path.starts_with("files/") && !path.starts_with("data/"))
                    .cloned()
                    .collect::<Vec<_>>(),
            ),
            422,
            "data/a.csv",
        ),
        (
            changed_in(&older, "project.json", "\"format\": 2", "\"format\": 1"),
            201,
            "",
        ),
        (
            changed_in(&older, "labels.json", "candidate", "Not A Label"),
            422,
            "a label has",
        ),
        (
            changed("history.jsonl", "candidate", "Not A Label"),
            422,
            "a label has",
        ),
        (
            changed("history.jsonl", "\"to\":2", "\"to\":9"),
            422,
            "does not follow",
        ),
        (
            changed("history.jsonl", "\"from\":2", "\"from\":1"),
            422,
            "does not follow",
        ),
        (changed("history.jsonl", production[0], ""), 201, ""),
        (
            changed("history.jsonl", production[1], ""),
            422,
            "does not follow",
        ),
        (changed("labels.json", "1", "2"), 422, "their history leaves them"),
        (
            changed("history.jsonl", &candidate, ""),
            422,
            "their history leaves them",
        ),
        (
            with(whole.len() - 1, "audit.jsonl", b""),
            422,
            "nothing that a server exports",
        ),
        (
            changed("audit.jsonl", "\"action\"", "\"deed\""),
            422,
            "cannot be read",
        ),
        (changed("audit.jsonl", "\"subject\":\"", &endless), 201, ""),
        (
            with(
                whole.len() - 1,
                "prompts/greeting/9.json",
                &whole
                    .iter()
                    .find(|(path, _)| path.ends_with("greeting/1.json"))
                    .unwrap()
                    .1,
            ),
            422,
            "not the next version",
        ),
    ] {
        let (got, problem) = team.import("?name=gamma", archive).await;
        assert_eq!(got, status, "{said}: {problem}");
        let shown = team
            .ask(Who::Root, "GET", "/api/projects/gamma", Value::Null)
            .await;
        if status == 201 {
            assert_eq!(shown.0, 200);
            let prompts = team.got("/api/projects/gamma/prompts").await;
            assert_eq!(prompts[0]["labels"], json!({ "candidate": 1 }));
            let (_, foreign) = log(&team, "gamma").await;
            let mut subjects = foreign.iter().map(|line| line["subject"].as_str().unwrap());
            assert!(subjects.all(|subject| subject.len() <= 1000));
            let root = team.store.member("root").await.unwrap();
            let (gamma, _) = team.store.project(&root, "gamma").await.unwrap();
            team.store.delete_project(&by("root"), &gamma).await.unwrap();
            continue;
        }
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(said), "{said}: {detail}");
        assert_eq!(shown.0, 404, "{said}: nothing of it is left");
    }
    let (status, _) = team.import("?name=import", archive(&whole)).await;
    assert_eq!(status, 422);
}

#[tokio::test]
async fn a_prompt_that_is_deleted_meanwhile_is_not_exported() {
    let team = Team::with_all().await;
    let ada = team.store.member("ada").await.unwrap();
    let (alpha, _) = team.store.project(&ada, "alpha").await.unwrap();
    // Many pieces of the archive before the next prompt's.
    for number in 0..10 {
        let new = AddedVersion {
            text: format!("Version {number}."),
            ..AddedVersion::default()
        };
        let store = &team.store;
        let added = store.add_prompt_version(&by("ada"), &alpha, "aside", &new).await;
        added.unwrap();
    }
    let greeting = team.store.prompt(&alpha, "greeting").await.unwrap();
    let path = "/api/projects/alpha/export";
    let request = team.request(Who::Root, &Method::GET, path, &Value::Null);
    let mut pieces = team.send(request).await.into_body().into_data_stream();
    let (mut whole, mut is_deleted) = (Vec::<u8>::new(), false);
    while let Some(piece) = pieces.next().await {
        let piece = piece.unwrap();
        if piece.starts_with(b"prompts/aside/1.json") {
            let deleted = team.store.delete_prompt(&by("ada"), &greeting).await;
            deleted.unwrap();
            is_deleted = true;
        }
        whole.extend(piece);
    }
    assert!(is_deleted);
    let paths: Vec<String> = members(&whole).into_iter().map(|(path, _)| path).collect();
    assert!(!paths.iter().any(|path| path.starts_with("prompts/greeting/")));
    assert_eq!(paths.last().unwrap(), "end");
    let (status, made) = team.import("?name=gamma", whole).await;
    assert_eq!(status, 201, "{made}");
}
