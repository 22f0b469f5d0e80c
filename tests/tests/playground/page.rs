//! The built page, served as any static file host would.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use capo_browser::Browser;
use tempfile::TempDir;
use tokio::net::TcpListener;

/// A host of the built page, on a port of its own, as long as the process lives. Routes without a file
/// get the page.
pub(crate) struct Host {
    address: String,
    served: Served,
    copy: Option<TempDir>,
}

#[derive(Clone)]
struct Served {
    folder: Arc<PathBuf>,
    is_down: Arc<AtomicBool>,
}

impl Host {
    /// Serves the folder that `CAPO_PAGE` names.
    ///
    /// # Panics
    /// When the page was not built, or this machine has no free port.
    pub(crate) fn start() -> Self {
        Self::of(built(), None)
    }

    /// Serves a copy of that folder, whose files can be changed.
    ///
    /// # Panics
    /// As [`Host::start`], or when there is no room for a copy.
    pub(crate) fn of_copy() -> Self {
        let copy = tempfile::tempdir().expect("a temporary folder");
        copy_folder(&built(), copy.path()).expect("room for a copy of the page");
        Self::of(copy.path().to_owned(), Some(copy))
    }

    fn of(folder: PathBuf, copy: Option<TempDir>) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
        let address = format!("http://{}", listener.local_addr().expect("a bound address"));
        listener
            .set_nonblocking(true)
            .expect("a listener can be made asynchronous");
        let served = Served {
            folder: Arc::new(folder),
            is_down: Arc::default(),
        };
        let app = Router::new().fallback(file).with_state(served.clone());
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime on this thread").block_on(async {
                let listener = TcpListener::from_std(listener).expect("a listener on this runtime");
                axum::serve(listener, app).await.expect("serving does not end");
            });
        });
        Self {
            address,
            served,
            copy,
        }
    }

    /// Where it is, as `http://HOST:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Opens the page at `path` in a window of 1440 × 1000.
    ///
    /// # Panics
    /// As [`Browser::start`].
    pub(crate) async fn open(&self, path: &str) -> Browser {
        let arguments = [
            "--window-size=1440,1000",
            // Of this machine, under a name that pages take for another's.
            "--host-resolver-rules=MAP models.example 127.0.0.1",
        ];
        let browser = Browser::start(&self.address, &arguments, &["browser", "performance"]).await;
        browser.go(path).await;
        browser
    }

    /// Answers nothing but errors from here on.
    pub(crate) fn go_down(&self) {
        self.served.is_down.store(true, Ordering::Relaxed);
    }

    /// Changes the text of a file of a copy, and returns what it was.
    ///
    /// # Panics
    /// When this is no copy, or has no such file.
    pub(crate) fn change(&self, file: &str, change: impl FnOnce(&str) -> String) -> String {
        let copy = self.copy.as_ref().expect("only a copy is changed");
        let path = copy.path().join(file);
        let before = fs::read_to_string(&path).expect("a file of the page");
        fs::write(&path, change(&before)).expect("a copy can be written");
        before
    }
}

/// Opens the page that was built, from a host of its own.
///
/// # Panics
/// As [`Host::start`] and [`Host::open`].
pub(crate) async fn open(path: &str) -> Browser {
    Host::start().open(path).await
}

/// Runs a third of the built-in study, for what needs a run that is watched to its end: the demonstration itself takes a
/// minute and more.
pub(crate) async fn run_shortly(browser: &Browser) {
    browser.go("/study").await;
    browser.type_in("Rollouts", "1000").await;
    browser.click("Run study").await;
}

pub(crate) fn built() -> PathBuf {
    let folder = std::env::var_os("CAPO_PAGE").map(PathBuf::from);
    let folder = folder.expect("CAPO_PAGE names the built page; run these tests by `cargo xtask test`");
    assert!(
        folder.join("index.html").is_file(),
        "{} holds no page",
        folder.display()
    );
    folder
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

async fn file(State(served): State<Served>, uri: Uri) -> Response {
    if served.is_down.load(Ordering::Relaxed) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let path = uri.path().trim_start_matches('/');
    let is_route = Path::new(path).extension().is_none();
    let file = served.folder.join(if is_route { "index.html" } else { path });
    match fs::read(&file) {
        Ok(bytes) => ([(header::CONTENT_TYPE, media_type(&file))], bytes).into_response(),
        Err(_) => StatusCode::NOT_FOUND.into_response(),
    }
}

fn media_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("webmanifest") => "application/manifest+json",
        _ => "application/octet-stream",
    }
}
