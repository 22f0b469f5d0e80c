//! Reuse: what earlier runs paid for, by what it depends on.

use std::collections::HashMap;
use std::mem;
use std::rc::Rc;

use indexmap::IndexMap;
use serde_json::json;

use super::event::{
    CritiqueEvent, Event, ReusedFrom, RewriteEvent, RolloutEvent, StudyEvent, WorkloadRecord,
};
use crate::study::canonical_hash;
use crate::study::ids::CandidateId;
use crate::study::usage::Usage;
use crate::study::workload::Split;

/// What rollouts depend on beside prompt and repeat, by workload and example.
pub(crate) type InputsByExample = HashMap<String, HashMap<String, String>>;

/// Rollouts, critiques and rewrites of earlier runs. A run takes them over in place of paying for the same ones; each says
/// then who paid for it, and has consumed nothing.
#[derive(Debug, Default)]
pub struct EarlierRuns {
    /// By what they depend on beside prompt and repeat: an entry for all that is wanted.
    rollouts: HashMap<String, HashMap<(CandidateId, u32), RolloutEvent>>,
    critiques: HashMap<String, CritiqueEvent>,
    /// With the child's prompt, if there is a child.
    rewrites: HashMap<String, (RewriteEvent, Option<Rc<str>>)>,
    /// Id of the study of the run whose lines come in.
    run: String,
    /// What rollouts of that run depend on.
    inputs: InputsByExample,
    prompts: HashMap<CandidateId, Rc<str>>,
}

impl EarlierRuns {
    /// What a run over these workloads may take over. Nothing has come in yet.
    pub fn for_use_on(workloads: &IndexMap<String, WorkloadRecord>) -> Self {
        let wanted = workloads.values().flat_map(|record| &record.inputs);
        Self {
            rollouts: wanted.map(|input| (input.clone(), HashMap::new())).collect(),
            ..Self::default()
        }
    }

    /// Takes in the lines of journals, one journal after another. Of two outcomes of the same effect the first one stays,
    /// unless the second alone serves held-out examples. Says whether it was a rollout with an input of the run's, be it
    /// refused since it is not what was taken over there.
    pub fn take(&mut self, event: Event) -> bool {
        match event {
            Event::Study(study) => {
                self.inputs = study.inputs();
                self.run.clone_from(&study.id);
            }
            Event::Candidate(candidate) => {
                self.prompts.insert(candidate.id, candidate.prompt.into());
            }
            Event::Rollout(rollout) if rollout.failed.is_none() => return self.take_rollout(rollout),
            Event::Critique(mut critique) => {
                let digest = critique.digest();
                if let Some(input) = critique.input.clone()
                    && sign(&self.run, digest, &mut critique.usage, &mut critique.reused_from)
                {
                    self.critiques.entry(input).or_insert(critique);
                }
            }
            Event::Rewrite(mut rewrite) => {
                let digest = rewrite.digest();
                let prompt = rewrite.child.and_then(|child| self.prompts.get(&child).cloned());
                if let Some(input) = rewrite.input.clone()
                    && prompt.is_some() == rewrite.child.is_some()
                    && sign(&self.run, digest, &mut rewrite.usage, &mut rewrite.reused_from)
                {
                    self.rewrites.entry(input).or_insert((rewrite, prompt));
                }
            }
            _ => {}
        }
        false
    }

    fn take_rollout(&mut self, mut rollout: RolloutEvent) -> bool {
        let inputs = self.inputs.get(&rollout.workload);
        let Some(input) = inputs.and_then(|inputs| inputs.get(&rollout.example)) else {
            return false;
        };
        let Some(made) = self.rollouts.get_mut(input) else {
            return false;
        };
        let digest = rollout.digest(input);
        let effect = (rollout.candidate, rollout.repeat);
        let serves_more = made
            .get(&effect)
            .is_none_or(|known| (known.split, rollout.split) == (Split::Optimize, Split::Evaluate));
        if sign(&self.run, digest, &mut rollout.usage, &mut rollout.reused_from) && serves_more {
            made.insert(effect, rollout);
        }
        true
    }

    /// Whether any rollout may be taken over.
    pub(crate) fn has_rollouts(&self) -> bool {
        self.rollouts.values().any(|made| !made.is_empty())
    }

    pub(crate) fn rollout(&self, input: &str, candidate: CandidateId, repeat: u32) -> Option<&RolloutEvent> {
        self.rollouts.get(input)?.get(&(candidate, repeat))
    }

    pub(crate) fn critique(&self, input: &str) -> Option<&CritiqueEvent> {
        self.critiques.get(input)
    }

    /// A rewrite, with the child's prompt if there is a child.
    pub(crate) fn rewrite(&self, input: &str) -> Option<&(RewriteEvent, Option<Rc<str>>)> {
        self.rewrites.get(input)
    }
}

/// Moves what an effect had consumed to the run that paid for it. False where it was taken over already, and is not what
/// was taken.
fn sign(run: &str, digest: String, usage: &mut Usage, from: &mut Option<Box<ReusedFrom>>) -> bool {
    let (run, usage) = (run.to_owned(), mem::take(usage));
    if let Some(from) = from {
        return from.digest == digest;
    }
    *from = Some(Box::new(ReusedFrom { run, usage, digest }));
    true
}

impl StudyEvent {
    /// What rollouts of the run depend on, where it is noted.
    pub(crate) fn inputs(&self) -> InputsByExample {
        let of = |(name, record): (&String, &WorkloadRecord)| {
            let inputs = record.inputs();
            let inputs = inputs.map(|(example, input)| (example.clone(), input.clone()));
            (name.clone(), inputs.collect::<HashMap<String, String>>())
        };
        self.workloads.iter().map(of).collect()
    }
}

impl RolloutEvent {
    /// Hash of which rollout it is, by the input of its example, and of what it came to.
    pub(crate) fn digest(&self, input: &str) -> String {
        canonical_hash(&json!({
            "candidate": self.candidate, "repeat": self.repeat, "input": input,
            "measurements": self.measurements, "trace": self.trace,
        }))
    }
}

impl CritiqueEvent {
    /// Hash of what was asked and what it came to.
    pub(crate) fn digest(&self) -> String {
        canonical_hash(&json!({ "input": self.input, "feedback": self.feedback }))
    }
}

impl RewriteEvent {
    /// Hash of what was asked and what it came to.
    pub(crate) fn digest(&self) -> String {
        canonical_hash(&json!({ "input": self.input, "child": self.child, "reason": self.reason }))
    }
}
