//! The pictures of the page that the documentation shows.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::prelude::{BASE64_STANDARD, Engine};
use capo_browser::Browser;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::start;

/// Widths and heights of the screens, in CSS pixels, and the most of a page that is shown.
const SCREENS: [(u32, u32, u32); 2] = [(1440, 1000, 2200), (390, 844, 2600)];
/// Charts follow their width, and the open trace is scrolled to, within this time.
const SETTLED: Duration = Duration::from_millis(700);

/// One page in the state to show.
struct Scene {
    name: &'static str,
    /// Its path on the page's host.
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

/// Makes a run on the page at `address`, takes another in from `journal`, and pictures both into `directory`.
pub(crate) async fn take_all(address: &str, directory: &Path, journal: &Path) -> Result<()> {
    let browser = start(address).await;
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    take(
        &browser,
        directory,
        &Scene::new("first-page", "/", "Run the help-desk study"),
    )
    .await?;
    for scene in scenes(&browser, journal).await? {
        take(&browser, directory, &scene).await?;
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
async fn scenes(browser: &Browser, other: &Path) -> Result<Vec<Scene>> {
    browser.go("/").await;
    browser.click("Run the help-desk study").await;
    browser.until_shown("Finished.").await;
    let run = path(browser).await?;
    browser.go("/runs").await;
    browser.choose("Journals to open", other).await;
    browser.until_shown("Success against the worst residual").await;
    let imported = path(browser).await?;
    let id = |path: &str| path.trim_start_matches("/run/").to_owned();

    let example = first_example(other)?;
    Ok(vec![
        Scene::new("live", run.clone(), "Finished."),
        Scene::new("candidates", format!("{run}/candidate"), "Prompts × examples"),
        Scene {
            whole: false,
            ..Scene::new("trace", format!("{run}/candidate?trace={example}"), "model calls")
        },
        Scene::new("result", format!("{run}/result"), "Held-out evaluation"),
        Scene::new("new-study", "/study", "What it can cost"),
        Scene::new("runs", "/runs", "Help desk"),
        Scene::new(
            "comparison",
            format!("/compare?runs={},{}", id(&run), id(&imported)),
            "95% interval",
        ),
        Scene::new("dynamics", "/dynamics", "all 24 rounds searched"),
    ])
}

/// Takes a scene on every screen, in light and dark.
async fn take(browser: &Browser, directory: &Path, scene: &Scene) -> Result<()> {
    for (width, height, most) in SCREENS {
        for scheme in ["light", "dark"] {
            look(browser, width, height, scheme).await;
            browser.go(&scene.path).await;
            browser.until_shown(scene.shows).await;
            sleep(SETTLED).await;
            let file = directory.join(format!("{}-{width}-{scheme}.webp", scene.name));
            let picture = picture(browser, if scene.whole { most } else { height }).await?;
            std::fs::write(&file, picture).with_context(|| format!("cannot write {}", file.display()))?;
            println!("{}", file.display());
        }
    }
    Ok(())
}

/// Shows the page as a screen of this many CSS pixels and this colour scheme would.
async fn look(browser: &Browser, width: u32, height: u32, scheme: &str) {
    let screen = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
    browser
        .devtools("Emulation.setDeviceMetricsOverride", screen)
        .await;
    let features = json!([
        { "name": "prefers-color-scheme", "value": scheme },
        { "name": "prefers-reduced-motion", "value": "reduce" },
    ]);
    browser
        .devtools("Emulation.setEmulatedMedia", json!({ "features": features }))
        .await;
}

/// A picture of the page from its top to at most `height` CSS pixels further down, as WebP.
async fn picture(browser: &Browser, height: u32) -> Result<Vec<u8>> {
    let size = "return [document.documentElement.clientWidth, document.documentElement.scrollHeight]";
    let size = browser.js(size).await;
    let tall = size[1].as_u64().unwrap_or_default().min(height.into());
    let clip = json!({ "x": 0, "y": 0, "width": size[0], "height": tall, "scale": 1 });
    let wanted = json!({ "format": "webp", "quality": 80, "captureBeyondViewport": true, "clip": clip });
    let picture = browser.devtools("Page.captureScreenshot", wanted).await;
    let data = picture["data"].as_str().context("the browser took no picture")?;
    BASE64_STANDARD
        .decode(data)
        .context("the browser's picture is not base64")
}

/// The path of the page shown.
async fn path(browser: &Browser) -> Result<String> {
    let path = browser.js("return location.pathname").await;
    Ok(path.as_str().context("a page has no address")?.to_owned())
}
