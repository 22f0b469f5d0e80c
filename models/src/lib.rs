//! Who answers: providers over HTTP, the simulated models, retries, rate limits and prices.

pub mod simulated;
