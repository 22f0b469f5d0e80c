//! Addresses of servers, read as browsers read them (the WHATWG URL standard): in a page by the browser
//! itself, so that what a key is kept for is what the browser would call.

use std::net::{Ipv4Addr, Ipv6Addr};

/// An `http` or `https` address, as browsers write it down: lower-case host, no port that its scheme
/// implies.
///
/// ```
/// use capo_core::address::Address;
///
/// let address = Address::parse("https://API.example:443/v1").unwrap();
/// assert_eq!(address.as_str(), "https://api.example/v1");
/// assert_eq!(address.origin(), "https://api.example");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    text: String,
}

/// Why a text is no address of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It does not read as an address.
    #[error("is no address such as https://host:8000/v1")]
    Unreadable,
    /// It is another kind of address, or the scheme is missing.
    #[error("must begin with http:// or https://")]
    Scheme,
}

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    ///
    /// When browsers would not call it; the text is not repeated.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let text = written_down(text).ok_or(AddressError::Unreadable)?;
        if text.starts_with("http://") || text.starts_with("https://") {
            Ok(Self { text })
        } else {
            Err(AddressError::Scheme)
        }
    }

    /// The whole address.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Scheme, host and port, by which browsers tell servers apart.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme(), self.host())
    }

    /// The host, with the port unless the scheme implies it.
    pub fn host(&self) -> &str {
        let (authority, _) = self.parts();
        authority.rsplit_once('@').map_or(authority, |(_, host)| host)
    }

    /// The path, from its slash on.
    pub fn path(&self) -> &str {
        let (_, rest) = self.parts();
        rest.split(['?', '#']).next().unwrap_or_default()
    }

    /// Whether a user or a password stands in it.
    pub fn has_credentials(&self) -> bool {
        self.parts().0.contains('@')
    }

    /// Whether anything follows the path: a query, a fragment.
    pub fn has_query_or_fragment(&self) -> bool {
        self.parts().1.contains(['?', '#'])
    }

    /// Whether requests go without encryption.
    pub fn is_unencrypted(&self) -> bool {
        self.scheme() == "http"
    }

    /// Whether the server is on this very machine, so that it is reached without a network and nobody
    /// is on the way to it.
    pub fn is_here(&self) -> bool {
        let host = self.host();
        if let Some((v6, _)) = host.strip_prefix('[').and_then(|host| host.split_once(']')) {
            return v6.parse().is_ok_and(|address: Ipv6Addr| address.is_loopback());
        }
        let name = host.split(':').next().unwrap_or_default();
        match name.parse::<Ipv4Addr>() {
            Ok(address) => address.is_loopback(),
            Err(_) => name == "localhost" || name.ends_with(".localhost"),
        }
    }

    fn scheme(&self) -> &str {
        self.text.split(':').next().unwrap_or_default()
    }

    /// User and host, and what follows from the path's slash on, which there always is.
    fn parts(&self) -> (&str, &str) {
        let after = self.scheme().len() + "://".len();
        let rest = &self.text[after..];
        rest.split_at(rest.find('/').unwrap_or(rest.len()))
    }
}

/// Host and port of a base URL, for sentences; the whole text where it is none.
pub fn host(base_url: &str) -> String {
    Address::parse(base_url).map_or_else(|_| base_url.to_owned(), |address| address.host().to_owned())
}

/// An address as browsers write it down; none of what they cannot read.
#[cfg(not(target_arch = "wasm32"))]
fn written_down(text: &str) -> Option<String> {
    url::Url::parse(text).ok().map(String::from)
}

/// An address as this browser writes it down; none of what it cannot read.
#[cfg(target_arch = "wasm32")]
fn written_down(text: &str) -> Option<String> {
    web_sys::Url::new(text).ok().map(|url| url.href())
}
