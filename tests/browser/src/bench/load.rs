//! The first load: bytes, and time until the page can be used.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::times;
use crate::{before_each_load, start};

/// Each in a browser that has never seen the page.
const VISITS: usize = 7;
/// A file compressed ahead of time lies beside the file itself, with this at the end of its name.
const COMPRESSED: &str = ".br";
/// Notes the time at which the page says that it stands, in milliseconds since the navigation began.
const WATCH: &str = r#"
    new MutationObserver((_, observer) => {
        if (document.documentElement?.dataset.ready !== "true") return;
        window.capoReadyAt = performance.now();
        observer.disconnect();
    }).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-ready"] });
"#;
/// What [`Visit`] holds.
const VISITED: &str = "return [
    window.capoReadyAt,
    performance.getEntriesByName('first-contentful-paint')[0]?.startTime,
    performance.getEntriesByType('resource').map(({ name }) => name),
]";

/// One load of the page.
struct Visit {
    /// Milliseconds from the navigation's start until the page can be used.
    interactive: f64,
    /// Milliseconds until the first text or picture was drawn.
    first_paint: f64,
    /// What was loaded, in order, the page itself first.
    addresses: Vec<String>,
}

pub(super) async fn run(address: &str, page: &Path) -> Result<()> {
    let mut visits = Vec::new();
    for _ in 0..VISITS {
        visits.push(visit(address).await?);
    }
    sizes(page, address, &visits[0])?;
    println!();
    println!("{VISITS} cold loads:");
    times(
        "first paint",
        visits.iter().map(|visit| visit.first_paint).collect(),
    );
    times(
        "interactive",
        visits.iter().map(|visit| visit.interactive).collect(),
    );
    Ok(())
}

async fn visit(address: &str) -> Result<Visit> {
    let browser = start(address).await;
    before_each_load(&browser, WATCH).await;
    browser.go("/").await;
    let visited = browser.js(VISITED).await;
    let resources = visited[2].as_array().into_iter().flatten();
    Ok(Visit {
        interactive: visited[0]
            .as_f64()
            .context("the time at which the page stood is no number")?,
        first_paint: visited[1].as_f64().unwrap_or(f64::NAN),
        addresses: std::iter::once(address)
            .chain(resources.filter_map(Value::as_str))
            .map(str::to_owned)
            .collect(),
    })
}

/// Prints the size of each file that the visit loaded.
fn sizes(page: &Path, address: &str, visit: &Visit) -> Result<()> {
    println!("{:<40} {:>10} {:>10}", "first load", "raw, kB", "brotli, kB");
    let (mut raw, mut small) = (0, 0);
    for loaded in &visit.addresses {
        let path = file(loaded, address);
        let length = |path: &str| std::fs::metadata(page.join(path)).map(|file| file.len());
        let whole =
            length(path).with_context(|| format!("the page loaded {loaded}, which is none of its files"))?;
        // A file without a compressed one beside it is sent as it is.
        let sent = length(&format!("{path}{COMPRESSED}")).unwrap_or(whole);
        println!("{path:<40} {:>10} {:>10}", kilobytes(whole), kilobytes(sent));
        raw += whole;
        small += sent;
    }
    println!("{:<40} {:>10} {:>10}", "all", kilobytes(raw), kilobytes(small));
    Ok(())
}

/// The path of the file behind an address below that of the page.
fn file<'a>(loaded: &'a str, page: &str) -> &'a str {
    let path = loaded.strip_prefix(page).unwrap_or(loaded);
    match path.split_once('?').map_or(path, |(path, _)| path) {
        "" => "index.html",
        path => path,
    }
}

fn kilobytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_address() {
        let page = "http://127.0.0.1:8787/";
        assert_eq!(file(page, page), "index.html");
        assert_eq!(
            file("http://127.0.0.1:8787/icons/capo.svg?v=0a1b", page),
            "icons/capo.svg"
        );
        assert_eq!(file("https://elsewhere/x.js", page), "https://elsewhere/x.js");
    }
}
