//! The agent's behaviour model, a logistic regression for each behaviour: probabilities that follow from model and prompt.
//!
//! Each behaviour is a logistic of a base, the model's competence and the strengths of the
//! policies that bear on it. This table *is* the world; `docs/simulated-world.md` repeats it.

use Effect::{Beyond, Both, Of};

use crate::simulated::parameters::Parameters;
use crate::simulated::profile::Policy::{
    self, BeBrief, CheckEligibility, ConfirmWrites, ExhaustOptions, HelpHarmless, LookUpFirst, MinimiseCalls,
    NeverGuess, PlanSteps, ReuseKnown, Summarise, TransferByPolicy, VerifyIdentity,
};
use crate::simulated::profile::Profile;
use crate::simulated::random::Draw;
use crate::simulated::request::objective;
use crate::simulated::text::block;

/// Something an agent does or does not do when the occasion arises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// Verifies the customer before turning to the request.
    Verify,
    /// Asks once more for what tells who the customer is, though it was told.
    AskAgain,
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
    /// Takes what is allowed for forbidden.
    MisreadRule,
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
    effects: &'static [Effect],
}

/// What is added to a logit, by the strengths with which policies reach the behaviour.
#[derive(Debug, Clone, Copy)]
enum Effect {
    /// For each unit of a policy's strength.
    Of(Policy, f64),
    /// For each unit of the product of two policies' strengths: how much more, or less, they do together.
    Both(Policy, Policy, f64),
    /// For each unit of a policy's strength beyond [`FIRM`]: what turns over when it is asked for too firmly.
    Beyond(Policy, f64),
}

/// The strength up to which a policy is asked for in moderation: a hedged sentence lies below, a plain one above, an
/// emphatic one highest.
const FIRM: f64 = 0.6;

impl Effect {
    fn logit(self, strength: impl Fn(Policy) -> f64) -> f64 {
        match self {
            Of(policy, effect) => effect * strength(policy),
            Both(one, other, effect) => effect * strength(one) * strength(other),
            Beyond(policy, effect) => effect * (strength(policy) - FIRM).max(0.0),
        }
    }
}

const LAWS: [Law; 18] = [
    Law {
        behaviour: Behaviour::Verify,
        base: 1.5,
        competence: 4.0,
        effects: &[
            Of(VerifyIdentity, 2.5),
            Beyond(MinimiseCalls, -4.0),
            Of(BeBrief, -0.4),
        ],
    },
    Law {
        behaviour: Behaviour::AskAgain,
        base: -3.5,
        competence: -2.0,
        effects: &[Beyond(VerifyIdentity, 12.0), Of(ReuseKnown, -1.5)],
    },
    Law {
        behaviour: Behaviour::LookUpFirst,
        base: -0.3,
        competence: 3.0,
        effects: &[
            Of(LookUpFirst, 2.8),
            Of(VerifyIdentity, 0.3),
            Of(MinimiseCalls, -1.2),
        ],
    },
    Law {
        behaviour: Behaviour::OpenRecord,
        base: 2.2,
        competence: 3.0,
        effects: &[
            Of(CheckEligibility, 1.2),
            Of(LookUpFirst, 0.8),
            Beyond(MinimiseCalls, -8.0),
            Of(ReuseKnown, -0.5),
            Of(BeBrief, -0.6),
        ],
    },
    Law {
        behaviour: Behaviour::ReadFurther,
        base: 2.3,
        competence: 3.0,
        effects: &[
            Of(LookUpFirst, 1.0),
            Of(NeverGuess, 0.8),
            Of(ExhaustOptions, 0.6),
            Beyond(MinimiseCalls, -7.0),
            Of(ReuseKnown, -0.5),
            Of(BeBrief, -0.6),
        ],
    },
    Law {
        behaviour: Behaviour::TellApart,
        base: 0.4,
        competence: 4.0,
        effects: &[
            Of(NeverGuess, 0.6),
            Both(NeverGuess, LookUpFirst, 3.0),
            Of(PlanSteps, 0.4),
            Of(ExhaustOptions, 0.2),
            Of(MinimiseCalls, -1.6),
        ],
    },
    Law {
        behaviour: Behaviour::SeeObstacle,
        base: 0.6,
        competence: 6.0,
        effects: &[
            Of(CheckEligibility, 0.9),
            Both(CheckEligibility, LookUpFirst, 2.8),
            Of(PlanSteps, 0.4),
            Of(BeBrief, -0.5),
        ],
    },
    Law {
        behaviour: Behaviour::MisreadRule,
        base: -3.6,
        competence: -3.0,
        effects: &[
            Beyond(CheckEligibility, 10.0),
            Both(CheckEligibility, LookUpFirst, -2.0),
            Of(ExhaustOptions, -0.5),
        ],
    },
    Law {
        behaviour: Behaviour::Propose,
        base: 0.4,
        competence: 2.0,
        effects: &[Of(ConfirmWrites, 3.0), Of(BeBrief, -0.5), Of(MinimiseCalls, -0.2)],
    },
    Law {
        behaviour: Behaviour::Slip,
        base: -1.9,
        competence: -6.0,
        effects: &[
            Of(PlanSteps, -0.6),
            Both(PlanSteps, LookUpFirst, -1.4),
            Both(PlanSteps, BeBrief, 1.8),
            Of(NeverGuess, -0.6),
            Of(BeBrief, 0.5),
        ],
    },
    Law {
        behaviour: Behaviour::Tell,
        base: 1.9,
        competence: 3.0,
        effects: &[
            Of(Summarise, 1.8),
            Both(Summarise, BeBrief, -1.2),
            Of(CheckEligibility, 0.4),
            Of(BeBrief, -1.3),
        ],
    },
    Law {
        behaviour: Behaviour::HandOverWhenDue,
        base: 0.5,
        competence: 3.0,
        effects: &[
            Of(TransferByPolicy, 0.8),
            Both(TransferByPolicy, CheckEligibility, 2.4),
            Of(CheckEligibility, 0.2),
            Beyond(ExhaustOptions, -4.5),
        ],
    },
    Law {
        behaviour: Behaviour::GiveUp,
        base: 1.25,
        competence: -4.0,
        effects: &[
            Of(ExhaustOptions, -0.1),
            Both(ExhaustOptions, PlanSteps, -2.0),
            Of(TransferByPolicy, -0.1),
            Both(TransferByPolicy, CheckEligibility, -1.9),
            Of(LookUpFirst, -0.2),
            Of(PlanSteps, -0.1),
            Beyond(MinimiseCalls, 4.0),
        ],
    },
    Law {
        behaviour: Behaviour::Redundant,
        base: 0.9,
        competence: 4.0,
        effects: &[
            Of(ReuseKnown, -0.9),
            Both(ReuseKnown, LookUpFirst, -1.5),
            Of(MinimiseCalls, -1.4),
            Of(VerifyIdentity, 0.3),
            Of(ExhaustOptions, 0.5),
            Of(CheckEligibility, 0.7),
            Both(CheckEligibility, PlanSteps, -0.9),
            Of(LookUpFirst, 0.5),
            Of(NeverGuess, 0.4),
            Of(TransferByPolicy, 0.3),
        ],
    },
    Law {
        behaviour: Behaviour::Exert,
        base: -1.3,
        competence: 1.0,
        effects: &[
            Of(ExhaustOptions, 0.8),
            Beyond(ExhaustOptions, 5.0),
            Of(TransferByPolicy, 2.0),
        ],
    },
    Law {
        behaviour: Behaviour::WorkThrough,
        base: -0.6,
        competence: 5.0,
        effects: &[
            Of(PlanSteps, 2.4),
            Both(PlanSteps, BeBrief, -2.0),
            Of(NeverGuess, 0.5),
            Of(BeBrief, -1.2),
        ],
    },
    Law {
        behaviour: Behaviour::RefuseHarm,
        base: 0.8,
        competence: 4.0,
        effects: &[Of(Policy::RefuseHarm, 2.6), Of(HelpHarmless, -0.8)],
    },
    Law {
        behaviour: Behaviour::TakeAlarm,
        base: -0.8,
        competence: -4.0,
        effects: &[Of(Policy::RefuseHarm, 1.4), Of(HelpHarmless, -2.6)],
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
    /// The behaviour model of a language model under a system message: its instructions are what stands in the `<instructions>` tag
    /// or what DSPy's adapters give as the objective, else all of it.
    pub(super) fn read(system: &str, parameters: &Parameters) -> Self {
        let instructions = block(system, "instructions")
            .or_else(|| objective(system))
            .unwrap_or(system);
        Self::new(&Profile::read(instructions), parameters)
    }

    /// The behaviour model of a language model under a prompt.
    pub(super) fn new(profile: &Profile, parameters: &Parameters) -> Self {
        let strength = |policy| parameters.obedience * profile.strength(policy);
        let mut logits = [0.0; LAWS.len()];
        for law in &LAWS {
            let pull: f64 = law.effects.iter().map(|effect| effect.logit(strength)).sum();
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
    fn the_documentation_repeats_the_table() {
        let name = |policy| match policy {
            VerifyIdentity => "verify",
            LookUpFirst => "look up",
            ReuseKnown => "reuse",
            MinimiseCalls => "minimise",
            ConfirmWrites => "confirm",
            CheckEligibility => "eligibility",
            ExhaustOptions => "exhaust",
            TransferByPolicy => "transfer by policy",
            PlanSteps => "plan",
            BeBrief => "brief",
            NeverGuess => "never guess",
            Summarise => "summarise",
            Policy::RefuseHarm => "refuse harm",
            HelpHarmless => "help harmless",
        };
        let effect = |effect: &Effect| match *effect {
            Of(policy, effect) => format!("{} {effect:+.1}", name(policy)),
            Both(one, other, effect) => format!("{} × {} {effect:+.1}", name(one), name(other)),
            Beyond(policy, effect) => format!("{} > {FIRM} {effect:+.1}", name(policy)),
        };
        let expected = LAWS.map(|law| {
            let effects: Vec<String> = law.effects.iter().map(effect).collect();
            let row = format!("{} | {} | {} |", law.base, law.competence, effects.join(", "));
            row.replace('-', "−")
        });
        let page = include_str!("../../../../docs/simulated-world.md");
        let (_, table) = page.split_once("effects of policies |\n").unwrap();
        let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
        let rows: Vec<&str> = rows.map(|row| row.splitn(3, "| ").nth(2).unwrap()).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn instructions_change_behaviour_and_have_their_price() {
        let plain = "You are a customer service agent.";
        let exhaust =
            "Try every option before you transfer to a human. Plan the steps before the first call.";
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

    const VERIFY: &str = "Verify the customer's identity before anything else.";
    const LOOK_UP: &str = "Look things up with your tools before asking the customer.";
    const REUSE: &str = "Never repeat a call whose result you already have.";
    const MINIMISE: &str = "Make as few tool calls as possible.";
    const CHECK: &str = "Check that the policy allows an action before you take it.";
    const EXHAUST: &str = "Try every option before you transfer to a human.";
    const TRANSFER: &str = "Transfer to a human only when the policy requires it.";
    const PLAN: &str = "Plan the steps before the first call.";
    const BRIEF: &str = "Keep your answers short.";
    const NEVER_GUESS: &str = "Never guess an order, an item or a date.";

    /// By how much a prompt changes the rate of a behaviour of `sim-medium`.
    fn change(prompt: &str, behaviour: Behaviour) -> f64 {
        rate(prompt, "sim-medium", behaviour) - rate("", "sim-medium", behaviour)
    }

    #[test]
    fn some_instructions_do_more_together_than_each_alone() {
        for (one, other, behaviour) in [
            // Rules are checked against facts, and whoever will not guess has to know.
            (CHECK, LOOK_UP, Behaviour::SeeObstacle),
            (NEVER_GUESS, LOOK_UP, Behaviour::TellApart),
            (REUSE, LOOK_UP, Behaviour::Redundant),
            // A plan rests on facts, and makes persistence lead somewhere.
            (PLAN, LOOK_UP, Behaviour::Slip),
            (PLAN, EXHAUST, Behaviour::GiveUp),
            // Who does not check the rules does not know when they want a transfer.
            (TRANSFER, CHECK, Behaviour::GiveUp),
            (TRANSFER, CHECK, Behaviour::HandOverWhenDue),
        ] {
            let [first, second] = [one, other].map(|prompt| change(prompt, behaviour));
            let both = change(&format!("{one} {other}"), behaviour);
            assert!(
                both.abs() > first.abs().max(second.abs()) && (both - first - second).abs() > 0.03,
                "{behaviour:?} {one} {first:.2} {other} {second:.2} both {both:.2}"
            );
        }
    }

    #[test]
    fn a_plan_spares_the_calls_that_checking_costs() {
        let both = change(&format!("{PLAN} {CHECK}"), Behaviour::Redundant);
        assert!(both < change(CHECK, Behaviour::Redundant) - 0.05);
    }

    #[test]
    fn facts_keep_who_checks_firmly_from_misreading_rules() {
        let firmly = "In every case: check that the policy allows an action before you take it.";
        let [alone, informed] =
            [firmly, &format!("{firmly} {LOOK_UP}")].map(|prompt| change(prompt, Behaviour::MisreadRule));
        assert!(informed < alone - 0.05, "{informed:.2} {alone:.2}");
    }

    #[test]
    fn brevity_undoes_planning_and_summaries() {
        const SUMMARISE: &str = "At the end, summarise what was done.";
        // In logits: a rate near 1 hardly moves.
        let logit = |prompt: &str, behaviour: Behaviour| {
            BehaviourModel::new(&Profile::read(prompt), Parameters::named("sim-medium").unwrap()).logits
                [behaviour as usize]
        };
        for (prompt, behaviour) in [
            (PLAN, Behaviour::Slip),
            (PLAN, Behaviour::WorkThrough),
            (SUMMARISE, Behaviour::Tell),
        ] {
            let alone = logit(prompt, behaviour) - logit("", behaviour);
            let beside_brevity = logit(&format!("{prompt} {BRIEF}"), behaviour) - logit(BRIEF, behaviour);
            assert!(
                beside_brevity / alone < 0.6,
                "{behaviour:?} {beside_brevity:.2} {alone:.2}"
            );
        }
    }

    #[test]
    fn some_instructions_turn_over_unless_they_are_hedged() {
        for (prompt, behaviour) in [
            (VERIFY, Behaviour::AskAgain),
            (CHECK, Behaviour::MisreadRule),
            (EXHAUST, Behaviour::Exert),
            (EXHAUST, Behaviour::HandOverWhenDue),
            (MINIMISE, Behaviour::OpenRecord),
            (MINIMISE, Behaviour::ReadFurther),
            (MINIMISE, Behaviour::Verify),
            (MINIMISE, Behaviour::GiveUp),
        ] {
            let asked = |opening: &str| {
                let (first, rest) = prompt.split_at(1);
                change(&format!("{opening}{}{rest}", first.to_lowercase()), behaviour).abs()
            };
            let [softly, plainly, firmly] = ["Where possible, ", "", "In every case: "].map(asked);
            assert!(
                softly < 0.12 && plainly >= softly && firmly >= plainly && firmly > softly + 0.05,
                "{behaviour:?} {prompt} softly {softly:.2} plainly {plainly:.2} firmly {firmly:.2}"
            );
        }
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
