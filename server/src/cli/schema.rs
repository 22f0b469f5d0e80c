//! `capo schema`: what editors check study files by.

use capo_core::llm::Role;
use capo_core::methods;
use capo_core::study::Study;
use schemars::Schema;
use serde_json::{Map, Value, json};

use super::failure::{Ending, Failure, print_data};

pub(crate) fn run() -> Result<Ending, Failure> {
    print_data(&format!("{:#}\n", study()?))?;
    Ok(Ending::Done)
}

/// The schema of a whole study. A table of `[method]` may have the keys of any one method.
fn study() -> Result<Value, Failure> {
    let mut definitions = Map::new();
    let model = within(capo_models::schema(), &mut definitions);
    let methods = methods::ALL.iter().map(|entry| {
        let schema = methods::schema(entry.name).map_err(|error| Failure::new(error.to_string()))?;
        let mut method = within(schema, &mut definitions);
        method["title"] = entry.name.into();
        method["additionalProperties"] = false.into();
        Ok(method)
    });
    let methods: Value = methods.collect::<Result<_, Failure>>()?;
    let workloads: Value = capo_workloads::schemas().into_iter().map(workload).collect();
    definitions.insert("Model".to_owned(), model);

    let mut schema = schemars::schema_for!(Study).to_value();
    let tables = &mut schema["properties"];
    tables["workload"]["oneOf"] = workloads;
    tables["method"]["anyOf"] = methods;
    tables["models"]["properties"] = roles();
    tables["models"]["additionalProperties"] = false.into();
    if let Some(own) = schema["$defs"].as_object_mut() {
        own.extend(definitions);
    }
    Ok(schema)
}

/// The tables of models, by role.
fn roles() -> Value {
    let of = |role: Role| (role.name().to_owned(), json!({ "$ref": "#/$defs/Model" }));
    Role::ALL.into_iter().map(of).collect()
}

/// The schema of a kind's table, its name included.
fn workload((kind, schema): (&'static str, Schema)) -> Value {
    let mut table = schema.to_value();
    let mut required = table["required"].as_array().cloned().unwrap_or_default();
    required.push("kind".into());
    table["title"] = kind.into();
    table["required"] = required.into();
    table["properties"]["kind"] = json!({ "description": "Names the workload.", "const": kind });
    table
}

/// A schema as a part of another one, which takes its definitions.
fn within(schema: Schema, definitions: &mut Map<String, Value>) -> Value {
    let mut schema = schema.to_value();
    if let Some(keywords) = schema.as_object_mut() {
        keywords.shift_remove("$schema");
        if let Some(Value::Object(own)) = keywords.shift_remove("$defs") {
            definitions.extend(own);
        }
    }
    schema
}
