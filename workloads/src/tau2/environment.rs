//! A world and its tools, called by either side.

use serde_json::{Map, Value};

use super::changes::Changes;
pub use super::side::Side;
use super::tool::{Answer, Kind, Tool, ToolError, fail};

/// The records of a domain, with the tools that read and change them. A clone shares with its original
/// what neither changes.
pub trait World: Clone + 'static {
    /// The domain.
    const NAME: &'static str;

    /// The agent's tools, in order.
    fn agent_tools() -> &'static [Tool<Self>];

    /// The user's tools, in order.
    fn user_tools() -> &'static [Tool<Self>] {
        &[]
    }

    /// Makes the two sides agree after something happened on one of them.
    ///
    /// # Errors
    /// When they cannot.
    fn sync(&mut self) -> Result<(), ToolError> {
        Ok(())
    }

    /// Does what a task asks for before a conversation begins, with a tool or a setting.
    ///
    /// # Errors
    /// When it fails, or there is none of this name.
    fn act(&mut self, side: Side, name: &str, arguments: &Map<String, Value>) -> Answer {
        call_bare(self, side, name, arguments)
    }

    /// Whether what a task says of the end holds.
    ///
    /// # Errors
    /// When it cannot be told, or there is no such assertion.
    fn holds(&self, _side: Side, name: &str, _arguments: &Map<String, Value>) -> Result<bool, ToolError> {
        fail(format!("Assertion '{name}' not found."))
    }

    /// SHA-256 of the agent's records, as the benchmark computes it.
    fn agent_hash(&self) -> String;

    /// SHA-256 of the user's records; none where the user has none.
    fn user_hash(&self) -> Option<String> {
        None
    }

    /// Whether two worlds that began as one have equal hashes.
    fn equals(&self, other: &Self) -> bool;

    /// Tells what is otherwise than in the world that this one was cloned from.
    fn changes_since(&self, began: &Self, changes: &mut Changes);

    /// The same for a reference solution. Where the benchmark draws at random, it draws otherwise.
    #[must_use]
    fn for_reference(self) -> Self {
        self
    }
}

impl Changes {
    /// What `now` has otherwise than `began`, which it was cloned from.
    pub fn between<W: World>(began: &W, now: &W) -> Self {
        let mut changes = Self::default();
        now.changes_since(began, &mut changes);
        changes
    }
}

/// What the answer to a failed call begins with, and no other.
pub const FAILED: &str = "Error: ";

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// What the caller is told.
    pub content: String,
    /// Whether it failed.
    pub error: bool,
}

/// The tool of a name on a side.
pub fn tool<W: World>(side: Side, name: &str) -> Option<&'static Tool<W>> {
    let tools = match side {
        Side::Assistant => W::agent_tools(),
        Side::User => W::user_tools(),
    };
    tools.iter().find(|tool| tool.name == name)
}

/// Whether a call changes the world, so that a replay makes it again.
pub fn changes<W: World>(name: &str) -> bool {
    let tool = tool::<W>(Side::Assistant, name).or_else(|| tool::<W>(Side::User, name));
    tool.is_some_and(|tool| tool.kind == Kind::Write)
}

/// Calls a tool, and makes the sides agree when it succeeded. Failures are results too.
pub fn call<W: World>(world: &mut W, side: Side, name: &str, arguments: &Map<String, Value>) -> ToolResult {
    let answer = call_bare(world, side, name, arguments).and_then(|content| world.sync().map(|()| content));
    match answer {
        Ok(content) => ToolResult {
            content,
            error: false,
        },
        Err(error) => ToolResult {
            content: format!("{FAILED}{error}"),
            error: true,
        },
    }
}

/// Like [`call`], with whatever a model gave as arguments.
pub fn call_any<W: World>(world: &mut W, side: Side, name: &str, arguments: &Value) -> ToolResult {
    match arguments {
        Value::Object(arguments) => call(world, side, name, arguments),
        _ => ToolResult {
            content: format!("{FAILED}the arguments are not an object"),
            error: true,
        },
    }
}

/// Calls a tool and nothing else.
///
/// # Errors
/// When the tool fails, or the side has none of this name.
pub fn call_bare<W: World>(world: &mut W, side: Side, name: &str, arguments: &Map<String, Value>) -> Answer {
    if side == Side::User && W::user_tools().is_empty() {
        return fail("User tools not available");
    }
    match tool::<W>(side, name) {
        Some(tool) => tool.call(world, arguments),
        None => fail(format!("Tool '{name}' not found.")),
    }
}
