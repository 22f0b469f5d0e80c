//! The pace of a run, which is a matter of its models.

use capo_core::arena::RunOptions;
use capo_core::llm::Role;
use indexmap::IndexMap;

use crate::spec::{CONCURRENCY, ModelSpec};

/// What [`RunOptions`] needs to know of the models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Effects under way at once, at least 1: as many as the agent's model takes calls.
    pub concurrency: usize,
    /// How often a failing effect is tried in one run: once where the agent's model is never tried
    /// again.
    pub attempts: u32,
}

/// The pace of a study with these models.
pub(crate) fn pace(specs: &IndexMap<Role, ModelSpec>) -> Pace {
    let agent = specs.get(&Role::Agent);
    Pace {
        concurrency: agent.map_or(CONCURRENCY, ModelSpec::most_calls),
        attempts: match agent.and_then(|spec| spec.retries) {
            Some(0) => 1,
            _ => RunOptions::default().attempts,
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(agent: &Value) -> Pace {
        pace(&IndexMap::from([(Role::Agent, ModelSpec::parse(agent).unwrap())]))
    }

    #[test]
    fn the_agents_model_sets_the_pace() {
        let usual = RunOptions::default().attempts;
        let (concurrency, attempts) = (CONCURRENCY, usual);
        let plain = Pace {
            concurrency,
            attempts,
        };
        assert_eq!(pace(&IndexMap::new()), plain);
        let openai = json!({ "provider": "openai", "model": "m" });
        assert_eq!(of(&openai), plain);
        let careful = json!({ "provider": "openai", "model": "m", "concurrency": 3, "retries": 0 });
        let (concurrency, attempts) = (3, 1);
        assert_eq!(
            of(&careful),
            Pace {
                concurrency,
                attempts
            }
        );
        let stubborn = json!({ "provider": "openai", "model": "m", "retries": 9 });
        assert_eq!(of(&stubborn).attempts, usual);
    }
}
