//! A long journal: taken in from a file, opened again, scrolled.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::times;
use crate::browser::{Browser, numbers};
use crate::build;
use crate::help_desk::{STUDY, write_journal};
use crate::scratch::Scratch;
use crate::workspace::Workspace;

/// Lines of the built-in study that are replaced for a search of more than 5,000 rollouts.
const LONGER: [(&str, &str); 2] = [
    ("rounds = 6", "rounds = 10"),
    ("rollouts = 4000", "rollouts = 9000"),
];
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

/// Writes a journal of more than 5,000 rollouts.
pub(super) fn write(workspace: &Workspace, scratch: &Scratch) -> Result<PathBuf> {
    let path = workspace.root.join(STUDY);
    let mut study =
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    for (line, longer) in LONGER {
        ensure!(study.contains(line), "{STUDY} has no line `{line}`");
        study = study.replace(line, longer);
    }
    let longer = scratch.file("long.toml");
    std::fs::write(&longer, study).with_context(|| format!("cannot write {}", longer.display()))?;
    let journal = scratch.file("long.jsonl");
    write_journal(workspace, &build::capo(workspace)?, &longer, 0, &journal)?;
    Ok(journal)
}

/// Takes the journal in, opens its pages and scrolls them.
pub(super) fn run(browser: &Browser, address: &str, journal: &Path) -> Result<()> {
    let size = std::fs::metadata(journal)
        .with_context(|| format!("cannot read {}", journal.display()))?
        .len();
    browser.visit(&format!("{address}runs"))?;
    let started = Instant::now();
    browser.choose("Journals to open", journal)?;
    browser.until_shown("Success against the worst residual")?;
    let rollouts = browser.evaluate(
        "return document.querySelector('main').innerText.match(/Rollouts\\s+([\\d,]+)/)?.[1]",
        &[],
    )?;
    println!(
        "a journal of {} rollouts, {:.1} MB:",
        rollouts.as_str().unwrap_or("?"),
        size as f64 / 1e6
    );
    times(
        "taken in from a file",
        vec![started.elapsed().as_secs_f64() * 1e3],
    );
    let run = browser.evaluate("return location.href", &[])?;
    let run = run.as_str().context("a page has no address")?;
    for (name, page) in [
        ("opened: live", ""),
        ("opened: candidates", "/candidate"),
        ("opened: result", "/result"),
    ] {
        let opened = (0..VISITS)
            .map(|_| {
                browser.go(&format!("{run}{page}"))?;
                let shown = browser.until("a page of the run is shown", SHOWN, &[])?;
                shown.as_f64().context("a time is no number")
            })
            .collect::<Result<Vec<_>>>()?;
        times(name, opened);
        browser.evaluate(SCROLL, &[])?;
        let frames = browser.until("the page is scrolled", "return window.scrolled", &[])?;
        if !numbers(&frames).is_empty() {
            times("  a frame while scrolling", numbers(&frames));
        }
    }
    Ok(())
}
