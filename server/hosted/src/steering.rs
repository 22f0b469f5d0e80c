//! Steering: what people may change by hand about a run.

use capo_core::journal::SteerEvent;
use capo_core::study::{Format, Study};

/// Of a change what people may change by hand, checked against the study of a run that has closed so many rounds, the seed's
/// included.
///
/// # Errors
/// Why it cannot be, in words.
pub fn steering(change: SteerEvent, closed: usize, study: &str) -> Result<SteerEvent, String> {
    let study = Study::parse(study, Format::Toml)
        .map_err(|error| format!("The study of the run does not read: {error}"))?;
    let change = SteerEvent {
        round: u32::try_from(closed.saturating_sub(1)).unwrap_or(u32::MAX),
        ..by_hand(change)?
    };
    if change.is_empty() {
        return Err("Nothing is changed; name `thresholds` or `multipliers`.".into());
    }
    change.check(&study).map_err(|error| error.to_string())?;
    Ok(change)
}

/// Of a change the thresholds and multipliers.
///
/// # Errors
/// That budgets are changed in another way.
pub fn by_hand(change: SteerEvent) -> Result<SteerEvent, String> {
    if change.budget.is_some() {
        return Err("A budget stands in the study: resume the run under one with another budget.".into());
    }
    Ok(SteerEvent {
        thresholds: change.thresholds,
        multipliers: change.multipliers,
        ..SteerEvent::default()
    })
}
