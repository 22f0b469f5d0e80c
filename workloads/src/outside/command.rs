//! A command: the request on its standard input, the response on its standard output. Each request
//! starts it anew.

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use capo_core::llm::FailureKind;
use capo_core::workload::RolloutError;
use futures::future::{Either, select};
use futures_timer::Delay;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;

use super::Party;
use super::process_tree::{Mark, ProcessTree};
use super::transport::{Answer, Beside, MOST_BYTES, Secrets, Unanswered, failed, too_large, variable};

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

/// When a command has ended and its streams say nothing for so long, they will say nothing more.
const QUIET: Duration = Duration::from_millis(300);

/// A command to run.
pub(crate) struct Program {
    party: Party,
    /// What messages call it.
    pub(super) who: String,
    executable: String,
    arguments: Vec<String>,
    environment: Vec<String>,
    beside: Beside,
    directory: Option<PathBuf>,
}

impl Program {
    pub(super) fn new(
        party: &Party,
        program: &str,
        arguments: &[String],
        environment: &[String],
        beside: Beside,
        directory: Option<PathBuf>,
    ) -> Self {
        Self {
            party: party.clone(),
            who: party.called(program),
            executable: program.to_owned(),
            arguments: arguments.to_vec(),
            environment: environment.to_vec(),
            beside,
            directory,
        }
    }

    /// What runs. Arguments may be long or private.
    pub(super) fn shown(&self) -> &str {
        &self.executable
    }

    /// Starts the command, writes the request, reads the answer. Dropping the future kills the
    /// command and what it started.
    pub(super) async fn exchange(&self, request: String) -> Result<Answer, Unanswered> {
        let tool = |retryable, problem: String| failed(FailureKind::Tool, retryable, &self.who, problem);
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(Unanswered::Refused(tool(
                false,
                "commands need a tokio runtime".to_owned(),
            )));
        }
        let mark = Mark::new();
        let (mut child, secrets) = self.start(&mark).map_err(Unanswered::Refused)?;
        let mut processes = ProcessTree::of(&child, mark);
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
            Ok::<(), ()>(())
        };
        // What the command leaves running goes with it. What cannot be found may hold its streams
        // open, which would end no reading: once the command has ended and nothing more comes, the
        // answer is whole.
        let (answer, complaints) = (Stream::default(), Stream::default());
        let streams = pin!(async {
            futures::try_join!(write, answer.read(stdout, true), complaints.read(stderr, false))
        });
        let status = pin!(async {
            let status = child.wait().await;
            processes.end();
            status
        });
        let status = match select(streams, status).await {
            // It may go on without end: nobody waits for that.
            Either::Left((Err(()), _)) => return Err(Unanswered::Failed(too_large(&self.who))),
            Either::Left((Ok(_), status)) => status.await,
            Either::Right((status, mut streams)) => {
                let read = || answer.length() + complaints.length();
                loop {
                    let before = read();
                    let ended = select(&mut streams, Delay::new(QUIET)).await;
                    if matches!(ended, Either::Left(_)) || read() == before {
                        break status;
                    }
                }
            }
        };
        let status = status
            .map_err(|error| Unanswered::Failed(tool(true, format!("it cannot be waited for: {error}"))))?;
        let complaints = complaints.take().unwrap_or_else(|partial| partial);
        if !status.success() {
            return Err(Unanswered::Failed(tool(
                true,
                format!(
                    "{status}; its standard error ends with: {}",
                    secrets.tail(&complaints)
                ),
            )));
        }
        let bytes = answer
            .take()
            .map_err(|_| Unanswered::Failed(too_large(&self.who)))?;
        Ok(Answer { bytes, secrets })
    }

    fn start(&self, mark: &Mark) -> Result<(Child, Secrets), RolloutError> {
        let mut command = tokio::process::Command::new(&self.executable);
        command.args(&self.arguments).env_clear().kill_on_drop(true);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Its own group, so that a keyboard interrupt reaches Capo alone, and so that all it started
        // can be ended.
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
            let value = variable(name, &self.party.setting("env"), &self.beside)
                .map_err(|problem| failed(FailureKind::Authentication, false, &self.who, problem))?;
            secrets.add(&value);
            command.env(name, value);
        }
        command.env(Mark::VARIABLE, mark.as_str());
        let child = command.spawn().map_err(|error| {
            // The system is short of something for a moment.
            let passes = matches!(
                error.kind(),
                ErrorKind::WouldBlock | ErrorKind::OutOfMemory | ErrorKind::ExecutableFileBusy
            );
            let place = self
                .directory
                .as_ref()
                .map(|path| format!(" in {}", path.display()))
                .unwrap_or_default();
            let setting = self.party.setting("command");
            failed(
                FailureKind::Tool,
                passes,
                &self.who,
                format!("it cannot be started{place}: {error}; check {setting}"),
            )
        })?;
        Ok((child, secrets))
    }
}

/// What has been read of a stream so far.
#[derive(Default)]
struct Stream {
    kept: RefCell<Vec<u8>>,
    length: Cell<u64>,
}

impl Stream {
    /// Reads to the end. Where there is more than Capo keeps, the last bytes are kept, unless they were to be `whole`, which
    /// is an error.
    async fn read(&self, mut stream: impl AsyncRead + Unpin, whole: bool) -> Result<(), ()> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return Ok(()),
                Ok(count) => {
                    let mut kept = self.kept.borrow_mut();
                    if kept.len() + count > MOST_BYTES {
                        kept.clear();
                    }
                    kept.extend_from_slice(&buffer[..count]);
                    self.length.set(self.length.get() + count as u64);
                    if whole && self.length.get() > MOST_BYTES as u64 {
                        return Err(());
                    }
                }
            }
        }
    }

    /// Bytes read so far.
    fn length(&self) -> u64 {
        self.length.get()
    }

    /// All bytes; where there were more than Capo keeps, the last ones, as an error.
    fn take(&self) -> Result<Vec<u8>, Vec<u8>> {
        let bytes = self.kept.take();
        if self.length.get() > MOST_BYTES as u64 {
            Err(bytes)
        } else {
            Ok(bytes)
        }
    }
}
