//! Fixtures of tests of several modules.

use crate::store::{Actor, Millis};

/// A search that takes a moment.
pub(crate) const STUDY: &str = r#"
[study]
name = "small"
method = "capo"
rounds = 2
seed = 3
[workload]
kind = "desk"
optimize = 12
evaluate = 6
[prompt]
text = "You are a customer service agent. Help the customer with their request."
[objective]
metric = "success"
[[constraint]]
metric = "human_requests"
threshold = 0.3
[models.agent]
provider = "simulated"
model = "sim-medium"
[budget]
rollouts = 2000
"#;

pub(crate) const DAY: Millis = 24 * 60 * 60 * 1000;

/// 2026-11-26.
pub(crate) const NOW: Millis = 1_795_651_200_000;

/// Somebody who acts at a moment.
pub(crate) fn by(name: &str, at: Millis) -> Actor {
    Actor {
        name: name.into(),
        address: String::new(),
        at,
    }
}
