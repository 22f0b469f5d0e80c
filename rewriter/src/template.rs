//! Chat templates: what the rewriter is asked, in the tokens of one model: the same in training and inference.
//!
//! The text is [`RewriteFacts::text`]; the model's own chat template puts its special tokens around it.
//! A special token spelt out in a prompt or a feedback is read as one, as in every chat template.

use std::path::Path;

use capo_core::templates::RewriteFacts;

use crate::chat::{ChatTemplate, Message};
use crate::config::ModelConfig;
use crate::error::{FileError, RequestError};
use crate::feedback::{Cuttable, LeftOut};
use crate::tokenizer::Tokenizer;

/// What stands for a feedback where there is none, see [`RewriteFacts::text`].
const NO_FEEDBACK: &str = "none";

/// The text of a request up to its feedback.
fn without_feedback(facts: &RewriteFacts) -> String {
    let bare = RewriteFacts {
        feedback: String::new(),
        ..facts.clone()
    };
    let text = bare.text();
    text.strip_suffix(NO_FEEDBACK).unwrap_or(&text).to_owned()
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

    /// Longest sequence of the model in tokens.
    pub(crate) fn context(&self) -> usize {
        self.context
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
    pub fn prompt(&self, facts: &RewriteFacts, room: usize) -> Result<RewritePrompt, TemplateError> {
        self.fitted(&without_feedback(facts), facts.feedback.trim(), room)
    }

    /// Like [`prompt`](Self::prompt), of a request that came as a text: what follows the last mark of
    /// a feedback can be cut.
    ///
    /// # Errors
    ///
    /// As [`prompt`](Self::prompt).
    pub fn prompt_of_text(&self, text: &str, room: usize) -> Result<RewritePrompt, TemplateError> {
        match text.rfind(RewriteFacts::FEEDBACK) {
            Some(mark) => {
                let (asked, feedback) = text.split_at(mark + RewriteFacts::FEEDBACK.len());
                self.fitted(asked, feedback.trim(), room)
            }
            None => self.fitted(text, "", room),
        }
    }

    /// `asked` with the feedback behind it.
    fn fitted(&self, asked: &str, feedback: &str, room: usize) -> Result<RewritePrompt, TemplateError> {
        let limit = self.context.saturating_sub(room);
        let feedback = Cuttable::new(feedback);
        let whole = self.cut(asked, &feedback, 0)?;
        if whole.tokens.len() <= limit {
            return Ok(whole);
        }
        // Between `few` cuts, too few, and `many`, enough.
        let (mut few, mut many) = (0, feedback.steps());
        let mut best = self.cut(asked, &feedback, many)?;
        if best.tokens.len() > limit {
            return Err(TemplateError::Overflow {
                prompt: best.tokens.len(),
                room,
                context: self.context,
            });
        }
        while many - few > 1 {
            let cuts = few.midpoint(many);
            let prompt = self.cut(asked, &feedback, cuts)?;
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
        request: &RewriteFacts,
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

    fn cut(&self, asked: &str, feedback: &Cuttable<'_>, cuts: usize) -> Result<RewritePrompt, RequestError> {
        let (feedback, left_out) = feedback.without(cuts);
        let text = match feedback.as_str() {
            "" if asked.ends_with(RewriteFacts::FEEDBACK) => format!("{asked}{NO_FEEDBACK}"),
            feedback => format!("{asked}{feedback}"),
        };
        Ok(RewritePrompt {
            tokens: self.encode(&self.text(text)?)?,
            left_out,
        })
    }

    /// Tokens of a child as the answer to a request, with the one that ends it.
    ///
    /// # Errors
    ///
    /// [`TemplateError::Answer`] when the chat template does not write it as an answer to the request.
    pub(crate) fn completion(&self, request: &RewriteFacts, child: &str) -> Result<Vec<u32>, TemplateError> {
        let question = without_feedback(request);
        let asked = self.text(question.clone())?;
        let messages = [Message::new("user", question), Message::new("assistant", child)];
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
    fn text(&self, request: String) -> Result<String, RequestError> {
        self.chat
            .render(&[Message::new("user", request)], true, Some(false))
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>, RequestError> {
        self.tokenizer.encode(text)
    }
}

#[cfg(test)]
mod tests;
