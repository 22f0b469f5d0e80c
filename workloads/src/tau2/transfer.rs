//! The tool that hands a conversation to a human, the same in every world.

use super::tool::{Kind, Parameter, Shape, Tool, required};

/// Its name, which measurements count.
pub const NAME: &str = "transfer_to_human_agents";

pub(super) const fn tool<W>() -> Tool<W> {
    const PARAMETERS: &[Parameter] = &[required(
        "summary",
        Shape::Text,
        "What the customer wants, for the human who takes over.",
    )];
    Tool {
        name: NAME,
        kind: Kind::Generic,
        description: "Hand the customer over to a human agent, with a summary, where the policy says so or no tool \
                      can help.",
        parameters: PARAMETERS,
        run: |_, _| Ok("Transfer successful".to_owned()),
    }
}
