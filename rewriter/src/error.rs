//! Errors: what can go wrong with a model's files and with what is asked of a model.

use std::io;
use std::path::{Path, PathBuf};

use burn_collective::CollectiveError;
use burn_tensor::FloatDType;

/// Why a model, a tokenizer or an adapter cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A file cannot be opened, read or written.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file that every model has is absent.
    #[error("{folder} has no {file}: name the folder of a model in Hugging Face's layout", folder = .folder.display())]
    Missing {
        /// The model's folder.
        folder: PathBuf,
        /// The file looked for.
        file: &'static str,
    },
    /// Nothing has the name that a model is asked for by.
    #[error(
        "there is no model {0}: name a folder that exists, or a repository of the hub as owner/name@revision"
    )]
    NoModel(String),
    /// A JSON file does not read, or says something impossible or not supported.
    #[error("{path}: {message}", path = .path.display())]
    Content {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        message: String,
    },
    /// The index names a shard that is not there.
    #[error(
        "{folder} has no {shard}, which model.safetensors.index.json names: download it, or the whole model again",
        folder = .folder.display()
    )]
    MissingShard {
        /// The model's folder.
        folder: PathBuf,
        /// The shard's file name.
        shard: String,
    },
    /// A safetensors file ends before its tensors do.
    #[error(
        "{path} is truncated: its header promises {expected} bytes, it has {found}; download it again",
        path = .path.display()
    )]
    Truncated {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// Bytes that the header promises.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// A tensor that the model needs is in none of the files.
    #[error(
        "{folder} has no tensor `{name}`, which config.json implies: the weights and config.json are of different models",
        folder = .folder.display()
    )]
    MissingTensor {
        /// The model's folder.
        folder: PathBuf,
        /// The tensor's name.
        name: String,
    },
    /// A tensor has another shape than the configuration implies.
    #[error(
        "{path}: tensor `{name}` has the shape {found:?}, {expected:?} was expected from the configuration",
        path = .path.display()
    )]
    Shape {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// The tensor's name.
        name: String,
        /// The shape that the configuration implies.
        expected: Vec<usize>,
        /// The shape that the file holds.
        found: Vec<usize>,
    },
    /// A tensor's numbers are of a type that is not read.
    #[error(
        "{path}: tensor `{name}` is stored as {found}; read are F32, BF16 and F16, so take a checkpoint in one of these",
        path = .path.display()
    )]
    NumberType {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// The tensor's name.
        name: String,
        /// The type in safetensors' notation.
        found: String,
    },
    /// The files hold a tensor that the model would not use.
    #[error(
        "{path}: tensor `{name}` has no place in a {architecture} model; without it the outputs would be wrong",
        path = .path.display()
    )]
    UnexpectedTensor {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// The tensor's name.
        name: String,
        /// The architecture that config.json names.
        architecture: &'static str,
    },
    /// The tokenizer knows more tokens than the model has embeddings.
    #[error(
        "{path}: token id {largest} has no embedding, as config.json says vocab_size {vocabulary}: tokenizer and model do not belong together",
        path = .path.display()
    )]
    Vocabulary {
        /// The tokenizer's file.
        path: PathBuf,
        /// The tokenizer's largest id.
        largest: u32,
        /// The model's number of embeddings.
        vocabulary: usize,
    },
    /// The hub did not hand out a file.
    #[error(
        "{repository} at {revision}: {file} cannot be downloaded: {message}; without a network name the folder of a downloaded model, for a private or gated repository set HF_TOKEN"
    )]
    Hub {
        /// `owner/name`.
        repository: String,
        /// The pinned revision.
        revision: String,
        /// The file asked for.
        file: String,
        /// What the hub or the network says.
        message: String,
    },
    /// There is no place for what is downloaded.
    #[error("there is no home folder for the hub's cache: set HF_HOME to a folder")]
    NoHome,
}

impl FileError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "most messages are made for the call"
    )]
    pub(crate) fn content(path: &Path, message: impl ToString) -> Self {
        Self::Content {
            path: path.to_owned(),
            message: message.to_string(),
        }
    }
}

/// Why a model cannot do what it is asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RequestError {
    /// A prompt holds no token.
    #[error("row {row}: the prompt is empty: give at least one token")]
    EmptyPrompt {
        /// The row, from 0.
        row: usize,
    },
    /// A token has no embedding.
    #[error(
        "row {row}: token id {token} is outside the model's vocabulary of {vocabulary}: encode with the model's own tokenizer"
    )]
    UnknownToken {
        /// The row, from 0.
        row: usize,
        /// The token.
        token: u32,
        /// The model's number of embeddings.
        vocabulary: usize,
    },
    /// Prompt and answer are longer than the model's context.
    #[error(
        "row {row}: {prompt} prompt tokens and {new} new ones exceed the model's context of {context}: shorten the prompt or ask for fewer tokens"
    )]
    ContextOverflow {
        /// The row, from 0.
        row: usize,
        /// The prompt's length in tokens.
        prompt: usize,
        /// Tokens to be generated.
        new: usize,
        /// The model's context in tokens.
        context: usize,
    },
    /// A batch holds no rows, or no tokens.
    #[error("the batch is empty: give at least one row with a token")]
    EmptyBatch,
    /// What there must be one of for each row or token is there in another number.
    #[error("there are {found} {what} for {expected} {each}: give one for each")]
    Count {
        /// What is given.
        what: &'static str,
        /// What it is given for.
        each: &'static str,
        /// How many of these there are.
        expected: usize,
        /// How many are given.
        found: usize,
    },
    /// Numbers by row and token are not as many as there are rows and tokens.
    #[error("the {what} are {found:?} numbers by row and token, of which there are {expected:?}")]
    Rectangle {
        /// What the numbers are.
        what: &'static str,
        /// Rows, and tokens of the longest.
        expected: [usize; 2],
        /// Rows and columns of the numbers.
        found: [usize; 2],
    },
    /// The marks of a row are not one for each of its tokens.
    #[error("row {row}: {tokens} tokens have {marks} marks of what is learned: give one for each token")]
    MarkCount {
        /// The row, from 0.
        row: usize,
        /// Its length in tokens.
        tokens: usize,
        /// Its number of marks.
        marks: usize,
    },
    /// No token of a batch is learned.
    #[error("no token of the batch is learned: mark one that follows another, or give a completion")]
    NothingLearned,
    /// A row has no completion to be learned.
    #[error("row {row}: the completion is empty: give at least one token, if only the stop token")]
    EmptyCompletion {
        /// The row, from 0.
        row: usize,
    },
    /// A token is to be scored that is none, or that none comes before.
    #[error(
        "cell {cell} of {rows} rows of {columns} columns cannot be scored: it must hold a token that follows another in its row"
    )]
    Unpredicted {
        /// Row · columns + column.
        cell: usize,
        /// Rows of the batch.
        rows: usize,
        /// Columns of the batch.
        columns: usize,
    },
    /// A number is not finite, and what follows from it would not be either.
    #[error("{what} is {value}, which is not finite: {advice}")]
    NotFinite {
        /// The number and where it stands.
        what: String,
        /// The number: NaN, inf or -inf.
        value: f64,
        /// What to do.
        advice: &'static str,
    },
    /// All weights are to learn in a type in which small steps are lost.
    #[error(
        "all weights learn in F32 only, as {number_type:?} loses small steps: compute in F32, or let an adapter learn"
    )]
    CoarseWeights {
        /// The type that the decoder computes in.
        number_type: FloatDType,
    },
    /// Gradients would be lost in the type of the computation.
    #[error("nothing learns in F16, in which small gradients are 0: compute in BF16 or F32")]
    CoarseGradients,
    /// The device gave an error instead of numbers.
    #[error("the device did not end its work: {reason}")]
    Device {
        /// What it says.
        reason: String,
    },
    /// All weights are to learn, and another process is to draw from them.
    #[error(
        "all weights learn, and a server that draws rewrites loads adapters only: let an adapter learn (without --full), or draw here"
    )]
    WholeElsewhere,
    /// The gradients of several devices were not summed.
    #[error(
        "the gradients of the devices cannot be summed: {0}; learn on one device, or see whether all of them work alone"
    )]
    Collective(String),
    /// The device's memory ran out.
    #[error("the device's memory does not suffice: {advice}")]
    OutOfMemory {
        /// What to do.
        advice: &'static str,
    },
    /// Somebody asked for an end before the work was done.
    #[error("interrupted")]
    Interrupted,
    /// Something that was kept is not there any more.
    #[error("{what} are not there: {advice}")]
    Missing {
        /// What is missing.
        what: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// A gradient, or what an optimizer remembers, is of something else than what learns.
    #[error(
        "tensor {index} of the {what} has the shape {found:?}, what learns {expected:?}: they are of different adapters or models"
    )]
    OtherParameters {
        /// What does not fit.
        what: &'static str,
        /// The tensor in the order of what learns, from 0; a vector counts as a matrix of one row.
        index: usize,
        /// The shape of what learns; empty when it has fewer tensors.
        expected: Vec<usize>,
        /// The shape found; empty when there are fewer matrices.
        found: Vec<usize>,
    },
    /// A cache is asked for that is longer than the model's context.
    #[error(
        "a cache of {capacity} columns exceeds the model's context of {context}: shorten the prompts or ask for fewer tokens"
    )]
    CacheCapacity {
        /// Columns asked for.
        capacity: usize,
        /// The model's context in tokens.
        context: usize,
    },
    /// Tokens do not fit into the cache that they are to follow.
    #[error(
        "{asked:?} tokens by row and column do not fit the cache, which has room for {room:?}: make a larger one"
    )]
    CacheShape {
        /// Rows and free columns of the cache.
        room: [usize; 2],
        /// Rows and columns of the tokens.
        asked: [usize; 2],
    },
    /// A setting is outside its range.
    #[error("`{name}` is {value}: it must be {range}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// Rewrites may be as long as the context, so that no request fits before them.
    #[error(
        "rewrites of up to {new} tokens leave no room for a request in the model's context of {context}: lower `max_new_tokens` (`max_tokens` in a study, --max-tokens)"
    )]
    NoRoomForPrompts {
        /// Longest rewrite.
        new: usize,
        /// The context.
        context: usize,
    },
    /// The chat template refuses the messages.
    #[error("the chat template refuses the messages: {0}")]
    Template(String),
    /// The tokenizer refuses a text or an id.
    #[error("the tokenizer refuses: {0}")]
    Tokenizer(String),
}

impl From<CollectiveError> for RequestError {
    fn from(error: CollectiveError) -> Self {
        Self::Collective(format!("{error:?}"))
    }
}

impl RequestError {
    /// The same about another row.
    pub(crate) fn at_row(self, row: usize) -> Self {
        match self {
            Self::EmptyPrompt { .. } => Self::EmptyPrompt { row },
            Self::UnknownToken {
                token, vocabulary, ..
            } => Self::UnknownToken {
                row,
                token,
                vocabulary,
            },
            Self::EmptyCompletion { .. } => Self::EmptyCompletion { row },
            Self::ContextOverflow {
                prompt, new, context, ..
            } => Self::ContextOverflow {
                row,
                prompt,
                new,
                context,
            },
            other => other,
        }
    }

    /// # Errors
    ///
    /// [`RequestError::Count`] unless as many are given as there are to be given for.
    pub(crate) fn check_count(
        what: &'static str,
        found: usize,
        each: &'static str,
        expected: usize,
    ) -> Result<(), Self> {
        if found == expected {
            return Ok(());
        }
        Err(Self::Count {
            what,
            each,
            expected,
            found,
        })
    }

    /// # Errors
    ///
    /// [`RequestError::NotFinite`] with the number's name unless it is finite.
    pub(crate) fn check_finite(
        value: f64,
        advice: &'static str,
        what: impl FnOnce() -> String,
    ) -> Result<(), Self> {
        if value.is_finite() {
            return Ok(());
        }
        Err(Self::NotFinite {
            what: what(),
            value,
            advice,
        })
    }
}
