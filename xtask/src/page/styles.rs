//! The style sheets as one file: their imports in place, without comments and indentation.
//!
//! A browser would load an imported sheet only after the one that imports it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

/// Where the page's style sheets lie.
pub(super) const DIRECTORY: &str = "styles/";
/// The sheet that imports the others.
pub(super) const MAIN: &str = "styles/main.css";

/// Puts every sheet that [`MAIN`] imports, directly or not, into it, and removes the others.
///
/// # Errors
/// A sheet is missing, imported in a circle, from elsewhere, or by no other sheet.
pub(super) fn merge(files: &mut BTreeMap<String, Vec<u8>>) -> Result<()> {
    let mut imported = Vec::new();
    let merged = inlined(files, MAIN, &mut imported, &mut Vec::new())?;
    let unused: Vec<_> = files
        .keys()
        .filter(|path| path.starts_with(DIRECTORY) && !imported.contains(path))
        .cloned()
        .collect();
    ensure!(unused.is_empty(), "{MAIN} does not import {}", unused.join(", "));
    files.retain(|path, _| !path.starts_with(DIRECTORY));
    files.insert(MAIN.to_owned(), merged.into_bytes());
    Ok(())
}

fn inlined(
    files: &BTreeMap<String, Vec<u8>>,
    path: &str,
    imported: &mut Vec<String>,
    within: &mut Vec<String>,
) -> Result<String> {
    ensure!(
        !within.iter().any(|outer| outer == path),
        "{path} imports itself, through {}",
        within.join(", ")
    );
    let bytes = files
        .get(path)
        .with_context(|| format!("there is no style sheet {path}"))?;
    let text = std::str::from_utf8(bytes).with_context(|| format!("{path} is not UTF-8"))?;
    imported.push(path.to_owned());
    within.push(path.to_owned());
    let mut merged = String::new();
    for line in without_comments(text).lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("@import") {
            let import = Import::parse(rest).with_context(|| format!("{path}: cannot read `{line}`"))?;
            let sheet = inlined(files, &format!("{DIRECTORY}{}", import.file), imported, within)?;
            match import.layer {
                Some(layer) => merged.extend(["@layer ", layer, " {\n", &sheet, "}\n"]),
                None => merged.push_str(&sheet),
            }
        } else if !line.is_empty() {
            merged.extend([line, "\n"]);
        }
    }
    within.pop();
    Ok(merged)
}

struct Import<'a> {
    file: &'a str,
    layer: Option<&'a str>,
}

impl<'a> Import<'a> {
    /// Reads what follows `@import`: `"FILE";` or `"FILE" layer(NAME);`, with FILE below [`DIRECTORY`].
    fn parse(rest: &'a str) -> Result<Self> {
        let malformed = "an import is `\"FILE\";` or `\"FILE\" layer(NAME);` on one line";
        let rest = rest.trim().strip_suffix(';').context(malformed)?;
        let (file, condition) = rest
            .strip_prefix('"')
            .and_then(|rest| rest.split_once('"'))
            .context(malformed)?;
        let layer = match condition.trim() {
            "" => None,
            layer => Some(
                layer
                    .strip_prefix("layer(")
                    .and_then(|layer| layer.strip_suffix(')'))
                    .context(malformed)?,
            ),
        };
        if file.contains("//") {
            bail!("a style sheet from elsewhere is not let in");
        }
        Ok(Self {
            file: file.trim_start_matches("./"),
            layer,
        })
    }
}

/// The text without `/* … */`, except where a string holds it.
fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(next) = rest.find(['"', '\'', '/']) {
        let (before, from) = rest.split_at(next);
        kept.push_str(before);
        let length = if let Some(comment) = from.strip_prefix("/*") {
            let length = comment.find("*/").map_or(from.len(), |end| end + 4);
            rest = &from[length..];
            continue;
        } else if from.starts_with('/') {
            1
        } else {
            string_length(from)
        };
        kept.push_str(&from[..length]);
        rest = &from[length..];
    }
    kept.push_str(rest);
    kept
}

/// How many bytes the string at the beginning of the text takes, quotes included.
fn string_length(text: &str) -> usize {
    let mut characters = text.char_indices();
    let quote = characters.next().map(|(_, quote)| quote);
    while let Some((at, character)) = characters.next() {
        if character == '\\' {
            characters.next();
        } else if Some(character) == quote {
            return at + 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheets(sheets: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
        let named = |(path, text): &(&str, &str)| (format!("styles/{path}"), text.as_bytes().to_vec());
        sheets.iter().map(named).collect()
    }

    #[test]
    fn imports_stand_in_their_place() {
        let mut files = sheets(&[
            (
                "main.css",
                "@import \"tokens.css\";\n@import \"./parts/plate.css\" layer(parts);\nbody { margin: 0 }\n",
            ),
            (
                "tokens.css",
                "/* contrast */\n:root {\n  --ink: #141d1e; /* text */\n}\n",
            ),
            ("parts/plate.css", ".plate { }"),
        ]);
        merge(&mut files).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), [MAIN]);
        assert_eq!(
            std::str::from_utf8(&files[MAIN]).unwrap(),
            ":root {\n--ink: #141d1e;\n}\n@layer parts {\n.plate { }\n}\nbody { margin: 0 }\n"
        );
    }

    #[test]
    fn strings_keep_what_looks_like_a_comment() {
        let text = r#"a { content: "/* \" */"; font: 1rem/1.2 'x/*'; } /* gone */ b { }"#;
        assert_eq!(without_comments(text), text.replace("/* gone */", ""));
        assert_eq!(without_comments("a /* never closed"), "a ");
    }

    #[test]
    fn missing_circular_foreign_and_forgotten_sheets_are_errors() {
        let error = |given: &[(&str, &str)]| format!("{:#}", merge(&mut sheets(given)).unwrap_err());
        assert!(
            error(&[("main.css", "@import \"a.css\";")]).contains("there is no style sheet styles/a.css")
        );
        assert!(error(&[("main.css", "@import \"main.css\";")]).contains("imports itself"));
        assert!(error(&[("main.css", "@import \"https://x/a.css\";")]).contains("from elsewhere"));
        assert!(error(&[("main.css", ""), ("a.css", "")]).contains("does not import styles/a.css"));
        assert!(error(&[("main.css", "@import url(a.css);")]).contains("an import is"));
    }
}
