//! Chat requests to a language model, and its responses.
//!
//! [`Llm`] is the only door to a model. It is usable on `wasm32` (futures are not `Send`), knows
//! no provider, and speaks in the terms every chat API shares: messages, tools, usage. Providers
//! implement it in the crate `capo-models`, simulated models in `capo-world`.

use std::fmt;
use std::rc::Rc;

use futures::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// Instructions that stand above the conversation.
    System {
        /// The text.
        content: String,
    },
    /// What the person (or a user simulator) said.
    User {
        /// The text.
        content: String,
    },
    /// What the model said, called, or both.
    Assistant(AssistantMessage),
    /// What a tool answered.
    Tool {
        /// The [`ToolCall::id`] this answers.
        call_id: String,
        /// The tool's answer as text.
        content: String,
    },
}

impl Message {
    /// A system message.
    pub fn system(content: impl Into<String>) -> Self {
        Self::System {
            content: content.into(),
        }
    }

    /// A user message.
    pub fn user(content: impl Into<String>) -> Self {
        Self::User {
            content: content.into(),
        }
    }

    /// An assistant message of text alone.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::Assistant(AssistantMessage {
            content: Some(content.into()),
            tool_calls: Vec::new(),
        })
    }

    /// A tool's answer.
    pub fn tool(call_id: impl Into<String>, content: impl Into<String>) -> Self {
        Self::Tool {
            call_id: call_id.into(),
            content: content.into(),
        }
    }
}

/// What a model answered: text, tool calls, or both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// The text, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Calls the model wants made, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
}

impl AssistantMessage {
    /// The text, or the empty string.
    pub fn text(&self) -> &str {
        self.content.as_deref().unwrap_or_default()
    }

    /// Whether there is neither text (other than white space) nor a tool call.
    pub fn is_empty(&self) -> bool {
        self.tool_calls.is_empty() && self.text().trim().is_empty()
    }
}

/// A call of a tool by a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Names this call within the conversation.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, normally an object; whatever JSON the model produced otherwise.
    pub arguments: serde_json::Value,
}

/// A tool offered to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Unique within a request.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of the arguments (an object schema).
    pub parameters: serde_json::Value,
}

/// What a model is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The conversation so far, system message first if there is one. Shared, so that a caller who
    /// keeps it adds to it after the answer without a copy (`Rc::make_mut`).
    pub messages: Rc<Vec<Message>>,
    /// The tools on offer; empty for none.
    #[serde(default, skip_serializing_if = "<[ToolSpec]>::is_empty")]
    pub tools: Rc<[ToolSpec]>,
    /// Asks a provider that supports it to sample reproducibly. Two requests of the same seed for
    /// different candidates share their random draws (common random numbers).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether vectors of texts are wanted, see [`ChatRequest::for_vectors`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vectors: bool,
}

impl ChatRequest {
    /// A request without tools or seed.
    pub fn new(messages: impl Into<Rc<Vec<Message>>>) -> Self {
        Self {
            messages: messages.into(),
            ..Self::default()
        }
    }

    /// Asks [`Role::Embeddings`] for vectors: its one message is a JSON list of texts. The text of the answer is the JSON
    /// list of their vectors, in this order, all of one length and of finite numbers.
    ///
    /// ```
    /// use capo_core::llm::ChatRequest;
    ///
    /// let request = ChatRequest::for_vectors(&["a sofa", "a couch"]);
    /// assert_eq!(request.texts().unwrap(), ["a sofa", "a couch"]);
    ///
    /// // The same text may be what an agent is asked.
    /// assert_eq!(ChatRequest::new(request.messages).texts(), None);
    /// ```
    pub fn for_vectors(texts: &[&str]) -> Self {
        Self {
            vectors: true,
            ..Self::new(vec![Message::user(serde_json::json!(texts).to_string())])
        }
    }

    /// The texts of a request for vectors; `None` for any other.
    pub fn texts(&self) -> Option<Vec<String>> {
        match self.messages.as_slice() {
            [Message::User { content }] if self.vectors => serde_json::from_str(content).ok(),
            _ => None,
        }
    }
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It was done.
    Stop,
    /// It wants tools called.
    ToolCalls,
    /// It ran into its output limit: the text is cut.
    Length,
    /// The provider's filter cut the answer.
    Filter,
}

/// What a model answered, and what that cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatResponse {
    /// The answer.
    pub message: AssistantMessage,
    /// Why it ended.
    pub finish: Finish,
    /// What this answer consumed; metrics measure it.
    pub usage: CallUsage,
    /// What failed tries before it consumed, none when the first one was answered. Paid for, but
    /// no part of what the answer took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_tries: Option<CallUsage>,
}

/// What one model call consumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CallUsage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written, reasoning included.
    pub output_tokens: u64,
    /// US dollars; `None` when neither the provider nor the price table knows.
    pub usd: Option<f64>,
    /// Seconds the answer took, waiting for a rate limit not included. Simulated models state
    /// simulated seconds.
    pub seconds: f64,
}

impl CallUsage {
    /// Whether nothing is known to have been consumed.
    pub(crate) fn is_nothing(&self) -> bool {
        (self.input_tokens, self.output_tokens) == (0, 0) && self.usd.unwrap_or(0.0) == 0.0
    }
}

/// The kinds of failure the journal tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The provider asked to slow down.
    RateLimit,
    /// No answer in time.
    Timeout,
    /// The provider failed or refused.
    Provider,
    /// No connection to the provider came about.
    Unreachable,
    /// The key is missing or wrong.
    Authentication,
    /// The request does not fit the model's context.
    ContextLength,
    /// An answer came, but not one that can be used.
    Malformed,
    /// A tool, command or endpoint of the workload failed.
    Tool,
    /// The run ended in the middle of it, and the line keeps what it had consumed; or a batch of calls ended without it.
    Stopped,
}

impl FailureKind {
    /// Whether a failure says nothing of the effect itself: any other would have failed there and then.
    pub(crate) fn is_of_everything(self) -> bool {
        matches!(
            self,
            Self::Authentication | Self::RateLimit | Self::Unreachable | Self::Stopped
        )
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RateLimit => "rate limit",
            Self::Timeout => "timeout",
            Self::Provider => "provider",
            Self::Unreachable => "unreachable",
            Self::Authentication => "authentication",
            Self::ContextLength => "context length",
            Self::Malformed => "malformed answer",
            Self::Tool => "tool",
            Self::Stopped => "stopped",
        })
    }
}

/// Why a model gave no answer. Messages never hold a key.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LlmError {
    /// The call failed.
    #[error("{message}")]
    Failed {
        /// What kind of failure.
        kind: FailureKind,
        /// What went wrong, where (provider and model), and what to do; redacted.
        message: String,
        /// Whether the same request may succeed later.
        retryable: bool,
        /// What failed attempts consumed all the same (an unusable answer is paid for too).
        usage: CallUsage,
    },
    /// The budget does not allow the call to start. Raised by the arena, not by providers.
    #[error("the budget is spent: {0}")]
    Budget(String),
    /// A person interrupted the run before the call was answered.
    #[error("interrupted")]
    Interrupted {
        /// What tries that failed or were dropped consumed all the same.
        usage: CallUsage,
    },
}

impl LlmError {
    /// A failure that cost nothing.
    pub fn failed(kind: FailureKind, retryable: bool, message: impl Into<String>) -> Self {
        Self::Failed {
            kind,
            message: message.into(),
            retryable,
            usage: CallUsage {
                usd: Some(0.0),
                ..CallUsage::default()
            },
        }
    }
}

/// A language model.
pub trait Llm {
    /// Name for errors and screens, such as `openai/gpt-5-mini`.
    fn name(&self) -> &str;

    /// Whether what a call costs will be known (0 included). A model that may answer at an unknown
    /// price is not asked under a budget of dollars.
    fn is_priced(&self) -> bool {
        true
    }

    /// How this model is asked for a rewrite.
    fn rewrite_form(&self) -> RewriteForm {
        RewriteForm::Instructed
    }

    /// Whether a conversation can go on only where its answers were given: the model keeps in memory what
    /// it must send back with them, such as signed thoughts. An unfinished one then begins anew elsewhere.
    fn keeps_turns(&self) -> bool {
        false
    }

    /// Answers one conversation. Retries, rate limits and concurrency are the implementation's
    /// business; the arena counts one call for each `chat`.
    fn chat(&self, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>>;

    /// Answers one conversation as a script has it. For simulated models alone: every other answers as to
    /// [`chat`](Self::chat), without a look at the script.
    fn act<'a>(
        &'a self,
        request: ChatRequest,
        _script: &'a dyn AgentScript,
    ) -> LocalBoxFuture<'a, Result<ChatResponse, LlmError>> {
        self.chat(request)
    }
}

/// How a simulated agent acts in the conversations of one example, for a workload whose examples such an agent
/// cannot solve by itself. What the script knows of the example stands in no request.
pub trait AgentScript {
    /// The next message of a conversation, by the simulated model of this name. `key` names its random draws: the
    /// same one, the same message.
    fn next(&self, request: &ChatRequest, model: &str, key: u64) -> AssistantMessage;
}

/// How a model is asked for a rewrite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RewriteForm {
    /// With instructions, and the new prompt between tags in the answer: for models that know many tasks.
    #[default]
    Instructed,
    /// With the facts alone, and the new prompt as the whole answer: for models that learned this task.
    Learned,
}

/// Who is asked. Roles without a model of their own fall back, see [`Role::fallback`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Runs the examples under the candidate prompt.
    Agent,
    /// Plays the person who talks to the agent.
    User,
    /// Grades what no rule can grade.
    Judge,
    /// Says what went wrong with a prompt.
    Critic,
    /// Writes the next prompt.
    Rewriter,
    /// Makes vectors of texts: before a run where a file keeps them, in it where a metric compares them
    /// ([`ChatRequest::for_vectors`]).
    Embeddings,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 6] = [
        Self::Agent,
        Self::User,
        Self::Judge,
        Self::Critic,
        Self::Rewriter,
        Self::Embeddings,
    ];

    /// Whose model serves this role when it has none: critic → rewriter → agent; user and
    /// judge → agent. A model that writes makes no vectors.
    pub fn fallback(self) -> Option<Self> {
        match self {
            Self::Agent | Self::Embeddings => None,
            Self::Critic => Some(Self::Rewriter),
            Self::User | Self::Judge | Self::Rewriter => Some(Self::Agent),
        }
    }

    /// The name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::User => "user",
            Self::Judge => "judge",
            Self::Critic => "critic",
            Self::Rewriter => "rewriter",
            Self::Embeddings => "embeddings",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
