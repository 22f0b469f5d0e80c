//! `cargo xtask dist`: `capo` for people without the checkout, packed for this machine's target.

#[cfg(all(test, unix))]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use crate::workspace::{SERVER, Workspace};
use crate::{build, command, page};

/// What is packed, by its path below the archive's folder.
type Members = BTreeMap<String, Vec<u8>>;

/// What is packed beside the studies, and what it is called there.
const FILES: [(&str, &str); 4] = [
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("README.md", "README.md"),
    ("server/packaging/capo.service", "capo.service"),
];
/// The shells that are completed for, and the names by which they find it.
const SHELLS: [(&str, &str); 3] = [("bash", "capo"), ("fish", "capo.fish"), ("zsh", "_capo")];
/// What installs an archive.
const INSTALLER: &str = "server/packaging/install.sh";
/// The hashes of a version's archives, as sha256sum writes them.
const SUMS: &str = "SHA256SUMS";
const ENDING: &str = ".tar.gz";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Where the archive, SHA256SUMS and install.sh go, `dist` in cargo's target folder unless stated
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let default = || workspace.target.join("dist");
    let out = arguments.out.clone().unwrap_or_else(default);
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let version = workspace.locked_version(SERVER)?;
    let version = version.with_context(|| format!("Cargo.lock has no {SERVER}"))?;
    let committed = git(&workspace.root, &["log", "-1", "--format=%ct"])?;
    let committed = committed
        .trim()
        .parse::<u64>()
        .context("the time of the last commit")?;
    let folder = format!("capo-{version}-{}", target(workspace)?);

    let members = members(&workspace.root, &build::with_page(workspace)?)?;
    let archive = out.join(format!("{folder}{ENDING}"));
    fs::write(&archive, pack(&folder, &members, committed)?)
        .with_context(|| format!("cannot write {}", archive.display()))?;
    fs::write(out.join(SUMS), sums(&out, &version)?)?;
    fs::copy(workspace.root.join(INSTALLER), out.join("install.sh"))
        .with_context(|| format!("cannot copy {INSTALLER}"))?;
    build::tell(&archive)
}

/// What cargo builds for when nothing else is said.
fn target(workspace: &Workspace) -> Result<String> {
    let said = command::output(workspace.cargo().arg("-vV"))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("`cargo -vV` names no host")
}

/// What is packed of a checkout and a `capo` built from it.
fn members(root: &Path, capo: &Path) -> Result<Members> {
    let mut members = made(capo)?;
    // Those that git knows: journals and data that somebody loaded lie beside them.
    let studies = git(root, &["ls-files", "-z", "studies"])?;
    let studies = studies.split_terminator('\0').map(|path| (path, path));
    for (from, to) in FILES.into_iter().chain(studies) {
        members.insert(to.to_owned(), read(&root.join(from))?);
    }
    members.insert(program(), read(capo)?);
    Ok(members)
}

/// What `capo` is called in an archive.
fn program() -> String {
    format!("capo{}", std::env::consts::EXE_SUFFIX)
}

/// The page for `man` and the completions, of a `capo` that can make them.
fn made(capo: &Path) -> Result<Members> {
    let say = |words: &[&str]| command::output(Command::new(capo).args(words));
    let help = say(&["--help"])?;
    let can = |name: &str| {
        help.lines()
            .any(|line| line.split_whitespace().next() == Some(name))
    };
    let mut members = Members::new();
    if can("man") {
        members.insert("man/man1/capo.1".to_owned(), say(&["man"])?.into());
    }
    if can("completions") {
        for (shell, name) in SHELLS {
            let script = say(&["completions", shell])?;
            members.insert(format!("completions/{shell}/{name}"), script.into());
        }
    }
    Ok(members)
}

/// Packs members into a folder: in order, all of them root's, and as of one time in seconds since 1970.
fn pack(folder: &str, members: &Members, time: u64) -> Result<Vec<u8>> {
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    for (path, content) in members {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_size(content.len() as u64);
        header.set_mode(if *path == program() { 0o755 } else { 0o644 });
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(time);
        archive
            .append_data(&mut header, format!("{folder}/{path}"), content.as_slice())
            .with_context(|| format!("cannot pack {path}"))?;
    }
    Ok(archive.into_inner()?.finish()?)
}

/// [`SUMS`] of a version's archives in a folder, those for other targets among them.
fn sums(folder: &Path, version: &str) -> Result<String> {
    let mut lines = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(&format!("capo-{version}-")) && name.ends_with(ENDING) {
            let hash = page::hash(&read(&folder.join(&name))?);
            lines.insert(name.clone(), format!("{hash}  {name}\n"));
        }
    }
    Ok(lines.into_values().collect())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn git(root: &Path, words: &[&str]) -> Result<String> {
    command::output(Command::new("git").current_dir(root).args(words))
}
