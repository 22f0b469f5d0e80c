//! Samplers of the rewrites that a policy learns from: this process, or a vLLM server that serves the policy's adapter.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use capo_core::ids::sha256_hex;
use capo_core::llm::{FailureKind, Finish as AnswerFinish, LlmError};
use capo_models::vllm::{TokenRequest, Vllm, VllmSpec};
use capo_models::{BuildError, Builder, Keys};
use capo_rewriter::generate::{Finish, Generation, GenerationRow};
use capo_rewriter::peft;
use capo_rewriter::remote_generation::{Draw, RemoteGeneration, Sampler};
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};

use crate::session::Wires;

/// The folder, in a training's, of the adapters that are served.
const SERVED: &str = "served";

/// The table `[sampler]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "provider", rename_all = "lowercase", deny_unknown_fields)]
pub enum SamplerSettings {
    /// The device that learns draws, too.
    Local {},
    /// A vLLM server draws.
    Vllm(VllmSpec),
}

impl Default for SamplerSettings {
    fn default() -> Self {
        Self::Local {}
    }
}

/// Why the server that is to draw rewrites cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum SamplerError {
    /// The table is wrong.
    #[error("[sampler] {0}")]
    Table(String),
    /// The key is missing.
    #[error("[sampler] needs a key: set {0}, or name another variable with `api_key_env`")]
    MissingKey(String),
    /// The HTTP client could not start.
    #[error("{0}")]
    Http(BuildError),
}

impl From<BuildError> for SamplerError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Spec { message, .. } => Self::Table(message),
            BuildError::MissingKey { variable, .. } => Self::MissingKey(variable),
            error => Self::Http(error),
        }
    }
}

impl SamplerSettings {
    /// The server that draws for the training in a folder, unless the rewrites are drawn here. An interruption of the
    /// run ends its waits and its calls, and the run's listener is told of the waits.
    ///
    /// # Errors
    /// When the table is wrong, or a key is missing.
    pub fn open(
        &self,
        folder: &Path,
        keys: &dyn Keys,
        wires: &Wires,
    ) -> Result<Option<Rc<VllmSampler>>, SamplerError> {
        match self {
            Self::Local {} => Ok(None),
            Self::Vllm(spec) => Ok(Some(Rc::new(VllmSampler::new(spec, folder, keys, wires)?))),
        }
    }
}

/// Draws rewrites on a vLLM server that sees the training's folder.
///
/// Adapters are loaded under names that no other adapter ever has: the place that the server loads them from, the
/// round and the weights are in it. What else of this training is loaded was left by an earlier round, or by a
/// process that was killed, and is unloaded.
pub struct VllmSampler {
    vllm: Vllm,
    /// The same server after an interruption, which leaves a moment for one try.
    parting: Vllm,
    /// Where adapters are handed over here.
    folder: PathBuf,
    /// The same place as the server sees it.
    seen: String,
    /// The name of the adapter that is served.
    served: RefCell<Option<String>>,
}

impl VllmSampler {
    fn new(spec: &VllmSpec, folder: &Path, keys: &dyn Keys, wires: &Wires) -> Result<Self, SamplerError> {
        let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let seen = spec.server_folder.clone();
        let seen = seen.unwrap_or_else(|| whole.display().to_string());
        let steered = Builder::new(keys)
            .control(wires.control())
            .observer(wires.observer());
        let once = VllmSpec {
            retries: Some(0),
            ..spec.clone()
        };
        Ok(Self {
            vllm: Vllm::new(spec, &steered)?,
            parting: Vllm::new(&once, &Builder::new(keys))?,
            folder: whole.join(SERVED),
            seen: format!("{}/{SERVED}", seen.trim_end_matches('/')),
            served: RefCell::default(),
        })
    }

    /// Itself, with the place where adapters are handed over.
    pub fn elsewhere(self: &Rc<Self>) -> RemoteGeneration {
        RemoteGeneration::new(Rc::clone(self) as Rc<dyn Sampler>, self.folder.clone())
    }

    /// Unloads what is served of this training, also by a process that ended before its time, and removes what was
    /// handed over.
    ///
    /// # Errors
    /// When the server does not answer, or a file cannot be removed.
    pub async fn release(&self, is_interrupted: bool) -> Result<(), LlmError> {
        self.served.take();
        if !self.folder.exists() {
            return Ok(());
        }
        let vllm = if is_interrupted { &self.parting } else { &self.vllm };
        let loaded = vllm.models().await?;
        self.unload_all_but(vllm, None, &loaded).await?;
        fs::remove_dir_all(&self.folder).map_err(|error| unreadable(&self.folder, &error))
    }

    /// What the names of this training's adapters begin with.
    fn prefix(&self) -> String {
        format!("capo-{}-", &sha256_hex(&self.seen)[..12])
    }

    fn name(&self, step: u64, adapter: &Path) -> Result<String, LlmError> {
        let mut hashes = String::new();
        for file in [peft::CONFIG, peft::WEIGHTS] {
            let path = adapter.join(file);
            let bytes = fs::read(&path).map_err(|error| unreadable(&path, &error))?;
            hashes += &sha256_hex(bytes);
        }
        Ok(format!("{}{step}-{}", self.prefix(), &sha256_hex(hashes)[..12]))
    }

    async fn unload_all_but(
        &self,
        vllm: &Vllm,
        kept: Option<&str>,
        loaded: &[String],
    ) -> Result<(), LlmError> {
        let prefix = self.prefix();
        let own = loaded.iter().filter(|name| name.starts_with(&prefix));
        for name in own.filter(|name| Some(name.as_str()) != kept) {
            vllm.unload(name).await?;
        }
        Ok(())
    }

    async fn exchange(&self, step: u64, adapter: &Path) -> Result<(), LlmError> {
        let name = self.name(step, adapter)?;
        let place = adapter.file_name().unwrap_or_default().to_string_lossy();
        let loaded = self.vllm.models().await?;
        if !loaded.contains(&name) {
            self.vllm.load(&name, &format!("{}/{place}", self.seen)).await?;
        }
        self.unload_all_but(&self.vllm, Some(&name), &loaded).await?;
        self.served.replace(Some(name));
        Ok(())
    }

    async fn answer(&self, row: &GenerationRow, settings: &Generation) -> Result<Draw, LlmError> {
        let served = self.served.borrow().clone();
        let adapter = served.ok_or_else(|| {
            LlmError::failed(
                FailureKind::Provider,
                false,
                "vLLM: no adapter of this training is served",
            )
        })?;
        let Generation {
            sampling,
            max_new_tokens,
            stop_tokens,
            ..
        } = settings;
        let request = TokenRequest {
            adapter: &adapter,
            prompt: &row.prompt,
            seed: row.seed,
            max_tokens: *max_new_tokens,
            stop_tokens,
            temperature: sampling.temperature,
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            min_p: sampling.min_p,
        };
        let answer = self.vllm.complete(&request).await?;
        Ok(Draw {
            tokens: answer.tokens,
            finish: match answer.finish {
                AnswerFinish::Length => Finish::Length,
                _ => Finish::Stop,
            },
            usage: answer.usage,
            failed_tries: answer.failed_tries,
        })
    }
}

impl Sampler for VllmSampler {
    fn serve<'a>(&'a self, step: u64, adapter: &'a Path) -> LocalBoxFuture<'a, Result<(), LlmError>> {
        self.exchange(step, adapter).boxed_local()
    }

    fn draw<'a>(
        &'a self,
        row: &'a GenerationRow,
        settings: &'a Generation,
    ) -> LocalBoxFuture<'a, Result<Draw, LlmError>> {
        self.answer(row, settings).boxed_local()
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> LlmError {
    let message = format!("{}: {error}", path.display());
    LlmError::failed(FailureKind::Provider, false, message)
}
