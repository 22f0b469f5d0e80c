//! The team server behind the page, where there is one.

mod address;
mod asking;
mod fetch;
mod listening;
mod standing;
mod words;

pub use address::way_back;
pub use asking::Asking;
pub use fetch::{Fetch, data_file, file};
pub use listening::{Listening, again};
pub use standing::{Standing, Team};
pub use words::{removal, role_means, scope_means, sentence};

/// What the page asks.
pub type Server = capo_api::Client<Fetch>;
