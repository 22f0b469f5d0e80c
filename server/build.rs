//! Puts the built page into the program: the files of the folder that `CAPO_EMBED` names, or none.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-env-changed=CAPO_EMBED");
    let mut files = Vec::new();
    if let Some(folder) = env::var_os("CAPO_EMBED").map(PathBuf::from) {
        println!("cargo::rerun-if-changed={}", folder.display());
        list(&folder, "", &mut files);
    }
    let mut text = String::from("/// The page's files by their path.\nstatic PAGE: &[(&str, &[u8])] = &[\n");
    for (path, file) in files {
        let file = file.display().to_string();
        // Writing to a string does not fail.
        let _ = writeln!(text, "    ({path:?}, include_bytes!({file:?})),");
    }
    text.push_str("];\n");
    let out = env::var_os("OUT_DIR").expect("cargo names a folder");
    fs::write(Path::new(&out).join("page.rs"), text).expect("cargo's folder can be written");
}

fn list(folder: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            list(&path, &format!("{name}/"), files);
        } else {
            files.push((name, path));
        }
    }
}
