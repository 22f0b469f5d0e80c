//! Writes the pages of `docs/` that follow from the code into the folder given:
//! `cargo xtask docs`.
#![expect(clippy::format_push_string, reason = "a page, written once in a while")]

use std::error::Error;
use std::path::PathBuf;

use capo_core::methods;
use capo_core::metric::Direction;
use capo_core::study::{Study, Table};
use capo_models::providers::{Key, PROVIDERS};
use capo_workloads::Declared;
use capo_workloads::files::MemoryFiles;
use capo_world::simulated::parameters::MODELS;
use serde_json::Value;

const INTRODUCTION: &str = "\
# The study file

<!-- Written by `cargo xtask docs` from the types of the program; change those. -->

A study is one problem with its settings: what a prompt is measured on, what to maximise, what to
keep below thresholds, who answers, and what the run may spend. It is written in TOML, or in JSON
when the file's name ends in `.json`. Paths in it start at the folder it lies in, and
lead to files there or below, also through links; `--allow-outside` lets a command read others. The folder of
a `local` model may lie anywhere. A key that does
not exist is an error that names the nearest one that does. Rates are fractions from 0 to 1.

`capo init` writes a study to begin with, on rows or chats of your own (`--from FILE`) or on any kind of workload. `capo schema`
prints a JSON Schema for editors: under a first line `#:schema study.schema.json` those that know taplo, such as Even
Better TOML, complete and check the keys of a study; a key `$schema` at the top does the same in JSON, and nothing else
reads it.

`--set KEY=VALUE` of `capo optimize`, `evaluate`, `certify` and `train` sets a key for one command, as if the file said so:
`--set budget.usd=2`, `--set models.agent.model=gpt-5-mini`, `--set constraint.turns.threshold=5`. Values are written as in
TOML, a bare word is a text, and an entry of a list goes by its number or its `metric` or `name`. A journal keeps the study
with what was set.

A journal belongs to one study, and a changed study needs another journal. Only `[budget]` and
`[failures]` may change, and how models and workload are reached: of a `[models.ROLE]` table `abort_after`, `api_key_env`,
`concurrency`, `latency`, `retries` and `timeout_seconds`, of `[workload]` `bearer_env`,
`concurrency`, `retries` and `timeout`. With other values of these the same journal goes on.

`studies/help-desk.toml` is a whole study:

```toml
";

const HELP_DESK: &str = include_str!("../../studies/help-desk.toml");

const KINDS: &str = "\
`kind` names the workload; the other keys belong to it.

";

const MODELS_TABLE: &str = "\
One table for each role: `[models.agent]` runs the examples, `[models.user]` plays the person the
agent talks to, `[models.judge]` grades what no rule can grade, `[models.critic]` says what went
wrong, and `[models.rewriter]` writes the next prompt. A role without a table falls back: critic →
rewriter → agent; user and judge → agent.

";

const FAILURES: &str = "\
What becomes of rollouts that cannot be made: an example that a content filter refuses, a prompt that
the agent's context has no room for, an answer that cannot be measured. It is not part of the study's
identity: what was decided stands in the journal, and what is said here holds for what fails from then
on, so a run that ended for its failures goes on once more of them may pass.

A rollout that every try fails at is held against its prompt. Up to `share` of the split's examples a
prompt may fail on, one at least unless `share` is 0; each of them counts as `example` says. A prompt
that fails on more is discarded: it has no score and is never returned, and the rewriter is told of it,
with the reason, when a parent of it is rewritten again. The seed prompt is never discarded, nor one that
is measured on held-out examples or by `capo evaluate`: beyond the share they end the run. With
`leave-out`, what is left out of a split counts against the share together: a prompt that would have more
left out is discarded in their place.

Some failures end the run whatever is said here, and count for nobody: a refused key, a rate limit and a
model that cannot be reached say nothing of a prompt or an example. So does a failure that may pass, such
as a timeout, when no other rollout was made since it was first begun; a resumed run that fails at the same
rollout once more lets it count, but discards nobody for it. With `leave-out` the last example of a round's
batch counts as the worst value, for a batch of nothing would measure nothing. The same command resumes a
run, and every failed rollout that nothing was decided on is tried again.

What was discarded, left out or counted as the worst value is told in the result of a run, by
`capo evaluate` and by `capo journal show`, in the page beside the result and in its activity, and under
`failures` with `--json`; in the journal it stands line by line ([journal.md](journal.md#rollout)).

";

const METHODS: &str = "\
`method` under `[study]` names the search; the keys of `[method]` belong to it.

";

fn main() -> Result<(), Box<dyn Error>> {
    let folder: PathBuf = std::env::args_os()
        .nth(1)
        .ok_or("name the folder to write into")?
        .into();
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("study.md"), study()?)?;
    Ok(())
}

fn study() -> Result<String, Box<dyn Error>> {
    let schema = schemars::schema_for!(Study).to_value();
    let mut page = Page {
        text: format!("{INTRODUCTION}{HELP_DESK}```\n"),
        described: Vec::new(),
    };
    for (key, property) in entries(&schema, "properties") {
        let part = present(resolve(property, &schema), &schema);
        let table = if part["type"] == "array" {
            format!("[[{key}]]")
        } else {
            format!("[{key}]")
        };
        match key {
            // Of editors, and no table.
            "$schema" => {}
            "workload" => {
                page.heading(2, "`[workload]`", KINDS);
                workloads(&mut page);
            }
            "models" => {
                page.heading(2, "`[models.ROLE]`", MODELS_TABLE);
                models(&mut page);
            }
            "failures" => {
                page.heading(2, "`[failures]`", FAILURES);
                page.keys_of(part, &schema, key);
            }
            "method" => {
                page.heading(2, "`[method]`", METHODS);
                for entry in methods::ALL {
                    page.heading(3, &format!("`method = \"{}\"`", entry.name), entry.summary);
                    page.keys(&methods::schema(entry.name)?.to_value(), "method");
                }
            }
            _ => {
                let object = if part["type"] == "array" {
                    resolve(&part["items"], &schema)
                } else {
                    part
                };
                page.heading(2, &format!("`{table}`"), &described(object, property));
                page.keys_of(object, &schema, key);
            }
        }
    }
    Ok(page.text)
}

fn workloads(page: &mut Page) {
    for (kind, schema) in capo_workloads::schemas() {
        page.heading(3, &format!("`kind = \"{kind}\"`"), "");
        page.keys(&schema.to_value(), "workload");
        let named: Table = [("kind".to_owned(), kind.into())].into_iter().collect();
        // What a kind measures by itself; of others the settings say it.
        let measured = match capo_workloads::build(&named, &MemoryFiles::new(), 0) {
            Ok(built) => Declared::of(&built).metrics,
            Err(_) => capo_workloads::declared(&named).unwrap_or_default().metrics,
        };
        if !measured.is_empty() {
            page.text += "\nIt measures:\n\n| metric | usable as | unit | what |\n|---|---|---|---|\n";
            for metric in measured {
                let usable = match metric.direction {
                    Direction::Objective => "objective",
                    Direction::Cost => "constraint",
                };
                page.row(&[
                    &format!("`{}`", metric.name),
                    usable,
                    &metric.unit,
                    &metric.explanation,
                ]);
            }
        }
    }
}

fn models(page: &mut Page) {
    page.keys(&capo_models::schema().to_value(), "models.ROLE");
    page.heading(3, "Providers", "");
    page.text += "| provider | key | address |\n|---|---|---|\n";
    for provider in PROVIDERS {
        let key = match provider.key {
            Key::Required(variable) => format!("`{variable}`"),
            Key::Optional(variable) => format!("`{variable}`, if it wants one"),
            Key::None => "none".to_owned(),
        };
        let address = match provider.base_url {
            Some(address) => format!("`{address}`"),
            None if provider.in_process => "in this process".to_owned(),
            None => "`base_url`".to_owned(),
        };
        page.row(&[&format!("`{}`", provider.name), &key, &address]);
    }
    page.heading(3, "Simulated models", "");
    page.text += "| model | what it is like | dollars per million tokens in, out |\n|---|---|---|\n";
    for model in MODELS {
        let price = format!(
            "{}, {}",
            model.usd_per_million_input, model.usd_per_million_output
        );
        page.row(&[&format!("`{}`", model.name), model.description, &price]);
    }
}

/// A page in Markdown.
struct Page {
    text: String,
    /// Lists of tables described so far: their schema, and the heading it stands under.
    described: Vec<(Value, String)>,
}

impl Page {
    fn heading(&mut self, level: usize, title: &str, text: &str) {
        let gap = if self.text.ends_with("\n\n") { "" } else { "\n" };
        self.text += &format!("{gap}{} {title}\n\n", "#".repeat(level));
        if !text.is_empty() {
            self.text += &format!("{}\n\n", text.trim_end());
        }
    }

    /// A row of a table; a bar in a cell would end the cell.
    fn row(&mut self, cells: &[&str]) {
        let cells: Vec<String> = cells
            .iter()
            .map(|cell| cell.replace('|', "\\|").replace('\n', " "))
            .collect();
        self.text += &format!("| {} |\n", cells.join(" | "));
    }

    fn keys(&mut self, object: &Value, table: &str) {
        self.keys_of(object, object, table);
    }

    /// The keys of an object, then those of the tables within it. `root` holds the definitions.
    fn keys_of(&mut self, object: &Value, root: &Value, table: &str) {
        let properties = entries(object, "properties");
        if properties.is_empty() {
            self.text += "It has no keys.\n";
            return;
        }
        self.text += "| key | value | unless stated | meaning |\n|---|---|---|---|\n";
        let mut nested = Vec::new();
        for (key, property) in properties {
            let required = object["required"]
                .as_array()
                .is_some_and(|names| names.iter().any(|name| name == key));
            let value = present(resolve(property, root), root);
            let default = match &property["default"] {
                _ if required => "needed".to_owned(),
                Value::Null => String::new(),
                default => format!("`{default}`"),
            };
            let mut meaning = described(property, value);
            for choice in choices(value) {
                if let (Some(word), Some(text)) = (choice["const"].as_str(), choice["description"].as_str()) {
                    meaning += &format!("<br>`{word}`: {text}");
                }
            }
            self.row(&[&format!("`{key}`"), &kind(value, root), &default, &meaning]);
            let items = resolve(&value["items"], root);
            if !tables(items, root).is_empty() {
                nested.push((format!("{table}.{key}"), items.clone()));
            }
        }
        for (name, items) in nested {
            self.list(&name, &items, root);
        }
    }

    /// A list of tables: `[[name]]`, of one form or of several told apart by `type`.
    fn list(&mut self, name: &str, items: &Value, root: &Value) {
        let title = format!("`[[{name}]]`");
        if let Some((_, earlier)) = self.described.iter().find(|(known, _)| known == items) {
            let text = format!("The same keys as {earlier}.");
            self.heading(4, &title, &text);
            return;
        }
        self.described.push((items.clone(), title.clone()));
        let forms = tables(items, root);
        if let [only] = forms.as_slice() {
            self.heading(4, &title, items["description"].as_str().unwrap_or_default());
            self.keys_of(only, root, name);
            return;
        }
        self.heading(4, &title, "The key `type` says which of these it is.");
        for form in forms {
            let word = form["properties"]["type"]["const"].as_str().unwrap_or_default();
            let text = form["description"].as_str().unwrap_or_default();
            self.heading(5, &format!("`type = \"{word}\"`"), text);
            let mut keys = form.clone();
            if let Some(properties) = keys["properties"].as_object_mut() {
                properties.shift_remove("type");
            }
            self.keys_of(&keys, root, name);
        }
    }
}

fn entries<'a>(schema: &'a Value, field: &str) -> Vec<(&'a str, &'a Value)> {
    let fields = schema[field].as_object().into_iter().flatten();
    fields.map(|(key, value)| (key.as_str(), value)).collect()
}

/// What a reference stands for.
fn resolve<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    match schema["$ref"]
        .as_str()
        .and_then(|path| root.pointer(path.trim_start_matches('#')))
    {
        Some(target) => resolve(target, root),
        None => schema,
    }
}

/// What an optional value is when it is there.
fn present<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    match schema["anyOf"].as_array().map(Vec::as_slice) {
        Some([only, null]) if null["type"] == "null" => present(resolve(only, root), root),
        _ => schema,
    }
}

/// The alternatives of a value.
fn choices(schema: &Value) -> &[Value] {
    let alternatives = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    alternatives.map(Vec::as_slice).unwrap_or_default()
}

/// The objects a value may be.
fn tables<'a>(schema: &'a Value, root: &'a Value) -> Vec<&'a Value> {
    if schema["properties"].is_object() {
        return vec![schema];
    }
    let alternatives = choices(schema).iter().map(|choice| resolve(choice, root));
    alternatives
        .filter(|choice| choice["properties"].is_object())
        .collect()
}

/// The property's own words, else those of its type, on one line.
fn described(property: &Value, value: &Value) -> String {
    let text = property["description"]
        .as_str()
        .or_else(|| value["description"].as_str());
    text.unwrap_or_default().replace('\n', " ")
}

/// What kind of value it is, in words.
fn kind(schema: &Value, root: &Value) -> String {
    let alternatives = choices(schema);
    if !alternatives.is_empty() {
        let kinds: Vec<String> = alternatives
            .iter()
            .map(|choice| kind(resolve(choice, root), root))
            .collect();
        let mut distinct: Vec<String> = Vec::new();
        for kind in kinds {
            if !distinct.contains(&kind) {
                distinct.push(kind);
            }
        }
        return listed(&distinct);
    }
    if let Some(words) = schema["enum"].as_array() {
        return words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(" or ");
    }
    if !schema["const"].is_null() {
        return format!("`{}`", schema["const"]);
    }
    let name = match &schema["type"] {
        Value::Array(names) => names
            .iter()
            .find_map(|name| name.as_str().filter(|name| *name != "null")),
        name => name.as_str(),
    };
    match name {
        Some("integer") => format!("whole number{}", range(schema)),
        Some("number") => format!("number{}", range(schema)),
        Some("string") => "text".into(),
        Some("boolean") => "`true` or `false`".into(),
        Some("array") => format!("list of {}", plural(&kind(resolve(&schema["items"], root), root))),
        Some("object") if schema["additionalProperties"].is_object() => {
            format!(
                "table of {}",
                plural(&kind(resolve(&schema["additionalProperties"], root), root))
            )
        }
        Some("object") => match entries(schema, "properties").as_slice() {
            [] => "table".into(),
            keys => {
                let keys: Vec<String> = keys.iter().map(|(key, _)| format!("`{key}`")).collect();
                format!("table of {}", keys.join(", "))
            }
        },
        _ => "any value".into(),
    }
}

/// `a`, `a or b`, `a, b or c`.
fn listed(kinds: &[String]) -> String {
    match kinds {
        [] => String::new(),
        [only] => only.clone(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

fn plural(kind: &str) -> String {
    match kind {
        "text" => "texts".into(),
        "table" => "tables".into(),
        kind if kind.starts_with("table of ") => "tables".into(),
        kind if kind.starts_with("whole number") => kind.replacen("whole number", "whole numbers", 1),
        kind if kind.starts_with("number") => kind.replacen("number", "numbers", 1),
        kind => kind.into(),
    }
}

fn range(schema: &Value) -> String {
    let bound = |name: &str| schema[name].as_f64();
    match (bound("minimum"), bound("maximum")) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(" ≥ {least}"),
        (None, Some(most)) => format!(" ≤ {most}"),
        (None, None) => String::new(),
    }
}
