//! Language models: providers over HTTP and in this process, retries, rate limits and prices.
//!
//! [`build`] turns the `[models.ROLE]` tables of a study ([`ModelSpec`]) into [`Models`]: one
//! [`Llm`](capo_core::llm::Llm) for each role. Providers are listed in [`providers`]; each is one
//! small file and one line.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use capo_core::llm::{Llm, Role};
//! use indexmap::IndexMap;
//! use serde_json::json;
//!
//! let tables = IndexMap::from([(
//!     Role::Agent,
//!     json!({ "provider": "openai", "model": "gpt-5-mini", "concurrency": 4 }),
//! )]);
//! // Natively `Environment` reads the process's variables; a page passes its own.
//! let keys = BTreeMap::from([("OPENAI_API_KEY".to_owned(), "sk-…".to_owned())]);
//! # let keys = BTreeMap::from([("OPENAI_API_KEY".to_owned(), "sk-test".to_owned())]);
//! let models = capo_models::build(&tables, &keys, 0)?;
//! assert_eq!(models.get(Role::Critic)?.name(), "openai/gpt-5-mini");
//! # Ok::<(), capo_models::BuildError>(())
//! ```

mod asking;
#[cfg(not(target_arch = "wasm32"))]
mod batching;
mod breaker;
mod builder;
mod call_price;
mod client;
mod connecting;
mod conversation;
mod effort;
mod embedder;
mod error;
pub mod expected;
mod failure;
#[cfg(test)]
mod fixture;
pub mod forecast;
pub mod gate;
mod limiter;
pub mod local_models;
mod models;
mod notice;
mod pace;
pub mod prices;
pub mod probe;
pub mod providers;
mod rate_limit;
mod reasoning;
mod roles;
mod secret;
mod setup;
mod spec;
mod table_checks;
mod time;
mod transport;
pub mod vllm;
mod written;
mod yielding;

pub use builder::{Builder, build};
pub use call_price::is_priced;
pub use capo_core::notice::{Notice, Observer, Wait};
pub use effort::ReasoningEffort;
pub use embedder::{Embedded, Embedder, embedder_name};
pub use error::BuildError;
pub use models::Models;
pub use roles::{Serves, check_roles, roles, serving};
#[cfg(not(target_arch = "wasm32"))]
pub use secret::Environment;
pub use secret::{Keys, Redactor, Secret};
pub use setup::{Setup, SetupError};
pub use spec::{HeaderText, HeaderVariable, ModelSpec, ProviderName, schema};
pub use table_checks::check_tables;
pub use written::{WrittenHeader, WrittenRequest, write_request};
pub use yielding::{Turn, Yielding};
