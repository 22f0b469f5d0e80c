//! `cargo xtask screenshots`: the pictures of the page that the documentation shows.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::browser::{Browser, Driver};
use crate::build;
use crate::help_desk::{STUDY, write_journal};
use crate::page::Host;
use crate::scratch::Scratch;
use crate::workspace::Workspace;

/// Where the pictures go, below the workspace.
const DIRECTORY: &str = "docs/screenshots";
/// Widths and heights of the screens, in CSS pixels, and the most of a page that is shown.
const SCREENS: [(u32, u32, u32); 2] = [(1440, 1000, 2200), (390, 844, 2600)];
/// Charts follow their width, and the open trace is scrolled to, within this time.
const SETTLED: Duration = Duration::from_millis(700);

/// One page in the state to show.
struct Scene {
    name: &'static str,
    /// Its address below that of the page.
    path: String,
    /// Words that it shows once it is complete.
    shows: &'static str,
    /// Whether all of the page is shown, or what a person sees of it at first.
    whole: bool,
}

impl Scene {
    fn new(name: &'static str, path: impl Into<String>, shows: &'static str) -> Self {
        Self {
            name,
            path: path.into(),
            shows,
            whole: true,
        }
    }
}

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let scratch = Scratch::create(workspace)?;
    let other = scratch.file("other-seed.jsonl");
    let study = workspace.root.join(STUDY);
    write_journal(workspace, &build::capo(workspace)?, &study, 1, &other)?;
    let host = Host::start(workspace)?;
    let driver = Driver::start(&host.toolbox)?;
    let browser = driver.open()?;

    let directory = workspace.root.join(DIRECTORY);
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    take(
        &browser,
        &host.address,
        &directory,
        &Scene::new("first-page", "", "Run the help-desk study"),
    )?;
    for scene in scenes(&browser, &host.address, &other)? {
        take(&browser, &host.address, &directory, &scene)?;
    }
    Ok(())
}

/// The example of the first rollout in a journal.
fn first_example(journal: &Path) -> Result<String> {
    let file = File::open(journal).with_context(|| format!("cannot read {}", journal.display()))?;
    for line in BufReader::new(file).lines() {
        let line: Value = serde_json::from_str(&line?)?;
        if line["event"] == "rollout" {
            let example = line["example"].as_str();
            return Ok(example.context("a rollout without an example")?.to_owned());
        }
    }
    bail!("{} holds no rollout", journal.display())
}

/// Makes two runs and names what is shown of them.
fn scenes(browser: &Browser, address: &str, other: &Path) -> Result<Vec<Scene>> {
    browser.visit(address)?;
    browser.click("Run the help-desk study")?;
    browser.until_shown("Finished.")?;
    let run = path(browser)?;
    browser.visit(&format!("{address}runs"))?;
    browser.choose("Journals to open", other)?;
    browser.until_shown("Success against the worst residual")?;
    let imported = path(browser)?;
    let id = |path: &str| path.trim_start_matches("run/").to_owned();

    let example = first_example(other)?;
    Ok(vec![
        Scene::new("live", run.clone(), "Finished."),
        Scene::new("candidates", format!("{run}/candidate"), "Prompts × examples"),
        Scene {
            whole: false,
            ..Scene::new("trace", format!("{run}/candidate?trace={example}"), "model calls")
        },
        Scene::new("result", format!("{run}/result"), "Held-out evaluation"),
        Scene::new("new-study", "study", "What it can cost"),
        Scene::new("runs", "runs", "Help desk"),
        Scene::new(
            "comparison",
            format!("compare?runs={},{}", id(&run), id(&imported)),
            "95% interval",
        ),
        Scene::new("dynamics", "dynamics", "all 24 rounds searched"),
    ])
}

/// Takes a scene on every screen, in light and dark.
fn take(browser: &Browser, address: &str, directory: &Path, scene: &Scene) -> Result<()> {
    for (width, height, most) in SCREENS {
        for (dark, scheme) in [(false, "light"), (true, "dark")] {
            browser.look(width, height, dark)?;
            browser.visit(&format!("{address}{}", scene.path))?;
            browser.until_shown(scene.shows)?;
            thread::sleep(SETTLED);
            let file = directory.join(format!("{}-{width}-{scheme}.webp", scene.name));
            std::fs::write(&file, browser.picture(if scene.whole { most } else { height })?)
                .with_context(|| format!("cannot write {}", file.display()))?;
            println!("{}", file.display());
        }
    }
    Ok(())
}

/// The path of the page shown, without the slash at its beginning.
fn path(browser: &Browser) -> Result<String> {
    let path = browser.evaluate("return location.pathname", &[])?;
    let path = path.as_str().context("a page has no address")?;
    Ok(path.trim_start_matches('/').to_owned())
}
