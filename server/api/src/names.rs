//! Names, as they are allowed.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Why a text is no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Of a member.
    #[error("a member's name has 2 to 64 letters (a to z), digits or . _ - @ +")]
    Member,
    /// Of a project.
    #[error(
        "a project's name has 2 to 64 small letters (a to z), digits or -, no - at first, and is not `import`"
    )]
    Project,
    /// Of a prompt.
    #[error("a prompt's name has 2 to 64 small letters (a to z), digits or -, and no - at first")]
    Prompt,
    /// Of a label.
    #[error("a label has 2 to 64 small letters (a to z), digits or -, and no - at first, such as production")]
    Label,
    /// Of a data set.
    #[error(
        "a data set has the name of a file: one line of 1 to 200 characters without / and \\, and no . at first, such as rows.csv"
    )]
    DataSet,
    /// A title.
    #[error("a title is one line of 1 to 200 characters")]
    Title,
}

/// Declares names: what they are, what the API's description says of their text, what makes one of a text, and why it is
/// none.
macro_rules! names {
    ($($(#[$about:meta])+ $name:ident($read:ident, $error:ident, $($schema:tt)+);)*) => {$(
        $(#[$about])+
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[cfg_attr(feature = "openapi", schema(value_type = String, $($schema)+))]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                $read(text).map(Self).ok_or(NameError::$error)
            }
        }
    )*};
}

names! {
    /// What a member signs in with: 2 to 64 small letters, digits or `. _ - @ +`.
    MemberName(member, Member, pattern = "^[a-z0-9._@+-]{2,64}$");
    /// The name of a project in addresses: 2 to 64 small letters, digits or `-`, which is not the first. It is not `import`.
    ProjectName(project, Project, pattern = "^[a-z0-9][a-z0-9-]{1,63}$");
    /// The name of a prompt in addresses; the rule is that of [`ProjectName`].
    PromptName(in_addresses, Prompt, pattern = "^[a-z0-9][a-z0-9-]{1,63}$");
    /// A label of a prompt's version, such as `production`; the rule is that of [`ProjectName`].
    LabelName(in_addresses, Label, pattern = "^[a-z0-9][a-z0-9-]{1,63}$");
    /// The name of a data set, which is that of a file and no path: 1 to 200 characters on one line.
    DataSetName(file, DataSet, min_length = 1, max_length = 200);
    /// A title for people: 1 to 200 characters on one line.
    Title(line, Title, min_length = 1, max_length = 200);
}

/// What follows `/api/projects/` and is no project.
const TAKEN: &str = "import";

fn is_letter(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit()
}

/// In small letters, without spaces around it.
fn member(text: &str) -> Option<String> {
    let name = text.trim().to_lowercase();
    let is_allowed = |letter: char| is_letter(letter) || "._@+-".contains(letter);
    ((2..=64).contains(&name.len()) && name.chars().all(is_allowed)).then_some(name)
}

/// A name in addresses: 2 to 64 small letters, digits or `-`, which is not the first.
fn in_addresses(name: &str) -> Option<String> {
    let is_allowed = |letter: char| is_letter(letter) || letter == '-';
    let is_name = (2..=64).contains(&name.len()) && name.chars().all(is_allowed) && !name.starts_with('-');
    is_name.then(|| name.to_owned())
}

fn project(name: &str) -> Option<String> {
    in_addresses(name).filter(|name| name != TAKEN)
}

/// One line of 1 to 200 characters, without spaces around it.
fn line(text: &str) -> Option<String> {
    let line = text.trim();
    let is_one = !line.is_empty() && line.chars().count() <= 200 && !line.chars().any(char::is_control);
    is_one.then(|| line.to_owned())
}

fn file(text: &str) -> Option<String> {
    line(text).filter(|name| !name.starts_with('.') && !name.contains(['/', '\\']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_they_may_be() {
        let member = |text: &str| MemberName::try_from(text.to_owned()).map(|name| name.as_str().to_owned());
        assert_eq!(member(" Ada@example.org "), Ok("ada@example.org".into()));
        for wrong in ["a", "ada lovelace", "ada/..", "äda", ""] {
            assert_eq!(member(wrong), Err(NameError::Member), "{wrong}");
        }
        let project = |text: &str| ProjectName::try_from(text.to_owned());
        assert!(project("help-desk-2").is_ok());
        for wrong in ["Help", "-desk", "a", "a b", "a/b", ".."] {
            assert_eq!(project(wrong), Err(NameError::Project), "{wrong}");
            assert_eq!(PromptName::try_from(wrong.to_owned()), Err(NameError::Prompt));
            assert_eq!(LabelName::try_from(wrong.to_owned()), Err(NameError::Label));
        }
        assert_eq!(
            Title::try_from(" Ünser <b>Tisch</b> ".to_owned())
                .unwrap()
                .as_str(),
            "Ünser <b>Tisch</b>"
        );
        for wrong in ["", "  ", "two\nlines", &"x".repeat(201)] {
            assert!(Title::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
        assert!(DataSetName::try_from("Fragen (März).csv".to_owned()).is_ok());
        for wrong in ["", "../rows.csv", "..", "a\\rows.csv", "rows\n.csv", ".csv"] {
            assert_eq!(
                DataSetName::try_from(wrong.to_owned()),
                Err(NameError::DataSet),
                "{wrong}"
            );
        }
    }
}
