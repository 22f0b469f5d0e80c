//! A queue of work for the page's thread, a frame for each piece.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

use leptos::prelude::*;

thread_local! {
    static QUEUE: RefCell<FrameQueue> = RefCell::default();
}

/// What waits for its turn.
#[derive(Default)]
struct FrameQueue {
    waiting: VecDeque<Box<dyn FnOnce()>>,
    /// A turn is due, or the frame after one.
    taken: bool,
}

/// Does this in a task of its own, and whatever else asks for a turn only after the frame that shows
/// it: much of a page drawn or painted in one task would keep it from answering. While the browser
/// shows the page to nobody, all wait; who asks again meanwhile should have asked once.
pub fn in_turn(task: impl FnOnce() + 'static) {
    let idle = QUEUE.with_borrow_mut(|turns| {
        turns.waiting.push_back(Box::new(task));
        !std::mem::replace(&mut turns.taken, true)
    });
    if idle {
        set_timeout(next, Duration::ZERO);
    }
}

fn next() {
    if let Some(task) = QUEUE.with_borrow_mut(|turns| turns.waiting.pop_front()) {
        task();
    }
    request_animation_frame(|| {
        let more = QUEUE.with_borrow_mut(|turns| {
            turns.taken = !turns.waiting.is_empty();
            turns.taken
        });
        if more {
            set_timeout(next, Duration::ZERO);
        }
    });
}
