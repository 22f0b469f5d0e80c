//! What the end-to-end tests stand on: the built `capo` as a program to run, kill and resume
//! ([`program`]), a server that plays the models by script and counts what it was asked
//! ([`stub`]), a small study ([`study`]) with a trade-off for it to play ([`arithmetic`]),
//! journals as files ([`journal`]), other programs ([`tools`]), and the data that lies outside the repository
//! ([`shared`]).

pub mod arithmetic;
pub mod journal;
pub mod program;
pub mod shared;
pub mod stub;
pub mod study;
pub mod tools;
