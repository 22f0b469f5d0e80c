//! Who computes when: as many pieces of work at once as there are jobs, those of earlier seeds first.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rayon::ThreadPoolBuilder;

use super::DcapoError;

/// A piece of work: the place of its seed, and its own in the seed.
type Place = (usize, usize);

/// Hands out turns.
pub(super) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    free: usize,
    waiting: BTreeSet<Place>,
    is_over: bool,
}

impl Turns {
    pub(super) fn new(jobs: NonZeroUsize) -> Self {
        Self {
            state: Mutex::new(State {
                free: jobs.get(),
                waiting: BTreeSet::new(),
                is_over: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Does a piece of work when its turn has come, on a thread whose kernels share it with no other work. `None` if
    /// another one has failed by then; when this one does, it is the last.
    pub(super) fn take<T: Send>(
        &self,
        place: Place,
        work: impl FnOnce() -> Result<T, DcapoError> + Send,
    ) -> Result<Option<T>, DcapoError> {
        let Some(mut turn) = self.wait(place) else {
            return Ok(None);
        };
        let thread = ThreadPoolBuilder::new().num_threads(1).build();
        let done = thread
            .map_err(|why| DcapoError::Thread(why.to_string()))
            .and_then(|thread| thread.install(work));
        turn.is_done = done.is_ok();
        done.map(Some)
    }

    /// Lets nothing more begin.
    pub(super) fn end(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    fn wait(&self, place: Place) -> Option<Turn<'_>> {
        let mut state = self.state();
        state.waiting.insert(place);
        while !state.is_over && (state.free == 0 || state.waiting.first() != Some(&place)) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting.remove(&place);
        let turn = (!state.is_over).then(|| {
            state.free -= 1;
            Turn {
                turns: self,
                is_done: false,
            }
        });
        drop(state);
        // The next one may be free to go as well.
        self.changed.notify_all();
        turn
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Given back when it is dropped; the last of all unless its work was done.
struct Turn<'a> {
    turns: &'a Turns,
    is_done: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        state.free += 1;
        state.is_over |= !self.is_done;
        drop(state);
        self.turns.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn turns(jobs: usize) -> Turns {
        Turns::new(NonZeroUsize::new(jobs).unwrap())
    }

    #[test]
    fn no_more_work_at_once_than_there_are_jobs_and_all_of_it_is_done() {
        let (turns, busy) = (&turns(3), &Mutex::new((0, 0)));
        let done: usize = thread::scope(|scope| {
            let works: Vec<_> = (0..20)
                .map(|place| {
                    scope.spawn(move || {
                        turns.take((place % 4, place), || {
                            let mut count = busy.lock().unwrap();
                            count.0 += 1;
                            count.1 = count.0.max(count.1);
                            drop(count);
                            thread::yield_now();
                            busy.lock().unwrap().0 -= 1;
                            Ok(1)
                        })
                    })
                })
                .collect();
            works
                .into_iter()
                .map(|work| work.join().unwrap().unwrap().unwrap())
                .sum()
        });
        let most = busy.lock().unwrap().1;
        assert!(done == 20 && (1..=3).contains(&most), "{done} {most}");
    }

    #[test]
    fn earlier_seeds_go_first() {
        let (turns, order) = (&turns(1), &Mutex::new(Vec::new()));
        thread::scope(|scope| {
            let mut held = turns.wait((0, 0)).unwrap();
            for place in [(2, 0), (1, 1), (1, 0)] {
                scope.spawn(move || {
                    turns.take(place, || {
                        order.lock().unwrap().push(place);
                        Ok(())
                    })
                });
            }
            while turns.state().waiting.len() < 3 {
                thread::yield_now();
            }
            held.is_done = true;
            drop(held);
        });
        assert_eq!(*order.lock().unwrap(), [(1, 0), (1, 1), (2, 0)]);
    }

    #[test]
    fn after_a_failure_nothing_begins() {
        let turns = &turns(1);
        thread::scope(|scope| {
            let held = turns.wait((0, 0)).unwrap();
            let waiting = scope.spawn(move || turns.take((0, 1), || Ok(1)).unwrap());
            while turns.state().waiting.is_empty() {
                thread::yield_now();
            }
            // As when its work fails or panics.
            drop(held);
            assert_eq!(waiting.join().unwrap(), None);
        });
        let failed = super::Turns::new(NonZeroUsize::MIN);
        let work = || Err::<(), _>(DcapoError::Thread("none left".into()));
        assert!(failed.take((0, 0), work).is_err());
        assert_eq!(failed.take((0, 1), || Ok(1)).unwrap(), None);
    }
}
