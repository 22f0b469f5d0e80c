//! What `cargo xtask` has a browser do on the page that it serves: take the pictures of the documentation, and
//! measure.

mod bench;
mod screenshots;

use std::path::Path;

use anyhow::{Result, bail};
use capo_browser::Browser;
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["screenshots", address, directory, journal] => {
            screenshots::take_all(address, Path::new(directory), Path::new(journal)).await
        }
        ["bench", address, page, journal] => bench::run(address, Path::new(page), Path::new(journal)).await,
        _ => bail!(
            "usage: capo-browser screenshots ADDRESS DIRECTORY JOURNAL, or capo-browser bench ADDRESS PAGE \
             JOURNAL; `cargo xtask screenshots` and `cargo xtask bench web` serve the page and call it"
        ),
    }
}

/// A browser that keeps no log, which would cost time.
async fn start(address: &str) -> Browser {
    Browser::start(address, &["--hide-scrollbars", "--window-size=1440,900"], &[]).await
}

/// Has a script run in every document from now on, before any of its own.
async fn before_each_load(browser: &Browser, script: &str) {
    let script = json!({ "source": script });
    browser
        .devtools("Page.addScriptToEvaluateOnNewDocument", script)
        .await;
}

/// The numbers of a list that a script returned.
fn numbers(list: &Value) -> Vec<f64> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_f64).collect()
}
