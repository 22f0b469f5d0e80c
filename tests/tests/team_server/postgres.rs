//! Servers of PostgreSQL.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use capo_tests::program::{Running, read, run, wait_until};
use capo_tests::tools::named;
use serde_json::Value;
use tempfile::TempDir;

use crate::database::{asked, psql};
use crate::small_disk::with_small_disk;

/// A server of PostgreSQL that is there to be restarted, as `CAPO_TEST_POSTGRES_TO_RESTART` describes it.
pub(crate) struct Postgres(Value);

impl Postgres {
    pub(crate) fn to_restart() -> Option<Self> {
        let described = named("CAPO_TEST_POSTGRES_TO_RESTART")?;
        Some(Self(serde_json::from_str(&described).unwrap()))
    }

    pub(crate) fn address(&self) -> &str {
        self.0["address"].as_str().unwrap()
    }

    /// Ends it as a crash does, and returns once it answers again.
    pub(crate) fn restart(&self) {
        let words = self.0["restart"].as_array().unwrap();
        let mut words = words.iter().map(|word| word.as_str().unwrap());
        let restarted = Command::new(words.next().unwrap())
            .args(words)
            // Where every account may be.
            .current_dir(std::env::temp_dir())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status();
        assert!(restarted.unwrap().success());
    }
}

/// A server of a test's own, with a database on a disk that can be filled; what it writes ahead lies elsewhere.
pub(crate) struct OnSmallDisk {
    _server: Running,
    folder: TempDir,
    pub(crate) database: String,
}

impl OnSmallDisk {
    /// Of the programs in the folder that `CAPO_POSTGRES` names; `None` where there is none, or no such disk.
    pub(crate) fn start() -> Option<Self> {
        let programs = PathBuf::from(named("CAPO_POSTGRES")?);
        let folder = TempDir::new().unwrap();
        let disk = folder.path().join("disk");
        fs::create_dir(&disk).unwrap();
        let program = |name: &str| {
            // None of them runs as root.
            let mut program = Command::new("unshare");
            program.args(["--user", "--map-user=nobody"]);
            program.arg(programs.join(name)).arg("-D").arg(cluster(&folder));
            program
        };
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut postgres = program("postgres");
        // Nothing makes room but the test.
        let settings = [
            "fsync=off",
            "autovacuum=off",
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
        ];
        postgres.args(["-p", &port.to_string()]);
        postgres.args(settings.iter().flat_map(|setting| ["-c", *setting]));
        let mut postgres = with_small_disk(&disk, 64, &postgres)?;
        let mut initdb = program("initdb");
        initdb.args(["--username=capo", "--auth=trust", "--no-sync"]);
        initdb.args(["--encoding=UTF8", "--locale=C"]);
        run(&mut initdb).expect_code(0);
        let server = Running::start(&mut postgres);
        let address = format!("postgres://capo@127.0.0.1:{port}/");
        let admin = format!("{address}postgres");
        wait_until("PostgreSQL", || asked(&admin, "SELECT 1").code == Some(0));
        let place = format!("CREATE TABLESPACE small LOCATION '{}'", disk.display());
        psql(&admin, &place);
        psql(&admin, "CREATE DATABASE capo TABLESPACE small");
        Some(Self {
            _server: server,
            folder,
            database: format!("{address}capo"),
        })
    }

    /// Leaves no room on the disk.
    pub(crate) fn fill(&self) {
        let mut file = File::create(self.filler()).unwrap();
        let full = io::copy(&mut io::repeat(0), &mut file).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::StorageFull);
    }

    /// Makes room again.
    pub(crate) fn clear(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    /// A file on the disk, which the server alone has at its folder.
    fn filler(&self) -> PathBuf {
        let told = read(&cluster(&self.folder).join("postmaster.pid"));
        let root = Path::new("/proc").join(told.lines().next().unwrap()).join("root");
        let disk = self.folder.path().strip_prefix("/").unwrap();
        root.join(disk).join("disk/filler")
    }
}

/// Where a server keeps what is not on its small disk.
fn cluster(folder: &TempDir) -> PathBuf {
    folder.path().join("cluster")
}
