//! Testing prompts on the examples that a study keeps for it.

use std::rc::Rc;

use super::evaluate::open;
use crate::journal::{Journal, Origin};
use crate::reading::summary::Failures;
use crate::search::arena::{Arena, Halt, Models, RunOptions};
use crate::search::finalists;
use crate::search::optimize::{RunError, freeze_thresholds};
use crate::search::problem::Problem;
use crate::study::StudyError;
use crate::study::certificate::Certificate;
use crate::study::ids::CandidateId;
use crate::study::usage::Usage;

/// What a test of one prompt came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Tested {
    /// The certificate by what was measured; `None` when a threshold relative to the seed prompt could not be measured.
    pub certificate: Option<Certificate>,
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
        Ok(candidate) => finalists::test(&arena, candidate).await,
        Err(halt) => (None, Some(halt)),
    };
    let halt = match halt {
        Some(Halt::Store(error)) => return Err(error.into()),
        Some(Halt::Replay(difference)) => return Err(RunError::Replay(difference)),
        halt => halt,
    };
    let mut journal = arena.into_journal();
    let synced = journal.sync();
    synced.await?;
    let ledger = journal.state().ledger();
    Ok(Tested {
        certificate,
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
