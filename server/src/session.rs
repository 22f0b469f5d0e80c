//! From a study file to a run.
//!
//! [`StudyFile`] is what stands in the file, [`Session`] the same joined with its workloads and
//! models, ready to run over a journal. Nothing here is `Send`: [`block_on`] keeps everything on
//! one thread.

use std::cell::RefCell;
use std::mem;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use capo_core::arena::{self, Clock, Learner, RunOptions};
use capo_core::batches::Batches;
use capo_core::certify::Tested;
use capo_core::control::Control;
use capo_core::evaluate::{Evaluation, Evaluator};
use capo_core::journal::{EarlierRuns, FileJournal, Fsync, Journal, JournalError, StoreError};
use capo_core::llm::{Llm, Role};
use capo_core::problem::Problem;
use capo_core::starts::Start;
use capo_core::study::{Format, Setting, Study, StudyError};
use capo_core::workload::Split;
use capo_core::{Outcome, Piloted, RunError};
use capo_models::gate::Gate;
use capo_models::prices::PriceTable;
use capo_models::{Builder, Keys, Models, Observer, Setup, SetupError};
#[cfg(feature = "train")]
use capo_rewriter::stop::Stop;
use capo_workloads::files::Files;
use indexmap::IndexMap;
use serde_json::Value;

use crate::dotenv::Variables;
use crate::files::{Reach, StudyFolder, TextError, read_text};
use crate::interrupt::Interrupts;
use crate::now::now;
use crate::stderr::warn;
use crate::study_reads::read_by;

/// Why a study cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The study file, or the prompt file it names, cannot be read.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The study is wrong or impossible.
    #[error("{study}: {error}")]
    Study {
        /// The study file.
        study: String,
        /// What is wrong with it.
        error: StudyError,
    },
    /// Its workload cannot be built.
    #[error("{study}: {error}")]
    Workload {
        /// The study file.
        study: String,
        /// What is wrong with `[workload]` or its data.
        error: capo_workloads::BuildError,
    },
    /// Its models cannot be built.
    #[error("{study}: {error}")]
    Models {
        /// The study file.
        study: String,
        /// What is wrong with `[models]`, or which key is missing.
        error: capo_models::BuildError,
    },
    /// A line of the journal is wrong.
    #[error("{}: {error}", path.display())]
    Journal {
        /// Path of the file.
        path: PathBuf,
        /// Which line, and what is wrong.
        error: JournalError,
    },
    /// There is no file of this name.
    #[error(
        "{} is not there; name the journal of a run, which lies in runs/ unless --journal said otherwise",
        .0.display()
    )]
    NoJournal(PathBuf),
    /// What is there is a folder, a pipe or a device.
    #[error("{} is no regular file, so it cannot be read as a journal; copy the journal into one", .0.display())]
    NoRegularFile(PathBuf),
    /// The journal's file cannot be opened, read or written.
    #[error(transparent)]
    Store(StoreError),
    /// The folder of the journal cannot be made.
    #[error("the folder {} cannot be made: {source}; choose another place with {option}", path.display())]
    Folder {
        /// Path of the folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
        /// What on the command line names the place.
        option: &'static str,
    },
    /// The port that was taken cannot be listened on.
    #[error("cannot listen: {0}")]
    Listen(std::io::Error),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl SessionError {
    /// Whether the study, its data or its settings must change, not the surroundings.
    pub fn is_bad_study(&self) -> bool {
        match self {
            Self::Text(_) | Self::Study { .. } | Self::Workload { .. } | Self::Run(RunError::Study(_)) => {
                true
            }
            Self::Models { error, .. } => !matches!(
                error,
                capo_models::BuildError::MissingKey { .. }
                    | capo_models::BuildError::Device { .. }
                    | capo_models::BuildError::Http(_)
            ),
            Self::Journal { .. }
            | Self::NoJournal(_)
            | Self::NoRegularFile(_)
            | Self::Store(_)
            | Self::Folder { .. }
            | Self::Listen(_)
            | Self::Run(_) => false,
        }
    }
}

impl SessionError {
    /// What is wrong with the journal at `path`. A store's own errors name the file already.
    pub fn journal(path: &Path, error: JournalError) -> Self {
        match error {
            JournalError::Store(error) => Self::Store(error),
            error => Self::Journal {
                path: path.to_owned(),
                error,
            },
        }
    }
}

/// A study and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyFile {
    /// The study, its prompt's text loaded.
    pub study: Study,
    /// The study file as people named it.
    pub name: String,
    /// Where the paths in it start.
    pub folder: StudyFolder,
    /// The files that a run of it reads, the study's own first, by what they are.
    pub read: Vec<(&'static str, PathBuf)>,
}

impl StudyFile {
    /// Reads a study file (TOML, or JSON when it ends in `.json`) and the prompt file it names.
    ///
    /// # Errors
    /// When either cannot be read, or the study is wrong.
    pub fn read(path: &Path) -> Result<Self, SessionError> {
        Self::read_with(path, Reach::Folder, &[])
    }

    /// Like [`StudyFile::read`] for a study that may reach for other files, with some keys set otherwise than in its own.
    ///
    /// # Errors
    /// As [`StudyFile::read`].
    pub fn read_with(path: &Path, reach: Reach, settings: &[Setting]) -> Result<Self, SessionError> {
        let text = read_text("study file", path)?;
        Self::parse_with(&text, path, reach, settings)
    }

    /// Like [`StudyFile::read`] for a text that stands for the file at `path`.
    ///
    /// # Errors
    /// When the study is wrong, or the prompt file it names cannot be read.
    pub fn parse(text: &str, path: &Path) -> Result<Self, SessionError> {
        Self::parse_with(text, path, Reach::Folder, &[])
    }

    /// Like [`StudyFile::read_with`] for a text that stands for the file at `path`.
    ///
    /// # Errors
    /// As [`StudyFile::parse`].
    pub fn parse_with(
        text: &str,
        path: &Path,
        reach: Reach,
        settings: &[Setting],
    ) -> Result<Self, SessionError> {
        let name = path.display().to_string();
        let wrong = |error| SessionError::Study {
            study: name.clone(),
            error,
        };
        let mut study = Study::parse_with(text, Format::of_path(&name), settings).map_err(wrong)?;
        let folder = StudyFolder::of(path, reach);
        let read = read_by(&study, path, &folder);
        if let (None, Some(file)) = (&study.prompt.text, &study.prompt.file) {
            study.prompt.text = Some(folder.read_prompt(file)?);
            study.prompt.file = None;
        }
        study.seed_prompt().map_err(wrong)?;
        Ok(Self {
            study,
            name,
            folder,
            read,
        })
    }

    /// The files that a run of it reads, as far as it names them, by what they are: the study, its prompt's, those beside.
    pub fn read_files(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.read.iter().map(|(what, path)| (*what, path.as_path()))
    }

    /// The keys of its models: variables of the process, and for those that it lacks, of the file `.env` beside the
    /// study. Of what does not read there, people are warned: the run may need no key.
    pub fn keys(&self) -> Variables {
        let (variables, problems) = self.folder.variables();
        for problem in problems {
            warn(&problem.to_string());
        }
        variables
    }

    /// The study as TOML, its prompt within it.
    ///
    /// # Errors
    /// When TOML cannot write a table of it.
    pub fn to_toml(&self) -> Result<String, SessionError> {
        self.study.to_toml().map_err(|error| SessionError::Study {
            study: self.name.clone(),
            error,
        })
    }

    /// Joins the study with its workloads, without keys: enough to say what a run would cost.
    ///
    /// # Errors
    /// When the workload or its data are wrong, the study asks of it what it cannot give, or a model's table does
    /// not read.
    pub fn setup(&self) -> Result<Setup, SessionError> {
        self.setup_from(&self.folder)
    }

    /// [`StudyFile::setup`] with its data from other files than those of its folder.
    ///
    /// # Errors
    /// As [`StudyFile::setup`].
    pub fn setup_from(&self, files: &dyn Files) -> Result<Setup, SessionError> {
        let seed = self.study.study.seed;
        let workloads = capo_workloads::build(&self.study.workload, files, seed).map_err(|error| {
            SessionError::Workload {
                study: self.name.clone(),
                error,
            }
        })?;
        Setup::new(self.study.clone(), workloads).map_err(|error| match error {
            SetupError::Study(error) => SessionError::Study {
                study: self.name.clone(),
                error,
            },
            SetupError::Models(error) => self.bad_models(error),
        })
    }

    /// The models of some tables of the study.
    fn built(
        &self,
        tables: &IndexMap<Role, Value>,
        keys: &dyn Keys,
        prices: PriceTable,
        wires: &Wires,
    ) -> Result<Models, SessionError> {
        let builder = Builder::new(keys)
            .seed(self.study.study.seed)
            .prices(prices)
            .control(wires.control.clone())
            .observer(wires.observer());
        let builder = match wires.gate.as_deref() {
            Some(gate) => builder.gate(gate),
            None => builder,
        };
        #[cfg(feature = "train")]
        let local = crate::train::local::LocalRewriters {
            folder: &self.folder,
            stop: wires.stop(),
        };
        #[cfg(feature = "train")]
        let builder = builder.local(&local);
        builder.build(tables).map_err(|error| self.bad_models(error))
    }

    fn bad_models(&self, error: capo_models::BuildError) -> SessionError {
        SessionError::Models {
            study: self.name.clone(),
            error,
        }
    }
}

/// A study joined with its workloads and models.
pub struct Session {
    setup: Setup,
    models: Rc<dyn arena::Models>,
    wires: Wires,
    earlier: EarlierRuns,
    starts: Vec<Start>,
}

/// What goes between a run and its models beside calls: who ends their waits and their work, and who hears of their
/// waits. Models are built before anybody listens. Clones are of the same run.
#[derive(Clone, Default)]
pub struct Wires {
    control: Control,
    listener: Rc<RefCell<Option<Observer>>>,
    interrupts: Arc<OnceLock<Interrupts>>,
    /// The ways by which all models are asked, where others have their keys.
    gate: Option<Rc<dyn Gate>>,
}

impl Wires {
    /// Those of a run whose models are asked by these ways alone, if there are any.
    #[cfg(feature = "train")]
    pub fn by(gate: Option<impl Gate + 'static>) -> Self {
        Self {
            gate: gate.map(|gate| Rc::new(gate) as _),
            ..Self::default()
        }
    }

    /// What steers the run and the calls of its models.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// From now on, what `interrupts` hears ends what models in this process have under way. While they keep the run's
    /// thread busy, nobody steers it.
    pub fn heed(&self, interrupts: &Interrupts) {
        self.interrupts.get_or_init(|| interrupts.clone());
    }

    /// Ends the work of models in this process once an end is asked for; nobody asks before [`Wires::heed`].
    #[cfg(feature = "train")]
    pub fn stop(&self) -> Stop {
        let interrupts = Arc::clone(&self.interrupts);
        Stop::new(move || interrupts.get().is_some_and(Interrupts::is_asked))
    }

    /// Hands on to whoever listens by then.
    pub fn observer(&self) -> Observer {
        let listener = Rc::clone(&self.listener);
        Rc::new(move |notice| {
            let listener = listener.borrow().clone();
            if let Some(listener) = listener {
                listener(notice);
            }
        })
    }
}

/// Models of which the rewriter may learn.
struct Learning {
    models: Models,
    learner: Option<Rc<dyn Learner>>,
}

impl arena::Models for Learning {
    fn model(&self, role: Role) -> Rc<dyn Llm> {
        self.models.model(role)
    }

    fn learner(&self) -> Option<Rc<dyn Learner>> {
        self.learner.clone()
    }

    fn batches(&self) -> Option<Batches> {
        arena::Models::batches(&self.models)
    }
}

impl Session {
    /// Builds the workloads and models of a study. Calls are priced by what the study states, else
    /// by the provider, else by `prices`.
    ///
    /// # Errors
    /// When the workload, its data or a model is wrong, or a key is missing.
    pub fn new(file: &StudyFile, keys: &dyn Keys, prices: PriceTable) -> Result<Self, SessionError> {
        let (setup, wires) = (file.setup()?, Wires::default());
        let models = Rc::new(file.built(&file.study.asked_tables(), keys, prices, &wires)?);
        Ok(Self {
            setup,
            models,
            wires,
            earlier: EarlierRuns::default(),
            starts: Vec::new(),
        })
    }

    /// Like [`Session::new`], with a rewriter in place of the study's, which may learn from the rounds of the search. What
    /// ends its work was built of the same `wires`, if anything does.
    ///
    /// # Errors
    /// As [`Session::new`].
    pub fn with_rewriter(
        file: &StudyFile,
        keys: &dyn Keys,
        prices: PriceTable,
        wires: Wires,
        rewriter: Rc<dyn Llm>,
        learner: Option<Rc<dyn Learner>>,
    ) -> Result<Self, SessionError> {
        let setup = file.setup()?;
        let mut tables = file.study.asked_tables();
        tables.shift_remove(&Role::Rewriter);
        let mut models = file.built(&tables, keys, prices, &wires)?;
        models.set(Role::Rewriter, rewriter);
        let models = Rc::new(Learning { models, learner });
        Ok(Self {
            setup,
            models,
            wires,
            earlier: EarlierRuns::default(),
            starts: Vec::new(),
        })
    }

    /// What goes between the run and its models.
    pub fn wires(&self) -> Wires {
        self.wires.clone()
    }

    /// From now on `listener` is told of the waits of the models, in place of who was before.
    pub fn tell(&self, listener: Observer) {
        *self.wires.listener.borrow_mut() = Some(listener);
    }

    /// Lets the run take over what earlier ones paid for.
    pub fn reuse(&mut self, earlier: EarlierRuns) {
        self.earlier = earlier;
    }

    /// Lets the search start from prompts of earlier runs too.
    pub fn start_from(&mut self, starts: Vec<Start>) {
        self.starts = starts;
    }

    /// Those prompts.
    pub fn starts(&self) -> &[Start] {
        &self.starts
    }

    /// The study joined with its workloads.
    pub fn problem(&self) -> &Problem {
        &self.setup.problem
    }

    /// Runs the study over a journal, or resumes it where the journal ends.
    ///
    /// # Errors
    /// When the run cannot begin or its journal fails, see [`capo_core::optimize`].
    pub async fn optimize(mut self, journal: Journal) -> Result<Outcome, SessionError> {
        let options = self.options();
        // A large future, which those who await it would otherwise hold.
        let run = capo_core::optimize(self.setup.problem, journal, self.models, options);
        Ok(Box::pin(run).await?)
    }

    /// Makes the first rollouts of the run alone, at most so many.
    ///
    /// # Errors
    /// When the run cannot begin or its journal fails, see [`capo_core::pilot()`].
    pub async fn pilot(mut self, journal: Journal, rollouts: usize) -> Result<Piloted, SessionError> {
        let options = self.options();
        Ok(capo_core::pilot(self.setup.problem, journal, self.models, options, rollouts).await?)
    }

    /// Scores one prompt on a split.
    ///
    /// # Errors
    /// When the run cannot begin or its journal fails, see [`capo_core::evaluate::evaluate`].
    pub async fn evaluate(
        mut self,
        journal: Journal,
        prompt: &str,
        split: Split,
    ) -> Result<Evaluation, SessionError> {
        let options = self.options();
        Ok(
            capo_core::evaluate::evaluate(self.setup.problem, journal, self.models, options, prompt, split)
                .await?,
        )
    }

    /// Tests one prompt on the examples kept for it.
    ///
    /// # Errors
    /// When the study keeps none, the test cannot begin or its journal fails, see [`capo_core::certify::certify`].
    pub async fn certify(mut self, journal: Journal, prompt: &str) -> Result<Tested, SessionError> {
        let options = self.options();
        Ok(capo_core::certify::certify(self.setup.problem, journal, self.models, options, prompt).await?)
    }

    /// What measures prompts as they are asked for.
    ///
    /// # Errors
    /// When the journal is not its own, see [`Evaluator::open`].
    pub fn evaluator(mut self, journal: Journal) -> Result<Evaluator, SessionError> {
        let options = self.options();
        Ok(Evaluator::open(
            self.setup.problem,
            journal,
            self.models,
            options,
        )?)
    }

    fn options(&mut self) -> RunOptions {
        let clock = Rc::new(Elapsed(Instant::now()));
        let (control, observer) = (self.wires.control(), self.wires.observer());
        RunOptions {
            earlier: mem::take(&mut self.earlier),
            starts: mem::take(&mut self.starts),
            ..self.setup.options(now(), clock, control, observer)
        }
    }
}

/// Opens or creates a journal, its folder included. `option` is what names its place on the command
/// line, such as `--journal`.
///
/// # Errors
/// When the file cannot be written, is in use, or is no journal.
pub fn open_journal(path: &Path, fsync: Fsync, option: &'static str) -> Result<Journal, SessionError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|source| SessionError::Folder {
            path: folder.to_owned(),
            source,
            option,
        })?;
    }
    FileJournal::open(path, fsync).map_err(|error| SessionError::journal(path, error))
}

/// Runs a future that is not `Send`, and the tasks it spawns, on this thread.
///
/// # Errors
/// When the system gives no event queue.
pub fn block_on<F: Future>(future: F) -> std::io::Result<F::Output> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(tokio::task::LocalSet::new().block_on(&runtime, future))
}

struct Elapsed(Instant);

impl Clock for Elapsed {
    fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
