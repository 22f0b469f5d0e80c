//! Checking what was taken over from earlier runs, as far as a journal can tell.

use crate::journal::{Event, ReusedFrom};
use crate::study::usage::Usage;

/// Says what contradicts that an effect was taken over as it was: it consumes nothing here, its outcome is what was taken,
/// and what it depends on is noted.
pub(super) fn check(event: &Event) -> Result<(), String> {
    let (from, usage, digest, is_named) = match event {
        Event::Rollout(event) => {
            let Some(from) = &event.reused_from else {
                return Ok(());
            };
            (from, &event.usage, event.digest(), event.failed.is_none())
        }
        Event::Critique(event) => {
            let Some(from) = &event.reused_from else {
                return Ok(());
            };
            (from, &event.usage, event.digest(), event.input.is_some())
        }
        Event::Rewrite(event) => {
            let Some(from) = &event.reused_from else {
                return Ok(());
            };
            (from, &event.usage, event.digest(), event.input.is_some())
        }
        _ => return Ok(()),
    };
    compare(from, usage, &digest)?;
    is_named
        .then_some(())
        .ok_or_else(|| "it was taken over from an earlier run, and such an effect never is".to_owned())
}

fn compare(from: &ReusedFrom, usage: &Usage, digest: &str) -> Result<(), String> {
    if !usage.is_empty() {
        return Err(
            "it was taken over from an earlier run, and says that it consumed something in this one".into(),
        );
    }
    if from.digest != digest {
        return Err(format!(
            "it is not what was taken over from run {}: that has the digest {}, this has {digest}",
            from.run, from.digest
        ));
    }
    Ok(())
}
