//! A study changed at random, or any text; see `bodies.rs`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code, reason = "the other targets' bodies")]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match bytes.split_first() {
        Some((0..128, edits)) => bodies::study(&bodies::changed(bodies::STUDY, edits)),
        _ => bodies::study(&String::from_utf8_lossy(bytes)),
    }
});
