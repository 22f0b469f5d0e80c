//! A team server whose disks are full.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

mod team_server;

#[path = "team_server/shared_key.rs"]
mod shared_key;
#[path = "team_server/small_disk.rs"]
mod small_disk;

use std::process::Command;

use capo_tests::program::{Ended, Server, command, run, wait_until};
use shared_key::shared_key;
use small_disk::{with_small_disk, within};
use team_server::{PASSWORD, create_user, serving};
use tempfile::TempDir;

/// A table of so many KiB.
fn table(kib: usize) -> String {
    let row = format!("{},two\n", "x".repeat(1019));
    "question,answer\n".to_owned() + &row.repeat(kib)
}

#[test]
fn a_data_file_that_does_not_fit_on_the_disk_is_refused_and_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let (data, files) = (folder.path().join("data"), folder.path().join("small"));
    std::fs::create_dir(&files).unwrap();
    create_user(&data, &["ada", "--admin"], PASSWORD).expect_code(0);
    let mut serve = serving(&data, "127.0.0.1:0");
    serve.arg("--files").arg(&files);
    let Some(mut serve) = with_small_disk(&files, 16, &serve) else {
        return;
    };
    let server = Server::start(&mut serve);
    let token = shared_key(&server, "http://127.0.0.1:1/v1");
    let capo = |words: &[&str]| -> Ended {
        let mut command = command(words);
        command.current_dir(folder.path()).env("CAPO_TOKEN", &token);
        run(command.env("CAPO_REMOTE", &server.base_url))
    };
    let upload = |name: &str, kib: usize| {
        std::fs::write(folder.path().join(name), table(kib)).unwrap();
        capo(&["data", "upload", name])
    };
    // In parts of 5 MiB, of which the last finds no room, and in one: after each fits what would not beside a half of it.
    for (name, too_large, fits) in [("parts.csv", 20 << 10, 12 << 10), ("one.csv", 4608, 3584)] {
        upload("large.csv", too_large)
            .expect_code(1)
            .expect_error(&["The server's disk is full: nothing was written."]);
        wait_until("what was written of it to be deleted", || {
            upload(name, fits).code == Some(0)
        });
    }
    let listed = capo(&["data", "list"]).expect_code(0).stdout;
    assert!(
        listed.contains("parts.csv") && listed.contains("one.csv") && !listed.contains("large.csv"),
        "{listed}"
    );
}

#[test]
fn a_backup_that_does_not_fit_on_the_disk_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    create_user(&folder.path().join("data"), &["ada", "--admin"], PASSWORD).expect_code(0);
    let mut backup = command(["admin", "backup", "copy.db", "--data", "data"]);
    backup.current_dir(folder.path());
    // The shell's `ulimit -f` counts blocks of 512 bytes and is inherited.
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 128; exec \"$0\" \"$@\""]);
    shell.current_dir(folder.path());
    run(&mut within(shell, &backup))
        .expect_code(1)
        .expect_error(&["error: the database: error returned from database: (code: 778) disk I/O error"]);
    let left = std::fs::read_dir(folder.path()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["data"], "nothing half-written");
    run(&mut backup).expect_code(0);
}
