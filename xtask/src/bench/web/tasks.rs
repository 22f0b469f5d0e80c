//! Whether the page keeps answering while a run goes on.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::browser::{Browser, numbers};
use crate::help_desk::STUDY;

/// How long the run may take.
const PATIENCE: Duration = Duration::from_mins(5);

/// Between two looks at whether it has ended.
const PAUSE: Duration = Duration::from_secs(1);

/// Keeps the tasks that took the page's thread for more than 50 ms: when, and for how long (ms).
const WATCH: &str = "
    window.longTasks = [];
    new PerformanceObserver((list) => {
        for (const { startTime, duration } of list.getEntries()) window.longTasks.push([startTime, duration]);
    }).observe({ type: 'longtask', buffered: true });";

/// Runs the built-in study on the page and prints what kept the page from answering.
pub(super) fn run(browser: &Browser, address: &str) -> Result<()> {
    browser.before_each_load(WATCH)?;
    browser.visit(address)?;
    let began = browser.evaluate("return performance.now()", &[])?;
    let started = Instant::now();
    browser.click("Run the help-desk study")?;
    // Asked often, or for the page's text, the driver itself would keep the page busy.
    let ended = "return [...document.querySelectorAll('.actions a')]
        .some((link) => link.textContent.includes('See the result'))";
    while browser.evaluate(ended, &[])? != Value::Bool(true) {
        ensure!(
            started.elapsed() < PATIENCE,
            "the run has not ended after {PATIENCE:?}"
        );
        thread::sleep(PAUSE);
    }
    let longer = "return longTasks.filter(([start]) => start >= arguments[0]).map(([, took]) => took)";
    let tasks = numbers(&browser.evaluate(longer, &[began])?);
    let longest = tasks.iter().copied().fold(0.0, f64::max);
    println!(
        "a run of {STUDY}: {} tasks over 50 ms on the page's thread, the longest {longest:.0} ms",
        tasks.len()
    );
    Ok(())
}
