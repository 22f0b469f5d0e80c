//! The rewriter on a machine with an NVIDIA GPU: one archive with all that is needed there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::scratch::Scratch;
use crate::workspace::Workspace;
use crate::{build, command};

/// The archive's folder, and its own name with an ending.
const NAME: &str = "capo-gpu";
/// The archive must stay below, in bytes.
const LARGEST: u64 = 64 << 20;
/// What is measured; the folders of their configurations.
const SHAPES: &str = "rewriter/measure/shapes";
/// The script that is called there.
const SCRIPT: &str = "rewriter/measure/run.sh";

pub(super) fn run(workspace: &Workspace, scratch: &Scratch) -> Result<()> {
    let shared = shared(workspace)?;
    let program = build::measure(workspace, "cuda")?;
    let folder = scratch.file(NAME);
    fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (from, to) in [
        (program, "capo-measure"),
        (workspace.root.join(SCRIPT), "run.sh"),
        (workspace.root.join(SHAPES), "shapes"),
        (shared.join("parity/qwen3"), "reference"),
        (shared.join("bench/torch_qwen3.py"), "torch_qwen3.py"),
    ] {
        copy(&from, &folder.join(to))?;
    }
    let archive = workspace.target.join(format!("{NAME}.tar.xz"));
    command::run(
        Command::new("tar")
            .args(["--create", "--xz", "--file"])
            .arg(&archive)
            .arg("--directory")
            .arg(scratch.file(""))
            .arg(NAME),
    )?;
    let size = fs::metadata(&archive)
        .with_context(|| format!("cannot read {}", archive.display()))?
        .len();
    println!(
        "{} ({:.1} MiB)",
        archive.display(),
        size as f64 / f64::from(1 << 20)
    );
    ensure!(
        size < LARGEST,
        "the archive must stay below {} MiB",
        LARGEST >> 20
    );
    println!("On the machine with the GPU: tar xf {NAME}.tar.xz && {NAME}/run.sh");
    Ok(())
}

/// The data outside the repository: as the environment says, else beside it.
fn shared(workspace: &Workspace) -> Result<PathBuf> {
    let folder =
        std::env::var_os("CAPO_SHARED").map_or_else(|| workspace.root.join("../shared"), PathBuf::from);
    ensure!(
        folder.join("parity/qwen3").is_dir(),
        "{} has no parity/qwen3: set CAPO_SHARED to the folder of the reference files",
        folder.display()
    );
    Ok(folder)
}

/// Copies a file or a folder with all that is in it; what is copied can be written.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let context = || format!("cannot copy {} to {}", from.display(), to.display());
    if !from.is_dir() {
        let bytes = fs::read(from).with_context(context)?;
        fs::write(to, bytes).with_context(context)?;
        return make_executable(from, to).with_context(context);
    }
    fs::create_dir(to).with_context(context)?;
    for entry in fs::read_dir(from).with_context(context)? {
        let entry = entry.with_context(context)?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Lets a copy be run if the original can be.
#[cfg(unix)]
fn make_executable(from: &Path, to: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    if fs::metadata(from)?.permissions().mode() & 0o111 != 0 {
        fs::set_permissions(to, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn make_executable(_: &Path, _: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn folders_are_copied_whole_and_programs_stay_programs() {
        let base = std::env::temp_dir().join(format!("xtask-gpu-{}", std::process::id()));
        let (from, to) = (base.join("from"), base.join("to"));
        fs::create_dir_all(from.join("inner")).unwrap();
        fs::write(from.join("inner/file"), "text").unwrap();
        fs::set_permissions(from.join("inner/file"), fs::Permissions::from_mode(0o444)).unwrap();
        fs::write(from.join("program"), "").unwrap();
        fs::set_permissions(from.join("program"), fs::Permissions::from_mode(0o555)).unwrap();
        copy(&from, &to).unwrap();
        let mode = |path: &str| fs::metadata(to.join(path)).unwrap().permissions().mode() & 0o777;
        let text = fs::read_to_string(to.join("inner/file")).unwrap();
        let (file, program) = (mode("inner/file"), mode("program"));
        fs::remove_dir_all(&base).unwrap();
        assert_eq!(text, "text");
        assert!(file & 0o200 != 0 && file & 0o111 == 0, "{file:o}");
        assert_eq!(program, 0o755);
    }
}
