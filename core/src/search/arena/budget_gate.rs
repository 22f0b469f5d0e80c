//! The budget's gate, admission control of effects: whether the next one may start.

use std::iter;

use super::{Arena, Batch, Halt, Phase};
use crate::llm::{CallUsage, Llm, LlmError};
use crate::study::budget::{Budget, Spent};
use crate::study::ids::CandidateId;
use crate::study::usage::{RoleUsage, Usage};
use crate::study::workload::Split;

/// Rounds in a row without any bounded spending after which an open search is over. A few may pass
/// while the rewriter finds only prompts that are known.
const IDLE_ROUNDS: usize = 20;

/// How much dearer than the average rollout those of the final measurements may be.
const DEARER: f64 = 1.25;

impl Arena {
    /// Lets a rollout start and counts it, or says why not.
    pub(super) fn start_rollout(&self, split: Split) -> Result<(), Halt> {
        self.may_start()?;
        self.spending.rollouts.set(self.spending.rollouts.get() + 1);
        if split == Split::Optimize {
            self.spending
                .search_rollouts
                .set(self.spending.search_rollouts.get() + 1);
        }
        Ok(())
    }

    /// Gives back a rollout that did not come about.
    pub(super) fn return_rollout(&self, split: Split) {
        self.spending.rollouts.set(self.spending.rollouts.get() - 1);
        if split == Split::Optimize {
            self.spending
                .search_rollouts
                .set(self.spending.search_rollouts.get() - 1);
        }
    }

    /// Lets a call of `model` start and counts it, or says why not.
    pub(super) fn start_call(&self, model: &dyn Llm) -> Result<(), LlmError> {
        self.may_go_on()?;
        let budget = self.journal.borrow().state().budget();
        if let (Some(limit), false) = (budget.usd, model.is_priced()) {
            let unpriced = Budget::unpriced(limit, &format!("{}'s price", model.name()));
            return Err(LlmError::Budget(unpriced));
        }
        self.spending.calls.set(self.spending.calls.get() + 1);
        Ok(())
    }

    /// Gives back a call that was not made.
    pub(super) fn return_call(&self) {
        self.spending.calls.set(self.spending.calls.get() - 1);
    }

    /// Counts tokens that a call read and wrote.
    pub(super) fn count_tokens(&self, usage: RoleUsage) {
        let spent = &self.spending.tokens;
        spent.set(spent.get().saturating_add(usage.tokens()));
    }

    /// Counts calls and tokens that an external agent reports of its own.
    pub(super) fn count_external(&self, usage: &Usage) {
        let (total, calls) = (usage.total(), &self.spending.calls);
        calls.set(calls.get().saturating_add(total.calls));
        self.count_tokens(total);
    }

    /// What an interrupted effect had consumed, with an estimate in place of dollars that nobody knows since its last
    /// call was dropped: what calls of the role cost on average, or its rollouts where calls are not told. Where
    /// nothing is known yet, they stay unknown.
    pub(super) fn with_usual_dollars(&self, usage: &Usage) -> Usage {
        let journal = self.journal.borrow();
        let ledger = journal.state().ledger();
        let mut estimated = Usage::default();
        for (role, mut share) in usage.iter() {
            let (of_call, of_rollout) = ledger.average_usd(role);
            let of_calls = of_call
                .filter(|_| share.calls > 0)
                .map(|usd| usd * share.calls as f64);
            share.usd = share.usd.or(of_calls).or(of_rollout);
            estimated.add(role, share);
        }
        estimated
    }

    /// Whether any new effect may start. Critiques and rewrites stop with the rollouts: what they
    /// would lead to could not be measured any more.
    pub(super) fn may_start(&self) -> Result<(), Halt> {
        if let Some(halt) = &*self.halted.borrow() {
            return Err(halt.clone());
        }
        if self.replays.get() {
            return Err(Halt::Budget("the journal ends here".to_owned()));
        }
        if self.options.control.is_interrupted() {
            return Err(Halt::Interrupted);
        }
        self.rollouts_left()
            .and_then(|()| self.within_budget())
            .map_err(Halt::Budget)
    }

    /// Whether a rollout under way that waits for something may go on.
    pub(super) fn may_go_on(&self) -> Result<(), LlmError> {
        if self.options.control.is_interrupted() {
            return Err(LlmError::Interrupted {
                usage: CallUsage::default(),
            });
        }
        self.within_budget().map_err(LlmError::Budget)
    }

    fn rollouts_left(&self) -> Result<(), String> {
        let Some(limit) = self.journal.borrow().state().budget().rollouts else {
            return Ok(());
        };
        let spent = self.spending.rollouts.get();
        let held_back = self.held_back_rollouts(limit);
        if spent + held_back < limit {
            return Ok(());
        }
        let reserve = if held_back > 0 {
            format!(" ({held_back} held back for the final evaluation)")
        } else {
            String::new()
        };
        Err(format!("{spent} of {limit} rollouts{reserve}"))
    }

    fn within_budget(&self) -> Result<(), String> {
        let journal = self.journal.borrow();
        let budget = journal.state().budget();
        if budget.is_unlimited() {
            return Ok(());
        }
        let now = self.options.clock.seconds();
        let mut spent = self.spending.spent(journal.state().ledger(), now);
        if budget.calls.or(budget.tokens).is_some() || budget.usd.is_some() {
            spent = self.with_reserve(spent);
        }
        match budget.reached(&spent) {
            None => Ok(()),
            Some(reason) => Err(reason),
        }
    }

    /// Rollouts the held-out evaluation will still need: the returned prompt, which may be a new one,
    /// on every held-out example, and what the seed prompt lacks there.
    fn evaluation_rollouts(&self) -> u64 {
        let repeats = self.problem.borrow().study().study.repeats;
        let held_out = self.whole(Split::Evaluate);
        let each = held_out.len() as u64 * u64::from(repeats);
        each + self.missing(&[self.seed], &held_out)
    }

    /// Rollouts that the candidates of the final choice may need on the whole split after a search with minibatches, most
    /// first. Where these grow, all but the seed were measured on the last round's batch already, and fewer will do.
    fn settling_rollouts(&self) -> Vec<u64> {
        if !self.has_minibatches() {
            return vec![0];
        }
        let search = self.search();
        let whole = self.whole(Split::Optimize);
        let (finalists, repeats) = (self.finalists.get(), u64::from(search.repeats));
        if search.batch_growth.is_none() {
            return vec![whole.len() as u64 * repeats * finalists];
        }
        let each = (whole.len() - self.measured_in_last_round()) as u64 * repeats;
        let of_seed = self.missing(&[self.seed], &whole).max(each);
        let beside_the_seed = finalists.saturating_sub(1);
        let fewer = (1..=beside_the_seed).rev().map(|few| each * few);
        iter::once(each * beside_the_seed + of_seed)
            .chain(fewer)
            .collect()
    }

    /// Rollouts that the test of the prompts that were found may need.
    fn confirmation_rollouts(&self) -> u64 {
        if self.has_no_test {
            return 0;
        }
        let problem = self.problem.borrow();
        let study = problem.study();
        study.confirm.as_ref().map_or(0, |confirm| {
            let each = problem.kept_for_the_test() * confirm.finalists;
            each as u64 * u64::from(study.study.repeats)
        })
    }

    /// Rollouts that the phase under way must leave for those after it: for the test of what is found, the held-out
    /// evaluation and, during the search, for the final choice, as far as they take no more than half of the
    /// budget (the result then says what was not measured).
    pub(crate) fn held_back_rollouts(&self, limit: u64) -> u64 {
        let fits = |needed: &u64| 2 * needed <= limit;
        self.later_rollouts().into_iter().find(fits).unwrap_or(0)
    }

    /// What later phases need, and what is more and more important of it.
    fn later_rollouts(&self) -> Vec<u64> {
        let evaluation = self.evaluation_rollouts();
        let last = evaluation + self.confirmation_rollouts();
        match self.phase.get() {
            Phase::Search => {
                let settling = self.settling_rollouts().into_iter();
                let with = settling.map(|settling| last + settling);
                with.chain([last, evaluation]).collect()
            }
            Phase::Settling => vec![last, evaluation],
            Phase::Confirmation => vec![evaluation],
            Phase::Evaluation => Vec::new(),
        }
    }

    /// Whether the budget has room for measuring candidates on a batch whole. Only rollouts are
    /// counted beforehand.
    pub(crate) fn has_room_for(&self, candidates: &[CandidateId], batch: &Batch) -> Result<(), Halt> {
        let Some(limit) = self.journal.borrow().state().budget().rollouts else {
            return Ok(());
        };
        let missing = self.missing(candidates, batch);
        let left = limit.saturating_sub(self.spending.rollouts.get() + self.held_back_rollouts(limit));
        if missing <= left {
            return Ok(());
        }
        Err(Halt::Budget(format!(
            "{missing} rollouts are needed, {left} are left"
        )))
    }

    /// Adds to calls, tokens and dollars what later phases will cost at somewhat more than the average of the
    /// rollouts so far, for the returned prompt may be a dear one; at most half of what was spent. What is under
    /// way counts among the calls already, but not among tokens and dollars.
    fn with_reserve(&self, mut spent: Spent) -> Spent {
        let done = self.spending.search_rollouts.get();
        let later = self.later_rollouts().first().copied().unwrap_or(0);
        if later > 0 && done > 0 {
            let share = |rollouts: u64| (DEARER * rollouts as f64 / done as f64).min(0.5);
            let with = |spent: u64, share: f64| spent.saturating_add((spent as f64 * share) as u64);
            let (of_calls, of_tokens) = (share(later), share(later + self.options.concurrency as u64));
            (spent.calls, spent.tokens) = (with(spent.calls, of_calls), with(spent.tokens, of_tokens));
            spent.usd = spent.usd.map(|usd| usd * (1.0 + of_tokens));
        }
        spent
    }

    /// Refuses another round of an open search when too many in a row have spent nothing that the
    /// budget bounds: it would go on forever. Rounds of earlier sessions count, too.
    pub(super) fn refuse_idling(&self) -> Result<(), Halt> {
        let journal = self.journal.borrow();
        let budget = journal.state().budget();
        // Time goes by in every round, unless the clock stands still.
        let elapsed = self.options.clock.seconds() - self.spending.started;
        if budget.seconds.is_some() && elapsed > 0.0 {
            return Ok(());
        }
        let bounded = |spent: &Spent| {
            (
                budget.rollouts.map(|_| spent.rollouts),
                budget.calls.map(|_| spent.calls),
                budget.tokens.map(|_| spent.tokens),
                budget.usd.and(spent.usd),
            )
        };
        let (spent, reused) = (
            journal.state().spent_by_round(),
            journal.state().reused_by_round(),
        );
        // What earlier runs paid for comes to an end.
        let rounds: Vec<_> = spent.iter().map(bounded).zip(reused).collect();
        let pairs = rounds.windows(2).rev();
        let idle = pairs.take_while(|pair| pair[0] == pair[1]).count();
        if idle < IDLE_ROUNDS {
            return Ok(());
        }
        Err(Halt::Budget(format!(
            "{IDLE_ROUNDS} rounds in a row spent nothing of it; bound `rollouts` or `seconds` under [budget]"
        )))
    }
}
