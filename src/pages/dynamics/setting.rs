//! One side's setting, and the study it stands for.

use capo_core::budget::Budget;
use capo_core::dual::DualStepName;
use capo_core::study::{Rounds, Study};
use serde_json::Value;

use crate::studies;

/// Rounds of each search.
pub(super) const ROUNDS: u32 = 24;

/// Examples that a prompt is measured on: few enough that a search takes seconds.
const EXAMPLES: u32 = 24;
/// Held-out examples, which this page does not show.
const HELD_OUT: u32 = 4;

/// The constraint that what keeps dialogues from a human costs.
pub(super) const TOOLS: &str = "excess_tools";
/// The constraint that a prompt left alone violates.
pub(super) const REQUESTS: &str = "human_requests";

/// What can be turned on one side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Setting {
    /// τ of excess tools, extra calls for each call of the reference.
    pub(super) tools: f64,
    /// τ of human requests, a share of dialogues in [0, 1].
    pub(super) requests: f64,
    /// β > 0: size of a subgradient or count step.
    pub(super) beta: f64,
    /// λ_max > 0.
    pub(super) lambda_max: f64,
    /// λ_0 ≥ 0; never above λ_max.
    pub(super) lambda_init: f64,
    /// γ: how strongly parents of high J are preferred.
    pub(super) gamma: f64,
    /// σ ≥ 0 of the noise on the costs that the dual step sees.
    pub(super) noise: f64,
    /// k0 ≥ 1: candidates whose costs move the multipliers.
    pub(super) best: usize,
    /// How multipliers move.
    pub(super) step: DualStepName,
    /// Gains of the PID step: proportional, integral, derivative.
    pub(super) gains: [f64; 3],
}

impl Setting {
    /// Thresholds that this rewriter can keep, and the paper's hyperparameters.
    pub(super) const ATTAINABLE: Self = Self {
        tools: 1.3,
        requests: 0.37,
        beta: 4.0,
        lambda_max: 10.0,
        lambda_init: 1.0,
        gamma: 1.0,
        noise: 0.0,
        best: 1,
        step: DualStepName::Subgradient,
        gains: [4.0, 2.0, 1.0],
    };

    /// The built-in help desk under this setting, at full speed.
    ///
    /// # Errors
    /// When a value is out of range, in words.
    pub(super) fn study(&self) -> Result<Study, String> {
        let mut study = studies::help_desk().map_err(|error| error.to_string())?;
        study.use_paper_preset();
        "constraint dynamics".clone_into(&mut study.study.name);
        study.study.rounds = Rounds::Count(ROUNDS);
        study.workload.insert("optimize".into(), EXAMPLES.into());
        study.workload.insert("evaluate".into(), HELD_OUT.into());
        for model in study.models.values_mut().filter_map(Value::as_object_mut) {
            model.remove("latency");
        }
        study
            .constraints
            .retain(|constraint| [TOOLS, REQUESTS].contains(&constraint.metric.as_str()));
        study
            .constraints
            .sort_by_key(|constraint| constraint.metric != TOOLS);
        for constraint in &mut study.constraints {
            let is_tools = constraint.metric == TOOLS;
            constraint.threshold = Some(if is_tools { self.tools } else { self.requests });
        }
        let step = serde_json::to_value(self.step).map_err(|error| error.to_string())?;
        let [kp, ki, kd] = self.gains;
        for (key, value) in [
            ("beta", self.beta.into()),
            ("lambda_max", self.lambda_max.into()),
            ("lambda_init", self.lambda_init.min(self.lambda_max).into()),
            ("gamma", self.gamma.into()),
            ("noise", self.noise.into()),
            ("best", self.best.into()),
            ("dual_step", step),
            ("kp", kp.into()),
            ("ki", ki.into()),
            ("kd", kd.into()),
        ] {
            study.method.insert(key.into(), value);
        }
        study.budget = Budget::default();
        study.checked().map_err(|error| error.to_string())
    }
}

/// Two settings that show something side by side.
pub(super) struct Scene {
    /// What it shows.
    pub(super) name: &'static str,
    /// The settings A and B.
    pub(super) settings: [Setting; 2],
    /// What each of them is, in a few words.
    pub(super) about: [&'static str; 2],
}

/// Every scene; the page opens with the first.
pub(super) const SCENES: [Scene; 6] = [
    Scene {
        name: "Out of reach",
        settings: [
            Setting::ATTAINABLE,
            Setting {
                requests: 0.05,
                ..Setting::ATTAINABLE
            },
        ],
        about: ["attainable thresholds", "threshold out of reach"],
    },
    Scene {
        name: "Overshoot and slack release",
        settings: [
            Setting {
                beta: 1.0,
                ..Setting::ATTAINABLE
            },
            Setting {
                beta: 8.0,
                ..Setting::ATTAINABLE
            },
        ],
        about: ["small dual step", "large dual step"],
    },
    Scene {
        name: "Fixed weights fail",
        settings: [
            Setting::ATTAINABLE,
            Setting {
                step: DualStepName::Fixed,
                ..Setting::ATTAINABLE
            },
        ],
        about: ["multipliers that answer", "weights fixed at 1"],
    },
    Scene {
        name: "Noise",
        settings: [
            Setting::ATTAINABLE,
            Setting {
                noise: 0.3,
                ..Setting::ATTAINABLE
            },
        ],
        about: ["costs as measured", "noisy costs"],
    },
    Scene {
        name: "PID against subgradient",
        settings: [
            Setting::ATTAINABLE,
            Setting {
                step: DualStepName::Pid,
                ..Setting::ATTAINABLE
            },
        ],
        about: ["subgradient", "PID"],
    },
    Scene {
        name: "Attainable",
        settings: [
            Setting::ATTAINABLE,
            Setting {
                tools: 2.0,
                requests: 0.45,
                ..Setting::ATTAINABLE
            },
        ],
        about: ["attainable thresholds", "looser thresholds"],
    },
];

/// The scene these settings belong to.
pub(super) fn scene_of(settings: [Setting; 2]) -> Option<&'static Scene> {
    SCENES.iter().find(|scene| scene.settings == settings)
}
