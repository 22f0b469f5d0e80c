//! A model's chat template: messages to the text that the model was trained on.

use std::io;
use std::path::Path;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, Value as TemplateValue};
use minijinja::{Environment, ErrorKind, context};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

use crate::config::read_json;
use crate::error::{FileError, RequestError};

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// What is said.
    pub content: String,
}

impl Message {
    /// A message of a role.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            role: role.into(),
            content: content.into(),
        }
    }
}

/// The Jinja template by which a model reads conversations.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    /// `bos_token`, `eos_token` and their like, by name.
    special_tokens: TemplateValue,
}

const NAME: &str = "chat";

impl ChatTemplate {
    /// Reads the template of a model's folder: `chat_template.jinja`, else `chat_template` in
    /// `tokenizer_config.json`.
    ///
    /// # Errors
    ///
    /// No template, or one that does not parse.
    pub fn from_folder(folder: &Path) -> Result<Self, FileError> {
        let config_path = folder.join("tokenizer_config.json");
        let config = if config_path.exists() {
            read_json(&config_path)?
        } else {
            Value::Null
        };
        let own_path = folder.join("chat_template.jinja");
        let (path, source) = if own_path.exists() {
            let text = std::fs::read_to_string(&own_path).map_err(FileError::io(&own_path))?;
            (own_path, Some(text))
        } else {
            (config_path, template_of(&config))
        };
        let source = source.ok_or_else(|| {
            FileError::content(
                &path,
                "there is no `chat_template`, so conversations cannot be written; take the instruction-tuned model",
            )
        })?;
        Self::parse(source, &config)
            .map_err(|why| FileError::content(&path, format!("the chat template: {why:#}")))
    }

    fn parse(source: String, config: &Value) -> Result<Self, minijinja::Error> {
        let mut environment = Environment::new();
        environment.set_syntax(
            SyntaxConfig::builder()
                .trim_blocks(true)
                .lstrip_blocks(true)
                .build()?,
        );
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_filter("tojson", to_json);
        environment.add_function("raise_exception", |message: String| -> Result<TemplateValue, _> {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
        });
        environment.add_template_owned(NAME, source)?;
        Ok(Self {
            environment,
            special_tokens: TemplateValue::from(Serde(special_tokens(config))),
        })
    }

    /// The text of a conversation.
    ///
    /// `add_generation_prompt` ends it where the model's answer begins. `enable_thinking` is left
    /// to the template when `None`.
    ///
    /// # Errors
    ///
    /// [`RequestError::Template`] with what the template says.
    pub fn render(
        &self,
        messages: &[Message],
        add_generation_prompt: bool,
        enable_thinking: Option<bool>,
    ) -> Result<String, RequestError> {
        let refuse = |why: minijinja::Error| RequestError::Template(format!("{why:#}"));
        let special = self.special_tokens.clone();
        let base = match enable_thinking {
            Some(enable_thinking) => context! { enable_thinking, ..special },
            None => special,
        };
        self.environment
            .get_template(NAME)
            .map_err(refuse)?
            .render(context! { messages => Serde(messages), add_generation_prompt, ..base })
            .map_err(refuse)
    }
}

/// `chat_template` is a text, or a list of named ones of which `default` counts.
fn template_of(config: &Value) -> Option<String> {
    let template = match config.get("chat_template")? {
        Value::Array(named) => named
            .iter()
            .find(|entry| entry["name"] == "default")?
            .get("template")?,
        template => template,
    };
    template.as_str().map(str::to_owned)
}

/// The texts of `bos_token` and its like; each is a text, or a table with `content`.
fn special_tokens(config: &Value) -> serde_json::Map<String, Value> {
    let entries = config.as_object().into_iter().flatten();
    entries
        .filter(|(name, _)| name.ends_with("_token"))
        .filter_map(|(name, value)| {
            let text = value.as_str().or_else(|| value.get("content")?.as_str())?;
            Some((name.clone(), Value::from(text)))
        })
        .collect()
}

/// JSON as Python's `json.dumps` writes it, which the templates' `tojson` is; Jinja's own would
/// escape for HTML.
#[expect(clippy::needless_pass_by_value, reason = "filters take their options so")]
fn to_json(value: &TemplateValue, options: Kwargs) -> Result<String, minijinja::Error> {
    let indent: Option<usize> = options.get("indent")?;
    options.get::<Option<bool>>("ensure_ascii")?;
    options.assert_all_used()?;
    let mut written = Vec::new();
    let done = match indent {
        None => value.serialize(&mut Serializer::with_formatter(&mut written, PythonStyle)),
        Some(width) => {
            let indent = " ".repeat(width);
            let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
            value.serialize(&mut Serializer::with_formatter(&mut written, formatter))
        }
    };
    done.map_err(|why| why.to_string())
        .and_then(|()| String::from_utf8(written).map_err(|why| why.to_string()))
        .map_err(|why| minijinja::Error::new(ErrorKind::BadSerialization, why))
}

/// A blank after each comma and colon.
struct PythonStyle;

impl Formatter for PythonStyle {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.begin_array_value(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn render(template: &str, messages: &[Message]) -> Result<String, RequestError> {
        ChatTemplate::parse(
            template.to_owned(),
            &json!({ "eos_token": { "content": "</s>" } }),
        )
        .expect("parses")
        .render(messages, true, None)
    }

    #[test]
    fn python_methods_and_slices_work() {
        let messages = [
            Message::new("user", "hi"),
            Message::new("assistant", "<think>\nno\n</think>\n\nhello"),
        ];
        let template = "{%- set ns = namespace(last=0) %}\n\
            {%- for message in messages[::-1] %}\n\
            {%- set index = (messages|length - 1) - loop.index0 %}\n\
            {%- if message.role == 'user' and message.content is string and not message.content.startswith('<t') %}{% set ns.last = index %}{% endif %}\n\
            {%- endfor %}\n\
            {{- messages[1].content.split('</think>')[-1].lstrip('\\n') + eos_token ~ ns.last }}";
        assert_eq!(render(template, &messages).as_deref(), Ok("hello</s>0"));
    }

    #[test]
    fn blocks_are_trimmed_as_in_python() {
        let template =
            "{% for m in messages %}\n    {% if true %}\n{{ m.role }}\n    {% endif %}\n{% endfor %}\n";
        assert_eq!(
            render(template, &[Message::new("user", "x")]).as_deref(),
            Ok("user\n")
        );
    }

    #[test]
    fn json_is_written_as_python_writes_it() {
        let messages = [Message::new("user", "a <b> & \"c\" é")];
        assert_eq!(
            render("{{ [messages[0].content, {'n': 1}] | tojson }}", &messages).as_deref(),
            Ok("[\"a <b> & \\\"c\\\" é\", {\"n\": 1}]")
        );
    }

    #[test]
    fn what_the_template_raises_is_the_error() {
        let refused = render("{{ raise_exception('roles must alternate') }}", &[]);
        let message = refused.expect_err("must be refused").to_string();
        assert!(message.contains("roles must alternate"), "{message}");
    }

    #[test]
    fn a_list_of_templates_gives_its_default() {
        let config = json!({ "chat_template": [
            { "name": "tool_use", "template": "no" }, { "name": "default", "template": "yes" },
        ]});
        assert_eq!(template_of(&config).as_deref(), Some("yes"));
    }
}
