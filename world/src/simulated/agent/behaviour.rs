//! The agent's behaviour model, a logistic regression for each behaviour: probabilities that follow from model and prompt.
//!
//! Each behaviour is a logistic of a base, the model's competence and the strengths of the
//! policies that bear on it. This table *is* the world; `docs/simulated-world.md` repeats it.

use crate::simulated::parameters::Parameters;
use crate::simulated::profile::Policy::{
    self, BeBrief, CheckEligibility, ConfirmWrites, ExhaustOptions, HelpHarmless, LookUpFirst, MinimiseCalls,
    NeverGuess, PlanSteps, ReuseKnown, Summarise, TransferByPolicy, VerifyIdentity,
};
use crate::simulated::profile::Profile;
use crate::simulated::random::Draw;
use crate::simulated::review::block;

/// Something an agent does or does not do when the occasion arises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// Verifies the customer before turning to the request.
    Verify,
    /// Looks for the order with the tools instead of asking for its number.
    LookUpFirst,
    /// Opens a record before acting on it.
    OpenRecord,
    /// Reads what else the case depends on: shipment, stock.
    ReadFurther,
    /// Opens every order that may be meant instead of taking a likely one.
    TellApart,
    /// Sees that a rule forbids what is asked.
    SeeObstacle,
    /// Says what it is about to change and waits for a yes.
    Propose,
    /// Gets an argument wrong.
    Slip,
    /// Tells the customer the reason or the fact that matters.
    Tell,
    /// Hands over when the policy wants it.
    HandOverWhenDue,
    /// Hands over because the conversation has become hard.
    GiveUp,
    /// Makes a call it has no need of.
    Redundant,
    /// Searches further after a setback.
    Exert,
    /// Works a question through instead of answering at a glance.
    WorkThrough,
    /// Refuses what would do harm.
    RefuseHarm,
    /// Takes a harmless request for a harmful one.
    TakeAlarm,
}

/// How a behaviour depends on model and prompt, in logits.
#[derive(Debug, Clone, Copy)]
struct Law {
    behaviour: Behaviour,
    base: f64,
    /// For each unit of competence above 0.72, that of `sim-medium`.
    competence: f64,
    effects: &'static [(Policy, f64)],
}

const LAWS: [Law; 16] = [
    Law {
        behaviour: Behaviour::Verify,
        base: 1.5,
        competence: 4.0,
        effects: &[(VerifyIdentity, 2.5), (MinimiseCalls, -1.2), (BeBrief, -0.4)],
    },
    Law {
        behaviour: Behaviour::LookUpFirst,
        base: -0.3,
        competence: 3.0,
        effects: &[(LookUpFirst, 2.8), (VerifyIdentity, 0.3), (MinimiseCalls, -1.2)],
    },
    Law {
        behaviour: Behaviour::OpenRecord,
        base: 2.2,
        competence: 3.0,
        effects: &[
            (CheckEligibility, 1.2),
            (LookUpFirst, 0.8),
            (MinimiseCalls, -2.2),
            (ReuseKnown, -0.5),
            (BeBrief, -0.6),
        ],
    },
    Law {
        behaviour: Behaviour::ReadFurther,
        base: 2.3,
        competence: 3.0,
        effects: &[
            (LookUpFirst, 1.0),
            (NeverGuess, 0.8),
            (ExhaustOptions, 0.6),
            (MinimiseCalls, -2.0),
            (ReuseKnown, -0.5),
            (BeBrief, -0.6),
        ],
    },
    Law {
        behaviour: Behaviour::TellApart,
        base: 0.4,
        competence: 4.0,
        effects: &[
            (NeverGuess, 3.2),
            (PlanSteps, 0.4),
            (ExhaustOptions, 0.2),
            (MinimiseCalls, -1.6),
        ],
    },
    Law {
        behaviour: Behaviour::SeeObstacle,
        base: 0.6,
        competence: 6.0,
        effects: &[(CheckEligibility, 3.0), (PlanSteps, 0.8), (BeBrief, -0.5)],
    },
    Law {
        behaviour: Behaviour::Propose,
        base: 0.4,
        competence: 2.0,
        effects: &[(ConfirmWrites, 3.0), (BeBrief, -0.5), (MinimiseCalls, -0.2)],
    },
    Law {
        behaviour: Behaviour::Slip,
        base: -1.9,
        competence: -6.0,
        effects: &[(PlanSteps, -1.8), (NeverGuess, -0.6), (BeBrief, 0.5)],
    },
    Law {
        behaviour: Behaviour::Tell,
        base: 1.9,
        competence: 3.0,
        effects: &[(Summarise, 1.8), (CheckEligibility, 0.4), (BeBrief, -1.3)],
    },
    Law {
        behaviour: Behaviour::HandOverWhenDue,
        base: 0.5,
        competence: 3.0,
        effects: &[
            (TransferByPolicy, 2.8),
            (CheckEligibility, 0.6),
            (ExhaustOptions, -1.4),
        ],
    },
    Law {
        behaviour: Behaviour::GiveUp,
        base: 1.3,
        competence: -4.0,
        effects: &[
            (ExhaustOptions, -1.1),
            (TransferByPolicy, -1.0),
            (LookUpFirst, -0.5),
            (PlanSteps, -0.3),
            (MinimiseCalls, 1.0),
        ],
    },
    Law {
        behaviour: Behaviour::Redundant,
        base: 0.9,
        competence: 4.0,
        effects: &[
            (ReuseKnown, -1.6),
            (MinimiseCalls, -1.4),
            (VerifyIdentity, 0.3),
            (ExhaustOptions, 0.5),
            (CheckEligibility, 0.7),
            (LookUpFirst, 0.5),
            (NeverGuess, 0.4),
            (TransferByPolicy, 0.3),
        ],
    },
    Law {
        behaviour: Behaviour::Exert,
        base: -1.3,
        competence: 1.0,
        effects: &[(ExhaustOptions, 2.4), (TransferByPolicy, 2.0)],
    },
    Law {
        behaviour: Behaviour::WorkThrough,
        base: -0.6,
        competence: 5.0,
        effects: &[(PlanSteps, 2.4), (NeverGuess, 0.5), (BeBrief, -1.2)],
    },
    Law {
        behaviour: Behaviour::RefuseHarm,
        base: 0.8,
        competence: 4.0,
        effects: &[(Policy::RefuseHarm, 2.6), (HelpHarmless, -0.8)],
    },
    Law {
        behaviour: Behaviour::TakeAlarm,
        base: -0.8,
        competence: -4.0,
        effects: &[(Policy::RefuseHarm, 1.4), (HelpHarmless, -2.6)],
    },
];

/// An agent's behaviour under one prompt.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BehaviourModel {
    logits: [f64; LAWS.len()],
    brevity: f64,
    summarises: f64,
    plans: f64,
    noise: f64,
}

impl BehaviourModel {
    /// The behaviour model of a language model under a system message: its instructions are what stands in the `<instructions>` tag,
    /// else all of it.
    pub(super) fn read(system: &str, parameters: &Parameters) -> Self {
        let instructions = block(system, "instructions").unwrap_or(system);
        Self::new(&Profile::read(instructions), parameters)
    }

    /// The behaviour model of a language model under a prompt.
    pub(super) fn new(profile: &Profile, parameters: &Parameters) -> Self {
        let strength = |policy| parameters.obedience * profile.strength(policy);
        let mut logits = [0.0; LAWS.len()];
        for law in &LAWS {
            let pull: f64 = law
                .effects
                .iter()
                .map(|&(policy, effect)| effect * strength(policy))
                .sum();
            logits[law.behaviour as usize] =
                law.base + law.competence * (parameters.competence - 0.72) + pull;
        }
        Self {
            logits,
            brevity: strength(BeBrief),
            summarises: strength(Summarise),
            plans: strength(PlanSteps),
            noise: parameters.noise,
        }
    }

    /// Whether the agent behaves so on an occasion. `draw` names the occasion, and `difficulty` is
    /// added to the logit.
    pub(super) fn does(&self, behaviour: Behaviour, draw: Draw, difficulty: f64) -> bool {
        let mood = self.noise * draw.named("mood").bell();
        let logit = self.logits[behaviour as usize] + mood + difficulty;
        draw.chance(1.0 / (1.0 + (-logit).exp()))
    }

    /// How short its answers are, in [0, 1].
    pub(super) fn brevity(&self) -> f64 {
        self.brevity
    }

    /// Whether it writes its plan down before it acts.
    pub(super) fn thinks_aloud(&self, draw: Draw) -> bool {
        draw.named("aloud").chance(0.5 * self.plans)
    }

    /// How much it sums up, in [0, 1].
    pub(super) fn summarises(&self) -> f64 {
        self.summarises
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(prompt: &str, model: &str, behaviour: Behaviour) -> f64 {
        let behaviours = BehaviourModel::new(&Profile::read(prompt), Parameters::named(model).unwrap());
        let count = 2000;
        (0..count)
            .filter(|&index| behaviours.does(behaviour, Draw::new(1).at(index), 0.0))
            .count() as f64
            / f64::from(count as u32)
    }

    #[test]
    fn the_table_is_in_the_order_of_the_behaviours() {
        for (index, law) in LAWS.iter().enumerate() {
            assert_eq!(law.behaviour as usize, index);
        }
    }

    #[test]
    fn instructions_change_behaviour_and_have_their_price() {
        let plain = "You are a customer service agent.";
        let exhaust = "Try every option before you transfer to a human.";
        assert!(
            rate(exhaust, "sim-medium", Behaviour::GiveUp)
                < rate(plain, "sim-medium", Behaviour::GiveUp) - 0.2
        );
        assert!(
            rate(exhaust, "sim-medium", Behaviour::Redundant)
                > rate(plain, "sim-medium", Behaviour::Redundant) + 0.05
        );
        let minimise = "Make as few tool calls as possible.";
        assert!(
            rate(minimise, "sim-medium", Behaviour::Redundant)
                < rate(plain, "sim-medium", Behaviour::Redundant) - 0.15
        );
        assert!(
            rate(minimise, "sim-medium", Behaviour::OpenRecord)
                < rate(plain, "sim-medium", Behaviour::OpenRecord) - 0.1
        );
        assert!(
            rate(minimise, "sim-medium", Behaviour::GiveUp)
                > rate(plain, "sim-medium", Behaviour::GiveUp) + 0.05
        );
    }

    #[test]
    fn models_differ() {
        let plain = "You are a customer service agent.";
        for (behaviour, better) in [(Behaviour::SeeObstacle, true), (Behaviour::Slip, false)] {
            let small = rate(plain, "sim-small", behaviour);
            let large = rate(plain, "sim-large", behaviour);
            assert_eq!(large > small, better, "{behaviour:?}: {small} {large}");
        }
    }
}
