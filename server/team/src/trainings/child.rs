//! A process of a training: begun, told to end, and waited for.

use std::collections::VecDeque;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::sync::watch;

use super::log::Log;
use crate::store::NotKept;

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Lines of what a process says that are kept for who wants to know why it ended.
const WORDS: usize = 3;

/// What a process is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct News {
    /// Somebody stopped the training.
    pub(super) stopped: bool,
    /// The server ends.
    pub(super) ending: bool,
    /// Another process has claimed the training, or it was deleted.
    pub(super) lost: bool,
}

/// How a process ended.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// The last that it said.
    pub(super) words: String,
}

/// Runs a process to its end, which it is asked for by closing its standard input; so it ends, too, when this process is no
/// more. What it writes into its log is copied meanwhile; one without a log keeps nothing of what it did, and is killed.
///
/// # Errors
/// When the system does not begin it.
pub(super) async fn run(
    command: std::process::Command,
    mut news: watch::Receiver<News>,
    mut log: Option<&mut Log>,
) -> std::io::Result<Ended> {
    let mut command = Command::from(command);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(log.is_none());
    // Ctrl-C in a terminal is for the server, which tells its own.
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take();
    let stderr = child.stderr.take();
    let words = tokio::spawn(async move {
        let mut last = VecDeque::new();
        let Some(stderr) = stderr else { return last };
        let mut lines = BufReader::new(stderr).split(b'\n');
        while let Ok(Some(line)) = lines.next_segment().await {
            let line = String::from_utf8_lossy(&line).into_owned();
            tracing::debug!(line, "a training says");
            if line.starts_with("error") {
                last.clear();
            }
            last.push_back(line);
            if last.len() > WORDS {
                last.pop_front();
            }
        }
        last
    });
    let status = loop {
        if *news.borrow_and_update() != News::default() {
            drop(stdin.take());
            if log.is_none() {
                // It may have ended by itself.
                let _ = child.start_kill();
            }
        }
        tokio::select! {
            status = child.wait() => break status?,
            _ = news.changed(), if stdin.is_some() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
        // What could not be copied comes again; who has lost it hears so.
        if let Some(log) = &mut log
            && let Err(NotKept::Store(error)) = log.copy().await
        {
            tracing::warn!(%error, "the log of a training could not be copied");
        }
    };
    let words = words.await.unwrap_or_default();
    Ok(Ended {
        status,
        words: words.into_iter().collect::<Vec<_>>().join("\n"),
    })
}
