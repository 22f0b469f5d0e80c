//! Checking what was taken over from earlier runs, as far as a journal can tell.

use std::collections::{HashMap, HashSet};

use crate::journal::{Event, InputsByExample, ReusedFrom, StudyEvent};
use crate::study::usage::Usage;

/// What the journal says of the examples.
#[derive(Default)]
pub(super) struct Reused {
    inputs: InputsByExample,
    /// Those that are kept for the test, by workload.
    kept: HashMap<String, HashSet<String>>,
}

impl Reused {
    /// Takes the first line in, or says of another one what contradicts that an effect was taken over as it was: it consumes
    /// nothing here, its outcome is what was taken, and what it depends on is noted.
    pub(super) fn check(&mut self, event: &Event) -> Result<(), String> {
        let (from, usage, digest) = match event {
            Event::Study(study) => {
                (self.inputs, self.kept) = (study.inputs(), kept(study));
                return Ok(());
            }
            Event::Rollout(event) => {
                let Some(from) = &event.reused_from else {
                    return Ok(());
                };
                if event.failed.is_some() {
                    return Err("it failed, and no earlier run hands such a rollout on".into());
                }
                let kept = self.kept.get(&event.workload);
                if kept.is_some_and(|kept| kept.contains(&event.example)) {
                    return Err(
                        "its example is kept for the test, and nothing is taken over from an earlier run for those".into(),
                    );
                }
                let inputs = self.inputs.get(&event.workload);
                let input = inputs.and_then(|inputs| inputs.get(&event.example));
                (from, &event.usage, input.map(|input| event.digest(input)))
            }
            Event::Critique(event) => {
                let Some(from) = &event.reused_from else {
                    return Ok(());
                };
                (from, &event.usage, event.input.as_ref().map(|_| event.digest()))
            }
            Event::Rewrite(event) => {
                let Some(from) = &event.reused_from else {
                    return Ok(());
                };
                (from, &event.usage, event.input.as_ref().map(|_| event.digest()))
            }
            _ => return Ok(()),
        };
        let digest =
            digest.ok_or("it was taken over from an earlier run, and nothing says what it depends on")?;
        compare(from, usage, &digest)
    }
}

fn kept(study: &StudyEvent) -> HashMap<String, HashSet<String>> {
    let workloads = study.workloads.iter();
    workloads
        .map(|(name, record)| (name.clone(), record.reserve.iter().cloned().collect()))
        .collect()
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
