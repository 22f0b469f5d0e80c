//! Tests on journals of the small desk.

mod charts;
mod overview;
mod tables;
mod words;
