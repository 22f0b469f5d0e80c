//! The first load: bytes, and time until the page can be used.

use std::path::Path;

use anyhow::{Context, Result};

use super::times;
use crate::browser::{Driver, Visit};
use crate::page::{COMPRESSED, Shell};

/// Each in a browser that has never seen the page.
const VISITS: usize = 7;

pub(super) fn run(driver: &Driver, directory: &Path, address: &str) -> Result<()> {
    let visits = (0..VISITS)
        .map(|_| driver.open()?.visit(address))
        .collect::<Result<Vec<_>>>()?;
    sizes(directory, address, &visits[0])?;
    println!();
    println!("{VISITS} cold loads:");
    times(
        "first paint",
        visits.iter().map(|visit| visit.first_paint).collect(),
    );
    times(
        "interactive",
        visits.iter().map(|visit| visit.interactive).collect(),
    );
    Ok(())
}

/// Prints the size of each file that the visit loaded.
fn sizes(directory: &Path, address: &str, visit: &Visit) -> Result<()> {
    let Shell(files) = Shell::read(directory)?;
    println!("{:<40} {:>10} {:>10}", "first load", "raw, kB", "brotli, kB");
    let (mut raw, mut small) = (0, 0);
    for loaded in &visit.addresses {
        let path = file(loaded, address);
        let bytes = files
            .get(path)
            .with_context(|| format!("the page loaded {loaded}, which is none of its files"))?;
        // A file without a compressed one beside it is sent as it is.
        let length = files.get(&format!("{path}{COMPRESSED}")).unwrap_or(bytes).len();
        println!(
            "{path:<40} {:>10} {:>10}",
            kilobytes(bytes.len()),
            kilobytes(length)
        );
        raw += bytes.len();
        small += length;
    }
    println!("{:<40} {:>10} {:>10}", "all", kilobytes(raw), kilobytes(small));
    Ok(())
}

/// The path of the file behind an address below that of the page.
fn file<'a>(loaded: &'a str, page: &str) -> &'a str {
    let path = loaded.strip_prefix(page).unwrap_or(loaded);
    match path.split_once('?').map_or(path, |(path, _)| path) {
        "" => "index.html",
        path => path,
    }
}

fn kilobytes(bytes: usize) -> String {
    format!("{:.1}", bytes as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_address() {
        let page = "http://127.0.0.1:8787/";
        assert_eq!(file(page, page), "index.html");
        assert_eq!(
            file("http://127.0.0.1:8787/icons/capo.svg?v=0a1b", page),
            "icons/capo.svg"
        );
        assert_eq!(file("https://elsewhere/x.js", page), "https://elsewhere/x.js");
    }
}
