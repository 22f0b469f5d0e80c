//! The texts sent to critic and rewriter, as minijinja templates in `core/src/templates/`.

use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

/// A template of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Template {
    /// The critic's message.
    Critic,
    /// The rewriter's message.
    Rewriter,
    /// Asks a rewriter once more.
    Retry,
    /// Feedback of the form trajectory.
    Trajectories,
    /// The Constraint-Injected baseline's prompt.
    Inject,
}

impl Template {
    const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Critic, "critic", include_str!("templates/critic.jinja")),
        (
            Self::Rewriter,
            "rewriter",
            include_str!("templates/rewriter.jinja"),
        ),
        (Self::Retry, "retry", include_str!("templates/retry.jinja")),
        (
            Self::Trajectories,
            "trajectories",
            include_str!("templates/trajectories.jinja"),
        ),
        (Self::Inject, "inject", include_str!("templates/inject.jinja")),
    ];

    /// Renders the template.
    ///
    /// # Panics
    /// When the context lacks a name the template uses: both are fixed in this crate, and a test
    /// renders each of them.
    pub fn render(self, context: impl Serialize) -> String {
        static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
            let mut environment = Environment::new();
            environment.set_undefined_behavior(UndefinedBehavior::Strict);
            environment.add_filter("fixed", |value: f64, digits: usize| format!("{value:.digits$}"));
            environment.add_filter("signed", |value: f64, digits: usize| format!("{value:+.digits$}"));
            for (_, name, source) in Template::ALL {
                environment
                    .add_template(name, source)
                    .expect("the crate's own templates parse");
            }
            environment
        });
        let (_, name, _) = Self::ALL[self as usize];
        ENVIRONMENT
            .get_template(name)
            .and_then(|template| template.render(minijinja::value::Serde(context)))
            .expect("the crate's own contexts fit its templates")
            .trim()
            .to_owned()
    }
}

/// The text between the last `<prompt>` and the `</prompt>` after it, trimmed.
///
/// ```
/// use capo_core::templates::delimited_prompt;
///
/// let answer = "It should be kinder.\n<prompt>\nBe kind.\n</prompt>";
/// assert_eq!(delimited_prompt(answer), Some("Be kind."));
/// assert_eq!(delimited_prompt("Be kind."), None);
/// ```
pub fn delimited_prompt(answer: &str) -> Option<&str> {
    let start = answer.rfind("<prompt>")? + "<prompt>".len();
    let length = answer[start..].find("</prompt>")?;
    Some(answer[start..start + length].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_variants() {
        for (index, (template, ..)) in Template::ALL.into_iter().enumerate() {
            assert_eq!(template as usize, index);
        }
    }

    #[test]
    fn finds_the_delimited_prompt() {
        assert_eq!(
            delimited_prompt("thinking <prompt>\n Be kind. \n</prompt> bye"),
            Some("Be kind.")
        );
        assert_eq!(
            delimited_prompt("I use <prompt> tags: <prompt>x</prompt>"),
            Some("x")
        );
        assert_eq!(delimited_prompt("<prompt>cut"), None);
        assert_eq!(delimited_prompt("nothing"), None);
    }
}
