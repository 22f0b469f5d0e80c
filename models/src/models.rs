//! The models of a study, by role.

use std::rc::Rc;

use capo_core::arena;
use capo_core::batches::Batches;
use capo_core::llm::{ChatRequest, ChatResponse, FailureKind, Llm, LlmError, Role};
use futures::future::LocalBoxFuture;
use indexmap::IndexMap;

use crate::error::BuildError;
use crate::roles::serving;

/// The models of a study by role.
#[derive(Clone, Default)]
pub struct Models {
    by_role: IndexMap<Role, Rc<dyn Llm>>,
    /// Those that the agent's calls are handed in with, if they are.
    pub(crate) batches: Option<Batches>,
}

impl Models {
    /// Gives `role` a model that was built elsewhere.
    pub fn set(&mut self, role: Role, model: Rc<dyn Llm>) {
        self.by_role.insert(role, model);
    }

    /// The model that serves `role`, its own or the one it falls back to ([`Role::fallback`]).
    ///
    /// # Errors
    ///
    /// [`BuildError::NoModel`] when there is none.
    pub fn get(&self, role: Role) -> Result<Rc<dyn Llm>, BuildError> {
        match serving(role, &self.by_role) {
            Some((_, model)) => Ok(Rc::clone(model)),
            None => Err(BuildError::NoModel { role }),
        }
    }

    /// The roles with a model of their own.
    pub fn roles(&self) -> impl Iterator<Item = Role> + '_ {
        self.by_role.keys().copied()
    }
}

/// A role without any model fails when it is asked, with what [`BuildError::NoModel`] says: a study
/// whose agent is a command needs no agent model, so this cannot be decided before.
impl arena::Models for Models {
    fn model(&self, role: Role) -> Rc<dyn Llm> {
        self.get(role).unwrap_or_else(|missing| Rc::new(Absent(missing)))
    }

    fn batches(&self) -> Option<Batches> {
        self.batches.clone()
    }
}

/// Stands for a model that a study does not have.
struct Absent(BuildError);

impl Llm for Absent {
    fn name(&self) -> &'static str {
        "no model"
    }

    fn chat(&self, _: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        let message = self.0.to_string();
        Box::pin(async { Err(LlmError::failed(FailureKind::Provider, false, message)) })
    }
}

impl std::fmt::Debug for Models {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map()
            .entries(self.by_role.iter().map(|(role, model)| (role, model.name())))
            .finish()
    }
}
