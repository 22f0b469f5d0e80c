//! What the system's package manager, npm and pip bring.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command;

/// Installs Debian packages, if that needs no password.
///
/// # Errors
/// There is no apt, or neither root nor `sudo` without a password; the message
/// names the packages to install by hand.
pub(super) fn apt(packages: &[&str]) -> Result<()> {
    let by_hand = || {
        format!(
            "install it by hand, on Debian or Ubuntu with: sudo apt-get install {}",
            packages.join(" ")
        )
    };
    if !command::succeeds(Command::new("apt-get").arg("--version")) {
        bail!("this system has no apt-get; {}", by_hand());
    }
    let privileged: &[&str] = if is_root() {
        &[]
    } else if command::succeeds(Command::new("sudo").args(["-n", "true"])) {
        &["sudo", "-n"]
    } else {
        bail!("apt-get needs root or sudo without a password; {}", by_hand());
    };
    let apt = |arguments: &[&str]| {
        let words = [
            privileged,
            &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"],
        ]
        .concat();
        command::run(Command::new(words[0]).args(&words[1..]).args(arguments))
    };
    let install = [&["install", "-y", "--no-install-recommends"], packages].concat();
    apt(&["update"])
        .and_then(|()| apt(&install))
        .with_context(by_hand)
}

/// Whether Vulkan's loader is told of lavapipe.
pub(super) fn has_lavapipe() -> bool {
    ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"]
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flat_map(Iterator::flatten)
        .any(|entry| entry.file_name().to_string_lossy().starts_with("lvp_icd"))
}

fn is_root() -> bool {
    command::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Installs an npm package and what it needs below `directory`.
pub(super) fn npm(mut npm: Command, directory: &Path, package: &str) -> Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    command::run(
        npm.args(["install", "--no-audit", "--no-fund", "--prefix"])
            .arg(directory)
            .arg(package),
    )
}

/// Installs packages of PyPI's and what they need into a virtual environment of its own.
pub(super) fn pip(directory: &Path, packages: &[&str]) -> Result<()> {
    // Debian's python3 comes without what a virtual environment is made with.
    if !command::succeeds(Command::new("python3").args(["-c", "import venv, ensurepip"])) {
        apt(&["python3", "python3-venv"])?;
    }
    command::run(Command::new("python3").args(["-m", "venv"]).arg(directory))?;
    let pip = directory.join("bin/pip");
    command::run(Command::new(pip).args(["install", "--quiet"]).args(packages))
}
