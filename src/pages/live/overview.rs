//! State that the plates of the live page share, computed once for each change.

use std::sync::Arc;

use leptos::prelude::*;

use crate::components::{in_turn, plate_letter};
use crate::live::{Phase, Run};
use crate::run;
use crate::run::rounds::ScreenRound;

/// Plates that say something of constraints only: the map and steering.
const OF_CONSTRAINTS: usize = 2;

/// A run as its charts and tables see it.
#[derive(Clone, Copy)]
pub(super) struct Overview(Signal<Option<Arc<Parts>>>);

/// The parts of an [`Overview`].
#[derive(PartialEq)]
pub(super) struct Parts {
    pub drawn: Arc<run::overview::Overview>,
    /// Whether more rounds are to come here.
    pub goes_on: bool,
    /// The last round that is drawn.
    pub last_round: ScreenRound,
    /// Whether it is the run as it stood after an earlier round.
    pub is_replayed: bool,
}

impl Overview {
    /// The run as it stands, or as it stood when it is `replayed`.
    pub(super) fn of(run: Run, replayed: RwSignal<Option<Arc<run::overview::Overview>>>) -> Self {
        let parts = Memo::new(move |_| {
            let goes_on = matches!(
                run.phase.get(),
                Phase::Running | Phase::Pausing | Phase::Queued(_) | Phase::Paused(_) | Phase::InAnotherTab
            );
            let replayed = replayed.get();
            run.read(|folded| {
                let now = folded.overview()?;
                let is_replayed = replayed.is_some();
                Some(Arc::new(Parts {
                    last_round: now.series.last_round(),
                    goes_on: is_replayed || goes_on && folded.state.finished().is_none(),
                    drawn: replayed.unwrap_or(now),
                    is_replayed,
                }))
            })
        });
        Self(parts.into())
    }

    /// The same when its turn has come, see [`in_turn`].
    pub(super) fn apart(self) -> Self {
        let seen = RwSignal::new(self.0.get_untracked());
        let waits = StoredValue::new(false);
        let look = move || {
            let _ = waits.try_set_value(false);
            // The page may be left by then.
            let Some(now) = self.0.try_get_untracked() else {
                return;
            };
            let is_new = seen.try_with_untracked(|seen| match (seen, &now) {
                (Some(seen), Some(now)) => !Arc::ptr_eq(seen, now),
                (None, None) => false,
                _ => true,
            });
            if is_new == Some(true) {
                seen.set(now);
            }
        };
        Effect::new(move |_| {
            self.0.track();
            if !waits.get_value() {
                waits.set_value(true);
                in_turn(look);
            }
        });
        Self(seen.into())
    }

    /// The letter of the plate that stands `places` after the strips. Without constraints two of those before
    /// it are not there.
    pub(super) fn letter(self, places: usize) -> Signal<&'static str> {
        Signal::derive(move || {
            let strips = self.read(|parts| parts.drawn.series.constraints.len());
            plate_letter(match strips {
                Some(0) => places.saturating_sub(OF_CONSTRAINTS).max(1),
                strips => strips.unwrap_or(0) + places,
            })
        })
    }

    /// Reads something off the parts, once there is a study.
    pub(super) fn read<T>(self, read: impl FnOnce(&Parts) -> T) -> Option<T> {
        self.0.with(|parts| parts.as_deref().map(read))
    }
}
