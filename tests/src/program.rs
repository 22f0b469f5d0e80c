//! The built `capo` as a program.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::Value;

/// The path of the `capo` under test: the environment variable `CAPO_BIN`, else the one that cargo
/// has built for the profile this test was built in.
///
/// # Panics
/// When there is none. Cargo does not build another package's binary for a test.
pub fn capo() -> PathBuf {
    if let Some(path) = env::var_os("CAPO_BIN").map(PathBuf::from) {
        assert!(path.is_file(), "CAPO_BIN is {}, which is no file", path.display());
        return path;
    }
    // The test program lies in `target/PROFILE/deps`.
    let program = env::current_exe().expect("a test program has a path");
    let name = format!("capo{}", env::consts::EXE_SUFFIX);
    let found = program
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(&name))
        .find(|path| path.is_file());
    found
        .expect("there is no built capo; run `cargo xtask test`, or `cargo build -p capo-server` before this")
}

/// A command line of `capo`, with no environment but what it needs to run.
///
/// Exactly the variables a test sets reach it, so that no key of the person who runs the tests
/// can.
pub fn command<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(capo());
    command.args(arguments).env_clear().stdin(Stdio::null());
    for name in ["PATH", "HOME", "TMPDIR"] {
        if let Some(value) = env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// How a command ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Everything on standard output.
    pub stdout: String,
    /// Everything on standard error.
    pub stderr: String,
}

impl Ended {
    /// Standard output as one JSON value.
    ///
    /// # Panics
    /// When it is not.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in the output of {self:?}"))
    }

    /// Checks the exit code and returns itself.
    ///
    /// # Panics
    /// When it is another one; the message shows what the program said.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Checks that standard error holds every part, in an error of at most three lines without a
    /// backtrace.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn expect_error(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in: {}", self.stderr);
        }
        // Before it, rounds and waits are told.
        let said = self.stderr.lines().skip_while(|line| !line.starts_with("error"));
        assert!(
            said.count() <= 3,
            "an error of more than three lines: {}",
            self.stderr
        );
        assert!(
            !self.stderr.contains("panicked") && !self.stderr.contains("stack backtrace"),
            "{}",
            self.stderr
        );
        self
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs a command to its end.
///
/// # Panics
/// When it cannot be started.
pub fn run(command: &mut Command) -> Ended {
    command
        .output()
        .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"))
        .into()
}

/// A running program, killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// What is left to read of its standard error.
    stderr: Option<BufReader<ChildStderr>>,
}

impl Running {
    /// Starts a command; its output goes nowhere.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> Self {
        Self::spawn(command.stdout(Stdio::null()).stderr(Stdio::null()))
    }

    /// Starts a command whose output goes where the command says.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start_logged(command: &mut Command) -> Self {
        Self::spawn(command)
    }

    /// Starts a command whose output can be had with [`Running::finish`].
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start_piped(command: &mut Command) -> Self {
        Self::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let stderr = child.stderr.take().map(BufReader::new);
        Self { child, stderr }
    }

    /// Waits until a program started with [`Running::start_piped`] says these words on standard
    /// error.
    ///
    /// # Panics
    /// When it ends without saying them.
    #[track_caller]
    pub fn expect_words(&mut self, words: &str) {
        let stderr = self.stderr.as_mut().expect("standard error is piped");
        let mut said = String::new();
        while !said.contains(words) {
            let read = stderr.read_line(&mut said).expect("a pipe can be read");
            assert!(read > 0, "ended without {words:?}: {said}");
        }
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// When the program has been waited for already.
    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).expect("process ids are 31 bits");
        kill(Pid::from_raw(id), signal).expect("the program is ours to signal");
    }

    /// How it ended, or `None` after the time given.
    ///
    /// # Panics
    /// When the system cannot say.
    pub fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait().expect("the program is our child") {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for the end of a program started with [`Running::start_piped`].
    ///
    /// # Panics
    /// When its output cannot be read.
    pub fn finish(mut self) -> Ended {
        let stdout = self.child.stdout.take();
        let stderr = self.stderr.take();
        let reader = thread::spawn(move || stderr.map_or_else(String::new, read_all));
        let stdout = stdout.map_or_else(String::new, read_all);
        let stderr = reader.join().expect("reading does not panic");
        let code = self.child.wait().expect("the program is our child").code();
        Ended { code, stdout, stderr }
    }
}

fn read_all(mut pipe: impl std::io::Read) -> String {
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes)
        .expect("a pipe can be read to its end");
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Drop for Running {
    fn drop(&mut self) {
        // Neither fails in a way that matters once it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A `capo` of this test's own that listens.
#[derive(Debug)]
pub struct Server {
    running: Running,
    /// Held so that the program never writes into a closed pipe.
    stdout: BufReader<ChildStdout>,
    /// Of `capo simulate` ends in `/v1`.
    pub base_url: String,
}

impl Server {
    /// Starts `capo simulate --port 0` with further arguments, and waits until it listens.
    ///
    /// # Panics
    /// When it does not say where it listens.
    pub fn simulate(arguments: &[&str]) -> Self {
        Self::start(command(["simulate", "--port", "0"]).args(arguments))
    }

    /// Starts a command that listens, and waits until it does.
    ///
    /// # Panics
    /// When it does not say where it listens.
    pub fn start(command: &mut Command) -> Self {
        let mut server = Self::listening(command.stderr(Stdio::piped()));
        // Nobody reads on, as when a terminal is closed: what is said there must not end it.
        server.running.stderr = None;
        server
    }

    /// The same, with what it says on standard error at the end of a file.
    ///
    /// # Panics
    /// When the file cannot be written, or it does not say where it listens.
    pub fn start_logged(command: &mut Command, log: &Path) -> Self {
        let file = File::options().create(true).append(true).open(log);
        Self::listening(command.stderr(file.expect("the log can be written")))
    }

    fn listening(command: &mut Command) -> Self {
        let mut running = Running::spawn(command.stdout(Stdio::piped()));
        let mut stdout = BufReader::new(running.child.stdout.take().expect("standard output is piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a pipe can be read");
        let Some(base_url) = line.trim_end().strip_prefix("listening on ") else {
            panic!("said {line:?} and {}", running.finish().stderr);
        };
        Self {
            base_url: base_url.to_owned(),
            running,
            stdout,
        }
    }

    /// The next line on its standard output.
    ///
    /// # Panics
    /// When the program has ended.
    pub fn next_line(&mut self) -> String {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line).expect("a pipe can be read");
        assert!(read > 0, "the program has ended");
        line.trim_end().to_owned()
    }

    /// Ends it at once, without a word.
    ///
    /// # Panics
    /// When it has ended already.
    pub fn kill(self) {
        self.running.signal(Signal::SIGKILL);
    }

    /// Ends it at once with all that it has started, where it was started in a group of its own.
    ///
    /// # Panics
    /// When it has ended already.
    pub fn kill_group(self) {
        let id = i32::try_from(self.running.child.id()).expect("process ids are 31 bits");
        killpg(Pid::from_raw(id), Signal::SIGKILL).expect("the programs are ours to signal");
    }

    /// Presses Ctrl-C.
    pub fn interrupt(&self) {
        self.running.signal(Signal::SIGINT);
    }

    /// Tells it to read its files anew.
    ///
    /// # Panics
    /// When it has ended already.
    pub fn hang_up(&self) {
        self.running.signal(Signal::SIGHUP);
    }

    /// Its end, after the time given at the latest.
    ///
    /// # Panics
    /// When it does not end by then, or not well.
    pub fn expect_end(mut self, patience: Duration) {
        let status = self.running.wait(patience).expect("capo ends on SIGINT");
        assert!(status.success(), "{status}");
    }

    /// Stops it as Ctrl-C does, so that its log is complete.
    ///
    /// # Panics
    /// When it does not end within a minute.
    pub fn stop(self) {
        self.interrupt();
        self.expect_end(Duration::from_mins(1));
    }
}

/// Waits until a condition holds.
///
/// # Panics
/// After 60 seconds; the message names what was waited for.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < deadline, "waited a minute for {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The text of a file.
///
/// # Panics
/// When it cannot be read.
#[track_caller]
pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
