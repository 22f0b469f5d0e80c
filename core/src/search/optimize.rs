//! A whole run: open or resume, freeze thresholds, search, choose, evaluate held-out.

use std::rc::Rc;

use indexmap::IndexMap;

use crate::journal::{Event, FinishedEvent, Journal, JournalError, Status, StoreError};
use crate::llm::FailureKind;
use crate::search::arena::{Arena, Batch, Halt, Models, Phase, RunOptions};
use crate::search::finalists;
use crate::search::methods::{self, Choice, Method};
use crate::search::problem::Problem;
use crate::study::certificate::Verdict;
use crate::study::ids::CandidateId;
use crate::study::score::{Choosable, Limit, Multipliers, Ranked, Score, choice, top};
use crate::study::workload::Split;
use crate::study::{LARGEST_THRESHOLD, Rounds, StudyError};

/// After a search with minibatches: how many pruned candidates that a batch found feasible are
/// measured on the whole split beside the last pool and the seed.
const REMEMBERED: usize = 3;

/// A run that could not even begin, or whose journal failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The study is impossible.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// The journal cannot be read or written, or belongs to another study.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A replayed journal does not say what this build computes.
    #[error("{0}")]
    Replay(String),
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Self::Journal(error.into())
    }
}

/// A finished run.
pub struct Outcome {
    /// How it ended and with what.
    pub finished: Rc<FinishedEvent>,
    /// Everything about it.
    pub journal: Journal,
}

/// Runs a study over a journal: starts it, or resumes it where the journal ends, paying for nothing
/// twice.
///
/// `tiny` is the workload of `core/tests/tiny/mod.rs`, shown at [`crate::study::workload::Workload`].
///
/// ```
/// # mod tiny { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tiny/mod.rs")); }
/// use std::rc::Rc;
///
/// use capo_core::arena::RunOptions;
/// use capo_core::journal::{Journal, MemoryJournal, Status};
/// use capo_core::optimize;
/// use futures::executor::block_on;
///
/// let problem = tiny::problem(tiny::STUDY)?;
/// let journal = Journal::create(Box::new(MemoryJournal::new()));
/// let outcome = block_on(optimize(problem, journal, Rc::new(tiny::Tiny), RunOptions::default()))?;
///
/// assert_eq!(outcome.finished.status, Status::Feasible);
/// let best = outcome.finished.best.and_then(|best| outcome.journal.state().candidate(&best));
/// assert_eq!(&*best.unwrap().prompt, "You answer customers. Look up every parcel. Look up every refund.");
/// assert_eq!(outcome.finished.evaluation["handovers"].mean, 0.0);
/// # Ok::<(), capo_core::RunError>(())
/// ```
///
/// # Errors
/// When the run cannot begin, or the journal fails. A spent budget, an interruption and an effect
/// that failed for good are no errors here: the outcome's status says so, and the journal can be
/// resumed.
pub async fn optimize(
    problem: Problem,
    mut journal: Journal,
    models: Rc<dyn Models>,
    options: RunOptions,
) -> Result<Outcome, RunError> {
    let method = methods::search(&problem.study().study.method, &problem.study().method)?;
    refuse_without_traces(&mut journal).await?;
    let arena = Arena::open(problem, journal, models, options)?;
    arena.expect_finalists(finalists(&arena, &*method));
    let ended = match freeze_thresholds(&arena).await {
        Ok(()) => method.search(&arena).await,
        Err(halt) => Err(halt),
    };
    let halt = match ended {
        Ok(()) => None,
        Err(Halt::Store(error)) => return Err(error.into()),
        Err(Halt::Replay(difference)) => return Err(RunError::Replay(difference)),
        Err(halt) => Some(halt),
    };
    let finished = finish(&arena, &*method, halt).await?;
    let journal = arena.into_journal();
    Ok(Outcome {
        finished: Rc::new(finished),
        journal,
    })
}

/// Refuses a journal without traces, unless its run went its whole way, so that nothing is read of it but what it came to.
async fn refuse_without_traces(journal: &mut Journal) -> Result<(), JournalError> {
    let state = journal.state();
    let status = state.finished().map(|finished| finished.status);
    let first = match status {
        Some(Status::Feasible | Status::Infeasible) => None,
        _ => state.rollouts().first_line(),
    };
    let Some(first) = first else { return Ok(()) };
    match journal.read(first).await? {
        Event::Rollout(rollout) if rollout.without_trace => Err(JournalError::WithoutTraces),
        _ => Ok(()),
    }
}

/// Measures the seed prompt and freezes the thresholds that are relative to it. A run whose
/// thresholds are frozen already looks at these measurements all the same: they make the seed one
/// of the candidates measured on the whole split.
pub(crate) async fn freeze_thresholds(arena: &Arena) -> Result<(), Halt> {
    if !thresholds_are_relative(arena) {
        return Ok(());
    }
    let open = {
        let problem = arena.problem().borrow();
        let mut constraints = problem.constraints().iter();
        constraints.any(|constraint| constraint.threshold.is_none())
    };
    let (seed, whole) = (arena.seed(), arena.whole(Split::Optimize));
    arena.measure(&[seed], &whole).await?;
    if !open {
        return Ok(());
    }
    let means = arena
        .means(seed, &whole)
        .ok_or_else(|| Halt::Replay("the seed was not measured".into()))?;
    let relative: Vec<(String, f64)> = {
        let problem = arena.problem().borrow();
        let open = problem
            .constraints()
            .iter()
            .filter(|constraint| constraint.threshold.is_none());
        open.map(|constraint| {
            let metric = constraint.source.spec.name.clone();
            let threshold = constraint.relative_to_seed.unwrap_or(1.0) * means.costs[&metric];
            (metric, threshold)
        })
        .collect()
    };
    for (metric, threshold) in relative {
        if !(-LARGEST_THRESHOLD..=LARGEST_THRESHOLD).contains(&threshold) {
            return Err(Halt::Failed {
                kind: FailureKind::Malformed,
                message: format!(
                    "the threshold of `{metric}` relative to the seed prompt would be {threshold:e}; choose a smaller \
                     `relative_to_seed`"
                ),
            });
        }
        arena.problem().borrow_mut().freeze(&metric, threshold);
    }
    let frozen = arena
        .journal()
        .borrow()
        .state()
        .study()
        .map(|event| (**event).clone());
    if let Some(mut event) = frozen {
        event
            .study
            .constraints
            .clone_from(&arena.problem().borrow().study().constraints);
        arena.freeze(event).await?;
    }
    Ok(())
}

/// How many candidates [`settle`] may have to measure on the whole split. Thresholds relative to the
/// seed have it measured there before the search.
pub(crate) fn finalists(arena: &Arena, method: &dyn Method) -> u64 {
    let beside_the_pool = match method.choice() {
        Choice::Retained => 0,
        Choice::BestFeasible => REMEMBERED + usize::from(!thresholds_are_relative(arena)),
    };
    (method.pool() + beside_the_pool) as u64
}

pub(crate) fn thresholds_are_relative(arena: &Arena) -> bool {
    arena.problem().borrow().study().thresholds_are_relative()
}

/// Journals the end, unless the journal says it already.
async fn finish(arena: &Arena, method: &dyn Method, halt: Option<Halt>) -> Result<FinishedEvent, RunError> {
    let mut finished = conclude(arena, method, halt.as_ref()).await?;
    let known = arena.journal().borrow().state().finished().cloned();
    // A budget that is spent still is told with the figures of now: the evaluation came since.
    if let (Some(known), Some(Halt::Budget(_))) = (&known, &halt)
        && known.status == finished.status
    {
        finished.reason.clone_from(&known.reason);
    }
    if known.is_none_or(|known| *known != finished) {
        arena
            .journal()
            .borrow_mut()
            .record(&Event::Finished(Box::new(finished.clone())))?;
    }
    let synced = arena.journal().borrow_mut().sync();
    synced.await?;
    Ok(finished)
}

/// Chooses the prompt to return, by tests on the reserve where the study keeps one, and evaluates it and the seed on
/// held-out examples.
pub(crate) async fn conclude(
    arena: &Arena,
    method: &dyn Method,
    halt: Option<&Halt>,
) -> Result<FinishedEvent, RunError> {
    let mut reasons: Vec<String> = halt.iter().map(ToString::to_string).collect();
    let mut ended = halt.cloned();
    arena.enter(Phase::Settling);
    let settles = match halt {
        None => true,
        Some(Halt::Budget(_)) => arena.has_minibatches(),
        Some(_) => false,
    };
    let mut passed_over = 0;
    if settles {
        match settle(arena, method).await {
            Ok(left) => passed_over = left,
            Err(stopped) => {
                noted(&stopped, "the candidates of the final choice", &mut reasons)?;
                ended = ended.or(Some(stopped));
            }
        }
    }
    let multipliers = last_multipliers(arena, method);
    let (final_scores, batch) = final_scores(arena, method, &multipliers)?;
    let chosen = choose(arena, method, &final_scores, &batch);
    let may_confirm = !matches!(halt, Some(Halt::Interrupted | Halt::Failed { .. }));
    let finalists = match chosen {
        Some(chosen) if may_confirm => finalists::of(arena, method, &final_scores, &batch, chosen),
        _ => Vec::new(),
    };
    arena.enter(Phase::Confirmation);
    let (certificates, stopped) = finalists::tested(arena, finalists).await;
    if let Some(stopped) = stopped {
        noted(&stopped, "the examples kept for the test", &mut reasons)?;
        ended = ended.or(Some(stopped));
    }
    let objective = |candidate: &CandidateId| final_scores[candidate].objective;
    let certified = certificates
        .iter()
        .filter(|one| one.verdict == Verdict::Certified)
        .max_by(|a, b| objective(&a.candidate).total_cmp(&objective(&b.candidate)));
    let best = match certified {
        Some(certificate) => Some(certificate.candidate),
        // One that could not be run in its test is not returned.
        None if chosen.is_some_and(|chosen| arena.is_discarded(chosen)) => {
            let mut left = final_scores.clone();
            left.retain(|id, _| !arena.is_discarded(*id));
            choose(arena, method, &left, &batch)
        }
        None => chosen,
    };
    arena.enter(Phase::Evaluation);

    let held_out = arena.whole(Split::Evaluate);
    let may_spend = !held_out.is_empty() && !matches!(halt, Some(Halt::Interrupted | Halt::Failed { .. }));
    if let (true, Some(best)) = (may_spend, best)
        && let Err(stopped) = evaluate(arena, best).await
    {
        noted(&stopped, "the held-out evaluation", &mut reasons)?;
        ended = ended.or(Some(stopped));
    }
    let feasible = best.is_some_and(|best| final_scores[&best].feasible);
    let stopped = arena
        .journal()
        .borrow()
        .state()
        .steers()
        .iter()
        .any(|steer| steer.stop);
    // A search until the budget is spent has come to its end when a budget that was enough is.
    let is_whole = matches!(halt, Some(Halt::Budget(_)))
        && matches!(arena.search().rounds, Rounds::Open(_))
        && !arena.journal().borrow().state().rounds().is_empty()
        && reasons.len() == 1;
    if passed_over > 0 {
        reasons.push(format!(
            "the budget had no room to measure {passed_over} more candidates of the final choice on all examples"
        ));
    }
    // A budget that left no room for the final measurements alone stopped no search.
    let status = match (halt, &ended) {
        (Some(Halt::Budget(_)), _) if !is_whole => Status::Budget,
        (_, Some(Halt::Interrupted)) => Status::Stopped,
        (_, Some(Halt::Failed { .. })) => Status::Failed,
        _ if stopped => Status::Stopped,
        _ if feasible => Status::Feasible,
        _ => Status::Infeasible,
    };
    let asks = arena.search().choice_probability > 0.0 && method.choice() == Choice::BestFeasible;
    let limits = arena.limits(None);
    let probability = best.filter(|_| asks);
    let probability = probability.map(|best| arena.probability_of_holding(best, &batch, &limits));
    Ok(FinishedEvent {
        status,
        best,
        final_scores,
        multipliers,
        evaluation: best
            .map(|best| arena.estimates(best, &held_out))
            .unwrap_or_default(),
        seed_evaluation: arena.estimates(arena.seed(), &held_out),
        usage: arena.journal().borrow().state().ledger().usage(),
        probability,
        certificates,
        reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
    })
}

/// With minibatches, measures on the whole split who may be chosen: the last pool, then the seed and
/// the best of those that were pruned. Nobody is measured by halves. Where batches grow, those whom the choice would take
/// first by the last of them, as many as the budget has room for, then the seed. How many it had no room for.
async fn settle(arena: &Arena, method: &dyn Method) -> Result<usize, Halt> {
    let last = arena
        .journal()
        .borrow()
        .state()
        .rounds()
        .last()
        .map(|round| round.retained.clone());
    let whole = arena.whole(Split::Optimize);
    if chooses_by_growing_batches(arena, method) {
        let mut order = first_by_the_last_batch(arena, method)?;
        if !order.contains(&arena.seed()) {
            order.push(arena.seed());
        }
        let room = |few: &usize| arena.has_room_for(&order[..*few], &whole);
        let mut measured = 0;
        // An example that is left out for them leaves room for more.
        while let Some(few) = (measured + 1..=order.len()).rev().find(|few| room(few).is_ok()) {
            arena.measure(&order[..few], &whole).await?;
            measured = few;
        }
        if measured == 0 {
            room(&1)?;
        }
        return Ok(order.len() - measured);
    }
    let pool = last.unwrap_or_else(|| vec![arena.seed()]);
    arena.has_room_for(&pool, &whole)?;
    arena.measure(&pool, &whole).await?;
    if method.choice() == Choice::Retained || !arena.has_minibatches() {
        return Ok(0);
    }
    let others = remembered(arena, &pool);
    arena.has_room_for(&others, &whole)?;
    arena.measure(&others, &whole).await?;
    Ok(0)
}

fn chooses_by_growing_batches(arena: &Arena, method: &dyn Method) -> bool {
    arena.search().batch_growth.is_some() && method.choice() == Choice::BestFeasible
}

/// Whom the final choice would take first, second and so on by the batch of the last round.
fn first_by_the_last_batch(arena: &Arena, method: &dyn Method) -> Result<Vec<CandidateId>, Halt> {
    let Some(last) = arena.journal().borrow().state().rounds().last().cloned() else {
        return Ok(Vec::new());
    };
    let batch = arena.batch_of(&last);
    let mut scores = scores_on(arena, &batch, &last_multipliers(arena, method))?;
    let mut first = Vec::new();
    while first.len() < method.pool() + REMEMBERED
        && let Some(next) = choose(arena, method, &scores, &batch)
    {
        scores.shift_remove(&next);
        first.push(next);
    }
    Ok(first)
}

/// The seed, and the pruned candidates of the highest objectives among those that were feasible on
/// the last batch they were measured on.
fn remembered(arena: &Arena, pool: &[CandidateId]) -> Vec<CandidateId> {
    let mut latest: IndexMap<CandidateId, Score> = IndexMap::new();
    for round in arena.journal().borrow().state().rounds() {
        latest.extend(round.scores.iter().map(|(id, score)| (*id, score.clone())));
    }
    let limits = arena.limits(None);
    latest.retain(|id, score| {
        let satisfied = |(metric, limit): (&String, &Limit)| limit.is_satisfied(score.cautious_cost(metric));
        !arena.is_discarded(*id) && !pool.contains(id) && *id != arena.seed() && limits.iter().all(satisfied)
    });
    let mut others = top(arena.ranked(&latest, |score| score.objective), REMEMBERED);
    if !pool.contains(&arena.seed()) {
        others.insert(0, arena.seed());
    }
    others
}

/// Measures the returned prompt and the seed on the held-out examples. A search that runs until
/// its budget is spent uses what is left for further repeats, so that nothing is left over.
async fn evaluate(arena: &Arena, best: CandidateId) -> Result<(), Halt> {
    let held_out = arena.whole(Split::Evaluate);
    arena.measure(&[best], &held_out).await?;
    arena.measure(&[arena.seed()], &held_out).await?;
    if matches!(arena.search().rounds, Rounds::Open(_)) && arena.rollouts_are_bounded() {
        // Ends where nothing is left to measure, or where all of it fails at no rollout's cost.
        let standing = || {
            (
                arena.repeats_on(best, &held_out),
                arena.rollouts_spent(),
                arena.failed_rollouts(),
            )
        };
        let mut before = standing();
        loop {
            match arena.measure_again(&[best], &held_out).await {
                Ok(_) => {
                    let (now, (repeats, spent, failed)) = (standing(), before);
                    if now.0 == repeats || (now.1 == spent && now.2 > failed) {
                        return Ok(());
                    }
                    before = now;
                }
                Err(Halt::Budget(_)) => return Ok(()),
                Err(halt) => return Err(halt),
            }
        }
    }
    Ok(())
}

/// Lets a halt of the final measurements pass as a reason, unless the journal itself failed.
fn noted(halt: &Halt, what: &str, reasons: &mut Vec<String>) -> Result<(), RunError> {
    match halt {
        Halt::Store(error) => Err(error.clone().into()),
        Halt::Replay(difference) => Err(RunError::Replay(difference.clone())),
        halt => {
            // A search that the budget ended has said so already.
            let said = reasons.contains(&halt.to_string());
            let why = if said { String::new() } else { format!(": {halt}") };
            reasons.push(format!("{what} could not be measured whole{why}"));
            Ok(())
        }
    }
}

/// λ_T, constraints that never entered at 0.
fn last_multipliers(arena: &Arena, method: &dyn Method) -> Multipliers {
    // As they were computed: an earlier version may have written one that is no number.
    let last = arena.last_multipliers();
    let mut multipliers = last.unwrap_or_else(|| method.start(&arena.limits(Some(0))));
    for metric in arena.limits(None).into_keys() {
        multipliers.entry(metric).or_insert(0.0);
    }
    multipliers
}

/// Scores under λ_T, against all constraints, of every candidate measured on the whole split. A
/// search with minibatches that stopped before its last pool was measured so (where batches grow, the first of the
/// choice) is told by that round's batch. With them the examples that they are scores on.
fn final_scores(
    arena: &Arena,
    method: &dyn Method,
    multipliers: &Multipliers,
) -> Result<(IndexMap<CandidateId, Score>, Batch), RunError> {
    let whole = arena.whole(Split::Optimize);
    if arena
        .problem()
        .borrow()
        .constraints()
        .iter()
        .any(|constraint| constraint.threshold.is_none())
    {
        return Ok((IndexMap::new(), whole));
    }
    let replay = |halt: Halt| RunError::Replay(halt.to_string());
    let mut last = arena.journal().borrow().state().rounds().last().cloned();
    let unmeasured = |id: &CandidateId| !arena.is_discarded(*id) && arena.means(*id, &whole).is_none();
    let is_unsettled = if chooses_by_growing_batches(arena, method) {
        let first = first_by_the_last_batch(arena, method).map_err(replay)?;
        first.first().is_some_and(unmeasured)
    } else {
        last.as_ref()
            .is_some_and(|round| round.retained.iter().any(unmeasured))
    };
    let batch = last
        .take_if(|_| is_unsettled)
        .map_or(whole, |round| arena.batch_of(&round));
    let scores = scores_on(arena, &batch, multipliers).map_err(replay)?;
    Ok((scores, batch))
}

/// Scores against all constraints of every candidate measured on a batch.
fn scores_on(
    arena: &Arena,
    batch: &Batch,
    multipliers: &Multipliers,
) -> Result<IndexMap<CandidateId, Score>, Halt> {
    let measured: Vec<CandidateId> = arena
        .enlisted()
        .into_iter()
        .filter(|candidate| !arena.is_discarded(*candidate) && arena.means(*candidate, batch).is_some())
        .collect();
    arena.scores(&measured, batch, &arena.limits(None), multipliers)
}

/// The feasible candidate of the highest objective, the best ever seen; else the one of the highest
/// J under λ_T. Ties: higher J, then fewer characters, then earlier. Where the study asks for a probability, it is asked of
/// the feasible too, and in place of the highest J comes the highest probability.
fn choose(
    arena: &Arena,
    method: &dyn Method,
    scores: &IndexMap<CandidateId, Score>,
    batch: &Batch,
) -> Option<CandidateId> {
    if method.choice() == Choice::Retained {
        let last = arena.journal().borrow().state().rounds().last().cloned();
        let retained = last.map_or_else(Vec::new, |round| round.retained);
        let is_scored = |candidate: &CandidateId| scores.contains_key(candidate);
        return retained
            .into_iter()
            .find(is_scored)
            .or_else(|| scores.keys().next().copied());
    }
    let limits = arena.limits(None);
    let last_round = arena.journal().borrow().state().rounds().len() as u32;
    let demanded = arena.search().choice_probability;
    let probabilities: IndexMap<CandidateId, f64> = if demanded > 0.0 {
        let scored = scores.keys();
        scored
            .map(|id| (*id, arena.probability_of_holding(*id, batch, &limits)))
            .collect()
    } else {
        IndexMap::new()
    };
    let passes_gate = |candidate: CandidateId, score: &Score| {
        if let Some(probability) = probabilities.get(&candidate) {
            return score.feasible && *probability >= demanded;
        }
        let sigma = method.gate_noise();
        if sigma == 0.0 {
            return score.feasible;
        }
        limits.iter().enumerate().all(|(place, (metric, limit))| {
            limit.is_satisfied(
                score.costs[metric] + methods::noise(arena, sigma, last_round, candidate, place),
            )
        })
    };
    let mut by_lagrangian = arena.ranked(scores, |score| score.lagrangian);
    by_lagrangian.sort_by(Ranked::order);
    choice(by_lagrangian.into_iter().map(|Ranked { candidate, .. }| {
        let score = &scores[&candidate];
        Choosable {
            candidate,
            passes: passes_gate(candidate, score),
            objective: score.objective,
            probability: probabilities.get(&candidate).copied().unwrap_or(0.0),
        }
    }))
}
