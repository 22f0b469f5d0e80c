//! The language of templates: which are taken.
//!
//! A study may come from a stranger, so a template must end soon and in little memory whatever it says. The
//! engine counts steps, but not what a step writes, and its parser recurses once for each operator. So a tag has
//! few tokens, and a name stands for a column, what a filter makes of one or a constant, never for something put
//! together: otherwise forty lines that each double a text would fill any memory.

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

/// Most bytes of a template.
const MOST_BYTES: usize = 1 << 20;

/// Most lines, and most characters of a line: the engine counts both in 16 bits.
const MOST_LINES: usize = 60_000;

/// Most words and marks between `{{` and `}}` or `{%` and `%}`. The parser, the compiler and the engine recurse at
/// most this often.
const MOST_TOKENS: usize = 250;

/// Most `elif` of a template, each of which the parser nests into the one before.
const MOST_ELIF: usize = 100;

/// The statements there are, for errors.
const STATEMENTS: &str = "there are if, elif, else, endif, for, endfor, set and raw";

/// Why a template is not taken, if so.
///
/// ```text
/// {{ question }}                                taken
/// {% for choice in choices %}…{% endfor %}      taken
/// {% set letters = "ABCD" %}                    taken
/// {% set twice = question ~ question %}         not taken
/// ```
pub(super) fn check(source: &str) -> Result<(), String> {
    if source.len() > MOST_BYTES {
        return Err(format!(
            "it is longer than {} MiB; put long texts into the data",
            MOST_BYTES >> 20
        ));
    }
    let long = |line: &str| line.len() > MOST_LINES && line.chars().count() > MOST_LINES;
    if source.split('\n').count() > MOST_LINES || source.split('\n').any(long) {
        return Err(format!(
            "it has more than {MOST_LINES} lines, or a line of more characters than that; put long texts into \
             the data"
        ));
    }
    let (mut tag, mut line, mut elifs) = (Vec::new(), 0, 0);
    for token in tokenize(source, false, SyntaxConfig::default()) {
        // What does not even fall into words is told by the parser, with its place.
        let Ok((token, span)) = token else { break };
        match token {
            Token::TemplateData(_) => {}
            Token::VariableStart | Token::BlockStart => {
                tag.clear();
                line = span.start_line;
            }
            Token::VariableEnd | Token::BlockEnd => {
                let is_block = matches!(token, Token::BlockEnd);
                check_tag(&tag, is_block, &mut elifs)
                    .map_err(|problem| format!("{problem} (template line {line})"))?;
                tag.clear();
            }
            _ if tag.len() == MOST_TOKENS => {
                return Err(format!(
                    "a tag has more than {MOST_TOKENS} words and marks; split it (template line {line})"
                ));
            }
            token => tag.push(token),
        }
    }
    Ok(())
}

fn check_tag(tag: &[Token<'_>], is_block: bool, elifs: &mut usize) -> Result<(), String> {
    if tag.iter().any(|token| matches!(token, Token::Mul)) {
        return Err("`*` repeats texts and is not there".to_owned());
    }
    if joins_in_lists(tag) > 1 {
        return Err("`~` and `+` are not there in a list within a list".to_owned());
    }
    let Some(Token::Ident(statement)) = tag.first().filter(|_| is_block) else {
        return Ok(());
    };
    match *statement {
        "if" | "else" | "endif" | "endfor" => Ok(()),
        "elif" => {
            *elifs += 1;
            if *elifs > MOST_ELIF {
                return Err(format!("there are more than {MOST_ELIF} `elif`"));
            }
            Ok(())
        }
        "for" => {
            if matches!(tag.last(), Some(Token::Ident("recursive"))) {
                return Err("loops that call themselves are not there".to_owned());
            }
            let list = tag.iter().position(|token| matches!(token, Token::Ident("in")));
            let list = list.map_or(&[][..], |at| iterated(&tag[at + 1..]));
            if puts_together(list) {
                return Err(
                    "a loop goes over a column, a part of one or a constant, not over what is put together"
                        .to_owned(),
                );
            }
            Ok(())
        }
        "set" => {
            let value = tag.iter().position(|token| matches!(token, Token::Assign));
            let value = value
                .filter(|at| !tag[..*at].iter().any(|token| matches!(token, Token::Dot)))
                .map(|at| &tag[at + 1..]);
            if value.is_none_or(puts_together) {
                return Err(
                    "set gives a name to a column, a part of one or a constant, not to what is put together"
                        .to_owned(),
                );
            }
            Ok(())
        }
        other => Err(format!("there is no statement `{other}`; {STATEMENTS}")),
    }
}

/// The most operands that one tag puts together; a step of the engine copies or compares at most so many.
pub(super) fn most_operands(source: &str) -> usize {
    let (mut most, mut operands) = (1, 1);
    for (token, _) in tokenize(source, false, SyntaxConfig::default()).flatten() {
        match token {
            Token::VariableStart | Token::BlockStart => operands = 1,
            Token::Tilde | Token::Plus | Token::Comma => operands += 1,
            _ => {}
        }
        most = most.max(operands);
    }
    most
}

/// How many lists, each in the one before, have a `~` or `+` in the innermost. A list that becomes text has the
/// backslashes of its texts doubled, so a text in a list in a text in a list would double them without end.
fn joins_in_lists(tag: &[Token<'_>]) -> usize {
    let (mut open, mut deepest) = (Vec::new(), 0);
    for (at, token) in tag.iter().enumerate() {
        let is_after_value = at.checked_sub(1).is_some_and(|before| is_value(&tag[before]));
        match token {
            Token::BracketOpen | Token::ParenOpen => {
                open.push(
                    !is_after_value && (matches!(token, Token::BracketOpen) || has_own_comma(&tag[at + 1..])),
                );
            }
            Token::BraceOpen => open.push(true),
            Token::BracketClose | Token::ParenClose | Token::BraceClose => {
                open.pop();
            }
            Token::Tilde | Token::Plus => {
                deepest = deepest.max(open.iter().filter(|is_list| **is_list).count());
            }
            _ => {}
        }
    }
    deepest
}

/// Whether there is a comma before the end of these tokens, or of the bracket that they stand in, and in no bracket
/// of theirs.
fn has_own_comma(tokens: &[Token<'_>]) -> bool {
    let mut depth = 0_usize;
    for token in tokens {
        match token {
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
            Token::ParenClose | Token::BracketClose | Token::BraceClose if depth == 0 => return false,
            Token::ParenClose | Token::BracketClose | Token::BraceClose => depth -= 1,
            Token::Comma if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

/// What a loop goes over, without the condition that may follow.
fn iterated<'a, 't>(tokens: &'a [Token<'t>]) -> &'a [Token<'t>] {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
            Token::ParenClose | Token::BracketClose | Token::BraceClose => depth = depth.saturating_sub(1),
            Token::Ident("if") if depth == 0 => return &tokens[..at],
            _ => {}
        }
    }
    tokens
}

/// Whether an expression makes something larger of the values that names stand for.
fn puts_together(tokens: &[Token<'_>]) -> bool {
    let number = |at: usize| matches!(tokens.get(at), Some(Token::Int(_) | Token::Float(_)));
    let joins = tokens.iter().enumerate().any(|(at, token)| match token {
        Token::Tilde => true,
        Token::Plus => !(number(at + 1) || at > 0 && number(at - 1)),
        _ => false,
    });
    let lists = tokens.iter().enumerate().any(|(at, token)| match token {
        Token::BraceOpen => true,
        // Otherwise it takes a part of what stands before it.
        Token::BracketOpen => at.checked_sub(1).is_none_or(|before| !is_value(&tokens[before])),
        // `(a, b)` is a list as well; so may be the arguments of a filter, which are no value.
        _ => false,
    });
    let tuples = tokens.iter().enumerate().any(|(at, token)| {
        matches!(token, Token::ParenOpen) && at.checked_sub(1).is_none_or(|before| !is_value(&tokens[before]))
    }) && tokens.iter().any(|token| matches!(token, Token::Comma));
    // `a, b` is a list, too.
    let bare = has_own_comma(tokens);
    joins || (lists || tuples || bare) && tokens.iter().any(is_name)
}

/// Whether what ends with `token` is a value that a bracket may follow.
fn is_value(token: &Token<'_>) -> bool {
    match token {
        Token::Ident(word) => !matches!(*word, "in" | "not" | "and" | "or" | "if" | "else" | "is"),
        Token::Str(_) | Token::String(_) | Token::BracketClose | Token::ParenClose | Token::BraceClose => {
            true
        }
        _ => false,
    }
}

fn is_name(token: &Token<'_>) -> bool {
    matches!(token, Token::Ident(word) if !matches!(*word, "true" | "True" | "false" | "False" | "none" | "None"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tables_need_is_taken() {
        for source in [
            "{{ question }}",
            "{{ a ~ b }} {{ [a, b] | join(' ') }}",
            "{% for choice in choices %}{{ loop.index }}. {{ choice }}{% else %}none{% endfor %}",
            "{% for choice in item['the choices'][1:3] if choice not in ['A', 'B'] %}{% endfor %}",
            "{% for n in range(1, choices | length + 1) %}{{ n }}{% endfor %}",
            "{% for name, value in item | dictsort(by='value') %}{% endfor %}",
            "{% for letter in ['A', 'B'] %}{% endfor %}",
            "{{ [a ~ b, c[d ~ e]] | join(', ') ~ (f ~ g) }}",
            "{% set q = question | trim %}{% set x = column %}{% set x = x[1:] %}",
            "{% set letters = ['A', 'B'] %}{% set count = -2.5 %}{% set yes = true %}",
            "{% if a is defined and not b %}{% elif c %}{% else %}{% endif %}",
            "{% raw %}{% with %}{{ * }}{% endraw %}{# {% with %} * #} * and {% set x = '*' %}",
        ] {
            assert_eq!(check(source), Ok(()), "{source}");
        }
    }

    #[test]
    fn what_may_grow_is_refused_with_its_line() {
        for (source, problem) in [
            ("\n{% set a = q ~ q %}", "set gives a name to a column"),
            ("{% set a = [q, q] %}", "set gives a name to a column"),
            (
                "{{ [[[q] ~ ''] ~ ''] ~ '' }}",
                "`~` and `+` are not there in a list within a list",
            ),
            (
                "{{ ((q ~ '',) ~ '', 1) ~ '' }}",
                "`~` and `+` are not there in a list within a list",
            ),
            (
                "{{ {'a': {'a': q ~ ''} ~ ''} ~ '' }}",
                "`~` and `+` are not there in a list within a list",
            ),
            ("{% set a = 'x' ~ 'y' %}", "set gives a name to a column"),
            ("{% set a = q, q %}", "set gives a name to a column"),
            ("{% set a = q, %}", "set gives a name to a column"),
            ("{% for a in q, q %}{% endfor %}", "a loop goes over a column"),
            (
                "{% set a %}{{ q }}{{ q }}{% endset %}",
                "set gives a name to a column",
            ),
            ("{% set ns.a = ns.a %}", "set gives a name to a column"),
            (
                "{% with a = q ~ q %}{% endwith %}",
                "there is no statement `with`",
            ),
            (
                "{% filter upper %}{% endfilter %}",
                "there is no statement `filter`",
            ),
            ("{% for a in [q ~ q] %}{% endfor %}", "a loop goes over a column"),
            ("{% for a in [[q, q]] %}{% endfor %}", "a loop goes over a column"),
            ("{% for a in (q, q) %}{% endfor %}", "a loop goes over a column"),
            (
                "{% for a in {'a': q} | items %}{% endfor %}",
                "a loop goes over a column",
            ),
            ("{% for a in q + q %}{% endfor %}", "a loop goes over a column"),
            (
                "{% for a in (1 if b else [q]) %}{% endfor %}",
                "a loop goes over a column",
            ),
            (
                "{% for a in q | default([q, q]) %}{% endfor %}",
                "a loop goes over a column",
            ),
            (
                "{% for a in q recursive %}{{ loop(a) }}{% endfor %}",
                "loops that call themselves",
            ),
            ("{{ 'x' * 100000000 }}", "`*` repeats texts"),
            ("{{ q | join('{{') * 2 }}", "`*` repeats texts"),
        ] {
            let refused = check(source).unwrap_err();
            assert!(refused.starts_with(problem), "{source}: {refused}");
        }
        assert!(
            check("\n{% set a = q ~ q %}")
                .unwrap_err()
                .ends_with("(template line 2)")
        );
    }

    #[test]
    fn templates_are_short_and_their_tags_are() {
        let many = |operator: &str, last: &str| format!("{{{{ {}{last} }}}}", operator.repeat(2_000));
        for source in [
            many("not ", "q"),
            many("-", "1"),
            many("q ~ ", "q"),
            many("q.", "x"),
            many("q if q else ", "q"),
        ] {
            assert!(
                check(&source)
                    .unwrap_err()
                    .starts_with("a tag has more than 250 words and marks")
            );
        }
        for long in ["x".repeat(70_000), "\n".repeat(70_000)] {
            assert!(
                check(&long)
                    .unwrap_err()
                    .starts_with("it has more than 60000 lines")
            );
        }
        let elifs = format!("{{% if q %}}{}{{% endif %}}", "{% elif q %}".repeat(1_000));
        assert!(
            check(&elifs)
                .unwrap_err()
                .starts_with("there are more than 100 `elif`")
        );
        assert!(
            check(&"x".repeat(2 << 20))
                .unwrap_err()
                .starts_with("it is longer than 1 MiB")
        );
    }
}
