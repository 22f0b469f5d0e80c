//! Something that happens again and again, and that any number of tasks of an object wait for.

use std::cell::RefCell;

use futures::channel::oneshot;

/// Told when it happens.
#[derive(Debug, Default)]
pub(crate) struct Notify(RefCell<Vec<oneshot::Sender<()>>>);

impl Notify {
    /// Wakes who waits now.
    pub(crate) fn notify(&self) {
        // Dropping them is what those who wait hear.
        self.0.take();
    }

    /// Waits until it is told the next time.
    pub(crate) fn notified(&self) -> impl Future<Output = ()> + use<> {
        let (sender, receiver) = oneshot::channel();
        self.0.borrow_mut().push(sender);
        async move {
            let _ = receiver.await;
        }
    }
}
