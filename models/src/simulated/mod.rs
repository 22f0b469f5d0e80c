//! The simulated models.
