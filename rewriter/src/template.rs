//! What the rewriter is asked: one fixed text, the same in training and inference.
//!
//! The words are [`Wording`]'s; the model's own chat template puts its special tokens around them.
//! A special token spelt out in a prompt or a feedback is read as one, as in every chat template.

use std::path::Path;
use std::sync::LazyLock;

use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::{Deserialize, Serialize};

use crate::chat::{ChatTemplate, Message};
use crate::config::{ModelConfig, read_json};
use crate::error::{FileError, RequestError};
use crate::feedback::{Cuttable, LeftOut};
use crate::tokenizer::Tokenizer;

/// What a rewrite is made from, p⁺ ~ π(· | p⁽⁰⁾, p⁽ᵈ⁻¹⁾, ξ⁽ᵈ⁻¹⁾, λ).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RewriteRequest {
    /// The prompt to be rewritten, p⁽⁰⁾.
    pub parent: String,
    /// At depths beyond the first the rewrite p⁽ᵈ⁻¹⁾ that the feedback is about.
    pub draft: Option<String>,
    /// The feedback ξ on the draft, or on the parent without one; empty in the form `none`.
    pub feedback: String,
    /// What to maximise.
    pub objective: Objective,
    /// The constraints in force, in the study's order.
    pub constraints: Vec<Constraint>,
}

/// What to maximise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Objective {
    /// The metric's name.
    pub metric: String,
    /// Its mean under the prompt that the feedback is about, in [0, 1], where known.
    pub value: Option<f64>,
}

/// A constraint with its present weight.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Constraint {
    /// The metric's name.
    pub metric: String,
    /// τ, in the metric's unit.
    pub threshold: f64,
    /// λ ≥ 0.
    pub multiplier: f64,
    /// The mean cost of the prompt that the feedback is about, where known.
    pub cost: Option<f64>,
}

/// Which words a model is asked with. A model's `config.json` says so under `rewriter_wording`; one
/// that says nothing follows instructions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wording {
    /// Says what is to be done, for models that follow instructions.
    #[default]
    Instruction,
    /// The bare facts: the parent as system message, then numbers and feedback. For small models
    /// trained on nothing else.
    Compact,
}

/// The key in `config.json`.
pub(crate) const WORDING_KEY: &str = "rewriter_wording";

const SYSTEM: &str = "You improve system prompts of AI agents.";

impl Wording {
    const ALL: [(Self, &'static str, &'static str); 2] = [
        (
            Self::Instruction,
            "instruction",
            include_str!("template/instruction.jinja"),
        ),
        (Self::Compact, "compact", include_str!("template/compact.jinja")),
    ];

    /// The wording that a model's folder states.
    ///
    /// # Errors
    ///
    /// `config.json` does not read, or states one that does not exist.
    pub fn from_folder(folder: &Path) -> Result<Self, FileError> {
        let path = folder.join("config.json");
        match read_json(&path)?.get(WORDING_KEY) {
            None => Ok(Self::default()),
            Some(stated) => serde_json::from_value(stated.clone())
                .map_err(|why| FileError::content(&path, format!("`{WORDING_KEY}`: {why}"))),
        }
    }

    /// The messages of a request: system, user.
    pub fn messages(self, request: &RewriteRequest) -> Vec<Message> {
        static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
            let mut environment = Environment::new();
            environment.set_undefined_behavior(UndefinedBehavior::Strict);
            environment.add_filter("fixed", |value: f64, digits: usize| format!("{value:.digits$}"));
            for (_, name, source) in Wording::ALL {
                environment
                    .add_template(name, source)
                    .expect("the crate's own templates parse");
            }
            environment
        });
        let (_, name, _) = Self::ALL[self as usize];
        let user = ENVIRONMENT
            .get_template(name)
            .and_then(|template| template.render(Serde(request)))
            .expect("a request has every name that the crate's own templates use");
        let system = match self {
            Self::Instruction => SYSTEM,
            Self::Compact => &request.parent,
        };
        vec![
            Message::new("system", system),
            Message::new("user", user.trim_end()),
        ]
    }
}

/// Why a request cannot be put to a model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TemplateError {
    /// The request does not fit, even without feedback.
    #[error(
        "the request takes {prompt} tokens without its feedback, which with {room} for the answer exceed the model's context of {context}: take a shorter prompt, a model with a longer context, or fewer tokens for the answer"
    )]
    Overflow {
        /// Tokens of the request without feedback.
        prompt: usize,
        /// Tokens kept free for the answer.
        room: usize,
        /// The model's context in tokens.
        context: usize,
    },
    /// A child is longer than the room for answers.
    #[error(
        "the child takes {tokens} tokens, {room} are kept free for answers: allow more tokens for an answer"
    )]
    Child {
        /// Its tokens, the one that ends it included.
        tokens: usize,
        /// Tokens kept free for the answer.
        room: usize,
    },
    /// A child cannot be learned as an answer.
    #[error("the child cannot be learned as an answer: {0}")]
    Answer(&'static str),
    /// Chat template or tokenizer refuse.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// A request as a model reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewritePrompt {
    /// Token ids up to where the answer begins.
    pub tokens: Vec<u32>,
    /// What of the feedback had no room.
    pub left_out: LeftOut,
}

/// A request with the answer to be learned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewriteExample {
    /// The request.
    pub prompt: RewritePrompt,
    /// Token ids of the child and of the end of an answer.
    pub completion: Vec<u32>,
}

/// Requests and answers in the tokens of one model.
#[derive(Debug)]
pub struct RewriteTemplate {
    wording: Wording,
    chat: ChatTemplate,
    tokenizer: Tokenizer,
    context: usize,
    stop_tokens: Vec<u32>,
}

impl RewriteTemplate {
    /// The template of a model's folder.
    ///
    /// # Errors
    ///
    /// Configuration, tokenizer or chat template are missing or do not read, or the configuration
    /// names no token that ends an answer.
    pub fn from_folder(folder: &Path) -> Result<Self, FileError> {
        let config = ModelConfig::from_folder(folder)?;
        if config.stop_tokens.is_empty() {
            return Err(FileError::content(
                &folder.join("config.json"),
                "there is no `eos_token_id`, so no answer would end; take the instruction-tuned model",
            ));
        }
        Ok(Self {
            wording: Wording::from_folder(folder)?,
            chat: ChatTemplate::from_folder(folder)?,
            tokenizer: Tokenizer::from_folder(folder, config.vocabulary)?,
            context: config.context,
            stop_tokens: config.stop_tokens,
        })
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The tokens that end an answer.
    pub fn stop_tokens(&self) -> &[u32] {
        &self.stop_tokens
    }

    /// A request with `room` tokens kept free for the answer. A feedback for which there is not
    /// enough room is cut by the rule of [`feedback`](crate::feedback), by no more than is needed.
    ///
    /// # Errors
    ///
    /// [`TemplateError::Overflow`] when it does not fit without feedback either.
    pub fn prompt(&self, request: &RewriteRequest, room: usize) -> Result<RewritePrompt, TemplateError> {
        let limit = self.context.saturating_sub(room);
        let whole = self.encode(&self.text(request)?)?;
        if whole.len() <= limit {
            return Ok(RewritePrompt {
                tokens: whole,
                left_out: LeftOut::default(),
            });
        }
        let feedback = Cuttable::new(&request.feedback);
        // Between `few` cuts, too few, and `many`, enough.
        let (mut few, mut many) = (0, feedback.steps());
        let mut best = self.cut(request, &feedback, many)?;
        if best.tokens.len() > limit {
            return Err(TemplateError::Overflow {
                prompt: best.tokens.len(),
                room,
                context: self.context,
            });
        }
        while many - few > 1 {
            let cuts = few.midpoint(many);
            let prompt = self.cut(request, &feedback, cuts)?;
            if prompt.tokens.len() <= limit {
                (best, many) = (prompt, cuts);
            } else {
                few = cuts;
            }
        }
        Ok(best)
    }

    /// A request with the child that is to be its answer, of at most `room` tokens.
    ///
    /// # Errors
    ///
    /// As [`prompt`](Self::prompt); [`TemplateError::Child`] when the child is longer, and
    /// [`TemplateError::Answer`] when the chat template does not write it as an answer to the
    /// request.
    pub fn example(
        &self,
        request: &RewriteRequest,
        child: &str,
        room: usize,
    ) -> Result<RewriteExample, TemplateError> {
        let completion = self.completion(request, child)?;
        if completion.len() > room {
            return Err(TemplateError::Child {
                tokens: completion.len(),
                room,
            });
        }
        let prompt = self.prompt(request, room)?;
        Ok(RewriteExample { prompt, completion })
    }

    /// The child in an answer: its text without the token that ends it, trimmed. Empty when the
    /// answer is blank.
    ///
    /// # Errors
    ///
    /// [`RequestError::Tokenizer`] when the tokens do not decode.
    pub fn child(&self, answer: &[u32]) -> Result<String, RequestError> {
        let end = answer.iter().position(|token| self.stop_tokens.contains(token));
        let text = self
            .tokenizer
            .decode(&answer[..end.unwrap_or(answer.len())], true)?;
        Ok(text.trim().to_owned())
    }

    fn cut(
        &self,
        request: &RewriteRequest,
        feedback: &Cuttable<'_>,
        cuts: usize,
    ) -> Result<RewritePrompt, RequestError> {
        let (text, left_out) = feedback.without(cuts);
        let request = RewriteRequest {
            feedback: text,
            ..request.clone()
        };
        Ok(RewritePrompt {
            tokens: self.encode(&self.text(&request)?)?,
            left_out,
        })
    }

    fn completion(&self, request: &RewriteRequest, child: &str) -> Result<Vec<u32>, TemplateError> {
        let without_feedback = RewriteRequest {
            feedback: String::new(),
            ..request.clone()
        };
        let asked = self.text(&without_feedback)?;
        let mut messages = self.wording.messages(&without_feedback);
        messages.push(Message::new("assistant", child));
        let answered = self.chat.render(&messages, false, Some(false))?;
        let answer = answered.strip_prefix(&asked).ok_or(TemplateError::Answer(
            "the chat template writes the request otherwise once it is answered",
        ))?;
        let mut tokens = self.encode(answer)?;
        let end = tokens
            .iter()
            .position(|token| self.stop_tokens.contains(token))
            .ok_or(TemplateError::Answer(
                "the chat template does not end an answer with `eos_token_id`",
            ))?;
        let rest = tokens.split_off(end + 1);
        if !self.tokenizer.decode(&rest, false)?.trim().is_empty() {
            return Err(TemplateError::Answer("it spells the token that ends an answer"));
        }
        Ok(tokens)
    }

    /// The text up to where the answer begins, by a model that does not think aloud.
    fn text(&self, request: &RewriteRequest) -> Result<String, RequestError> {
        self.chat
            .render(&self.wording.messages(request), true, Some(false))
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>, RequestError> {
        self.tokenizer.encode(text)
    }
}

#[cfg(test)]
mod tests;
