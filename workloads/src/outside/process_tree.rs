//! A command's process and what it started, which end together: a wrapper such as a package runner does
//! not pass its own end on.

use tokio::process::Child;

use super::pace::random;

/// A name in the environment of a command, which what it starts inherits.
pub(super) struct Mark(String);

impl Mark {
    /// The variable that holds it.
    pub(super) const VARIABLE: &str = "CAPO_ROLLOUT";

    /// A mark that no other process has.
    pub(super) fn new() -> Self {
        Self(format!(
            "{}-{:016x}{:016x}",
            std::process::id(),
            random(),
            random()
        ))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// All processes of a command, ended with it or when dropped: its process group and, on Linux, those
/// that left the group, by the mark in their environment. Elsewhere those are not found, nor are those
/// of another user or without the environment they were started in.
pub(super) struct ProcessTree {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "read from /proc only"))]
    mark: Mark,
}

impl ProcessTree {
    #[cfg(unix)]
    pub(super) fn of(child: &Child, mark: Mark) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            leader: id.and_then(rustix::process::Pid::from_raw),
            mark,
        }
    }

    /// Ends what is left of the tree, once: after the command's own end its id may soon be
    /// another's.
    #[cfg(unix)]
    pub(super) fn end(&mut self) {
        if let Some(leader) = self.leader.take() {
            // Nothing can be done about a group that is gone already.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
            #[cfg(target_os = "linux")]
            strays::end(&self.mark);
        }
    }

    #[cfg(not(unix))]
    pub(super) fn of(_child: &Child, mark: Mark) -> Self {
        Self { mark }
    }

    #[cfg(not(unix))]
    #[expect(clippy::unused_self, reason = "on Unix it ends the group")]
    pub(super) fn end(&mut self) {}
}

#[cfg(unix)]
impl Drop for ProcessTree {
    fn drop(&mut self) {
        self.end();
    }
}

/// Processes that left their group (setsid, a daemon), found by their environment.
#[cfg(target_os = "linux")]
mod strays {
    use std::fs;

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::Mark;

    /// How often the processes are looked through: one may start another while they are.
    const LOOKS: usize = 5;

    /// Ends all processes with the mark.
    pub(super) fn end(mark: &Mark) {
        let entry = format!("{}={}", Mark::VARIABLE, mark.as_str());
        for _ in 0..LOOKS {
            let Ok(processes) = fs::read_dir("/proc") else {
                return;
            };
            let ended = processes
                .filter_map(|process| process.ok()?.file_name().to_str()?.parse().ok())
                .filter(|&id| end_one(id, entry.as_bytes()).is_some())
                .count();
            if ended == 0 {
                return;
            }
        }
    }

    /// Ends a process if its environment holds `entry`.
    fn end_one(id: i32, entry: &[u8]) -> Option<()> {
        let pid = Pid::from_raw(id)?;
        // Held before its environment is read, so that it is this process that ends and not a later
        // one of the same id.
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let environment = fs::read(format!("/proc/{id}/environ")).ok()?;
        let marked = environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == entry);
        marked.then(|| pidfd_send_signal(handle, Signal::KILL).ok())?
    }
}
