//! Both readers of addresses, the library natively and the browser in a page, read the same.

use capo_core::address::{Address, AddressError};

fn read(text: &str) -> Address {
    Address::parse(text).unwrap_or_else(|error| panic!("{text} {error}"))
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
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

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
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

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
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

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
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
