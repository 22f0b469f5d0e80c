//! The built page, served as any static file host would.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;

/// Serves the folder that `CAPO_PAGE` names, on a port of its own, as long as the process lives.
/// Routes without a file get the page.
///
/// # Panics
/// When the page was not built, or this machine has no free port.
pub(crate) fn serve() -> String {
    let folder = std::env::var_os("CAPO_PAGE").map(PathBuf::from);
    let folder = folder.expect("CAPO_PAGE names the built page; run these tests by `cargo xtask test`");
    assert!(
        folder.join("index.html").is_file(),
        "{} holds no page",
        folder.display()
    );
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
    let address = format!("http://{}", listener.local_addr().expect("a bound address"));
    listener
        .set_nonblocking(true)
        .expect("a listener can be made asynchronous");
    let app = Router::new().fallback(file).with_state(Arc::new(folder));
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime on this thread").block_on(async {
            let listener = TcpListener::from_std(listener).expect("a listener on this runtime");
            axum::serve(listener, app).await.expect("serving does not end");
        });
    });
    address
}

async fn file(State(folder): State<Arc<PathBuf>>, uri: Uri) -> Response {
    let path = uri.path().trim_start_matches('/');
    let named = folder.join(path);
    let is_route = Path::new(path).extension().is_none();
    let file = if is_route {
        folder.join("index.html")
    } else {
        named
    };
    match std::fs::read(&file) {
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
