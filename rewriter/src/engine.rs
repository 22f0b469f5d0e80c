//! A device, and everything that is done on it whatever its backend.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use burn_tensor::FloatDType;
use capo_core::arena::Learner;
use capo_core::llm::Llm;

use crate::alignment::{Alignment, AlignmentExample};
use crate::backend::PolicyBackend;
use crate::checkpoint::Checkpoints;
use crate::decoder::Decoder;
use crate::error::{FileError, RequestError};
use crate::fine_tuning::{SftEvent, SftExample, SftSettings, SftTrainer, TrainingError};
use crate::flops::peak_flops;
use crate::folder::PolicyFolder;
use crate::local::{Drawing, DrawnAsAsked, LocalRewriter, ToldCuts};
use crate::lora::{Adapter, LoraConfig};
use crate::policy::Policy;
use crate::pool_grpo::{GrpoLearner, GrpoSettings};
use crate::remote_generation::RemoteGeneration;
use crate::replicas::Replicas;
use crate::stop::Stop;
use crate::template::RewriteTemplate;

/// Which policy a training starts from.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// Where it lies.
    pub folder: PolicyFolder,
    /// What of it learns.
    pub learns: Learns,
    /// Decides the numbers of a fresh adapter.
    pub seed: u64,
}

/// What of a policy learns.
#[derive(Debug, Clone, PartialEq)]
pub enum Learns {
    /// All weights; those of an adapter are added to its model's first.
    Whole,
    /// The adapter that is there, or else a fresh one.
    Adapter(LoraConfig),
}

/// A rewriter that learns from the rounds of a search.
pub struct Online {
    /// Answers as the rewriter.
    pub rewriter: Rc<dyn Llm>,
    /// Is told what became of its answers.
    pub learner: Rc<dyn Learner>,
    /// Rounds that it has learned from.
    pub rounds: usize,
}

/// What an online training is joined with.
pub struct OnlineContext {
    /// Where weights and moments are kept after each round.
    pub checkpoints: Checkpoints,
    /// The file of rewrites that were not learned from yet.
    pub samples: PathBuf,
    /// Who draws the rewrites, unless they are drawn here.
    pub elsewhere: Option<RemoteGeneration>,
    /// Is told of each request whose feedback had to be cut.
    pub told_cuts: ToldCuts,
    /// Ends rewrites and updates under way.
    pub stop: Stop,
}

/// A device that policies run and learn on. Implementations differ in their backend alone.
pub trait Engine {
    /// Its name, such as `cpu`, or `cuda:0,1` of several.
    fn device(&self) -> &str;

    /// What its models compute in.
    fn number_type(&self) -> FloatDType;

    /// Floating-point operations per second that its devices can do together in the type that it computes in, where
    /// that is known: see [`peak_flops`].
    fn peak_flops(&self) -> Option<f64>;

    /// A rewriter that stays as it is; `name` is what errors and screens call it, `told_cuts` is told of each request
    /// whose feedback had to be cut, and `stop` ends rewrites under way.
    ///
    /// # Errors
    ///
    /// The policy does not read, or a setting of the drawing is outside its range or the model's context.
    fn rewriter(
        &self,
        name: &str,
        folder: &PolicyFolder,
        drawing: Drawing,
        told_cuts: ToldCuts,
        stop: Stop,
    ) -> Result<Rc<dyn DrawnAsAsked>, TrainingError>;

    /// Fine-tunes a policy on examples, or goes on with it where the last of the checkpoints stands.
    ///
    /// # Errors
    ///
    /// As [`SftTrainer::new`], [`SftTrainer::resume`] and [`SftTrainer::run`].
    fn fine_tune(
        &self,
        start: &Start,
        examples: Examples,
        settings: SftSettings,
        checkpoints: &Checkpoints,
        observe: &mut dyn FnMut(SftEvent) -> ControlFlow<()>,
    ) -> Result<(), TrainingError>;

    /// A rewriter that learns online, as its last checkpoint left it.
    ///
    /// # Errors
    ///
    /// As [`GrpoLearner::new`], a file does not read, or all weights are to learn and be drawn from elsewhere.
    fn online(
        &self,
        name: &str,
        start: &Start,
        drawing: Drawing,
        settings: GrpoSettings,
        around: OnlineContext,
    ) -> Result<Online, TrainingError>;

    /// How pairs that a policy drew agree with their gradients, in their order: see [`alignment`](crate::alignment).
    /// `observe` is called after each.
    ///
    /// # Errors
    ///
    /// A policy does not read, the device computes in numbers that are too coarse, or as [`Policy::alignment`].
    fn align(
        &self,
        policies: &[PolicyFolder; 2],
        examples: &[AlignmentExample],
        temperature: f64,
        observe: &mut dyn FnMut(),
    ) -> Result<Vec<Alignment>, TrainingError>;

    /// Writes a policy as one whole model, the updates of its adapter added to the weights.
    ///
    /// # Errors
    ///
    /// The policy does not read, or the folder cannot be written.
    fn merge(&self, folder: &PolicyFolder, output: &Path) -> Result<(), FileError>;
}

/// What a fine-tuning learns from, and what it is measured by.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Examples {
    /// Learned, not empty.
    pub training: Vec<SftExample>,
    /// Measured only.
    pub held_out: Vec<SftExample>,
}

/// The engine of one backend's device.
pub struct DeviceEngine<B: PolicyBackend> {
    name: String,
    device: B::Device,
    /// Devices that learn beside it.
    further: Vec<B::Device>,
    number_type: FloatDType,
    peak_flops: Option<f64>,
}

impl<B: PolicyBackend> DeviceEngine<B> {
    /// A device by the name that people know it by; decoders compute in `number_type`.
    pub fn new(name: impl Into<String>, device: B::Device, number_type: FloatDType) -> Self {
        Self {
            name: name.into(),
            device,
            further: Vec::new(),
            number_type,
            peak_flops: None,
        }
    }

    /// Knows what the devices can do by what their drivers call them, one name for each.
    #[must_use]
    pub fn called<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let peaks = names.into_iter().map(|name| peak_flops(name, self.number_type));
        self.peak_flops = peaks.sum();
        self
    }

    /// Divides the steps of trainings among the device and further ones. All else is done on the first.
    #[must_use]
    pub fn beside(mut self, further: Vec<B::Device>) -> Self {
        self.further = further;
        self
    }

    /// The same on another device.
    fn on(&self, device: &B::Device) -> Self {
        Self::new(self.name.clone(), device.clone(), self.number_type)
    }

    fn decoder(&self, folder: &Path) -> Result<Decoder<B>, FileError> {
        Decoder::from_folder(folder, self.number_type, &self.device)
    }

    /// A policy as it is, its adapter beside its decoder.
    fn open(&self, folder: &PolicyFolder) -> Result<Policy<B>, FileError> {
        let base = self.decoder(&folder.model)?;
        Ok(match &folder.adapter {
            None => Policy::Whole(base),
            Some(adapter) => {
                let adapter = Adapter::from_folder(adapter, base.config(), &self.device)?;
                Policy::Adapted { base, adapter }
            }
        })
    }

    /// Refuses numbers in which gradients, or the steps of all weights, would be lost.
    fn check_fine(&self, is_whole: bool) -> Result<(), RequestError> {
        match self.number_type {
            FloatDType::F16 => Err(RequestError::CoarseGradients),
            number_type if is_whole && number_type != FloatDType::F32 => {
                Err(RequestError::CoarseWeights { number_type })
            }
            _ => Ok(()),
        }
    }

    fn start(&self, start: &Start) -> Result<Policy<B>, TrainingError> {
        self.check_fine(start.learns == Learns::Whole)?;
        Ok(match (self.open(&start.folder)?, &start.learns) {
            (Policy::Adapted { base, adapter }, Learns::Whole) => Policy::Whole(base.merged(&adapter)),
            (Policy::Whole(base), Learns::Adapter(config)) => {
                let adapter = Adapter::new(config, base.config(), start.seed, &self.device)?;
                Policy::Adapted { base, adapter }
            }
            (policy, _) => policy,
        })
    }

    /// What a training starts from on each of the further devices.
    fn replicas(&self, start: &Start) -> Result<Replicas<B>, TrainingError> {
        let copies = self.further.iter().map(|device| self.on(device).start(start));
        Ok(Replicas::new(copies.collect::<Result<_, TrainingError>>()?)?)
    }
}

impl<B: PolicyBackend> Engine for DeviceEngine<B> {
    fn device(&self) -> &str {
        &self.name
    }

    fn number_type(&self) -> FloatDType {
        self.number_type
    }

    fn peak_flops(&self) -> Option<f64> {
        self.peak_flops
    }

    fn rewriter(
        &self,
        name: &str,
        folder: &PolicyFolder,
        drawing: Drawing,
        told_cuts: ToldCuts,
        stop: Stop,
    ) -> Result<Rc<dyn DrawnAsAsked>, TrainingError> {
        let template = RewriteTemplate::from_folder(&folder.model)?;
        let policy = self.open(folder)?;
        drawing.check_for(policy.config().context)?;
        let rewriter = LocalRewriter::new(name, policy, template, drawing);
        Ok(Rc::new(rewriter.telling_cuts(told_cuts).stopped_by(stop)))
    }

    fn fine_tune(
        &self,
        start: &Start,
        examples: Examples,
        settings: SftSettings,
        checkpoints: &Checkpoints,
        observe: &mut dyn FnMut(SftEvent) -> ControlFlow<()>,
    ) -> Result<(), TrainingError> {
        let Examples { training, held_out } = examples;
        let trainer = SftTrainer::new(self.start(start)?, training, held_out, settings)?;
        let mut trainer = trainer.on(self.replicas(start)?);
        if let Some(last) = checkpoints.latest()? {
            trainer.resume(&last)?;
        }
        trainer.run(checkpoints, &start.folder.model, observe)
    }

    fn online(
        &self,
        name: &str,
        start: &Start,
        drawing: Drawing,
        settings: GrpoSettings,
        around: OnlineContext,
    ) -> Result<Online, TrainingError> {
        if around.elsewhere.is_some() && start.learns == Learns::Whole {
            return Err(RequestError::WholeElsewhere.into());
        }
        let source = start.folder.model.clone();
        let template = RewriteTemplate::from_folder(&source)?;
        let policy = self.start(start)?;
        drawing.check_for(policy.config().context)?;
        let rewriter = LocalRewriter::new(name, policy, template, drawing);
        let mut rewriter = rewriter
            .keeping_samples(&around.samples)?
            .telling_cuts(around.told_cuts)
            .stopped_by(around.stop);
        if let Some(elsewhere) = around.elsewhere {
            rewriter = rewriter.drawn_elsewhere(elsewhere, &source)?;
        }
        let rewriter = Rc::new(rewriter);
        let learner = GrpoLearner::new(Rc::clone(&rewriter), settings, around.checkpoints, source)?;
        let learner = learner.on(self.replicas(start)?).of_peak(self.peak_flops);
        Ok(Online {
            rounds: learner.rounds(),
            rewriter,
            learner: Rc::new(learner),
        })
    }

    fn align(
        &self,
        [before, after]: &[PolicyFolder; 2],
        examples: &[AlignmentExample],
        temperature: f64,
        observe: &mut dyn FnMut(),
    ) -> Result<Vec<Alignment>, TrainingError> {
        self.check_fine(before.adapter.is_none())?;
        let policy = self.open(before)?;
        // What is frozen is shared.
        let after = policy.load(after.adapter.as_ref().unwrap_or(&after.model))?;
        Ok(policy.alignment(&after, examples, temperature, observe)?)
    }

    fn merge(&self, folder: &PolicyFolder, output: &Path) -> Result<(), FileError> {
        let policy = self.open(folder)?;
        let merged = match policy.adapter() {
            Some(adapter) => policy.decoder().merged(adapter),
            None => policy.decoder().clone(),
        };
        merged.save(output, &folder.model)
    }
}
