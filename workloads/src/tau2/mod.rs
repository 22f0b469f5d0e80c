//! The domains of the tau2 benchmark (airline, retail, telecom), run natively.
//!
//! The worlds behave as the benchmark's own do, to the last byte of their state hashes; its data are read
//! from where a person keeps them and are not part of this project. `docs/tau2.md` is the guide.
//!
//! # A conversation
//!
//! The agent greets, then agent and user take turns: a turn is a text for the other side, or calls of tools
//! whose results come back before anything else happens. The user is played by the model of the role
//! `user`, with the benchmark's own guidelines and the task's scenario; in telecom it has tools of its
//! own, on a telephone that sees the agent's side through the network. Neither side sees the calls of the
//! other. The conversation ends with a stop token in a text of the user, after `max_steps` messages or
//! after `max_errors` failed calls.
//!
//! # What it earns
//!
//! [`grade::Grade`] has five parts, each 0 or 1, and the reward is the product of those in the task's
//! basis: the records equal those that the reference leaves (`DB`), what the task says of the end holds
//! (`ENV_ASSERTION`), every reference action was made (`ACTION`), every text was said (`COMMUNICATE`),
//! and a judge found every statement true (`NL_ASSERTION`, by the model of the role `judge`, which is
//! asked only where that part counts). A conversation that was cut off earns nothing.
//!
//! # Measurements
//!
//! | metric | meaning |
//! |---|---|
//! | `success` | 1 when the reward is 1, else 0 |
//! | `human_requests` | calls of `transfer_to_human_agents` by the agent |
//! | `excess_tools` | (calls of the agent − actions of the task's reference) ÷ mean actions of the references of its split, so that the mean over a split is the pooled ratio (Σ calls − Σ actions) ÷ Σ actions; failed calls, calls of unknown tools and transfers count, and the customer's actions unless `reference = "agent"` |
//! | `prompt_length` | characters of the candidate prompt ÷ 1000; the policy around it does not count |
//! | `turns` | texts the agent sent after its greeting |
//! | `latency` | seconds of all model calls of the agent |
//! | `verbosity` | mean characters of those texts ÷ 100; 0 when there is none |
//! | `repeated_calls` | calls of the agent with the same tool and arguments as an earlier one and no successful write between them |
//! | `tool_errors` | calls of the agent answered by an error |
//! | `policy_violations` | successful writes of the agent that are no reference action, arguments included |

pub mod airline;
pub mod archive;
mod cached_json;
mod calculate;
pub mod changes;
pub mod dialogue;
pub mod environment;
pub mod folder;
pub mod grade;
mod kind;
mod nl_assertions;
mod number;
pub mod prompts;
mod python;
pub mod replay;
pub mod retail;
pub mod settings;
mod shift;
mod side;
mod split;
mod table;
pub mod task;
pub mod telecom;
pub mod tool;
mod tool_schemas;
pub mod trajectory;
pub mod transfer;
mod verdict;
mod workload;

pub(crate) use kind::{KIND, MAKING, settings_schema};
pub use verdict::metrics;
pub use workload::Tau2;
use workload::{build, texts_to_embed};

#[cfg(test)]
mod tests;
