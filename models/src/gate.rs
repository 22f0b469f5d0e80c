//! A proxy that adds the keys of others, as the builder of models asks for it.

use crate::prices::Price;
use crate::providers::Provider;
use crate::secret::Secret;

/// How a model is asked through a proxy that adds the provider's key.
#[derive(Debug, Clone)]
pub struct Way {
    /// Where it is asked, as `base_url` in a study.
    pub base_url: String,
    /// What the proxy knows the caller by; it is sent where the provider's key would be.
    pub key: Secret,
    /// What its tokens cost, where whoever shares the key says so.
    pub price: Option<Price>,
}

/// Knows the ways to models whose keys somebody else has. With one, a study's models are asked by its ways alone, and the
/// variables that they name are not read.
pub trait Gate {
    /// The way to a model of a provider, whose API is at `base_url`.
    ///
    /// # Errors
    ///
    /// Why there is none, and what to do.
    fn way(&self, provider: &'static Provider, base_url: &str, model: &str) -> Result<Way, String>;
}
