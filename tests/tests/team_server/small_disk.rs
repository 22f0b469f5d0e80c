//! A disk that a test can fill.

use std::path::Path;
use std::process::{Command, Stdio};

use capo_tests::program::command;
use capo_tests::tools::skip;

/// Has a command carried out by another program, which takes it as its last words.
pub(crate) fn within(mut outer: Command, inner: &Command) -> Command {
    outer.arg(inner.get_program()).args(inner.get_args());
    outer.env_clear().stdin(Stdio::null());
    for (name, value) in inner.get_envs() {
        if let Some(value) = value {
            outer.env(name, value);
        }
    }
    outer
}

/// The same command with a disk of its own at a folder, which holds so many MiB; `None` where the system gives nobody name spaces,
/// in which that needs no rights.
///
/// # Panics
/// Where it does not, as [`skip`] does.
pub(crate) fn with_small_disk(folder: &Path, mib: u32, inner: &Command) -> Option<Command> {
    let small = |inner: &Command| {
        let script = format!(r#"mount -t tmpfs -o size={mib}m none "$0" && exec "$@""#);
        let mut unshare = Command::new("unshare");
        // What is shared between processes ends with these, even if they are killed.
        unshare.args(["--user", "--map-root-user", "--mount", "--ipc", "sh", "-c"]);
        unshare.arg(script).arg(folder);
        within(unshare, inner)
    };
    let mut tried = small(&command(["--version"]));
    let is_given = tried.stdout(Stdio::null()).status();
    if is_given.is_ok_and(|status| status.success()) {
        return Some(small(inner));
    }
    skip("no disk of a test's own, which needs user name spaces");
    None
}
