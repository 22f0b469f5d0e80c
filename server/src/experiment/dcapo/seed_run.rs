//! One seed of the experiment, from journals to held-out results.

use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use burn_flex::Flex;
use capo_rewriter::policy::Policy;

use super::evaluation::PolicyEvaluator;
use super::grpo::{practise, rewriter};
use super::record::{EvaluatedPolicy, Held, PolicyRecord, SeedRecord};
use super::scheduler::Turns;
use super::sft::{FineTuned, teach};
use super::world::{Asking, World};
use super::{DcapoError, OneSeed, Plan, PolicyKind};
use crate::experiment::RunRecord;

/// Runs a seed in an empty folder, which holds journals and checkpoints while it lasts: first the teaching, then all
/// policies, each in a turn of its own. `say` is told how far it is.
pub(super) fn run(
    world: &World,
    one: OneSeed,
    folder: &Path,
    turns: &Turns,
    say: &(dyn Fn(&str) + Sync),
) -> Result<SeedRecord, DcapoError> {
    let OneSeed { plan, seed, place } = one;
    let (taught, seconds) = turns.take((place, 0), || {
        let started = Instant::now();
        let taught = teach(world, plan, seed, folder)?;
        Ok((taught, started.elapsed().as_secs_f64()))
    })?;
    say(&format!(
        "taught {} pairs in {seconds:.0} s, held-out loss {:.3}",
        taught.figures.pairs,
        taught.figures.held_out_loss.unwrap_or(f64::NAN),
    ));
    let course = Course {
        world,
        plan,
        seed,
        folder,
        taught: &taught,
        say,
    };
    let mut ends: Vec<End> = turns.all(plan.policies, |policy, kind| {
        turns.take((place, 1 + policy), || course.policy(kind))
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
        teaching: taught.figures,
    })
}

/// What the work on a policy came to.
struct End {
    record: PolicyRecord,
    /// What its searches started from.
    starts: Vec<Held>,
    seconds: f64,
}

struct Course<'a> {
    world: &'a World<'a>,
    plan: &'a Plan,
    seed: u64,
    folder: &'a Path,
    taught: &'a FineTuned,
    say: &'a (dyn Fn(&str) + Sync),
}

impl Course<'_> {
    /// Practises a policy if it learns, examines it, and searches with it.
    fn policy(&self, kind: &PolicyKind) -> Result<End, DcapoError> {
        let started = Instant::now();
        let folder = self.folder.join(kind.key);
        std::fs::create_dir(&folder).map_err(|source| DcapoError::folder(&folder, source))?;
        let (policy, gains) = if kind.learns {
            let say = |text: &str| (self.say)(&format!("{}: {text}", kind.label));
            let practised = practise(
                self.world,
                self.taught,
                kind.asking,
                self.plan,
                self.seed,
                &folder,
                &say,
            )?;
            let gain = |figures: &indexmap::IndexMap<String, f64>| figures.get("gain").copied();
            (practised.policy, practised.rounds.iter().map(gain).collect())
        } else {
            (self.taught.policy.clone(), Vec::new())
        };
        let practice_seconds = started.elapsed().as_secs_f64();
        let exam = if kind.learns {
            Some(self.examine(kind.asking, &policy, &folder)?)
        } else {
            None
        };
        let (searches, starts) = self.search(kind.asking, &policy)?;
        (self.say)(&format!(
            "{}: AllSat held out in {} of {} searches",
            kind.label,
            searches.iter().filter(|held| held.all_sat).count(),
            searches.len(),
        ));
        Ok(End {
            record: PolicyRecord {
                key: kind.key.into(),
                seconds: practice_seconds,
                gains,
                searches,
                exam,
            },
            starts,
            seconds: started.elapsed().as_secs_f64(),
        })
    }

    /// What the policies before and after practice make of the same requests, with the form of feedback that it
    /// practised with.
    fn examine(
        &self,
        asking: Asking,
        policy: &Policy<Flex>,
        folder: &Path,
    ) -> Result<EvaluatedPolicy, DcapoError> {
        let mut exam =
            PolicyEvaluator::draw(self.world, self.plan, self.taught, asking.form, self.seed, folder)?;
        Ok(EvaluatedPolicy {
            before: exam.sit(self.taught, &self.taught.policy)?,
            after: exam.sit(self.taught, policy)?,
        })
    }

    /// Searches with a frozen policy under seeds of their own: what they return and what they start from, both on
    /// held-out examples.
    fn search(&self, asking: Asking, policy: &Policy<Flex>) -> Result<(Vec<Held>, Vec<Held>), DcapoError> {
        let mut held = Vec::new();
        for search in 0..self.plan.searches_made {
            let seed = Plan::seed_searched(self.seed, search);
            let rewriter = Rc::new(rewriter(self.taught, policy.clone(), self.plan)?);
            let outcome = self
                .world
                .learned(seed, asking, self.plan.searched, rewriter, None)?;
            let run = RunRecord::of("", seed, outcome.journal.state());
            let found = run.as_ref().and_then(Held::of_run);
            held.push(found.ok_or_else(|| DcapoError::Search {
                seed,
                reason: "nothing was measured on held-out examples; give the study's workload some".into(),
            })?);
        }
        Ok(held.into_iter().unzip())
    }
}
