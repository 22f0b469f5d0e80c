//! What can be said about a run, read off the fold over its journal: the only reader of a run for the page, the
//! command line, experiments and the trainer.
//!
//! | module | what it holds |
//! |---|---|
//! | [`metrics`] | what a study maximises, keeps at or below thresholds, and else measures |
//! | [`rounds`], [`phase`] | how many rounds there are to be and which is under way; what the run is doing |
//! | [`examples`], [`in_force`] | the examples of a round; its thresholds and multipliers |
//! | [`measured`], [`standing`] | means with standard errors; every prompt's score of now |
//! | [`lineage`], [`rewrites`] | who comes from whom; what became of each rewrite, with J of parent and child |
//! | [`comparison`], [`statistics`] | whether runs are comparable, paired differences; intervals and tests |
//! | [`certify`], [`certificates`] | whether a prompt's constraints hold, tested on examples kept for it; all that was tested |
//! | [`progress`] | the numbers that lists show of a run, and when its lines came |
//! | [`summary`], [`feasibility`] | the result, and on what it is feasible |
//! | [`evidence`] | what speaks for one prompt of a run, to be kept beside the prompt |

pub mod certificates;
pub mod certify;
pub mod comparison;
pub mod evidence;
pub mod examples;
pub mod feasibility;
pub mod in_force;
pub mod lineage;
pub mod measured;
pub mod metrics;
pub mod phase;
pub mod progress;
pub mod rewrites;
pub mod rounds;
pub mod standing;
pub mod statistics;
pub mod summary;
