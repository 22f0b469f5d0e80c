//! What may not stand in a study, which people share and journals keep.

/// Words in the name of an HTTP header whose value is a secret.
const TELLING: [&str; 6] = ["auth", "cookie", "key", "password", "secret", "token"];

/// Whether the name of an HTTP header says that it carries a secret: a study may then only name the
/// variable that holds the value. Rather one header too many than a key in a journal.
///
/// ```
/// use capo_core::secrets::is_secret_header;
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
