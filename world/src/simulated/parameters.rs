//! The simulated models there are, and what makes them differ.

/// What one simulated model is like. Prices are fictional; they exist so that budgets in dollars
/// can be tried out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// The name used in study files, such as `sim-medium`.
    pub name: &'static str,
    /// One sentence for people who choose a model.
    pub description: &'static str,
    /// How often it gets things right of its own accord, in [0, 1].
    pub competence: f64,
    /// Share of a prompt's asked-for strength that reaches its behaviour, in [0, 1].
    pub obedience: f64,
    /// Standard deviation, in logits, of the mood in which it makes each decision.
    pub noise: f64,
    /// Tokens of input it can read.
    pub context_window: u64,
    /// US dollars for a million tokens read.
    pub usd_per_million_input: f64,
    /// US dollars for a million tokens written.
    pub usd_per_million_output: f64,
    /// Simulated seconds before the first token.
    pub seconds_to_start: f64,
    /// Simulated tokens written a second.
    pub tokens_per_second: f64,
}

/// Every simulated model, smallest first.
pub const MODELS: [Parameters; 3] = [
    Parameters {
        name: "sim-small",
        description: "Quick and cheap; forgets look-ups, follows instructions loosely.",
        competence: 0.55,
        obedience: 0.75,
        noise: 0.6,
        context_window: 16_384,
        usd_per_million_input: 0.05,
        usd_per_million_output: 0.20,
        seconds_to_start: 0.25,
        tokens_per_second: 180.0,
    },
    Parameters {
        name: "sim-medium",
        description: "The default: sensible, sometimes redundant, follows most instructions.",
        competence: 0.72,
        obedience: 0.9,
        noise: 0.4,
        context_window: 32_768,
        usd_per_million_input: 0.25,
        usd_per_million_output: 1.00,
        seconds_to_start: 0.5,
        tokens_per_second: 110.0,
    },
    Parameters {
        name: "sim-large",
        description: "Careful and obedient, slower and dearer; checks more than it needs to.",
        competence: 0.86,
        obedience: 0.97,
        noise: 0.25,
        context_window: 131_072,
        usd_per_million_input: 1.25,
        usd_per_million_output: 5.00,
        seconds_to_start: 0.9,
        tokens_per_second: 60.0,
    },
];

impl Parameters {
    /// The model of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        MODELS.iter().find(|model| model.name == name)
    }
}
