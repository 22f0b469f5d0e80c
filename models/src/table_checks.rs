//! Checks of `[models.ROLE]` tables: what none may say whatever API keys there are. People share studies and journals keep
//! them, so no key may be written into one.

use capo_core::address::Address;
use capo_core::http_headers::{is_header_name, is_secret_header};
use capo_core::llm::Role;
use http::HeaderValue;
use indexmap::IndexMap;
use serde_json::Value;

use crate::error::BuildError;
use crate::spec::{HeaderText, ModelSpec};

/// Refuses the `[models.ROLE]` tables of a study that do not read, and those with a key in them. Nothing of a key is repeated. What a provider would refuse is not asked, so that a
/// page's form links none of the code that reaches providers.
///
/// ```
/// use capo_core::llm::Role;
/// use indexmap::IndexMap;
/// use serde_json::json;
///
/// let table = json!({ "provider": "openai", "model": "gpt-5-mini", "headers": { "Authorization": "Bearer sk-1" } });
/// let error = capo_models::check_tables(&IndexMap::from([(Role::Agent, table)])).unwrap_err();
/// assert!(error.to_string().starts_with("models.agent: the header `Authorization` carries a key"));
/// ```
///
/// # Errors
///
/// The first such table.
pub fn check_tables(models: &IndexMap<Role, Value>) -> Result<(), BuildError> {
    models.iter().try_for_each(|(&role, table)| {
        ModelSpec::read(table)
            .and_then(|spec| check_written(role, &spec))
            .map_err(|message| BuildError::Spec { role, message })
    })
}

/// Like [`check_tables`], for a table that was read.
pub(crate) fn check_written(role: Role, spec: &ModelSpec) -> Result<(), String> {
    if spec.batch && role != Role::Agent {
        return Err(
            "`batch` is for the agent alone: everybody else would keep it waiting for a day".to_owned(),
        );
    }
    if spec.is_local() && role != Role::Rewriter {
        return Err(
            "provider `local` serves the role `rewriter` alone: it rewrites prompts and does nothing else"
                .to_owned(),
        );
    }
    if let Some(address) = &spec.base_url {
        base_url(address)?;
    }
    if let Some(variable) = &spec.api_key_env {
        check_variable(variable, "`api_key_env`")?;
    }
    headers(spec).map(|_| ())
}

/// A header as a study writes it.
pub(crate) enum Header<'a> {
    Written(HeaderValue),
    /// The variable that holds its value.
    Variable(&'a str),
}

/// The headers of a table by their names, which are tokens.
pub(crate) fn headers(spec: &ModelSpec) -> Result<Vec<(&str, Header<'_>)>, String> {
    fn read<'a>((name, text): (&'a String, &'a HeaderText)) -> Result<(&'a str, Header<'a>), String> {
        if !is_header_name(name) {
            return Err(no_header(name));
        }
        match text {
            HeaderText::Text(_) if is_secret_header(name) => Err(format!(
                "the header `{name}` carries a key; write {{ env = \"VARIABLE\" }}"
            )),
            HeaderText::Text(value) => {
                let value = value.trim().parse();
                let value = value.map_err(|_| format!("the value of the header `{name}` cannot be sent"))?;
                Ok((name.as_str(), Header::Written(value)))
            }
            HeaderText::Variable(variable) => {
                check_variable(&variable.env, "`env` of a header")?;
                Ok((name.as_str(), Header::Variable(&variable.env)))
            }
        }
    }
    spec.headers.iter().map(read).collect()
}

pub(crate) fn no_header(name: &str) -> String {
    format!("`{name}` is no name for a header")
}

/// `base_url` as browsers write it, without a slash at its end: what is called is what was read.
pub(crate) fn base_url(base_url: &str) -> Result<String, String> {
    let address = Address::parse(base_url).map_err(|error| format!("`base_url` {error}"))?;
    if address.has_credentials() || address.has_query_or_fragment() {
        return Err(
            "`base_url` may hold no credentials, query or fragment; use `api_key_env` or \
                    `headers`"
                .to_owned(),
        );
    }
    Ok(address.as_str().trim_end_matches('/').to_owned())
}

/// Scheme, host and port of an address that was checked.
pub(crate) fn origin(base_url: &str) -> String {
    Address::parse(base_url).map_or_else(|_| String::new(), |address| address.origin())
}

/// Refuses what is no name of a variable, without repeating it: it may be the key itself.
fn check_variable(name: &str, place: &str) -> Result<(), String> {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if starts && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Ok(());
    }
    Err(format!(
        "{place} must be the name of a variable, such as OPENAI_API_KEY, not a key"
    ))
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    #[test]
    fn names_of_headers_are_those_that_are_sent() {
        let characters = (0..=255).map(char::from).map(|c| format!("x{c}y"));
        let others = ["", "é", "x-名", "Content-Type"].map(str::to_owned);
        for name in characters.chain(others) {
            assert_eq!(
                is_header_name(&name),
                HeaderName::try_from(&name).is_ok(),
                "{name:?}"
            );
        }
    }
}
