//! An agent that is a command: the request on its standard input, the response on its standard
//! output. Each rollout starts it anew.

use std::path::PathBuf;
use std::process::Stdio;

use capo_core::llm::FailureKind;
use capo_core::workload::RolloutError;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;

use super::transport::{Answer, MOST_BYTES, Secrets, Unanswered, failed, too_large, variable};

/// Variables every command gets: where programs, home and temporary files are, and the language.
/// Others, keys above all, must be named in the study.
const ENVIRONMENT: [&str; 16] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SystemRoot",
    "SystemDrive",
    "ComSpec",
    "PATHEXT",
    "APPDATA",
    "USERPROFILE",
];

/// A command to run.
pub(super) struct Program {
    executable: String,
    arguments: Vec<String>,
    environment: Vec<String>,
    directory: Option<PathBuf>,
}

impl Program {
    pub(super) fn new(
        program: &str,
        arguments: &[String],
        environment: &[String],
        directory: Option<PathBuf>,
    ) -> Self {
        Self {
            executable: program.to_owned(),
            arguments: arguments.to_vec(),
            environment: environment.to_vec(),
            directory,
        }
    }

    /// For errors: what runs. Arguments may be long or private.
    pub(super) fn shown(&self) -> &str {
        &self.executable
    }

    /// Starts the command, writes the request, reads the answer. Dropping the future kills the
    /// command and what it started.
    pub(super) async fn exchange(&self, request: String) -> Result<Answer, Unanswered> {
        let tool =
            |retryable, problem: String| failed(FailureKind::Tool, retryable, &self.executable, problem);
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(Unanswered::Refused(tool(
                false,
                "commands need a tokio runtime".to_owned(),
            )));
        }
        let (mut child, secrets) = self.start().map_err(Unanswered::Refused)?;
        let mut group = Group::of(&child);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(Unanswered::Refused(tool(
                false,
                "its standard streams cannot be opened".to_owned(),
            )));
        };
        let write = async move {
            // A command that ends or closes its input early need not have read it: its exit status
            // and answer say whether that was a failure.
            let _ = stdin.write_all(request.as_bytes()).await;
            let _ = stdin.shutdown().await;
        };
        // What the command leaves running may hold its streams open, which would end no reading:
        // it goes with the command.
        let ended = async {
            let status = child.wait().await;
            group.end();
            status
        };
        let ((), answer, complaints, status) = futures::join!(write, read(stdout), read(stderr), ended);
        let status = status
            .map_err(|error| Unanswered::Failed(tool(true, format!("it cannot be waited for: {error}"))))?;
        let complaints = complaints.unwrap_or_else(|partial| partial);
        if !status.success() {
            return Err(Unanswered::Failed(tool(
                true,
                format!(
                    "{status}; its standard error ends with: {}",
                    secrets.tail(&complaints)
                ),
            )));
        }
        let bytes = answer.map_err(|_| Unanswered::Failed(too_large(&self.executable)))?;
        Ok(Answer { bytes, secrets })
    }

    fn start(&self) -> Result<(Child, Secrets), RolloutError> {
        let mut command = tokio::process::Command::new(&self.executable);
        command.args(&self.arguments).env_clear().kill_on_drop(true);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Its own group, so that a keyboard interrupt reaches Capo alone, which then finishes the
        // rollouts under way, and so that all it started can be ended.
        #[cfg(unix)]
        command.process_group(0);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        for name in ENVIRONMENT {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        let mut secrets = Secrets::default();
        for name in &self.environment {
            let value = variable(name, "env")?;
            secrets.add(&value);
            command.env(name, value);
        }
        let child = command.spawn().map_err(|error| {
            let place = self
                .directory
                .as_ref()
                .map(|path| format!(" in {}", path.display()))
                .unwrap_or_default();
            failed(
                FailureKind::Tool,
                false,
                &self.executable,
                format!("it cannot be started{place}: {error}; check workload.command"),
            )
        })?;
        Ok((child, secrets))
    }
}

/// All bytes of a stream; where there are more than Capo keeps, the last ones it read, as an error.
async fn read(mut stream: impl AsyncRead + Unpin) -> Result<Vec<u8>, Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    let mut overflow = false;
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => {
                if bytes.len() + count > MOST_BYTES {
                    overflow = true;
                    bytes.clear();
                }
                bytes.extend_from_slice(&buffer[..count]);
            }
        }
    }
    if overflow { Err(bytes) } else { Ok(bytes) }
}

/// The command's whole process group, ended with the command or when dropped: a wrapper such as a
/// package runner does not pass its own end on to what it started.
struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

impl Group {
    #[cfg(unix)]
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            leader: id.and_then(rustix::process::Pid::from_raw),
        }
    }

    /// Ends what is left of the group, once: after the command's own end its id may soon be
    /// another's.
    #[cfg(unix)]
    fn end(&mut self) {
        if let Some(leader) = self.leader.take() {
            // Nothing can be done about a group that is gone already.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }

    #[cfg(not(unix))]
    fn of(_child: &Child) -> Self {
        Self {}
    }

    #[cfg(not(unix))]
    fn end(&mut self) {}
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}
