//! Tests on journals of the small desk.

mod charts;
mod tables;
mod words;
