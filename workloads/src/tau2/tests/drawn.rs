//! Calls of a world's tools as a model could make them, and worse ones, drawn from bytes.
//!
//! A call's arguments follow the tool's schema, and their values stand near each other in the records: those
//! of one record and of the ones that it refers to. Some calls are then spoiled. The fuzz target draws them too.

use std::collections::{BTreeMap, HashMap};

use arbitrary::{Result, Unstructured};
use serde_json::{Map, Value};

use super::{Side, World};

/// The most calls in a row.
const MOST: usize = 40;
/// How deep JSON lies that follows no schema.
const DEEPEST: usize = 6;
/// A list is repeated at most this often; its elements may be whole records.
const MOST_ELEMENTS: usize = 256;
/// Something stands in a row at most 2 to the power of this times.
const LONGEST: u32 = 13;

/// A call to be made.
#[derive(Debug, Clone)]
pub(crate) struct Drawn {
    pub(crate) by: Side,
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

impl Drawn {
    /// The same booking for the price that its answer asks for.
    pub(crate) fn for_its_price(&self, answer: &str) -> Option<Self> {
        let (price, _) = answer.split_once("total price is ")?.1.split_once(',')?;
        let mut booking = self.clone();
        let payments = booking.arguments.get_mut("payment_methods")?.as_array_mut()?;
        payments.truncate(1);
        let payment = payments.first_mut()?.as_object_mut()?;
        payment.insert("amount".to_owned(), price.parse::<i64>().ok()?.into());
        Some(booking)
    }
}

/// What calls are drawn from.
pub(crate) struct Source {
    tools: Vec<(Side, &'static str, Value)>,
    /// Records with what their kind is called.
    records: Vec<(String, Value)>,
    /// Their places by id.
    places: HashMap<String, usize>,
}

/// Values by the name of their field.
type Values = BTreeMap<String, Vec<Value>>;

impl Source {
    /// The tools of a world and its records: objects by id or lists whose first field is the id, by kind.
    pub(crate) fn new<W: World>(records: &Value) -> Self {
        let mut source = Self {
            tools: Vec::new(),
            records: Vec::new(),
            places: HashMap::new(),
        };
        for (side, tools) in [(Side::Assistant, W::agent_tools()), (Side::User, W::user_tools())] {
            let tools = tools.iter().map(|tool| (side, tool.name, tool.spec().parameters));
            source.tools.extend(tools);
        }
        for (kind, group) in records.as_object().into_iter().flatten() {
            match group {
                Value::Array(records) => {
                    for record in records {
                        let id = record[format!("{}_id", singular(kind))].as_str();
                        source.add(id.unwrap_or_default(), kind, record);
                    }
                }
                Value::Object(records) if records.values().all(Value::is_object) => {
                    for (id, record) in records {
                        source.add(id, kind, record);
                    }
                }
                record => source.add(kind, kind, record),
            }
        }
        source
    }

    fn add(&mut self, id: &str, kind: &str, record: &Value) {
        self.places.insert(id.to_owned(), self.records.len());
        self.records.push((kind.to_owned(), record.clone()));
    }

    /// Draws calls until the bytes are used up.
    pub(crate) fn calls(&self, bytes: &[u8]) -> Vec<Drawn> {
        let mut draw = Draw {
            source: self,
            bytes: Unstructured::new(bytes),
            values: Values::new(),
        };
        let mut calls = Vec::new();
        while !draw.bytes.is_empty() && calls.len() < MOST {
            match draw.call() {
                Ok(call) => calls.push(call),
                Err(_) => break,
            }
        }
        calls
    }

    /// The values of a record and of those that it refers to.
    fn around(&self, place: usize) -> Values {
        let mut values = Values::new();
        let (kind, record) = &self.records[place];
        gather(kind, record, &mut values);
        let mut referred: Vec<usize> = values
            .values()
            .flatten()
            .filter_map(|value| self.places.get(value.as_str()?).copied())
            .filter(|other| *other != place)
            .collect();
        referred.sort_unstable();
        referred.dedup();
        for other in referred {
            let (kind, record) = &self.records[other];
            gather(kind, record, &mut values);
        }
        values
    }
}

/// Adds all values below `value`, the keys of maps included.
fn gather(field: &str, value: &Value, values: &mut Values) {
    match value {
        Value::Array(elements) => {
            for element in elements {
                gather(singular(field), element, values);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                if singular(field) != field {
                    gather(singular(field), &name.as_str().into(), values);
                }
                gather(name, value, values);
            }
        }
        scalar => values.entry(field.to_owned()).or_default().push(scalar.clone()),
    }
}

fn singular(name: &str) -> &str {
    name.strip_suffix('s').unwrap_or(name)
}

struct Draw<'a> {
    source: &'a Source,
    bytes: Unstructured<'a>,
    /// What the next calls are about.
    values: Values,
}

impl Draw<'_> {
    fn one_in(&mut self, times: u8) -> Result<bool> {
        self.bytes.ratio(1, times)
    }

    fn call(&mut self) -> Result<Drawn> {
        if self.values.is_empty() || self.one_in(4)? {
            let place = self.bytes.choose_index(self.source.records.len())?;
            self.values = self.source.around(place);
        }
        let (by, name, schema) = self.bytes.choose(&self.source.tools)?;
        let mut call = Drawn {
            by: *by,
            name: (*name).to_owned(),
            arguments: self.following(name, schema, schema)?,
        };
        if self.one_in(5)? {
            self.spoil(&mut call)?;
        }
        Ok(call)
    }

    /// A value that follows a schema, whose types are those of `root`.
    fn following(&mut self, name: &str, schema: &Value, root: &Value) -> Result<Value> {
        if let Some(choices) = schema["anyOf"].as_array() {
            let choice = if self.one_in(8)? {
                self.bytes.choose_index(choices.len())?
            } else {
                0
            };
            return self.following(name, &choices[choice], root);
        }
        if let Some(target) = schema["$ref"].as_str() {
            let target = target.trim_start_matches('#');
            return match root.pointer(target) {
                Some(schema) => self.following(name, schema, root),
                None => self.anything(0),
            };
        }
        if let Some(values) = schema["enum"].as_array() {
            return Ok(self.bytes.choose(values)?.clone());
        }
        match schema["type"].as_str() {
            Some("object") => {
                let mut object = Map::new();
                for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                    object.insert(name.clone(), self.following(name, property, root)?);
                }
                Ok(Value::Object(object))
            }
            Some("array") => {
                let mut elements = Vec::new();
                for _ in 0..*self.bytes.choose(&[1, 1, 2, 0, 3])? {
                    elements.push(self.following(singular(name), &schema["items"], root)?);
                }
                Ok(elements.into())
            }
            Some("integer" | "number") => self.number(name),
            Some("boolean") => Ok(self.bytes.arbitrary::<bool>()?.into()),
            Some("string") => self.text(name, schema["description"].as_str().unwrap_or_default()),
            _ => Ok(Value::Null),
        }
    }

    /// A value of the records whose field is called so, or nearly so.
    fn recorded(&mut self, name: &str, fits: fn(&Value) -> bool) -> Result<Option<Value>> {
        let is_loose = self.one_in(8)?;
        let is_near = |field: &str| {
            field == name
                || (is_loose || !self.values.contains_key(name))
                    && (name.ends_with(field) || field.ends_with(name) || name.starts_with(field))
        };
        let values: Vec<&Value> = self
            .values
            .iter()
            .filter(|(field, _)| is_near(field))
            .flat_map(|(_, values)| values)
            .filter(|value| fits(value))
            .collect();
        if values.is_empty() {
            return Ok(None);
        }
        Ok(Some((*self.bytes.choose(&values)?).clone()))
    }

    fn text(&mut self, name: &str, description: &str) -> Result<Value> {
        const TOKENS: [&str; 16] = [
            "2", "10", "0.5", "7.", "(", ")", "**", "//", "+", "-", "*", "/", " ", "99999", "0", ".",
        ];
        if name == "expression" {
            let mut expression = String::new();
            for _ in 0..self.bytes.int_in_range(1..=12)? {
                expression.push_str(&self.bytes.choose(&TOKENS)?.repeat(self.times()?));
            }
            return Ok(expression.into());
        }
        if let Some(value) = self.recorded(name, Value::is_string)? {
            return Ok(value);
        }
        let examples: Vec<&str> = description.split('`').skip(1).step_by(2).collect();
        if examples.is_empty() || self.one_in(8)? {
            return self.letters().map(Value::from);
        }
        Ok((*self.bytes.choose(&examples)?).into())
    }

    fn number(&mut self, name: &str) -> Result<Value> {
        match self.bytes.int_in_range(0..=7)? {
            0 => Ok((*self.bytes.choose(&[i64::MIN, i64::MIN + 8, i64::MAX, -1])?).into()),
            1 => Ok((*self.bytes.choose(&[1.5, 2.0, -0.0, 1e308, -1e16, 1e-7])?).into()),
            2 => self.bytes.int_in_range(-2..=200).map(Value::from),
            3 | 4 => {
                let recorded = self.recorded(name, Value::is_number)?;
                Ok(recorded.unwrap_or_else(|| u64::MAX.into()))
            }
            _ => self.bytes.int_in_range(0..=3).map(Value::from),
        }
    }

    fn letters(&mut self) -> Result<String> {
        let mut text = String::new();
        for _ in 0..self.bytes.int_in_range(0..=8)? {
            text.push(if self.one_in(4)? {
                self.bytes.arbitrary()?
            } else {
                char::from(self.bytes.int_in_range(b' '..=b'~')?)
            });
        }
        Ok(text.repeat(self.times()?))
    }

    /// How often something stands in a row: mostly once, sometimes thousands of times, so that few bytes draw
    /// long texts and lists.
    fn times(&mut self) -> Result<usize> {
        Ok(if self.one_in(16)? {
            1 << self.bytes.int_in_range(0..=LONGEST)?
        } else {
            1
        })
    }

    /// JSON that follows no schema.
    fn anything(&mut self, depth: usize) -> Result<Value> {
        let shallow = if depth < DEEPEST { 7 } else { 5 };
        Ok(match self.bytes.int_in_range(0..=shallow)? {
            0 => Value::Null,
            1 => self.bytes.arbitrary::<bool>()?.into(),
            2 => self.bytes.arbitrary::<i64>()?.into(),
            3 => self.bytes.arbitrary::<f64>()?.into(),
            4 => self.letters()?.into(),
            5 => {
                let record = self.bytes.choose(&self.source.records)?;
                record.1.get(0).unwrap_or(&record.1).clone()
            }
            6 => {
                let mut elements = Vec::new();
                for _ in 0..self.bytes.int_in_range(0..=4)? {
                    elements.push(self.anything(depth + 1)?);
                }
                if depth == 0 {
                    let times = self.times()?.min(MOST_ELEMENTS);
                    elements = vec![elements; times].concat();
                }
                elements.into()
            }
            _ => {
                let mut fields = Map::new();
                for _ in 0..self.bytes.int_in_range(0..=4)? {
                    fields.insert(self.letters()?, self.anything(depth + 1)?);
                }
                fields.into()
            }
        })
    }

    /// Makes a call that may be wrong.
    fn spoil(&mut self, call: &mut Drawn) -> Result<()> {
        match self.bytes.int_in_range(0..=9)? {
            0 => call.name = self.letters()?,
            1 => call.by = call.by.other(),
            2 => call.arguments = self.anything(0)?,
            kind => {
                let Some(arguments) = call.arguments.as_object_mut() else {
                    return Ok(());
                };
                if kind == 3 {
                    arguments.insert(self.letters()?, self.anything(0)?);
                }
                if arguments.is_empty() {
                    return Ok(());
                }
                let place = self.bytes.choose_index(arguments.len())?;
                let Some((name, value)) = arguments.iter_mut().nth(place) else {
                    return Ok(());
                };
                match kind {
                    4 => {
                        let name = name.clone();
                        arguments.shift_remove(&name);
                    }
                    5 | 6 => *value = self.anything(0)?,
                    _ => self.twist(value)?,
                }
            }
        }
        Ok(())
    }

    /// Writes a value in another way, or another value in the same way.
    fn twist(&mut self, value: &mut Value) -> Result<()> {
        let way = self.bytes.int_in_range(0..=2)?;
        *value = match (&*value, way) {
            (Value::String(text), 0) => text.to_uppercase().into(),
            (Value::String(text), 1) => format!("{text} ").into(),
            (Value::Number(number), 0) => number.to_string().into(),
            (Value::Number(number), 1) => number.as_f64().unwrap_or_default().into(),
            (Value::Array(elements), 0 | 1) if !elements.is_empty() => {
                let mut elements = elements.clone();
                let place = self.bytes.choose_index(elements.len())?;
                if way == 0 {
                    elements.push(elements[place].clone());
                } else {
                    self.twist(&mut elements[place])?;
                }
                elements.into()
            }
            (Value::Object(fields), 0 | 1) if !fields.is_empty() => {
                let mut fields = fields.clone();
                let place = self.bytes.choose_index(fields.len())?;
                if let Some((name, value)) = fields.iter_mut().nth(place) {
                    if way == 0 {
                        let name = name.clone();
                        fields.shift_remove(&name);
                    } else {
                        self.twist(value)?;
                    }
                }
                fields.into()
            }
            (other, _) => vec![other.clone()].into(),
        };
        Ok(())
    }
}
