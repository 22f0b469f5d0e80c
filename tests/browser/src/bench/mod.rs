//! What the page costs: its first load, what a run does to it, and a long journal.

mod journal;
mod load;
mod tasks;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use capo_browser::Browser;
use serde_json::Value;
use tokio::time::sleep;

use crate::start;

/// Between two looks, short beside the times that are measured by them.
const POLL: Duration = Duration::from_millis(20);
/// After this long, what does not come has failed.
const PATIENCE: Duration = Duration::from_mins(2);

/// Measures the page at `address`, whose files lie in the folder `page`, with a long `journal` of the help desk.
pub(crate) async fn run(address: &str, page: &Path, journal: &Path) -> Result<()> {
    load::run(address, page).await?;
    println!();
    tasks::run(&start(address).await).await?;
    println!();
    journal::run(&start(address).await, journal).await
}

/// Waits until a script returns something other than false or null, and returns that.
async fn awaited(browser: &Browser, what: &str, script: &str) -> Result<Value> {
    let started = Instant::now();
    loop {
        let value = browser.js(script).await;
        if !matches!(value, Value::Null | Value::Bool(false)) {
            return Ok(value);
        }
        ensure!(
            started.elapsed() < PATIENCE,
            "waited {PATIENCE:?} in vain until {what}"
        );
        sleep(POLL).await;
    }
}

/// Prints median and range of times in milliseconds.
fn times(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let (first, median, last) = (times[0], times[times.len() / 2], times[times.len() - 1]);
    println!("{name:<28} {median:>6.0} ms, the median ({first:.0} to {last:.0})");
}
