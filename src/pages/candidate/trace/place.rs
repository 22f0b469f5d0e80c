//! Where the rollout that an address names lies.

use capo_core::ids::CandidateId;
use capo_core::journal::LineId;
use capo_core::run_state::{RunState, SetKey};

use super::super::address::TraceAddress;

/// What an address of a trace leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// The run has no such prompt.
    NoPrompt,
    /// The study has no such example.
    NoExample,
    /// A rollout, made or not.
    Here(Located),
}

/// A rollout of a prompt on an example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Located {
    pub candidate: CandidateId,
    pub set: SetKey,
    /// Name of the workload.
    pub workload: String,
    /// Position of the example in its split, and its id.
    pub example: usize,
    pub id: String,
    pub repeat: u32,
    /// Rollouts that were made of the prompt on it.
    pub repeats: u32,
    /// The journal's line, from 0; none when the rollout was not made.
    pub line: Option<LineId>,
}

/// Finds what an address names. `candidate` is the prompt it means.
pub(super) fn locate(state: &RunState, trace: &TraceAddress, candidate: Option<CandidateId>) -> Place {
    let Some((candidate, position)) =
        candidate.and_then(|candidate| Some((candidate, state.position(&candidate)?)))
    else {
        return Place::NoPrompt;
    };
    let workloads = state.study().map(|started| &started.workloads);
    let named = |name: &str| trace.workload.as_ref().is_none_or(|wanted| wanted == name);
    let found = (0_u16..)
        .zip(workloads.into_iter().flatten())
        .filter(|(_, (name, _))| named(name))
        .find_map(|(workload, (name, record))| {
            let mut examples = record.split(trace.split).iter();
            let example = examples.position(|id| *id == trace.example)?;
            Some((workload, name.clone(), example))
        });
    let Some((workload, name, example)) = found else {
        return Place::NoExample;
    };
    let set = SetKey {
        workload,
        split: trace.split,
    };
    let table = state.rollouts();
    Place::Here(Located {
        candidate,
        set,
        workload: name,
        example,
        id: trace.example.clone(),
        repeat: trace.repeat,
        repeats: table.repeats(position, set, example),
        line: table.line(position, set, example, trace.repeat),
    })
}
