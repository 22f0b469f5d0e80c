//! A prompt as a call of the model that it was measured with.

use capo_core::ids::CandidateId;
use capo_core::llm::Role;
use capo_core::run_state::RunState;
use capo_models::ProviderName;
use capo_models::providers::{Api, Key};
use serde_json::{Value, json};

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

/// A request over HTTP.
struct Call {
    url: String,
    /// Name, what stands before the key, and the variable that holds it.
    key: Option<(&'static str, &'static str, String)>,
    version: Option<(&'static str, &'static str)>,
    body: Value,
    /// Where the text lies in what is answered; Python and TypeScript write it alike.
    text: &'static str,
}

/// The call of a prompt by the task agent's model, with the study's message in place of an example's.
///
/// # Errors
/// When the agent is no model of a provider, in words.
pub fn call(state: &RunState, prompt: CandidateId, language: Language) -> Result<String, String> {
    let study = &state.study().ok_or("There is no study yet.")?.study;
    let prompt = state.candidate(&prompt).ok_or("There is no prompt yet.")?;
    let table = study
        .models
        .get(&Role::Agent)
        .ok_or("No model of a provider is this study’s agent.")?;
    let message = study.workload.get("user").and_then(Value::as_str);
    let message = message
        .filter(|message| message.contains("{{"))
        .unwrap_or("Hello");
    let write: fn(&Call) -> String = match language {
        Language::Curl => curl,
        Language::Python => python,
        Language::TypeScript => typescript,
    };
    Ok(write(&of_table(table, &prompt.prompt, message)?))
}

fn of_table(table: &Value, prompt: &str, message: &str) -> Result<Call, String> {
    let provider = table["provider"].as_str().and_then(ProviderName::find);
    let provider = provider
        .map(ProviderName::get)
        .filter(|provider| !provider.in_process)
        .ok_or(
            "Only models behind an API can be called: this agent’s is simulated or runs in this process.",
        )?;
    let base = table["base_url"]
        .as_str()
        .or(provider.base_url)
        .unwrap_or_default();
    // A shell would take what begins like an option for one.
    if !base
        .get(..4)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("http"))
    {
        return Err("This study’s agent has no address over HTTP.".to_owned());
    }
    let root = provider.root(base);
    let model = table["model"].as_str().unwrap_or_default();
    let variable = match (table["api_key_env"].as_str(), provider.key) {
        (Some(stated), _) => Some(stated.to_owned()),
        (None, Key::Required(usual)) => Some(usual.to_owned()),
        (None, Key::Optional(_) | Key::None) => None,
    };
    // A study may be a stranger's, and what is no name would be run by a shell.
    let is_name = |name: &String| name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
    let variable = variable.filter(is_name);
    let user = json!({ "role": "user", "content": message });
    let limit = table["max_tokens"].as_u64();
    let mut call = match provider.api {
        Api::Anthropic => Call {
            url: format!("{root}/messages"),
            key: variable.map(|variable| ("x-api-key", "", variable)),
            version: Some(("anthropic-version", "2023-06-01")),
            body: json!({ "model": model, "max_tokens": limit.unwrap_or(4096), "system": prompt, "messages": [user] }),
            text: r#"["content"][0]["text"]"#,
        },
        Api::Gemini => Call {
            url: format!("{root}/models/{model}:generateContent"),
            key: variable.map(|variable| ("x-goog-api-key", "", variable)),
            version: None,
            body: json!({
                "systemInstruction": { "parts": [{ "text": prompt }] },
                "contents": [{ "role": "user", "parts": [{ "text": message }] }],
                "generationConfig": {},
            }),
            text: r#"["candidates"][0]["content"]["parts"][0]["text"]"#,
        },
        Api::OpenAi => Call {
            url: format!("{root}/chat/completions"),
            key: variable.map(|variable| ("Authorization", "Bearer ", variable)),
            version: None,
            body: json!({ "model": model, "messages": [{ "role": "system", "content": prompt }, user] }),
            text: r#"["choices"][0]["message"]["content"]"#,
        },
    };
    let (settings, most) = match provider.api {
        Api::Gemini => (&mut call.body["generationConfig"], "maxOutputTokens"),
        Api::OpenAi | Api::Anthropic => (&mut call.body, provider.max_tokens),
    };
    if let Some(temperature) = table["temperature"].as_f64() {
        settings["temperature"] = temperature.into();
    }
    if let Some(limit) = limit {
        settings[most] = limit.into();
    }
    Ok(call)
}

/// Strings and numbers alone: what JSON writes of them, Python and TypeScript read.
fn written(value: &Value) -> String {
    format!("{value:#}")
}

fn curl(call: &Call) -> String {
    let mut lines = vec![
        format!("curl '{}' \\", call.url.replace('\'', "%27")),
        "  -H \"Content-Type: application/json\" \\".to_owned(),
    ];
    if let Some((name, value)) = call.version {
        lines.push(format!("  -H \"{name}: {value}\" \\"));
    }
    if let Some((name, before, variable)) = &call.key {
        lines.push(format!("  -H \"{name}: {before}${variable}\" \\"));
    }
    // No line of JSON is its end.
    lines.push(format!("  -d @- <<'END'\n{}\nEND\n", written(&call.body)));
    lines.join("\n")
}

/// Name and value of every header, as Python and TypeScript write them, with the key out of `environment`.
fn headers(call: &Call, environment: &str) -> String {
    let mut headers = vec!["\"Content-Type\": \"application/json\"".to_owned()];
    headers.extend(
        call.version
            .map(|(name, value)| format!("\"{name}\": \"{value}\"")),
    );
    let key = call.key.as_ref();
    headers.extend(
        key.map(|(name, before, variable)| {
            format!("\"{name}\": \"{before}\" + {environment}[\"{variable}\"]")
        }),
    );
    headers.join(", ")
}

fn python(call: &Call) -> String {
    format!(
        "import json\nimport os\nimport urllib.request\n\nbody = {}\nheaders = {{{}}}\n\
         request = urllib.request.Request({}, json.dumps(body).encode(), headers)\n\
         with urllib.request.urlopen(request) as response:\n    answer = json.load(response)\n\
         print(answer{})\n",
        written(&call.body),
        headers(call, "os.environ"),
        written(&json!(call.url)),
        call.text
    )
}

fn typescript(call: &Call) -> String {
    format!(
        "const body = {};\nconst headers = {{ {} }};\n\
         const response = await fetch({}, {{ method: \"POST\", headers, body: JSON.stringify(body) }});\n\
         const answer: any = await response.json();\nconsole.log(answer{});\n",
        written(&call.body),
        headers(call, "process.env"),
        written(&json!(call.url)),
        call.text
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_names_the_key_and_holds_the_prompt_unchanged() {
        let prompt = "Say “no”.\nEND\n'''\"\\";
        let table =
            json!({ "provider": "openai", "model": "gpt-5-mini", "temperature": 0.2, "max_tokens": 50 });
        let call = of_table(&table, prompt, "{{ question }}").unwrap();
        assert_eq!(call.url, "https://api.openai.com/v1/chat/completions");
        assert_eq!(call.body["temperature"], 0.2);
        assert_eq!(call.body["max_completion_tokens"], 50);
        for (text, before, after) in [
            (curl(&call), "<<'END'\n", "\nEND\n"),
            (python(&call), "body = ", "\nheaders"),
            (typescript(&call), "body = ", ";\nconst headers"),
        ] {
            assert!(text.contains("OPENAI_API_KEY"), "{text}");
            let (_, rest) = text.split_once(before).unwrap();
            let (body, _) = rest.rsplit_once(after).unwrap();
            let body: Value = serde_json::from_str(body).unwrap();
            assert_eq!(body["messages"][0]["content"], prompt);
            assert_eq!(body["messages"][1]["content"], "{{ question }}");
        }
    }

    #[test]
    fn each_provider_is_called_as_its_api_wants_it() {
        let of = |table: Value| of_table(&table, "Help.", "Hello");
        let claude = of(json!({ "provider": "anthropic", "model": "claude-x" })).unwrap();
        assert!(curl(&claude).contains("x-api-key: $ANTHROPIC_API_KEY"));
        assert_eq!(
            (&claude.body["system"], &claude.body["max_tokens"]),
            (&json!("Help."), &json!(4096))
        );
        let gemini = of(json!({ "provider": "gemini", "model": "gemini-x", "max_tokens": 9 })).unwrap();
        assert!(gemini.url.ends_with("/v1beta/models/gemini-x:generateContent"));
        assert_eq!(gemini.body["generationConfig"]["maxOutputTokens"], 9);
        let strange =
            json!({ "provider": "openai", "model": "m", "base_url": "http://x/'$(y)", "api_key_env": "A;B" });
        let strange = curl(&of(strange).unwrap());
        assert!(
            strange.starts_with("curl 'http://x/%27$(y)/chat/completions'"),
            "{strange}"
        );
        assert!(!strange.contains("A;B"), "{strange}");
        let own =
            json!({ "provider": "openai-compatible", "model": "m", "base_url": "http://127.0.0.1:8000/v1/" });
        let own = of(own).unwrap();
        assert_eq!(own.url, "http://127.0.0.1:8000/v1/chat/completions");
        assert!(!python(&own).contains("os.environ"));
        for (provider, base) in [
            ("ollama", "http://x:1/v1"),
            ("ollama", "http://x:1"),
            ("mistral", "http://x:1/v1/"),
        ] {
            let call = of(json!({ "provider": provider, "model": "m", "base_url": base })).unwrap();
            assert_eq!(call.url, "http://x:1/v1/chat/completions");
        }
        assert!(of(json!({ "provider": "simulated", "model": "sim-medium" })).is_err());
        assert!(of(json!({ "provider": "openai", "model": "m", "base_url": "-K/etc/x" })).is_err());
        assert!(of(json!({ "provider": "openai-compatible", "model": "m" })).is_err());
    }
}
