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

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn read(text: &str) -> Address {
        Address::parse(text).unwrap_or_else(|error| panic!("{text} {error}"))
    }

    #[test]
    fn origins_are_what_a_browser_would_call() {
        for (text, origin) in [
            ("https://api.openai.com/v1", "https://api.openai.com"),
            ("https://API.openai.com:443", "https://api.openai.com"),
            ("http://api.openai.com:443/v1", "http://api.openai.com:443"),
            (
                "https://api.openai.com@elsewhere.example",
                "https://elsewhere.example",
            ),
            (
                "https://elsewhere.example\\@api.openai.com/",
                "https://elsewhere.example",
            ),
            ("https://u:p@host.example:8443/?q@r", "https://host.example:8443"),
            ("https://bücher.example", "https://xn--bcher-kva.example"),
            ("http://0x7f.1:80/", "http://127.0.0.1"),
            ("http://[0:0:0:0:0:0:0:1]:8000", "http://[::1]:8000"),
            (" https://host.example/ ", "https://host.example"),
        ] {
            assert_eq!(read(text).origin(), origin, "{text}");
        }
    }

    #[test]
    fn what_no_server_answers_is_refused() {
        for text in [
            "",
            "host.example/v1",
            "https://",
            "http://host:99999",
            "http://a b/",
        ] {
            assert_eq!(Address::parse(text), Err(AddressError::Unreadable), "{text}");
        }
        for text in ["ftp://host", "localhost:8000", "file:///etc/passwd", "mailto:a@b"] {
            assert_eq!(Address::parse(text), Err(AddressError::Scheme), "{text}");
        }
    }

    #[test]
    fn parts_are_told_apart() {
        let plain = read("http://host.example:8000/v1/chat");
        assert_eq!((plain.host(), plain.path()), ("host.example:8000", "/v1/chat"));
        assert!(!plain.has_credentials() && !plain.has_query_or_fragment());
        assert!(plain.is_unencrypted() && !read("https://host.example").is_unencrypted());
        assert_eq!(read("https://host.example").path(), "/");
        for text in ["https://user@host", "https://:secret@host", "https://u:s@host/v1"] {
            assert!(read(text).has_credentials(), "{text}");
        }
        assert!(!read("https://host/v1/@me").has_credentials());
        for text in ["https://host?key=s", "https://host/v1?", "https://host/v1#s"] {
            assert!(read(text).has_query_or_fragment(), "{text}");
            assert!(!read(text).path().contains(['?', '#']), "{text}");
        }
    }

    #[test]
    fn this_machine_is_told_from_others() {
        for here in [
            "http://localhost:1",
            "http://a.localhost",
            "http://127.0.0.5:8000",
            "http://[::1]:80",
        ] {
            assert!(read(here).is_here(), "{here}");
        }
        for elsewhere in [
            "https://localhost.example",
            "http://192.168.0.2:8000",
            "http://[::2]",
            "http://localhost@elsewhere.example",
        ] {
            assert!(!read(elsewhere).is_here(), "{elsewhere}");
        }
    }
}
