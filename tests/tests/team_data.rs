//! Data sets of a team server, in a folder and in a bucket, from the command line.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

mod team_server;

#[path = "team_server/bucket.rs"]
mod bucket;

use std::path::{Path, PathBuf};
use std::process::Command;

use bucket::Bucket;
use capo_tests::program::{Ended, Server, command, run};
use capo_tests::study::SUMS;
use serde_json::json;
use team_server::{PASSWORD, create_user, enter, made, serving, token};
use tempfile::TempDir;

const ROWS: &str = "question,answer\nwhat is one and one?,two\nwhat is one and two?,three\n";

/// A server that is being started, and the folder around it.
struct Team {
    folder: TempDir,
    server: Server,
    token: String,
}

impl Team {
    /// With a project and a token of its admin.
    fn new(folder: TempDir, serve: &mut Command) -> Self {
        create_user(&folder.path().join("data"), &["ada", "--admin"], PASSWORD).expect_code(0);
        let server = Server::start(serve);
        let cookie = enter(&server, "ada");
        let project = json!({ "name": "sums", "title": "Sums" });
        made(&server, &cookie, "/api/projects", &project);
        let token = token(&server, &cookie);
        std::fs::write(folder.path().join("rows.csv"), ROWS).unwrap();
        Self {
            folder,
            server,
            token,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn capo(&self, line: &str) -> Ended {
        let mut command = command(line.split_whitespace());
        command.current_dir(self.folder.path());
        run(command
            .env("CAPO_TOKEN", &self.token)
            .env("CAPO_REMOTE", &self.server.base_url))
    }

    /// Whether a data set comes back as it went.
    fn comes_back(&self, name: &str) {
        let (came, went) = (self.file("came"), self.file(name));
        self.capo(&format!("data download {name} --output came"))
            .expect_code(0);
        assert!(
            std::fs::read(&came).unwrap() == std::fs::read(went).unwrap(),
            "{name}"
        );
        std::fs::remove_file(came).unwrap();
    }
}

fn count(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .map(|path| if path.is_dir() { count(&path) } else { 1 })
        .sum()
}

#[test]
fn data_sets_go_to_a_project_and_into_its_backups() {
    let folder = TempDir::new().unwrap();
    let mut serve = serving(&folder.path().join("data"), "127.0.0.1:0");
    let mut team = Team::new(folder, &mut serve);
    let added = team.capo("data upload rows.csv").expect_code(0);
    assert_eq!(added.stdout, "rows.csv is a data set of sums, 2 rows\n");
    team.capo("data upload rows.csv")
        .expect_code(1)
        .expect_error(&["already a data set of this name"]);
    std::fs::write(team.file("torn.jsonl"), "{\"q\":1}\n{\"q\":}\n").unwrap();
    team.capo("data upload torn.jsonl")
        .expect_code(64)
        .expect_error(&["torn.jsonl line 2: not JSON: expected a value at column 6"]);
    let listed = team.capo("data list").expect_code(0).stdout;
    assert!(
        listed.contains("rows.csv") && !listed.contains("torn"),
        "{listed}"
    );
    team.comes_back("rows.csv");
    team.capo("data download rows.csv")
        .expect_code(1)
        .expect_error(&["rows.csv cannot be written"]);
    team.capo("data download other.csv")
        .expect_code(1)
        .expect_error(&["no data set other.csv"]);
    // With the one that is no data set, for an hour.
    assert_eq!(count(&team.file("data/files")), 2);

    team.capo("admin backup copy.db --data data").expect_code(0);
    team.capo("admin restore copy.db --data elsewhere").expect_code(0);
    let folder = team.file("elsewhere");
    std::fs::copy(team.file("data/master.key"), folder.join("master.key")).unwrap();
    team.server = Server::start(&mut serving(&folder, "127.0.0.1:0"));
    team.token = token(&team.server, &enter(&team.server, "ada"));
    team.comes_back("rows.csv");
    assert_eq!(count(&folder.join("files")), 2);
}

#[test]
fn data_files_lie_in_a_bucket() {
    let folder = TempDir::new().unwrap();
    let objects = folder.path().join("objects");
    let Some(bucket) = Bucket::new(&objects) else {
        return;
    };
    let in_bucket = |place: &str| {
        let serve = serving(&folder.path().join("data"), "127.0.0.1:0");
        bucket.keeps(serve, place)
    };
    run(&mut in_bucket("s3://other/team"))
        .expect_code(1)
        .expect_error(&["the place of data files"]);
    run(&mut in_bucket("gs://other"))
        .expect_code(1)
        .expect_error(&["s3://BUCKET/PREFIX"]);
    let mut serve = in_bucket("s3://capo/team");
    let team = Team::new(folder, &mut serve);
    team.capo("data upload rows.csv").expect_code(0);
    // So large that it goes in parts.
    let large = "question,answer\n".to_owned() + &"what is one and one?,two\n".repeat(500_000);
    std::fs::write(team.file("large.csv"), large).unwrap();
    let added = team.capo("data upload large.csv").expect_code(0);
    assert!(added.stdout.contains("500000 rows"), "{}", added.stdout);
    for name in ["rows.csv", "large.csv"] {
        team.comes_back(name);
    }
    assert!(count(&objects.join("capo")) >= 2);
    assert_eq!(count(&team.file("data/files")), 0);
    std::fs::write(team.file("study.toml"), SUMS).unwrap();
    let started = team.capo("optimize study.toml --remote --detach").expect_code(0);
    let watched = team.capo(&format!("watch {} --json", started.stdout.trim_end()));
    assert!(watched.json()["status"].is_string(), "{}", watched.stderr);
    let copied = team
        .capo("admin backup copy.db --data data --files s3://capo/team")
        .expect_code(0);
    assert!(
        copied
            .stdout
            .contains("what data files hold is in s3://capo/team alone"),
        "{}",
        copied.stdout
    );
}
