//! Everything that a journal says was tested.

use crate::journal::Origin;
use crate::journal::run_state::RunState;
use crate::reading::certify::certificate;
use crate::study::certificate::Certificate;

/// The certificates of a run, in the order in which its prompts were tested, and then [`given`].
pub fn all(state: &RunState) -> Vec<Certificate> {
    let finished = state.finished();
    let mut all = finished.map_or_else(Vec::new, |finished| finished.certificates.clone());
    let mut given = given(state);
    given.retain(|one| all.iter().all(|known| known.candidate != one.candidate));
    all.extend(given);
    all
}

/// Those of prompts that were tested without a search, the study's own among them.
pub fn given(state: &RunState) -> Vec<Certificate> {
    let is_no_search = state.rounds().is_empty();
    let given = state
        .candidates()
        .filter(|(_, candidate)| is_no_search || candidate.origin == Origin::Given);
    let certificates = given.filter_map(|(id, _)| certificate(state, id));
    certificates
        .filter(|certificate| certificate.examples > 0)
        .collect()
}
