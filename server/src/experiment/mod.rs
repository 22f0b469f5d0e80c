//! The paper's studies, on any study file.
//!
//! An [`Experiment`] turns a base study into [`Variant`]s and the finished runs into a [`Report`];
//! both steps are pure. `run` drives every variant over every seed in between. A new experiment
//! is one file here and one line in [`EXPERIMENTS`].

mod beta;
mod caution;
mod choice;
#[cfg(feature = "train")]
pub mod dcapo;
mod dual_step;
mod feasible;
mod feedback;
mod figure;
#[cfg(test)]
mod fixture;
pub mod fresh;
mod nine_constraints;
mod noise;
mod output;
mod paper;
mod plot;
mod progress;
mod progressive;
mod record;
mod run;
mod statistics;
mod sweep;
mod table;
#[cfg(test)]
mod tests;
pub mod theory;
mod threshold;
#[cfg(feature = "train")]
pub mod transfer;

use std::path::Path;

use capo_core::study::{Rounds, Study, nearest};

use crate::session::{SessionError, StudyFile};

pub use figure::{Axis, Figure, Panel, Point, Series};
pub use output::{OutputError, write};
pub use paper::{Figure as PaperFigure, figures as paper_figures};
pub use plot::{PlotError, svg};
pub use progress::Progress;
pub use record::{Outcome, RoundRecord, RunRecord, Runs};
pub use run::{DriveError, Runner, Seeds, Trial, TrialError, Watch, drawn, drive, trials};
pub use statistics::Share;
pub use table::{Cell, Column, ColumnKind, Table};

/// A study with one setting changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Short and unique within the experiment; names files and the paper's rows.
    pub key: String,
    /// For tables and plots.
    pub label: String,
    /// The whole study, but for the seed.
    pub study: Study,
}

impl Variant {
    /// The base study after one edit.
    fn of(
        base: &Study,
        key: impl Into<String>,
        label: impl Into<String>,
        edit: impl FnOnce(&mut Study),
    ) -> Self {
        let mut study = base.clone();
        edit(&mut study);
        Self {
            key: key.into(),
            label: label.into(),
            study,
        }
    }
}

/// What an experiment says about its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Tables, in order of interest.
    pub tables: Vec<Table>,
    /// Plots, in order of interest.
    pub figures: Vec<Figure>,
}

/// One of the paper's studies.
#[derive(Debug)]
pub struct Experiment {
    /// Name on the command line.
    pub name: &'static str,
    /// Title of its report.
    pub title: &'static str,
    /// What is varied, and what the paper found; one paragraph.
    pub explanation: &'static str,
    /// The study used when none is named.
    pub study: Shipped,
    /// With fewer constraints than this there is nothing to vary.
    pub least_constraints: usize,
    /// Which prompts that a search measured are measured on fresh examples beside the returned one.
    pub truth_of: Option<fresh::Next>,
    /// The variants of a base study that has enough constraints.
    vary: fn(&Study) -> Vec<Variant>,
    /// Tables and plots of the finished runs.
    pub report: fn(&Runs) -> Report,
}

/// A study that ships with the program.
#[derive(Debug, Clone, Copy)]
pub struct Shipped {
    /// Name of its file.
    pub file: &'static str,
    /// The study in TOML.
    pub text: &'static str,
    /// Rounds of the paper's search on it, from which an experiment varies one thing; `None` where it does from the study
    /// as it ships.
    pub rounds: Option<u32>,
}

impl Shipped {
    /// The study that is varied.
    ///
    /// # Errors
    /// As [`StudyFile::parse`].
    pub fn read(&self) -> Result<StudyFile, SessionError> {
        let mut file = StudyFile::parse(self.text, Path::new(self.file))?;
        if let Some(rounds) = self.rounds {
            file.study.use_paper_preset();
            file.study.study.rounds = Rounds::Count(rounds);
        }
        Ok(file)
    }
}

impl Experiment {
    /// The variants of a base study, each checked.
    ///
    /// # Errors
    /// When the study lacks what the experiment varies, or a variant is no valid study (its method
    /// may not know the setting).
    pub fn variants(&self, base: &Study) -> Result<Vec<Variant>, ExperimentError> {
        let unfit = |problem: String| ExperimentError::Unfit {
            experiment: self.name,
            study: base.study.name.clone(),
            problem,
        };
        let (least, present) = (self.least_constraints, base.constraints.len());
        if present < least {
            return Err(unfit(format!(
                "it has {present} of the {least} constraints this takes; add more under [[constraint]]"
            )));
        }
        (self.vary)(base)
            .into_iter()
            .map(|variant| {
                let study = variant
                    .study
                    .checked()
                    .map_err(|error| unfit(format!("variant {}: {error}", variant.key)))?;
                Ok(Variant { study, ..variant })
            })
            .collect()
    }

    /// Of [`variants`](Self::variants) those with these keys, in their order; all for no keys.
    ///
    /// # Errors
    /// As `variants`, and when there is none with one of the keys, naming all and the closest.
    pub fn variants_among(&self, base: &Study, keys: &[String]) -> Result<Vec<Variant>, ExperimentError> {
        let mut variants = self.variants(base)?;
        let known = || variants.iter().map(|variant| variant.key.as_str());
        if let Some(key) = keys
            .iter()
            .find(|key| !known().any(|known| known == key.as_str()))
        {
            return Err(ExperimentError::NoVariant {
                experiment: self.name,
                key: key.clone(),
                known: known().collect::<Vec<_>>().join(", "),
                nearest: nearest(key, known()).map(str::to_owned),
            });
        }
        variants.retain(|variant| keys.is_empty() || keys.contains(&variant.key));
        Ok(variants)
    }
}

/// Every experiment, in the order they are listed.
pub const EXPERIMENTS: [&Experiment; 10] = [
    &beta::BETA,
    &threshold::THRESHOLD,
    &noise::NOISE,
    &progressive::PROGRESSIVE,
    &nine_constraints::NINE_CONSTRAINTS,
    &feedback::FEEDBACK,
    &dual_step::DUAL_STEP,
    &caution::CAUTION,
    &choice::CHOICE,
    &feasible::FEASIBLE,
];

/// The study that shows every setting on the desk workload with simulated models.
const HELP_DESK: Shipped = Shipped {
    file: "help-desk.toml",
    text: include_str!("../../../studies/help-desk.toml"),
    rounds: Some(6),
};

/// The same as it ships.
const SHIPPED_HELP_DESK: Shipped = Shipped {
    rounds: None,
    ..HELP_DESK
};

/// Why an experiment cannot be made from a study.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExperimentError {
    /// No such experiment.
    #[error("there is no experiment `{name}`; the experiments are {known}{hint}", hint = nearest_hint(nearest.as_deref()))]
    Unknown {
        /// The name, as it was given.
        name: String,
        /// The names that there are, in one sentence.
        known: String,
        /// The closest name, if one is close.
        nearest: Option<String>,
    },
    /// No such variant of a study.
    #[error("the experiment `{experiment}` has no variant `{key}` of this study; its variants are {known}{hint}", hint = nearest_hint(nearest.as_deref()))]
    NoVariant {
        /// The experiment.
        experiment: &'static str,
        /// The key, as it was given.
        key: String,
        /// The keys that there are, in one sentence.
        known: String,
        /// The closest key, if one is close.
        nearest: Option<String>,
    },
    /// The study lacks what the experiment varies.
    #[error("the experiment `{experiment}` does not fit the study `{study}`: {problem}")]
    Unfit {
        /// The experiment.
        experiment: &'static str,
        /// The study's name.
        study: String,
        /// What is missing and what to do.
        problem: String,
    },
}

fn nearest_hint(nearest: Option<&str>) -> String {
    nearest
        .map(|name| format!("\ndid you mean `{name}`?"))
        .unwrap_or_default()
}

/// The experiment of a name.
///
/// # Errors
/// When there is none, naming all of them and the closest.
pub fn find(name: &str) -> Result<&'static Experiment, ExperimentError> {
    let names = EXPERIMENTS.map(|experiment| experiment.name);
    EXPERIMENTS
        .into_iter()
        .find(|experiment| experiment.name == name)
        .ok_or_else(|| ExperimentError::Unknown {
            name: name.to_owned(),
            known: names.join(", "),
            nearest: nearest(name, names).map(str::to_owned),
        })
}
