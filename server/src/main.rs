//! The capo binary.
fn main() {}
