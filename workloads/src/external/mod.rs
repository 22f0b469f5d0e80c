//! The external module.
