//! The workspace: what the checkout holds: its packages, their targets, its locked versions.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::command;

/// The package of the `capo` binary.
pub(crate) const SERVER: &str = "capo-server";
/// The package of the end-to-end tests.
pub(crate) const END_TO_END: &str = "capo-tests";
/// The program that drives a browser on the page.
pub(crate) const DRIVER: &str = "capo-browser";
/// The rewriter's backend that needs an NVIDIA GPU to run.
pub(crate) const CUDA: &str = "capo-rewriter-cuda";
/// The feature with which the server has the rewriter.
pub(crate) const TRAIN: &str = "capo-server/train";
/// The program that measures the rewriter on a device.
pub(crate) const MEASURE: &str = "capo-rewriter-measure";
/// What is built natively to be run and tested: one selection of packages and features, for a dependency whose
/// features differ is compiled again. What runs on CUDA is linted, and run by the archive of `cargo xtask bench gpu`.
pub(crate) const NATIVE: [&str; 5] = ["--workspace", "--exclude", CUDA, "--features", TRAIN];
/// The packages that must also build for the browser, or for Cloudflare's runtime. `capo-edge` is empty natively.
pub(crate) const BROWSER: [&str; 8] = [
    "capo-core",
    "capo-world",
    "capo-models",
    "capo-workloads",
    "capo-gateway",
    "capo-hosted",
    "capo-edge",
    "capo-web",
];
/// The folder of the fuzz target, which is a workspace of its own.
pub(crate) const FUZZ: &str = "workloads/fuzz";
/// The browser's target.
pub(crate) const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// The cargo workspace that this xtask was built from.
pub(crate) struct Workspace {
    /// The repository root; every command runs here.
    pub(crate) root: PathBuf,
    /// Where cargo puts what it builds.
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// A member of the workspace, as `cargo metadata` describes it.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) targets: Vec<Target>,
    dependencies: Vec<Dependency>,
}

/// A library, binary, test or example of a package.
#[derive(Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: PathBuf,
    target_directory: PathBuf,
}

impl Workspace {
    /// Asks cargo.
    ///
    /// # Errors
    /// Cargo finds no workspace or a manifest it cannot read.
    pub(crate) fn load() -> Result<Self> {
        // Cargo says where the package stands now; what was compiled in may be another checkout
        // that shares the target folder.
        let package = env::var_os("CARGO_MANIFEST_DIR");
        let package = package.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let manifest = Path::new(&package).join("Cargo.toml");
        let text = command::output(
            Command::new(cargo_program())
                .args(["metadata", "--no-deps", "--format-version=1"])
                .arg("--manifest-path")
                .arg(manifest),
        )?;
        let metadata: Metadata =
            serde_json::from_str(&text).context("`cargo metadata` printed unexpected JSON")?;
        Ok(Self {
            root: metadata.workspace_root,
            target: metadata.target_directory,
            packages: metadata.packages,
        })
    }

    /// `cargo`, in the repository root.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = Command::new(cargo_program());
        command.current_dir(&self.root);
        command
    }

    /// The member of that name, if this checkout has it.
    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    /// The version that `Cargo.lock` holds of a dependency, the highest when it
    /// holds several, none when nothing depends on it.
    ///
    /// # Errors
    /// `Cargo.lock` is missing or not a lock file.
    pub(crate) fn locked_version(&self, name: &str) -> Result<Option<String>> {
        let path = self.root.join("Cargo.lock");
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        locked_version(&text, name).with_context(|| format!("cannot read {}", path.display()))
    }
}

impl Package {
    /// Whether the manifest names that dependency in any table.
    pub(crate) fn depends_on(&self, name: &str) -> bool {
        self.dependencies.iter().any(|dependency| dependency.name == name)
    }

    /// Whether there is an example of that name.
    pub(crate) fn has_example(&self, name: &str) -> bool {
        self.targets
            .iter()
            .any(|target| target.is("example") && target.name == name)
    }

    /// The integration tests written for the browser's target, by convention
    /// the files `tests/wasm*.rs`.
    pub(crate) fn wasm_tests(&self) -> impl Iterator<Item = &str> {
        self.targets
            .iter()
            .filter(|target| target.is("test") && target.name.starts_with("wasm"))
            .map(|target| target.name.as_str())
    }
}

impl Target {
    fn is(&self, kind: &str) -> bool {
        self.kind.iter().any(|own| own == kind)
    }
}

/// The cargo that started this xtask, so that every step uses one toolchain.
pub(crate) fn cargo_program() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

fn locked_version(lock: &str, name: &str) -> Result<Option<String>> {
    #[derive(Deserialize)]
    struct Lock {
        package: Vec<Locked>,
    }
    #[derive(Deserialize)]
    struct Locked {
        name: String,
        version: String,
    }
    let lock: Lock = toml::from_str(lock)?;
    let version = lock
        .package
        .into_iter()
        .filter(|package| package.name == name)
        .map(|package| package.version)
        .max_by_key(|version| {
            version
                .split(['.', '-', '+'])
                .map(|part| part.parse::<u64>().unwrap_or(0))
                .collect::<Vec<_>>()
        });
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_locked_versions() {
        let lock = r#"
            version = 4
            [[package]]
            name = "wasm-bindgen"
            version = "0.2.99"
            [[package]]
            name = "wasm-bindgen"
            version = "0.2.130"
        "#;
        let version = |name| locked_version(lock, name).unwrap();
        assert_eq!(version("wasm-bindgen").as_deref(), Some("0.2.130"));
        assert_eq!(version("absent"), None);
        assert!(locked_version("package = 3", "wasm-bindgen").is_err());
    }

    #[test]
    fn knows_its_own_checkout() {
        let workspace = Workspace::load().unwrap();
        assert!(workspace.root.join("xtask").is_dir());
        let own = workspace.package("xtask").unwrap();
        assert!(own.depends_on("anyhow") && !own.depends_on("tokio"));
        for name in BROWSER.iter().chain([&SERVER, &CUDA, &MEASURE, &DRIVER]) {
            assert!(workspace.package(name).is_some(), "{name}");
        }
        assert!(workspace.locked_version("anyhow").unwrap().is_some());
    }

    #[test]
    fn finds_wasm_tests_and_examples_by_kind_and_name() {
        let package: Package = serde_json::from_str(
            r#"{"name": "p", "dependencies": [], "targets": [
                {"name": "wasm_search", "kind": ["test"]},
                {"name": "wasm_demo", "kind": ["example"]},
                {"name": "native", "kind": ["test"]}]}"#,
        )
        .unwrap();
        assert_eq!(package.wasm_tests().collect::<Vec<_>>(), ["wasm_search"]);
        assert!(package.has_example("wasm_demo") && !package.has_example("native"));
    }
}
