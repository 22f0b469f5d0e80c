//! A bucket of an S3-compatible store on this machine.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use capo_tests::program::{Running, wait_until};
use capo_tests::tools::named;

/// A server that speaks as S3 does, with the bucket `capo` in a folder.
pub(crate) struct Bucket {
    _s3rver: Running,
    endpoint: String,
}

impl Bucket {
    /// # Panics
    /// Where continuous integration has none.
    pub(crate) fn new(folder: &Path) -> Option<Self> {
        let program = named("CAPO_S3RVER")?;
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut s3rver = Command::new(program);
        s3rver.arg("--directory").arg(folder).args([
            "--silent",
            "--address",
            "127.0.0.1",
            "--configure-bucket",
            "capo",
        ]);
        let running = Running::start(s3rver.args(["--port", &port.to_string()]));
        wait_until("it listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(Self {
            _s3rver: running,
            endpoint: format!("http://127.0.0.1:{port}"),
        })
    }

    /// Has a server keep its data files in a place of this store.
    pub(crate) fn keeps(&self, mut serve: Command, place: &str) -> Command {
        serve
            .args(["--files", place])
            .env("AWS_ENDPOINT", &self.endpoint)
            .env("AWS_ALLOW_HTTP", "true")
            .env("AWS_ACCESS_KEY_ID", "S3RVER")
            .env("AWS_SECRET_ACCESS_KEY", "S3RVER");
        serve
    }
}
