//! Databases of PostgreSQL.

use std::process::Command;
use std::time::UNIX_EPOCH;

use capo_tests::program::{Ended, run};

/// What `psql` does of a statement, which may fail.
pub(crate) fn asked(database: &str, statement: &str) -> Ended {
    let mut psql = Command::new("psql");
    psql.args([database, "--no-psqlrc", "--quiet", "--tuples-only", "--no-align"]);
    run(psql.args(["--command", statement]))
}

/// What a database answers to a statement.
pub(crate) fn psql(database: &str, statement: &str) -> String {
    asked(database, statement).expect_code(0).stdout
}

/// A new database on a server, by the server's address.
pub(crate) fn database_on(server: &str) -> String {
    let name = format!("capo_{}", UNIX_EPOCH.elapsed().unwrap().as_micros());
    psql(&format!("{server}postgres"), &format!("CREATE DATABASE {name}"));
    format!("{server}{name}")
}
