//! `cargo xtask edge`: the page and the key gate, built for Cloudflare's runtime and run on it on this machine.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, thread};

use anyhow::{Result, ensure};
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::command;
use crate::install::{Tool, Toolbox};
use crate::page::{self, Build};
use crate::workspace::Workspace;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The port to listen on, 0 for any free one
    #[arg(long, default_value_t = 8788)]
    port: u16,
    /// Build the worker fast instead of small; of the page the runtime takes none that is built fast, for its size
    #[arg(long)]
    dev: bool,
    /// Build only what `npx wrangler deploy` puts online from the folder edge
    #[arg(long)]
    build: bool,
}

/// What must be installed to build the worker and to run it.
///
/// # Errors
/// `Cargo.lock` cannot be read.
pub(crate) fn tools(workspace: &Workspace) -> Result<Vec<Tool>> {
    let mut tools = page::tools(workspace)?;
    tools.extend([Tool::WorkerBuild, Tool::Miniflare]);
    Ok(tools)
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut toolbox = Toolbox::open()?;
    for tool in tools(workspace)? {
        toolbox.ensure(&tool)?;
    }
    let how = if arguments.dev { Build::Dev } else { Build::Release };
    // Side by side: each spends minutes on one core.
    let (page, worker) = thread::scope(|scope| {
        let worker = scope.spawn(|| build(workspace, &toolbox, how));
        let page = page::build(workspace, &toolbox, Build::Release);
        let worker = worker.join();
        (
            page,
            worker.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        )
    });
    let (page, worker) = (page?, worker?);
    if arguments.build {
        println!("{} and {}", worker.display(), page.display());
        return tell_size(&worker);
    }
    let settings = json!({
        "build": worker,
        "page": page,
        "port": arguments.port,
        "state": workspace.target.join("edge"),
    });
    println!(
        "Stop it with Ctrl-C; what was used stays in {}.",
        settings["state"]
    );
    command::run(
        toolbox
            .command("node")
            .current_dir(workspace.root.join("edge"))
            .env("NODE_PATH", toolbox.miniflare())
            .args(["local.cjs", &settings.to_string()]),
    )
}

/// Prints how big the worker is that lies in a folder, as it is and as Cloudflare counts it.
fn tell_size(worker: &Path) -> Result<()> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    let mut size = 0;
    for file in ["index.js", "index_bg.wasm"] {
        let bytes = fs::read(worker.join(file))?;
        size += bytes.len();
        packed.write_all(&bytes)?;
    }
    let [size, packed] = [size, packed.finish()?.len()].map(|bytes| bytes as f64 / 1e6);
    println!("The worker has {size:.1} MB, and {packed:.2} MB with gzip.");
    Ok(())
}

/// Builds the worker and returns the folder that it lies in.
///
/// # Errors
/// It does not compile.
pub(crate) fn build(workspace: &Workspace, toolbox: &Toolbox, how: Build) -> Result<PathBuf> {
    let mut build = toolbox.command("worker-build");
    build
        .current_dir(workspace.root.join("edge"))
        // Else it would look for programs of its own elsewhere.
        .env("WASM_BINDGEN_BIN", "wasm-bindgen")
        .env("WASM_OPT_BIN", "wasm-opt")
        .env("ESBUILD_BIN", "esbuild");
    match how {
        Build::Release => build.args(["--profile", "web"]),
        Build::Dev => build.arg("--dev"),
    };
    command::run(&mut build)?;
    let built = workspace.root.join("edge/build");
    ensure!(
        built.join("index_bg.wasm").is_file(),
        "worker-build left no worker in {}",
        built.display()
    );
    Ok(built)
}
