//! Words for trainings: kind, state and start.

use capo_api::{TrainingKind, TrainingShown, TrainingStart, TrainingState};

/// What it learns from.
pub(super) fn kind(kind: TrainingKind) -> &'static str {
    match kind {
        TrainingKind::Sft => "Rewrites of runs (SFT)",
        TrainingKind::Grpo => "Rewards of its search (GRPO)",
    }
}

/// Where it stands.
pub(super) fn state(training: &TrainingShown) -> &'static str {
    match training.state {
        TrainingState::Queued => "waits for its turn",
        TrainingState::Running if training.stopping => "stops once what it learned is kept",
        TrainingState::Running => "learns",
        TrainingState::Stopped => "stopped",
        TrainingState::Done => "done",
        TrainingState::Failed => "failed",
    }
}

/// What it starts from.
pub(super) fn start(start: &TrainingStart) -> String {
    match start {
        TrainingStart::Model { name } => name.clone(),
        TrainingStart::Training { training, step: None } => format!("training {}", short(training)),
        TrainingStart::Training {
            training,
            step: Some(step),
        } => format!("training {}, step {step}", short(training)),
        TrainingStart::Fresh { .. } => "a small model with random weights".to_owned(),
    }
}

/// The first letters of an id.
pub(super) fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

/// Bytes for people.
pub(super) fn size(bytes: u64) -> String {
    let bytes = bytes as f64;
    if bytes < 1e6 {
        format!("{:.0} kB", bytes / 1e3)
    } else if bytes < 1e9 {
        format!("{:.1} MB", bytes / 1e6)
    } else {
        format!("{:.1} GB", bytes / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_the_unit_that_suits_them() {
        assert_eq!(
            [1500, 2_500_000, 16_400_000_000].map(size),
            ["2 kB", "2.5 MB", "16.4 GB"]
        );
    }
}
