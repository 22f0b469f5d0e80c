//! What is packed, and what `install.sh` makes of it on machines that have only the programs which it calls.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::SystemTime;

use flate2::read::GzDecoder;
use tempfile::TempDir;

use super::*;

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// What the installer calls, but for `uname`, what loads and what hashes. tar calls gzip.
const PROGRAMS: [&str; 10] = [
    "chmod", "cp", "grep", "gzip", "head", "mkdir", "mktemp", "mv", "rm", "tar",
];
const HASHES: [&str; 2] = ["sha256sum", "shasum"];
const CAPO: &str = "#!/bin/sh\necho capo 1.2.3\n";

fn write(path: &Path, text: &str) {
    let folder = path.parent().expect("a file lies in a folder");
    fs::create_dir_all(folder).expect("a folder can be made");
    fs::write(path, text).expect("a file can be written");
}

fn write_program(path: &Path, text: &str) {
    write(path, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode can be set");
}

/// The names in a folder, in order; none of one that is not there.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// What is packed of a checkout, of which git does not know one file.
fn checkout(root: &Path, studies: [&str; 2]) {
    for path in studies.into_iter().chain(FILES.map(|(from, _)| from)) {
        write(&root.join(path), path);
    }
    for words in [&["init", "--quiet"][..], &["add", "."]] {
        git(root, words).expect("git keeps files");
    }
    write(&root.join("studies/mine.journal.jsonl"), "");
}

#[test]
fn a_checkout_is_packed_as_roots_in_order_and_twice_alike() {
    let base = tempfile::tempdir().unwrap();
    let capo = base.path().join("capo");
    write_program(&capo, CAPO);
    let [first, second] = ["first", "second"].map(|name| base.path().join(name));
    checkout(&first, ["studies/b.toml", "studies/a/data.jsonl"]);
    checkout(&second, ["studies/a/data.jsonl", "studies/b.toml"]);
    let old = fs::File::open(second.join("README.md")).unwrap();
    old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let packed = [&first, &second].map(|root| pack("capo-1", &members(root, &capo).unwrap(), 1_000).unwrap());
    assert!(packed[0] == packed[1]);

    let mut archive = tar::Archive::new(GzDecoder::new(packed[0].as_slice()));
    let mut found = Vec::new();
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        let about = [header.uid(), header.gid(), header.mtime()].map(Result::unwrap);
        assert_eq!(about, [0, 0, 1_000]);
        let path = entry.path().unwrap().display().to_string();
        found.push(format!("{path} {:o}", header.mode().unwrap()));
    }
    let expected = [
        "capo-1/LICENSE-APACHE 644",
        "capo-1/LICENSE-MIT 644",
        "capo-1/README.md 644",
        "capo-1/capo 755",
        "capo-1/capo.service 644",
        "capo-1/studies/a/data.jsonl 644",
        "capo-1/studies/b.toml 644",
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_is_packed_is_there() {
    let workspace = Workspace::load().unwrap();
    for (path, _) in FILES {
        assert!(workspace.root.join(path).is_file(), "{path}");
    }
    assert!(workspace.locked_version(SERVER).unwrap().is_some());
    assert!(target(&workspace).unwrap().contains('-'));
}

#[test]
fn manual_and_completions_come_from_a_capo_that_makes_them() {
    let base = tempfile::tempdir().unwrap();
    let capo = base.path().join("capo");
    write_program(&capo, "#!/bin/sh\necho 'Commands:\n  serve  For a man'\n");
    assert!(made(&capo).unwrap().is_empty());
    write_program(
        &capo,
        "#!/bin/sh\ncase $1 in --help) printf '  man  A\\n  completions  B\\n' ;; *) echo $@ ;; esac\n",
    );
    let made = made(&capo).unwrap();
    let text = |path: &str| String::from_utf8_lossy(&made[path]).into_owned();
    assert_eq!(made.len(), 4);
    assert_eq!(text("man/man1/capo.1"), "man\n");
    assert_eq!(text("completions/zsh/_capo"), "completions zsh\n");
}

#[test]
fn sums_are_of_one_version_for_every_target() {
    let base = tempfile::tempdir().unwrap();
    for name in ["capo-1-b.tar.gz", "capo-1-a.tar.gz", "capo-0-a.tar.gz", SUMS] {
        write(&base.path().join(name), "");
    }
    let hash = page::hash(b"");
    assert_eq!(
        sums(base.path(), "1").unwrap(),
        format!("{hash}  capo-1-a.tar.gz\n{hash}  capo-1-b.tar.gz\n")
    );
}

/// A machine in a folder that has a space in its name, and beside it a release for Linux on x86_64.
struct Machine(TempDir);

impl Machine {
    fn new(capo: &str) -> Self {
        let base = tempfile::Builder::new().prefix("capo machine ").tempdir();
        let machine = Self(base.expect("a folder for a while"));
        fs::create_dir(machine.path("temporary")).expect("a folder can be made");
        machine.says("Linux", "x86_64");
        let users = std::env::var_os("PATH").unwrap_or_default();
        for name in PROGRAMS.iter().chain(&HASHES) {
            let mut paths = std::env::split_paths(&users).map(|folder| folder.join(name));
            if let Some(path) = paths.find(|path| path.is_file()) {
                symlink(path, machine.path("bin").join(name)).expect("a link can be made");
            }
        }
        let folder = format!("capo-1.2.3-{TARGET}");
        let members = Members::from([(program(), capo.into())]);
        let packed = pack(&folder, &members, 0).expect("one file can be packed");
        fs::create_dir(machine.path("release")).expect("a folder can be made");
        fs::write(machine.archive(), packed).expect("an archive can be written");
        let sums = sums(&machine.path("release"), "1.2.3").expect("the archive is there");
        write(&machine.path("release/SHA256SUMS"), &sums);
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn archive(&self) -> PathBuf {
        self.path(&format!("release/capo-1.2.3-{TARGET}.tar.gz"))
    }

    /// Has `uname` say so.
    fn says(&self, system: &str, machine: &str) {
        let script = format!("#!/bin/sh\ncase $1 in -s) echo {system} ;; *) echo {machine} ;; esac\n");
        write_program(&self.path("bin/uname"), &script);
    }

    /// What the installer says where it ends well, and where it does not; either way it leaves nothing that is not `capo`.
    fn install(&self, adjust: impl FnOnce(&mut Command)) -> Result<String, String> {
        let root = Workspace::load().expect("cargo knows the checkout").root;
        let mut sh = Command::new("/bin/sh");
        sh.arg(root.join(INSTALLER)).env_clear();
        sh.env("PATH", self.path("bin"))
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("temporary"))
            .env("CAPO_BASE_URL", self.path("release"));
        adjust(&mut sh);
        let output = sh.output().expect("sh starts");
        assert!(names(&self.path("temporary")).is_empty());
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(said(&output.stdout))
        } else {
            Err(said(&output.stderr))
        }
    }

    /// Holds what the installer says against a part of it, and that nothing was installed.
    fn refuses(&self, part: &str) {
        let said = self.install(|_| ()).expect_err("this is not to be installed");
        assert!(said.contains(part), "{said}");
        assert!(!self.path("home").exists());
    }
}

#[test]
fn a_release_with_its_checksum_is_installed() {
    let machine = Machine::new(CAPO);
    let into = machine.path("home/.local/bin");
    write(&into.join("capo"), "an older one");
    let said = machine.install(|_| ()).unwrap();
    assert!(
        said.contains("capo 1.2.3 is installed") && said.contains("is not on the PATH"),
        "{said}"
    );
    assert_eq!(names(&into), ["capo"]);
    let version = command::output(Command::new(into.join("capo")).arg("--version"));
    assert_eq!(version.unwrap(), "capo 1.2.3\n");

    let both = std::env::join_paths([machine.path("bin"), into]).unwrap();
    let said = machine.install(|sh| _ = sh.env("PATH", both)).unwrap();
    assert!(!said.contains("is not on the PATH"), "{said}");
}

#[test]
fn another_archive_than_the_sums_name_is_refused() {
    let machine = Machine::new(CAPO);
    let other = pack("capo", &Members::new(), 0).unwrap();
    fs::write(machine.archive(), other).unwrap();
    machine.refuses("not the one that SHA256SUMS names");
}

#[test]
fn an_unknown_machine_is_named() {
    let machine = Machine::new(CAPO);
    machine.says("Linux", "riscv64");
    machine.refuses("no archives for Linux on riscv64");
    machine.says("Darwin", "arm64");
    machine.refuses("names no archive for aarch64-apple-darwin");
}

#[test]
fn nothing_is_installed_without_a_hash() {
    let machine = Machine::new(CAPO);
    for name in HASHES {
        // Few machines have both.
        let _ = fs::remove_file(machine.path("bin").join(name));
    }
    machine.refuses("sha256sum or shasum must be there");
}

#[test]
fn what_does_not_run_leaves_the_former_one() {
    let machine = Machine::new("#!/bin/sh\nexit 1\n");
    let into = machine.path("home/.local/bin");
    write(&into.join("capo"), "an older one");
    let said = machine.install(|_| ()).unwrap_err();
    assert!(said.contains("does not run here"), "{said}");
    assert_eq!(names(&into), ["capo"]);
    assert_eq!(fs::read_to_string(into.join("capo")).unwrap(), "an older one");
}

#[test]
fn folders_may_have_spaces() {
    let machine = Machine::new(CAPO);
    fs::rename(machine.path("release"), machine.path("a release")).unwrap();
    let into = machine.path("my own/programs");
    machine
        .install(|sh| {
            sh.arg(machine.path("a release"));
            sh.env("CAPO_INSTALL_DIR", &into).env_remove("CAPO_BASE_URL");
        })
        .unwrap();
    assert_eq!(names(&into), ["capo"]);
    assert!(!machine.path("home").exists());
}

#[test]
fn an_address_is_asked_by_curl() {
    let machine = Machine::new(CAPO);
    // `curl -fsSL -o FILE ADDRESS`
    let curl = "#!/bin/sh\ncp \"$RELEASE/${4#https://example.org/capo/}\" \"$3\"\n";
    write_program(&machine.path("bin/curl"), curl);
    let said = machine.install(|sh| {
        sh.arg("https://example.org/capo/");
        sh.env("RELEASE", machine.path("release"));
    });
    assert!(said.unwrap().contains("is installed"));
}
