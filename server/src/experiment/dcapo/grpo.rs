//! GRPO in the experiment: a policy that learns while it searches.

use std::num::NonZeroUsize;
use std::path::Path;
use std::rc::Rc;

use burn_flex::Flex;
use capo_core::arena::{Family, LearnError, Learner};
use capo_core::ids::Round;
use capo_rewriter::checkpoint::{Checkpoints, Identity, Retention};
use capo_rewriter::local::{Drawing, LocalRewriter};
use capo_rewriter::policy::Policy;
use capo_rewriter::pool_grpo::{GrpoLearner, GrpoSettings};
use capo_rewriter::template::RewriteTemplate;
use capo_rewriter::token_sampling::Sampling;
use futures::future::LocalBoxFuture;
use indexmap::IndexMap;
use serde_json::json;

use super::sft::FineTuned;
use super::world::{Asking, World};
use super::{DcapoError, Plan};

/// A policy after GRPO, with the figures of each round.
pub(super) struct Trained {
    pub(super) policy: Policy<Flex>,
    pub(super) rounds: Vec<IndexMap<String, f64>>,
}

/// GRPO from a fine-tuned policy on: searches in a row, each from the seed prompt under a seed of its own, which
/// follows that of the settings.
pub(super) fn train_with_grpo(
    world: &World,
    fine_tuned: &FineTuned,
    asking: Asking,
    settings: GrpoSettings,
    plan: &Plan,
    folder: &Path,
    say: &dyn Fn(&str),
) -> Result<Trained, DcapoError> {
    let rewriter = rewriter(fine_tuned, fine_tuned.policy.clone(), plan)?;
    let rewriter = Rc::new(rewriter.keeping_samples(&folder.join("samples.jsonl"))?);
    let identity = Identity::of_model(&fine_tuned.source, json!(null), json!(null))?;
    let retention = Retention {
        last: NonZeroUsize::MIN,
        best: false,
    };
    let checkpoints = Checkpoints::open(&folder.join("checkpoints"), identity, retention)?;
    let learner = GrpoLearner::new(rewriter.clone(), settings, checkpoints, fine_tuned.source.clone())?;
    let learner = Rc::new(learner);
    let mut rounds = Vec::new();
    for search in 0..plan.grpo_searches {
        let continued = Continued {
            learner: learner.clone(),
            before: search as Round * plan.grpo_extent.rounds,
        };
        let outcome = world.learned(
            Plan::grpo_seed(settings.seed, search),
            asking,
            plan.grpo_extent,
            rewriter.clone(),
            Some(Rc::new(continued)),
        )?;
        let state = outcome.journal.state();
        let learned = (0..plan.grpo_extent.rounds).filter_map(|round| state.learned(round));
        let learned: Vec<_> = learned.map(|learned| learned.figures.clone()).collect();
        say(&format!(
            "search {} of {}, ΔJ of its rounds: {}",
            search + 1,
            plan.grpo_searches,
            gains(&learned)
        ));
        rounds.extend(learned);
    }
    let policy = rewriter.policy().clone();
    Ok(Trained { policy, rounds })
}

/// Mean ΔJ of the children of each round.
fn gains(rounds: &[IndexMap<String, f64>]) -> String {
    let gain = |figures: &IndexMap<String, f64>| match figures.get("gain") {
        Some(gain) => format!("{gain:+.2}"),
        None => "no child".into(),
    };
    rounds.iter().map(gain).collect::<Vec<_>>().join(" ")
}

/// A policy as a rewriter, with the template of the model that it started from.
pub(super) fn rewriter(
    fine_tuned: &FineTuned,
    policy: Policy<Flex>,
    plan: &Plan,
) -> Result<LocalRewriter<Flex>, DcapoError> {
    let template = RewriteTemplate::from_folder(&fine_tuned.source)?;
    let drawing = Drawing {
        sampling: Sampling::default(),
        max_new_tokens: plan.longest,
        ..Drawing::default()
    };
    Ok(LocalRewriter::new("local/nano", policy, template, drawing))
}

/// A learner that has learned from the rounds of earlier searches already.
struct Continued {
    learner: Rc<GrpoLearner<Flex>>,
    before: Round,
}

impl Learner for Continued {
    fn learn<'a>(
        &'a self,
        round: Round,
        families: &'a [Family],
    ) -> LocalBoxFuture<'a, Result<IndexMap<String, f64>, LearnError>> {
        self.learner.learn(self.before + round, families)
    }
}
