//! An error with its chain of causes, in one line.

use std::error::Error;

/// An error with its causes, without those that repeat what was said.
///
/// ```
/// use capo_core::error_chain::with_causes;
///
/// #[derive(Debug, thiserror::Error)]
/// #[error("the request failed")]
/// struct Failed(#[source] std::io::Error);
///
/// let error = Failed(std::io::Error::other("connection refused"));
/// assert_eq!(with_causes(&error), "the request failed: connection refused");
/// ```
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}
