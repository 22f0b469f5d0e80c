//! The first load: bytes, time until the page can be used, and what a slow telephone sees of it.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

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
/// Notes the largest text or picture so far, and how far what was drawn has moved since.
const WATCH_PAINT: &str = r#"
    window.capoMoved = 0;
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.capoLargestAt = entry.startTime;
    }).observe({ type: "largest-contentful-paint", buffered: true });
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.capoMoved += entry.value;
    }).observe({ type: "layout-shift", buffered: true });
"#;
/// What [`Visit`] holds.
const VISITED: &str = "return [
    window.capoReadyAt,
    performance.getEntriesByName('first-contentful-paint')[0]?.startTime,
    performance.getEntriesByType('resource').map(({ name }) => name),
    window.capoLargestAt,
    window.capoMoved,
]";
/// The worker's module, which comes once the page stands.
const WORKER: &str = "capo-worker_bg.wasm";
/// Bytes a second and milliseconds of a slow mobile network, and how much slower a telephone computes, as Lighthouse has them.
const SLOW: (f64, f64, f64) = (1.6e6 / 8.0, 150.0, 4.0);

/// One load of the page.
struct Visit {
    /// Milliseconds from the navigation's start until the page can be used.
    interactive: f64,
    /// Milliseconds until the first text or picture was drawn.
    first_paint: f64,
    /// What was loaded, in order, the page itself first.
    addresses: Vec<String>,
    /// Milliseconds until the largest text or picture was drawn.
    largest_paint: f64,
    /// Sum of layout shifts: what moved, as a share of the window, times how far, as a share of its longer side.
    moved: f64,
}

pub(super) async fn run(address: &str, page: &Path) -> Result<()> {
    let mut visits = Vec::new();
    for _ in 0..VISITS {
        visits.push(visit(address, false).await?);
    }
    sizes(page, address, &visits[0])?;
    println!("{}", sized(page, WORKER)?.0);
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
    let slow = visit(address, true).await?;
    println!(
        "one cold load over a slow mobile network with a quarter of the speed: first paint {:.0} ms, largest {:.0} ms, \
         interactive {:.0} ms, layout shift {:.3}",
        slow.first_paint, slow.largest_paint, slow.interactive, slow.moved
    );
    Ok(())
}

async fn visit(address: &str, is_slow: bool) -> Result<Visit> {
    let browser = start(address).await;
    before_each_load(&browser, WATCH).await;
    before_each_load(&browser, WATCH_PAINT).await;
    if is_slow {
        let (bytes, latency, rate) = SLOW;
        let network = json!({
            "offline": false, "latency": latency, "downloadThroughput": bytes, "uploadThroughput": bytes / 2.0,
        });
        browser.devtools("Network.enable", json!({})).await;
        browser
            .devtools("Network.emulateNetworkConditions", network)
            .await;
        browser
            .devtools("Emulation.setCPUThrottlingRate", json!({ "rate": rate }))
            .await;
    }
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
        largest_paint: visited[3].as_f64().unwrap_or(f64::NAN),
        moved: visited[4].as_f64().unwrap_or(f64::NAN),
    })
}

/// A line with the size of a file of the page, and its bytes as they are and as they are sent.
fn sized(page: &Path, path: &str) -> Result<(String, [u64; 2])> {
    let length = |path: &str| std::fs::metadata(page.join(path)).map(|file| file.len());
    let whole = length(path).with_context(|| format!("{path} is none of the page's files"))?;
    // A file without a compressed one beside it is sent as it is.
    let sent = length(&format!("{path}{COMPRESSED}")).unwrap_or(whole);
    Ok((row(path, whole, sent), [whole, sent]))
}

fn row(name: &str, whole: u64, sent: u64) -> String {
    format!("{name:<40} {:>10} {:>10}", kilobytes(whole), kilobytes(sent))
}

/// Prints the size of each file that the visit loaded; whether a server stands behind the page is asked for without one.
fn sizes(page: &Path, address: &str, visit: &Visit) -> Result<()> {
    println!("{:<40} {:>10} {:>10}", "first load", "raw, kB", "brotli, kB");
    let (mut raw, mut small) = (0, 0);
    let paths = visit.addresses.iter().map(|loaded| file(loaded, address));
    for path in paths.filter(|path| !Path::new(path).starts_with("api")) {
        let (line, [whole, sent]) = sized(page, path)?;
        println!("{line}");
        raw += whole;
        small += sent;
    }
    println!("{}", row("all", raw, small));
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
