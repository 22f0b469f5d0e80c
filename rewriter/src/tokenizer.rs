//! A model's tokenizer.

use std::path::Path;

use crate::error::{FileError, RequestError};

/// Text to token ids and back, from `tokenizer.json`.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
}

impl Tokenizer {
    /// Reads `tokenizer.json` of a model's folder, whose model has `vocabulary` embeddings.
    ///
    /// # Errors
    ///
    /// The file is missing, does not read, or has a token without an embedding.
    pub fn from_folder(folder: &Path, vocabulary: usize) -> Result<Self, FileError> {
        let path = folder.join("tokenizer.json");
        if !path.exists() {
            return Err(FileError::Missing {
                folder: folder.to_owned(),
                file: "tokenizer.json",
            });
        }
        let mut inner =
            tokenizers::Tokenizer::from_file(&path).map_err(|why| FileError::content(&path, why))?;
        // Somebody's settings for training, by which texts would be cut without a word.
        inner
            .with_padding(None)
            .with_truncation(None)
            .map_err(|why| FileError::content(&path, why))?;
        let largest = inner.get_vocab(true).into_values().max().unwrap_or(0);
        if largest as usize >= vocabulary {
            return Err(FileError::Vocabulary {
                path,
                largest,
                vocabulary,
            });
        }
        Ok(Self { inner })
    }

    /// The ids of a text; no token is added that the text does not spell.
    ///
    /// # Errors
    ///
    /// [`RequestError::Tokenizer`] when the tokenizer's rules cannot split the text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, RequestError> {
        let encoding = self
            .inner
            .encode_fast(text, false)
            .map_err(|why| RequestError::Tokenizer(why.to_string()))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The text of ids, without special tokens if `skip_special`.
    ///
    /// # Errors
    ///
    /// [`RequestError::Tokenizer`] when the decoder fails.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String, RequestError> {
        self.inner
            .decode(ids, skip_special)
            .map_err(|why| RequestError::Tokenizer(why.to_string()))
    }

    /// The id of a token.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Tokenizer")
            .field("tokens", &self.inner.get_vocab_size(true))
            .finish()
    }
}
