//! The plates as they stood after earlier rounds.

use std::sync::Arc;
use std::time::Duration;

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use crate::components::{Icon, PAUSE, PLAY, every, less_motion};
use crate::download::slim_journal;
use crate::live::{Phase, Replay, Run};
use crate::run::overview::Overview;
use crate::run::rounds::ScreenRound;

/// How long a round is shown that is played, time enough to read a figure.
const EACH: Duration = Duration::from_millis(700);

/// Which round a run that rests is shown after.
#[derive(Clone, Copy)]
pub(super) struct Replaying {
    run: Run,
    /// What the plates show; none for the run as it stands.
    pub(super) seen: RwSignal<Option<Arc<Overview>>>,
    /// The round asked for, which is seen once the journal is folded so far; none for the end.
    asked: RwSignal<Option<ScreenRound>>,
    /// Rounds that are closed, of a run that rests.
    rounds: Memo<Option<ScreenRound>>,
    playing: RwSignal<bool>,
    wrong: RwSignal<Option<String>>,
    /// Kept as long as an earlier round is asked for.
    journal: StoredValue<Option<Replay>, LocalStorage>,
    folding: StoredValue<bool>,
}

impl Replaying {
    /// A run that is shown as it stands, at first.
    pub(super) fn of(run: Run) -> Self {
        let rounds = Memo::new(move |_| {
            let (closed, has_ended) =
                run.read(|folded| (folded.state.rounds().len(), folded.state.finished().is_some()));
            let rests = match run.phase.get() {
                Phase::Resting | Phase::Failed(_) => true,
                Phase::Paused(_) => has_ended,
                _ => false,
            };
            (rests && closed > 0).then_some(closed as ScreenRound)
        });
        let replaying = Self {
            run,
            seen: RwSignal::new(None),
            asked: RwSignal::new(None),
            rounds,
            playing: RwSignal::new(false),
            wrong: RwSignal::new(None),
            journal: StoredValue::new_local(None),
            folding: StoredValue::new(false),
        };
        // One that goes on is shown as it goes.
        Effect::new(move |_| {
            rounds.track();
            replaying.ask(None);
        });
        every(
            move || replaying.playing.get().then_some(EACH),
            move || replaying.advance(),
        );
        replaying
    }

    /// The round at which the control stands.
    fn at(self) -> ScreenRound {
        let last = self.rounds.get().unwrap_or_default();
        self.asked.get().unwrap_or(last)
    }

    /// Shows the run after a round, the last one as it stands.
    fn go(self, round: ScreenRound) {
        let is_earlier = self.rounds.get_untracked().is_some_and(|last| round < last);
        self.ask(is_earlier.then_some(round));
    }

    fn ask(self, round: Option<ScreenRound>) {
        self.wrong.set(None);
        self.asked.set(round);
        if round.is_none() {
            self.playing.set(false);
            self.seen.set(None);
            self.journal.set_value(None);
        } else if !self.folding.get_value() {
            self.folding.set_value(true);
            spawn_local(async move {
                let folded = self.fold().await;
                // The page may be left by then.
                let _ = self.folding.try_set_value(false);
                if let Err(why) = folded
                    && self.asked.try_get_untracked().is_some()
                {
                    self.ask(None);
                    self.wrong.set(Some(why));
                }
            });
        }
    }

    /// Folds the journal, in slices that leave the page responsive, until what is asked for is seen.
    async fn fold(self) -> Result<(), String> {
        while let Some(asked) = self.asked.try_get_untracked().flatten() {
            if self.journal.with_value(Option::is_none) {
                let read = Replay::of(&slim_journal(self.run).await?);
                // The end may be asked for by then, or the page left.
                if self.asked.try_get_untracked().flatten().is_some() {
                    self.journal.set_value(Some(read));
                }
                continue;
            }
            let seen = self
                .journal
                .try_update_value(|journal| journal.as_mut()?.after(asked).transpose());
            match seen.flatten().transpose()? {
                Some(seen) => {
                    self.seen.set(Some(seen));
                    return Ok(());
                }
                None => TimeoutFuture::new(0).await,
            }
        }
        Ok(())
    }

    fn advance(self) {
        // A round is shown before the next one is asked for.
        if !self.folding.get_value() {
            self.go(untrack(|| self.at()) + 1);
        }
    }

    fn play(self) {
        let (plays, is_at_end) = (self.playing.get_untracked(), self.asked.get_untracked().is_none());
        if is_at_end {
            self.go(0);
        } else if less_motion() {
            self.advance();
        }
        self.playing.set(!plays && !less_motion());
    }
}

/// Plays the rounds of a run that rests, and leads to any of them.
#[component]
pub(super) fn ReplayBar(replaying: Replaying) -> impl IntoView {
    let last = move || replaying.rounds.get().unwrap_or_default();
    let words = move || match replaying.at() {
        0 => format!("Seed of {}", last()),
        round => format!("Round {round} of {}", last()),
    };
    let scrubbed = move |event| {
        if let Ok(round) = event_target_value(&event).parse() {
            replaying.playing.set(false);
            replaying.go(round);
        }
    };
    let playing = move || replaying.playing.get();
    let play_words = move || match playing() {
        true => "Pause",
        false if less_motion() => "Step",
        false => "Play",
    };
    let about = move || {
        if replaying.asked.with(Option::is_some) {
            "Replayed: charts, map and pool as they stood then. Header, buttons and activity are of the run’s end."
        } else {
            "Charts, map and pool can be led back to any round."
        }
    };
    view! {
        <Show when=move || replaying.rounds.get().is_some()>
            <div class="transport replay" role="group" aria-label="Replay">
                <button type="button" on:click=move |_| replaying.play()>
                    <Icon path=Signal::derive(move || if playing() { PAUSE } else { PLAY })/>
                    {play_words}
                </button>
                <button type="button" on:click=move |_| replaying.ask(None)>
                    "Back to the end"
                </button>
                <div class="scrub">
                    <label for="replay">{words}</label>
                    <input
                        id="replay"
                        type="range"
                        min="0"
                        max=last
                        step="1"
                        prop:value=move || replaying.at().to_string()
                        aria-label="Round"
                        aria-valuetext=words
                        on:input=scrubbed
                    />
                </div>
                <p class="note" role="status">
                    <span class:hide-s=move || replaying.asked.with(Option::is_none)>{about}</span>
                </p>
                {move || {
                    replaying.wrong.get().map(|why| view! { <p class="note is-i" role="alert">{why}</p> })
                }}
            </div>
        </Show>
    }
}
