//! Words and tables of screens about a run, read off the fold over its journal.
//!
//! Rounds on screen: 0 is the seed prompt, written "seed"; round *r* is what the run knew after the
//! journal's `round` number *r* − 1 ([`rounds`]). A multiplier drawn over round *r* is the one used
//! in it.
//!
//! What can be said of a run at all is [`capo_core::reading`]'s; here are its words, tables and charts.
//!
//! | module | what it holds |
//! |---|---|
//! | [`studied`], [`rounds`] | how metrics and rounds are shown |
//! | [`series`], [`map`], [`heat`], [`pool`] | what charts and tables draw |
//! | [`now`] | what the run is doing at this moment, in words |
//! | [`overview`] | all of these together, made once for each change |
//! | [`activity`], [`readings`], [`sentence`], [`word`] | what happened, and what a figure says, in words of the field |
//! | [`paired`], [`outcome`] | differences with intervals, in words; verdict, held-out table and costs |
//! | [`by_example`] | two prompts of one run or of two on each held-out example |
//! | [`check`] | the returned prompt and the seed prompt under another model |
//! | [`card`], [`mod@line`] | a prompt in short: its head, what it changed of its parent, its metrics in words |
//! | [`childless`] | rewrites that gave no prompt |
//! | [`story`], [`trade_off`] | every rewrite on the way to a prompt; which is best under other thresholds |
//! | [`report`], [`code`], [`regression`] | the result for taking away: text, Markdown, calls of the model, held-out rows |

pub mod activity;
pub mod by_example;
pub mod card;
pub mod check;
pub mod childless;
mod closed;
pub mod code;
pub mod heat;
pub mod line;
pub mod map;
pub mod now;
pub mod outcome;
pub mod overview;
pub mod paired;
pub mod pool;
pub mod readings;
pub mod regression;
pub mod report;
pub mod rounds;
pub mod sentence;
pub mod series;
pub mod story;
pub mod studied;
pub mod trade_off;
pub mod word;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
