//! CAPO (EA): every retained candidate is a parent.

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capo::{PrimalDual, primal_dual};
use super::{Effort, Method, Search};
use crate::search::arena::{Arena, Halt};
use crate::search::dual::DualStepName;

/// CAPO's evolutionary variant: no sampling of parents by J; the rest is the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CapoEa {
    /// How multipliers move.
    pub dual_step: DualStepName,
    /// What every primal–dual method shares.
    #[serde(flatten)]
    pub shared: PrimalDual,
}

impl Default for CapoEa {
    fn default() -> Self {
        Self {
            dual_step: DualStepName::Subgradient,
            shared: PrimalDual::default(),
        }
    }
}

impl Method for CapoEa {
    fn at_most(&self, rounds: u32) -> Effort {
        self.shared.at_most(rounds, self.shared.pool)
    }

    fn primal_dual(&self) -> Option<&PrimalDual> {
        Some(&self.shared)
    }
}

impl Search for CapoEa {
    fn search<'a>(&'a self, arena: &'a Arena) -> LocalBoxFuture<'a, Result<(), Halt>> {
        let everyone = |_, ranked: &[_]| ranked.iter().map(|(candidate, _)| *candidate).collect();
        primal_dual(arena, &self.shared, self.dual_step, everyone).boxed_local()
    }
}
