//! Testing prompts on the examples that a study keeps for it.

use std::rc::Rc;

use super::evaluate::open;
use crate::journal::{Journal, Origin};
use crate::reading::certify::{self, BLOCK};
use crate::reading::summary::Failures;
use crate::search::arena::{Arena, Halt, Models, RunOptions};
use crate::search::optimize::{RunError, freeze_thresholds};
use crate::search::problem::Problem;
use crate::study::StudyError;
use crate::study::certificate::{Certificate, Verdict};
use crate::study::ids::CandidateId;
use crate::study::score::Limits;
use crate::study::usage::Usage;

/// What a test of one prompt came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Tested {
    /// The certificate by what was measured; `None` when a threshold relative to the seed prompt could not be measured.
    pub certificate: Option<Certificate>,
    /// The constraints, relative thresholds measured.
    pub limits: Limits,
    /// What was consumed, by earlier sessions over the same journal too.
    pub usage: Usage,
    /// Rollouts made, by earlier sessions over the same journal too.
    pub rollouts: u64,
    /// What could not be measured, if there is anything.
    pub failures: Option<Failures>,
    /// What stopped it before the test was decided.
    pub halt: Option<Halt>,
}

/// Tests one prompt on the reserve of a study, which states one under `confirm`.
///
/// # Errors
/// When the study keeps no reserve, it cannot begin, or the journal fails. A spent budget, an interruption and an effect
/// that failed for good are told by [`Tested::halt`].
pub async fn certify(
    problem: Problem,
    journal: Journal,
    models: Rc<dyn Models>,
    options: RunOptions,
    prompt: &str,
) -> Result<Tested, RunError> {
    if problem.study().confirm.is_none() {
        let problem = "the study keeps no examples for a test; say how many: `[confirm] examples = …`";
        return Err(StudyError::invalid("confirm", problem).into());
    }
    let arena = open(problem, journal, models, options)?;
    let (certificate, halt) = match begin(&arena, prompt).await {
        Ok(candidate) => test(&arena, candidate).await,
        Err(halt) => (None, Some(halt)),
    };
    let halt = match halt {
        Some(Halt::Store(error)) => return Err(error.into()),
        Some(Halt::Replay(difference)) => return Err(RunError::Replay(difference)),
        halt => halt,
    };
    let limits = arena.limits(None);
    let mut journal = arena.into_journal();
    let synced = journal.sync();
    synced.await?;
    let ledger = journal.state().ledger();
    Ok(Tested {
        certificate,
        limits,
        usage: ledger.usage(),
        rollouts: ledger.rollouts(),
        failures: Failures::of(journal.state()),
        halt,
    })
}

async fn begin(arena: &Arena, prompt: &str) -> Result<CandidateId, Halt> {
    freeze_thresholds(arena).await?;
    arena.introduce(prompt, 0, Origin::Given, Vec::new())
}

/// Tests prompts one after the other, up to the first that is not certified: of a sequence fixed beforehand each may be
/// tested at the whole level. What stopped it, too.
pub(super) async fn in_sequence(
    arena: &Arena,
    candidates: Vec<CandidateId>,
) -> (Vec<Certificate>, Option<Halt>) {
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

/// Measures a candidate on the reserve, block by block, until that decides or nothing is left.
async fn test(arena: &Arena, candidate: CandidateId) -> (Option<Certificate>, Option<Halt>) {
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
