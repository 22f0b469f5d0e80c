//! From text to [`Study`], with errors a person can act on.

use std::ops::RangeInclusive;

use serde::Deserialize as _;
use serde_json::Value;

use super::certificate::Confirm;
use super::error::StudyError;
use super::score::LARGEST_THRESHOLD;
use super::setting::Setting;
use super::suggest::nearest;
use super::text_checks::{check_depth, check_finite, placed};
use super::wording::{of_table, read_toml, suggest};
use super::{Constraint, Preset, Rounds, Study};

/// What the paper's preset leaves out of a study.
const LEFT_BY_PRESET: [&str; 5] = [
    "study.batch",
    "study.batch_growth",
    "study.caution",
    "study.choice_probability",
    "method.pool",
];

/// What a constraint's scale may be. Residuals, which are divided by it, and their squares stay finite.
const SCALES: RangeInclusive<f64> = 1e-9..=1e9;

/// The largest number of `study.rounds`.
const MOST_ROUNDS: u32 = 100_000;

/// The largest `study.caution`, in standard errors.
pub const LARGEST_CAUTION: f64 = 10.0;

/// The largest `study.batch_growth`.
pub const LARGEST_BATCH_GROWTH: f64 = 1000.0;

/// The largest `study.choice_probability`.
pub const LARGEST_CHOICE_PROBABILITY: f64 = 0.999;

/// The two notations of a study file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// TOML.
    Toml,
    /// JSON.
    Json,
}

impl Format {
    /// The notation a file name stands for: `.json` is JSON, everything else TOML.
    pub fn of_path(path: &str) -> Self {
        let json = path.len() >= 5 && path[path.len() - 5..].eq_ignore_ascii_case(".json");
        if json { Self::Json } else { Self::Toml }
    }
}

impl Study {
    /// Reads a study file's text, with some keys set otherwise, without a look at the method's table.
    ///
    /// # Errors
    /// Syntax errors with line and column, unknown keys with the nearest valid one, numbers that are not
    /// finite, and a constraint with two thresholds.
    pub(crate) fn read(text: &str, format: Format, settings: &[Setting]) -> Result<Self, StudyError> {
        if text.starts_with("{\"event\":") {
            let problem = "this is the journal of a run; a study is what the run was made of";
            return Err(StudyError::Syntax(problem.into()));
        }
        if format == Format::Toml {
            check_depth(text)?;
            check_finite(text).map_err(|(key, place, problem)| {
                StudyError::invalid(key, placed(text, Some(place), &problem))
            })?;
        }
        let study = Self::written(text, format);
        let mut study = match settings {
            [] => study,
            settings => Self::set(study, text, format, settings),
        }?;
        if study.study.preset.take() == Some(Preset::Paper) {
            let is_left_out = |setting: &&Setting| LEFT_BY_PRESET.contains(&setting.key().as_str());
            if let Some(setting) = settings.iter().find(is_left_out) {
                let problem = "the preset `paper` leaves it out; set it without `study.preset`";
                return Err(StudyError::invalid(setting.key(), problem));
            }
            // What a person allows to be spent stays a bound.
            let budget = study.budget.rollouts;
            study.use_paper_preset();
            study.budget.rollouts = budget;
        }
        // Only a journal's study has both: there the threshold was measured.
        let both =
            |constraint: &Constraint| constraint.threshold.is_some() && constraint.relative_to_seed.is_some();
        if let Some(index) = study.constraints.iter().position(both) {
            return Err(StudyError::invalid(
                format!("constraint[{index}] ({})", study.constraints[index].metric),
                "give exactly one of `threshold` and `relative_to_seed`",
            ));
        }
        Ok(study)
    }

    /// The study as its file writes it.
    fn written(text: &str, format: Format) -> Result<Self, StudyError> {
        match format {
            Format::Toml => read_toml(text).map_err(StudyError::Syntax),
            Format::Json => {
                let mut reader = serde_json::Deserializer::from_str(text);
                let study = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
                    let (key, told) = (error.path().to_string(), suggest(&error.inner().to_string()));
                    // The path of the whole is a dot, that of what is no key yet a question mark.
                    if key == "." || key.contains('?') || told.starts_with("unknown field") {
                        StudyError::Syntax(told)
                    } else {
                        let (key, told) = of_table(key, told);
                        StudyError::invalid(key, told)
                    }
                })?;
                let end = reader.end();
                end.map_err(|error| StudyError::Syntax(suggest(&error.to_string())))?;
                Ok(study)
            }
        }
    }

    /// The same with some keys set otherwise. What is wrong with the file is told with its place, unless a setting
    /// mends it.
    fn set(
        mut study: Result<Self, StudyError>,
        text: &str,
        format: Format,
        settings: &[Setting],
    ) -> Result<Self, StudyError> {
        let document: Option<Value> = match format {
            Format::Toml => toml::from_str(text).ok(),
            Format::Json => serde_json::from_str(text).ok(),
        };
        let Some(mut document) = document else {
            return study;
        };
        for setting in settings {
            setting.apply(&mut document)?;
            study = match (Self::deserialize(&document), study) {
                (Ok(study), _) => Ok(study),
                (Err(error), Ok(_)) => Err(StudyError::invalid(setting.key(), suggest(&error.to_string()))),
                (Err(_), wrong) => wrong,
            };
        }
        study
    }

    /// The study as TOML, for export: as a person would write it, without the thresholds that were
    /// measured on the seed prompt.
    ///
    /// # Errors
    /// When an opaque table holds `null`, which TOML cannot write.
    pub fn to_toml(&self) -> Result<String, StudyError> {
        let mut study = self.clone();
        for constraint in &mut study.constraints {
            if constraint.relative_to_seed.is_some() {
                constraint.threshold = None;
            }
        }
        toml::to_string_pretty(&study).map_err(|error| StudyError::Syntax(error.to_string()))
    }

    /// Checks the ranges of a reserve's settings, and that its bounds are of constraints.
    fn check_bounds(&self, confirm: &Confirm) -> Result<(), StudyError> {
        confirm.check()?;
        if self.constraints.is_empty() {
            return Err(StudyError::invalid(
                "confirm",
                "there is nothing to test: the study has no constraint",
            ));
        }
        let constrained = || {
            self.constraints
                .iter()
                .map(|constraint| constraint.metric.as_str())
        };
        let unknown = |metric: &&String| constrained().all(|name| name != metric.as_str());
        match confirm.bounds.keys().find(unknown) {
            None => Ok(()),
            Some(metric) => {
                let hint = nearest(metric, constrained()).map(|near| format!("; did you mean `{near}`?"));
                Err(StudyError::invalid(
                    format!("confirm.bounds.{metric}"),
                    format!("the study has no such constraint{}", hint.unwrap_or_default()),
                ))
            }
        }
    }

    /// Checks what can be checked without the workload and the method.
    ///
    /// # Errors
    /// The key that holds something impossible.
    pub(crate) fn check(&self) -> Result<(), StudyError> {
        if self.study.name.trim().is_empty() {
            return Err(StudyError::invalid("study.name", "give the study a name"));
        }
        if self.study.rounds == Rounds::Count(0) {
            return Err(StudyError::invalid(
                "study.rounds",
                "0 rounds search nothing; use 1 or more, or `capo evaluate`",
            ));
        }
        if let Rounds::Count(rounds) = self.study.rounds
            && rounds > MOST_ROUNDS
        {
            let problem = format!("must be at most {MOST_ROUNDS}, not {rounds}");
            return Err(StudyError::invalid("study.rounds", problem));
        }
        if matches!(self.study.rounds, Rounds::Open(_)) && self.budget.is_unlimited() {
            return Err(StudyError::invalid(
                "study.rounds",
                "`until-budget` never ends without a budget; set one under [budget]",
            ));
        }
        super::check_repeats("study.repeats", self.study.repeats)?;
        if self.study.batch == Some(0) {
            return Err(StudyError::invalid(
                "study.batch",
                "must be at least 1; leave it out for the whole split",
            ));
        }
        if let Some(growth) = self.study.batch_growth {
            if self.study.batch.is_none() {
                return Err(StudyError::invalid(
                    "study.batch_growth",
                    "says how `batch` grows; set `batch`, the examples of the first round, too",
                ));
            }
            if !(1.0..=LARGEST_BATCH_GROWTH).contains(&growth) {
                return Err(StudyError::invalid(
                    "study.batch_growth",
                    format!("must be between 1 and {LARGEST_BATCH_GROWTH}, not {growth}"),
                ));
            }
        }
        for (key, value, most) in [
            ("study.caution", self.study.caution, LARGEST_CAUTION),
            (
                "study.choice_probability",
                self.study.choice_probability,
                LARGEST_CHOICE_PROBABILITY,
            ),
        ] {
            if !(0.0..=most).contains(&value) {
                return Err(StudyError::invalid(
                    key,
                    format!("must be between 0 and {most}, not {value}"),
                ));
            }
        }
        if self.feedback.cases == 0 {
            return Err(StudyError::invalid(
                "feedback.cases",
                "must be at least 1; for no feedback use form = \"none\"",
            ));
        }
        self.failures.check()?;
        if let Some(confirm) = &self.confirm {
            self.check_bounds(confirm)?;
        }
        self.budget.check()?;
        for (index, constraint) in self.constraints.iter().enumerate() {
            let key = format!("constraint[{index}] ({})", constraint.metric);
            if self.constraints[..index]
                .iter()
                .any(|earlier| earlier.metric == constraint.metric)
            {
                return Err(StudyError::invalid(
                    key,
                    "this metric is constrained twice; keep one of the two",
                ));
            }
            if constraint.metric == self.objective.metric {
                return Err(StudyError::invalid(key, "this metric is the objective already"));
            }
            if constraint.threshold.is_none() && constraint.relative_to_seed.is_none() {
                return Err(StudyError::invalid(
                    key,
                    "give exactly one of `threshold` and `relative_to_seed`",
                ));
            }
            if constraint
                .threshold
                .is_some_and(|threshold| !(-LARGEST_THRESHOLD..=LARGEST_THRESHOLD).contains(&threshold))
            {
                return Err(StudyError::invalid(
                    key,
                    format!("`threshold` must lie between -{LARGEST_THRESHOLD:e} and {LARGEST_THRESHOLD:e}"),
                ));
            }
            if constraint
                .relative_to_seed
                .is_some_and(|factor| !factor.is_finite() || factor < 0.0)
            {
                return Err(StudyError::invalid(
                    key,
                    "`relative_to_seed` must be a finite factor of at least 0",
                ));
            }
            if constraint.scale.is_some_and(|scale| !SCALES.contains(&scale)) {
                let (least, most) = (SCALES.start(), SCALES.end());
                return Err(StudyError::invalid(
                    key,
                    format!("`scale` must lie between {least:e} and {most:e}"),
                ));
            }
            if let Rounds::Count(rounds) = self.study.rounds
                && constraint.from_round >= rounds
            {
                return Err(StudyError::invalid(
                    key,
                    format!(
                        "`from_round` = {} never comes: the study has {rounds} rounds, numbered from 0",
                        constraint.from_round
                    ),
                ));
            }
        }
        Ok(())
    }
}
