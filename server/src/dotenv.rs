//! Variables in a file `.env`.

use std::collections::BTreeMap;

use capo_models::{Environment, Keys};

/// What the process has of variables and, where it lacks one, a file. Nothing shows their values.
#[derive(Clone, Default)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Reads `NAME=value` lines, in the notation that most readers of such files share, but with every `$` as it is; the
    /// process gets none of them. The numbers of lines that are none, from 1, come beside.
    pub fn parse(text: &str) -> (Self, Vec<usize>) {
        let (mut variables, mut wrong) = (BTreeMap::new(), Vec::new());
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (line, number) in text.lines().zip(1..) {
            // The reader takes blanks at the end of a text for an open line.
            let line = format!("{}\n", literal(line.trim()));
            match dotenvy::from_read_iter(line.as_bytes()).next() {
                Some(Ok((name, value))) => {
                    variables.insert(name, value.replace(DOLLAR, "$"));
                }
                // The error holds what the line does.
                Some(Err(_)) => wrong.push(number),
                None => {}
            }
        }
        (Self(variables), wrong)
    }

    /// The value of a variable in the file.
    pub fn kept(&self, name: &str) -> Option<&String> {
        self.0.get(name)
    }
}

/// Stands for `$` while a line is read, where the reader would put in another variable.
const DOLLAR: char = '\u{f0000}';

fn literal(line: &str) -> String {
    let mut is_escaped = false;
    let characters = line.chars().map(|character| {
        let was_escaped = is_escaped;
        is_escaped = character == '\\' && !was_escaped;
        match character {
            '$' if !was_escaped => DOLLAR,
            other => other,
        }
    });
    characters.collect()
}

impl Keys for Variables {
    fn get(&self, variable: &str, origin: &str) -> Option<String> {
        let own = Environment.get(variable, origin);
        let mut found = own.into_iter().chain(self.kept(variable).cloned());
        found.find(|value| !value.trim().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_comments_and_exports_are_read_and_the_last_of_two_counts() {
        let text = "\u{feff}# keys\r\nCAPO_A=one \r\nexport CAPO_B='t w o' # two\n\nCAPO_C=\"a\\nb\"\nCAPO_A=three  ";
        let (read, wrong) = Variables::parse(text);
        assert!(wrong.is_empty(), "every line is a variable");
        let kept = |name| read.kept(name).map(String::as_str);
        assert_eq!(
            [kept("CAPO_A"), kept("CAPO_B"), kept("CAPO_C"), kept("CAPO_D")],
            [Some("three"), Some("t w o"), Some("a\nb"), None]
        );
        assert_eq!(read.get("CAPO_B", "").as_deref(), Some("t w o"));
    }

    #[test]
    fn the_environment_comes_first() {
        let read = Variables::parse("PATH=/nowhere\nCAPO_BLANK=\n").0;
        assert_eq!(read.get("PATH", ""), std::env::var("PATH").ok());
        assert_eq!(read.get("CAPO_BLANK", ""), None);
    }

    #[test]
    fn dollars_are_part_of_values() {
        for (written, value) in [
            ("sk-$HOME", "sk-$HOME"),
            ("\"${PATH} $\"", "${PATH} $"),
            ("'$a\\$b'", "$a\\$b"),
            ("a\\$b\\\\$c", "a$b\\$c"),
        ] {
            let (read, wrong) = Variables::parse(&format!("CAPO_A={written} # $5"));
            let kept = read.kept("CAPO_A").map(String::as_str);
            assert_eq!((kept, wrong), (Some(value), Vec::new()), "{written}");
        }
    }

    #[test]
    fn wrong_lines_are_named_and_the_others_read() {
        for (text, line, read) in [
            ("CAPO_A=1\nsk-secret\n", 2, 1),
            ("# a\n\nCAPO_A=two words\r\nCAPO_B=1", 3, 1),
            ("CAPO_A=1\n\n# b\nCAPO_B=\"open\nCAPO_C=1\n", 4, 2),
        ] {
            let (variables, wrong) = Variables::parse(text);
            assert_eq!((wrong, variables.0.len()), (vec![line], read), "{text:?}");
        }
    }
}
