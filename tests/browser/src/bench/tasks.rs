//! Whether the page keeps answering while a run goes on.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use capo_browser::Browser;
use serde_json::Value;
use tokio::time::sleep;

use crate::{before_each_load, numbers};

/// How long the run may take.
const PATIENCE: Duration = Duration::from_mins(5);

/// Before a run is begun, and between two looks at whether it has ended.
const PAUSE: Duration = Duration::from_secs(1);

/// How often it is run, each time in the page loaded anew.
const RUNS: usize = 3;

/// Keeps the tasks that took the page's thread for more than 50 ms: when, and for how long (ms).
const WATCH: &str = "
    window.longTasks = [];
    new PerformanceObserver((list) => {
        for (const { startTime, duration } of list.getEntries()) window.longTasks.push([startTime, duration]);
    }).observe({ type: 'longtask', buffered: true });";

/// Runs the built-in study on the page a few times and prints what kept the page from answering.
pub(super) async fn run(browser: &Browser) -> Result<()> {
    println!("tasks over 50 ms on the page's thread during a run of studies/help-desk.toml");
    before_each_load(browser, WATCH).await;
    for run in 1..=RUNS {
        println!("run {run}: {}", long_tasks(browser).await?);
    }
    Ok(())
}

async fn long_tasks(browser: &Browser) -> Result<String> {
    browser.go("/").await;
    // Nobody clicks while the page is still being drawn.
    sleep(PAUSE).await;
    let began = browser.js("return performance.now()").await;
    let started = Instant::now();
    browser.click("Run the help-desk study").await;
    // Asked often, or for the page's text, the driver itself would keep the page busy.
    let ended = "return [...document.querySelectorAll('.actions a')]
        .some((link) => link.textContent.includes('See the result'))";
    while browser.js(ended).await != Value::Bool(true) {
        ensure!(
            started.elapsed() < PATIENCE,
            "the run has not ended after {PATIENCE:?}"
        );
        sleep(PAUSE).await;
    }
    let longer = "return longTasks.filter(([start]) => start >= arguments[0])
        .map(([start, took]) => [start - arguments[0], took])";
    let tasks = browser.js_with(longer, vec![began]).await;
    let tasks: Vec<String> = tasks
        .as_array()
        .into_iter()
        .flatten()
        .map(|task| match numbers(task)[..] {
            [start, took] => format!("{took:.0} ms at {:.1} s", start / 1000.0),
            _ => task.to_string(),
        })
        .collect();
    Ok(if tasks.is_empty() {
        "none".to_owned()
    } else {
        tasks.join(", ")
    })
}
