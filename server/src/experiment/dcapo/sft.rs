//! Supervised fine-tuning (SFT): a new model that learns to rewrite from the journals of simulated searches.

use std::path::{Path, PathBuf};

use burn_flex::{Flex, FlexDevice};
use burn_tensor::FloatDType;
use capo_core::study::FeedbackForm;
use capo_rewriter::decoder::Decoder;
use capo_rewriter::fine_tuning::{SftExample, SftSettings, SftTrainer};
use capo_rewriter::pairs::{Pair, PairSettings, Pairs};
use capo_rewriter::parameters::{Parameter, Parameters as _};
use capo_rewriter::policy::Policy;
use capo_rewriter::template::{RewriteTemplate, TemplateError};
use capo_rewriter::tokenizer::Tokenizer;

use super::world::{Asking, World};
use super::{DcapoError, Plan};

/// The searches that are learned from, in turn.
pub(super) const ASKED: [Asking; 4] = [
    Asking {
        depth: 1,
        form: FeedbackForm::Summary,
    },
    Asking {
        depth: 1,
        form: FeedbackForm::None,
    },
    Asking {
        depth: 1,
        form: FeedbackForm::Trajectory,
    },
    Asking {
        depth: 2,
        form: FeedbackForm::Summary,
    },
];

/// A fine-tuned model.
pub(super) struct FineTuned {
    pub(super) policy: Policy<Flex>,
    /// Folder of the model it started from: configuration, tokenizer, chat template.
    pub(super) source: PathBuf,
    pub(super) figures: SftStats,
}

/// What SFT came to.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SftStats {
    /// Searches learned from.
    pub searches: usize,
    /// Rewrites in them.
    pub rewrites: usize,
    /// Pairs learned from.
    pub pairs: usize,
    /// Pairs left out: the child has no room in an answer, or the request none in the context.
    pub too_long: usize,
    /// Parameters of the model.
    pub parameters: usize,
    /// Mean negative log-likelihood of the children's tokens in the first step, nats.
    pub first_loss: f64,
    /// The same of held-out pairs, of other parents, in the end.
    pub held_out_loss: Option<f64>,
}

/// Makes the searches of a seed, a model, and teaches it what they found.
pub(super) fn fine_tune(
    world: &World,
    plan: &Plan,
    seed: u64,
    folder: &Path,
) -> Result<FineTuned, DcapoError> {
    let pairs = pairs(world, plan, seed, folder)?;
    let everything: Vec<&Pair> = pairs.training.iter().chain(&pairs.held_out).collect();
    let texts = everything
        .iter()
        .flat_map(|pair| [pair.request.text(), pair.child.clone()]);
    let tokenizer = Tokenizer::learned(texts.collect::<Vec<_>>().into_iter(), plan.vocabulary)?;
    let source = folder.join("model");
    plan.model.write(&source, &tokenizer, seed)?;
    let template = RewriteTemplate::from_folder(&source)?;
    let (training, too_long) = examples(&template, plan, &pairs.training)?;
    let (held_out, _) = examples(&template, plan, &pairs.held_out)?;
    let used = training.len();
    let decoder: Decoder<Flex> = Decoder::from_folder(&source, FloatDType::F32, &FlexDevice)?;
    let policy = Policy::Whole(decoder);
    let settings = SftSettings { seed, ..plan.sft };
    let mut trainer = SftTrainer::new(policy.clone(), training, held_out, settings)?;
    let first_loss = trainer.step()?.loss;
    while trainer.steps() < trainer.total_steps() {
        trainer.step()?;
    }
    let figures = SftStats {
        searches: pairs.tally.journals,
        rewrites: pairs.tally.rewrites,
        pairs: used,
        too_long,
        parameters: size(&policy),
        first_loss,
        held_out_loss: trainer.evaluate()?,
    };
    Ok(FineTuned {
        policy: trainer.policy().clone(),
        source,
        figures,
    })
}

/// Numbers that a policy learns.
fn size(policy: &Policy<Flex>) -> usize {
    let of = |parameter: &Parameter<Flex>| match parameter {
        Parameter::Vector(vector) => vector.dims().iter().product::<usize>(),
        Parameter::Matrix(matrix) => matrix.dims().iter().product(),
    };
    policy.parameters().iter().map(of).sum()
}

/// The pairs of a seed's searches. Their journals, tens of megabytes each, are not kept.
fn pairs(world: &World, plan: &Plan, seed: u64, folder: &Path) -> Result<Pairs, DcapoError> {
    let mut journals = Vec::new();
    for search in 0..plan.sft_searches {
        let asking = ASKED[search as usize % ASKED.len()];
        let journal = folder.join(format!("sft-{search}.jsonl"));
        world.simulated(Plan::sft_seed(seed, search), asking, plan.sft_extent, &journal)?;
        journals.push(journal);
    }
    let pairs = Pairs::read(&journals, &PairSettings::default())?;
    for journal in &journals {
        std::fs::remove_file(journal).map_err(|source| DcapoError::folder(journal, source))?;
    }
    Ok(pairs)
}

/// Pairs in tokens, and how many have no room.
fn examples(
    template: &RewriteTemplate,
    plan: &Plan,
    pairs: &[Pair],
) -> Result<(Vec<SftExample>, usize), DcapoError> {
    let (mut examples, mut too_long) = (Vec::with_capacity(pairs.len()), 0);
    for pair in pairs {
        match template.example(&pair.request, &pair.child, plan.longest) {
            Ok(example) => examples.push((example.prompt.tokens, example.completion)),
            Err(TemplateError::Child { .. } | TemplateError::Overflow { .. }) => too_long += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok((examples, too_long))
}
