//! `cargo xtask stamp`, which Trunk calls on what it has built: puts the hash of a file's content
//! behind every reference to it, and makes a release build small.
//!
//! A reference is written `"./boot.js?v=HASH"` in a script, sheet or manifest, relative to that file,
//! and `"BASE/boot.js?v=HASH"` in `index.html`, whose routes are paths of any depth; of one in a sheet,
//! esbuild makes `url(./hatch.svg?v=HASH)`. With the hash in its address a file can be cached for ever,
//! and a page never loads files of two versions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::bundle;
use super::report::{REPORT, report};
use super::shell::{COMPRESSED, Shell, compressed, ending, hash, is_compressible, stamp_of};
use crate::install::{Tool, Toolbox};

const PAGE: &str = "index.html";
const LOADER: &str = "capo-web.js";
const WORKER: &str = "sw.js";
/// Hosts that know it answer unknown paths, so every route, with this page.
const FALLBACK: &str = "404.html";
/// Where the documentation lies among the page's files.
const DOCUMENTS: &str = "docs/";
/// Stands for the path of the page on its host.
const BASE: &str = "BASE/";
/// Stands for the hash, in references.
const MARK: &str = "?v=HASH";

/// Stamps the directory that Trunk's environment names, its style sheets bundled; scripts of a release build are
/// minified before, and its files compressed after.
///
/// # Errors
/// Not called by Trunk, a reference leads nowhere, or a file cannot be read or written.
pub(crate) fn run() -> Result<()> {
    let variable = |name: &str| {
        std::env::var(name)
            .with_context(|| format!("no {name}: `trunk build` calls this task (see Trunk.toml)"))
    };
    let directory = PathBuf::from(variable("TRUNK_STAGING_DIR")?);
    let base = base(&variable("TRUNK_PUBLIC_URL")?)?;
    let is_release = variable("TRUNK_PROFILE")? == "release";

    let mut toolbox = Toolbox::open()?;
    toolbox.ensure(&Tool::Esbuild)?;
    let Shell(built) = Shell::read(&directory)?;
    let paths = built.keys().map(String::as_str);
    bundle::styles(&toolbox, &directory, paths.clone())?;
    if is_release {
        let scripts: Vec<&str> = paths.filter(|path| ending(path) == "js").collect();
        bundle::scripts(&toolbox, &directory, &scripts)?;
    }
    let Shell(mut bundled) = Shell::read(&directory)?;
    // As it was written: what a report starts it by is named in it.
    let loader = built
        .get(LOADER)
        .with_context(|| format!("there is no {LOADER}"))?;
    let in_one_file = report(loader, &bundled)?;
    bundled.insert(REPORT.to_owned(), in_one_file);
    // What the foot of every page leads to.
    let root = PathBuf::from(variable("TRUNK_SOURCE_DIR")?);
    let documents = Shell::read(&root.join("docs"))?.0.into_iter();
    let documents = documents.filter(|(path, _)| ending(path) == "md" && !path.contains('/'));
    bundled.extend(documents.map(|(path, bytes)| (format!("{DOCUMENTS}{path}"), bytes)));
    std::fs::create_dir_all(directory.join(DOCUMENTS))?;
    let mut files = stamped(bundled, &base)?;
    if is_release {
        for (path, bytes) in files.clone() {
            // Most of a report is compressed already.
            if is_compressible(&path) && path != REPORT {
                files.insert(path + COMPRESSED, compressed(&bytes)?);
            }
        }
    }
    for (path, bytes) in &files {
        let path = directory.join(path);
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The path of the page on its host, with `/` at both ends.
fn base(public_url: &str) -> Result<String> {
    ensure!(
        public_url.starts_with('/'),
        "the public URL is `{public_url}`; give the path of the page on its host, as in --public-url /capo/"
    );
    Ok(format!("{}/", public_url.trim_end_matches('/')))
}

/// All files of the page, from those that Trunk wrote.
fn stamped(mut files: BTreeMap<String, Vec<u8>>, base: &str) -> Result<BTreeMap<String, Vec<u8>>> {
    let service_worker = files
        .remove(WORKER)
        .with_context(|| format!("there is no {WORKER}"))?;
    let mut stamper = Stamper {
        base,
        waiting: files,
        ..Stamper::default()
    };
    while let Some(path) = stamper.waiting.keys().next().cloned() {
        stamper.stamp(&path)?;
    }
    let mut done = stamper.done;
    let page = done
        .get(PAGE)
        .with_context(|| format!("there is no {PAGE}"))?
        .clone();
    let service_worker = with_files(service_worker, &done, &stamper.referenced)?;
    done.insert(FALLBACK.to_owned(), page);
    done.insert(WORKER.to_owned(), service_worker);
    Ok(done)
}

/// Stamps each file after those that it refers to, for its own hash depends on theirs.
#[derive(Default)]
struct Stamper<'a> {
    base: &'a str,
    waiting: BTreeMap<String, Vec<u8>>,
    /// Those whose references are being followed.
    open: Vec<String>,
    done: BTreeMap<String, Vec<u8>>,
    /// Those whose address carries their hash.
    referenced: BTreeSet<String>,
}

impl Stamper<'_> {
    fn stamp(&mut self, path: &str) -> Result<()> {
        if self.done.contains_key(path) {
            return Ok(());
        }
        ensure!(
            !self.open.iter().any(|open| open == path),
            "{path} refers to itself, through {}",
            self.open.join(", ")
        );
        let bytes = self
            .waiting
            .get(path)
            .with_context(|| format!("the page has no file {path}"))?
            .clone();
        self.open.push(path.to_owned());
        let bytes = if has_references(path) {
            let text = String::from_utf8(bytes).with_context(|| format!("{path} is not UTF-8"))?;
            self.with_stamps(path, &text)
                .with_context(|| format!("cannot stamp {path}"))?
                .into_bytes()
        } else {
            bytes
        };
        self.open.pop();
        self.waiting.remove(path);
        self.done.insert(path.to_owned(), bytes);
        Ok(())
    }

    fn with_stamps(&mut self, path: &str, text: &str) -> Result<String> {
        let mut stamped = String::new();
        let mut rest = text;
        while let Some(mark) = rest.find(MARK) {
            let (before, after) = rest.split_at(mark);
            let (_, reference) = before
                .rsplit_once(['"', '('])
                .with_context(|| format!("`{MARK}` stands outside a reference"))?;
            let target = target(path, reference)?;
            self.stamp(&target)?;
            let digits = hash(&self.done[&target]);
            stamped.extend([before, "?v=", stamp_of(&digits)]);
            self.referenced.insert(target);
            rest = &after[MARK.len()..];
        }
        stamped.push_str(rest);
        Ok(if path == PAGE {
            stamped.replace(&format!("\"{BASE}"), &format!("\"{}", self.base))
        } else {
            stamped
        })
    }
}

fn has_references(path: &str) -> bool {
    [".html", ".js", ".css", ".webmanifest"]
        .iter()
        .any(|ending| path.ends_with(ending))
}

/// The path of the file that a reference in the file at `path` means.
fn target(path: &str, reference: &str) -> Result<String> {
    if let Some(from_base) = reference.strip_prefix(BASE) {
        return Ok(from_base.to_owned());
    }
    let Some(relative) = reference.strip_prefix("./") else {
        bail!("the reference `{reference}` must begin with ./ or, in {PAGE}, with {BASE}");
    };
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    Ok(format!("{directory}/{relative}")
        .trim_start_matches('/')
        .to_owned())
}

/// The service worker's text with the addresses and hashes of all files in it.
fn with_files(
    service_worker: Vec<u8>,
    files: &BTreeMap<String, Vec<u8>>,
    referenced: &BTreeSet<String>,
) -> Result<Vec<u8>> {
    let list: BTreeMap<String, String> = files
        .iter()
        // Few people ask for them, and the report is as large as the page.
        .filter(|(path, _)| *path != REPORT && !path.starts_with(DOCUMENTS))
        .map(|(path, bytes)| {
            let digits = hash(bytes);
            let address = match path.as_str() {
                // Hosts redirect the page's own name, and a redirect cannot answer for a route.
                PAGE => String::new(),
                path if referenced.contains(path) => format!("{path}?v={}", stamp_of(&digits)),
                path => path.to_owned(),
            };
            (address, digits)
        })
        .collect();
    let list = serde_json::to_string_pretty(&list)?;
    let text = String::from_utf8(service_worker).with_context(|| format!("{WORKER} is not UTF-8"))?;
    for constant in ["SHELL_VERSION", "SHELL_FILES"] {
        ensure!(text.contains(constant), "{WORKER} has no {constant}");
    }
    let version = hash([text.as_bytes(), list.as_bytes()].concat().as_slice());
    let text = text
        .replace("SHELL_VERSION", stamp_of(&version))
        .replace("SHELL_FILES", &list);
    Ok(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(boot: &str) -> BTreeMap<String, Vec<u8>> {
        [
            (
                "index.html",
                r#"<meta content="BASE/"><script src="BASE/boot.js?v=HASH">"#,
            ),
            ("boot.js", boot),
            ("capo-web.js", "glue"),
            ("snippets/extra.js", "extra"),
            ("report.txt", "<!-- journals -->"),
            ("docs/method.md", "# The method"),
            ("styles/main.css", "body { }"),
            ("sw.js", "\"SHELL_VERSION\"; SHELL_FILES;"),
        ]
        .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
        .into()
    }

    fn text<'a>(files: &'a BTreeMap<String, Vec<u8>>, path: &str) -> &'a str {
        std::str::from_utf8(&files[path]).unwrap()
    }

    const BOOT: &str = r#"import "./capo-web.js?v=HASH";"#;

    #[test]
    fn a_change_reaches_every_file_that_refers_to_it() {
        let before = stamped(built(BOOT), "/capo/").unwrap();
        let glue = hash(b"glue");
        assert_eq!(
            text(&before, "boot.js"),
            format!("import \"./capo-web.js?v={}\";", &glue[..12])
        );
        let boot = hash(&before["boot.js"]);
        assert_eq!(
            text(&before, "index.html"),
            format!(
                "<meta content=\"/capo/\"><script src=\"/capo/boot.js?v={}\">",
                &boot[..12]
            )
        );
        assert_eq!(before["404.html"], before["index.html"]);

        let mut changed = built(BOOT);
        changed.insert("capo-web.js".to_owned(), b"other glue".to_vec());
        let after = stamped(changed, "/capo/").unwrap();
        for path in ["boot.js", "index.html", "sw.js"] {
            assert_ne!(before[path], after[path], "{path}");
        }
    }

    #[test]
    fn the_service_worker_knows_every_address() {
        let files = stamped(built(BOOT), "/").unwrap();
        let worker = text(&files, "sw.js");
        assert!(!worker.contains("SHELL_"));
        let list = worker.split_once("; ").unwrap().1.trim_end_matches(';');
        let list: BTreeMap<String, String> = serde_json::from_str(list).unwrap();
        assert_eq!(list[""], hash(&files["index.html"]));
        assert_eq!(list["snippets/extra.js"], hash(b"extra"));
        let glue = hash(b"glue");
        assert_eq!(list[&format!("capo-web.js?v={}", &glue[..12])], glue);
        for left_out in ["404", "report", "docs"] {
            assert!(
                !list.keys().any(|address| address.contains(left_out)),
                "{left_out}"
            );
        }
    }

    #[test]
    fn references_are_relative_to_their_file() {
        assert_eq!(target("boot.js", "./worker.js").unwrap(), "worker.js");
        assert_eq!(
            target("styles/main.css", "./hatch.svg").unwrap(),
            "styles/hatch.svg"
        );
        assert_eq!(target(PAGE, "BASE/icons/capo.svg").unwrap(), "icons/capo.svg");
        assert!(target("boot.js", "worker.js").is_err());
    }

    #[test]
    fn sheets_refer_without_quotes() {
        let mut files = built(BOOT);
        let sheet = r#".a{content:"x"}.b{background:url(./hatch.svg?v=HASH)}"#;
        files.insert("styles/main.css".to_owned(), sheet.into());
        files.insert("styles/hatch.svg".to_owned(), b"<svg/>".to_vec());
        let files = stamped(files, "/").unwrap();
        let hatch = hash(b"<svg/>");
        assert!(text(&files, "styles/main.css").ends_with(&format!("url(./hatch.svg?v={})}}", &hatch[..12])));
    }

    #[test]
    fn dangling_and_circular_references_are_errors() {
        let error = |boot| format!("{:#}", stamped(built(boot), "/").unwrap_err());
        assert!(error(r#"import "./gone.js?v=HASH";"#).contains("the page has no file gone.js"));
        assert!(error(r#"import "./boot.js?v=HASH";"#).contains("boot.js refers to itself"));
    }

    #[test]
    fn the_base_is_a_path() {
        assert_eq!(base("/").unwrap(), "/");
        assert_eq!(base("/capo").unwrap(), "/capo/");
        assert!(base("./").is_err());
    }
}
