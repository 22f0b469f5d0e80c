//! Count-based CAPO: an ablation of the dual step.

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capo::{Capo, PrimalDual};
use super::{Effort, Method, Search};
use crate::search::arena::{Arena, Halt};
use crate::search::dual::DualStepName;

/// CAPO whose multipliers move by the sign of a violation, not by its size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CountCapo {
    /// k ≥ 1: parents sampled a round.
    #[schemars(range(min = 1, max = 1000))]
    pub parents: usize,
    /// γ: how strongly the sampling prefers high J.
    pub gamma: f64,
    /// What every primal–dual method shares.
    #[serde(flatten)]
    pub shared: PrimalDual,
}

impl Default for CountCapo {
    fn default() -> Self {
        let Capo {
            parents,
            gamma,
            shared,
            ..
        } = Capo::default();
        Self {
            parents,
            gamma,
            shared,
        }
    }
}

impl CountCapo {
    fn as_capo(&self) -> Capo {
        Capo {
            parents: self.parents,
            gamma: self.gamma,
            mask: None,
            dual_step: DualStepName::Count,
            shared: self.shared.clone(),
        }
    }
}

impl Method for CountCapo {
    fn check(&self) -> Result<(), String> {
        self.as_capo().check()
    }

    fn at_most(&self, rounds: u32) -> Effort {
        self.as_capo().at_most(rounds)
    }

    fn primal_dual(&self) -> Option<&PrimalDual> {
        Some(&self.shared)
    }
}

impl Search for CountCapo {
    fn search<'a>(&'a self, arena: &'a Arena) -> LocalBoxFuture<'a, Result<(), Halt>> {
        async move { self.as_capo().search(arena).await }.boxed_local()
    }
}
