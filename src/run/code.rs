//! A prompt as the call of the model that it was measured with.

use capo_core::ids::CandidateId;
use capo_core::llm::Role;
use capo_core::run_state::RunState;
use capo_models::providers::Api;
use capo_models::{ProviderName, WrittenRequest};
use serde_json::{Value, json};

use crate::worker::protocol::ModelRequest;

/// What the call is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// A line for a shell.
    Curl,
    /// Python, its standard library alone.
    Python,
    /// TypeScript, as Node runs it.
    TypeScript,
}

impl Language {
    /// How names of its files end.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Curl => "sh",
            Self::Python => "py",
            Self::TypeScript => "ts",
        }
    }
}

/// What the task agent's model is asked with a prompt, the study's message in place of an example's.
///
/// # Errors
/// When an example is more than one call of a model, in words.
pub fn asked(state: &RunState, prompt: CandidateId) -> Result<ModelRequest, String> {
    let study = &state.study().ok_or("There is no study yet.")?.study;
    let prompt = state.candidate(&prompt).ok_or("There is no prompt yet.")?;
    let kind = capo_workloads::of(&study.workload);
    if kind.is_some_and(|kind| kind.own_agent) {
        return Err(
            "An agent of your own does the examples: what it asks of which model is not known here."
                .to_owned(),
        );
    }
    let table = study.models.get(&Role::Agent);
    let table = table.filter(|_| kind.is_some_and(|kind| kind.one_call)).ok_or(
        "An example of this study is a conversation with tools or rules of its workload, which one call would leave out.",
    )?;
    let message = study.workload.get("user").and_then(Value::as_str);
    Ok(ModelRequest {
        table: table.clone(),
        prompt: prompt.prompt.to_string(),
        message: message.unwrap_or_default().to_owned(),
    })
}

/// A request in a language, of the model of a table.
pub fn code(request: &WrittenRequest, table: &Value, language: Language) -> String {
    let provider = table["provider"].as_str().and_then(ProviderName::find);
    // Where the text lies in what is answered. Thoughts come before it.
    let text = match provider.map(|provider| provider.get().api) {
        Some(Api::Anthropic) => r#"["content"][-1]["text"]"#,
        Some(Api::Gemini) => r#"["candidates"][0]["content"]["parts"][-1]["text"]"#,
        Some(Api::OpenAi) | None => r#"["choices"][0]["message"]["content"]"#,
    };
    match language {
        Language::Curl => curl(request),
        Language::Python => python(request, text),
        Language::TypeScript => typescript(request, &text.replace("[-1]", ".at(-1)")),
    }
}

/// Strings and numbers alone: what JSON writes of them, Python and TypeScript read.
fn written(value: &Value) -> String {
    format!("{value:#}")
}

/// In quotes within which a shell reads nothing: a study may be a stranger's.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn curl(request: &WrittenRequest) -> String {
    // Else brackets and braces of an address would stand for several.
    let mut lines = vec![
        format!("curl -g {} \\", quoted(&request.url)),
        "  -H 'content-type: application/json' \\".to_owned(),
    ];
    for header in &request.headers {
        let said = quoted(&format!("{}: {}", header.name, header.text));
        let value = header
            .variable
            .as_ref()
            .map(|variable| format!("\"${variable}\""));
        lines.push(format!("  -H {said}{} \\", value.unwrap_or_default()));
    }
    // No line of JSON is its end.
    lines.push(format!("  -d @- <<'END'\n{}\nEND\n", written(&request.body)));
    lines.join("\n")
}

/// Name and value of every header, as Python and TypeScript write them. `variable` writes the value of a variable, which may
/// be unset or not.
fn headers(request: &WrittenRequest, variable: fn(&str, bool) -> String) -> String {
    let mut headers = vec!["\"content-type\": \"application/json\"".to_owned()];
    headers.extend(request.headers.iter().map(|header| {
        let value = header.variable.as_ref();
        let value = value.map(|name| format!(" + {}", variable(name, header.optional)));
        let (name, text) = (json!(header.name), json!(header.text));
        format!("{name}: {text}{}", value.unwrap_or_default())
    }));
    headers.join(", ")
}

fn python(request: &WrittenRequest, text: &str) -> String {
    let variable = |name: &str, optional: bool| {
        if optional {
            format!("os.environ.get(\"{name}\", \"\")")
        } else {
            format!("os.environ[\"{name}\"]")
        }
    };
    format!(
        "import json\nimport os\nimport urllib.request\n\nbody = {}\nheaders = {{{}}}\n\
         request = urllib.request.Request({}, json.dumps(body).encode(), headers)\n\
         with urllib.request.urlopen(request) as response:\n    answer = json.load(response)\n\
         print(answer{text})\n",
        written(&request.body),
        headers(request, variable),
        json!(request.url),
    )
}

fn typescript(request: &WrittenRequest, text: &str) -> String {
    let variable = |name: &str, optional: bool| {
        let otherwise = if optional { " ?? \"\"" } else { "" };
        format!("(process.env[\"{name}\"]{otherwise})")
    };
    let needed = request.headers.iter().filter(|header| !header.optional);
    let needed: Vec<String> = needed
        .filter_map(|header| header.variable.as_ref())
        .map(|name| format!("if (!process.env[\"{name}\"]) throw new Error(\"{name} is not set\");\n"))
        .collect();
    format!(
        "{}const body = {};\nconst headers = {{ {} }};\n\
         const response = await fetch({}, {{ method: \"POST\", headers, body: JSON.stringify(body) }});\n\
         const answer: any = await response.json();\nconsole.log(answer{text});\n",
        needed.concat(),
        written(&request.body),
        headers(request, variable),
        json!(request.url),
    )
}

#[cfg(test)]
mod tests {
    use capo_core::journal::Event;
    use capo_core::reading::lineage;
    use capo_models::write_request;

    use super::*;
    use crate::run::fixture::{events, fold};

    fn of(table: &Value, prompt: &str, language: Language) -> String {
        let request = write_request(table, prompt, "{{ question }}");
        code(&request.expect("a request"), table, language)
    }

    #[test]
    fn a_call_names_the_key_and_holds_the_prompt_unchanged() {
        let prompt = "Say “no”.\nEND\n'''\"\\";
        let table = json!({ "provider": "openai", "model": "gpt-4.1-mini", "temperature": 0.2 });
        for (language, before, after) in [
            (Language::Curl, "<<'END'\n", "\nEND\n"),
            (Language::Python, "body = ", "\nheaders"),
            (Language::TypeScript, "body = ", ";\nconst headers"),
        ] {
            let text = of(&table, prompt, language);
            assert!(text.contains("OPENAI_API_KEY"), "{text}");
            let (_, rest) = text.split_once(before).unwrap();
            let (body, _) = rest.rsplit_once(after).unwrap();
            let body: Value = serde_json::from_str(body).unwrap();
            assert_eq!(body["temperature"], 0.2);
            let messages = body["messages"].to_string();
            for said in [json!(prompt), json!("{{ question }}")] {
                assert!(messages.contains(&said.to_string()), "{messages}");
            }
        }
    }

    #[test]
    fn no_part_of_a_table_is_run_by_a_shell() {
        let table = json!({
            "provider": "openai", "model": "m", "base_url": "http://x/$(y)",
            "headers": { "X-`id`": "it's $(id)", "X-Gate": { "env": "GATE_KEY" } },
        });
        let text = of(&table, "Help.", Language::Curl);
        for written in [
            "curl -g 'http://x/$(y)/chat/completions' \\\n",
            "-H 'x-`id`: it'\\''s $(id)' \\\n",
            "-H 'x-gate: '\"$GATE_KEY\" \\\n",
        ] {
            assert!(text.contains(written), "{text}");
        }
    }

    #[test]
    fn a_key_that_is_missing_is_named() {
        let says = |provider: &str| {
            let table = json!({ "provider": provider, "model": "m" });
            of(&table, "Help.", Language::TypeScript).contains("_API_KEY is not set")
        };
        assert!(says("openai") && !says("ollama"));
    }

    #[test]
    fn a_key_that_nobody_need_have_may_be_unset() {
        let ollama = json!({ "provider": "ollama", "model": "m" });
        let python = of(&ollama, "Help.", Language::Python);
        let key = "\"Bearer \" + os.environ.get(\"OLLAMA_API_KEY\", \"\")";
        assert!(python.contains(key), "{python}");
        let own =
            json!({ "provider": "openai-compatible", "model": "m", "base_url": "http://127.0.0.1:8000/v1/" });
        let python = of(&own, "Help.", Language::Python);
        assert!(
            python.contains("\"http://127.0.0.1:8000/v1/chat/completions\""),
            "{python}"
        );
        assert!(!python.contains("os.environ"), "{python}");
    }

    #[test]
    fn what_takes_more_than_one_call_is_not_written_as_one() {
        let mut events = events(|_| {}, None);
        for (kind, said) in [
            ("desk", "conversation with tools"),
            ("external", "agent of your own"),
        ] {
            if let Event::Study(started) = &mut events[0] {
                started.study.workload.insert("kind".into(), kind.into());
            }
            let state = fold(&events);
            let refused = asked(&state, lineage::seed(&state).unwrap()).unwrap_err();
            assert!(refused.contains(said), "{refused}");
        }
    }
}
