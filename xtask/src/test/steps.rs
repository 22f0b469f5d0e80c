//! The steps of the gate, in the order in which they run: cheap ones first.

use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use clap::ValueEnum;

use super::{guides, packaging, skipped};
use crate::install::{Tool, Toolbox, wasm_tools};
use crate::page::{self, Build};
use crate::postgres::Postgres;
use crate::workspace::{BROWSER, END_TO_END, NATIVE, TRAIN, WASM_TARGET, Workspace};
use crate::{build, command, docs, edge, imports};

/// The end-to-end tests that are steps of their own.
const OF_OTHER_STEPS: &str = "binary(litellm) or binary(optimisers) or binary(team_schema)";

/// What every step may look at.
pub(super) struct Gate<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) toolbox: Toolbox,
    pub(super) has_nextest: bool,
    /// Continuous integration: report every failing test, not the first.
    pub(super) is_ci: bool,
    /// What takes minutes, too.
    pub(super) is_thorough: bool,
}

/// How a step ended well.
pub(super) enum Outcome {
    Passed,
    NothingToDo(&'static str),
}

/// One thing that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Step {
    Format,
    Imports,
    Clippy,
    ClippyWasm,
    Rustdoc,
    Native,
    Doctests,
    Wasm,
    EndToEnd,
    Docs,
    Packaging,
    Guides,
    Released,
    Firefox,
    Litellm,
    Optimisers,
    Schemathesis,
}

impl Step {
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Format => "the code is formatted",
            Self::Imports => "files name each other in no circles, and the core's only what is below",
            Self::Clippy => "no lint speaks up",
            Self::ClippyWasm => "nor for the browser's target",
            Self::Native => "unit and integration tests",
            Self::Doctests => "the examples in the documentation run",
            Self::Wasm => "tests compiled to WebAssembly, in node and in a browser",
            Self::EndToEnd => "the binary and the page, used as a person would",
            Self::Rustdoc => "the API documentation builds without a warning",
            Self::Docs => "the generated pages of docs/ are up to date",
            Self::Packaging => "the files of containers and systemd hold, and the installer",
            Self::Guides => "what the guides of docs/ add compiles",
            Self::Released => "the same, small and fast as people get them",
            Self::Firefox => "the page in another browser",
            Self::Litellm => "the wire formats, as another program reads and writes them",
            Self::Optimisers => "other optimisers' requests, and a search of GEPA, in the simulated world",
            Self::Schemathesis => "the team server answers as its description says",
        }
    }

    /// Whether every change passes it.
    pub(super) fn is_of_gate(self) -> bool {
        !matches!(
            self,
            Self::Released | Self::Firefox | Self::Litellm | Self::Optimisers | Self::Schemathesis
        )
    }

    /// What must be installed for it.
    pub(super) fn tools(self, workspace: &Workspace) -> Result<Vec<Tool>> {
        Ok(match self {
            Self::Format => vec![Tool::Rustfmt],
            Self::Clippy | Self::Guides => vec![Tool::Clippy],
            Self::ClippyWasm => vec![Tool::Clippy, Tool::WasmTarget],
            Self::Native => vec![Tool::Nextest, Tool::Lavapipe, Tool::Postgres],
            Self::Wasm if wasm_tests(workspace)?.is_empty() => Vec::new(),
            // The page's tests run in a browser.
            Self::Wasm => [wasm_tools(workspace)?, vec![Tool::Chromium]].concat(),
            Self::EndToEnd | Self::Released => {
                let mut tools = vec![
                    Tool::Node,
                    Tool::Nextest,
                    Tool::Chromium,
                    Tool::Postgres,
                    Tool::Axe,
                    Tool::OidcProvider,
                    Tool::S3rver,
                ];
                tools.extend(edge::tools(workspace)?);
                tools
            }
            Self::Firefox => [Self::EndToEnd.tools(workspace)?, vec![Tool::Firefox]].concat(),
            Self::Litellm => vec![Tool::Nextest, Tool::Litellm],
            Self::Optimisers => vec![Tool::Nextest, Tool::Optimisers],
            Self::Schemathesis => vec![Tool::Nextest, Tool::Postgres, Tool::Schemathesis],
            Self::Packaging => vec![Tool::PackagingLints],
            Self::Imports | Self::Doctests | Self::Rustdoc | Self::Docs => Vec::new(),
        })
    }

    pub(super) fn run(self, gate: &Gate) -> Result<Outcome> {
        match self {
            Self::Format => gate.format(),
            Self::Imports => {
                imports::check(gate.workspace)?;
                Ok(Outcome::Passed)
            }
            Self::Clippy => {
                gate.clippy(&["--workspace", "--all-targets", "--features", TRAIN])?;
                // And of `capo` without the rewriter, beside dependencies that are checked already.
                gate.clippy(&["--workspace", "--all-targets"])
            }
            Self::ClippyWasm => {
                let packages = BROWSER.map(|name| ["--package", name]).concat();
                gate.clippy(&[&["--target", WASM_TARGET], packages.as_slice()].concat())
            }
            Self::Native => gate.native_tests(),
            Self::Doctests => gate.cargo(&[&["test", "--doc"], NATIVE.as_slice()].concat(), |_| {}),
            Self::Wasm => gate.wasm_tests(),
            Self::EndToEnd => gate.end_to_end_tests(),
            Self::Rustdoc => gate.cargo(
                &["doc", "--workspace", "--no-deps", "--features", TRAIN],
                |cargo| {
                    cargo.env("RUSTDOCFLAGS", "-D warnings");
                },
            ),
            Self::Released => gate.released(),
            Self::Firefox => gate.firefox(),
            Self::Litellm => gate.nextest("end-to-end", "binary(litellm)", |cargo| {
                cargo.env("CAPO_LITELLM", gate.toolbox.litellm());
            }),
            Self::Optimisers => gate.nextest("end-to-end", "binary(optimisers)", |cargo| {
                cargo.env("CAPO_OPTIMISERS", gate.toolbox.optimisers_python());
            }),
            Self::Schemathesis => {
                let postgres = Postgres::start()?;
                gate.nextest("end-to-end", "binary(team_schema)", |cargo| {
                    cargo.env("CAPO_SCHEMATHESIS", gate.toolbox.schemathesis());
                    cargo.env("CAPO_TEST_POSTGRES", postgres.address());
                })
            }
            Self::Packaging => {
                packaging::check(gate.workspace, &gate.toolbox)?;
                Ok(Outcome::Passed)
            }
            Self::Guides => {
                guides::check(gate.workspace)?;
                Ok(Outcome::Passed)
            }
            Self::Docs => {
                if !docs::has_generator(gate.workspace) {
                    return Ok(Outcome::NothingToDo("no page of this checkout is generated"));
                }
                docs::check(gate.workspace)?;
                Ok(Outcome::Passed)
            }
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value().ok_or(fmt::Error)?;
        formatter.write_str(name.get_name())
    }
}

impl Gate<'_> {
    fn cargo(&self, arguments: &[&str], adjust: impl FnOnce(&mut Command)) -> Result<Outcome> {
        let mut cargo = self.workspace.cargo();
        self.toolbox.equip(&mut cargo);
        cargo.env(skipped::VARIABLE, skipped::file(self.workspace));
        cargo.args(arguments);
        adjust(&mut cargo);
        command::run(&mut cargo)?;
        Ok(Outcome::Passed)
    }

    /// Every tracked file: `cargo fmt` overlooks modules that a macro declares.
    fn format(&self) -> Result<Outcome> {
        let root = &self.workspace.root;
        let listed = command::output(Command::new("git").current_dir(root).args(["ls-files", "*.rs"]))?;
        let mut rustfmt = self.toolbox.command("rustfmt");
        rustfmt.current_dir(root).args(["--check", "--edition", "2024"]);
        rustfmt.args(listed.lines().filter(|path| root.join(path).is_file()));
        // Said in short: there are some 800 files.
        eprintln!("$ rustfmt --check --edition 2024 $(git ls-files '*.rs')");
        ensure!(
            rustfmt.status()?.success(),
            "rustfmt would write it otherwise; it can: rustfmt --edition 2024 $(git ls-files '*.rs')"
        );
        Ok(Outcome::Passed)
    }

    fn clippy(&self, arguments: &[&str]) -> Result<Outcome> {
        self.cargo(
            &[&["clippy"], arguments, &["--", "-D", "warnings"]].concat(),
            |_| {},
        )
    }

    /// What runs on CUDA is linted here, and run by the archive of `cargo xtask bench gpu`.
    fn native_tests(&self) -> Result<Outcome> {
        let postgres = Postgres::start()?;
        let with_postgres = |cargo: &mut Command| {
            cargo.env("CAPO_TEST_POSTGRES", postgres.address());
        };
        if self.has_nextest {
            let profile = match (self.is_thorough, self.is_ci) {
                (true, _) => "all",
                (false, true) => "ci",
                (false, false) => "default",
            };
            return self.nextest(profile, &format!("not package({END_TO_END})"), with_postgres);
        }
        eprintln!("cargo-nextest is not installed (cargo xtask setup): using cargo test");
        let mut arguments = vec!["test", "--lib", "--bins", "--tests", "--exclude", END_TO_END];
        arguments.extend(NATIVE);
        self.cargo(&arguments, with_postgres)
    }

    fn nextest(&self, profile: &str, filter: &str, adjust: impl FnOnce(&mut Command)) -> Result<Outcome> {
        let mut arguments = vec!["nextest", "run", "--profile", profile];
        arguments.extend(NATIVE);
        arguments.extend(["--filterset", filter]);
        self.cargo(&arguments, adjust)
    }

    fn wasm_tests(&self) -> Result<Outcome> {
        let packages = wasm_tests(self.workspace)?;
        if packages.is_empty() {
            return Ok(Outcome::NothingToDo("no package has tests/wasm*.rs"));
        }
        // In one call, so that what they share is compiled once.
        let mut arguments = vec!["test", "--target", WASM_TARGET];
        for (package, tests) in &packages {
            arguments.extend(["--package", package]);
            arguments.extend(tests.iter().flat_map(|test| ["--test", test]));
        }
        // .cargo/config.toml names the runner.
        self.cargo(&arguments, |_| {})
    }

    /// `capo` and the page as they are built for the tests, which is soon and not small.
    fn end_to_end_tests(&self) -> Result<Outcome> {
        let page = page::build(self.workspace, &self.toolbox, Build::Dev)?;
        let edge = edge::build(self.workspace, &self.toolbox, Build::Dev)?;
        self.tests_of_products("end-to-end", &page, &edge, |_| {})
    }

    /// The tests of the page, of which those are Chromium's alone that speak to its own protocol.
    fn firefox(&self) -> Result<Outcome> {
        let page = page::build(self.workspace, &self.toolbox, Build::Dev)?;
        let edge = edge::build(self.workspace, &self.toolbox, Build::Dev)?;
        self.tests_of_products("firefox", &page, &edge, |cargo| {
            cargo.env("CAPO_BROWSER", "firefox");
        })
    }

    /// The same tests of `capo` and the page as people get them, of which those take longer that kill at random.
    fn released(&self) -> Result<Outcome> {
        let page = page::build(self.workspace, &self.toolbox, Build::Release)?;
        let binary = build::around(self.workspace, &page)?;
        let edge = edge::build(self.workspace, &self.toolbox, Build::Release)?;
        self.tests_of_products("released", &page, &edge, |cargo| {
            cargo.env("CAPO_BIN", &binary).env("CAPO_TEST_KILLS", "100");
        })
    }

    fn tests_of_products(
        &self,
        profile: &str,
        page: &Path,
        edge: &Path,
        adjust: impl FnOnce(&mut Command),
    ) -> Result<Outcome> {
        let (postgres, to_restart) = (Postgres::start()?, Postgres::start()?);
        // The tests of other steps need what only these name.
        let filter = format!("package({END_TO_END}) and not ({OF_OTHER_STEPS})");
        self.nextest(profile, &filter, |cargo| {
            cargo
                .env("CAPO_EDGE", edge)
                .env("CAPO_MINIFLARE", self.toolbox.miniflare())
                .env("CAPO_TEST_POSTGRES", postgres.address())
                .env("CAPO_TEST_POSTGRES_TO_RESTART", to_restart.to_restart())
                .env("CAPO_POSTGRES", postgres.programs())
                .env("CAPO_PAGE", page)
                .env("CAPO_AXE", self.toolbox.axe())
                .env("CAPO_OIDC_PROVIDER", self.toolbox.oidc_provider())
                .env("CAPO_S3RVER", self.toolbox.s3rver());
            adjust(cargo);
        })
    }
}

/// The packages with tests for the browser's target, and the names of these tests.
///
/// # Errors
/// A package has such a test without `wasm-bindgen-test` or the other way
/// round: then tests would be thought to run that do not.
fn wasm_tests(workspace: &Workspace) -> Result<Vec<(&str, Vec<&str>)>> {
    let mut found = Vec::new();
    for package in &workspace.packages {
        let tests: Vec<_> = package.wasm_tests().collect();
        ensure!(
            package.depends_on("wasm-bindgen-test") != tests.is_empty(),
            "package {} must have both the dev-dependency wasm-bindgen-test and tests in \
             tests/wasm*.rs, or neither",
            package.name
        );
        if !tests.is_empty() {
            found.push((package.name.as_str(), tests));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(packages: &str) -> Workspace {
        Workspace {
            root: "/nowhere".into(),
            target: "/nowhere/target".into(),
            packages: serde_json::from_str(packages).unwrap(),
        }
    }

    #[test]
    fn half_declared_wasm_tests_are_refused() {
        let tests_only = workspace(
            r#"[{"name": "p", "dependencies": [], "targets": [{"name": "wasm", "kind": ["test"]}]}]"#,
        );
        let dependency_only =
            workspace(r#"[{"name": "p", "dependencies": [{"name": "wasm-bindgen-test"}], "targets": []}]"#);
        for half in [tests_only, dependency_only] {
            let error = wasm_tests(&half).unwrap_err().to_string();
            assert!(error.contains("package p must have both"), "{error}");
        }
    }

    #[test]
    fn wasm_tests_are_found_by_package() {
        let both = workspace(
            r#"[{"name": "p", "dependencies": [{"name": "wasm-bindgen-test"}],
                 "targets": [{"name": "wasm", "kind": ["test"]}]},
                {"name": "q", "dependencies": [], "targets": []}]"#,
        );
        assert_eq!(wasm_tests(&both).unwrap(), [("p", vec!["wasm"])]);
    }

    #[test]
    fn nothing_is_installed_for_steps_without_work() {
        let empty = workspace("[]");
        assert_eq!(Step::Wasm.tools(&empty).unwrap(), []);
        assert_eq!(Step::Doctests.tools(&empty).unwrap(), []);
    }
}
