//! The reward: what a conversation earns, part by part.

use capo_core::llm::ToolCall;
use serde::Serialize;
use serde_json::{Map, Value};

use super::environment::{Side, World, call_bare};
use super::python;
use super::settings::ReferenceActions;
use super::task::{Action, Assertion, Basis, Criteria, Task, TaskError};
use super::tool::ToolError;
use super::trajectory::Trajectory;

/// Rewards closer to 1 than this are a success.
const TOLERANCE: f64 = 1e-6;

/// Why a conversation cannot be graded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GradeError {
    /// The reference world cannot be set up.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// What must hold at the end cannot be told.
    #[error("{name}: {error}")]
    Assertion {
        /// The assertion.
        name: String,
        /// The error that this one passes on.
        error: ToolError,
    },
}

/// What a conversation earned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Grade {
    /// Whether the records are those of the reference.
    pub db: bool,
    /// Each assertion, and whether it is met.
    pub assertions: Vec<(String, bool)>,
    /// Each reference action, and whether a call matches it.
    pub actions: Vec<(String, bool)>,
    /// Each text that must be said, and whether it was.
    pub communicate: Vec<(String, bool)>,
    /// Each thing a judge was asked, whether it is so, and why.
    pub natural: Vec<Judged>,
    /// The parts that count.
    #[serde(skip)]
    basis: Vec<Basis>,
}

/// What a judge found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// What it was asked.
    pub assertion: String,
    /// Whether it is so.
    pub met: bool,
    /// The reason in words.
    pub reason: String,
}

impl Grade {
    /// Grades a conversation that came to its end; `fresh` is the domain's world and `left` what the
    /// conversation left of it. What a judge must find is not looked at yet.
    ///
    /// # Errors
    /// When an assertion cannot be told.
    pub fn new<W: World>(
        task: &Task,
        fresh: &W,
        left: &W,
        trajectory: &Trajectory,
    ) -> Result<Self, GradeError> {
        let Some(criteria) = &task.evaluation_criteria else {
            return Ok(Self::nothing_asked());
        };
        let is_compared = criteria.actions.is_some() || criteria.env_assertions.is_some();
        let db = !is_compared || left.equals(&reference(task, criteria, fresh)?);
        let mut assertions = Vec::new();
        let mut asked = left.clone();
        for assertion in criteria.env_assertions.iter().flatten() {
            assertions.push((assertion.func_name.clone(), is_met(assertion, &mut asked)?));
        }
        let calls: Vec<&ToolCall> = trajectory.calls().map(|(_, call)| call).collect();
        let made = |action: &Action| {
            let is_made = calls.iter().any(|call| matches(action, call));
            (action.action_id.clone(), is_made)
        };
        let said: Vec<String> = trajectory
            .agent_texts()
            .map(|text| text.to_lowercase().replace(',', ""))
            .collect();
        let told = |info: &String| {
            let needle = info.to_lowercase();
            (info.clone(), said.iter().any(|text| text.contains(&needle)))
        };
        Ok(Self {
            db,
            assertions,
            actions: criteria.actions.iter().flatten().map(made).collect(),
            communicate: criteria.communicate_info.iter().flatten().map(told).collect(),
            natural: Vec::new(),
            basis: criteria.reward_basis.clone(),
        })
    }

    fn nothing_asked() -> Self {
        Self {
            db: true,
            assertions: Vec::new(),
            actions: Vec::new(),
            communicate: Vec::new(),
            natural: Vec::new(),
            basis: Vec::new(),
        }
    }

    /// One part, 0 or 1, whether it counts or not.
    pub fn component(&self, basis: Basis) -> f64 {
        let all = |checks: &[(String, bool)]| checks.iter().all(|(_, is_met)| *is_met);
        let holds = match basis {
            Basis::Db => self.db,
            Basis::EnvAssertion => all(&self.assertions),
            Basis::Action => all(&self.actions),
            Basis::Communicate => all(&self.communicate),
            Basis::NlAssertion => self.natural.iter().all(|judged| judged.met),
        };
        f64::from(u8::from(holds))
    }

    /// The parts that count, each with its value.
    pub fn breakdown(&self) -> Map<String, Value> {
        let part = |basis: &Basis| (basis.name().to_owned(), self.component(*basis).into());
        self.basis.iter().map(part).collect()
    }

    /// The product of the parts that count, 0 or 1.
    pub fn reward(&self) -> f64 {
        self.basis.iter().map(|basis| self.component(*basis)).product()
    }

    /// Whether a reward is a success.
    pub fn is_success(reward: f64) -> bool {
        (reward - 1.0).abs() <= TOLERANCE
    }
}

/// The world as the reference solution leaves it: its calls are made without the sides agreeing after
/// them, and one that fails is passed over.
fn reference<W: World>(task: &Task, criteria: &Criteria, fresh: &W) -> Result<W, GradeError> {
    let mut world = task.set_up(&fresh.clone().for_reference())?;
    for action in criteria.actions.iter().flatten() {
        // 18 actions of the retail tasks fail, and are part of their references all the same.
        let _ = call_bare(&mut world, action.requestor, &action.name, &action.arguments);
    }
    Ok(world)
}

fn is_met<W: World>(assertion: &Assertion, world: &mut W) -> Result<bool, GradeError> {
    let told = world.holds(assertion.env_type, &assertion.func_name, &assertion.arguments);
    let told = told.and_then(|holds| world.sync().map(|()| holds));
    match told {
        Ok(holds) => Ok(holds == assertion.assert_value),
        Err(error) => Err(GradeError::Assertion {
            name: assertion.func_name.clone(),
            error,
        }),
    }
}

/// Whether a call is that of a reference action, whoever made it and whatever came of it.
fn matches(action: &Action, call: &ToolCall) -> bool {
    if action.name != call.name {
        return false;
    }
    let nothing = Map::new();
    let made = call.arguments.as_object().unwrap_or(&nothing);
    let same = |key: &String| match (action.arguments.get(key), made.get(key)) {
        (Some(wanted), Some(given)) => python::equal(wanted, given),
        (wanted, given) => wanted.is_none() && given.is_none(),
    };
    match &action.compare_args {
        Some(compared) => compared.iter().all(same),
        None => made.keys().all(same),
    }
}

/// What the counts of a conversation are measured against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Calls of the agent, failed ones and those of unknown tools included.
    pub agent_calls: usize,
    /// Calls of the user.
    pub user_calls: usize,
    /// Calls of the agent that hand over to a human.
    pub transfers: usize,
    /// Actions of the reference solution that count.
    pub reference: usize,
}

impl Counts {
    /// Counts a conversation about a task.
    pub fn new(task: &Task, trajectory: &Trajectory, counted: ReferenceActions) -> Self {
        let transfers = |call: &&ToolCall| call.name == super::transfer::NAME;
        Self {
            agent_calls: trajectory.calls_of(Side::Assistant).count(),
            user_calls: trajectory.calls_of(Side::User).count(),
            transfers: trajectory.calls_of(Side::Assistant).filter(transfers).count(),
            reference: task.reference_actions(counted),
        }
    }

    /// (calls of the agent − actions of the reference) ÷ `mean`, the mean number of reference actions of the tasks of
    /// one split. Over that split the mean of this is (all calls − all reference actions) ÷ all reference actions,
    /// the paper's ToolEx.
    pub fn excess(self, mean: f64) -> f64 {
        (self.agent_calls as f64 - self.reference as f64) / mean
    }
}
