//! What the page costs: its first load, what a run does to it, and a long journal.

mod journal;
mod load;
mod tasks;

use anyhow::Result;

use crate::browser::Driver;
use crate::page::Host;
use crate::scratch::Scratch;
use crate::workspace::Workspace;

pub(super) fn run(workspace: &Workspace, scratch: &Scratch) -> Result<()> {
    let long = journal::write(workspace, scratch)?;
    let host = Host::start(workspace)?;
    let driver = Driver::start(&host.toolbox)?;
    load::run(&driver, &host.directory, &host.address)?;
    println!();
    tasks::run(&driver.open()?, &host.address)?;
    println!();
    journal::run(&driver.open()?, &host.address, &long)
}

/// Prints median and range of times in milliseconds.
fn times(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let (first, median, last) = (times[0], times[times.len() / 2], times[times.len() - 1]);
    println!("{name:<28} {median:>6.0} ms, the median ({first:.0} to {last:.0})");
}
