//! Constraint-Injected: the thresholds written into the seed prompt, no search.

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Choice, Effort, Method, Search};
use crate::journal::{Origin, RoundEvent};
use crate::search::arena::{Arena, Halt};
use crate::search::dual::DualSettings;
use crate::search::templates::Template;

/// The baseline without hyperparameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Injected {}

impl Method for Injected {
    fn at_most(&self, _rounds: u32) -> Effort {
        Effort {
            candidates: 2,
            ..Effort::default()
        }
    }

    fn choice(&self) -> Choice {
        Choice::Retained
    }
}

impl Search for Injected {
    fn search<'a>(&'a self, arena: &'a Arena) -> LocalBoxFuture<'a, Result<(), Halt>> {
        async move {
            let mut multipliers = DualSettings::default().start(&arena.limits(None));
            if !arena.open_round(0, &mut multipliers).await? {
                return Ok(());
            }
            let limits = arena.limits(None);
            let (seed, batch) = (arena.seed(), arena.batch(0));
            let constraints: Vec<_> = arena.constraint_texts(&limits);
            let prompt = Template::Inject
                .render(json!({ "prompt": &*arena.prompt(seed), "constraints": constraints }));
            let injected = arena.introduce(&prompt, 0, Origin::Injected, vec![seed])?;
            let measured = arena.measure(&[seed, injected], &batch).await?;
            let best = if measured.contains(&injected) {
                injected
            } else {
                seed
            };
            let event = RoundEvent {
                round: 0,
                scores: arena.scores(&measured, &batch, &limits, &multipliers)?,
                next_multipliers: multipliers.clone(),
                multipliers,
                parents: vec![seed],
                best: vec![best],
                retained: vec![best],
                batch: None,
            };
            arena.close_round(event, &batch).await
        }
        .boxed_local()
    }
}
