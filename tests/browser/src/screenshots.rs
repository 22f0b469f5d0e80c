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
    /// A script that makes of the page what is shown, and says whether it could.
    script: &'static str,
    /// Words that it shows once it is complete.
    shows: &'static str,
    /// What the picture begins with, by a selector.
    from: &'static str,
    /// Whether all of the page is shown, or what a person sees of it at first.
    whole: bool,
}

impl Scene {
    fn new(name: &'static str, path: impl Into<String>, shows: &'static str) -> Self {
        Self {
            name,
            path: path.into(),
            script: "return true",
            shows,
            from: "html",
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
    // What changes the draft, or adds runs, comes last.
    let (width, height, _) = SCREENS[0];
    look(&browser, width, height, "light").await;
    let report = report(&browser).await?;
    take(&start("file://").await, directory, &report).await?;
    let race = race(&browser).await?;
    take(&browser, directory, &race).await
}

/// The example of the first rollout of a split in a journal.
fn first_example(journal: &Path, split: &str) -> Result<String> {
    let file = File::open(journal).with_context(|| format!("cannot read {}", journal.display()))?;
    for line in BufReader::new(file).lines() {
        let line: Value = serde_json::from_str(&line?)?;
        if line["event"] == "rollout" && line["split"] == split {
            let example = line["example"].as_str();
            return Ok(example.context("a rollout without an example")?.to_owned());
        }
    }
    bail!("{} holds no rollout of the split {split}", journal.display())
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

    let [example, held_out] = ["optimize", "evaluate"].map(|split| first_example(other, split));
    let (example, held_out) = (example?, held_out?);
    Ok(vec![
        Scene::new("live", run.clone(), "Finished."),
        Scene {
            script: "const replay = document.getElementById('replay');
                if (replay) {
                    replay.value = 4;
                    replay.dispatchEvent(new Event('input', { bubbles: true }));
                }
                return replay !== null",
            whole: false,
            ..Scene::new("replay", run.clone(), "Replayed")
        },
        Scene::new("candidates", format!("{run}/candidate"), "Prompts × examples"),
        Scene {
            whole: false,
            ..Scene::new("trace", format!("{run}/candidate?trace={example}"), "model calls")
        },
        Scene::new("result", format!("{run}/result"), "Held-out evaluation"),
        Scene {
            from: ".plate:has(.answers)",
            ..Scene::new(
                "examples",
                format!("{run}/result?example={held_out}"),
                "What was asked",
            )
        },
        Scene {
            from: ".plate:has(dl.feedback)",
            ..Scene::new("story", format!("{run}/result"), "How it came to be")
        },
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

/// Has the page write the last run of the list into one file.
async fn report(browser: &Browser) -> Result<Scene> {
    browser.go("/runs").await;
    browser.click_at("table.runs tbody th a").await;
    browser.click("Result").await;
    browser.click("Download…").await;
    browser.click("This page in one file, opens offline").await;
    let file = browser.download(".html").await;
    let path = file.to_str().context("a download whose path is no text")?;
    Ok(Scene::new("report", path, "Copy prompt"))
}

/// Has two methods with two seeds each search, in four short runs.
async fn race(browser: &Browser) -> Result<Scene> {
    browser.go("/study").await;
    browser.type_in("Rollouts", "400").await;
    browser.click("Race methods…").await;
    browser.click_at("dialog input[value=gepa]").await;
    browser.type_in("Seeds of each", "2").await;
    browser.click("Start 4 runs").await;
    browser
        .until("all four have ended", async || {
            let shown = browser.text("section[aria-label=Methods]").await;
            let goes_on = ["running", "queued", "not finished"];
            shown.contains("Together") && !goes_on.iter().any(|word| shown.contains(word))
        })
        .await;
    let runs = browser.js("return location.search").await;
    let runs = runs.as_str().context("a page has no address")?;
    Ok(Scene::new(
        "race",
        format!("{}{runs}", path(browser).await?),
        "four runs",
    ))
}

/// Takes a scene on every screen, in light and dark.
async fn take(browser: &Browser, directory: &Path, scene: &Scene) -> Result<()> {
    for (width, height, most) in SCREENS {
        for scheme in ["light", "dark"] {
            look(browser, width, height, scheme).await;
            browser.go(&scene.path).await;
            browser
                .until("the page is as it is shown", async || {
                    browser.js(scene.script).await == true
                })
                .await;
            browser.until_shown(scene.shows).await;
            sleep(SETTLED).await;
            let file = directory.join(format!("{}-{width}-{scheme}.webp", scene.name));
            let picture = picture(browser, scene.from, if scene.whole { most } else { height }).await?;
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

/// A picture of the page from what a selector finds to at most `height` CSS pixels further down, as WebP.
async fn picture(browser: &Browser, from: &str, height: u32) -> Result<Vec<u8>> {
    let size = "const { top } = document.querySelector(arguments[0]).getBoundingClientRect();
        const { clientWidth, scrollHeight } = document.documentElement;
        const y = Math.max(top + scrollY, 0);
        return [clientWidth, scrollHeight - y, y]";
    let size = browser.js_with(size, vec![json!(from)]).await;
    let tall = size[1].as_f64().unwrap_or_default().min(height.into());
    let clip = json!({ "x": 0, "y": size[2], "width": size[0], "height": tall, "scale": 1 });
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
