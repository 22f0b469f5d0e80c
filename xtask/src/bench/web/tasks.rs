//! Whether the page keeps answering while a run goes on.

use anyhow::Result;

use crate::browser::{Browser, numbers};
use crate::help_desk::STUDY;

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
    browser.click("Run the help-desk study")?;
    browser.until_shown("Finished.")?;
    let longer = "return longTasks.filter(([start]) => start >= arguments[0]).map(([, took]) => took)";
    let tasks = numbers(&browser.evaluate(longer, &[began])?);
    let longest = tasks.iter().copied().fold(0.0, f64::max);
    println!(
        "a run of {STUDY}: {} tasks over 50 ms on the page's thread, the longest {longest:.0} ms",
        tasks.len()
    );
    Ok(())
}
