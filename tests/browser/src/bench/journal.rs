//! A long journal: taken in from a file, opened again, scrolled.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use capo_browser::Browser;

use super::{awaited, times};
use crate::numbers;

/// How often a page of the run is opened.
const VISITS: usize = 7;
/// When a page of the run stands, in milliseconds since its load began: its charts or tables are drawn.
const SHOWN: &str =
    "return document.querySelector('main .plate :is(.c-axis, td)') ? performance.now() : null";
/// Scrolls to the bottom, a bit each frame, and keeps how long each frame took (ms).
const SCROLL: &str = "
    const took = [];
    let last = null;
    const step = (now) => {
        if (last !== null) took.push(now - last);
        last = now;
        const before = scrollY;
        scrollBy({ top: 30, behavior: 'instant' });
        if (scrollY === before) window.scrolled = took;
        else requestAnimationFrame(step);
    };
    window.scrolled = null;
    requestAnimationFrame(step);";

/// Takes the journal in, opens its pages and scrolls them.
pub(super) async fn run(browser: &Browser, journal: &Path) -> Result<()> {
    let size = std::fs::metadata(journal)
        .with_context(|| format!("cannot read {}", journal.display()))?
        .len();
    browser.go("/runs").await;
    let started = Instant::now();
    browser.choose("Journals to open", journal).await;
    let taken_in = "return document.body.innerText.includes('Success against the worst residual')";
    awaited(browser, "the journal is taken in", taken_in).await?;
    let took = started.elapsed();
    let rollouts = "return document.querySelector('main').innerText.match(/Rollouts\\s+([\\d,]+)/)?.[1]";
    let rollouts = browser.js(rollouts).await;
    println!(
        "a journal of {} rollouts, {:.1} MB:",
        rollouts.as_str().unwrap_or("?"),
        size as f64 / 1e6
    );
    times("taken in from a file", vec![took.as_secs_f64() * 1e3]);
    let run = browser.js("return location.href").await;
    let run = run.as_str().context("a page has no address")?;
    for (name, page) in [
        ("opened: live", ""),
        ("opened: candidates", "/candidate"),
        ("opened: result", "/result"),
    ] {
        let mut opened = Vec::new();
        for _ in 0..VISITS {
            browser.driver.goto(format!("{run}{page}")).await?;
            let shown = awaited(browser, "a page of the run is shown", SHOWN).await?;
            opened.push(shown.as_f64().context("a time is no number")?);
        }
        times(name, opened);
        browser.js(SCROLL).await;
        let frames = awaited(browser, "the page is scrolled", "return window.scrolled").await?;
        if !numbers(&frames).is_empty() {
            times("  a frame while scrolling", numbers(&frames));
        }
    }
    Ok(())
}
