//! The desk module.
