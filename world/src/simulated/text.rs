//! Sentences and words, as far as the simulated models can read.

/// One word or comma of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// Lower case, without possessive or contraction (`don't` is two words, `do` and `not`). Never
    /// empty.
    pub(super) text: String,
    /// Whether it was written in capitals (four letters or more).
    pub(super) shouted: bool,
}

/// A sentence, list item or heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sentence<'a> {
    /// As it was written, without white space around it.
    pub(super) source: &'a str,
    /// Where it starts, in bytes of the whole text.
    pub(super) start: usize,
    /// Its words; a comma, colon, dash or bracket is the word `,`.
    pub(super) words: Vec<Word>,
}

/// Where the sentences of a text are, as byte ranges without the white space around them. Ends are
/// full stops, question and exclamation marks followed by white space, semicolons and line breaks.
pub(super) fn sentence_ranges(text: &str) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    let bytes = text.as_bytes();
    let mut start = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        let next_is_space = bytes.get(index + 1).is_none_or(u8::is_ascii_whitespace);
        let ends = match byte {
            b'\n' | b';' => true,
            b'!' | b'?' => next_is_space,
            b'.' => next_is_space && !is_abbreviation_or_number(&text[start..index]),
            _ => false,
        };
        if ends {
            push_trimmed(text, start, index + 1, &mut ranges);
            start = index + 1;
        }
    }
    push_trimmed(text, start, text.len(), &mut ranges);
    ranges
}

fn push_trimmed(text: &str, start: usize, end: usize, ranges: &mut Vec<(usize, usize)>) {
    let piece = &text[start..end];
    let trimmed = piece.trim();
    if !trimmed.is_empty() {
        let start = start + (piece.len() - piece.trim_start().len());
        ranges.push((start, start + trimmed.len()));
    }
}

/// `e.g`, `i.e` and the number of a list item do not end a sentence.
fn is_abbreviation_or_number(before: &str) -> bool {
    let last = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    matches!(last, "e.g" | "i.e" | "etc" | "vs")
        || (before.trim().len() == last.len()
            && !last.is_empty()
            && last.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The sentences of a text with their words.
pub(super) fn sentences(text: &str) -> Vec<Sentence<'_>> {
    sentence_ranges(text)
        .into_iter()
        .map(|(start, end)| {
            let source = &text[start..end];
            Sentence {
                source,
                start,
                words: words(source),
            }
        })
        .collect()
}

/// The words of a text, lower case; marks that part clauses become the word `,`.
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut current = String::new();
    for character in text.chars().chain([' ']) {
        match character {
            '’' | '\'' => current.push('\''),
            _ if character.is_alphanumeric() || character == '_' => current.push(character),
            _ => {
                push_word(&mut current, &mut words);
                if matches!(character, ',' | ':' | '–' | '—' | '(' | ')')
                    && words.last().is_some_and(|word: &Word| word.text != ",")
                {
                    words.push(Word {
                        text: ",".into(),
                        shouted: false,
                    });
                }
            }
        }
    }
    words
}

fn push_word(current: &mut String, words: &mut Vec<Word>) {
    let raw = std::mem::take(current);
    let raw = raw.trim_matches('\'');
    if raw.is_empty() {
        return;
    }
    let shouted = raw.chars().count() >= 4
        && raw.chars().any(char::is_alphabetic)
        && raw.chars().all(|character| !character.is_lowercase());
    let lower = raw.to_lowercase();
    let (stem, negated) = match lower.as_str() {
        "cannot" | "can't" => ("can", true),
        "won't" => ("will", true),
        other => match other.strip_suffix("n't") {
            Some(stem) => (stem, true),
            None => (other.split('\'').next().unwrap_or_default(), false),
        },
    };
    // Some write "do n't": the contraction stands alone and has no stem.
    if !stem.is_empty() {
        words.push(Word {
            text: stem.to_owned(),
            shouted,
        });
    }
    if negated {
        words.push(Word {
            text: "not".into(),
            shouted,
        });
    }
}

/// A text's length in the unit models bill by: about four characters to a token, at least one for
/// a text that is not empty.
pub(super) fn tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

/// The text between the first `<name>` and the next `</name>`, without the line breaks around it.
pub(super) fn block<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    blocks(text, name).into_iter().next()
}

/// The texts between each `<name>` and the next `</name>`.
pub(super) fn blocks<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(&open) {
        let Some((inside, after)) = after.split_once(&close) else {
            break;
        };
        found.push(inside.trim_matches('\n'));
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Vec<String> {
        words(text).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn contractions_and_hyphens_come_apart() {
        assert_eq!(
            plain("Don’t re-ask, you can't!"),
            ["do", "not", "re", "ask", ",", "you", "can", "not"]
        );
        assert_eq!(plain("the customer's order"), ["the", "customer", "order"]);
        assert_eq!(plain("Do n't guess. N'T"), ["do", "not", "guess", "not"]);
    }

    #[test]
    fn list_items_and_sentences_are_split() {
        let text = "# Rules\n1. Be kind, e.g. say hello. Be 1.5 times faster!\n- Stop; wait";
        let found: Vec<&str> = sentences(text).iter().map(|sentence| sentence.source).collect();
        assert_eq!(
            found,
            [
                "# Rules",
                "1. Be kind, e.g. say hello.",
                "Be 1.5 times faster!",
                "- Stop;",
                "wait"
            ]
        );
    }

    #[test]
    fn shouting_is_noticed() {
        assert!(words("NEVER guess")[0].shouted);
        assert!(!words("ID please")[0].shouted);
    }
}
