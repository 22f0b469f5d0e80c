//! Sentences with prompts and symbols in them.

use std::fmt;

use capo_core::ids::CandidateId;

use super::word::Word;
use crate::format;

/// A part of a sentence that is shown in its own way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Plain text.
    Text(String),
    /// A prompt, by its id.
    Prompt(CandidateId),
    /// A mathematical symbol, such as λ.
    Symbol(Word),
}

/// A sentence, or several. [`fmt::Display`] writes it as plain text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sentence {
    pieces: Vec<Piece>,
}

impl Sentence {
    /// A sentence of words alone.
    pub fn new(text: impl Into<String>) -> Self {
        Self::default().text(text)
    }

    /// The same with words added.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        match self.pieces.last_mut() {
            Some(Piece::Text(last)) => last.push_str(&text),
            _ if text.is_empty() => {}
            _ => self.pieces.push(Piece::Text(text)),
        }
        self
    }

    /// The same with a prompt added.
    pub fn prompt(mut self, candidate: CandidateId) -> Self {
        self.pieces.push(Piece::Prompt(candidate));
        self
    }

    /// The same with a symbol added.
    pub fn symbol(mut self, symbol: Word) -> Self {
        self.pieces.push(Piece::Symbol(symbol));
        self
    }

    /// The same with another sentence after it, a blank between.
    pub fn then(mut self, next: Self) -> Self {
        if !self.is_empty() && !next.is_empty() {
            self = self.text(" ");
        }
        for piece in next.pieces {
            self = match piece {
                Piece::Text(text) => self.text(text),
                Piece::Prompt(candidate) => self.prompt(candidate),
                Piece::Symbol(symbol) => self.symbol(symbol),
            };
        }
        self
    }

    /// Its parts in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Its parts, given away.
    pub fn into_pieces(self) -> Vec<Piece> {
        self.pieces
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => f.write_str(text)?,
                Piece::Prompt(candidate) => f.write_str(&format::id(candidate))?,
                Piece::Symbol(symbol) => f.write_str(symbol.text())?,
            }
        }
        Ok(())
    }
}
