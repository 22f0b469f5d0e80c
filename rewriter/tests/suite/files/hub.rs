//! A hub on this machine, of which a model is downloaded.

use std::fs;
use std::path::{Path, PathBuf};

use capo_rewriter::config::ModelConfig;
use capo_rewriter::hub::{Hub, ModelSource};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use super::load;
use super::model::ModelFiles;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const LATER: &str = "89abcdef0123456789abcdef0123456789abcdef";
const REPOSITORY: &str = "owner/tiny";

/// The hub's answers, given while this lives.
struct Server {
    runtime: Runtime,
    answers: MockServer,
    cache: TempDir,
}

impl Server {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let answers = runtime.block_on(MockServer::start());
        Self {
            runtime,
            answers,
            cache: TempDir::new().expect("a temporary folder"),
        }
    }

    fn mount(&self, mock: Mock) {
        self.runtime.block_on(mock.mount(&self.answers));
    }

    /// Says which commit a revision is, and what files it has.
    fn list(&self, revision: &str, commit: &str, folder: &Path) {
        let files = fs::read_dir(folder).expect("read").map(|entry| {
            let name = entry.expect("an entry").file_name();
            json!({ "rfilename": name.to_str().expect("UTF-8") })
        });
        let listing = json!({ "sha": commit, "siblings": files.collect::<Vec<_>>() });
        let address = format!("/api/models/{REPOSITORY}/revision/{revision}");
        self.mount(
            Mock::given(method("GET"))
                .and(path(address))
                .respond_with(ResponseTemplate::new(200).set_body_json(listing)),
        );
    }

    /// Hands out a folder's files under a revision, as files of a commit.
    fn serve(&self, revision: &str, commit: &'static str, folder: &Path) {
        for entry in fs::read_dir(folder).expect("read") {
            let file = entry.expect("an entry").path();
            let name = file.file_name().and_then(|name| name.to_str()).expect("UTF-8");
            let address = format!("/{REPOSITORY}/resolve/{revision}/{name}");
            let (etag, bytes) = (format!("\"{commit}-{name}\""), fs::read(&file).expect("read"));
            let answer = move |request: &Request| part(request, commit, &etag, &bytes);
            self.mount(Mock::given(method("GET")).and(path(address)).respond_with(answer));
        }
    }

    fn hub(&self) -> Hub {
        Hub::new(&self.answers.uri(), self.cache.path().to_owned())
    }

    /// The addresses asked for so far.
    fn asked(&self) -> Vec<String> {
        let requests = self.runtime.block_on(self.answers.received_requests());
        let requests = requests.expect("requests are recorded").into_iter();
        requests.map(|request| request.url.path().to_owned()).collect()
    }
}

/// The part of a file that is asked for.
fn part(request: &Request, commit: &str, etag: &str, bytes: &[u8]) -> ResponseTemplate {
    let range = request.headers["range"].to_str().expect("a range");
    let (from, to) = range
        .strip_prefix("bytes=")
        .and_then(|range| range.split_once('-'))
        .expect("a range of bytes");
    let from: usize = from.parse().expect("a number");
    let to = to.parse().map_or(bytes.len(), |last: usize| last + 1);
    ResponseTemplate::new(206)
        .insert_header("x-repo-commit", commit)
        .insert_header("etag", etag)
        .insert_header(
            "content-range",
            format!("bytes {from}-{}/{}", to - 1, bytes.len()),
        )
        .set_body_bytes(&bytes[from..to])
}

fn source(revision: &str) -> ModelSource {
    ModelSource::Hub {
        repository: REPOSITORY.to_owned(),
        revision: revision.to_owned(),
    }
}

fn model() -> TempDir {
    let folder = ModelFiles::new().shards(2).write();
    fs::write(folder.path().join("tokenizer.json"), "{}").expect("written");
    fs::write(folder.path().join("chat_template.jinja"), "{{ messages }}").expect("written");
    fs::write(folder.path().join("README.md"), "not needed").expect("written");
    folder
}

fn names(folder: &Path) -> Vec<PathBuf> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .expect("read")
        .map(|entry| PathBuf::from(entry.expect("an entry").file_name()))
        .collect();
    names.sort();
    names
}

#[test]
fn all_files_are_of_the_commit_that_a_branch_stands_for_at_first() {
    let server = Server::start();
    let folder = model();
    // The branch has moved on by the time that files are asked for by its name.
    server.list("main", COMMIT, folder.path());
    server.list(COMMIT, COMMIT, folder.path());
    server.serve(COMMIT, COMMIT, folder.path());
    server.serve("main", LATER, folder.path());
    let found = source("main").fetch_from(&server.hub()).expect("downloads");
    assert!(found.ends_with(Path::new("snapshots").join(COMMIT)), "{found:?}");
    let expected = [
        "chat_template.jinja",
        "config.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "tokenizer.json",
    ];
    assert_eq!(names(&found), expected.map(PathBuf::from));
    load(&found).expect("loads");
    let by_name = format!("/{REPOSITORY}/resolve/main/");
    assert!(!server.asked().iter().any(|address| address.starts_with(&by_name)));

    // Once it is here, the commit needs no hub.
    let nowhere = Hub::new("http://127.0.0.1:1", server.cache.path().to_owned());
    assert_eq!(source(COMMIT).fetch_from(&nowhere).expect("is there"), found);
}

#[test]
fn a_file_of_another_commit_is_refused() {
    let server = Server::start();
    let folder = model();
    server.list(COMMIT, COMMIT, folder.path());
    server.serve(COMMIT, LATER, folder.path());
    let refused = source(COMMIT).fetch_from(&server.hub());
    let message = refused.expect_err("must be refused").to_string();
    assert!(message.contains("another commit"), "{message}");
}

#[test]
fn the_token_opens_a_private_model_and_is_in_no_error() {
    let server = Server::start();
    let folder = model();
    let address = format!("/api/models/{REPOSITORY}/revision/{COMMIT}");
    server.mount(
        Mock::given(method("GET"))
            .and(path(address))
            .and(header("authorization", "Bearer hf_secret"))
            .respond_with(ResponseTemplate::new(200).set_body_json(json!({
                "sha": COMMIT, "siblings": [{ "rfilename": "model.safetensors" }],
            }))),
    );
    let refused = |hub: &Hub| {
        source(COMMIT)
            .fetch_from(hub)
            .expect_err("must be refused")
            .to_string()
    };
    // Without it, or with another one, the hub shows nothing.
    for hub in [server.hub(), server.hub().with_token("hf_other")] {
        let message = refused(&hub);
        assert!(message.contains("the list of its files"), "{message}");
        assert!(message.contains("HF_TOKEN"), "{message}");
        assert!(!message.contains("hf_other"), "{message}");
    }
    // With it the listing is shown, of which the first file fails.
    server.mount(Mock::given(method("GET")).respond_with(ResponseTemplate::new(403)));
    let message = refused(&server.hub().with_token("hf_secret\n"));
    assert!(
        message.contains("model.safetensors cannot be downloaded"),
        "{message}"
    );
    assert!(!message.contains("hf_secret"), "{message}");
    drop(folder);
}

#[test]
fn what_a_repository_lacks_is_named() {
    let server = Server::start();
    let folder = model();
    fs::remove_file(folder.path().join("tokenizer.json")).expect("removed");
    server.list(COMMIT, COMMIT, folder.path());
    server.serve(COMMIT, COMMIT, folder.path());
    let refused = source(COMMIT).fetch_from(&server.hub());
    let message = refused.expect_err("must be refused").to_string();
    assert!(
        message.contains("tokenizer.json") && message.contains(REPOSITORY),
        "{message}"
    );
}

#[test]
fn a_hub_that_is_out_of_reach_is_named() {
    let cache = TempDir::new().expect("a temporary folder");
    let hub = Hub::new("http://127.0.0.1:1", cache.path().to_owned());
    for revision in [COMMIT, "main"] {
        let message = source(revision).fetch_from(&hub).expect_err("no hub").to_string();
        assert!(
            message.contains(REPOSITORY) && message.contains(revision),
            "{message}"
        );
    }
    for (repository, revision) in [
        ("a/b/c", "main"),
        ("../x", "main"),
        ("a/b", "../main"),
        ("a b", "main"),
    ] {
        let source = ModelSource::Hub {
            repository: repository.to_owned(),
            revision: revision.to_owned(),
        };
        let message = source.fetch_from(&hub).expect_err("must be refused").to_string();
        assert!(
            message.contains("is called") || message.contains("a revision is"),
            "{message}"
        );
    }
    let folder = ModelFiles::new().write();
    let local = ModelSource::Folder(folder.path().to_owned());
    assert_eq!(local.fetch().expect("a folder is where it is"), folder.path());
    let config = ModelConfig::from_folder(folder.path()).expect("reads");
    assert_eq!(config.layers(), 2);
}

#[test]
fn a_hub_that_names_no_commit_is_refused() {
    let server = Server::start();
    let listing: Value = json!({ "sha": "../../elsewhere", "siblings": [] });
    server.mount(Mock::given(method("GET")).respond_with(ResponseTemplate::new(200).set_body_json(listing)));
    let message = source("main")
        .fetch_from(&server.hub())
        .expect_err("no commit")
        .to_string();
    assert!(message.contains("names no commit"), "{message}");
}
