//! Evaluation of policies: what their children are worth on examples that nobody learned from, side by side.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use burn_flex::Flex;
use capo_core::evaluate::Evaluation;
use capo_core::random::Streams;
use capo_core::score::{Means, Multipliers, Score};
use capo_core::study::FeedbackForm;
use capo_core::templates::RewriteFacts;
use capo_rewriter::generate::{Completion, Finish, Generation, GenerationRow};
use capo_rewriter::pairs::{Tally, read_journal};
use capo_rewriter::policy::Policy;
use capo_rewriter::template::{RewriteTemplate, TemplateError};
use capo_rewriter::token_sampling::Sampling;
use rand::seq::SliceRandom;

use super::sft::FineTuned;
use super::world::{Asking, World};
use super::{DcapoError, Plan};

/// Requests that no policy has seen, with what prompts measure on held-out examples.
pub(super) struct PolicyEvaluator<'a> {
    world: &'a World<'a>,
    plan: &'a Plan,
    seed: u64,
    requests: Vec<RewriteFacts>,
    measured: HashMap<String, Evaluation>,
}

/// What of a request is not its own when it is put to a policy. What it answers is always judged by the request's own
/// multipliers: who reads what was changed does worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changed {
    /// All is its own.
    Nothing,
    /// Each constraint has the multiplier of the one before, the first that of the last.
    Multipliers,
    /// The feedback is that of the request before.
    Feedback,
}

/// What a policy made of the requests.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Answers {
    /// For each request the mean ΔJ of its children on held-out examples; a rewrite without a child changes nothing.
    pub gains: Vec<f64>,
    /// Share of the rewrites that gave a child.
    pub children: f64,
    /// Different texts among the children, as a share of them.
    pub distinct: f64,
    /// The first rewrite of each of the first requests.
    pub examples: Vec<String>,
}

/// Rewrites that are kept as examples.
const EXAMPLES: usize = 5;

/// Rewrites drawn together.
const BATCH: usize = 64;

impl<'a> PolicyEvaluator<'a> {
    /// Draws requests from the rewrites of simulated searches with seeds of their own. Those that the model has no
    /// room for are passed over.
    pub(super) fn draw(
        world: &'a World<'a>,
        plan: &'a Plan,
        fine_tuned: &FineTuned,
        form: FeedbackForm,
        seed: u64,
        folder: &Path,
    ) -> Result<Self, DcapoError> {
        let template = RewriteTemplate::from_folder(&fine_tuned.source)?;
        let mut requests = Vec::new();
        let mut seen = HashSet::new();
        for search in 0..plan.evaluation_searches {
            let journal = folder.join(format!("evaluation-{search}.jsonl"));
            let asking = Asking { depth: 1, form };
            world.simulated(
                Plan::evaluation_seed(seed, search),
                asking,
                plan.sft_extent,
                &journal,
            )?;
            for pair in read_journal(&journal, &mut Tally::default())? {
                let request = pair.request;
                if !seen.insert(request.text()) {
                    continue;
                }
                let fits = |facts: &RewriteFacts| match template.prompt(facts, plan.longest) {
                    Ok(_) => Ok(true),
                    Err(TemplateError::Overflow { .. }) => Ok(false),
                    Err(error) => Err(error),
                };
                if fits(&request)? && fits(&with_other_multipliers(&request))? {
                    requests.push(request);
                }
            }
            std::fs::remove_file(&journal).map_err(|source| DcapoError::folder(&journal, source))?;
        }
        // The name of the stream decides what is drawn, and stays.
        requests.shuffle(&mut Streams::new(seed).stream("exam", 0, 0));
        requests.truncate(plan.requests);
        Ok(Self {
            world,
            plan,
            seed,
            requests,
            measured: HashMap::new(),
        })
    }

    /// Lets a policy answer every request, with the same seeds as every other policy.
    pub(super) fn answer(
        &mut self,
        fine_tuned: &FineTuned,
        policy: &Policy<Flex>,
        changed: Changed,
    ) -> Result<Answers, DcapoError> {
        let template = RewriteTemplate::from_folder(&fine_tuned.source)?;
        let rows = self.rows(&template, changed)?;
        let generation = Generation {
            sampling: Sampling::default(),
            max_new_tokens: self.plan.longest,
            stop_tokens: template.stop_tokens().to_vec(),
            share_prefixes: true,
        };
        let mut answers: Vec<Completion> = Vec::with_capacity(rows.len());
        for batch in rows.chunks(BATCH) {
            answers.extend(policy.decoder().generate(policy.adapter(), batch, &generation)?);
        }
        let (mut gains, mut children, mut examples) = (Vec::new(), Vec::new(), Vec::new());
        for (request, answers) in (0..).zip(answers.chunks(self.plan.answers)) {
            let facts = self.requests[request].clone();
            let parent = self.value(&facts, &facts.prompt)?;
            let mut sum = 0.0;
            for (place, answer) in answers.iter().enumerate() {
                let text = template.child(&answer.tokens)?;
                if place == 0 && examples.len() < EXAMPLES {
                    examples.push(text.clone());
                }
                if answer.finish != Finish::Stop || text.is_empty() || text == facts.prompt.trim() {
                    continue;
                }
                sum += self.value(&facts, &text)? - parent;
                children.push(text);
            }
            gains.push(sum / answers.len() as f64);
        }
        let distinct = children.iter().collect::<HashSet<_>>().len();
        Ok(Answers {
            gains,
            children: children.len() as f64 / rows.len() as f64,
            distinct: distinct as f64 / children.len().max(1) as f64,
            examples,
        })
    }

    /// Each request as often as it is answered.
    fn rows(&self, template: &RewriteTemplate, changed: Changed) -> Result<Vec<GenerationRow>, DcapoError> {
        let streams = Streams::new(self.seed);
        let mut rows = Vec::new();
        let mut before = self.requests.last();
        for (number, own) in (0..).zip(&self.requests) {
            let asked = match (changed, before.replace(own)) {
                (Changed::Feedback, Some(other)) => RewriteFacts {
                    feedback: other.feedback.clone(),
                    ..own.clone()
                },
                (Changed::Multipliers, _) => with_other_multipliers(own),
                (Changed::Nothing | Changed::Feedback, _) => own.clone(),
            };
            let prompt = template.prompt(&asked, self.plan.longest)?.tokens;
            rows.extend((0..self.plan.answers as u64).map(|answer| GenerationRow {
                prompt: prompt.clone(),
                seed: streams.number("answer", number, answer),
            }));
        }
        Ok(rows)
    }

    /// J of a prompt on held-out examples under a request's multipliers.
    fn value(&mut self, facts: &RewriteFacts, prompt: &str) -> Result<f64, DcapoError> {
        if !self.measured.contains_key(prompt) {
            let seed = Plan::rollout_seed(self.seed);
            let found = self.world.held_out(seed, self.plan.repeats, prompt)?;
            self.measured.insert(prompt.to_owned(), found);
        }
        let found = &self.measured[prompt];
        let mean = |metric: &String| found.estimates[metric].mean;
        let means = Means {
            objective: mean(&facts.objective.metric),
            costs: found
                .limits
                .keys()
                .map(|metric| (metric.clone(), mean(metric)))
                .collect(),
            ..Means::default()
        };
        let multipliers: Multipliers = facts
            .constraints
            .iter()
            .map(|constraint| (constraint.metric.clone(), constraint.multiplier))
            .collect();
        Ok(Score::new(means, &found.limits, &multipliers).lagrangian)
    }
}

/// A request in which each constraint has the multiplier of the one before, the first that of the last.
pub(super) fn with_other_multipliers(facts: &RewriteFacts) -> RewriteFacts {
    let count = facts.constraints.len();
    let mut changed = facts.clone();
    for (place, constraint) in changed.constraints.iter_mut().enumerate() {
        constraint.multiplier = facts.constraints[(place + count - 1) % count].multiplier;
    }
    changed
}
