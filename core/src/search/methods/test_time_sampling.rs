//! Test-time sampling: k one-shot rewrites of the seed prompt, the best by fixed J.

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Choice, Effort, Method, Search, check_counts};
use crate::journal::RoundEvent;
use crate::search::arena::{Arena, Guidance, Halt};
use crate::search::dual::{DualSettings, LARGEST};
use crate::study::score::top;

/// TT sampling; the paper reports k = 4, 8 and 16.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Sampling {
    /// k ≥ 1: rewrites of the seed.
    #[schemars(range(min = 1, max = 1000))]
    pub k: u32,
    /// λ̄ ≥ 0 of every constraint, never moved.
    pub weight: f64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { k: 8, weight: 1.0 }
    }
}

impl Method for Sampling {
    fn check(&self) -> Result<(), String> {
        check_counts(&[("k", 1, self.k as usize)])?;
        if !(0.0..=LARGEST).contains(&self.weight) {
            return Err(format!(
                "`weight` must be at least 0 and at most {LARGEST:e}, not {:e}",
                self.weight
            ));
        }
        Ok(())
    }

    fn at_most(&self, _rounds: u32) -> Effort {
        Effort {
            candidates: 1 + u64::from(self.k),
            critiques: 1,
            rewrites: u64::from(self.k),
        }
    }

    fn choice(&self) -> Choice {
        Choice::Retained
    }
}

impl Search for Sampling {
    fn search<'a>(&'a self, arena: &'a Arena) -> LocalBoxFuture<'a, Result<(), Halt>> {
        async move {
            // Every constraint counts from the start: there is only one round.
            let fixed = DualSettings {
                lambda_init: self.weight,
                ..DualSettings::default()
            };
            let mut multipliers = fixed.start(&arena.limits(None));
            if !arena.open_round(0, &mut multipliers).await? {
                return Ok(());
            }
            let limits = arena.limits(None);
            let (seed, batch) = (arena.seed(), arena.batch(0));
            arena.measure(&[seed], &batch).await?;
            let guidance = Guidance {
                round: 0,
                batch: &batch,
                shown: &batch,
                limits: &limits,
                multipliers: &multipliers,
                children: self.k,
            };
            let mut rewrites = arena.offspring(&[seed], guidance).await?;
            rewrites.retain(|rewrite| *rewrite != seed);
            let rewrites = arena.measure(&rewrites, &batch).await?;

            let everyone: Vec<_> = std::iter::once(seed).chain(rewrites.iter().copied()).collect();
            let scores = arena.scores(&everyone, &batch, &limits, &multipliers)?;
            let mut ranked = arena.ranked(&scores, |score| score.lagrangian);
            ranked.retain(|entry| rewrites.is_empty() || entry.candidate != seed);
            let best = top(ranked, 1);
            let event = RoundEvent {
                round: 0,
                next_multipliers: multipliers.clone(),
                multipliers: multipliers.clone(),
                scores,
                parents: vec![seed],
                retained: best.clone(),
                best,
                batch: None,
            };
            arena.close_round(event, &batch).await
        }
        .boxed_local()
    }
}
