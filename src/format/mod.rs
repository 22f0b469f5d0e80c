//! Numbers as people read them.
//!
//! | what | how | example |
//! |---|---|---|
//! | a value of a metric, its error, threshold, slack | [`Quantity`] | 32.4% ± 6.1, ≤ 35%, 2.6 pts |
//! | multiplier, Lagrangian score, residual | [`multiplier`], [`lagrangian`], [`residual`] | 3.99, +0.930, −0.07 |
//! | dollars, counts, tokens | [`dollars`], [`count`], [`tokens`] | $4.44, 9,840, 7.01M |
//! | time | [`clock`], [`span`], [`lasted`], [`about`], [`Moment`] | 41:07, 41 min, about 18 min |
//! | names | [`id`], [`label`], [`phrase`], [`number_word`] | c95e03, Human requests, three |
//!
//! Rounding is for show only: nothing here is compared or exported.

mod name;
mod number;
mod quantity;
mod setting;
mod time;
pub mod typed;

pub use name::{capitalized, counted, id, label, listed, number_word, ordinal, phrase};
pub use number::{NOTHING, count, decimals, dollars, lagrangian, multiplier, residual, signed, tokens};
pub use quantity::Quantity;
pub use setting::setting;
pub use time::{Moment, about, clock, lasted, span};
