//! The metrics module.
