//! White space as Python's `str.split` and `str.strip` know it.

/// White space of Unicode and the four ASCII separators U+001C to U+001F, which
/// [`char::is_whitespace`] leaves out. Reference metrics are written in Python.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// The runs of characters between white space.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

/// The text without white space at its ends.
pub(super) fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}
