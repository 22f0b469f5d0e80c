//! Tasks as the benchmark's files describe them.

use std::fmt;

use capo_core::llm::ToolCall;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::environment::{Side, World};
use super::settings::ReferenceActions;

/// One task. Keys of its file that nothing here needs are not read.
#[derive(Debug, Clone, Deserialize)]
pub struct Task {
    /// Unique within the domain.
    pub id: String,
    /// What the user is told.
    pub user_scenario: Scenario,
    /// What is done to the world before the conversation.
    #[serde(default)]
    initial_state: Option<InitialState>,
    /// What earns the reward; a task without earns it by ending.
    #[serde(default)]
    pub evaluation_criteria: Option<Criteria>,
    /// The tools the user has, of those of the domain; all without.
    #[serde(default)]
    pub user_tools: Option<Vec<String>>,
}

/// What the user is told.
#[derive(Debug, Clone, Deserialize)]
pub struct Scenario {
    /// Who the user is.
    #[serde(default)]
    pub persona: Option<String>,
    /// What the user wants.
    pub instructions: Instructions,
}

impl Scenario {
    /// What the user wants and how it goes about it, without who the user is and what it knows: names and
    /// numbers that tasks share by chance.
    pub(super) fn wish(&self) -> String {
        match &self.instructions {
            Instructions::Parts(parts) => format!("{}\n{}", parts.reason_for_call, parts.task_instructions),
            Instructions::Text(text) => text.clone(),
        }
    }
}

/// What the user wants, in parts or as one text.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Instructions {
    /// In parts.
    Parts(Parts),
    /// As one text.
    Text(String),
}

/// The parts of [`Instructions`].
#[derive(Debug, Clone, Deserialize)]
pub struct Parts {
    /// The domain's name.
    pub domain: String,
    /// Why the user gets in touch.
    pub reason_for_call: String,
    /// What the user knows.
    #[serde(default)]
    pub known_info: Option<String>,
    /// What the user does not know.
    #[serde(default)]
    pub unknown_info: Option<String>,
    /// How the user behaves.
    pub task_instructions: String,
}

#[derive(Debug, Clone, Deserialize)]
struct InitialState {
    #[serde(default)]
    initialization_data: Option<Value>,
    #[serde(default)]
    initialization_actions: Option<Vec<Setting>>,
    #[serde(default)]
    message_history: Option<Vec<Value>>,
}

/// Something done to the world before the conversation.
#[derive(Debug, Clone, Deserialize)]
struct Setting {
    env_type: Side,
    func_name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// What earns the reward.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Criteria {
    /// One right way; none where the world is not compared.
    pub actions: Option<Vec<Action>>,
    /// What must hold at the end; none where the world is not compared.
    pub env_assertions: Option<Vec<Assertion>>,
    /// What the agent must have said.
    pub communicate_info: Option<Vec<String>>,
    /// What a judge must find in the conversation.
    pub nl_assertions: Option<Vec<String>>,
    /// Which of it counts.
    #[serde(default = "usual_basis")]
    pub reward_basis: Vec<Basis>,
}

fn usual_basis() -> Vec<Basis> {
    vec![Basis::Db, Basis::Communicate]
}

/// A part of the reward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Basis {
    /// The records are those the reference leaves.
    Db,
    /// What the task says of the end holds.
    EnvAssertion,
    /// Every reference action was made.
    Action,
    /// Everything was said.
    Communicate,
    /// A judge found everything.
    NlAssertion,
}

impl Basis {
    /// As the benchmark's files write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Db => "DB",
            Self::EnvAssertion => "ENV_ASSERTION",
            Self::Action => "ACTION",
            Self::Communicate => "COMMUNICATE",
            Self::NlAssertion => "NL_ASSERTION",
        }
    }
}

/// A call of the reference solution.
#[derive(Debug, Clone, Deserialize)]
pub struct Action {
    /// Unique within the task.
    pub action_id: String,
    /// Who calls.
    #[serde(default = "agent")]
    pub requestor: Side,
    /// The tool.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The arguments that are compared; those of the compared call without.
    #[serde(default)]
    pub compare_args: Option<Vec<String>>,
}

impl Action {
    /// As a model makes it, without an id.
    pub fn to_call(&self) -> ToolCall {
        ToolCall {
            id: String::new(),
            name: self.name.clone(),
            arguments: Value::Object(self.arguments.clone()),
        }
    }
}

fn agent() -> Side {
    Side::Assistant
}

/// Something that must hold at the end.
#[derive(Debug, Clone, Deserialize)]
pub struct Assertion {
    /// Whose side it is asked of.
    pub env_type: Side,
    /// Its name.
    pub func_name: String,
    /// What it is asked with.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// What it must give.
    #[serde(default = "yes")]
    pub assert_value: bool,
}

fn yes() -> bool {
    true
}

/// Why a task cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("task `{task}`: {problem}")]
pub struct TaskError {
    task: String,
    problem: String,
}

impl Task {
    fn error(&self, problem: impl fmt::Display) -> TaskError {
        TaskError {
            task: self.id.clone(),
            problem: problem.to_string(),
        }
    }

    /// The world as it is when the conversation begins.
    ///
    /// # Errors
    /// When it asks for records or a conversation to begin with, which no task of these domains does, or
    /// when what is done to the world fails.
    pub fn set_up<W: World>(&self, fresh: &W) -> Result<W, TaskError> {
        let mut world = fresh.clone();
        let Some(state) = &self.initial_state else {
            return Ok(world);
        };
        if state.initialization_data.is_some() {
            return Err(self.error("`initialization_data` is not supported; leave it out with `exclude`"));
        }
        if state
            .message_history
            .as_ref()
            .is_some_and(|history| !history.is_empty())
        {
            return Err(self.error("`message_history` is not supported; leave it out with `exclude`"));
        }
        for setting in state.initialization_actions.iter().flatten() {
            let done = world.act(setting.env_type, &setting.func_name, &setting.arguments);
            done.map_err(|error| self.error(format!("{}: {error}", setting.func_name)))?;
            world.sync().map_err(|error| self.error(error))?;
        }
        world.sync().map_err(|error| self.error(error))?;
        Ok(world)
    }

    /// The reference solution, both sides' calls.
    pub fn reference(&self) -> &[Action] {
        let criteria = self.evaluation_criteria.as_ref();
        criteria
            .and_then(|criteria| criteria.actions.as_deref())
            .unwrap_or_default()
    }

    /// How many actions of the reference solution count.
    pub fn reference_actions(&self, counted: ReferenceActions) -> usize {
        let counts = |action: &&Action| match counted {
            ReferenceActions::All => true,
            ReferenceActions::Agent => action.requestor == Side::Assistant,
        };
        self.reference().iter().filter(counts).count()
    }

    /// What a judge must be asked, where that counts.
    pub fn judged(&self) -> Option<&[String]> {
        let criteria = self.evaluation_criteria.as_ref()?;
        let asked = criteria.nl_assertions.as_deref()?;
        let counts = criteria.reward_basis.contains(&Basis::NlAssertion);
        (counts && !asked.is_empty()).then_some(asked)
    }
}
