//! Messages between the page and its workers.

use std::collections::BTreeMap;
use std::sync::Arc;

use capo_core::journal::{Status, SteerEvent};
use capo_core::llm::Role;
use capo_core::metric::MetricSpec;
use capo_core::study::Table;
use capo_models::{Notice, WrittenRequest};
use capo_workloads::files::MemoryFiles;
use js_sys::Array;
use serde::{Deserialize, Serialize};
use wasm_bindgen::JsValue;

use crate::storage::{Check, Chunks, RunStatus};

use crate::keys::Keys;

/// Data files of a study by path. A file may be large: its text is shared, never copied.
pub type DataFiles = BTreeMap<String, Arc<str>>;

/// Data files as workloads read them.
pub fn memory(files: &DataFiles) -> MemoryFiles {
    files.iter().fold(MemoryFiles::new(), |files, (path, text)| {
        files.with(path.as_str(), text.as_bytes())
    })
}

/// Data files that are new or of another text, and those that are gone.
pub type ChangedFiles = BTreeMap<String, Option<Arc<str>>>;

/// An order on its way to a worker.
#[derive(Debug, Clone)]
pub struct Message {
    /// The [`Order`] as JSON.
    pub order: String,
    /// What goes beside it and is no text, such as a file.
    pub beside: JsValue,
    /// The module the page runs, by the stamp of its content: a worker of another one would not do
    /// as the page means it.
    pub build: Option<String>,
}

impl Message {
    /// As it is posted.
    pub fn pack(&self) -> JsValue {
        let build = self
            .build
            .as_deref()
            .map_or(JsValue::UNDEFINED, JsValue::from_str);
        Array::of3(&self.order.as_str().into(), &self.beside, &build).into()
    }

    /// From what was posted.
    pub fn unpack(data: &JsValue) -> Self {
        let parts = Array::from(data);
        Self {
            order: parts.get(0).as_string().unwrap_or_default(),
            beside: parts.get(1),
            build: parts.get(2).as_string(),
        }
    }
}

/// The hash that the build puts behind a file's address: what follows `?v=`.
pub fn stamp(address: &str) -> Option<String> {
    address.rsplit_once("?v=").map(|(_, stamp)| stamp.to_owned())
}

/// From the page to a worker.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// Run a study, or resume it where its journal ends.
    Run {
        /// Id of the run.
        run: String,
        /// The study as TOML.
        study: String,
        /// The data files it names.
        files: DataFiles,
        /// The keys it needs.
        keys: Keys,
        /// Whether its journal is kept in this browser; else it lives as long as the worker.
        keep: bool,
        /// Lines of its journal that the page knows. None of them may be paid for again.
        known: u64,
        /// Seconds that it has run for.
        elapsed: f64,
        /// Make so many of its first rollouts alone, and leave it there.
        pilot: Option<usize>,
        /// Measure this alone, and search nothing.
        check: Option<Check>,
    },
    /// Start nothing new, finish what is under way, end.
    Interrupt {
        /// What the list of runs says of it from then on.
        listed: RunStatus,
    },
    /// Change something at the next round boundary.
    Steer {
        /// The change.
        change: SteerEvent,
    },
    /// Take back thresholds and multipliers that wait for the next round boundary.
    Withdraw {
        /// Which, by their metrics.
        change: SteerEvent,
    },
    /// Have these data files at hand, beside those that were sent before, for the orders that follow.
    Files {
        /// What changed.
        changed: ChangedFiles,
    },
    /// Say what a study costs at most.
    Forecast {
        /// Comes back in the answer.
        ticket: u64,
        /// The study as TOML.
        study: String,
    },
    /// Say what a workload measures, and on how many examples.
    Look {
        /// Comes back in the answer.
        ticket: u64,
        /// The study's `[workload]` table.
        workload: Table,
        /// The study's seed.
        seed: u64,
    },
    /// Find the examples that are in both splits of a workload's rows.
    Duplicates {
        /// Comes back in the answer.
        ticket: u64,
        /// The study's `[workload]` table.
        workload: Table,
        /// The study's seed.
        seed: u64,
    },
    /// Keep a journal from a file, which comes beside the message.
    Import {
        /// Id of the run it becomes.
        run: String,
        /// Name of the file.
        name: String,
    },
    /// Keep a new run that shares another one's beginning.
    Branch {
        /// Id of the other run.
        from: String,
        /// Id of the new one.
        run: String,
        /// The first round that is its own, as the journal numbers them.
        round: u32,
    },
    /// Keep the files of the tau2 benchmark, which come beside the message.
    KeepBenchmark,
    /// Hand over the lines of the journal that only memory holds.
    Unsaved,
    /// Ask a model whether it answers.
    Probe {
        /// Comes back in the answer.
        ticket: u64,
        /// Table of the model as in a study, as JSON.
        table: serde_json::Value,
        /// The role that the model answers for.
        role: Role,
        /// The keys it needs.
        keys: Keys,
    },
    /// Say how a model is asked by a prompt and a message.
    Write(ModelRequest),
    /// Have an agent of the user's own do one example.
    TryAgent {
        /// Comes back in the answer.
        ticket: u64,
        /// The study's `[workload]` table.
        workload: Table,
        /// The prompt to do it under.
        prompt: String,
        /// The study's seed.
        seed: u64,
    },
}

/// What a model is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// Its table as in a study.
    pub table: serde_json::Value,
    /// The system prompt.
    pub prompt: String,
    /// The message after it.
    pub message: String,
}

/// From a worker to the page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    /// A run's journal is open, and no other tab works on it until it ends.
    Opened {
        /// Lines of it that this browser keeps.
        kept: u64,
        /// Those after them, without traces, which only the worker's memory holds.
        unsaved: Vec<String>,
        /// What was left out of it, in words.
        left_out: Vec<String>,
    },
    /// A run is under way in this worker already, so that the order was not carried out.
    Busy,
    /// Lines of the journal, without traces.
    Lines {
        /// Number of the first, from 0.
        first: u64,
        /// Lines of the journal, in order.
        lines: Vec<String>,
    },
    /// The first line was replaced by this one: thresholds are frozen.
    Study {
        /// The whole line.
        line: String,
    },
    /// The first rollouts that were to be made alone are made, as far as the budget goes.
    Piloted,
    /// The prompt is measured that was to be, as far as the budget goes.
    Checked {
        /// Whether it keeps every threshold, or that the budget is spent.
        status: Status,
    },
    /// The run ended; its last line says how.
    Ended,
    /// The run cannot begin or go on.
    Failed {
        /// What is wrong and what to do.
        message: String,
    },
    /// The browser keeps no more; the journal goes on in the worker's memory.
    Refused {
        /// What the browser says.
        reason: String,
    },
    /// A model is waited for, or waited for no more.
    Waits {
        /// Which, why and how long.
        notice: Notice,
    },
    /// What the browser kept of the run is gone; the journal goes on in the worker's memory.
    Lost,
    /// Answer to [`Order::Forecast`].
    Forecast {
        /// Of the question.
        ticket: u64,
        /// The bounds, or what is wrong with the study.
        forecast: Result<Box<serde_json::Value>, String>,
    },
    /// How far an import is.
    Importing(HowFar),
    /// Answer to [`Order::Import`] and [`Order::Branch`].
    Imported {
        /// The run, or what is wrong with the file.
        run: Result<String, String>,
    },
    /// Answer to [`Order::KeepBenchmark`].
    KeptBenchmark {
        /// What is wrong with the files, or why they are not kept.
        kept: Result<(), String>,
    },
    /// Answer to [`Order::Write`].
    Written {
        /// The request, or why there is none.
        request: Result<WrittenRequest, String>,
    },
    /// Answer to [`Order::Unsaved`].
    Unsaved {
        /// Whole lines.
        chunks: Chunks,
    },
    /// Answer to [`Order::Look`].
    Looked {
        /// Of the question.
        ticket: u64,
        /// What was seen.
        looked: Looked,
    },
    /// Answer to [`Order::Duplicates`].
    Duplicates {
        /// Of the question.
        ticket: u64,
        /// What to leave out.
        ids: Vec<String>,
    },
    /// Answer to [`Order::Probe`] and [`Order::TryAgent`].
    Probed {
        /// Of the question.
        ticket: u64,
        /// Seconds until the answer, or what is wrong.
        answer: Result<f64, ProbeFailure>,
    },
}

/// What a workload measures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Looked {
    /// Every metric, of all its sets.
    pub metrics: Vec<MetricSpec>,
    /// Examples the search sees.
    pub optimize: usize,
    /// Held-out examples.
    pub evaluate: usize,
    /// The roles its rollouts need.
    pub roles: Vec<Role>,
    /// Why it cannot be built yet; the metrics are then those its settings declare.
    pub wrong: Option<String>,
}

/// How far the reading of a file is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HowFar {
    /// Lines read.
    pub lines: u64,
    /// Bytes read.
    pub read: u64,
    /// Bytes in all; 0 until that is known.
    pub of: u64,
}

/// Why a model or an agent does not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeFailure {
    /// What is wrong and what to do.
    pub message: String,
    /// The host was not reached at all, so that the page must find out why.
    pub unreachable: bool,
}
