//! The page in one file: what `capo report` and the page itself put journals into.
//!
//! Everything that it loads lies in it, and its policy lets nothing else in: the script and the sheet by their hashes, no
//! connection at all.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

/// Where it lies among the page's files. A browser that is led there shows its text.
pub(super) const REPORT: &str = "report.txt";

const PAGE: &str = include_str!("report.html");
const SCRIPT: &str = include_str!("report.js");
/// What report.js takes hold of in the script that wasm-bindgen has written: what starts the module, and what it gives the
/// module in place of the window's own.
const HANDLES: [&str; 3] = ["__wbg_init as default", "__wbg_location_", "__wbg_history_"];

/// The report's page, of that script as it was written, the bundled sheet, and the module.
///
/// # Errors
/// One of them is missing, or cannot stand in a page.
pub(super) fn report(loader: &[u8], bundled: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>> {
    let file = |path: &str| bundled.get(path).with_context(|| format!("there is no {path}"));
    let loader = std::str::from_utf8(loader).context("the loader is not UTF-8")?;
    for handle in HANDLES {
        ensure!(
            loader.contains(handle),
            "the loader of wasm-bindgen has no `{handle}`, which report.js takes hold of"
        );
    }
    ensure!(
        !loader.lines().any(|line| line.starts_with("import")),
        "the loader of wasm-bindgen imports another script, which a report has not"
    );
    let script = format!("{loader}{SCRIPT}");
    let style = std::str::from_utf8(file("styles/main.css")?).context("the sheet is not UTF-8")?;
    for (text, end) in [
        (script.as_str(), "</script"),
        (script.as_str(), "<!--"),
        (style, "</style"),
    ] {
        ensure!(!text.contains(end), "`{end}` would end what stands in the report");
    }
    let is_inside = |target: &str| {
        let target = target.trim_start_matches(['"', '\'']);
        target.starts_with('#') || target.starts_with("data:")
    };
    ensure!(
        !style.contains("@import") && style.split("url(").skip(1).all(is_inside),
        "the sheet asks for what does not lie in the report"
    );
    // Hosts that compress get little more out of it, and development builds wait for it.
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(file("capo-web_bg.wasm")?)?;
    let module = STANDARD.encode(packed.finish()?);
    let (script_hash, style_hash) = (source(&script), source(style));
    let mut page = PAGE.to_owned();
    for (place, text) in [
        ("SCRIPT-HASH", script_hash.as_str()),
        ("STYLE-HASH", style_hash.as_str()),
        ("STYLE-TEXT", style),
        ("MODULE-TEXT", module.as_str()),
        // Last, for it may hold anything.
        ("SCRIPT-TEXT", script.as_str()),
    ] {
        ensure!(
            page.matches(place).count() == 1,
            "report.html must have one {place}"
        );
        page = page.replace(place, text);
    }
    Ok(page.into_bytes())
}

/// A text as a policy lets it in.
fn source(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(style: &str) -> BTreeMap<String, Vec<u8>> {
        [("styles/main.css", style), ("capo-web_bg.wasm", "module")]
            .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
            .into()
    }

    const LOADER: &[u8] = b"async function __wbg_init() {}\n\
        const imports = { __wbg_location_1() {}, __wbg_history_1() {} };\n\
        export { __wbg_init as default };\n";

    #[test]
    fn all_of_it_lies_in_the_file_and_nothing_else_is_let_in() {
        let page = String::from_utf8(report(LOADER, &built("body{}")).unwrap()).unwrap();
        // What a browser fetches by itself; of the sheet see below.
        for outside in ["src=", "href=", "srcset=", "action="] {
            assert!(!PAGE.contains(outside), "{outside}");
        }
        assert!(!SCRIPT.contains("fetch("));
        let policy = page.split_once("Security-Policy\" content=\"").unwrap().1;
        let policy = policy.split_once('"').unwrap().0;
        assert!(policy.starts_with("default-src 'none'; "), "{policy}");
        for (open, close) in [("<script type=\"module\">", "</script>"), ("<style>", "</style>")] {
            let text = page.split_once(open).unwrap().1.split_once(close).unwrap().0;
            assert!(policy.contains(&format!("'{}'", source(text))), "{open}");
        }
        for looser in [
            "unsafe-inline",
            "'unsafe-eval'",
            "*",
            "http",
            "blob:",
            "connect-src",
        ] {
            assert!(!policy.contains(looser), "{policy}");
        }
        assert_eq!(page.matches("<!-- journals -->").count(), 1);
    }

    #[test]
    fn what_would_break_the_page_is_an_error() {
        let error = |loader: &[u8], style: &str| report(loader, &built(style)).unwrap_err().to_string();
        assert!(error(b"export {};", "").contains("__wbg_init"));
        let without = |handle: &str| String::from_utf8_lossy(LOADER).replace(handle, "").into_bytes();
        assert!(error(&without("__wbg_history_"), "").contains("no `__wbg_history_`"));
        let importing = format!("import './snippet.js';\n{}", String::from_utf8_lossy(LOADER));
        assert!(error(importing.as_bytes(), "").contains("imports another script"));
        for outside in [
            "@import \"a.css\";",
            "a{src:url(/a.woff2)}",
            "a{src:url(\"https://a\")}",
        ] {
            assert!(error(LOADER, outside).contains("does not lie"), "{outside}");
        }
        report(
            LOADER,
            &built("a{fill:url(#hatch);background:url(\"data:image/png,\")}"),
        )
        .unwrap();
        assert!(error(LOADER, "/*</style>*/").contains("</style"));
        let commenting = [LOADER, b"// <!-- <script"].concat();
        assert!(error(&commenting, "").contains("<!--"));
        assert!(error(LOADER, "STYLE-TEXT MODULE-TEXT").contains("one MODULE-TEXT"));
        let missing = report(LOADER, &BTreeMap::new()).unwrap_err();
        assert!(missing.to_string().contains("styles/main.css"));
    }
}
