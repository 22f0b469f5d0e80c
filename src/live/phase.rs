//! Phases of a run in this tab.

use capo_core::journal::Status;

/// What a run is doing in this tab.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// Its journal is being read: chunks read, chunks in all.
    Opening(usize, usize),
    /// Nothing: it ended, was interrupted, or was never started here.
    Resting,
    /// It runs.
    Running,
    /// It waits to begin: on the server for a worker or until a moment in milliseconds since 1970, here for its turn.
    Queued(Option<f64>),
    /// It was told to start nothing new.
    Pausing,
    /// It runs in another tab; this one shows what that keeps.
    InAnotherTab,
    /// It waits, and goes on from there.
    Paused(Pause),
    /// It broke off, and why.
    Failed(String),
    /// Its journal could not be read, or only the beginning of it.
    Unreadable(String),
}

impl Phase {
    /// Whether a run works, or goes on by itself when its models can be reached again.
    pub(super) fn keeps_its_place(&self) -> bool {
        match self {
            Self::Running | Self::Pausing => true,
            Self::Paused(why) => why.passes(),
            _ => false,
        }
    }
}

/// Why a run is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// Somebody pressed the button.
    Asked,
    /// It goes on when the network is back.
    NoNetwork,
    /// A model could not be reached although there is a network. It tries again now and then.
    Unreachable,
    /// Somebody pressed stop: the same as [`Pause::Asked`], but nobody expects it to go on.
    Stopped,
}

impl Pause {
    /// Whether the run goes on by itself when models can be reached again.
    pub fn passes(self) -> bool {
        matches!(self, Self::NoNetwork | Self::Unreachable)
    }
}

/// What a session of a run came to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    /// What the journal says.
    pub(super) status: Option<Status>,
    /// Why it was to pause, if it was.
    pub(super) pausing: Option<Pause>,
    /// How many of its first rollouts alone, or of the examples of a check, are still to be made.
    pub(super) pilot: Option<usize>,
    /// Whether what failed last did so because its provider was not reached.
    pub(super) cut_off: bool,
    /// Whether any rollout was ever answered: an address that never worked is not waited for.
    pub(super) answered: bool,
    /// Whether the browser knows of a network.
    pub(super) online: bool,
}

impl Ended {
    /// What the run does from then on. One that came to its end while it was to pause has ended.
    pub(super) fn phase(self) -> Phase {
        match (self.status, self.pausing) {
            (Some(Status::Failed), pausing) if self.cut_off && (self.answered || pausing.is_some()) => {
                let why = if self.online {
                    Pause::Unreachable
                } else {
                    Pause::NoNetwork
                };
                Phase::Paused(pausing.unwrap_or(why))
            }
            (Some(Status::Stopped), Some(why)) => Phase::Paused(why),
            (None, why) if self.pilot.is_some() => Phase::Paused(why.unwrap_or(Pause::Asked)),
            // They were made: whatever it was to pause for, the rest waits for somebody.
            (None, _) => Phase::Paused(Pause::Asked),
            _ => Phase::Resting,
        }
    }
}

/// The first wait before a run whose models were not reached tries again, in milliseconds.
const FIRST_WAIT: u32 = 15_000;

/// The longest one.
const LONGEST_WAIT: u32 = 300_000;

/// The wait after so many tries in vain, in milliseconds: each twice the one before.
pub(super) fn wait(tries: u32) -> u32 {
    FIRST_WAIT.saturating_mul(1 << tries.min(16)).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINISHED: Ended = Ended {
        status: Some(Status::Feasible),
        pausing: None,
        pilot: None,
        cut_off: false,
        answered: true,
        online: true,
    };

    #[test]
    fn a_run_that_comes_to_its_end_while_pausing_has_ended() {
        let pausing = |status| Ended {
            status,
            pausing: Some(Pause::Asked),
            ..FINISHED
        };
        for status in [
            Status::Feasible,
            Status::Infeasible,
            Status::Budget,
            Status::Failed,
        ] {
            assert_eq!(pausing(Some(status)).phase(), Phase::Resting, "{status:?}");
        }
        assert_eq!(
            pausing(Some(Status::Stopped)).phase(),
            Phase::Paused(Pause::Asked)
        );
        assert_eq!(pausing(None).phase(), Phase::Paused(Pause::Asked));
        let piloted = Ended {
            status: None,
            ..FINISHED
        };
        assert_eq!(piloted.phase(), Phase::Paused(Pause::Asked));
        let offline = Ended {
            pausing: Some(Pause::NoNetwork),
            ..piloted
        };
        assert_eq!(offline.phase(), Phase::Paused(Pause::Asked));
        let in_its_midst = Ended {
            pilot: Some(5),
            ..offline
        };
        assert_eq!(in_its_midst.phase(), Phase::Paused(Pause::NoNetwork));
        assert_eq!(FINISHED.phase(), Phase::Resting);
    }

    #[test]
    fn a_run_whose_models_are_out_of_reach_waits_for_them() {
        let cut_off = Ended {
            status: Some(Status::Failed),
            cut_off: true,
            ..FINISHED
        };
        assert_eq!(cut_off.phase(), Phase::Paused(Pause::Unreachable));
        let offline = Ended {
            online: false,
            ..cut_off
        };
        assert_eq!(offline.phase(), Phase::Paused(Pause::NoNetwork));
        let told_to_pause = Ended {
            pausing: Some(Pause::Asked),
            ..cut_off
        };
        assert_eq!(told_to_pause.phase(), Phase::Paused(Pause::Asked));
        let never_worked = Ended {
            answered: false,
            ..cut_off
        };
        assert_eq!(never_worked.phase(), Phase::Resting);
        let otherwise = Ended {
            cut_off: false,
            ..cut_off
        };
        assert_eq!(otherwise.phase(), Phase::Resting);
    }

    #[test]
    fn a_run_that_waits_for_its_models_keeps_its_place_among_those_begun_with_it() {
        let waits = [Pause::NoNetwork, Pause::Unreachable].map(Phase::Paused);
        assert!(waits.iter().all(Phase::keeps_its_place) && Phase::Running.keeps_its_place());
        let rests = [Phase::Paused(Pause::Asked), Phase::Resting, Phase::Queued(None)];
        assert!(!rests.iter().any(Phase::keeps_its_place));
    }

    #[test]
    fn waits_grow_up_to_a_bound() {
        assert_eq!([wait(0), wait(1), wait(2)], [15_000, 30_000, 60_000]);
        assert_eq!(wait(40), LONGEST_WAIT);
    }
}
