//! What the tables and the truths of docs/simulated-world.md put to the help desk's seed prompt.

/// What the seed prompt does better without.
pub(crate) const HABIT: &str = " Keep it short.";

/// One plain sentence for each policy the world reads, by its name; none of them is the rewriter's own wording.
pub(crate) const SENTENCES: [(&str, &str); 12] = [
    (
        "verify",
        "Verify who the customer is before you do anything else.",
    ),
    (
        "look up first",
        "Look things up with your tools before you ask the customer.",
    ),
    (
        "reuse what is known",
        "Use what you already know and never repeat a call.",
    ),
    (
        "minimise calls",
        "Make as few tool calls as possible and combine them where you can.",
    ),
    (
        "confirm writes",
        "Always ask for confirmation before you change anything.",
    ),
    (
        "check eligibility",
        "Check that the rules allow an action before you take it.",
    ),
    (
        "exhaust options",
        "Try every option you have before you transfer to a human.",
    ),
    (
        "transfer by policy",
        "Transfer to a human only when the policy requires it.",
    ),
    ("plan steps", "Think step by step and plan before you act."),
    ("be brief", "Keep your answers brief."),
    ("never guess", "Never guess or make up missing information."),
    ("summarise", "At the end, summarise what was done."),
];
