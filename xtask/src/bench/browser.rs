//! A headless Chromium, driven through chromedriver by the WebDriver protocol.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::install::Toolbox;

/// Notes the time at which the page says that it stands, in milliseconds since the navigation began.
const WATCH: &str = r#"
    new MutationObserver((_, observer) => {
        if (document.documentElement?.dataset.ready !== "true") return;
        window.capoReadyAt = performance.now();
        observer.disconnect();
    }).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-ready"] });
"#;
const POLL: Duration = Duration::from_millis(20);
/// After this long a page that does not stand has failed.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running chromedriver; it ends with this value.
pub(super) struct Driver {
    process: Child,
    address: String,
}

/// One browser with a profile of its own, so nothing is cached; it closes with this value.
pub(super) struct Browser<'a> {
    driver: &'a Driver,
    session: String,
}

/// One load of the page.
pub(super) struct Visit {
    /// Milliseconds from the navigation's start until the page can be used.
    pub(super) interactive: f64,
    /// Milliseconds until the first text or picture was drawn.
    pub(super) first_paint: f64,
    /// What was loaded, in order, the page itself first.
    pub(super) addresses: Vec<String>,
}

impl Driver {
    /// Starts chromedriver on a free port.
    ///
    /// # Errors
    /// It cannot be started or says no port.
    pub(super) fn start(toolbox: &Toolbox) -> Result<Self> {
        let mut process = toolbox
            .command("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start chromedriver")?;
        let port = process.stdout.take().and_then(|stdout| {
            BufReader::new(stdout)
                .lines()
                .map_while(Result::ok)
                .find_map(|line| port(&line))
        });
        let mut driver = Self {
            process,
            address: String::new(),
        };
        let port = port.context("chromedriver does not say where it listens")?;
        driver.address = format!("http://127.0.0.1:{port}");
        Ok(driver)
    }

    /// Opens a browser.
    ///
    /// # Errors
    /// Chromium does not start.
    pub(super) fn open(&self) -> Result<Browser<'_>> {
        let options = json!({
            "args": [
                "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-quic",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--window-size=1440,900",
            ],
        });
        let wanted = json!({
            "capabilities": { "alwaysMatch": { "browserName": "chrome", "goog:chromeOptions": options } },
        });
        let opened = self.ask("session", &wanted).context("cannot open Chromium")?;
        let session = opened["sessionId"]
            .as_str()
            .context("chromedriver opened no session")?
            .to_owned();
        Ok(Browser {
            driver: self,
            session,
        })
    }

    fn ask(&self, path: &str, body: &Value) -> Result<Value> {
        let mut answer: Value = ureq::post(format!("{}/{path}", self.address))
            .config()
            .http_status_as_error(false)
            .build()
            .send_json(body)
            .with_context(|| format!("chromedriver does not answer {path}"))?
            .body_mut()
            .read_json()
            .with_context(|| format!("chromedriver answered {path} with no JSON"))?;
        let value = answer["value"].take();
        if let Some(error) = value["error"].as_str() {
            bail!("{error}: {}", value["message"].as_str().unwrap_or_default());
        }
        Ok(value)
    }
}

impl Browser<'_> {
    /// Loads the page and waits until it can be used.
    ///
    /// # Errors
    /// It does not load, or never sets `data-ready` on its root.
    pub(super) fn visit(&self, address: &str) -> Result<Visit> {
        self.ask(
            "goog/cdp/execute",
            &json!({ "cmd": "Page.addScriptToEvaluateOnNewDocument", "params": { "source": WATCH } }),
        )?;
        self.ask("url", &json!({ "url": address }))?;
        let started = Instant::now();
        let interactive = loop {
            if let Some(time) = self.evaluate("return window.capoReadyAt ?? null")?.as_f64() {
                break time;
            }
            if started.elapsed() > PATIENCE {
                bail!("{address} did not set `data-ready` on its root within {PATIENCE:?}");
            }
            thread::sleep(POLL);
        };
        let first_paint = self
            .evaluate("return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null")?
            .as_f64()
            .unwrap_or(f64::NAN);
        let resources =
            self.evaluate("return performance.getEntriesByType('resource').map(({ name }) => name)")?;
        let resources = resources.as_array().into_iter().flatten();
        let addresses = std::iter::once(address)
            .chain(resources.filter_map(Value::as_str))
            .map(str::to_owned)
            .collect();
        Ok(Visit {
            interactive,
            first_paint,
            addresses,
        })
    }

    /// Runs the body of a function in the page and returns what it returns.
    fn evaluate(&self, script: &str) -> Result<Value> {
        self.ask("execute/sync", &json!({ "script": script, "args": [] }))
    }

    fn ask(&self, path: &str, body: &Value) -> Result<Value> {
        self.driver.ask(&format!("session/{}/{path}", self.session), body)
    }
}

impl Drop for Browser<'_> {
    fn drop(&mut self) {
        // A session that has ended already is what is wanted.
        let _ = ureq::delete(format!("{}/session/{}", self.driver.address, self.session)).call();
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Neither fails unless it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The port in "ChromeDriver was started successfully on port 41327."
fn port(line: &str) -> Option<u16> {
    let (_, port) = line.split_once("successfully on port ")?;
    port.trim_end_matches('.').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_drivers_port() {
        assert_eq!(
            port("ChromeDriver was started successfully on port 41327."),
            Some(41327)
        );
        assert_eq!(port("Only local connections are allowed."), None);
    }
}
