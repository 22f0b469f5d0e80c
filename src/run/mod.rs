//! What screens say about a run, read off the fold over its journal.
//!
//! Rounds on screen: 0 is the seed prompt, written "seed"; round *r* is what the run knew after the
//! journal's `round` number *r* − 1 ([`rounds`]). A multiplier drawn over round *r* is the one used
//! in it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`studied`], [`in_force`] | the metrics of a study; thresholds, multipliers and examples of a round |
//! | [`measured`], [`standing`], [`lineage`] | means with standard errors; every prompt's score of now; who comes from whom |
//! | [`series`], [`map`], [`heat`], [`pool`] | what charts and tables draw |
//! | [`now`] | what the run is doing at this moment |
//! | [`overview`] | all of these together, made once for each change |
//! | [`activity`], [`readings`], [`sentence`] | what happened, and what a figure says, in words |
//! | [`paired`], [`outcome`] | differences with intervals; verdict, held-out table and costs |
//! | [`report`] | the result for taking away: text, Markdown |

pub mod activity;
mod closed;
pub mod heat;
pub mod in_force;
pub mod lineage;
pub mod map;
pub mod measured;
pub mod now;
pub mod outcome;
pub mod overview;
pub mod paired;
pub mod pool;
pub mod readings;
pub mod report;
pub mod rounds;
pub mod sentence;
pub mod series;
pub mod standing;
pub mod studied;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
