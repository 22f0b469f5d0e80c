//! The simulated agent: acts in a conversation from its text and the tools on offer alone.

mod behaviour;
mod handbook;
mod help_desk_agent;
mod notes;
mod question;
mod records;
mod script;
mod speech;
mod when;
mod wish;

use capo_core::llm::{AssistantMessage, ToolCall, ToolSpec};

use super::parameters::Parameters;
use super::random::Draw;
use behaviour::BehaviourModel;
use handbook::Handbook;
use help_desk_agent::{Act, HelpDeskAgent};
pub(super) use notes::Notes;
pub use script::{KnownBehaviours, SolutionScript};

/// What an agent makes of its system message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Instructed {
    behaviours: BehaviourModel,
    handbook: Handbook,
}

impl Instructed {
    /// Reads a system message: instructions are what stands in the `<instructions>` tag or is the objective of DSPy's
    /// adapters, else all of it; rules are what stands in the `<policy>` tag.
    ///
    /// A policy is a work of reference: it tells the agent what is allowed, while how the agent
    /// goes about its work follows its instructions.
    pub(super) fn read(system: &str, parameters: &Parameters) -> Self {
        Self {
            behaviours: BehaviourModel::read(system, parameters),
            handbook: Handbook::read(system),
        }
    }

    /// The answer to a single question.
    pub(super) fn reply(&self, question: &str, draw: Draw) -> String {
        question::reply(question, &self.behaviours, draw)
    }

    /// The next message of a conversation with tools.
    pub(super) fn act(&self, notes: &Notes, tools: &[ToolSpec], draw: Draw) -> AssistantMessage {
        let agent = HelpDeskAgent {
            notes,
            behaviours: &self.behaviours,
            handbook: &self.handbook,
            tools,
            draw,
            redundant_at: Default::default(),
        };
        match agent.act() {
            Act::Say(text) => AssistantMessage {
                content: Some(text),
                tool_calls: Vec::new(),
            },
            Act::Call(calls) => AssistantMessage {
                content: agent.thinks_aloud(&calls),
                tool_calls: calls
                    .into_iter()
                    .enumerate()
                    .map(|(index, (name, arguments))| ToolCall {
                        id: format!("call-{}", notes.calls() + index),
                        name: name.to_owned(),
                        arguments,
                    })
                    .collect(),
            },
        }
    }
}
