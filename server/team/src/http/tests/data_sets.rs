//! Data files and data sets over HTTP: what is uploaded, read, refused, shown and kept.

use super::*;
use crate::store::tests::on_each_database;

const DATA: &str = "/api/projects/alpha/data";

const TABLE_STUDY: &str = r#"
[study]
name = "table"
method = "capo"
[workload]
kind = "table"
data = "more.csv"
user = "{{ question }}"
evaluate = 0
[[workload.metric]]
type = "normalized"
name = "correct"
expected = "{{ answer }}"
[prompt]
text = "Answer."
[objective]
metric = "correct"
[models.agent]
provider = "simulated"
[budget]
rollouts = 10
"#;

impl Team {
    /// Sends bytes where a file of this SHA-256 lies.
    async fn put_at(&self, sha256: &str, bytes: impl Into<Body>) -> (u16, Value) {
        let path = format!("/api/projects/alpha/files/{sha256}");
        let mut request = self.request(Who::Editor, &Method::PUT, &path, &Value::Null);
        *request.body_mut() = bytes.into();
        let response = self.send(request).await;
        (response.status().as_u16(), document(response).await)
    }

    /// Uploads a file as a data set.
    async fn upload(&self, name: &str, bytes: &[u8]) -> (u16, Value) {
        let hash = sha256(bytes);
        let (status, kept) = self.put_at(&hash, bytes.to_vec()).await;
        assert_eq!((status, &kept["size"]), (200, &json!(bytes.len())), "{kept}");
        let new = json!({ "name": name, "sha256": hash });
        self.ask(Who::Editor, "POST", DATA, new).await
    }

    /// What a data set or a file of the project holds.
    async fn download(&self, of: &str) -> Response {
        let path = format!("/api/projects/alpha/{of}/content");
        self.send(self.request(Who::Viewer, &Method::GET, &path, &Value::Null))
            .await
    }

    /// How many objects lie in the folder of this team.
    fn objects(&self) -> usize {
        let projects = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let folders = projects.filter(|path| path.is_dir());
        folders
            .map(|folder| std::fs::read_dir(folder).unwrap().count())
            .sum()
    }
}

/// A ZIP archive of these files.
fn packed(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (path, content) in files {
        let options = zip::write::SimpleFileOptions::default();
        archive.start_file(*path, options).unwrap();
        std::io::Write::write_all(&mut archive, content.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

async fn bytes(response: Response) -> Vec<u8> {
    axum::body::to_bytes(response.into_body(), 1 << 27)
        .await
        .unwrap()
        .to_vec()
}

const STUDY: &str = include_str!("../../../../../studies/help-desk.toml");

on_each_database!(a_table_is_uploaded_looked_at_and_downloaded);
async fn a_table_is_uploaded_looked_at_and_downloaded(store: Store) {
    let team = Team::on(store).await;
    let cell = "<script>alert(1)</script>";
    let rows = format!("question,answer\n{cell},2\n\"two\nlines\",3\n");
    let (status, added) = team.upload("Fragen (März).csv", rows.as_bytes()).await;
    assert_eq!(status, 201, "{added}");
    assert_eq!(
        (
            &added["kind"],
            &added["rows"],
            &added["columns"],
            &added["added_by"]
        ),
        (
            &json!("csv"),
            &json!(2),
            &json!(["question", "answer"]),
            &json!("ed")
        )
    );
    let id = added["id"].as_str().unwrap();
    let (_, detail) = team
        .ask(Who::Viewer, "GET", &format!("{DATA}/{id}"), Value::Null)
        .await;
    assert_eq!(detail["first"], json!([[cell, "2"], ["two\nlines", "3"]]));
    let (_, listed) = team.ask(Who::Viewer, "GET", DATA, Value::Null).await;
    let names: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|set| set["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Fragen (März).csv", "rows.csv"]);
    let response = team.download(&format!("data/{id}")).await;
    assert_eq!(response.headers()["content-type"], "application/octet-stream");
    assert_eq!(
        response.headers()["content-disposition"],
        "attachment; filename*=UTF-8''Fragen%20%28M%C3%A4rz%29.csv"
    );
    assert_eq!(bytes(response).await, rows.as_bytes());
    let (status, problem) = team.upload("Fragen (März).csv", b"q\n1\n").await;
    assert_eq!(
        (status, &problem["detail"]),
        (409, &json!("There is already a data set of this name."))
    );
}

on_each_database!(the_data_of_the_benchmark_are_uploaded_as_an_archive);
async fn the_data_of_the_benchmark_are_uploaded_as_an_archive(store: Store) {
    let team = Team::on(store).await;
    let tasks = r#"[{ "id": "7", "user_scenario": { "instructions": "Cancel it." } },
        { "id": "8", "user_scenario": { "instructions": "Book it." } }]"#;
    let archive = packed(&[
        (
            "tau2/domains/airline/db.json",
            r#"{ "flights": {}, "reservations": {}, "users": {} }"#,
        ),
        ("tau2/domains/airline/policy.md", "Be kind."),
        ("tau2/domains/airline/tasks.json", tasks),
        ("tau2/domains/airline/split_tasks.json", "{}"),
        ("tau2/user_simulator/simulation_guidelines.md", "You fly."),
    ]);
    let (status, added) = team.upload("tau2.zip", &archive).await;
    assert_eq!((status, &added["kind"]), (201, &json!("tau2")), "{added}");
    assert_eq!(
        (&added["sha256"], &added["size"]),
        (&json!(sha256(&archive)), &json!(archive.len()))
    );
    assert_eq!(
        (&added["rows"], &added["columns"]),
        (&json!(2), &json!(["domain", "task", "wish"]))
    );
    let id = added["id"].as_str().unwrap();
    let (_, detail) = team
        .ask(Who::Viewer, "GET", &format!("{DATA}/{id}"), Value::Null)
        .await;
    assert_eq!(
        detail["first"],
        json!([["airline", "7", "Cancel it."], ["airline", "8", "Book it."]])
    );
    assert_eq!(bytes(team.download(&format!("data/{id}")).await).await, archive);
}

#[tokio::test]
async fn a_study_shows_what_it_searches_for_and_with_whom() {
    let team = Team::new().await;
    let (status, added) = team.upload("night.toml", STUDY.as_bytes()).await;
    assert_eq!((status, &added["kind"]), (201, &json!("study")), "{added}");
    let detail = format!("{DATA}/{}", added["id"].as_str().unwrap());
    let (_, detail) = team.ask(Who::Viewer, "GET", &detail, Value::Null).await;
    let rows = detail["first"].as_array().unwrap();
    assert_eq!(json!(rows.len()), added["rows"]);
    for row in [
        json!(["study", "help desk"]),
        json!(["human_requests", "at most 0.37"]),
        json!(["model: agent", "simulated sim-medium"]),
    ] {
        assert!(rows.contains(&row), "{detail}");
    }
    let constraint = |index: u32| format!("\n[[constraint]]\nmetric = \"m{index}\"\nthreshold = 1\n");
    let constraints = (0..30).map(constraint).collect::<Vec<_>>().concat();
    let long = STUDY.replace("\"help desk\"", &format!("\"{}\"", "n".repeat(300))) + &constraints;
    let (status, added) = team.upload("long.toml", long.as_bytes()).await;
    assert_eq!(status, 201, "{added}");
    assert!(added["rows"].as_u64().unwrap() > 30, "{added}");
    let detail = format!("{DATA}/{}", added["id"].as_str().unwrap());
    let (_, detail) = team.ask(Who::Viewer, "GET", &detail, Value::Null).await;
    let first = detail["first"].as_array().unwrap();
    assert_eq!(first.len(), 20);
    assert_eq!(first[0], json!(["study", "n".repeat(200) + "…"]));
}

#[tokio::test]
async fn what_does_not_read_is_told_with_its_place() {
    let team = Team::new().await;
    let zeros = "0".repeat((64 << 20) + 1);
    let bomb = packed(&[("../../domains/airline/tasks.json", zeros.as_str())]);
    let with_key = STUDY.replace("[models.agent]", "[models.agent]\napi_key = \"sk-open\"");
    assert_ne!(with_key, STUDY);
    let in_workload = STUDY.replace("[workload]\n", "[workload]\napi_key = \"sk-open\"\n");
    assert_ne!(in_workload, STUDY);
    let large = STUDY.to_owned() + "#" + &"x".repeat(1 << 20);
    let wide = (0..1001)
        .map(|column| format!("c{column}"))
        .collect::<Vec<_>>()
        .join(",")
        + "\n"
        + &",".repeat(1000);
    for (name, content, said) in [
        (
            "a.jsonl",
            &b"{\"q\":1}\n{\"q\":}\n"[..],
            "a.jsonl line 2: not JSON: expected a value at column 6",
        ),
        ("a.csv", b"q,a\n1,2\n3\n", "a.csv line 3: 1 field "),
        ("b.csv", b"q\r\ncaf\xe9\r\n", "b.csv line 2: not UTF-8"),
        ("c.csv", b"", "holds no examples"),
        ("wide.csv", wide.as_bytes(), "has 1001 columns"),
        ("rows.xlsx", b"PK", "none of .csv"),
        ("night.toml", b"[study]\nnam = 1\n", "night.toml: "),
        ("open.toml", with_key.as_bytes(), "api_key"),
        ("workload.toml", in_workload.as_bytes(), "workload.api_key"),
        ("large.toml", large.as_bytes(), "larger than 1 MiB"),
        ("tau2.zip", b"PK", "does not read as a ZIP archive"),
        ("bomb.zip", &bomb, "larger than the benchmark's data can be"),
        ("../rows.csv", b"q\n1\n", "the name of a file"),
    ] {
        let (status, problem) = team.upload(name, content).await;
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(!detail.contains("sk-open"), "{detail}");
        assert!(
            status == 422 && detail.contains(said),
            "{name}: {status} {problem}"
        );
    }
    let nowhere = json!({ "name": "a.csv", "sha256": "../../etc/passwd" });
    let (status, problem) = team.ask(Who::Editor, "POST", DATA, nowhere).await;
    assert!(
        status == 422 && problem["detail"].as_str().unwrap().contains("upload it first"),
        "{problem}"
    );
    let (_, listed) = team.ask(Who::Viewer, "GET", DATA, Value::Null).await;
    assert_eq!(listed.as_array().unwrap().len(), 1, "nothing of it was kept");
}

on_each_database!(an_upload_is_whole_or_not_there);
async fn an_upload_is_whole_or_not_there(store: Store) {
    let team = Team::on(store).await;
    let hash = sha256(b"q\n1\n");
    let (status, problem) = team.put_at(&hash, "q\n2\n").await;
    assert!(
        status == 422 && problem["detail"].as_str().unwrap().contains("SHA-256"),
        "{problem}"
    );
    let pieces = futures::stream::iter([Ok("q\n"), Err(std::io::Error::other("gone"))]);
    let (status, _) = team.put_at(&hash, Body::from_stream(pieces)).await;
    assert_eq!(status, 400);
    let large = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![0_u8; 1 << 20]));
    let (status, _) = team.put_at(&hash, Body::from_stream(large)).await;
    assert_eq!(status, 413);
    let path = format!("/api/projects/alpha/files/{hash}");
    assert_eq!(team.ask(Who::Viewer, "GET", &path, Value::Null).await.0, 404);
    // In parts, as it goes to a bucket.
    let whole = vec![b'\n'; (12 << 20) + 1];
    let hash = sha256(&whole);
    assert_eq!(team.put_at(&hash, whole.clone()).await.0, 200);
    assert_eq!(
        team.put_at(&hash, whole.clone()).await.0,
        200,
        "once more is no other file"
    );
    assert_eq!(team.objects(), 2, "with the one of this team");
    let response = team.download(&format!("files/{hash}")).await;
    let headers = response.headers();
    assert_eq!(headers["content-type"], "application/octet-stream");
    assert_eq!(headers["content-length"], whole.len().to_string());
    let save = format!("attachment; filename*=UTF-8''{hash}");
    assert_eq!(headers["content-disposition"], save);
    assert!(bytes(response).await == whole, "as it was uploaded");
}

on_each_database!(files_stay_for_what_names_them_and_go_with_the_last);
async fn files_stay_for_what_names_them_and_go_with_the_last(store: Store) {
    let team = Team::on(store).await;
    let (_, set) = team.upload("more.csv", b"question,answer\nwhat?,that\n").await;
    let new = json!({ "name": "Table", "study": TABLE_STUDY, "files": { "more.csv": set["sha256"] } });
    let (status, run) = team
        .ask(Who::Editor, "POST", "/api/projects/alpha/runs", new)
        .await;
    assert_eq!(status, 201, "{run}");
    let path = format!("{DATA}/{}", set["id"].as_str().unwrap());
    let (_, shown) = team.ask(Who::Viewer, "GET", &path, Value::Null).await;
    assert_eq!(shown["runs"], 1);
    let file = format!("/api/projects/alpha/files/{}", set["sha256"].as_str().unwrap());
    let is_there = async || {
        // Who asks lets it stay: the clock goes on.
        team.clock.fetch_add(2 * 60 * 60 * 1000, Relaxed);
        let (status, _) = team
            .upload("x.csv", format!("q\n{}\n", team.clock.load(Relaxed)).as_bytes())
            .await;
        assert!(status == 201 || status == 409);
        team.ask(Who::Viewer, "GET", &file, Value::Null).await.0 == 200
    };
    assert_eq!(team.ask(Who::Editor, "DELETE", &path, Value::Null).await.0, 204);
    assert!(is_there().await, "the run names it");
    let path = format!("/api/runs/{}", run["id"].as_str().unwrap());
    assert_eq!(team.ask(Who::Editor, "DELETE", &path, Value::Null).await.0, 204);
    assert!(!is_there().await);
    let before = team.objects();
    team.server.clear().await.unwrap();
    assert_eq!(team.objects(), before, "a backup may be reading it");
    team.clock.fetch_add(2 * 60 * 60 * 1000, Relaxed);
    team.server.clear().await.unwrap();
    assert!(team.objects() < before);
    let response = team.download("data/DATA").await;
    assert_eq!(bytes(response).await, ROWS.as_bytes(), "and nothing else went");
}

#[tokio::test]
async fn what_lies_in_the_database_is_taken_out_of_it() {
    let team = Team::new().await;
    let path = format!("{DATA}/DATA");
    assert_eq!(team.ask(Who::Viewer, "GET", &path, Value::Null).await.0, 200);
    // As it is in a backup.
    let copy = team.folder.path().join("copy.db");
    let files = Files::in_folder(team.folder.path()).unwrap();
    crate::store::back_up(&team.folder.path().join("capo.db"), &copy, Some(&files), None)
        .await
        .unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::rename(&copy, elsewhere.path().join("capo.db")).unwrap();
    let store = Store::in_folder(elsewhere.path()).await.unwrap();
    let settings = Settings {
        files: Some(Files::in_folder(elsewhere.path()).unwrap()),
        ..Settings::default()
    };
    let server = Server::new(store.clone(), || NOW, settings).unwrap();
    server.take_contents().await.unwrap();
    assert!(store.content().await.unwrap().is_none(), "nothing is left in it");
    let mut other = Team {
        router: router(server.clone(), None),
        server,
        store,
        ..team
    };
    other.folder = elsewhere;
    let response = other.download("data/DATA").await;
    assert_eq!(bytes(response).await, ROWS.as_bytes());
}
