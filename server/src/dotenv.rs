//! Variables in a file `.env`.

use std::collections::BTreeMap;

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
        let mut variables = BTreeMap::new();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (line, number) in text.lines().zip(1..) {
            // The reader takes blanks at the end of a text for an open line.
            let line = format!("{}\n", line.trim());
            match dotenvy::from_read_iter(line.as_bytes()).next() {
                Some(Ok((name, value))) => {
                    variables.insert(name, value);
                }
                // The error holds what the line does.
                Some(Err(_)) => return Err(number),
                None => {}
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_comments_and_exports_are_read_and_the_last_of_two_counts() {
        let text = "\u{feff}# keys\r\nCAPO_A=one \r\nexport CAPO_B='t w o' # two\n\nCAPO_C=\"a\\nb\"\nCAPO_A=three  ";
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
        for (text, line) in [
            ("CAPO_A=1\nsk-secret\n", 2),
            ("# a\n\nCAPO_A=two words\r\nCAPO_B=1", 3),
            ("CAPO_A=1\n\n# b\nCAPO_B=\"open\nCAPO_C=1\n", 4),
        ] {
            assert_eq!(Variables::parse(text).err(), Some(line), "{text:?}");
        }
    }
}
