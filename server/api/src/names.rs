//! Names, as they are allowed.

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

/// What a member signs in with: 2 to 64 small letters, digits or `. _ - @ +`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[a-z0-9._@+-]{2,64}$"))]
#[serde(try_from = "String")]
pub struct MemberName(String);

/// What follows `/api/projects/` and is no project.
const TAKEN: &str = "import";

/// The name of a project in addresses: 2 to 64 small letters, digits or `-`, which is not the first. It is not `import`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[a-z0-9][a-z0-9-]{1,63}$"))]
#[serde(try_from = "String")]
pub struct ProjectName(String);

/// The name of a prompt in addresses; the rule is that of [`ProjectName`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[a-z0-9][a-z0-9-]{1,63}$"))]
#[serde(try_from = "String")]
pub struct PromptName(String);

/// A label of a prompt's version, such as `production`; the rule is that of [`ProjectName`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[a-z0-9][a-z0-9-]{1,63}$"))]
#[serde(try_from = "String")]
pub struct LabelName(String);

/// The name of a data set, which is that of a file and no path: 1 to 200 characters on one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, min_length = 1, max_length = 200))]
#[serde(try_from = "String")]
pub struct DataSetName(String);

/// A title for people: 1 to 200 characters on one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, min_length = 1, max_length = 200))]
#[serde(try_from = "String")]
pub struct Title(String);

fn is_letter(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit()
}

impl TryFrom<String> for MemberName {
    type Error = NameError;

    /// In small letters, without spaces around it.
    fn try_from(text: String) -> Result<Self, NameError> {
        let name = text.trim().to_lowercase();
        let is_allowed = |letter: char| is_letter(letter) || "._@+-".contains(letter);
        if (2..=64).contains(&name.len()) && name.chars().all(is_allowed) {
            Ok(Self(name))
        } else {
            Err(NameError::Member)
        }
    }
}

/// Whether a text is a name in addresses: 2 to 64 small letters, digits or `-`, which is not the first.
fn is_in_addresses(name: &str) -> bool {
    let is_allowed = |letter: char| is_letter(letter) || letter == '-';
    (2..=64).contains(&name.len()) && name.chars().all(is_allowed) && !name.starts_with('-')
}

impl TryFrom<String> for ProjectName {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        (is_in_addresses(&name) && name != TAKEN)
            .then_some(Self(name))
            .ok_or(NameError::Project)
    }
}

impl TryFrom<String> for PromptName {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        is_in_addresses(&name)
            .then_some(Self(name))
            .ok_or(NameError::Prompt)
    }
}

impl TryFrom<String> for LabelName {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        is_in_addresses(&name)
            .then_some(Self(name))
            .ok_or(NameError::Label)
    }
}

/// A text that is one line of 1 to 200 characters, without spaces around it.
fn line(text: &str) -> Option<&str> {
    let line = text.trim();
    let is_one = !line.is_empty() && line.chars().count() <= 200 && !line.chars().any(char::is_control);
    is_one.then_some(line)
}

impl TryFrom<String> for DataSetName {
    type Error = NameError;

    /// Without spaces around it.
    fn try_from(text: String) -> Result<Self, NameError> {
        let name = line(&text).filter(|name| !name.starts_with('.') && !name.contains(['/', '\\']));
        name.map(|name| Self(name.to_owned())).ok_or(NameError::DataSet)
    }
}

impl TryFrom<String> for Title {
    type Error = NameError;

    /// Without spaces around it.
    fn try_from(text: String) -> Result<Self, NameError> {
        line(&text)
            .map(|title| Self(title.to_owned()))
            .ok_or(NameError::Title)
    }
}

impl MemberName {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ProjectName {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PromptName {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl LabelName {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl DataSetName {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Title {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
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
