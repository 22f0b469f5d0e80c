//! Animation by timers, and the wish for less motion.

use std::time::Duration;

use leptos::prelude::*;

/// Whether somebody asked for less motion: playing is stepping then.
pub fn less_motion() -> bool {
    let query = window().match_media("(prefers-reduced-motion: reduce)");
    query.ok().flatten().is_some_and(|query| query.matches())
}

/// Does something again and again, as often as `period` says, as long as it says so and the caller is there.
pub fn every(period: impl Fn() -> Option<Duration> + 'static, tick: impl Fn() + Clone + 'static) {
    Effect::new(move |_| {
        let ticking = period().map(|period| set_interval_with_handle(tick.clone(), period));
        on_cleanup(move || {
            if let Some(Ok(ticking)) = ticking {
                ticking.clear();
            }
        });
    });
}
