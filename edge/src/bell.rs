//! Something that happens again and again, and that any number of tasks of an object wait for.

use std::cell::RefCell;

use futures::channel::oneshot;

/// Rung when it happens.
#[derive(Debug, Default)]
pub(crate) struct Bell(RefCell<Vec<oneshot::Sender<()>>>);

impl Bell {
    /// Wakes who waits now.
    pub(crate) fn ring(&self) {
        // Dropping them is what those who wait hear.
        self.0.take();
    }

    /// Waits until it is rung the next time.
    pub(crate) fn rung(&self) -> impl Future<Output = ()> + use<> {
        let (ring, rung) = oneshot::channel();
        self.0.borrow_mut().push(ring);
        async move {
            let _ = rung.await;
        }
    }
}
