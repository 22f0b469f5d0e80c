//! The decisions of a proxy by which members of a team use provider keys that they never see: who may use a key, for
//! which models, up to which cost, and what a call did cost.
//!
//! Nothing here opens a socket or reads a clock, and nothing but [`Rates`] keeps state. An *adapter* (the axum server,
//! Cloudflare's worker) serves `/api/proxy/{key}/{path…}`, looks up records, and goes through these steps:
//!
//! | step | function |
//! |---|---|
//! | Did the caller ask too often? | [`Rates::count`], with a [`network`] |
//! | Which key and which path? | [`split_path`] |
//! | Who asks, and on whose account? | [`token`], [`Caller::paying`] |
//! | May this be sent, and as what? | [`Gateway::check`], which gives an [`UpstreamRequest`] |
//! | Is enough left today? In one transaction. | [`reserve`] |
//! | Which addresses may be connected to? | Those that are [public](is_public) when they are connected to, or any with [`KeyRecord::private_host`]; redirects are never followed |
//! | With which credential? | [`UpstreamRequest::authenticate`] |
//! | What of the answer may be passed on? | [`check_response`], [`response_headers`], [`error_body`] |
//! | How many tokens, at what cost? | [`Counter`], fed with every chunk |
//! | What was really used? In one transaction. | [`Consumption::settle`] |
//!
//! When the caller goes away in the middle of an answer, an adapter should read on to its end: the tokens are paid for
//! anyway, and the count is then the provider's own instead of the upper bound. It should also store each
//! [`Reservation`] until it is settled, to settle at their full amounts those that were open when the process ended.
//!
//! ```
//! use capo_gateway::{Account, Consumption, Limits, NanoUsd, Scope, reserve};
//!
//! let limits = Limits { usd_per_day: NanoUsd::from_usd(1.0), requests_per_day: None };
//! let mut accounts = [Account { scope: Scope::Member, limits, consumption: Consumption::default() }];
//! let [most, real] = [0.75, 0.01].map(|usd| NanoUsd::from_usd(usd).unwrap());
//! let today = 1_700_000_000 / 86_400;
//! let reservation = reserve(&mut accounts, most, today).unwrap();
//! assert!(reserve(&mut accounts, most, today).is_err(), "$0.25 is left");
//! accounts[0].consumption.settle(&reservation, real);
//! assert!(reserve(&mut accounts, most, today).is_ok(), "$0.99 was left");
//! ```

mod amount;
mod body;
mod bounds;
mod caller;
#[cfg(any(test, feature = "cases"))]
pub mod cases;
mod check;
mod counter;
mod dialect;
mod headers;
mod ip;
mod key;
mod limits;
mod problem;
mod text;

pub use amount::NanoUsd;
pub use body::DEFAULT_MAX_OUTPUT;
pub use bounds::{CALLS_OF_MEMBER, DEFAULT_RATE, Rates};
pub use caller::{Membership, PROJECT, TOKEN, bearer, token};
pub use check::{Caller, DEFAULT_MAX_BODY, Gateway, Request, UpstreamRequest};
pub use counter::{Bound, Count, Counter, Flow};
pub use dialect::split_path;
pub use headers::{PAGE_HEADERS, response_headers};
pub use ip::{is_public, network};
pub use key::{KeyError, KeyRecord, ModelRule, SharedKey};
pub use limits::{Account, Consumption, Limits, Reservation, Scope, reserve};
pub use problem::{PROBLEM_JSON, Problem, check_response, error_body};
