//! A private PostgreSQL server for tests, as long as it is needed.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::command;

/// A running server with an empty cluster. It listens on a socket in its own folder and on a port of the loopback interface.
pub(crate) struct Postgres {
    folder: PathBuf,
    programs: PathBuf,
    port: u16,
}

impl Postgres {
    /// Makes a cluster and starts its server.
    ///
    /// # Errors
    /// PostgreSQL is not installed, or does not start.
    pub(crate) fn start() -> Result<Self> {
        let programs = programs().context("PostgreSQL is not installed")?;
        let port = free_port()?;
        // Where every account may go, for the server may not run as this one.
        let folder = std::env::temp_dir().join(format!("capo-postgres-{}-{port}", std::process::id()));
        std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut server = Self {
            folder,
            programs,
            port,
        };
        if is_root() {
            // The server does not run as root.
            let owned = Command::new("chown").arg("nobody").arg(&server.folder).status()?;
            ensure!(owned.success(), "chown failed");
        }
        let cluster = server.cluster();
        command::output(
            server
                .program("initdb")
                .args(["--username=capo", "--auth=trust", "--no-sync", "--pgdata"])
                .arg(&cluster),
        )?;
        loop {
            let settings = format!(
                "-p {} -k {} -c listen_addresses=127.0.0.1 -c fsync=off",
                server.port,
                server.folder.display()
            );
            // A server that holds the pipe would keep this process waiting for its end.
            let status = server
                .program("pg_ctl")
                .args(["start", "--wait", "--silent", "--pgdata"])
                .arg(&cluster)
                .arg("--log")
                .arg(server.log())
                .args(["--options", &settings])
                .stdout(Stdio::null())
                .status()?;
            if status.success() {
                return Ok(server);
            }
            // Another program may have taken the port meanwhile.
            let is_free = TcpListener::bind(("127.0.0.1", server.port)).is_ok();
            ensure!(!is_free, "PostgreSQL does not start: {status}");
            server.port = free_port()?;
        }
    }

    /// The address of the server, to which the name of a database can be added.
    pub(crate) fn address(&self) -> String {
        format!("postgres://capo@127.0.0.1:{}/", self.port)
    }

    /// What a test must know to restart it as after a crash, as JSON: its address, and the words of a command.
    pub(crate) fn to_restart(&self) -> String {
        let mut restart = self.program("pg_ctl");
        restart
            .args(["restart", "--mode=immediate", "--wait", "--silent", "--pgdata"])
            .arg(self.cluster())
            .arg("--log")
            .arg(self.log());
        let words = std::iter::once(restart.get_program()).chain(restart.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        json!({ "address": self.address(), "restart": words }).to_string()
    }

    /// Where its programs are, for tests that start servers of their own.
    pub(crate) fn programs(&self) -> &Path {
        &self.programs
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn cluster(&self) -> PathBuf {
        self.folder.join("cluster")
    }

    /// One of its programs, as an account that it runs as.
    fn program(&self, name: &str) -> Command {
        let program = self.programs.join(name);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command
                .args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"])
                .arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(&self.folder);
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let mut stop = self.program("pg_ctl");
        stop.args(["stop", "--mode=immediate", "--silent", "--pgdata"])
            .arg(self.cluster());
        // A server that is gone already needs no end.
        let _ = stop.status();
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            eprintln!("cannot remove {}: {error}", self.folder.display());
        }
    }
}

/// The folder of the programs: Debian keeps each version's apart and puts none of the server's on the path.
pub(crate) fn programs() -> Option<PathBuf> {
    let versions = Path::new("/usr/lib/postgresql");
    let mut found: Vec<PathBuf> = std::fs::read_dir(versions)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    found.sort();
    found.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    let name = format!("pg_ctl{}", std::env::consts::EXE_SUFFIX);
    found
        .into_iter()
        .rev()
        .find(|folder| folder.join(&name).is_file())
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn is_root() -> bool {
    let id = command::output(Command::new("id").arg("-u"));
    id.is_ok_and(|id| id.trim() == "0")
}
