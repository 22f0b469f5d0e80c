//! The tools of the help desk.
//!
//! A tool is one type: its fields are the arguments (their doc comments and types make the JSON
//! schema), its trait gives name, description and function. [`all`] lists them.

mod reading;
mod writing;

use std::sync::OnceLock;

use capo_core::llm::ToolSpec;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::language::Operation;
use super::state::State;
use crate::tool_names;

/// What a tool does to the shop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Looks something up.
    Read,
    /// Changes the shop.
    Write,
    /// Ends the dialogue by handing it to a human.
    Transfer,
}

/// Why a tool did nothing, in words for the agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(String);

impl ToolError {
    fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// The name and purpose of a tool, on the type of its arguments.
trait Declared: DeserializeOwned + JsonSchema {
    const NAME: &'static str;
    const DESCRIPTION: &'static str;
}

/// A tool that looks something up.
trait Reading: Declared {
    type Answer: Serialize;

    /// Answers. May note in the state who the customer is; changes no record.
    fn read(self, state: &mut State) -> Result<Self::Answer, ToolError>;
}

/// A tool that changes the shop.
trait Writing: Declared {
    /// What the customer must have agreed to.
    const OPERATION: Operation;

    type Answer: Serialize;

    /// The id of the record that the confirmation must name.
    fn record(&self) -> &str;

    /// The customer the record belongs to, if it exists. Most records are orders.
    fn owner<'a>(&'a self, state: &'a State) -> Option<&'a str> {
        Some(&state.order(self.record())?.customer)
    }

    /// The rule of the policy that this write breaks, seen before it happens.
    fn broken_rule(&self, state: &State) -> Option<&'static str>;

    /// Changes the shop, or fails before anything is changed.
    fn write(&self, state: &mut State) -> Result<Self::Answer, ToolError>;
}

/// What a successful call did.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Nothing.
    Looked,
    /// Changed a record.
    Wrote(Write),
    /// Handed over to a human.
    Transferred,
}

/// What the judge of a dialogue must know about a write.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// What the customer must have agreed to.
    pub operation: Operation,
    /// The id that the confirmation must name.
    pub record: String,
    /// Whether the record's owner had been verified.
    pub verified: bool,
    /// The rule of the policy that it breaks.
    pub broken_rule: Option<&'static str>,
}

/// Parses the arguments and runs the tool.
type Function = fn(&mut State, &Value) -> Result<(String, Effect), ToolError>;

/// A tool with its types erased.
#[derive(Clone)]
pub struct Tool {
    /// Unique among tools.
    pub name: &'static str,
    /// For the agent.
    pub description: &'static str,
    /// What it does to the shop.
    pub kind: Kind,
    parameters: Value,
    call: Function,
}

impl Tool {
    fn reading<T: Reading>() -> Self {
        Self::new::<T>(Kind::Read, |state, arguments| {
            let answer = parse::<T>(arguments)?.read(state)?;
            Ok((text(&answer)?, Effect::Looked))
        })
    }

    fn writing<T: Writing>() -> Self {
        Self::new::<T>(Kind::Write, |state, arguments| {
            let call = parse::<T>(arguments)?;
            let write = Write {
                operation: T::OPERATION,
                record: call.record().to_owned(),
                verified: call
                    .owner(state)
                    .is_some_and(|owner| state.verified() == Some(owner)),
                broken_rule: call.broken_rule(state),
            };
            let answer = call.write(state)?;
            Ok((text(&answer)?, Effect::Wrote(write)))
        })
    }

    fn transfer() -> Self {
        Self::new::<TransferToHuman>(Kind::Transfer, |_, arguments| {
            let TransferToHuman { reason } = parse(arguments)?;
            if reason.trim().is_empty() {
                return Err(ToolError::new("`reason` is empty; say why a human is needed"));
            }
            Ok((text(&json!({"transferred": true}))?, Effect::Transferred))
        })
    }

    fn new<T: Declared>(kind: Kind, call: Function) -> Self {
        Self {
            name: T::NAME,
            description: T::DESCRIPTION,
            kind,
            parameters: schema::<T>(),
            call,
        }
    }

    /// Calls the tool. On an error the state is as it was.
    ///
    /// # Errors
    /// When the arguments do not fit the schema, name something unknown, or ask for what the
    /// shop's software forbids.
    pub fn call(&self, state: &mut State, arguments: &Value) -> Result<(String, Effect), ToolError> {
        (self.call)(state, arguments)
    }

    /// The tool as a model is offered it.
    pub fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            parameters: self.parameters.clone(),
        }
    }
}

/// Every tool, reads first.
pub fn all() -> &'static [Tool] {
    static TOOLS: OnceLock<Vec<Tool>> = OnceLock::new();
    TOOLS.get_or_init(|| {
        vec![
            Tool::reading::<reading::VerifyIdentity>(),
            Tool::reading::<reading::GetAccount>(),
            Tool::reading::<reading::GetOrder>(),
            Tool::reading::<reading::GetShipment>(),
            Tool::reading::<reading::SearchProducts>(),
            Tool::reading::<reading::FindSlots>(),
            Tool::writing::<writing::CancelOrder>(),
            Tool::writing::<writing::ReturnItems>(),
            Tool::writing::<writing::ExchangeItem>(),
            Tool::writing::<writing::ChangeAddress>(),
            Tool::writing::<writing::BookAppointment>(),
            Tool::transfer(),
        ]
    })
}

/// The tool of a name.
///
/// # Errors
/// When there is none; the message lists the tools.
pub fn named(name: &str) -> Result<&'static Tool, ToolError> {
    all().iter().find(|tool| tool.name == name).ok_or_else(|| {
        let names: Vec<_> = all().iter().map(|tool| tool.name).collect();
        ToolError::new(format!(
            "there is no tool `{name}`; the tools are {}",
            names.join(", ")
        ))
    })
}

/// Hands the dialogue to a human.
#[derive(serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TransferToHuman {
    /// Why a human is needed, in a sentence.
    reason: String,
}

impl Declared for TransferToHuman {
    const NAME: &'static str = tool_names::TRANSFER_TO_HUMAN;
    const DESCRIPTION: &'static str = "Hand the customer over to a human and end the conversation.";
}

fn parse<T: Declared>(arguments: &Value) -> Result<T, ToolError> {
    if !arguments.is_object() {
        return Err(ToolError::new(format!(
            "the arguments of `{}` must be a JSON object",
            T::NAME
        )));
    }
    T::deserialize(arguments)
        .map_err(|error| ToolError::new(format!("wrong arguments for `{}`: {error}", T::NAME)))
}

fn text(answer: &impl Serialize) -> Result<String, ToolError> {
    serde_json::to_string(answer)
        .map_err(|error| ToolError::new(format!("the answer cannot be written: {error}")))
}

/// The object schema of the arguments, without the keys that providers do not know.
fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.remove("description");
    schema.into()
}
