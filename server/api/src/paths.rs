//! Paths of requests.

pub(crate) fn of_run(run: &str, rest: &str) -> String {
    format!("/api/runs/{}{rest}", part(run))
}

pub(crate) fn of_file(project: &str, sha256: &str) -> String {
    of_project(project, &format!("/files/{}", part(sha256)))
}

pub(crate) fn of_project(project: &str, rest: &str) -> String {
    format!("/api/projects/{}{rest}", part(project))
}

pub(crate) fn before_of(path: &str, before: Option<impl std::fmt::Display>) -> String {
    before.map_or_else(|| path.to_owned(), |before| format!("{path}?before={before}"))
}

/// A text as one part of a path.
pub(crate) fn part(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut path, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte) {
            path.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(path, "%{byte:02X}");
        }
        path
    })
}
