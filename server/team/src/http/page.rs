//! The built page: its files as they were when the server started, with the headers that a host should send.

use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::{MethodRouter, get};

use super::extract::has_already;
use crate::secret;

/// A file compressed ahead of time lies beside the file itself, with this at the end of its name.
const COMPRESSED: &str = ".br";
const INDEX: &str = "index.html";
/// How many digits of a file's hash a page asks for it with.
const STAMP: usize = 12;

/// Why there is no page to serve.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// No page that was built.
    #[error("{0} with a content security policy is missing; this is no folder with a built page")]
    NoIndex(&'static str),
}

/// A page.
#[derive(Debug, Clone)]
pub struct Page(Arc<Files>);

#[derive(Debug)]
struct Files {
    files: BTreeMap<String, File>,
    security_policy: HeaderValue,
}

#[derive(Debug)]
struct File {
    bytes: Bytes,
    compressed: Option<Bytes>,
    hash: String,
}

impl Page {
    /// Reads a page from the folder where it was built, a few megabytes.
    ///
    /// # Errors
    /// When a file cannot be read, or there is no page in the folder.
    pub fn read(folder: &FilePath) -> Result<Self, PageError> {
        let mut files = BTreeMap::new();
        read_into(&mut files, folder, "")?;
        Self::of(files)
    }

    /// A page of files by their path, parts separated by `/`.
    ///
    /// # Errors
    /// When the index is missing, or states no content security policy.
    pub fn of(mut all: BTreeMap<String, Bytes>) -> Result<Self, PageError> {
        let names: Vec<String> = all
            .keys()
            .filter(|path| !path.ends_with(COMPRESSED))
            .cloned()
            .collect();
        let mut files = BTreeMap::new();
        for path in names {
            let compressed = all.remove(&format!("{path}{COMPRESSED}"));
            if let Some((path, bytes)) = all.remove_entry(&path) {
                let hash = secret::sha256(&bytes);
                let file = File {
                    bytes,
                    compressed,
                    hash,
                };
                files.insert(path, file);
            }
        }
        let index = files
            .get(INDEX)
            .and_then(|file| std::str::from_utf8(&file.bytes).ok());
        // Browsers take what they may be framed by from a header only.
        let policy = index
            .and_then(security_policy)
            .map(|policy| format!("{policy}; frame-ancestors 'none'"))
            .and_then(|policy| HeaderValue::from_str(&policy).ok());
        let security_policy = policy.ok_or(PageError::NoIndex(INDEX))?;
        Ok(Self(Arc::new(Files {
            files,
            security_policy,
        })))
    }

    /// Answers GET and HEAD: the files, and for everything that looks like no file the page itself, which knows its routes.
    pub(super) fn service(self) -> MethodRouter {
        get(move |uri: Uri, headers: HeaderMap| async move { self.answer(&uri, &headers) })
    }

    fn answer(&self, uri: &Uri, headers: &HeaderMap) -> Response {
        let path = uri.path().trim_start_matches('/');
        let is_route = !path.rsplit('/').next().unwrap_or(path).contains('.');
        let path = if is_route { INDEX } else { path };
        let mut response = Response::new(Body::empty());
        let found = self.0.files.get(path);
        let sent = response.headers_mut();
        sent.insert(header::CONTENT_SECURITY_POLICY, self.0.security_policy.clone());
        sent.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        // Only under the right hash: another one is asked for by a page of another build.
        let is_stamped = found.is_some_and(|file| {
            let stamp = uri.query().and_then(|query| query.strip_prefix("v="));
            stamp == Some(&file.hash[..STAMP])
        });
        let caching = if is_stamped {
            "public, max-age=31536000, immutable"
        } else {
            "no-cache"
        };
        sent.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
        let Some(file) = found else {
            let plain = HeaderValue::from_static("text/plain; charset=utf-8");
            sent.insert(header::CONTENT_TYPE, plain);
            *response.status_mut() = StatusCode::NOT_FOUND;
            *response.body_mut() = Body::from("the page has no such file\n");
            return response;
        };
        let encodings = headers.get(header::ACCEPT_ENCODING);
        let encodings = encodings.and_then(|value| value.to_str().ok());
        let takes_brotli = encodings.is_some_and(accepts_brotli);
        let compressed = file.compressed.as_ref().filter(|_| takes_brotli);
        let suffix = if compressed.is_some() { "-br" } else { "" };
        let tag = format!("\"{}{suffix}\"", file.hash);
        let is_known = has_already(headers, &tag);
        sent.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type(path)));
        sent.extend(HeaderValue::from_str(&tag).ok().map(|tag| (header::ETAG, tag)));
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        if compressed.is_some() {
            sent.insert(header::CONTENT_ENCODING, HeaderValue::from_static("br"));
        }
        *response.body_mut() = Body::from(compressed.unwrap_or(&file.bytes).clone());
        response
    }
}

fn read_into(files: &mut BTreeMap<String, Bytes>, folder: &FilePath, prefix: &str) -> Result<(), PageError> {
    let unreadable = |path: &FilePath| {
        let path = path.to_owned();
        move |source| PageError::Read { path, source }
    };
    for entry in std::fs::read_dir(folder).map_err(unreadable(folder))? {
        let entry = entry.map_err(unreadable(folder))?;
        let path = entry.path();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if path.is_dir() {
            read_into(files, &path, &format!("{name}/"))?;
        } else {
            files.insert(name, std::fs::read(&path).map_err(unreadable(&path))?.into());
        }
    }
    Ok(())
}

/// The policy that the page states for hosts that send no headers.
fn security_policy(page: &str) -> Option<&str> {
    let (_, after) = page.split_once("http-equiv=\"Content-Security-Policy\" content=\"")?;
    Some(after.split_once('"')?.0)
}

/// Whether an `Accept-Encoding` allows brotli.
fn accepts_brotli(accepted: &str) -> bool {
    accepted.split(',').any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        let is_refused = matches!(quality.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
        name.trim() == "br" && !is_refused
    })
}

/// The media type by the name's ending.
fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("webmanifest") => "application/manifest+json",
        Some("json") => "application/json",
        Some("txt" | "md") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"<meta http-equiv="Content-Security-Policy" content="default-src 'none'">"#;

    fn page() -> Page {
        let files = [
            ("index.html", POLICY),
            ("boot.js", "boot"),
            ("boot.js.br", "small"),
            ("icons/capo.svg", "<svg/>"),
            ("docs/method.md", "# The method"),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), Bytes::from_static(text.as_bytes())));
        Page::of(files.into()).unwrap()
    }

    fn ask(url: &str, headers: &[(header::HeaderName, &str)]) -> Response {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()));
        page().answer(&url.parse().unwrap(), &headers.collect())
    }

    async fn body(response: Response) -> Bytes {
        axum::body::to_bytes(response.into_body(), 1000).await.unwrap()
    }

    #[tokio::test]
    async fn routes_get_the_page_and_missing_files_do_not() {
        for route in ["/", "/run/x", "/run/x/candidate/c95e03?trace=1", "/runs/"] {
            assert_eq!(body(ask(route, &[])).await, POLICY, "{route}");
        }
        for missing in ["/gone.js", "/../Cargo.toml", "/boot.js.br", "/.env"] {
            assert_eq!(ask(missing, &[]).status(), 404, "{missing}");
        }
        let kind = |url: &str| ask(url, &[]).headers()[header::CONTENT_TYPE].clone();
        assert_eq!(kind("/icons/capo.svg"), "image/svg+xml");
        // Read in the browser, not saved.
        assert_eq!(kind("/docs/method.md"), "text/plain; charset=utf-8");
    }

    #[test]
    fn only_the_right_hash_is_cached_for_ever() {
        let caching = |url: &str| ask(url, &[]).headers()[header::CACHE_CONTROL].clone();
        let right = format!("/boot.js?v={}", &secret::sha256(b"boot")[..STAMP]);
        assert!(caching(&right).to_str().unwrap().contains("immutable"));
        for other in ["/boot.js", "/boot.js?v=000000000000", "/"] {
            assert_eq!(caching(other), "no-cache", "{other}");
        }
    }

    #[tokio::test]
    async fn what_the_browser_has_is_not_sent_again() {
        let brotli = (header::ACCEPT_ENCODING, "gzip, br");
        let first = ask("/boot.js", std::slice::from_ref(&brotli));
        assert_eq!(first.headers()[header::CONTENT_ENCODING], "br");
        let tag = first.headers()[header::ETAG].to_str().unwrap().to_owned();
        assert_eq!(body(first).await, "small");
        let again = ask("/boot.js", &[brotli, (header::IF_NONE_MATCH, &tag)]);
        assert_eq!(again.status(), 304);
        let plain = ask("/boot.js", &[(header::IF_NONE_MATCH, &tag)]);
        assert_eq!(
            (plain.status(), body(plain).await),
            (StatusCode::OK, Bytes::from("boot"))
        );
    }

    #[test]
    fn every_answer_carries_the_policy() {
        for url in ["/", "/boot.js", "/gone.js"] {
            let policy = ask(url, &[]).headers()[header::CONTENT_SECURITY_POLICY].clone();
            assert_eq!(policy, "default-src 'none'; frame-ancestors 'none'", "{url}");
        }
        let no_policy = BTreeMap::from([(INDEX.to_owned(), Bytes::new())]);
        assert!(matches!(Page::of(no_policy), Err(PageError::NoIndex(_))));
    }

    #[test]
    fn brotli_is_sent_to_those_who_take_it() {
        assert!(accepts_brotli("gzip, deflate, br, zstd") && accepts_brotli("br;q=0.5"));
        assert!(!accepts_brotli("gzip, br;q=0") && !accepts_brotli("brotli"));
    }
}
