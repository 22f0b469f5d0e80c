//! A study that is to run on shared keys, joined with its workloads.

use std::collections::BTreeMap;
use std::sync::Arc;

use capo_api::REWRITER;
use capo_core::control::Control;
use capo_core::journal::{Event, parse_line};
use capo_core::notice::Observer;
use capo_core::study::{Format, Rounds, Study};
use capo_gateway::SharedKey;
use capo_models::gate::{Gate, Route};
use capo_models::local_models::LocalModels;
use capo_models::prices::PriceTable;
use capo_models::providers::Provider;
use capo_models::{Builder, ModelSpec, Models, Secret, Setup, check_tables};
use capo_workloads::files::MemoryFiles;
use serde::Deserialize;

/// No variables: what runs on the server uses shared keys alone.
type NoKeys = BTreeMap<String, String>;

/// The shared keys of a project, as ways to models.
#[derive(Debug, Clone, Deserialize)]
pub struct SharedKeys {
    /// The keys that the project may use.
    pub keys: Vec<SharedKey>,
    /// Where they are asked, such as `http://127.0.0.1:4000`.
    pub origin: String,
    /// What the proxy there knows the run by.
    pub pass: String,
}

impl Gate for SharedKeys {
    fn route(&self, provider: &'static Provider, base_url: &str, model: &str) -> Result<Route, String> {
        let fitting = self.keys.iter().filter(|key| key.is_for(provider, base_url));
        let mut fitting = fitting.peekable();
        if fitting.peek().is_none() {
            return Err(format!(
                "this project has no shared key for provider `{}` at {base_url}; an administrator of the server adds one",
                provider.name
            ));
        }
        let found = fitting.find_map(|key| Some((key, key.rule(model)?)));
        let (key, rule) = found.ok_or_else(|| {
            format!(
                "no shared key of this project may ask the model `{model}` of provider `{}`; an administrator of the \
                 server allows it",
                provider.name
            )
        })?;
        Ok(Route {
            base_url: format!("{}/api/proxy/{}", self.origin, key.record().id),
            key: Secret::new(self.pass.clone()),
            price: rule.price,
        })
    }
}

/// The training that a table names whose model is one of the server's own.
pub fn trained(spec: &ModelSpec) -> Option<&str> {
    spec.model.as_deref()?.strip_prefix(REWRITER)
}

/// A study as the server runs it.
pub struct Prepared {
    /// The study with its workloads.
    pub setup: Setup,
}

impl Prepared {
    /// Reads a study and joins it with its workloads, which find their data in `files`.
    ///
    /// # Errors
    /// What is wrong with the study or its data, or why the server does not run it.
    pub fn new(study: &str, files: &MemoryFiles) -> Result<Self, String> {
        let study = Study::parse(study, Format::Toml).map_err(|error| error.to_string())?;
        study.seed_prompt().map_err(|error| error.to_string())?;
        if capo_workloads::asks_outside(&study.workload) {
            return Err(
                "this workload runs a program or asks an address of its author's own, which a server that many use does \
                 not do; run the study in a browser or by `capo optimize`"
                    .to_owned(),
            );
        }
        check_tables(&study.models).map_err(|error| error.to_string())?;
        let seed = study.study.seed;
        let workloads =
            capo_workloads::build(&study.workload, files, seed).map_err(|error| error.to_string())?;
        let setup = Setup::new(study, workloads).map_err(|error| error.to_string())?;
        for (role, spec) in &setup.specs {
            if spec.is_local() && trained(spec).is_none() {
                return Err(format!(
                    "models.{role}: of models of its own the server runs the rewriters of its trainings alone, as model = \
                     \"{REWRITER}ID\"; serve another one with `capo rewriter serve` and have an administrator add its \
                     address as a shared key"
                ));
            }
        }
        check_size(setup.problem.study())?;
        Ok(Self { setup })
    }

    /// Refuses to go on with a journal whose first line is another study's.
    ///
    /// # Errors
    /// What may be changed while a run goes on.
    pub fn goes_on_from(&self, first: &str) -> Result<(), String> {
        match parse_line(first, 1) {
            Ok(Event::Study(begun)) if !begun.is_of(&self.setup.problem.id()) => Err(
                "The run was begun with another study: only what does not change its results may be changed, such as its \
                 budget, prices and concurrency. Start another run with this one."
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    /// Ids of the trainings whose rewriters it asks.
    pub fn rewriters(&self) -> Vec<String> {
        let named = self.setup.specs.values().filter(|spec| spec.is_local());
        named.filter_map(trained).map(str::to_owned).collect()
    }

    /// What its models lack, in words; nothing where everybody can be asked.
    ///
    /// # Errors
    /// Every table that cannot be served.
    pub fn check_models(&self, keys: &dyn Gate) -> Result<(), String> {
        let none = NoKeys::new();
        let missing = Builder::new(&none)
            .gate(keys)
            .missing(&self.setup.problem.study().asked_tables());
        let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(missing.join("; "))
        }
    }

    /// Who answers, until `control` interrupts it; `rewriters` opens those that were trained here, `observer` hears of waits.
    ///
    /// # Errors
    /// Which table of the study cannot be served.
    pub fn models(
        &self,
        keys: &dyn Gate,
        rewriters: Option<&dyn LocalModels>,
        prices: &Arc<PriceTable>,
        control: &Control,
        observer: Observer,
    ) -> Result<Models, String> {
        let none = NoKeys::new();
        let study = self.setup.problem.study();
        let mut builder = Builder::new(&none).gate(keys);
        if let Some(rewriters) = rewriters {
            builder = builder.local(rewriters);
        }
        let models = builder
            .seed(study.study.seed)
            .prices(PriceTable::clone(prices))
            .control(control.clone())
            .observer(observer)
            .build(&study.asked_tables());
        models.map_err(|error| error.to_string())
    }
}

/// Rollouts of one prompt on one example, and rounds, that the server's memory is good for.
const MOST_REPEATS: u32 = 1000;
const MOST_ROUNDS: u32 = 10_000;

/// Refuses a search that would be too large to be held in memory, whatever its budget says.
///
/// # Errors
/// Which setting is too large.
pub fn check_size(study: &Study) -> Result<(), String> {
    if study.study.repeats > MOST_REPEATS {
        return Err(format!("study.repeats: a server takes at most {MOST_REPEATS}"));
    }
    match study.study.rounds {
        Rounds::Count(rounds) if rounds > MOST_ROUNDS => {
            Err(format!("study.rounds: a server takes at most {MOST_ROUNDS}"))
        }
        _ => Ok(()),
    }
}
