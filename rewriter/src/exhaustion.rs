//! When a device's memory does not suffice.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::error::RequestError;

/// What backends and drivers write when an allocation fails, in lower case.
const SIGNS: [&str; 4] = [
    "buffertoobig",
    "can't allocate buffer",
    "out of memory",
    "not enough memory",
];

/// What `work` gives, or [`RequestError::OutOfMemory`] with what to do if the device's memory ran out.
///
/// burn's GPU backends go on after an allocation that failed, and panic when a result is read that depends
/// on it: `work` must read its results. Any other panic goes on.
pub(crate) fn guarded<T>(
    advice: &'static str,
    work: impl FnOnce() -> Result<T, RequestError>,
) -> Result<T, RequestError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(outcome) => outcome,
        Err(panic) if tells_exhaustion(&*panic) => Err(RequestError::OutOfMemory { advice }),
        Err(panic) => resume_unwind(panic),
    }
}

fn tells_exhaustion(panic: &(dyn Any + Send)) -> bool {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or_default().to_lowercase();
    SIGNS.iter().any(|sign| text.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exhaustion_is_an_error_and_other_panics_go_on() {
        assert_eq!(guarded("", || Ok(3)), Ok(3));
        assert_eq!(
            guarded::<()>("", || Err(RequestError::EmptyBatch)),
            Err(RequestError::EmptyBatch)
        );
        let size = 1u64 << 40;
        let refused = guarded::<()>("take fewer rows", || {
            panic!("Io(BufferTooBig {{ size: {size} }})")
        });
        let message = refused.expect_err("memory ran out").to_string();
        assert_eq!(message, "the device's memory does not suffice: take fewer rows");
        let other = catch_unwind(|| guarded::<()>("", || panic!("index out of bounds")));
        assert!(other.is_err());
    }
}
