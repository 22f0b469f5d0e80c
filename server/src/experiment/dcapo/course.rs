//! One seed of the experiment, from journals to held-out results.

use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use burn_flex::Flex;
use capo_core::study::FeedbackForm;
use capo_rewriter::policy::Policy;

use super::exam::{Answers, Exam};
use super::practice::{practise, rewriter};
use super::record::{Held, PolicyRecord, Sat, SeedRecord};
use super::teaching::{Taught, teach};
use super::world::{Asking, World};
use super::{DcapoError, Plan, PolicyKind};
use crate::experiment::RunRecord;

/// Runs a seed in an empty folder, which holds journals and checkpoints while it lasts. `say` is told how far it is.
pub(super) fn run(
    world: &World,
    plan: &Plan,
    seed: u64,
    folder: &Path,
    say: &dyn Fn(&str),
) -> Result<SeedRecord, DcapoError> {
    let started = Instant::now();
    let taught = teach(world, plan, seed, folder)?;
    let figures = &taught.figures;
    say(&format!(
        "taught {} pairs in {:.0} s, held-out loss {:.3}",
        figures.pairs,
        started.elapsed().as_secs_f64(),
        figures.held_out_loss.unwrap_or(f64::NAN),
    ));
    let course = Course {
        world,
        plan,
        seed,
        folder,
        taught: &taught,
        say,
    };
    let (mut policies, mut seed_prompt) = (Vec::new(), Vec::new());
    let mut exams: Vec<(FeedbackForm, Exam, Answers)> = Vec::new();
    for kind in plan.policies {
        let (policy, starts) = course.policy(kind, &mut exams)?;
        say(&format!(
            "{}: AllSat held out in {} of {} searches",
            kind.label,
            policy.searches.iter().filter(|held| held.all_sat).count(),
            policy.searches.len(),
        ));
        if seed_prompt.is_empty() {
            seed_prompt = starts;
        }
        policies.push(policy);
    }
    Ok(SeedRecord {
        seed,
        seconds: started.elapsed().as_secs_f64(),
        seed_prompt,
        policies,
        teaching: taught.figures,
    })
}

struct Course<'a> {
    world: &'a World<'a>,
    plan: &'a Plan,
    seed: u64,
    folder: &'a Path,
    taught: &'a Taught,
    say: &'a dyn Fn(&str),
}

impl<'a> Course<'a> {
    /// Practises a policy if it learns, examines it, and searches with it; returns also what its searches started
    /// from.
    fn policy(
        &self,
        kind: &PolicyKind,
        exams: &mut Vec<(FeedbackForm, Exam<'a>, Answers)>,
    ) -> Result<(PolicyRecord, Vec<Held>), DcapoError> {
        let started = Instant::now();
        let (policy, gains) = if kind.learns {
            let folder = self.folder.join(kind.key);
            std::fs::create_dir(&folder).map_err(|source| DcapoError::folder(&folder, source))?;
            let practised = practise(
                self.world,
                self.taught,
                kind.asking,
                self.plan,
                self.seed,
                &folder,
                &|text| {
                    (self.say)(&format!("{}: {text}", kind.label));
                },
            )?;
            let gain = |figures: &indexmap::IndexMap<String, f64>| figures.get("gain").copied();
            (practised.policy, practised.rounds.iter().map(gain).collect())
        } else {
            (self.taught.policy.clone(), Vec::new())
        };
        let seconds = started.elapsed().as_secs_f64();
        let exam = if kind.learns {
            Some(self.examine(kind.asking.form, &policy, exams)?)
        } else {
            None
        };
        let (searches, starts) = self.search(kind.asking, &policy)?;
        let record = PolicyRecord {
            key: kind.key.into(),
            seconds,
            gains,
            searches,
            exam,
        };
        Ok((record, starts))
    }

    /// What the policies before and after practice make of the requests with a form of feedback. The one before
    /// answers once for each form.
    fn examine(
        &self,
        form: FeedbackForm,
        policy: &Policy<Flex>,
        exams: &mut Vec<(FeedbackForm, Exam<'a>, Answers)>,
    ) -> Result<Sat, DcapoError> {
        let known = exams.iter().position(|(known, ..)| *known == form);
        let at = if let Some(at) = known {
            at
        } else {
            let mut exam = Exam::draw(self.world, self.plan, self.taught, form, self.seed, self.folder)?;
            let before = exam.sit(self.taught, &self.taught.policy)?;
            exams.push((form, exam, before));
            exams.len() - 1
        };
        let (_, exam, before) = &mut exams[at];
        Ok(Sat {
            after: exam.sit(self.taught, policy)?,
            before: before.clone(),
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
