//! The guides of docs/, followed to the letter: what each adds is added to a copy of this checkout, which must compile.
//!
//! A block of Rust whose first line is `// path/of/a/file.rs` is that file; one whose first line is
//! `// path/of/a/file.rs, in list!:` goes to the end of that list.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::command;
use crate::workspace::Workspace;

/// The guides, and the packages that they add to.
const GUIDES: [(&str, &str); 5] = [
    ("adding-a-method", "capo-core"),
    ("adding-a-dual-step", "capo-core"),
    ("adding-a-metric", "capo-workloads"),
    ("adding-a-workload", "capo-workloads"),
    ("adding-a-provider", "capo-models"),
];

/// What a guide adds.
#[derive(Debug, PartialEq, Eq)]
enum Addition<'a> {
    File {
        path: &'a str,
        text: &'a str,
    },
    ToList {
        path: &'a str,
        list: &'a str,
        text: &'a str,
    },
}

/// Follows every guide in a copy of the checkout, and checks the packages there, lints included.
///
/// # Errors
/// A guide adds nothing, names what is not there, or what it adds does not compile.
pub(super) fn check(workspace: &Workspace) -> Result<()> {
    // Always the same place, so that what did not change is not compiled again.
    let copy = workspace.target.join("guides");
    copy_checkout(&workspace.root, &copy)?;
    let mut packages: Vec<&str> = Vec::new();
    for (guide, package) in GUIDES {
        let page = format!("docs/{guide}.md");
        let text =
            fs::read_to_string(workspace.root.join(&page)).with_context(|| format!("cannot read {page}"))?;
        let additions: Vec<Addition> = blocks(&text).filter_map(Addition::of).collect();
        let is_file = |addition: &&Addition| matches!(addition, Addition::File { .. });
        let files = additions.iter().filter(is_file).count();
        ensure!(
            files == 1 && additions.len() == 2,
            "{page} must add one file and its place in one list; it adds {files} of {} blocks as files",
            additions.len()
        );
        for addition in additions {
            addition
                .make(&copy)
                .with_context(|| format!("{page} cannot be followed"))?;
        }
        if !packages.contains(&package) {
            packages.push(package);
        }
    }
    let mut cargo = Command::new(crate::workspace::cargo_program());
    cargo
        .current_dir(&copy)
        .env("CARGO_TARGET_DIR", &workspace.target);
    cargo.args(["clippy", "--locked"]);
    cargo.args(packages.iter().flat_map(|package| ["--package", package]));
    cargo.args(["--", "-D", "warnings"]);
    command::run(&mut cargo)
}

impl<'a> Addition<'a> {
    /// What a block adds; none where it only shows something.
    fn of(block: &'a str) -> Option<Self> {
        let (first, rest) = block.split_once('\n')?;
        let place = first.strip_prefix("// ")?;
        let is_path = |path: &str| {
            path.strip_suffix(".rs")
                .is_some_and(|path| path.contains('/') && !path.contains(' '))
        };
        if is_path(place) {
            return Some(Self::File {
                path: place,
                text: block,
            });
        }
        let (path, list) = place.split_once(", in ")?;
        let list = list.strip_suffix(':')?;
        is_path(path).then_some(Self::ToList {
            path,
            list,
            text: rest,
        })
    }

    fn make(&self, root: &Path) -> Result<()> {
        match self {
            Self::File { path, text } => {
                let path = root.join(path);
                ensure!(!path.exists(), "{} is there already", path.display());
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder)?;
                }
                Ok(fs::write(path, text)?)
            }
            Self::ToList { path, list, text } => {
                let path = root.join(path);
                let before = fs::read_to_string(&path)?;
                let after = appended(&before, list, text);
                let after = after.with_context(|| format!("{} has no list {list}", path.display()))?;
                Ok(fs::write(path, after)?)
            }
        }
    }
}

/// A source with something at the end of a macro's list, which ends on the line after or on its own.
fn appended(source: &str, list: &str, text: &str) -> Option<String> {
    let begins = |open: char| {
        source
            .find(&format!("\n{list}{open}"))
            .or_else(|| source.find(&format!("\n{list} {open}")))
    };
    let (begin, close) = begins('{')
        .map(|begin| (begin, '}'))
        .or_else(|| begins('[').map(|begin| (begin, ']')))?;
    let body = &source[begin + 1..];
    // The list's own end stands at the beginning of a line, or ends its only line.
    let only_line = body.lines().next().and_then(|line| line.find(close));
    let end = only_line.or_else(|| body.find(&format!("\n{close}")).map(|end| end + 1))?;
    let end = begin + 1 + end;
    let added = match only_line {
        Some(_) => format!(", {text}"),
        None => format!("{text}\n"),
    };
    Some(format!("{}{added}{}", &source[..end], &source[end..]))
}

/// The blocks of Rust on a page.
fn blocks(page: &str) -> impl Iterator<Item = &str> {
    let opened = page.split("\n```rust").skip(1);
    opened.filter_map(|rest| {
        rest.split_once('\n')?
            .1
            .split_once("\n```")
            .map(|(block, _)| block)
    })
}

/// Puts the tracked files of a checkout into a folder, but for those that nothing is compiled of.
fn copy_checkout(root: &Path, copy: &Path) -> Result<()> {
    let mut git = Command::new("git");
    // Those that are not added yet, too.
    git.current_dir(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listed = command::output(&mut git).context("cannot list the files of this checkout with git")?;
    let is_compiled_of =
        |path: &&str| !path.is_empty() && !path.starts_with("docs/") && root.join(path).is_file();
    let tracked: Vec<&str> = listed.split('\0').filter(is_compiled_of).collect();
    ensure!(!tracked.is_empty(), "git knows no files of this checkout");
    for path in &tracked {
        let (from, to) = (root.join(path), copy.join(path));
        let content = fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
        // What is the same keeps its time, by which cargo knows what to compile.
        if fs::read(&to).is_ok_and(|there| there == content) {
            continue;
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&to, content).with_context(|| format!("cannot write {}", to.display()))?;
    }
    remove_strangers(
        copy,
        &tracked.iter().map(|path| copy.join(path)).collect::<Vec<_>>(),
    )
}

/// Removes what earlier guides added.
fn remove_strangers(folder: &Path, known: &[PathBuf]) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_strangers(&path, known)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") && !known.contains(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_say_where_they_go() {
        let page = "Text.\n\n```rust\n// a/b.rs\nfn b() {}\n```\n\n```rust,ignore\n// a/mod.rs, in list!:\n    b,\n```\n\n```rust\nfn c() {}\n```\n";
        let found: Vec<Option<Addition>> = blocks(page).map(Addition::of).collect();
        let file = Addition::File {
            path: "a/b.rs",
            text: "// a/b.rs\nfn b() {}",
        };
        let list = Addition::ToList {
            path: "a/mod.rs",
            list: "list!",
            text: "    b,",
        };
        assert_eq!(found, [Some(file), Some(list), None]);
    }

    #[test]
    fn a_list_is_longer_then_by_one() {
        let lines = "x!{}\n\nlist! {\n    a;\n}\nrest\n";
        assert_eq!(
            appended(lines, "list!", "    b;").unwrap(),
            "x!{}\n\nlist! {\n    a;\n    b;\n}\nrest\n"
        );
        assert_eq!(
            appended("\nlist![a, b];\n", "list!", "c").unwrap(),
            "\nlist![a, b, c];\n"
        );
        assert_eq!(appended("\nother![a];\n", "list!", "c"), None);
    }
}
