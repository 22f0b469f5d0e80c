//! HTTP headers that carry a secret: none may stand in a study, which people share and journals keep, nor in a message.

/// Words in the name of an HTTP header whose value is a secret.
const TELLING: [&str; 6] = ["auth", "cookie", "key", "password", "secret", "token"];

/// Whether the name of an HTTP header says that it carries a secret: a study may then only name the
/// variable that holds the value. Rather one header too many than a key in a journal.
///
/// ```
/// use capo_core::http_headers::is_secret_header;
///
/// for header in ["Authorization", "x-api-key", "X-Auth-Token", "Ocp-Apim-Subscription-Key", "Cookie"] {
///     assert!(is_secret_header(header), "{header}");
/// }
/// assert!(!is_secret_header("X-Team") && !is_secret_header("Accept"));
/// ```
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    TELLING.iter().any(|word| name.contains(word))
}

/// Whether HTTP has headers of this name: a token (RFC 9110, section 5.6.2). The crate `http` says the same, but
/// with a table of the well-known names, which a page would load.
///
/// ```
/// use capo_core::http_headers::is_header_name;
///
/// assert!(is_header_name("X-Team"));
/// assert!(!is_header_name("X Team") && !is_header_name(""));
/// ```
pub fn is_header_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_allowed)
}

/// How a secret may be quoted: as it is, and as JSON writes it, where some escape slashes, too.
///
/// ```
/// use capo_core::http_headers::quoted_forms;
///
/// assert_eq!(quoted_forms(r#"a/"b"#), [r#"a/"b"#, r#"a/\"b"#, r#"a\/\"b"#]);
/// ```
pub fn quoted_forms(secret: &str) -> [String; 3] {
    let json = serde_json::Value::from(secret).to_string();
    let json = &json[1..json.len() - 1];
    [secret.to_owned(), json.to_owned(), json.replace('/', "\\/")]
}
