//! Text made harmless for a terminal: control characters, escape sequences; its width and encoding.

use std::borrow::Cow;
use std::sync::LazyLock;

use console::Term;

/// A text in which nothing steers the terminal it is shown on. Answers of models, names in studies
/// and journals, and words of providers are written by others: control characters in them (the
/// escape sequences that clear a screen or set a title among them) stand as signs of their own.
/// Line breaks and tabs stay.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|sign| sign.is_control() && sign != '\n') {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        shown.push(match sign {
            '\n' | '\t' => sign,
            '\r' if signs.peek() == Some(&'\n') => sign,
            '\0'..='\x1f' => picture(u32::from(sign)),
            '\x7f' => picture(0x21),
            sign if sign.is_control() => char::REPLACEMENT_CHARACTER,
            sign => sign,
        });
    }
    Cow::Owned(shown)
}

/// JSON of the same value, in which nothing steers a terminal either. Of control characters JSON
/// escapes only those below the blank.
pub(crate) fn harmless_json(json: &str) -> Cow<'_, str> {
    let steers = |sign: char| ('\x7f'..='\u{9f}').contains(&sign);
    if !json.contains(steers) {
        return Cow::Borrowed(json);
    }
    // Such a one stands in strings only.
    let escaped = |sign: char| {
        if steers(sign) {
            format!("\\u{:04x}", u32::from(sign))
        } else {
            sign.to_string()
        }
    };
    Cow::Owned(json.chars().map(escaped).collect())
}

/// Columns of a terminal that does not say how many it has, and of what is none.
const COLUMNS: usize = 80;

/// How many columns a stream shows.
pub(crate) fn columns(of: &Term) -> usize {
    of.size_checked()
        .map_or(COLUMNS, |(_, columns)| usize::from(columns))
}

/// Unicode's picture of a control character.
fn picture(code: u32) -> char {
    char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Whether the person's locale writes more than ASCII, as the environment says.
pub(crate) fn writes_unicode() -> bool {
    static WRITES: LazyLock<bool> =
        LazyLock::new(|| cfg!(windows) || is_utf8(|name| std::env::var(name).ok()));
    *WRITES
}

/// The first of these that is set and not empty decides, as POSIX has it.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(variable)
        .find(|value| !value.is_empty());
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// A text in what the person's locale can write.
pub(crate) fn writable(text: &str) -> Cow<'_, str> {
    if writes_unicode() {
        Cow::Borrowed(text)
    } else {
        in_ascii(text)
    }
}

/// A text in ASCII alone: this program's own signs by their nearest, all others as a question mark.
fn in_ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            sign if sign.is_ascii() => shown.push(sign),
            '·' | '│' => shown.push('|'),
            '–' | '−' | '─' | '━' => shown.push('-'),
            '…' => shown.push_str("..."),
            '±' => shown.push_str("+-"),
            '→' => shown.push_str("->"),
            'λ' => shown.push_str("lambda"),
            _ => shown.push('?'),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escape_sequences_are_shown_and_not_obeyed() {
        assert_eq!(harmless("a\x1b[2Jb\u{9b}2J\x07\x7f"), "a␛[2Jb\u{fffd}2J␇␡");
        assert_eq!(harmless("one\ttwo\r\nthree\r"), "one\ttwo\r\nthree␍");
        assert!(matches!(harmless("Grüße · λ\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_locale_says_what_can_be_written() {
        for (settings, expected) in [
            (&[][..], false),
            (&[("LANG", "C.UTF-8")], true),
            (&[("LANG", "de_DE.utf8")], true),
            (&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")], false),
            (&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "")], true),
            (&[("LANG", "C"), ("LC_CTYPE", "en_GB.UTF-8")], true),
            (&[("LANG", "de_DE@euro")], false),
        ] {
            let of = |name: &str| {
                let setting = settings.iter().find(|(setting, _)| *setting == name);
                setting.map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(is_utf8(of), expected, "{settings:?}");
        }
    }

    #[test]
    fn signs_of_this_program_have_a_likeness_in_ascii() {
        assert_eq!(in_ascii("λ a 0.5 · −1 ± 2 … ⠋"), "lambda a 0.5 | -1 +- 2 ... ?");
    }

    proptest! {
        #[test]
        fn whatever_is_written_steers_nothing(text in any::<String>()) {
            let shown = harmless(&text);
            let steers = |sign: char| sign.is_control() && !matches!(sign, '\n' | '\t' | '\r');
            prop_assert!(!shown.contains(steers));
            prop_assert!(!shown.replace("\r\n", "").contains('\r'));
            prop_assert_eq!(shown.chars().count(), text.chars().count());
            prop_assert!(in_ascii(&shown).is_ascii());
            let json = serde_json::to_string(&text).unwrap();
            let shown = harmless_json(&json);
            prop_assert!(!shown.contains(char::is_control));
            prop_assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
        }
    }
}
