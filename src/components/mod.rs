//! What pages are composed of.
