//! Thresholds and multipliers on the command line.

use capo_core::journal::SteerEvent;
use indexmap::IndexMap;

use super::failure::Failure;

/// What is to change about a run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Changes {
    /// Another threshold from there on; may be given several times.
    #[arg(long = "threshold", value_name = "METRIC=VALUE", value_parser = setting)]
    pub(crate) thresholds: Vec<(String, f64)>,
    /// Another multiplier at that round; may be given several times.
    #[arg(long = "multiplier", value_name = "METRIC=VALUE", value_parser = setting)]
    pub(crate) multipliers: Vec<(String, f64)>,
}

/// A metric with a number.
///
/// # Errors
/// What it is to look like.
pub(super) fn setting(text: &str) -> Result<(String, f64), String> {
    let refuse = || "write it as METRIC=VALUE, such as human_requests=0.3".to_owned();
    let (metric, value) = text.split_once('=').ok_or_else(refuse)?;
    match value.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && !metric.trim().is_empty() => Ok((metric.trim().to_owned(), value)),
        _ => Err(refuse()),
    }
}

impl Changes {
    /// As a journal's line.
    ///
    /// # Errors
    /// When a metric is given twice.
    pub(crate) fn event(&self) -> Result<SteerEvent, Failure> {
        Ok(SteerEvent {
            thresholds: by_metric("--threshold", &self.thresholds)?,
            multipliers: by_metric("--multiplier", &self.multipliers)?,
            ..SteerEvent::default()
        })
    }
}

/// The settings of an option; `None` where there is none.
///
/// # Errors
/// When a metric is given twice.
pub(super) fn by_metric(
    option: &str,
    settings: &[(String, f64)],
) -> Result<Option<IndexMap<String, f64>>, Failure> {
    let mut values = IndexMap::new();
    for (metric, value) in settings {
        if values.insert(metric.clone(), *value).is_some() {
            return Err(Failure::usage(format!(
                "{option} is given twice for `{metric}`; give it once"
            )));
        }
    }
    Ok((!values.is_empty()).then_some(values))
}
