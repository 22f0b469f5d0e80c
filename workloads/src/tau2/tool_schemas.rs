//! Schemas of the tools, as models are offered them.

use std::rc::Rc;

use capo_core::llm::ToolSpec;
use capo_core::study::suggest;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::environment::World;
use super::tool::Tool;

/// The tools of both sides.
#[derive(Clone)]
pub(super) struct Offered {
    pub(super) agent: Rc<[ToolSpec]>,
    pub(super) user: Rc<[ToolSpec]>,
}

/// Tools as the benchmark lists them.
#[derive(Deserialize)]
struct Listed {
    assistant: Vec<ListedTool>,
    #[serde(default)]
    user: Vec<ListedTool>,
}

#[derive(Deserialize)]
struct ListedTool {
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    description: String,
    parameters: Value,
}

impl Offered {
    /// With this project's own descriptions.
    pub(super) fn of<W: World>() -> Self {
        Self {
            agent: W::agent_tools().iter().map(Tool::spec).collect(),
            user: W::user_tools().iter().map(Tool::spec).collect(),
        }
    }

    /// With those of a list, which must describe the same tools with the same arguments.
    ///
    /// # Errors
    /// What is wrong with the list.
    pub(super) fn described<W: World>(list: &[u8]) -> Result<Self, String> {
        let listed: Listed = serde_json::from_slice(list).map_err(|error| suggest(&error.to_string()))?;
        let own = Self::of::<W>();
        Ok(Self {
            agent: described(&own.agent, listed.assistant)?,
            user: described(&own.user, listed.user)?,
        })
    }
}

fn described(own: &[ToolSpec], listed: Vec<ListedTool>) -> Result<Rc<[ToolSpec]>, String> {
    let names = |names: &mut dyn Iterator<Item = &String>| -> String {
        let names: Vec<&str> = names.map(String::as_str).collect();
        names.join(", ")
    };
    let wanted = names(&mut own.iter().map(|tool| &tool.name));
    let given = names(&mut listed.iter().map(|tool| &tool.function.name));
    if wanted != given {
        return Err(format!("it describes {given}, and the tools are {wanted}"));
    }
    own.iter()
        .zip(listed)
        .map(|(own, ListedTool { function })| {
            if without_words(&own.parameters) != without_words(&function.parameters) {
                return Err(format!(
                    "the arguments of {} are {}, apart from words",
                    own.name,
                    without_words(&own.parameters)
                ));
            }
            Ok(ToolSpec {
                name: function.name,
                description: function.description,
                parameters: function.parameters,
            })
        })
        .collect()
}

/// A schema without titles and descriptions.
pub(super) fn without_words(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let is_word =
                |key: &str, value: &Value| matches!(key, "title" | "description") && value.is_string();
            let kept = fields.iter().filter(|(key, value)| !is_word(key, value));
            Value::Object(
                kept.map(|(key, value)| (key.clone(), without_words(value)))
                    .collect::<Map<String, Value>>(),
            )
        }
        Value::Array(values) => values.iter().map(without_words).collect(),
        other => other.clone(),
    }
}
