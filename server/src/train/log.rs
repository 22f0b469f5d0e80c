//! `training.jsonl`: what a fine-tuning tells, one JSON object a line.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use capo_core::study::suggest;
use serde::{Deserialize, Serialize};

use crate::files::write_whole;

/// Why the log cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// It cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A line of it is none of ours.
    #[error("{} line {line}: {}; move the file away to go on", path.display(), suggest(&source.to_string()))]
    Line {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// What does not read.
        source: serde_json::Error,
    },
}

/// A line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TrainingEvent {
    /// A step was made.
    Step {
        /// From 1.
        step: u64,
        /// Mean negative log-likelihood of the learned tokens before it, in nats.
        loss: f64,
        /// Length of the gradient before it was shortened.
        gradient_norm: f64,
        /// Its learning rate.
        learning_rate: f64,
        /// Tokens that passed through the decoder, padding not counted.
        tokens: usize,
        /// Its wall time.
        seconds: f64,
        /// The most memory that the process has had, in bytes, where the system tells.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        peak_memory_bytes: Option<u64>,
        /// The most of its own memory that a device holds, in bytes, where devices have one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        device_memory_bytes: Option<u64>,
        /// Share of the floating-point operations that the devices could have done, where that is known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        mfu: Option<f64>,
    },
    /// The held-out examples were measured.
    Evaluation {
        /// Steps made.
        step: u64,
        /// Mean negative log-likelihood of the held-out answers' tokens, in nats.
        loss: f64,
    },
}

impl TrainingEvent {
    fn step(&self) -> u64 {
        match self {
            Self::Step { step, .. } | Self::Evaluation { step, .. } => *step,
        }
    }
}

/// The log of a training under way.
#[derive(Debug)]
pub struct TrainingLog {
    path: PathBuf,
    file: File,
}

impl TrainingLog {
    /// Opens the log of a training that goes on after `steps` steps: later lines, which will be written anew, and a
    /// torn last one are dropped.
    ///
    /// # Errors
    /// When it cannot be read or written, or holds lines of something else.
    pub fn open(path: &Path, steps: u64) -> Result<Self, LogError> {
        let failed = |source| LogError::Io {
            path: path.to_owned(),
            source,
        };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(error)),
        };
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let mut kept = String::new();
        for (line, written) in (1..).zip(whole.lines()) {
            let event: TrainingEvent = serde_json::from_str(written).map_err(|source| LogError::Line {
                path: path.to_owned(),
                line,
                source,
            })?;
            if event.step() <= steps {
                kept += written;
                kept.push('\n');
            }
        }
        if kept.len() < text.len() {
            write_whole(path, kept.as_bytes()).map_err(failed)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(path);
        Ok(Self {
            path: path.to_owned(),
            file: file.map_err(failed)?,
        })
    }

    /// Writes a line, and waits until the disk has it: the steps before a checkpoint are not made again.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, event: &TrainingEvent) -> Result<(), LogError> {
        let failed = |source| LogError::Io {
            path: self.path.clone(),
            source,
        };
        let mut line = serde_json::to_vec(event).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        self.file
            .write_all(&line)
            .and_then(|()| self.file.sync_data())
            .map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_goes_on_after_the_step_of_the_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("training.jsonl");
        let evaluation = |step| TrainingEvent::Evaluation { step, loss: 0.5 };
        let mut log = TrainingLog::open(&path, 0).unwrap();
        for step in [2, 4, 6] {
            log.write(&evaluation(step)).unwrap();
        }
        log.file.write_all(b"{\"event\":\"eval").unwrap();
        drop(log);
        let mut log = TrainingLog::open(&path, 4).unwrap();
        log.write(&evaluation(5)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let steps: Vec<u64> = text
            .lines()
            .map(|line| serde_json::from_str::<TrainingEvent>(line).unwrap().step())
            .collect();
        assert_eq!(steps, [2, 4, 5]);
        std::fs::write(&path, "{}\n").unwrap();
        let message = TrainingLog::open(&path, 4).unwrap_err().to_string();
        assert!(message.contains("training.jsonl line 1"), "{message}");
    }
}
