//! The words of the field.

/// A word of the field with its meaning: there are no others than those named here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    text: &'static str,
    meaning: &'static str,
}

#[expect(missing_docs, reason = "each says what it means")]
impl Word {
    pub const J: Self = Self::new(
        "J",
        "The score that prompts are ranked by: the objective less each constraint’s multiplier times \
         its residual. It moves with the multipliers, so values of different rounds do not compare.",
    );
    pub const LAMBDA: Self = Self::new(
        "λ",
        "A constraint’s multiplier: how much being over its threshold costs in J. The usual dual step \
         raises it after a round over the threshold and lowers it after one inside, down to 0; others \
         move it in their own way, or not at all.",
    );
    pub const THRESHOLD: Self = Self::new(
        "threshold",
        "The most that a cost’s mean over the examples may be.",
    );
    pub const SLACK: Self = Self::new(
        "slack",
        "How far inside its threshold a cost is. Where it is over, how far over.",
    );
    pub const RESIDUAL: Self = Self::new(
        "residual",
        "A cost less its threshold, divided by the constraint’s scale: above 0 it is over, at 0 or \
         below inside.",
    );
    pub const FEASIBLE: Self = Self::new(
        "feasible",
        "With every cost at or under its threshold, on the examples that are named beside it.",
    );
    pub const ROLLOUT: Self = Self::new(
        "rollout",
        "One example done once with one prompt, from the first message to the measurements.",
    );
    pub const ROUND: Self = Self::new(
        "round",
        "Some prompts are rewritten, the children measured, the multipliers moved, and the best kept.",
    );
    pub const POOL: Self = Self::new(
        "pool",
        "The prompts that are kept after a round: the next parents are drawn from them.",
    );
    pub const SEED_PROMPT: Self = Self::new("seed prompt", "The prompt that the search starts from.");
    pub const HELD_OUT: Self = Self::new(
        "held-out examples",
        "Examples that critic and rewriter never see, and by which no prompt is chosen. The best prompt \
         is measured on them at the end, again and again if the search goes on until its budget is \
         spent.",
    );

    /// Every word, in the order in which the glossary lists them.
    pub const ALL: [Self; 11] = [
        Self::J,
        Self::LAMBDA,
        Self::THRESHOLD,
        Self::SLACK,
        Self::RESIDUAL,
        Self::FEASIBLE,
        Self::ROLLOUT,
        Self::ROUND,
        Self::POOL,
        Self::SEED_PROMPT,
        Self::HELD_OUT,
    ];

    const fn new(text: &'static str, meaning: &'static str) -> Self {
        Self { text, meaning }
    }

    /// As it is written.
    pub fn text(self) -> &'static str {
        self.text
    }

    /// What it means, in a sentence or two.
    pub fn meaning(self) -> &'static str {
        self.meaning
    }

    /// Whether it is a mathematical symbol.
    pub fn is_symbol(self) -> bool {
        self.text.chars().count() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_another_one_and_explained_in_sentences() {
        for (place, word) in Word::ALL.iter().enumerate() {
            assert!(word.meaning().ends_with('.'), "{}", word.text());
            let is_same = |other: &Word| other.text() == word.text();
            assert!(!Word::ALL[..place].iter().any(is_same), "{}", word.text());
        }
    }
}
