//! Bars that a measured prompt has to keep: the thresholds of its study, and what a build demands.

use std::path::{Path, PathBuf};

use capo_core::estimate::Estimate;
use capo_core::evaluate::Evaluation;
use capo_core::metric::{Direction, MetricSpec};
use capo_core::problem::Problem;
use capo_core::study::nearest;
use indexmap::IndexMap;

use crate::cli::command_line::CommandLine;
use crate::cli::failure::Failure;
use crate::cli::layout::{estimate, number};
use crate::cli::place;
use crate::cli::steering::{by_metric, setting};

/// What a build demands.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct DemandArgs {
    /// End with exit code 2 where a prompt's mean of a metric is under a value, such as success=0.8, as where it breaks
    /// a threshold of the study; may be given several times.
    #[arg(long, value_name = "METRIC=VALUE", value_parser = setting, conflicts_with = "serve")]
    fail_under: Vec<(String, f64)>,
    /// Write the verdicts as JUnit XML, a test case for each threshold of each prompt; replaced if it is there.
    #[arg(long, value_name = "FILE", conflicts_with = "serve")]
    pub(super) junit: Option<PathBuf>,
}

impl DemandArgs {
    /// The least means, by metric. `read` is what the command reads.
    ///
    /// # Errors
    /// When a metric is none of the study's, or lower is better for it, when every prompt or none could keep to it, and
    /// when no verdict can be written.
    pub(super) fn read<'a>(
        &self,
        problem: &Problem,
        read: impl IntoIterator<Item = (&'a str, &'a Path)>,
    ) -> Result<IndexMap<String, f64>, Failure> {
        let demands = by_metric("--fail-under", &self.fail_under)?.unwrap_or_default();
        let workloads = problem.workloads().iter();
        let known: Vec<&MetricSpec> = workloads.flat_map(|workload| workload.metrics()).collect();
        for (metric, least) in &demands {
            check(metric, *least, &known)?;
        }
        if let Some(path) = &self.junit {
            place::check("--junit", path, read)?;
            if demands.is_empty() && problem.study().constraints.is_empty() {
                return Err(Failure::usage(
                    "--junit has nothing to tell: the study has no constraint; demand something with --fail-under",
                ));
            }
        }
        Ok(demands)
    }

    /// The same, as it was typed.
    pub(super) fn typed(&self, line: CommandLine) -> CommandLine {
        let demand = |(metric, value): &(String, f64)| format!("{metric}={value}");
        let demands = self.fail_under.iter().map(demand);
        demands
            .fold(line, |line, demand| line.option("fail-under", Some(demand)))
            .path("junit", self.junit.as_deref())
    }
}

fn check(metric: &str, least: f64, known: &[&MetricSpec]) -> Result<(), Failure> {
    match known.iter().find(|spec| spec.name == metric) {
        Some(spec) if spec.direction == Direction::Objective => match (spec.min, spec.max) {
            (Some(min), _) if least < min => Err(Failure::usage(format!(
                "--fail-under {metric}={least}: every prompt reaches it, since {metric} is {min} at least"
            ))),
            (_, Some(max)) if least > max => Err(Failure::usage(format!(
                "--fail-under {metric}={least}: no prompt reaches it, since {metric} is {max} at most"
            ))),
            _ => Ok(()),
        },
        Some(_) => Err(Failure::usage(format!(
            "--fail-under {metric}: lower is better for it; keep it at or below a threshold, by a [[constraint]] of the \
             study"
        ))),
        None => {
            let scores = known.iter().filter(|spec| spec.direction == Direction::Objective);
            let scores: Vec<&str> = scores.map(|spec| spec.name.as_str()).collect();
            let hint = nearest(metric, scores.iter().copied())
                .map(|near| format!("; did you mean `{near}`?"))
                .unwrap_or_default();
            Err(Failure::usage(format!(
                "--fail-under: the study does not measure `{metric}`{hint}\nHigher is better for: {}",
                scores.join(", ")
            )))
        }
    }
}

/// What a prompt has to keep of one metric, and what it measured.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    pub(super) metric: String,
    pub(super) bound: Bound,
    /// `None` where no example measured it.
    pub(super) found: Option<Estimate>,
}

/// Where the mean has to lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bound {
    /// A threshold of the study.
    AtMost(f64),
    /// Demanded by `--fail-under`.
    AtLeast(f64),
}

impl Bound {
    /// How far a value lies beyond it; positive where it is broken.
    pub(super) fn excess(self, value: f64) -> f64 {
        match self {
            Self::AtMost(most) => value - most,
            Self::AtLeast(least) => least - value,
        }
    }

    fn words(self) -> String {
        match self {
            Self::AtMost(most) => format!("at most {}", number(most)),
            Self::AtLeast(least) => format!("at least {}", number(least)),
        }
    }
}

impl Bar {
    /// The thresholds of the study, then what is demanded.
    pub(super) fn all(evaluation: &Evaluation, demands: &IndexMap<String, f64>) -> Vec<Self> {
        let limits = evaluation.limits.iter();
        let limits = limits.map(|(metric, limit)| (metric, Bound::AtMost(limit.threshold)));
        let demands = demands
            .iter()
            .map(|(metric, least)| (metric, Bound::AtLeast(*least)));
        let bar = |(metric, bound): (&String, Bound)| Self {
            metric: metric.clone(),
            bound,
            found: evaluation.estimates.get(metric).copied(),
        };
        limits.chain(demands).map(bar).collect()
    }

    /// Whether `--fail-under` demands it.
    pub(super) fn is_demanded(&self) -> bool {
        matches!(self.bound, Bound::AtLeast(_))
    }

    /// Whether the mean lies beyond it, or was not measured.
    pub(super) fn is_broken(&self) -> bool {
        let found = self.found.as_ref();
        found.is_none_or(|found| self.bound.excess(found.mean) > 0.0)
    }

    /// Such as `excess_tools at most 0.300`.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.metric, self.bound.words())
    }

    /// Such as `excess_tools is 0.462 ± 0.295, not at most 0.300`, of one that is broken.
    pub(super) fn told(&self) -> String {
        let found = self.found.as_ref().map_or_else(|| "unknown".to_owned(), estimate);
        format!("{} is {found}, not {}", self.metric, self.bound.words())
    }
}
