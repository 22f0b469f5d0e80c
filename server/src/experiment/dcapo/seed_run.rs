//! One seed of the experiment, from journals to held-out results.

use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use burn_flex::Flex;
use capo_core::study::FeedbackForm;
use capo_rewriter::policy::Policy;
use capo_rewriter::pool_grpo::GrpoSettings;

use super::evaluation::{Changed, PolicyEvaluator};
use super::grpo::{rewriter, train_with_grpo};
use super::record::{EvaluatedPolicy, PolicyRecord, SeedRecord};
use super::scheduler::Scheduler;
use super::sft::{FineTuned, fine_tune};
use super::world::{Measured, World};
use super::{DcapoError, OneSeed, Plan, PolicyKind, Rewriter};

/// Runs a seed in an empty folder, which holds journals and checkpoints while it lasts: first SFT, then all
/// policies, each in a turn of its own. `say` is told how far it is.
pub(super) fn run(
    world: &World,
    one: OneSeed,
    folder: &Path,
    scheduler: &Scheduler,
    say: &(dyn Fn(&str) + Sync),
) -> Result<SeedRecord, DcapoError> {
    let OneSeed { plan, seed, place } = one;
    let (fine_tuned, seconds) = scheduler.take((place, 0), || {
        let started = Instant::now();
        let fine_tuned = fine_tune(world, plan, seed, folder)?;
        Ok((fine_tuned, started.elapsed().as_secs_f64()))
    })?;
    say(&format!(
        "fine-tuned on {} pairs in {seconds:.0} s, held-out loss {:.3}",
        fine_tuned.figures.pairs,
        fine_tuned.figures.held_out_loss.unwrap_or(f64::NAN),
    ));
    let seed_run = SeedRun {
        world,
        plan,
        seed,
        folder,
        fine_tuned: &fine_tuned,
        say,
    };
    let mut ends: Vec<End> = scheduler.all(plan.policies, |policy, kind| {
        scheduler.take((place, 1 + policy), || seed_run.policy(kind))
    })?;
    let work: f64 = ends.iter().map(|end| end.seconds).sum();
    Ok(SeedRecord {
        seed,
        seconds: seconds + work,
        // The same for all.
        seed_prompt: ends
            .first_mut()
            .map(|end| std::mem::take(&mut end.starts))
            .unwrap_or_default(),
        policies: ends.into_iter().map(|end| end.record).collect(),
        sft: fine_tuned.figures,
    })
}

/// What the work on a policy came to.
struct End {
    record: PolicyRecord,
    /// What its searches started from.
    starts: Vec<Measured>,
    seconds: f64,
}

struct SeedRun<'a> {
    world: &'a World<'a>,
    plan: &'a Plan,
    seed: u64,
    folder: &'a Path,
    fine_tuned: &'a FineTuned,
    say: &'a (dyn Fn(&str) + Sync),
}

impl SeedRun<'_> {
    /// Trains a policy by GRPO if it learns by that, evaluates it, and searches with it.
    fn policy(&self, kind: &PolicyKind) -> Result<End, DcapoError> {
        let started = Instant::now();
        let folder = self.folder.join(kind.key);
        std::fs::create_dir(&folder).map_err(|source| DcapoError::folder(&folder, source))?;
        let settings = match kind.rewriter {
            Rewriter::Trained => Some(self.plan.grpo),
            Rewriter::PaperTrained => Some(self.plan.paper_grpo),
            Rewriter::Teacher | Rewriter::FineTuned => None,
        };
        let (policy, gains) = if let Some(settings) = settings {
            let say = |text: &str| (self.say)(&format!("{}: {text}", kind.label));
            let trained = train_with_grpo(
                self.world,
                self.fine_tuned,
                kind.asking,
                GrpoSettings {
                    seed: self.seed,
                    ..settings
                },
                self.plan,
                &folder,
                &say,
            )?;
            let gain = |figures: &indexmap::IndexMap<String, f64>| figures.get("gain").copied();
            (trained.policy, trained.rounds.iter().map(gain).collect())
        } else {
            (self.fine_tuned.policy.clone(), Vec::new())
        };
        let grpo_seconds = settings.map_or(0.0, |_| started.elapsed().as_secs_f64());
        let evaluation = match kind.rewriter {
            Rewriter::Teacher => None,
            _ => Some(self.evaluate(kind, &policy, &folder)?),
        };
        let (searches, starts) = self.search(kind, &policy)?;
        (self.say)(&format!(
            "{}: AllSat on fresh tasks in {} of {} searches",
            kind.label,
            searches.iter().filter(|found| found.fresh.all_sat).count(),
            searches.len(),
        ));
        Ok(End {
            record: PolicyRecord {
                key: kind.key.into(),
                seconds: grpo_seconds,
                gains,
                searches,
                evaluation,
            },
            starts,
            seconds: started.elapsed().as_secs_f64(),
        })
    }

    /// What the policies before and after GRPO make of the same requests, with the form of feedback that it
    /// trained with, and the latter of the same with another one's multipliers or feedback.
    fn evaluate(
        &self,
        kind: &PolicyKind,
        policy: &Policy<Flex>,
        folder: &Path,
    ) -> Result<EvaluatedPolicy, DcapoError> {
        let form = kind.asking.form;
        let mut evaluation =
            PolicyEvaluator::draw(self.world, self.plan, self.fine_tuned, form, self.seed, folder)?;
        let before = evaluation.answer(self.fine_tuned, &self.fine_tuned.policy, Changed::Nothing)?;
        let after = if kind.rewriter.learns() {
            evaluation.answer(self.fine_tuned, policy, Changed::Nothing)?
        } else {
            before.clone()
        };
        let other_feedback = match form {
            FeedbackForm::None => None,
            _ => Some(evaluation.answer(self.fine_tuned, policy, Changed::Feedback)?),
        };
        Ok(EvaluatedPolicy {
            before,
            after,
            other_multipliers: evaluation.answer(self.fine_tuned, policy, Changed::Multipliers)?,
            other_feedback,
        })
    }

    /// Searches with a frozen rewriter under seeds of their own: what they return and what they start from.
    fn search(
        &self,
        kind: &PolicyKind,
        policy: &Policy<Flex>,
    ) -> Result<(Vec<Measured>, Vec<Measured>), DcapoError> {
        let mut found = Vec::new();
        for search in 0..self.plan.final_searches {
            let seed = Plan::final_seed(self.seed, search);
            let rewriter = match kind.rewriter {
                Rewriter::Teacher => None,
                _ => Some(Rc::new(rewriter(self.fine_tuned, policy.clone(), self.plan)?)),
            };
            found.push(
                self.world
                    .measured(seed, kind.asking, self.plan.final_extent, rewriter)?,
            );
        }
        Ok(found.into_iter().unzip())
    }
}
