//! The arrows between files: which file names something that another defines, and whether they run in circles.

mod arrows;
mod modules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

use crate::workspace::Workspace;
use arrows::Arrow;
use modules::Crate;

/// The crates by their folders of sources, and what may not run in circles there.
const CRATES: [(&str, Among); 14] = [
    ("core/src", Among::Files),
    ("world/src", Among::Files),
    ("models/src", Among::Files),
    ("workloads/src", Among::Files),
    ("rewriter/src", Among::Files),
    ("rewriter/measure/src", Among::Files),
    ("gateway/src", Among::Files),
    ("server/api/src", Among::Files),
    ("server/hosted/src", Among::Files),
    ("server/team/src", Among::Files),
    ("server/src", Among::Files),
    ("edge/src", Among::Files),
    ("xtask/src", Among::Files),
    ("src", Among::Folders),
];

/// The floors of the core from the ground up: a file names only what stands on its own floor or below.
/// What lies in none of these folders is the ground under them.
const FLOORS: [&str; 4] = ["study", "journal", "reading", "search"];
const CORE: &str = "core/src";

/// What a circle goes through to be refused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Among {
    Files,
    /// Files of more than one folder.
    Folders,
}

/// Refuses circles between files and arrows of the core that run up.
///
/// # Errors
/// When there are any, each with the names that tie it; when a source cannot be read.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let mut complaints = Vec::new();
    for (folder, among) in CRATES {
        let sources = Crate::read(&workspace.root.join(folder))?;
        let arrows = arrows::between_files(&sources);
        complaints.extend(circles(&arrows, among).iter().map(|circle| {
            let arrows = told(&arrows, |arrow| {
                circle.contains(&arrow.from) && circle.contains(&arrow.to)
            });
            format!("{folder}: a circle of {} files\n{arrows}", circle.len())
        }));
        if folder == CORE {
            let up = told(&arrows, |arrow| floor(&arrow.from) < floor(&arrow.to));
            if !up.is_empty() {
                complaints.push(format!("{folder}: these name what stands on a floor above\n{up}"));
            }
        }
    }
    if complaints.is_empty() {
        return Ok(());
    }
    bail!("{}", complaints.join("\n"))
}

/// The floor of a file of the core; 0 is the ground.
fn floor(file: &Path) -> usize {
    let folder = file.iter().next().unwrap_or_default();
    FLOORS
        .iter()
        .position(|name| folder == *name)
        .map_or(0, |index| index + 1)
}

/// Files that name each other in a circle; one of several folders, where only those count.
fn circles(arrows: &BTreeSet<Arrow>, among: Among) -> Vec<BTreeSet<PathBuf>> {
    let graph: DiGraphMap<&Path, ()> = arrows
        .iter()
        .map(|arrow| (arrow.from.as_path(), arrow.to.as_path()))
        .collect();
    let folders = |circle: &[&Path]| {
        let folders: BTreeSet<_> = circle.iter().map(|file| file.parent()).collect();
        folders.len()
    };
    tarjan_scc(&graph)
        .into_iter()
        .filter(|circle| circle.len() > 1)
        .filter(|circle| among == Among::Files || folders(circle) > 1)
        .map(|circle| circle.into_iter().map(Path::to_owned).collect())
        .collect()
}

/// Some arrows, one line for each pair of files.
fn told(arrows: &BTreeSet<Arrow>, is_told: impl Fn(&Arrow) -> bool) -> String {
    let mut names: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for arrow in arrows.iter().filter(|arrow| is_told(arrow)) {
        names
            .entry((&arrow.from, &arrow.to))
            .or_default()
            .push(&arrow.name);
    }
    let lines = names
        .iter()
        .map(|((from, to), names)| format!("  {} -> {}: {}", from.display(), to.display(), names.join(", ")));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn arrows_of(files: &[(&str, &str)]) -> BTreeSet<Arrow> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        arrows::between_files(&Crate::read(folder.path()).unwrap())
    }

    fn names(files: &[(&str, &str)]) -> Vec<String> {
        let arrows = arrows_of(files);
        let of = |path: &Path| path.display().to_string();
        arrows
            .iter()
            .map(|arrow| format!("{} -> {}: {}", of(&arrow.from), of(&arrow.to), arrow.name))
            .collect()
    }

    #[test]
    fn a_name_leads_to_the_file_that_defines_it() {
        let files = [
            ("lib.rs", "pub mod a; mod b;"),
            ("a/mod.rs", "mod inner; pub use inner::Kept; pub struct Own;"),
            ("a/inner.rs", "pub struct Kept;"),
            (
                "b.rs",
                "use crate::a::{self, Kept as Other}; fn f(_: Other) -> a::Own { a::Own } use super::a::*;",
            ),
        ];
        assert_eq!(
            names(&files),
            ["b.rs -> a/inner.rs: Kept", "b.rs -> a/mod.rs: Own"]
        );
    }

    #[test]
    fn documentation_links_to_the_file_that_defines_a_name() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            (
                "a.rs",
                "pub struct A { /** See [`b`](crate::b::Handed::of). */ a: () }",
            ),
            (
                "b.rs",
                "pub use crate::c::Handed; use crate::c; /// See [`c::f`], `a::A`.\n pub fn f() {}",
            ),
            (
                "c.rs",
                "pub struct Handed; pub fn f() {} /// As [this](super::a::A).\n pub fn g() {}",
            ),
        ];
        assert_eq!(
            names(&files),
            ["a.rs -> c.rs: Handed", "b.rs -> c.rs: f", "c.rs -> a.rs: A"]
        );
    }

    #[test]
    fn tests_and_declarations_are_no_arrows() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            (
                "a.rs",
                "#[cfg(test)] mod tests { use crate::b::B; } #[cfg(all(test, unix))] fn f(_: crate::b::B) {}
                 pub struct A;",
            ),
            ("b.rs", "pub struct B(super::a::A);"),
        ];
        assert_eq!(names(&files), ["b.rs -> a.rs: A"]);
    }

    #[test]
    fn circles_are_found_across_folders_or_among_all_files() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod one; mod two;"),
            ("a/one.rs", "use super::two::Two; pub struct One;"),
            ("a/two.rs", "use super::one::One; pub struct Two;"),
            ("b/mod.rs", "pub fn f() {}"),
        ];
        let arrows = arrows_of(&files);
        assert_eq!(circles(&arrows, Among::Files).len(), 1);
        assert!(circles(&arrows, Among::Folders).is_empty());
        let mut across = files;
        across[3].1 = "use crate::b::f; pub struct Two;";
        across[4].1 = "use crate::a::two::Two; pub fn f() {}";
        assert_eq!(circles(&arrows_of(&across), Among::Folders).len(), 1);
    }
}
