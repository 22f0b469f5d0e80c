//! The cost estimate: what a run costs at most, before it starts.

use capo_core::budget::Budget;
use capo_core::llm::Role;
use capo_core::methods;
use capo_core::problem::Problem;
use capo_core::study::{FeedbackForm, Rounds, StudyError};
use capo_core::workload::Split;
use capo_world::simulated::parameters::MODELS;
use indexmap::{IndexMap, IndexSet};
use serde::Serialize;

use crate::prices::{Price, PriceTable};
use crate::providers::Provider;
use crate::roles::serving;
use crate::spec::ModelSpec;

/// A rewriter whose answer cannot be used is asked once more.
const ANSWERS_PER_REWRITE: u64 = 2;

/// Upper bounds on a run. Tries that fail come on top: how many there will be nobody knows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    /// Candidates at most, the seed included; none for a search until the budget is spent.
    #[serde(skip)]
    pub candidates: Option<u64>,
    /// Rollouts at most, held-out ones included; null without any bound.
    pub rollouts: Option<u64>,
    /// Model calls at most; null without any bound.
    pub calls: Option<u64>,
    /// Tokens read and written at most; none without a budget of them, since nobody knows
    /// beforehand how many a call takes.
    #[serde(skip)]
    pub tokens: Option<u64>,
    /// US dollars at most; null when no bound is known.
    pub usd: Option<f64>,
    /// Whether `calls` holds those of the agent: not of one outside this program, which are counted
    /// as it reports them.
    pub calls_all_known: bool,
    /// Who may be asked.
    pub by_role: IndexMap<Role, RoleForecast>,
    /// The bounds if there were no budget.
    pub without_budget: Unbudgeted,
    /// The budgets that may end the run early: `rollouts`, `calls`, `tokens`, `usd`, `seconds`.
    pub cut_by: Vec<&'static str>,
    /// The budget.
    pub budget: Budget,
    /// Why its rollouts are too few for a search, if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_small: Option<String>,
}

/// Bounds that follow from the study alone; null for a search until the budget is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Unbudgeted {
    /// Rollouts of the search.
    pub search_rollouts: Option<u64>,
    /// Rollouts of the held-out evaluation.
    pub evaluation_rollouts: u64,
    /// Model calls.
    pub calls: Option<u64>,
}

/// What one role is asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoleForecast {
    /// Calls at most; null without any bound.
    pub calls: Option<u64>,
    /// Provider and model.
    pub model: String,
    /// Dollars per million tokens; null when unknown.
    pub price: Option<Price>,
    /// Whether dollars can be counted: by the price, or since the provider says in its answers what they cost.
    #[serde(skip)]
    pub is_priced: bool,
}

impl Forecast {
    /// The bounds of a study.
    ///
    /// # Errors
    /// When its method does not exist or does not take its settings.
    pub fn new(
        problem: &Problem,
        models: &IndexMap<Role, ModelSpec>,
        prices: &PriceTable,
    ) -> Result<Self, StudyError> {
        let study = problem.study();
        let (budget, repeats) = (study.budget, u64::from(study.study.repeats));
        let method = methods::build(&study.study.method, &study.method)?;
        let effort = match study.study.rounds {
            Rounds::Count(rounds) => Some(method.at_most(rounds)),
            Rounds::Open(_) => None,
        };

        let [searched_on, held_out] = [Split::Optimize, Split::Evaluate].map(|split| problem.places(split));
        let finalists = study.confirm.as_ref().map_or(0, |confirm| confirm.finalists);
        let (mut search, mut evaluation) = (Some(0), 0);
        let mut calls: IndexMap<Role, Option<u64>> = IndexMap::new();
        // No prompt meets an example more often than the study says, however rounds draw batches.
        for (workload, (searched_on, held_out)) in
            problem.workloads().iter().zip(searched_on.iter().zip(&held_out))
        {
            let each = searched_on.len() as u64 * repeats;
            let searched = effort.map(|effort| effort.candidates.saturating_mul(each));
            let kept = workload.examples(Split::Evaluate).len() - held_out.len();
            let held_out = (2 * held_out.len() + kept * finalists) as u64 * repeats;
            search = plus(search, searched);
            evaluation += held_out;
            let rollouts = plus(searched, Some(held_out));
            for (role, each) in workload.max_calls() {
                let total = calls.entry(role).or_insert(Some(0));
                // The budget counts rollouts of all workloads together.
                let bound = least(rollouts, budget.rollouts).map(|rollouts| rollouts.saturating_mul(each));
                *total = plus(*total, bound);
            }
        }
        let critiques = match study.feedback.form {
            FeedbackForm::Summary => effort.map(|effort| effort.critiques),
            FeedbackForm::Trajectory | FeedbackForm::None => Some(0),
        };
        let rewrites = effort.map(|effort| ANSWERS_PER_REWRITE * effort.rewrites);
        for (role, asked) in [(Role::Critic, critiques), (Role::Rewriter, rewrites)] {
            let total = calls.entry(role).or_insert(Some(0));
            *total = plus(*total, asked);
        }
        calls.retain(|_, calls| *calls != Some(0));

        let total = calls
            .values()
            .try_fold(0, |total, calls| plus(Some(total), *calls));
        let rollouts = plus(search, Some(evaluation));
        let by_role: IndexMap<Role, RoleForecast> = calls
            .into_iter()
            .filter_map(|(role, calls)| Some((role, RoleForecast::new(role, calls, models, prices)?)))
            .collect();
        // An agent of the user's own makes calls that nobody sees before it reports them.
        let all_seen = problem
            .workloads()
            .iter()
            .all(|workload| !workload.max_calls().is_empty());
        let free = all_seen
            && by_role
                .values()
                .all(|role| role.price.is_some_and(|price| price.is_free()));
        Ok(Self {
            candidates: effort.map(|effort| effort.candidates),
            tokens: budget.tokens,
            rollouts: least(rollouts, budget.rollouts),
            calls: least(total, budget.calls),
            usd: if free { Some(0.0) } else { budget.usd },
            calls_all_known: all_seen,
            cut_by: cut_by(&budget, rollouts, total, free),
            by_role,
            without_budget: Unbudgeted {
                search_rollouts: search,
                evaluation_rollouts: evaluation,
                calls: total,
            },
            budget,
            too_small: methods::too_small(problem, 0),
        })
    }

    /// Why a budget of dollars ends the run with the first call of a model, for each whose price nobody knows.
    pub fn unpriced(&self) -> Vec<String> {
        let Some(usd) = self.budget.usd else {
            return Vec::new();
        };
        let unpriced = self.by_role.values().filter(|asked| !asked.is_priced);
        let models: IndexSet<&str> = unpriced.map(|asked| asked.model.as_str()).collect();
        let told = |model: &str| Budget::unpriced(usd, &format!("{model}'s price"));
        models.into_iter().map(told).collect()
    }
}

impl RoleForecast {
    pub(crate) fn new(
        role: Role,
        calls: Option<u64>,
        models: &IndexMap<Role, ModelSpec>,
        prices: &PriceTable,
    ) -> Option<Self> {
        let (_, spec) = serving(role, models)?;
        let provider = spec.provider.get();
        let model = spec.model.as_deref().or(provider.model).unwrap_or_default();
        let price = spec
            .price
            .or_else(|| Some(prices.get(provider.name, model)?.share(spec.share_of_price())))
            .or_else(|| in_process(provider, model));
        Some(Self {
            calls,
            model: format!("{}/{model}", provider.name),
            price,
            is_priced: price.is_some() || provider.reports_cost,
        })
    }
}

/// What a model in this process says it costs, which no price table lists: simulated dollars, or nothing.
fn in_process(provider: &Provider, model: &str) -> Option<Price> {
    if !provider.in_process {
        return None;
    }
    let simulated = MODELS.iter().find(|known| known.name == model);
    let [input, output] = match (simulated, provider.model) {
        (Some(model), _) => [model.usd_per_million_input, model.usd_per_million_output],
        (None, Some(_)) => return None,
        (None, None) => [0.0, 0.0],
    };
    Some(Price {
        input,
        output,
        cached_input: None,
        cache_write: None,
    })
}

fn plus(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.saturating_add(b?))
}

fn least(bound: Option<u64>, budget: Option<u64>) -> Option<u64> {
    bound.into_iter().chain(budget).min()
}

/// The budgets that are below the bounds, or for which there is no bound to compare with.
fn cut_by(budget: &Budget, rollouts: Option<u64>, calls: Option<u64>, free: bool) -> Vec<&'static str> {
    let below = |budget: Option<u64>, bound: Option<u64>| {
        budget.is_some_and(|budget| bound.is_none_or(|bound| budget < bound))
    };
    [
        ("rollouts", below(budget.rollouts, rollouts)),
        ("calls", below(budget.calls, calls)),
        ("tokens", budget.tokens.is_some()),
        ("usd", budget.usd.is_some() && !free),
        ("seconds", budget.seconds.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, cuts)| cuts.then_some(name))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{STUDY, problem};

    fn forecast(study: &str) -> Forecast {
        let problem = problem(study);
        let read = |(&role, table)| (role, ModelSpec::parse(table).unwrap());
        let models = problem.study().models.iter().map(read).collect();
        Forecast::new(&problem, &models, &PriceTable::shipped()).unwrap()
    }

    #[test]
    fn bounds_follow_from_the_study() {
        let forecast = forecast(STUDY);
        // The seed and two children on three examples; the seed and the best on two held out.
        assert_eq!((forecast.candidates, forecast.rollouts), (Some(3), Some(9 + 4)));
        assert_eq!(forecast.by_role[&Role::Agent].calls, Some(130));
        assert_eq!(forecast.by_role[&Role::Critic].calls, Some(2));
        assert_eq!(forecast.by_role[&Role::Rewriter].calls, Some(4));
        assert_eq!(forecast.calls, Some(136));
        assert_eq!((forecast.usd, forecast.cut_by.as_slice()), (None, [].as_slice()));
        assert!(forecast.by_role[&Role::Rewriter].price.is_some());
    }

    #[test]
    fn a_budget_of_dollars_lacks_a_price_where_none_is_known_or_told() {
        let unpriced = |provider: &str, budget: &str| {
            let agent = format!("provider = \"{provider}\"\nmodel = \"m-99\"");
            let study = STUDY.replace("provider = \"simulated\"", &agent) + budget;
            forecast(&study).unpriced()
        };
        let told = unpriced("openai", "[budget]\nusd = 2.0");
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].starts_with("openai/m-99's price is unknown, so a budget of $2.00"),
            "{told:?}"
        );
        assert!(unpriced("openai", "").is_empty());
        for provider in ["openrouter", "ollama"] {
            assert!(unpriced(provider, "[budget]\nusd = 2.0").is_empty(), "{provider}");
        }
    }

    #[test]
    fn a_budget_cuts_and_says_so() {
        let forecast = forecast(&format!("{STUDY}[budget]\nrollouts = 5\ncalls = 1000\nusd = 2.0"));
        assert_eq!((forecast.rollouts, forecast.calls), (Some(5), Some(56)));
        assert_eq!(forecast.without_budget.search_rollouts, Some(9));
        assert_eq!((forecast.usd, forecast.tokens), (Some(2.0), None));
        assert_eq!(forecast.cut_by, ["rollouts", "usd"]);
    }

    #[test]
    fn tokens_are_bounded_by_a_budget_of_them_alone() {
        let forecast = forecast(&format!("{STUDY}[budget]\ntokens = 9000"));
        assert_eq!(
            (forecast.tokens, forecast.cut_by.as_slice()),
            (Some(9000), ["tokens"].as_slice())
        );
        let json = serde_json::to_value(&forecast).unwrap();
        assert!(json.get("tokens").is_none() && json.get("candidates").is_none());
    }

    #[test]
    fn feedback_that_asks_no_critic_costs_no_critiques() {
        let forecast = forecast(&format!("{STUDY}[feedback]\nform = \"none\""));
        assert_eq!(forecast.by_role.get(&Role::Critic), None);
        assert_eq!(forecast.calls, Some(134));
    }

    #[test]
    fn a_search_until_the_budget_is_spent_is_bounded_by_it_alone() {
        let open = STUDY.replace("rounds = 2", "rounds = \"until-budget\"");
        let forecast = forecast(&format!("{open}[budget]\nrollouts = 50"));
        assert_eq!((forecast.candidates, forecast.rollouts), (None, Some(50)));
        assert_eq!(forecast.by_role[&Role::Agent].calls, Some(500));
        assert_eq!(forecast.calls, None);
        assert_eq!(forecast.cut_by, ["rollouts"]);
    }

    #[test]
    fn calls_in_batches_cost_half_of_the_listed_price() {
        let price = |more: &str| {
            let agent = format!("provider = \"openai\"\nmodel = \"gpt-5-mini\"{more}");
            let forecast = forecast(&STUDY.replace("provider = \"simulated\"", &agent));
            forecast.by_role[&Role::Agent].price.unwrap()
        };
        assert_eq!(price("\nbatch = true"), price("").share(0.5));
    }

    #[test]
    fn free_models_cost_nothing_whatever_they_are_asked() {
        let free = STUDY.replace(
            "provider = \"simulated\"",
            "provider = \"simulated\"\nprice = { input = 0, output = 0 }",
        );
        assert_eq!(forecast(&free).usd, Some(0.0));
    }
}
