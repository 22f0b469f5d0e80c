//! A headless Chromium, driven through chromedriver by the WebDriver protocol.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base64::prelude::{BASE64_STANDARD, Engine};
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
/// After this long, what does not come has failed.
const PATIENCE: Duration = Duration::from_mins(2);

/// A running chromedriver; it ends with this value.
pub(crate) struct Driver {
    process: Child,
    address: String,
}

/// One browser with a profile of its own, so nothing is cached; it closes with this value.
pub(crate) struct Browser<'a> {
    driver: &'a Driver,
    session: String,
}

/// One load of the page.
pub(crate) struct Visit {
    /// Milliseconds from the navigation's start until the page can be used.
    pub(crate) interactive: f64,
    /// Milliseconds until the first text or picture was drawn.
    pub(crate) first_paint: f64,
    /// What was loaded, in order, the page itself first.
    pub(crate) addresses: Vec<String>,
}

impl Driver {
    /// Starts chromedriver on a free port.
    ///
    /// # Errors
    /// It cannot be started or says no port.
    pub(crate) fn start(toolbox: &Toolbox) -> Result<Self> {
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
    pub(crate) fn open(&self) -> Result<Browser<'_>> {
        let options = json!({
            "args": [
                "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-quic",
                // Containers have little shared memory.
                "--disable-dev-shm-usage",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--hide-scrollbars", "--window-size=1440,900",
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
    pub(crate) fn visit(&self, address: &str) -> Result<Visit> {
        self.before_each_load(WATCH)?;
        self.go(address)?;
        let interactive = self
            .until("the page stands", "return window.capoReadyAt ?? null", &[])?
            .as_f64()
            .context("the time at which the page stood is no number")?;
        let first_paint = self
            .evaluate(
                "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null",
                &[],
            )?
            .as_f64()
            .unwrap_or(f64::NAN);
        let resources = self.evaluate(
            "return performance.getEntriesByType('resource').map(({ name }) => name)",
            &[],
        )?;
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

    /// Goes to an address and waits until what is there is loaded.
    ///
    /// # Errors
    /// It does not load.
    pub(crate) fn go(&self, address: &str) -> Result<()> {
        self.ask("url", &json!({ "url": address }))?;
        Ok(())
    }

    /// Runs a script in every document from now on, before any of its own.
    ///
    /// # Errors
    /// The browser is gone.
    pub(crate) fn before_each_load(&self, script: &str) -> Result<()> {
        self.tell(
            "Page.addScriptToEvaluateOnNewDocument",
            &json!({ "source": script }),
        )?;
        Ok(())
    }

    /// Shows the page as a screen of this many CSS pixels would, in the dark if told so.
    ///
    /// # Errors
    /// The browser is gone.
    pub(crate) fn look(&self, width: u32, height: u32, dark: bool) -> Result<()> {
        let screen =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.tell("Emulation.setDeviceMetricsOverride", &screen)?;
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        self.tell("Emulation.setEmulatedMedia", &json!({ "features": features }))?;
        Ok(())
    }

    /// A picture of the page from its top to at most `height` CSS pixels further down, as WebP.
    ///
    /// # Errors
    /// The browser is gone.
    pub(crate) fn picture(&self, height: u32) -> Result<Vec<u8>> {
        let size = self.evaluate(
            "return [document.documentElement.clientWidth, document.documentElement.scrollHeight]",
            &[],
        )?;
        let tall = size[1].as_u64().unwrap_or_default().min(height.into());
        let clip = json!({ "x": 0, "y": 0, "width": size[0], "height": tall, "scale": 1 });
        let picture = self.tell(
            "Page.captureScreenshot",
            &json!({ "format": "webp", "quality": 80, "captureBeyondViewport": true, "clip": clip }),
        )?;
        let data = picture["data"].as_str().context("the browser took no picture")?;
        BASE64_STANDARD
            .decode(data)
            .context("the browser's picture is not base64")
    }

    /// Chooses a file in the file input of this accessible name.
    ///
    /// # Errors
    /// There is no such input.
    pub(crate) fn choose(&self, label: &str, file: &Path) -> Result<()> {
        let selector = format!("input[type=file][aria-label=\"{label}\"]");
        let found = self
            .ask("element", &json!({ "using": "css selector", "value": selector }))
            .with_context(|| format!("there is no file input `{label}`"))?;
        // One entry, under a key that the protocol fixes.
        let element = found.as_object().and_then(|found| found.values().next());
        let element = element.and_then(Value::as_str).context("an element has no id")?;
        self.ask(
            &format!("element/{element}/value"),
            &json!({ "text": file.to_string_lossy() }),
        )?;
        Ok(())
    }

    /// Clicks the first link or button whose text begins so, once there is one.
    ///
    /// # Errors
    /// None comes.
    pub(crate) fn click(&self, name: &str) -> Result<()> {
        let script = "
            const all = [...document.querySelectorAll('a, button, summary')];
            const found = all.find((one) => one.offsetParent && one.innerText.trim().startsWith(arguments[0]));
            found?.click();
            return Boolean(found)";
        self.until(&format!("there is `{name}` to click"), script, &[json!(name)])?;
        Ok(())
    }

    /// Waits until the page shows these words.
    ///
    /// # Errors
    /// They do not come.
    pub(crate) fn until_shown(&self, words: &str) -> Result<()> {
        let script = "return document.body.innerText.includes(arguments[0])";
        self.until(&format!("the page shows `{words}`"), script, &[json!(words)])?;
        Ok(())
    }

    /// Waits until a script returns something other than false or null, and returns that.
    ///
    /// # Errors
    /// It does not within two minutes, or fails.
    pub(crate) fn until(&self, what: &str, script: &str, arguments: &[Value]) -> Result<Value> {
        let started = Instant::now();
        loop {
            let value = self.evaluate(script, arguments)?;
            if !matches!(value, Value::Null | Value::Bool(false)) {
                return Ok(value);
            }
            if started.elapsed() > PATIENCE {
                bail!("waited {PATIENCE:?} in vain until {what}");
            }
            thread::sleep(POLL);
        }
    }

    /// Runs the body of a function in the page and returns what it returns.
    ///
    /// # Errors
    /// The script fails.
    pub(crate) fn evaluate(&self, script: &str, arguments: &[Value]) -> Result<Value> {
        self.ask("execute/sync", &json!({ "script": script, "args": arguments }))
    }

    /// Sends a command of the DevTools protocol.
    fn tell(&self, command: &str, parameters: &Value) -> Result<Value> {
        self.ask(
            "goog/cdp/execute",
            &json!({ "cmd": command, "params": parameters }),
        )
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

/// The numbers of a list that a script returned.
pub(crate) fn numbers(list: &Value) -> Vec<f64> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_f64).collect()
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
