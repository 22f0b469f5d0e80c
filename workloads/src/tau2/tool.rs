//! Tools: name, arguments, kind and function in one place, called as the benchmark calls them.
//!
//! Arguments are bound like Python's keywords and not checked against their schema: what does not fit
//! fails where it is first used, or not at all.

use capo_core::llm::ToolSpec;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::python;

/// What a tool does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Looks something up.
    Read,
    /// Changes something; replaying a conversation calls it again.
    Write,
    /// Neither.
    Generic,
}

impl Kind {
    /// As the benchmark's files write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Generic => "generic",
        }
    }
}

/// Why a call failed, as the model is told after `Error: `.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub(super) String);

/// What a call gives: the content of its result, or why it failed.
pub type Answer = Result<String, ToolError>;

/// Fails with these words.
pub(super) fn fail<T>(message: impl Into<String>) -> Result<T, ToolError> {
    Err(ToolError(message.into()))
}

/// A tool of the world `W`.
#[derive(Debug)]
pub struct Tool<W> {
    /// Unique on its side.
    pub name: &'static str,
    /// What it does to the world.
    pub kind: Kind,
    /// For the model.
    pub description: &'static str,
    /// In order.
    pub parameters: &'static [Parameter],
    /// What it does.
    pub run: fn(&mut W, &Call) -> Answer,
}

/// An argument of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its keyword.
    pub name: &'static str,
    /// For the model.
    pub description: &'static str,
    /// What it should be.
    pub shape: Shape,
    /// Whether a call must have it.
    pub required: bool,
    /// What it is when it is left out; null without.
    pub default: Option<i64>,
}

/// What an argument should be.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// One of these texts, declared as a type of this name, or any text.
    OneOfOrText(&'static str, &'static [&'static str]),
    /// A list of texts.
    Texts,
    /// An object of this type, or any.
    Object(&'static Declared),
    /// A list of [`Shape::Object`].
    Objects(&'static Declared),
}

/// A type of objects among a tool's arguments.
#[derive(Debug)]
pub struct Declared {
    /// Its name in `$defs`.
    pub name: &'static str,
    /// The schema, as a function of nothing because JSON is no constant, with the types it refers to.
    pub schema: fn() -> Value,
    /// Types that its schema refers to, each with its schema.
    pub others: fn() -> Map<String, Value>,
}

/// A required argument.
pub(super) const fn required(name: &'static str, shape: Shape, description: &'static str) -> Parameter {
    Parameter {
        name,
        description,
        shape,
        required: true,
        default: None,
    }
}

impl<W> Tool<W> {
    /// The tool as a model is offered it.
    pub fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            parameters: self.schema(),
        }
    }

    /// The object schema of the arguments.
    fn schema(&self) -> Value {
        let mut types = Map::new();
        let mut properties = Map::new();
        let mut required = Vec::new();
        for parameter in self.parameters {
            let mut schema = parameter.shape.schema(&mut types);
            schema.insert("description".to_owned(), parameter.description.into());
            if let Some(default) = parameter.default {
                schema.insert("default".to_owned(), default.into());
            }
            if parameter.required {
                required.push(parameter.name);
            }
            properties.insert(parameter.name.to_owned(), Value::Object(schema));
        }
        let mut schema = Map::new();
        if !types.is_empty() {
            schema.insert("$defs".to_owned(), Value::Object(types));
        }
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        schema.insert("type".to_owned(), "object".into());
        Value::Object(schema)
    }

    /// Binds the arguments and runs the tool.
    ///
    /// # Errors
    /// Why it failed; nothing has changed then, unless the function says otherwise.
    pub fn call(&self, world: &mut W, arguments: &Map<String, Value>) -> Answer {
        let call = Call::bind(self.name, self.parameters, arguments)?;
        (self.run)(world, &call)
    }
}

impl Shape {
    fn schema(self, types: &mut Map<String, Value>) -> Map<String, Value> {
        let any_object = json!({ "additionalProperties": true, "type": "object" });
        let schema = match self {
            Self::Text => json!({ "type": "string" }),
            Self::Integer => json!({ "type": "integer" }),
            Self::Number => json!({ "type": "number" }),
            Self::OneOf(texts) => json!({ "enum": texts, "type": "string" }),
            Self::OneOfOrText(name, texts) => {
                types.insert(name.to_owned(), json!({ "enum": texts, "type": "string" }));
                json!({ "anyOf": [{ "$ref": format!("#/$defs/{name}") }, { "type": "string" }] })
            }
            Self::Texts => json!({ "items": { "type": "string" }, "type": "array" }),
            Self::Object(of) => json!({ "anyOf": [of.declare(types), any_object] }),
            Self::Objects(of) => {
                json!({ "items": { "anyOf": [of.declare(types), any_object] }, "type": "array" })
            }
        };
        match schema {
            Value::Object(schema) => schema,
            _ => Map::new(),
        }
    }
}

impl Declared {
    /// Adds the type and those it needs, and refers to it.
    fn declare(&self, types: &mut Map<String, Value>) -> Value {
        types.extend((self.others)());
        types.insert(self.name.to_owned(), (self.schema)());
        json!({ "$ref": format!("#/$defs/{}", self.name) })
    }
}

/// The arguments of one call, bound to the parameters of its tool.
#[derive(Debug)]
pub struct Call<'a> {
    tool: &'static str,
    parameters: &'static [Parameter],
    arguments: &'a Map<String, Value>,
}

impl<'a> Call<'a> {
    pub(super) fn bind(
        tool: &'static str,
        parameters: &'static [Parameter],
        arguments: &'a Map<String, Value>,
    ) -> Result<Self, ToolError> {
        let call = Self {
            tool,
            parameters,
            arguments,
        };
        let mut pairs = arguments.keys().zip(parameters);
        if arguments.len() == parameters.len() && pairs.all(|(name, parameter)| name == parameter.name) {
            return Ok(call);
        }
        let is_known = |name: &String| parameters.iter().any(|parameter| parameter.name == name);
        if let Some(unknown) = arguments.keys().find(|name| !is_known(name)) {
            return fail(format!("{tool}() got an unexpected keyword argument '{unknown}'"));
        }
        let is_missing =
            |parameter: &&Parameter| parameter.required && find(arguments, parameter.name).is_none();
        let missing: Vec<String> = parameters
            .iter()
            .filter(is_missing)
            .map(|parameter| format!("'{}'", parameter.name))
            .collect();
        if !missing.is_empty() {
            return fail(format!("{tool}() is missing {}", missing.join(", ")));
        }
        Ok(call)
    }

    /// An argument as it was given, or its default.
    pub(super) fn value(&self, name: &str) -> Value {
        let default = || {
            let parameter = self.parameters.iter().find(|parameter| parameter.name == name)?;
            parameter.default.map(Value::from)
        };
        find(self.arguments, name)
            .cloned()
            .or_else(default)
            .unwrap_or_default()
    }

    /// An argument as it was given; null for one that was left out.
    pub(super) fn given(&self, name: &str) -> &'a Value {
        find(self.arguments, name).unwrap_or(&Value::Null)
    }

    /// An argument that something is looked up by. What is no text finds nothing.
    ///
    /// # Errors
    /// For a list or an object, which Python cannot hash.
    pub(super) fn key(&self, name: &str) -> Result<Key<'a>, ToolError> {
        Key::new(self.given(name))
    }

    /// An argument that must be a text.
    pub(super) fn text(&self, name: &str) -> Result<&'a str, ToolError> {
        match self.given(name) {
            Value::String(text) => Ok(text),
            other => fail(format!(
                "{}(): {name} should be a text, not {}",
                self.tool,
                python::repr(other)
            )),
        }
    }

    /// A list of objects, each read as a `T`. Like the benchmark, it lets a list of anything else pass,
    /// which then fails where it is used.
    ///
    /// # Errors
    /// What cannot be gone through, and objects that are no `T`.
    pub(super) fn objects<T: DeserializeOwned>(&self, name: &'static str) -> Result<Objects<T>, ToolError> {
        let raw = |len| Objects::Raw {
            tool: self.tool,
            name,
            len,
        };
        let values = match self.given(name) {
            Value::Array(values) => values,
            Value::String(text) if !text.is_empty() => return Ok(raw(text.chars().count())),
            Value::Object(fields) if !fields.is_empty() => return Ok(raw(fields.len())),
            Value::String(_) | Value::Object(_) => return Ok(Objects::Read(Vec::new())),
            other => {
                return fail(format!(
                    "{}(): {name} should be a list, not {}",
                    self.tool,
                    python::repr(other)
                ));
            }
        };
        if !values.iter().all(Value::is_object) {
            return Ok(raw(values.len()));
        }
        let read: Result<Vec<T>, _> = values.iter().map(|value| T::deserialize(value)).collect();
        match read {
            Ok(read) => Ok(Objects::Read(read)),
            Err(error) => fail(format!("{}(): {name}: {error}", self.tool)),
        }
    }
}

/// An argument. There are few, and to compare a name costs less than to hash it.
fn find<'a>(arguments: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let mut arguments = arguments.iter();
    arguments.find_map(|(key, value)| (key == name).then_some(value))
}

/// An argument that should be a list of objects.
#[derive(Debug)]
pub(super) enum Objects<T> {
    Read(Vec<T>),
    /// A list of other things, of this length.
    Raw {
        tool: &'static str,
        name: &'static str,
        len: usize,
    },
}

impl<T> Objects<T> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Read(objects) => objects.len(),
            Self::Raw { len, .. } => *len,
        }
    }

    /// The objects, where they are used.
    ///
    /// # Errors
    /// When they are none.
    pub(super) fn read(self) -> Result<Vec<T>, ToolError> {
        match self {
            Self::Read(objects) => Ok(objects),
            Self::Raw { tool, name, .. } => fail(format!("{tool}(): {name} should be a list of objects")),
        }
    }
}

/// What something is looked up by.
#[derive(Debug, Clone, Copy)]
pub(super) enum Key<'a> {
    Text(&'a str),
    /// No id is anything else.
    Other(&'a Value),
}

impl<'a> Key<'a> {
    /// A key of a Python `dict`.
    ///
    /// # Errors
    /// For a list or an object, which Python cannot hash.
    pub(super) fn new(value: &'a Value) -> Result<Self, ToolError> {
        match value {
            Value::Array(_) => fail("unhashable type: 'list'"),
            Value::Object(_) => fail("unhashable type: 'dict'"),
            _ => Ok(value.into()),
        }
    }

    /// The text that ids are compared with.
    pub(super) fn id(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Other(_) => None,
        }
    }
}

impl<'a> From<&'a Value> for Key<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            other => Self::Other(other),
        }
    }
}

impl<'a> From<&'a str> for Key<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl std::fmt::Display for Key<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Text(text) => formatter.write_str(text),
            Self::Other(value) => formatter.write_str(&python::text(value)),
        }
    }
}
