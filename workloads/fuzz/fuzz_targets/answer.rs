//! A provider's answer changed at random, or any bytes; see `bodies.rs`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code, reason = "the other targets' bodies")]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match bytes {
        [0..128, provider, edits @ ..] => {
            let body = bodies::changed(bodies::ANSWER, edits);
            bodies::answer(&[&[*provider], body.as_bytes()].concat());
        }
        bytes => bodies::answer(bytes),
    }
});
