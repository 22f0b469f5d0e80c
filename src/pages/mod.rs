//! One file or folder for each page.

pub mod candidate;
pub mod compare;
pub mod dynamics;
mod examples;
pub mod live;
pub mod not_found;
pub mod result;
pub mod runs;
pub mod study;
pub mod team;
pub mod welcome;
