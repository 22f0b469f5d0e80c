//! The built page over HTTP on this machine, with the headers a host should send.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result, anyhow};
use tiny_http::{Header, Method, Request, Response, Server, StatusCode};

use super::shell::{COMPRESSED, Shell, hash, media_type, stamp_of};

/// How many requests are answered at a time: a browser opens six connections to a host.
const THREADS: usize = 6;
const PAGE: &str = "index.html";
/// The page asks for nothing that a browser would have to grant.
const PERMISSIONS: &str = "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), \
                           magnetometer=(), microphone=(), midi=(), payment=(), usb=()";

/// A page that is being served. What it answers with is what was built when it was opened.
pub(crate) struct PageServer {
    http: Server,
    site: Site,
}

impl PageServer {
    /// Takes the port on the loopback interface, 0 for any free one.
    ///
    /// # Errors
    /// The port is taken or not allowed; the message says what to do.
    pub(crate) fn bind(port: u16) -> Result<TcpListener> {
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
            anyhow!(
                "cannot listen on port {port} of this machine ({error})\n\
                 Stop what listens there, or choose another: cargo xtask serve --port {}",
                port.checked_add(1).unwrap_or(8788)
            )
        })
    }

    /// Reads the page that lies in the directory, to serve it there.
    ///
    /// # Errors
    /// The directory holds no page that `trunk build` made, or it cannot be read.
    pub(crate) fn open(listener: TcpListener, directory: &Path) -> Result<Self> {
        let site = Site::new(Shell::read(directory)?)
            .with_context(|| format!("cannot serve {}", directory.display()))?;
        let http = Server::from_listener(listener, None)
            .map_err(|error| anyhow!("cannot listen on this machine: {error}"))?;
        Ok(Self { http, site })
    }

    /// Where the page is.
    pub(crate) fn address(&self) -> String {
        format!("http://{}/", self.http.server_addr())
    }

    /// Answers until the process ends.
    pub(crate) fn run(self) {
        let server = Arc::new(self);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for request in server.http.incoming_requests() {
                        server.site.respond(request);
                    }
                });
            }
        });
    }
}

struct File {
    bytes: Vec<u8>,
    compressed: Option<Vec<u8>>,
    hash: String,
}

struct Site {
    files: BTreeMap<String, File>,
    security_policy: String,
}

/// What is sent back, apart from the headers that are the same for everything.
#[derive(Debug, PartialEq, Eq)]
struct Answer<'a> {
    status: u16,
    media_type: &'static str,
    caching: &'static str,
    tag: Option<String>,
    is_compressed: bool,
    body: &'a [u8],
}

/// What a request says that its answer depends on.
#[derive(Clone, Copy, Default)]
struct Asked<'a> {
    /// Path and query.
    url: &'a str,
    accepts_brotli: bool,
    /// The value of `If-None-Match`.
    known: Option<&'a str>,
}

impl Site {
    fn new(shell: Shell) -> Result<Self> {
        let Shell(mut all) = shell;
        let names: Vec<_> = all
            .keys()
            .filter(|path| !path.ends_with(COMPRESSED))
            .cloned()
            .collect();
        let mut files = BTreeMap::new();
        for path in names {
            let compressed = all.remove(&format!("{path}{COMPRESSED}"));
            if let Some((path, bytes)) = all.remove_entry(&path) {
                let hash = hash(&bytes);
                let file = File {
                    bytes,
                    compressed,
                    hash,
                };
                files.insert(path, file);
            }
        }
        let page = &files
            .get(PAGE)
            .with_context(|| format!("there is no {PAGE}"))?
            .bytes;
        let security_policy = std::str::from_utf8(page)
            .ok()
            .and_then(security_policy)
            .with_context(|| format!("{PAGE} states no content security policy"))?
            // Browsers take this one from a header only.
            .to_owned()
            + "; frame-ancestors 'none'";
        Ok(Self {
            files,
            security_policy,
        })
    }

    fn respond(&self, request: Request) {
        let header = |name: &'static str| {
            request
                .headers()
                .iter()
                .find(|header| header.field.equiv(name))
                .map(|header| header.value.as_str())
        };
        let answer = match request.method() {
            Method::Get | Method::Head => self.answer(Asked {
                url: request.url(),
                accepts_brotli: header("Accept-Encoding").is_some_and(accepts_brotli),
                known: header("If-None-Match"),
            }),
            _ => Answer::text(405, "this server answers GET and HEAD"),
        };
        let response = Response::new(
            StatusCode(answer.status),
            self.headers(&answer),
            Cursor::new(answer.body),
            Some(answer.body.len()),
            None,
        )
        .with_chunked_threshold(usize::MAX);
        // It fails when the browser has gone away, which needs no word.
        let _ = request.respond(response);
    }

    fn answer(&self, asked: Asked<'_>) -> Answer<'_> {
        let (path, query) = asked.url.split_once('?').unwrap_or((asked.url, ""));
        let path = path.trim_start_matches('/');
        let is_route = !path.rsplit('/').next().unwrap_or(path).contains('.');
        let path = if is_route { PAGE } else { path };
        let Some(file) = self.files.get(path) else {
            return Answer::text(404, "the page has no such file");
        };
        let compressed = file.compressed.as_deref().filter(|_| asked.accepts_brotli);
        let tag = if compressed.is_some() {
            format!("\"{}-br\"", file.hash)
        } else {
            format!("\"{}\"", file.hash)
        };
        let is_known = asked
            .known
            .is_some_and(|known| known.split(',').any(|known| known.trim() == tag));
        Answer {
            status: if is_known { 304 } else { 200 },
            media_type: media_type(path),
            // Only under the right hash: another one is asked for by a page of another build.
            caching: if query == format!("v={}", stamp_of(&file.hash)) {
                "public, max-age=31536000, immutable"
            } else {
                "no-cache"
            },
            tag: Some(tag),
            is_compressed: compressed.is_some(),
            body: if is_known {
                &[]
            } else {
                compressed.unwrap_or(&file.bytes)
            },
        }
    }

    fn headers(&self, answer: &Answer) -> Vec<Header> {
        let mut headers = vec![
            ("Content-Type", answer.media_type),
            ("Cache-Control", answer.caching),
            ("Vary", "Accept-Encoding"),
            ("Content-Security-Policy", &self.security_policy),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Permissions-Policy", PERMISSIONS),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
        ];
        headers.extend(answer.tag.as_deref().map(|tag| ("ETag", tag)));
        if answer.is_compressed {
            headers.push(("Content-Encoding", "br"));
        }
        headers
            .into_iter()
            .filter_map(|(name, value)| Header::from_bytes(name, value).ok())
            .collect()
    }
}

impl Answer<'_> {
    fn text(status: u16, text: &'static str) -> Answer<'static> {
        Answer {
            status,
            media_type: "text/plain; charset=utf-8",
            caching: "no-cache",
            tag: None,
            is_compressed: false,
            body: text.as_bytes(),
        }
    }
}

/// Whether an `Accept-Encoding` allows brotli.
fn accepts_brotli(accepted: &str) -> bool {
    accepted.split(',').any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        let is_refused = matches!(quality.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
        name.trim() == "br" && !is_refused
    })
}

/// The policy that the page states for hosts that send no headers.
fn security_policy(page: &str) -> Option<&str> {
    let (_, after) = page.split_once("http-equiv=\"Content-Security-Policy\" content=\"")?;
    Some(after.split_once('"')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"<meta http-equiv="Content-Security-Policy" content="default-src 'none'">"#;

    fn site() -> Site {
        let files = [
            ("index.html", POLICY),
            ("boot.js", "boot"),
            ("boot.js.br", "small"),
            ("icons/capo.svg", "<svg/>"),
        ];
        Site::new(Shell(
            files
                .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
                .into(),
        ))
        .unwrap()
    }

    fn get<'a>(site: &'a Site, url: &str) -> Answer<'a> {
        site.answer(Asked {
            url,
            ..Asked::default()
        })
    }

    #[test]
    fn routes_get_the_page_and_missing_files_do_not() {
        let site = site();
        for route in ["/", "/run/x", "/run/x/candidate/c95e03?trace=1", "/runs/"] {
            assert_eq!(get(&site, route).body, POLICY.as_bytes(), "{route}");
        }
        for missing in ["/gone.js", "/../Cargo.toml", "/boot.js.br", "/.env"] {
            assert_eq!(get(&site, missing).status, 404, "{missing}");
        }
        assert_eq!(get(&site, "/icons/capo.svg").media_type, "image/svg+xml");
    }

    #[test]
    fn only_the_right_hash_is_cached_for_ever() {
        let site = site();
        let right = format!("/boot.js?v={}", stamp_of(&hash(b"boot")));
        assert!(get(&site, &right).caching.contains("immutable"));
        for other in ["/boot.js", "/boot.js?v=000000000000", "/"] {
            assert_eq!(get(&site, other).caching, "no-cache", "{other}");
        }
    }

    #[test]
    fn what_the_browser_has_is_not_sent_again() {
        let site = site();
        let asked = Asked {
            url: "/boot.js",
            accepts_brotli: true,
            known: None,
        };
        let first = site.answer(asked);
        assert_eq!((first.is_compressed, first.body), (true, b"small".as_slice()));
        let tag = first.tag.unwrap();
        let known = Some(tag.as_str());
        let again = site.answer(Asked { known, ..asked });
        assert_eq!((again.status, again.body), (304, [].as_slice()));
        let accepts_brotli = false;
        let plain = site.answer(Asked {
            accepts_brotli,
            known,
            ..asked
        });
        assert_eq!((plain.status, plain.body), (200, b"boot".as_slice()));
    }

    #[test]
    fn every_answer_carries_the_policy() {
        let site = site();
        for url in ["/", "/boot.js", "/gone.js"] {
            let headers = site.headers(&get(&site, url));
            let policy = headers
                .iter()
                .find(|header| header.field.equiv("Content-Security-Policy"))
                .unwrap();
            assert_eq!(
                policy.value.as_str(),
                "default-src 'none'; frame-ancestors 'none'"
            );
        }
        assert!(Site::new(Shell(BTreeMap::from([(PAGE.to_owned(), Vec::new())]))).is_err());
    }

    #[test]
    fn brotli_is_sent_to_those_who_take_it() {
        assert!(accepts_brotli("gzip, deflate, br, zstd"));
        assert!(accepts_brotli("br;q=0.5"));
        assert!(!accepts_brotli("gzip, br;q=0") && !accepts_brotli("brotli"));
    }

    #[test]
    fn a_taken_port_says_what_to_do() {
        let taken = PageServer::bind(0).unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = PageServer::bind(port).unwrap_err().to_string();
        assert!(
            error.contains(&format!("port {port}")) && error.contains("--port"),
            "{error}"
        );
    }

    #[test]
    fn serves_over_a_socket() {
        let directory = std::env::temp_dir().join(format!("xtask-page-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(PAGE), POLICY).unwrap();
        let server = PageServer::open(PageServer::bind(0).unwrap(), &directory);
        std::fs::remove_dir_all(&directory).unwrap();
        let server = server.unwrap();
        let address = server.address();
        thread::spawn(move || server.run());
        let mut answer = ureq::get(format!("{address}run/x")).call().unwrap();
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        assert_eq!(answer.body_mut().read_to_string().unwrap(), POLICY);
    }
}
