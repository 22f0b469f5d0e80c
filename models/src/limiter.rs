//! The concurrency limit of calls at one endpoint: additive increase, multiplicative decrease.
//!
//! The limit starts at its upper bound. An answer that came while the limit was in use raises it
//! by 1/limit (so by one for a full round of answers); a request to slow down makes it half of it, or of what was under
//! way where that was less, once for all the calls that were. It stays between 1 and the upper bound. A
//! provider that says how long to wait holds everybody's next start, not only the caller's.
//! Waiters start in the order they came.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use futures::channel::oneshot;

use crate::time::{Instant, sleep};

/// The most calls of one batch, which are all under way at once.
pub(crate) const MOST_IN_BATCH: usize = 10_000;

/// The gate of one endpoint. Cloned handles share it.
#[derive(Clone)]
pub(crate) struct Limiter(Rc<RefCell<State>>);

struct State {
    limit: f64,
    most: usize,
    running: usize,
    waiting: VecDeque<oneshot::Sender<Permit>>,
    /// Counts the calls started, to tell those that started before the last cut.
    started: u64,
    /// The first call of the current limit: cuts by earlier ones were already heard.
    cut_at: u64,
    held_until: Option<Instant>,
}

/// The right to one call, given back when dropped.
pub(crate) struct Permit {
    limiter: Limiter,
    number: u64,
    returned: bool,
}

impl Limiter {
    /// A gate for at most `most` calls at once (at least 1).
    pub(crate) fn new(most: usize) -> Self {
        let most = most.max(1);
        Self(Rc::new(RefCell::new(State {
            limit: most as f64,
            most,
            running: 0,
            waiting: VecDeque::new(),
            started: 0,
            cut_at: 0,
            held_until: None,
        })))
    }

    /// Lowers the upper bound to `most` if that is less: of two users of one endpoint the more
    /// careful one decides.
    pub(crate) fn at_most(&self, most: usize) {
        let mut state = self.0.borrow_mut();
        state.most = state.most.min(most.max(1));
        state.limit = state.limit.min(state.most as f64);
    }

    /// Waits for a turn and for the end of any hold.
    pub(crate) async fn acquire(&self) -> Permit {
        let permit = match self.queue() {
            Ok(permit) => permit,
            Err(turn) => turn.await.expect("the queue keeps every sender until its turn"),
        };
        while let Some(left) = self.held() {
            sleep(left).await;
        }
        permit
    }

    /// Holds every start for `wait` from now, unless a longer hold stands.
    pub(crate) fn hold(&self, wait: Duration) {
        let until = Instant::now() + wait;
        let mut state = self.0.borrow_mut();
        state.held_until = Some(state.held_until.map_or(until, |standing| standing.max(until)));
    }

    fn held(&self) -> Option<Duration> {
        let mut state = self.0.borrow_mut();
        let left = state.held_until?.saturating_duration_since(Instant::now());
        if left.is_zero() {
            state.held_until = None;
            return None;
        }
        Some(left)
    }

    /// A permit at once, or a place in the queue.
    fn queue(&self) -> Result<Permit, oneshot::Receiver<Permit>> {
        let mut state = self.0.borrow_mut();
        if state.waiting.is_empty() && state.has_room() {
            return Ok(state.start(self));
        }
        let (sender, receiver) = oneshot::channel();
        state.waiting.push_back(sender);
        Err(receiver)
    }

    /// Gives free places to those who wait, first come first served.
    fn wake(&self) {
        loop {
            let (sender, permit) = {
                let mut state = self.0.borrow_mut();
                if !state.has_room() {
                    return;
                }
                let Some(sender) = state.waiting.pop_front() else {
                    return;
                };
                let permit = state.start(self);
                (sender, permit)
            };
            if let Err(mut unwanted) = sender.send(permit) {
                // The waiter is gone. Taking the place back here, not in the permit's drop, keeps
                // a long row of cancelled waiters from recursing.
                self.0.borrow_mut().running -= 1;
                unwanted.returned = true;
            }
        }
    }
}

impl State {
    fn has_room(&self) -> bool {
        self.running < self.limit as usize
    }

    fn start(&mut self, limiter: &Limiter) -> Permit {
        self.running += 1;
        self.started += 1;
        Permit {
            limiter: limiter.clone(),
            number: self.started,
            returned: false,
        }
    }
}

impl Permit {
    /// The call was answered.
    pub(crate) fn succeeded(self) {
        let mut state = self.limiter.0.borrow_mut();
        // A limit that nobody runs into is not tested by an answer, so it does not grow.
        if state.running >= state.limit as usize {
            state.limit = (state.limit + 1.0 / state.limit).min(state.most as f64);
        }
    }

    /// The provider asked to slow down.
    pub(crate) fn slowed(self) {
        let mut state = self.limiter.0.borrow_mut();
        if self.number > state.cut_at {
            let under_way = state.limit.min(state.running as f64);
            state.limit = (under_way / 2.0).floor().max(1.0);
            state.cut_at = state.started;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.returned {
            return;
        }
        self.limiter.0.borrow_mut().running -= 1;
        self.limiter.wake();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::executor::block_on;
    use proptest::prelude::*;

    use super::*;

    impl Limiter {
        fn limit(&self) -> f64 {
            self.0.borrow().limit
        }

        fn running(&self) -> usize {
            self.0.borrow().running
        }

        fn take(&self) -> Permit {
            self.acquire().now_or_never().expect("there is room")
        }

        /// As many calls as may be under way, which are asked to slow down.
        fn slow_all(&self) {
            let permits: Vec<_> = (0..self.limit() as usize).map(|_| self.take()).collect();
            permits.into_iter().for_each(Permit::slowed);
        }
    }

    #[test]
    fn waiters_start_in_the_order_they_came() {
        let limiter = Limiter::new(1);
        let first = limiter.take();
        let order = Rc::new(RefCell::new(Vec::new()));
        let waiters: Vec<_> = (0..5)
            .map(|index| {
                let (limiter, order) = (limiter.clone(), Rc::clone(&order));
                async move {
                    let permit = limiter.acquire().await;
                    order.borrow_mut().push(index);
                    drop(permit);
                }
            })
            .collect();
        let all = futures::future::join_all(waiters);
        block_on(async {
            futures::pin_mut!(all);
            assert!(futures::poll!(&mut all).is_pending());
            drop(first);
            all.await;
        });
        assert_eq!(*order.borrow(), [0, 1, 2, 3, 4]);
        assert_eq!(limiter.running(), 0);
    }

    #[test]
    fn a_request_to_slow_down_counts_once_for_all_calls_under_way() {
        let limiter = Limiter::new(16);
        limiter.slow_all();
        assert_eq!(limiter.limit(), 8.0);
        limiter.slow_all();
        assert_eq!(limiter.limit(), 4.0);
    }

    #[test]
    fn a_limit_far_above_what_is_under_way_is_cut_to_half_of_that() {
        let limiter = Limiter::new(MOST_IN_BATCH);
        let permits: Vec<_> = (0..12).map(|_| limiter.take()).collect();
        permits.into_iter().for_each(Permit::slowed);
        assert_eq!(limiter.limit(), 6.0);
    }

    #[test]
    fn a_full_round_of_answers_adds_one() {
        let limiter = Limiter::new(8);
        limiter.slow_all();
        assert_eq!(limiter.limit(), 4.0);
        let permits: Vec<_> = (0..4).map(|_| limiter.take()).collect();
        for permit in permits {
            permit.succeeded();
        }
        let after_one_answer = 4.25;
        assert_eq!(
            limiter.limit(),
            after_one_answer,
            "only the first came at the limit"
        );
        for _ in 0..400 {
            let permits: Vec<_> = (0..limiter.limit() as usize).map(|_| limiter.take()).collect();
            permits.into_iter().for_each(Permit::succeeded);
        }
        assert_eq!(limiter.limit(), 8.0, "never above the bound");
    }

    #[test]
    fn an_idle_limit_does_not_grow() {
        let limiter = Limiter::new(8);
        limiter.slow_all();
        for _ in 0..100 {
            limiter.take().succeeded();
        }
        assert_eq!(limiter.limit(), 4.0);
    }

    #[test]
    fn cancelled_waiters_leave_no_hole() {
        let limiter = Limiter::new(1);
        let permit = limiter.take();
        for _ in 0..100_000 {
            assert!(limiter.acquire().now_or_never().is_none());
        }
        drop(permit);
        assert_eq!(limiter.running(), 0);
        drop(limiter.take());
    }

    #[test]
    fn a_hold_delays_the_next_start() {
        let limiter = Limiter::new(2);
        limiter.hold(Duration::from_millis(30));
        limiter.hold(Duration::from_millis(1));
        let started = Instant::now();
        block_on(limiter.acquire());
        assert!(started.elapsed() >= Duration::from_millis(30));
        drop(limiter.take());
    }

    #[test]
    fn the_more_careful_user_decides() {
        let limiter = Limiter::new(16);
        limiter.at_most(3);
        limiter.at_most(9);
        assert_eq!(limiter.limit(), 3.0);
    }

    proptest! {
        #[test]
        fn the_limit_stays_in_range_and_is_never_exceeded(
            most in 1_usize..20,
            steps in prop::collection::vec(0_u8..6, 0..300),
        ) {
            let limiter = Limiter::new(most);
            let mut running = Vec::new();
            let mut waiting = Vec::new();
            for step in steps {
                match step {
                    0 | 1 => match limiter.queue() {
                        Ok(permit) => running.push(permit),
                        Err(receiver) => waiting.push(receiver),
                    },
                    2 => running.pop().into_iter().for_each(Permit::succeeded),
                    3 => running.pop().into_iter().for_each(Permit::slowed),
                    4 => drop(running.pop()),
                    _ => drop(waiting.pop()),
                }
                let (ready, still): (Vec<_>, Vec<_>) =
                    waiting.into_iter().map(|mut receiver| (receiver.try_recv(), receiver))
                        .partition(|(received, _)| matches!(received, Ok(Some(_))));
                running.extend(ready.into_iter().filter_map(|(received, _)| received.ok().flatten()));
                waiting = still.into_iter().map(|(_, receiver)| receiver).collect();

                let limit = limiter.limit();
                prop_assert!((1.0..=most as f64).contains(&limit));
                prop_assert_eq!(limiter.running(), running.len());
                prop_assert!(limiter.running() <= most);
                // Nobody waits while there is room.
                prop_assert!(waiting.is_empty() || limiter.running() >= limit as usize);
            }
            drop(waiting);
            drop(running);
            prop_assert_eq!(limiter.running(), 0);
        }
    }
}
