//! The scheduler of the experiment's work: as many pieces at once as there are jobs, those of earlier seeds first.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use rayon::ThreadPoolBuilder;

use super::DcapoError;

/// A piece of work: the place of its seed, and its own in the seed.
type Place = (usize, usize);

/// Says whose work begins next.
pub(super) struct Scheduler {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    free: usize,
    waiting: BTreeSet<Place>,
    is_over: bool,
}

impl Scheduler {
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

    /// What `begin` makes of all items, in their order: each has a thread of its own, on which it waits for its turn.
    ///
    /// # Errors
    /// That of the first that failed, rather than of one that was given up for it.
    pub(super) fn all<I: Send, T: Send>(
        &self,
        items: impl IntoIterator<Item = I>,
        begin: impl Fn(usize, I) -> Result<T, DcapoError> + Sync,
    ) -> Result<Vec<T>, DcapoError> {
        let begin = &begin;
        let ends: Vec<_> = thread::scope(|scope| {
            let start = |(place, item)| {
                let work = move || {
                    let mut last = Last {
                        scheduler: self,
                        is_done: false,
                    };
                    let done = begin(place, item);
                    last.is_done = done.is_ok();
                    done
                };
                thread::Builder::new().spawn_scoped(scope, work).map_err(|why| {
                    self.end();
                    DcapoError::Thread(why.to_string())
                })
            };
            let threads: Vec<_> = items.into_iter().enumerate().map(start).collect();
            threads
                .into_iter()
                .map(|thread| thread?.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        });
        let (mut done, mut failed) = (Vec::new(), None);
        for end in ends {
            match end {
                Ok(one) => done.push(one),
                Err(why) if matches!(failed, None | Some(DcapoError::GivenUp)) => failed = Some(why),
                Err(_) => {}
            }
        }
        failed.map_or(Ok(done), Err)
    }

    /// Does a piece of work when its turn has come, on a thread whose kernels share it with no other work.
    ///
    /// # Errors
    /// As the work, which is then the last; [`DcapoError::GivenUp`] if another one has failed before it began.
    pub(super) fn take<T: Send>(
        &self,
        place: Place,
        work: impl FnOnce() -> Result<T, DcapoError> + Send,
    ) -> Result<T, DcapoError> {
        let mut turn = self.wait(place).ok_or(DcapoError::GivenUp)?;
        let thread = ThreadPoolBuilder::new().num_threads(1).build();
        let done = thread
            .map_err(|why| DcapoError::Thread(why.to_string()))
            .and_then(|thread| thread.install(work));
        turn.is_done = done.is_ok();
        done
    }

    /// Lets nothing more begin.
    fn end(&self) {
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
                scheduler: self,
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
    scheduler: &'a Scheduler,
    is_done: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.scheduler.state();
        state.free += 1;
        state.is_over |= !self.is_done;
        drop(state);
        self.scheduler.changed.notify_all();
    }
}

/// Lets nothing more begin when it is dropped, unless its work was done.
struct Last<'a> {
    scheduler: &'a Scheduler,
    is_done: bool,
}

impl Drop for Last<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.scheduler.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn scheduler(jobs: usize) -> Scheduler {
        Scheduler::new(NonZeroUsize::new(jobs).unwrap())
    }

    #[test]
    fn no_more_work_at_once_than_there_are_jobs_and_all_of_it_is_done() {
        let (scheduler, busy) = (&scheduler(3), &Mutex::new((0, 0)));
        let done: usize = thread::scope(|scope| {
            let works: Vec<_> = (0..20)
                .map(|place| {
                    scope.spawn(move || {
                        scheduler.take((place % 4, place), || {
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
            works.into_iter().map(|work| work.join().unwrap().unwrap()).sum()
        });
        let most = busy.lock().unwrap().1;
        assert!(done == 20 && (1..=3).contains(&most), "{done} {most}");
    }

    #[test]
    fn earlier_seeds_go_first() {
        let (scheduler, order) = (&scheduler(1), &Mutex::new(Vec::new()));
        thread::scope(|scope| {
            let mut held = scheduler.wait((0, 0)).unwrap();
            for place in [(2, 0), (1, 1), (1, 0)] {
                scope.spawn(move || {
                    scheduler.take(place, || {
                        order.lock().unwrap().push(place);
                        Ok(())
                    })
                });
            }
            while scheduler.state().waiting.len() < 3 {
                thread::yield_now();
            }
            held.is_done = true;
            drop(held);
        });
        assert_eq!(*order.lock().unwrap(), [(1, 0), (1, 1), (2, 0)]);
    }

    #[test]
    fn after_a_failure_nothing_begins() {
        let scheduler = &scheduler(1);
        thread::scope(|scope| {
            let held = scheduler.wait((0, 0)).unwrap();
            let waiting = scope.spawn(move || scheduler.take((0, 1), || Ok(1)));
            while scheduler.state().waiting.is_empty() {
                thread::yield_now();
            }
            // As when its work fails or panics.
            drop(held);
            assert!(matches!(waiting.join().unwrap(), Err(DcapoError::GivenUp)));
        });
        let failed = super::Scheduler::new(NonZeroUsize::MIN);
        let work = || Err::<(), _>(DcapoError::Thread("none left".into()));
        assert!(failed.take((0, 0), work).is_err());
        assert!(matches!(failed.take((0, 1), || Ok(1)), Err(DcapoError::GivenUp)));
    }

    #[test]
    fn what_failed_is_told_and_not_what_was_given_up_for_it() {
        let scheduler = scheduler(1);
        let failed = scheduler.all([false, true, false], |_, fails| {
            let why = if fails {
                DcapoError::Thread("none left".into())
            } else {
                DcapoError::GivenUp
            };
            Err::<(), _>(why)
        });
        assert!(matches!(failed, Err(DcapoError::Thread(_))), "{failed:?}");
        assert!(matches!(
            scheduler.take((0, 0), || Ok(())),
            Err(DcapoError::GivenUp)
        ));
        let all = super::Scheduler::new(NonZeroUsize::MIN).all([5, 6], |place, item| Ok((place, item)));
        assert_eq!(all.unwrap(), [(0, 5), (1, 6)]);
    }

    #[test]
    fn a_panic_ends_all() {
        let scheduler = scheduler(1);
        let begin = |_, panics: bool| {
            assert!(!panics, "as a defect would");
            Ok(())
        };
        let ended = catch_unwind(AssertUnwindSafe(|| scheduler.all([false, true], begin)));
        assert!(ended.is_err());
        assert!(matches!(
            scheduler.take((0, 0), || Ok(())),
            Err(DcapoError::GivenUp)
        ));
    }
}
