//! The search methods: one file each, and one line in [`ALL`].

pub mod capo;
pub mod capo_ea;
pub mod count;
pub mod injected;
pub mod sampling;

use futures::future::LocalBoxFuture;
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::arena::{Arena, Halt};
use crate::multipliers::DualSettings;
use crate::score::{Limits, Multipliers};
use crate::study::{StudyError, Table, nearest};

pub(crate) use capo::noise;

/// Every method, by the name study files use.
pub const ALL: &[Entry] = &[
    Entry::of::<capo::Capo>(
        "capo",
        "Primal–dual search with a frozen rewriter: the paper's method.",
    ),
    Entry::of::<capo_ea::CapoEa>("capo-ea", "CAPO in which every retained candidate is a parent."),
    Entry::of::<count::CountCapo>(
        "count",
        "CAPO whose dual step sees the sign of a violation, not its size.",
    ),
    Entry::of::<sampling::Sampling>(
        "sampling",
        "One-shot rewrites of the seed prompt; the best of k at fixed weights.",
    ),
    Entry::of::<injected::Injected>("injected", "The thresholds written into the seed prompt once."),
];

/// A search over prompts: straight-line async code over the arena. Its fields are its
/// hyperparameters, read from the study's `[method]` table.
pub trait Method {
    /// Checks the hyperparameters.
    ///
    /// # Errors
    /// What is out of range, in words.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Searches until the rounds are over. Everything it learns goes through the arena; the result
    /// is chosen from what was measured.
    fn search<'a>(&'a self, arena: &'a Arena) -> LocalBoxFuture<'a, Result<(), Halt>>;

    /// The most a search of `rounds` rounds can ask for.
    fn at_most(&self, rounds: u32) -> Effort;

    /// λ_0 of the constraints in force at round 0.
    fn start(&self, limits: &Limits) -> Multipliers {
        DualSettings::default().start(limits)
    }

    /// Which measured candidate is returned.
    fn choice(&self) -> Choice {
        Choice::BestFeasible
    }

    /// The most candidates its last round retains: after a search with minibatches they are measured
    /// on the whole split.
    fn pool(&self) -> usize {
        1
    }

    /// Standard deviation σ of the noise on costs at the feasibility gate of the final choice; 0
    /// for methods without noisy feedback.
    fn gate_noise(&self) -> f64 {
        0.0
    }
}

/// Which measured candidate a method returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The feasible candidate of the highest objective, if any was measured; else the one of the
    /// highest J under λ_T.
    BestFeasible,
    /// The first that the last round retained: the method's own choice.
    Retained,
}

/// What a search asks for at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Effort {
    /// Candidates measured, the seed included.
    pub candidates: u64,
    /// Critiques.
    pub critiques: u64,
    /// Rewrites, each of which may be asked for twice.
    pub rewrites: u64,
}

/// A method's registration.
pub struct Entry {
    /// The name study files use.
    pub name: &'static str,
    /// One sentence for people.
    pub summary: &'static str,
    build: fn(&Table) -> Result<Box<dyn Method>, String>,
    complete: fn(&Table) -> Result<Table, String>,
    schema: fn() -> Schema,
}

impl Entry {
    const fn of<M>(name: &'static str, summary: &'static str) -> Self
    where
        M: Method + Default + Serialize + DeserializeOwned + JsonSchema + 'static,
    {
        Self {
            name,
            summary,
            build: |table| Ok(Box::new(parse::<M>(table)?)),
            complete: |table| written_out(&parse::<M>(table)?),
            schema: || schema_for!(M),
        }
    }

    /// JSON schema of the method's `[method]` table.
    pub fn schema(&self) -> Schema {
        (self.schema)()
    }
}

fn parse<M: Method + Default + Serialize + DeserializeOwned>(table: &Table) -> Result<M, String> {
    // Settings are shared between methods by flattening, where serde cannot refuse unknown keys
    // itself; every key has a default, so the keys of the defaults are all there are.
    let known = serde_json::to_value(M::default()).map_err(|error| error.to_string())?;
    let known: Vec<&str> = known
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str())
        .collect();
    if let Some(unknown) = table.keys().find(|key| !known.contains(&key.as_str())) {
        let hint = nearest(unknown, known.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
        let known = if known.is_empty() {
            "it has none".to_owned()
        } else {
            format!("it has {}", known.join(", "))
        };
        return Err(format!(
            "unknown key `{unknown}`{}; {known}",
            hint.unwrap_or_default()
        ));
    }
    let method: M = serde_json::from_value(serde_json::Value::Object(table.clone()))
        .map_err(|error| error.to_string())?;
    method.check()?;
    Ok(method)
}

fn written_out<M: Serialize>(method: &M) -> Result<Table, String> {
    match serde_json::to_value(method).map_err(|error| error.to_string())? {
        serde_json::Value::Object(table) => {
            Ok(table.into_iter().filter(|(_, value)| !value.is_null()).collect())
        }
        _ => Err("settings must be a table".into()),
    }
}

fn entry(name: &str) -> Result<&'static Entry, StudyError> {
    ALL.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
        let hint = nearest(name, names.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
        let problem = format!(
            "there is no method `{name}`{}; methods: {}",
            hint.unwrap_or_default(),
            names.join(", ")
        );
        StudyError::invalid("study.method", problem)
    })
}

/// The method of a study.
///
/// # Errors
/// An unknown name, unknown keys or values out of range.
pub fn build(name: &str, settings: &Table) -> Result<Box<dyn Method>, StudyError> {
    (entry(name)?.build)(settings).map_err(|problem| StudyError::invalid("method", problem))
}

/// A method's settings with its defaults written out.
///
/// # Errors
/// See [`build`].
pub fn complete(name: &str, settings: &Table) -> Result<Table, StudyError> {
    (entry(name)?.complete)(settings).map_err(|problem| StudyError::invalid("method", problem))
}
