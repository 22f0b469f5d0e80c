//! Out of memory: when a device's memory does not suffice.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::RequestError;

/// What backends and drivers write when an allocation fails, in lower case.
const SIGNS: [&str; 4] = [
    "buffertoobig",
    "can't allocate buffer",
    "out of memory",
    "not enough memory",
];

/// Panics that told of exhausted memory so far, on any thread.
static EXHAUSTIONS: AtomicUsize = AtomicUsize::new(0);

/// What `work` gives, or [`RequestError::OutOfMemory`] with what to do if a device's memory ran out. Any other
/// panic goes on.
///
/// An allocation that fails on a GPU panics in the device's own thread, where cubecl catches it and goes on with
/// whatever the memory holds. So panics are counted wherever they are, and `work` must read its results, which
/// waits for the device. Memory that ends in another thread meanwhile counts too. On the processor the system
/// ends the process instead.
pub(crate) fn guarded<T>(
    advice: &'static str,
    work: impl FnOnce() -> Result<T, RequestError>,
) -> Result<T, RequestError> {
    count_exhaustions();
    let before = EXHAUSTIONS.load(Ordering::SeqCst);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    if EXHAUSTIONS.load(Ordering::SeqCst) > before {
        return Err(RequestError::OutOfMemory { advice });
    }
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Looks at each panic before whoever looked at it so far.
fn count_exhaustions() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let former = take_hook();
        set_hook(Box::new(move |panic| {
            if tells_exhaustion(panic.payload()) {
                EXHAUSTIONS.fetch_add(1, Ordering::SeqCst);
            }
            former(panic);
        }));
    });
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

    // One test: memory that ends in one would count in the other.
    #[test]
    fn exhaustion_is_an_error_on_whatever_thread_and_other_panics_go_on() {
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
        let elsewhere = guarded("", || {
            let device = std::thread::spawn(|| panic!("can't allocate buffer of size: 5"));
            assert!(device.join().is_err());
            Ok("numbers that mean nothing")
        });
        assert_eq!(elsewhere, Err(RequestError::OutOfMemory { advice: "" }));
        let other = catch_unwind(|| guarded::<()>("", || panic!("index out of bounds")));
        assert!(other.is_err());
        assert_eq!(guarded("", || Ok(3)), Ok(3));
    }
}
