//! One program's time and memory, as the kernel counts them.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use wait4::Wait4;

use crate::command;

/// What one run of a program printed and used.
pub(super) struct Measured {
    pub(super) output: String,
    pub(super) wall: Duration,
    /// User and system time of all its threads.
    pub(super) cpu: Duration,
    /// Largest resident set in bytes. Not below this process's own few
    /// megabytes: the kernel counts the moment between fork and exec too.
    pub(super) peak_memory: u64,
}

/// Runs the command to its end with its standard error shown.
///
/// # Errors
/// It cannot be started, prints no UTF-8, or ends with a status that is not
/// among the `accepted` ones.
pub(super) fn run(command: &mut Command, accepted: &[i32]) -> Result<Measured> {
    let line = command::line(command);
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{line}`"))?;
    let mut output = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout
            .read_to_string(&mut output)
            .with_context(|| format!("cannot read what `{line}` printed"))?;
    }
    let used = child
        .wait4()
        .with_context(|| format!("cannot wait for `{line}`"))?;
    if !used.status.code().is_some_and(|code| accepted.contains(&code)) {
        bail!("`{line}` failed ({})", used.status);
    }
    Ok(Measured {
        output,
        wall: started.elapsed(),
        cpu: used.rusage.utime + used.rusage.stime,
        peak_memory: used.rusage.maxrss,
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn reports_output_time_and_memory_of_the_program() {
        let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo $i; exit 2";
        let measured = run(Command::new("sh").args(["-c", script]), &[0, 2]).unwrap();
        assert_eq!(measured.output, "100000\n");
        assert!(measured.cpu > Duration::ZERO && measured.wall > Duration::ZERO);
        assert!(measured.peak_memory > 100_000, "{}", measured.peak_memory);
    }

    #[test]
    fn other_statuses_are_errors() {
        let outcome = run(Command::new("sh").args(["-c", "exit 3"]), &[0, 2]);
        assert!(outcome.is_err_and(|error| error.to_string().contains("failed (exit status: 3)")));
    }
}
