//! Checks of a study's TOML text before it is read: brackets without end, numbers that are not finite, dates.

use std::ops::Range;

use toml::de::{DeTable, DeValue};
use toml_parser::Source;
use toml_parser::lexer::TokenKind;

use super::error::StudyError;

/// A message on one line after the line and column that it is about, both from 1.
pub(super) fn placed(text: &str, span: Option<Range<usize>>, message: &str) -> String {
    let message = message.lines().collect::<Vec<_>>().join("; ");
    let Some(before) = span.and_then(|span| text.get(..span.start)) else {
        return message;
    };
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    format!("line {line}, column {column}: {message}")
}

/// Brackets within brackets in a study, at most. The parser of TOML goes down them one by one and has no bound of its own
/// where they are not closed; thousands would end the program.
const DEEPEST: usize = 100;

/// Refuses more brackets within brackets than a study can need.
pub(super) fn check_depth(text: &str) -> Result<(), StudyError> {
    let mut depth = 0_usize;
    for token in Source::new(text).lex() {
        match token.kind() {
            TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket => depth += 1,
            TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            let place = token.span().start()..token.span().end();
            let problem =
                format!("more than {DEEPEST} brackets are open; close them, or write tables of their own");
            return Err(StudyError::Syntax(placed(text, Some(place), &problem)));
        }
    }
    Ok(())
}

/// Refuses NaN, infinity and dates wherever they stand. Tables that belong to a workload, a model or a method are
/// kept as JSON, which has none of these: the numbers would read as if the key were not there. The first one is told of by
/// its key and its place, and what is wrong with it.
pub(super) fn check_finite(text: &str) -> Result<(), (String, Range<usize>, String)> {
    // What is no TOML is told better by the reader of the study.
    let Ok(document) = DeTable::parse(text) else {
        return Ok(());
    };
    // Below a table keys come in alphabetical order; people read from the top.
    let mut found = Vec::new();
    not_finite("", &DeValue::Table(document.into_inner()), 0..0, &mut found);
    match found.into_iter().min_by_key(|(span, _)| span.start) {
        None => Ok(()),
        Some((span, key)) => {
            let written = text.get(span.clone()).unwrap_or("it").trim().to_owned();
            let problem = if written.parse::<toml::value::Datetime>().is_ok() {
                format!("`{written}` is a date or a time, of which a study has none; a text stands in quotes")
            } else {
                format!("`{written}` is no number to reckon with; write a finite one, or leave the key out")
            };
            Err((key, span, problem))
        }
    }
}

/// Finds the dates and the numbers that are not finite below `value`, with their places and the dotted paths of their keys.
fn not_finite(key: &str, value: &DeValue<'_>, span: Range<usize>, found: &mut Vec<(Range<usize>, String)>) {
    match value {
        DeValue::Datetime(_) => found.push((span, key.to_owned())),
        DeValue::Float(number)
            if number
                .as_str()
                .parse()
                .is_ok_and(|number: f64| !number.is_finite()) =>
        {
            found.push((span, key.to_owned()));
        }
        DeValue::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                not_finite(&format!("{key}[{index}]"), value.get_ref(), value.span(), found);
            }
        }
        DeValue::Table(table) => {
            for (name, value) in table {
                let separator = if key.is_empty() { "" } else { "." };
                let key = format!("{key}{separator}{}", name.get_ref());
                not_finite(&key, value.get_ref(), value.span(), found);
            }
        }
        _ => {}
    }
}
