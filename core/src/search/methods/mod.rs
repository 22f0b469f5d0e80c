//! The search methods: one file each, and one line in [`ALL`].

use futures::future::LocalBoxFuture;
use indexmap::IndexSet;
use schemars::{Schema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::journal::run_state::RunState;
use crate::llm::Role;
use crate::reading::in_force;
use crate::search::arena::{Arena, Halt};
use crate::search::problem::Problem;
use crate::study::ids::{CandidateId, Round};
use crate::study::score::{Limits, Multipliers};
use crate::study::workload::Split;
use crate::study::{Rounds, StudyError, Table, nearest, read_table};

use capo::PrimalDual;
pub(crate) use capo::noise;

/// Declares the methods, by the names that study files use, with a title and a sentence for people.
///
/// Three lists come of it: what only reads a method's settings, as a page's form does, links neither
/// searches nor schemas.
macro_rules! methods {
    ($($name:literal => $module:ident::$method:ident, $title:literal, $summary:literal;)*) => {
        $(pub mod $module;)*

        /// Every method, by the name study files use.
        pub const ALL: &[Entry] = &[$(Entry::of::<$module::$method>($name, $title, $summary)),*];

        /// The schema of each of them, in the same order.
        const SCHEMAS: &[fn() -> Schema] = &[$(|| schema_for!($module::$method)),*];

        /// The search of each of them, in the same order.
        const SEARCHES: &[Build<dyn Search>] = &[$(|table| Ok(Box::new(parse::<$module::$method>(table)?))),*];
    };
}

mod bandits;
mod fixed_score;
mod pareto;

methods! {
    "capo" => capo::Capo, "CAPO",
        "Primal–dual search with a frozen rewriter: the paper's method.";
    "capo-ea" => capo_ea::CapoEa, "CAPO (EA)",
        "CAPO in which every retained candidate is a parent.";
    "count" => count::CountCapo, "count",
        "CAPO whose dual step sees the sign of a violation, not its size.";
    "dcapo" => dcapo::Dcapo, "DCAPO",
        "CAPO whose rewriter can learn from what became of its rewrites.";
    "sampling" => test_time_sampling::Sampling, "sampling",
        "One-shot rewrites of the seed prompt; the best of k at fixed weights.";
    "injected" => injected::Injected, "injected",
        "The thresholds written into the seed prompt once.";
    "gepa" => gepa::Gepa, "GEPA",
        "Rewrites by a few examples of prompts that are best on some example, and merges, at fixed weights.";
    "mopo" => mopo::Mopo, "MOPO",
        "NSGA-II: keeps the Pareto front of objective and costs, whatever the thresholds.";
    "evoprompt-ga" => evoprompt_ga::EvoPromptGa, "EvoPrompt-GA",
        "A genetic algorithm: tournaments, crossovers that are mutated, the best survive, at fixed weights.";
    "evoprompt-de" => evoprompt_de::EvoPromptDe, "EvoPrompt-DE",
        "Differential evolution: a better child takes its parent's place, at fixed weights.";
    "apo" => apo::Apo, "APO",
        "ProTeGi: edits along a textual gradient and paraphrases, a beam of the best, at fixed weights.";
}

/// The most that a count among a method's settings may be.
const MOST: usize = 1_000;

/// The most rewrites that a round may ask for.
const MOST_REWRITES: u64 = 20_000;

/// Refuses counts of a method's settings that are out of range: their keys, the least that each may be, and what it is.
fn check_counts(counts: &[(&str, usize, usize)]) -> Result<(), String> {
    match counts
        .iter()
        .find(|(_, least, count)| !(*least..=MOST).contains(count))
    {
        None => Ok(()),
        Some((key, least, count)) => Err(format!(
            "`{key}` must be at least {least} and at most {MOST}, not {count}"
        )),
    }
}

/// Each of them once, in the order in which they first come.
fn distinct(candidates: impl IntoIterator<Item = CandidateId>) -> Vec<CandidateId> {
    let once: IndexSet<CandidateId> = candidates.into_iter().collect();
    once.into_iter().collect()
}

/// Makes something of a method's settings, or says what is wrong with them.
type Build<T> = fn(&Table) -> Result<Box<T>, String>;

/// A method's settings and what follows from them. Its fields are its hyperparameters, read from the
/// study's `[method]` table.
pub trait Method {
    /// Checks the hyperparameters: those shared with the primal–dual methods, unless it has others.
    ///
    /// # Errors
    /// What is out of range, in words.
    fn check(&self) -> Result<(), String> {
        self.primal_dual().map_or(Ok(()), PrimalDual::check)
    }

    /// The most a search of `rounds` rounds can ask for.
    fn at_most(&self, rounds: u32) -> Effort;

    /// What it shares with the primal–dual methods, if it is one.
    fn primal_dual(&self) -> Option<&PrimalDual> {
        None
    }

    /// λ_0 of the constraints in force at round 0.
    fn start(&self, limits: &Limits) -> Multipliers {
        let settings = self.primal_dual().cloned().unwrap_or_default();
        settings.dual.start(limits)
    }

    /// Which measured candidate is returned.
    fn choice(&self) -> Choice {
        Choice::BestFeasible
    }

    /// The most candidates its last round retains: after a search with minibatches they are measured
    /// on the whole split. With more than one, the search begins with [`Arena::starts`].
    fn pool(&self) -> usize {
        self.primal_dual().map_or(1, |settings| settings.pool)
    }

    /// Whether it can measure rounds on batches.
    fn takes_batches(&self) -> bool {
        true
    }

    /// Whether a rewriter can learn from its rounds.
    fn learns(&self) -> bool {
        false
    }

    /// Standard deviation σ of the noise on costs at the feasibility gate of the final choice; 0
    /// for methods without noisy feedback.
    fn gate_noise(&self) -> f64 {
        self.primal_dual().map_or(0.0, |settings| settings.noise)
    }
}

/// A method's search over prompts: straight-line async code over the arena.
pub trait Search: Method {
    /// Searches until the rounds are over. Everything it learns goes through the arena; the result
    /// is chosen from what was measured.
    fn search<'a>(&'a self, arena: &'a Arena) -> LocalBoxFuture<'a, Result<(), Halt>>;
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

impl Effort {
    /// Of so many rounds, of which `round` says by its number and the most candidates that it begins with what it asks for
    /// and the most that it retains. Rounds that begin alike ask for the same, but for the first.
    fn over(rounds: u32, round: impl Fn(u32, u64) -> (Self, u64)) -> Self {
        let mut all = Self {
            candidates: 1,
            ..Self::default()
        };
        let mut pool = 1;
        for number in 0..rounds {
            let (asked, retained) = round(number, pool);
            let is_like_the_rest = number > 0 && retained == pool;
            let times = u64::from(if is_like_the_rest { rounds - number } else { 1 });
            all.candidates += times * asked.candidates;
            all.critiques += times * asked.critiques;
            all.rewrites += times * asked.rewrites;
            if is_like_the_rest {
                break;
            }
            pool = retained;
        }
        all
    }

    /// Of so many rewrites a round, of which nobody says anything.
    fn without_critic(rounds: u32, rewrites: usize) -> Self {
        let rewrites = u64::from(rounds) * rewrites as u64;
        Self {
            candidates: 1 + rewrites,
            critiques: 0,
            rewrites,
        }
    }
}

/// A method's registration.
pub struct Entry {
    /// The name study files use.
    pub name: &'static str,
    /// The name on screens.
    pub title: &'static str,
    /// One sentence for people.
    pub summary: &'static str,
    build: Build<dyn Method>,
    complete: fn(&Table) -> Result<Table, String>,
}

impl Entry {
    const fn of<M>(name: &'static str, title: &'static str, summary: &'static str) -> Self
    where
        M: Method + Default + Serialize + DeserializeOwned + 'static,
    {
        Self {
            name,
            title,
            summary,
            build: |table| Ok(Box::new(parse::<M>(table)?)),
            complete: |table| written_out(&parse::<M>(table)?),
        }
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
    let method: M = read_table(table)?;
    method.check()?;
    // A pool grows with every round until it is full.
    let [before, with] = [MOST as u32, MOST as u32 + 1].map(|rounds| method.at_most(rounds).rewrites);
    let rewrites = with - before;
    if rewrites > MOST_REWRITES {
        return Err(format!(
            "a round would ask for up to {rewrites} rewrites, and at most {MOST_REWRITES} are possible; lower its counts"
        ));
    }
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

fn place(name: &str) -> Result<usize, StudyError> {
    ALL.iter().position(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
        let hint = nearest(name, names.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
        let problem = format!(
            "there is no method `{name}`; there are {}{}",
            names.join(", "),
            hint.unwrap_or_default()
        );
        StudyError::invalid("study.method", problem)
    })
}

fn invalid(problem: String) -> StudyError {
    StudyError::invalid("method", problem)
}

/// The method of a study.
///
/// # Errors
/// An unknown name, unknown keys or values out of range.
pub fn build(name: &str, settings: &Table) -> Result<Box<dyn Method>, StudyError> {
    (ALL[place(name)?].build)(settings).map_err(invalid)
}

/// JSON schema of a method's `[method]` table.
///
/// # Errors
/// An unknown name.
pub fn schema(name: &str) -> Result<Schema, StudyError> {
    Ok(SCHEMAS[place(name)?]())
}

/// Whom a search asks: critic and rewriter, as far as it does.
pub fn asked(method: &dyn Method, rounds: &Rounds) -> impl Iterator<Item = Role> + use<> {
    let effort = method.at_most(match rounds {
        Rounds::Count(rounds) => *rounds,
        // What it asks for at all it asks for in one of its first two rounds.
        Rounds::Open(_) => 2,
    });
    [
        (Role::Critic, effort.critiques),
        (Role::Rewriter, effort.rewrites),
    ]
    .into_iter()
    .filter(|(_, calls)| *calls > 0)
    .map(|(role, _)| role)
}

/// Says of a budget of rollouts that it is too small: it has no room for a first round, with so many prompts of earlier runs
/// beside the seed, and the held-out evaluation, or the search would hold nothing back for that. Thresholds relative to the
/// seed have it measured on all examples first.
pub fn too_small(problem: &Problem, starts: usize) -> Option<String> {
    let study = problem.study();
    let budget = study.budget.rollouts?;
    let method = build(&study.study.method, &study.method).ok()?;
    let of = |split, most: usize| {
        let places = problem.places(split);
        let examples: usize = places.iter().map(|places| places.len().min(most)).sum();
        examples as u64 * u64::from(study.study.repeats)
    };
    let batch = study.study.batch.unwrap_or(usize::MAX);
    let whole = if study.thresholds_are_relative() {
        usize::MAX
    } else {
        batch
    };
    let of_seed = of(Split::Optimize, whole);
    let others = method.at_most(1).candidates.saturating_sub(1) + starts as u64;
    let first = of_seed + others * of(Split::Optimize, batch);
    let held_out = 2 * of(Split::Evaluate, usize::MAX);
    let is_held_back = 2 * held_out <= budget;
    (first + held_out > budget || !is_held_back).then(|| {
        let more = if is_held_back {
            ""
        } else {
            ", more than the half that a search would hold back"
        };
        format!(
            "A budget of {budget} rollouts is too small for a search: the first round takes up to {first}, the held-out \
             evaluation up to {held_out}{more}."
        )
    })
}

/// The search of a study's method.
///
/// # Errors
/// See [`build`].
pub fn search(name: &str, settings: &Table) -> Result<Box<dyn Search>, StudyError> {
    SEARCHES[place(name)?](settings).map_err(invalid)
}

/// A method's settings with its defaults written out.
///
/// # Errors
/// See [`build`].
pub fn complete(name: &str, settings: &Table) -> Result<Table, StudyError> {
    (ALL[place(name)?].complete)(settings).map_err(invalid)
}

/// λ used in a round of the journal: as journaled, or as the round that is under way begins with; see
/// [`in_force::multipliers`].
pub fn multipliers(state: &RunState, round: Round) -> Multipliers {
    in_force::multipliers(state, round, |limits| start(state, limits))
}

/// λ of now: the one used in the round under way, or the last.
pub fn multipliers_now(state: &RunState) -> Multipliers {
    in_force::multipliers_now(state, |limits| start(state, limits))
}

/// λ_0 of a run's method; none of a method that this build does not know.
fn start(state: &RunState, limits: &Limits) -> Multipliers {
    let study = state.study().map(|event| &event.study);
    let method = study.and_then(|study| build(&study.study.method, &study.method).ok());
    method.map(|method| method.start(limits)).unwrap_or_default()
}
