//! The prompts that a search found, tested on the examples that the study keeps for it.

use indexmap::IndexMap;

use crate::reading::certify::{self, BLOCK};
use crate::search::arena::{Arena, Batch, Halt};
use crate::search::methods::{Choice, Method};
use crate::study::certificate::{Certificate, Verdict};
use crate::study::ids::CandidateId;
use crate::study::score::{Score, top};

/// The chance of a certificate with which a prompt is safe enough: none of a lower objective is tested before it.
const SAFE: f64 = 0.9;

/// The prompts to be tested on the reserve, the safest first: the chosen one, and safer ones of lower objectives, each
/// with a better chance of a certificate than all of a higher objective. Those that are certified already are among them.
pub(super) fn of(
    arena: &Arena,
    method: &dyn Method,
    scores: &IndexMap<CandidateId, Score>,
    batch: &Batch,
    chosen: CandidateId,
) -> Vec<CandidateId> {
    let confirm = arena.problem().borrow().study().confirm.clone();
    let Some(confirm) = confirm else { return Vec::new() };
    if method.choice() == Choice::Retained {
        return vec![chosen];
    }
    let limits = arena.limits(None);
    // So many standard errors a betting test takes; a binomial one takes fewer.
    let errors = (-2.0 * libm::log(1.0 - confirm.confidence)).sqrt();
    let chance =
        |candidate| arena.probability_of_a_certificate(candidate, batch, &limits, (confirm.examples, errors));
    let mut front = vec![chosen];
    let mut best = chance(chosen);
    for entry in top(arena.ranked(scores, |score| score.objective), scores.len()) {
        if best >= SAFE {
            break;
        }
        let chance = chance(entry);
        if scores[&entry].objective <= scores[&chosen].objective && chance > best {
            front.push(entry);
            best = chance;
        }
    }
    // As many as may be tested, from one end to the other.
    let (last, most) = (front.len() - 1, confirm.finalists.min(front.len()));
    let place = |index: usize| index * last / (most - 1).max(1);
    let journal = arena.journal().borrow();
    let state = journal.state();
    let is_certified = |one: &CandidateId| {
        let known = certify::certificate(state, one);
        known.is_some_and(|known| known.verdict == Verdict::Certified)
    };
    let begun = state.tests().into_iter().flat_map(|tests| &tests.prompts);
    let certified = begun.filter(|&one| scores.contains_key(one) && is_certified(one));
    let finalists = (0..most).rev().map(|index| front[place(index)]);
    finalists.chain(certified.copied()).collect()
}

/// Tests prompts one after the other, up to the first that is not certified: of a sequence fixed beforehand each may be
/// tested at the whole level. Those whose test has begun come first, in the order in which it did. What stopped it, too.
pub(super) async fn tested(
    arena: &Arena,
    mut candidates: Vec<CandidateId>,
) -> (Vec<Certificate>, Option<Halt>) {
    {
        let journal = arena.journal().borrow();
        let tests = journal.state().tests();
        let begun: &[CandidateId] = tests.map_or(&[], |tests| &tests.prompts);
        candidates.sort_by_key(|one| begun.iter().position(|known| known == one).unwrap_or(usize::MAX));
        candidates.dedup();
    }
    let mut certificates = Vec::new();
    for candidate in candidates {
        let (certificate, halt) = test(arena, candidate).await;
        let is_certified = certificate
            .as_ref()
            .is_some_and(|one| one.verdict == Verdict::Certified);
        certificates.extend(certificate);
        if halt.is_some() || !is_certified {
            return (certificates, halt);
        }
    }
    (certificates, None)
}

/// Measures a candidate on the reserve, block by block, until that decides or nothing is left; not where the reserve can
/// certify it no more.
pub(super) async fn test(arena: &Arena, candidate: CandidateId) -> (Option<Certificate>, Option<Halt>) {
    let untested = certify::untested(arena.journal().borrow().state(), &candidate);
    if untested.is_some() {
        return (untested, None);
    }
    let mut blocks = 0;
    loop {
        let standing = certify::after(arena.journal().borrow().state(), &candidate, blocks);
        let Some(certificate) = standing else {
            return (None, None);
        };
        if certificate.ended {
            return (Some(certificate), None);
        }
        blocks += 1;
        match arena.measure(&[candidate], &arena.reserve(blocks * BLOCK)).await {
            Ok(measured) if measured.is_empty() => return (Some(certificate), None),
            Ok(_) => {}
            Err(halt) => return (Some(certificate), Some(halt)),
        }
    }
}
