//! Variables in a file `.env`.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Read};

use capo_models::{Environment, Keys};

/// What the process has of variables and, where it lacks one, a file. Nothing shows their values.
#[derive(Clone, Default)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Reads `NAME=value` lines, in the notation that most readers of such files share; the process gets none of them.
    ///
    /// # Errors
    /// The first line that is none, from 1.
    pub fn parse(text: &str) -> Result<Self, usize> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // The reader takes blanks at the end of a text for an open line.
        let text = format!("{text}\n");
        let given = Cell::new(0);
        let lines = Lines {
            rest: text.as_bytes(),
            given: &given,
        };
        let (mut variables, mut read) = (BTreeMap::new(), 0);
        for variable in dotenvy::from_read_iter(lines) {
            // The error holds the line itself.
            let Ok((name, value)) = variable else {
                let begins = |(line, _): &(&str, usize)| {
                    let line = line.trim_start();
                    !line.is_empty() && !line.starts_with('#')
                };
                let wrong = text.lines().zip(1..).skip(read).find(begins);
                return Err(wrong.map_or(1, |(_, number)| number));
            };
            variables.insert(name, value);
            read = given.get();
        }
        Ok(Self(variables))
    }

    /// The value of a variable in the file.
    pub fn kept(&self, name: &str) -> Option<&String> {
        self.0.get(name)
    }
}

impl Keys for Variables {
    fn get(&self, variable: &str, origin: &str) -> Option<String> {
        let own = Environment.get(variable, origin);
        own.or_else(|| self.kept(variable).cloned())
    }
}

/// A text that is given out line by line, and how many lines were.
struct Lines<'a> {
    rest: &'a [u8],
    given: &'a Cell<usize>,
}

impl Read for Lines<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let line = self.rest.split_inclusive(|byte| *byte == b'\n').next();
        let mut line = line.unwrap_or_default();
        let count = line.read(buffer)?;
        self.given
            .set(self.given.get() + usize::from(count > 0 && line.is_empty()));
        self.rest = &self.rest[count..];
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_comments_and_exports_are_read_and_the_last_of_two_counts() {
        let text =
            "\u{feff}# keys\r\nCAPO_A=one \r\nexport CAPO_B='t w o' # two\n\nCAPO_C=\"a\nb\"\nCAPO_A=three  ";
        let Ok(read) = Variables::parse(text) else {
            panic!("every line is a variable")
        };
        let kept = |name| read.kept(name).map(String::as_str);
        assert_eq!(
            [kept("CAPO_A"), kept("CAPO_B"), kept("CAPO_C"), kept("CAPO_D")],
            [Some("three"), Some("t w o"), Some("a\nb"), None]
        );
        assert_eq!(read.get("CAPO_B", "").as_deref(), Some("t w o"));
    }

    #[test]
    fn the_environment_comes_first() {
        let read = Variables::parse("PATH=/nowhere").unwrap_or_default();
        assert_eq!(read.get("PATH", ""), std::env::var("PATH").ok());
    }

    #[test]
    fn a_wrong_line_is_named() {
        let long = format!("CAPO_A={}\n", "x".repeat(20_000));
        for (text, line) in [
            ("CAPO_A=1\nsk-secret\n".to_owned(), 2),
            ("# a\n\nCAPO_A=two words\r\nCAPO_B=1".to_owned(), 3),
            ("CAPO_A=\"1\n2\"\n\n# b\nCAPO_B=\"open\nCAPO_C=1\n".to_owned(), 5),
            (format!("{long}{long}=1\n"), 3),
        ] {
            assert_eq!(Variables::parse(&text).err(), Some(line), "{text:?}");
        }
    }
}
