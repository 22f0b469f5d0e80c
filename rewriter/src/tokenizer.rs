//! A model's tokenizer: read from its folder, or made for a new model.

use std::path::Path;

use tokenizers::AddedToken;
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer, Vocab};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use crate::error::{FileError, RequestError};

/// Text to token ids and back, from `tokenizer.json`.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
}

/// The special tokens of the tokenizers made here; their ids follow the ordinary ones.
pub mod special {
    /// Begins a conversation.
    pub const BEGIN: &str = "<|bos|>";
    /// Ends an answer.
    pub const END: &str = "<|eos|>";
    /// Fills rows.
    pub const PADDING: &str = "<|pad|>";
    /// Each begins the message of a role.
    pub const ROLES: [&str; 3] = ["<|system|>", "<|user|>", "<|assistant|>"];

    /// All of them, by id.
    pub const ALL: [&str; 6] = [BEGIN, END, PADDING, ROLES[0], ROLES[1], ROLES[2]];
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
        let tokenizer = Self { inner };
        let needed = tokenizer.embeddings();
        if needed > vocabulary {
            return Err(FileError::Vocabulary {
                path,
                largest: needed as u32 - 1,
                vocabulary,
            });
        }
        Ok(tokenizer)
    }

    /// A tokenizer of bytes: the ids below 256 are bytes of UTF-8, the [`special`] tokens follow.
    ///
    /// ```
    /// use capo_rewriter::tokenizer::{Tokenizer, special};
    ///
    /// let tokenizer = Tokenizer::of_bytes()?;
    /// let ids = tokenizer.encode("é<|eos|>")?;
    /// assert_eq!(ids, [0xc3, 0xa9, 257]);
    /// assert_eq!(tokenizer.id(special::END), Some(257));
    /// assert_eq!(tokenizer.decode(&ids, true)?, "é");
    /// # Ok::<(), capo_rewriter::error::RequestError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RequestError::Tokenizer`] when the library refuses to build it.
    pub fn of_bytes() -> Result<Self, RequestError> {
        let letters = (0..=u8::MAX).zip(byte_letters());
        let vocabulary: Vocab = letters
            .map(|(byte, letter)| (letter.to_string(), byte.into()))
            .collect();
        let model = BPE::builder()
            .vocab_and_merges(vocabulary, vec![])
            // Whole texts are no words that come again.
            .cache_capacity(0)
            .build()
            .map_err(refuse)?;
        Self::made(
            tokenizers::Tokenizer::new(model),
            ByteLevel::new(false, false, false),
        )
    }

    /// A byte-pair encoding learned from `texts`, of at most `size` tokens, [`special`] ones
    /// included. Every text can be encoded: all bytes are tokens. The same texts in the same order
    /// give the same tokenizer.
    ///
    /// # Errors
    ///
    /// [`RequestError::Setting`] when `size` has no room for the bytes and special tokens, and
    /// [`RequestError::Tokenizer`] when the library fails.
    pub fn learned<T: AsRef<str> + Send>(
        texts: impl Iterator<Item = T> + Send,
        size: usize,
    ) -> Result<Self, RequestError> {
        let bytes = usize::from(u8::MAX) + 1;
        if size < bytes + special::ALL.len() {
            return Err(RequestError::Setting {
                name: "vocabulary",
                value: size as f64,
                range: "at least 262: all bytes and the special tokens",
            });
        }
        let trainer = BpeTrainer::builder()
            .vocab_size(size - special::ALL.len())
            .initial_alphabet(byte_letters().collect())
            .min_frequency(2)
            .show_progress(false)
            .build();
        let mut inner = tokenizers::Tokenizer::new(BPE::default());
        inner.with_pre_tokenizer(Some(ByteLevel::new(false, false, true)));
        inner
            .train(&mut TrainerWrapper::from(trainer), texts)
            .map_err(refuse)?;
        Self::made(inner, ByteLevel::new(false, false, true))
    }

    fn made(mut inner: tokenizers::Tokenizer, bytes: ByteLevel) -> Result<Self, RequestError> {
        inner.with_pre_tokenizer(Some(bytes)).with_decoder(Some(bytes));
        let special = special::ALL.map(|token| AddedToken::from(token, true));
        inner.add_special_tokens(special).map_err(refuse)?;
        Ok(Self { inner })
    }

    /// Writes `tokenizer.json`.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] when the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        let text = self
            .inner
            .to_string(true)
            .map_err(|why| FileError::content(path, why))?;
        std::fs::write(path, text + "\n").map_err(FileError::io(path))
    }

    /// Number of embeddings that a model needs: one more than the largest id.
    pub fn embeddings(&self) -> usize {
        let largest = self.inner.get_vocab(true).into_values().max();
        largest.map_or(0, |id| id as usize + 1)
    }

    /// The ids of a text; no token is added that the text does not spell.
    ///
    /// # Errors
    ///
    /// [`RequestError::Tokenizer`] when the tokenizer's rules cannot split the text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, RequestError> {
        let encoding = self.inner.encode_fast(text, false).map_err(refuse)?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The text of ids, without special tokens if `skip_special`.
    ///
    /// # Errors
    ///
    /// [`RequestError::Tokenizer`] when the decoder fails.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String, RequestError> {
        self.inner.decode(ids, skip_special).map_err(refuse)
    }

    /// The id of a token.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the signature `map_err` asks for")]
fn refuse(why: tokenizers::Error) -> RequestError {
    RequestError::Tokenizer(why.to_string())
}

/// The letters that stand for the bytes 0 to 255 in byte-level vocabularies: themselves where they
/// can be seen, else the letters from 256 on [GPT-2's `bytes_to_unicode`].
fn byte_letters() -> impl Iterator<Item = char> {
    let is_seen = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..);
    let mut unseen = '\u{100}'..;
    (0..=u8::MAX).map(move |byte| {
        if is_seen(byte) {
            char::from(byte)
        } else {
            unseen.next().expect("there are more letters than bytes")
        }
    })
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Tokenizer")
            .field("tokens", &self.inner.get_vocab_size(true))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;

    const TEXTS: [&str; 3] = [
        "Look up every parcel before you answer. Look up every refund.",
        "Hand over only when the customer asks. Look up every parcel.",
        "You are a customer service agent. Answer the customer.",
    ];

    fn learned() -> Tokenizer {
        Tokenizer::learned(TEXTS.iter(), 300).expect("learns")
    }

    #[test]
    fn bytes_are_their_own_ids_and_special_tokens_follow() {
        let tokenizer = Tokenizer::of_bytes().expect("builds");
        assert_eq!(tokenizer.embeddings(), 262);
        for (id, token) in (256..).zip(special::ALL) {
            assert_eq!(tokenizer.id(token), Some(id));
            assert_eq!(tokenizer.encode(token).expect("encodes"), [id]);
        }
        // Half a letter is shown as such.
        assert_eq!(tokenizer.decode(&[0xc3], true).expect("decodes"), "\u{fffd}");
    }

    #[test]
    fn a_learned_tokenizer_is_shorter_and_repeats() {
        let tokenizer = learned();
        let text = "Look up every parcel.";
        let ids = tokenizer.encode(text).expect("encodes");
        assert!(ids.len() < text.len() / 2, "{ids:?}");
        assert!(tokenizer.embeddings() <= 300);
        assert_eq!(ids, learned().encode(text).expect("encodes"));
        let refused = Tokenizer::learned(TEXTS.iter(), 261).expect_err("no room");
        assert!(refused.to_string().contains("262"), "{refused}");
    }

    #[test]
    fn a_saved_tokenizer_reads_as_any_other() {
        for tokenizer in [Tokenizer::of_bytes().expect("builds"), learned()] {
            let folder = TempDir::new().expect("a folder");
            tokenizer
                .save(&folder.path().join("tokenizer.json"))
                .expect("saves");
            let read = Tokenizer::from_folder(folder.path(), tokenizer.embeddings()).expect("reads");
            let text = "<|bos|>Hé, every\u{1f600}\n\n parcel<|eos|>";
            assert_eq!(read.encode(text), tokenizer.encode(text));
            assert_eq!(read.embeddings(), tokenizer.embeddings());
            let refused = Tokenizer::from_folder(folder.path(), tokenizer.embeddings() - 1);
            assert!(
                matches!(refused, Err(FileError::Vocabulary { .. })),
                "{refused:?}"
            );
        }
    }

    static LEARNED: LazyLock<Tokenizer> = LazyLock::new(learned);

    proptest! {
        #[test]
        fn every_text_comes_back(text in any::<String>()) {
            let bytes = Tokenizer::of_bytes().expect("builds");
            let ids = bytes.encode(&text).expect("encodes");
            prop_assert_eq!(bytes.decode(&ids, false).expect("decodes"), text.clone());
            prop_assert_eq!(ids.len(), text.len());
            prop_assert!(ids.iter().all(|id| *id < 256));
            let learned = &*LEARNED;
            let ids = learned.encode(&text).expect("encodes");
            prop_assert_eq!(learned.decode(&ids, false).expect("decodes"), text);
        }
    }
}
