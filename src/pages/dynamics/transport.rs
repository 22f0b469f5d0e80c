//! Stepping and playing through rounds.

use std::time::Duration;

use leptos::prelude::*;

use super::setting::{ROUNDS, SCENES, scene_of};
use super::side::Side;
use crate::components::{Icon, PAUSE, PLAY, every, less_motion};
use crate::frame::shortcuts::use_shortcut;

/// Speeds in rounds a second.
const SPEEDS: [u32; 4] = [1, 2, 4, 8];

/// Which rounds are shown.
#[derive(Clone, Copy)]
pub(super) struct Playback {
    /// The last round to show, if it is searched already.
    pub(super) shown: RwSignal<u32>,
    playing: RwSignal<bool>,
    speed: RwSignal<u32>,
    /// Whether somebody asked for less motion: playing is stepping then.
    stepwise: bool,
    sides: [Side; 2],
}

impl Playback {
    /// Everything searched is shown at first.
    pub(super) fn new(sides: [Side; 2]) -> Self {
        let playback = Self {
            shown: RwSignal::new(ROUNDS),
            playing: RwSignal::new(false),
            speed: RwSignal::new(4),
            stepwise: less_motion(),
            sides,
        };
        let each = move || Duration::from_millis(u64::from(1000 / playback.speed.get().max(1)));
        every(
            move || playback.playing.get().then(each),
            move || playback.advance(),
        );
        playback
    }

    /// The last round that both sides have searched.
    fn ready(self) -> u32 {
        let reached = self.sides.map(|side| untrack(|| side.reached()).unwrap_or(0));
        reached.into_iter().min().unwrap_or(0)
    }

    /// The round that is seen: the one asked for, or as far as the faster side is searched.
    pub(super) fn seen(self) -> u32 {
        let reached = self.sides.map(|side| side.reached().unwrap_or(0));
        self.shown.get().min(reached.into_iter().max().unwrap_or(0))
    }

    fn advance(self) {
        let shown = self.shown.get_untracked();
        if shown >= ROUNDS {
            self.playing.set(false);
        } else if shown < self.ready() {
            self.shown.set(shown + 1);
        }
    }

    fn restart(self) {
        self.shown.set(0);
    }

    fn back(self) {
        self.playing.set(false);
        let seen = untrack(|| self.seen());
        self.shown.set(seen.saturating_sub(1));
    }

    fn step(self) {
        self.playing.set(false);
        let seen = untrack(|| self.seen());
        self.shown.set((seen + 1).min(ROUNDS));
    }

    fn play(self) {
        if self.stepwise {
            return self.step();
        }
        let plays = !self.playing.get_untracked();
        if plays && self.shown.get_untracked() >= ROUNDS {
            self.shown.set(0);
        }
        self.playing.set(plays);
    }
}

/// Restart, back, play, step, the round, the speed and the scene.
#[component]
pub(super) fn Transport() -> impl IntoView {
    let playback = expect_context::<Playback>();
    use_shortcut(".", "step to the next round", move || playback.step());
    use_shortcut(",", "back to the round before", move || playback.back());
    use_shortcut(" ", "play or pause", move || playback.play());
    let [a, b] = playback.sides;
    let playing = move || playback.playing.get();
    let scrubbed = move |event| {
        if let Ok(round) = event_target_value(&event).parse() {
            playback.playing.set(false);
            playback.shown.set(round);
        }
    };
    let round = move || match playback.seen() {
        0 => view! { <b>"Seed"</b> }.into_any(),
        round => view! { <b>"Round " {round}</b> }.into_any(),
    };
    let speeds = move || {
        SPEEDS.map(|speed| {
            let words = if speed == 1 {
                "1 round a second".to_owned()
            } else {
                format!("{speed} rounds a second")
            };
            let chosen = move || playback.speed.get() == speed;
            view! {
                <option value=speed.to_string() prop:selected=chosen>
                    {words}
                </option>
            }
        })
    };
    let scene = Memo::new(move |_| scene_of([a.setting.get(), b.setting.get()]).map(|scene| scene.name));
    let scenes = SCENES.each_ref().map(|shown| {
        let chosen = move || scene.get() == Some(shown.name);
        view! {
            <option value=shown.name prop:selected=chosen>
                {shown.name}
            </option>
        }
    });
    let set_scene = move |event| {
        let name = event_target_value(&event);
        if let Some(chosen) = SCENES.iter().find(|scene| scene.name == name) {
            for (side, setting) in [a, b].into_iter().zip(chosen.settings) {
                // A side that stays as it is is not searched again.
                if side.setting.get_untracked() != setting {
                    side.setting.set(setting);
                }
            }
        }
    };
    view! {
        <div class="transport" role="group" aria-label="Playback">
            <div class="row">
                <button type="button" aria-label="Restart" on:click=move |_| playback.restart()>
                    <Icon path="M2.2 4.2A4.5 4.5 0 1 1 1.5 6.8M2 1v3.4h3.4" stroke="1.6"/>
                    <span class="hide-s">"Restart"</span>
                </button>
                <button type="button" aria-keyshortcuts="," on:click=move |_| playback.back()>
                    <Icon path="M1.5 1h2v10h-2zM11 1v10L4 6z"/>
                    "Back"
                </button>
                <Show when=move || !playback.stepwise>
                    <button
                        type="button"
                        class="primary"
                        aria-keyshortcuts="Space"
                        on:click=move |_| playback.play()
                    >
                        <Icon path=Signal::derive(move || if playing() { PAUSE } else { PLAY })/>
                        {move || if playing() { "Pause" } else { "Play" }}
                    </button>
                </Show>
                <button
                    type="button"
                    class:primary=playback.stepwise
                    aria-keyshortcuts="."
                    on:click=move |_| playback.step()
                >
                    <Icon path="M8.5 1h2v10h-2zM1 1l7 5-7 5z"/>
                    "Step"
                </button>
            </div>
            <div class="scrub">
                <label for="scrub">
                    <span>{round} " of " {ROUNDS}</span>
                </label>
                <input
                    id="scrub"
                    type="range"
                    min="0"
                    max=ROUNDS.to_string()
                    step="1"
                    prop:value=move || playback.seen().to_string()
                    on:input=scrubbed
                />
            </div>
            <Show when=move || !playback.stepwise>
                <label>
                    "Speed"
                    <select
                        class="auto"
                        on:change=move |event| {
                            if let Ok(speed) = event_target_value(&event).parse() {
                                playback.speed.set(speed);
                            }
                        }
                    >
                        {speeds()}
                    </select>
                </label>
            </Show>
            <label>
                "Scene"
                <select class="auto" on:change=set_scene>
                    {scenes}
                    <Show when=move || scene.get().is_none()>
                        <option value="" prop:selected=true>
                            "Your own"
                        </option>
                    </Show>
                </select>
            </label>
        </div>
    }
}
