//! The table module.
