//! Expected consumption: what a whole study is expected to take, by the rollouts that were measured so far.

use capo_core::budget::Budget;
use capo_core::journal::WorkloadRecord;
use capo_core::llm::Role;
use capo_core::methods::{self, Method};
use capo_core::run_state::{RunState, Spread};
use capo_core::study::{FeedbackForm, Rounds, Study};
use capo_core::usage::RoleUsage;
use indexmap::IndexMap;
use serde::Serialize;

use crate::forecast::RoleForecast;
use crate::pace::pace;
use crate::prices::{Cached, PriceTable};
use crate::spec::ModelSpec;

/// How far ahead a search until the budget is spent is looked at, in rounds: its budget ends it long before.
const OPEN: u32 = 1_000;

/// After a search with minibatches, candidates of the final choice beside its last pool.
const BESIDE_THE_POOL: u64 = 4;

/// Characters that a token stands for.
const CHARACTERS: u64 = 4;

/// Tokens around what a critic or a rewriter is shown: the deployment, the goal, how to answer.
const AROUND: u64 = 500;

/// Tokens of a critique, which may have 300 words.
const CRITIQUE: u64 = 400;

/// One quantity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// The estimate.
    pub mean: f64,
    /// Two standard errors of the mean over the measured rollouts below it; null by a single one, which says nothing of
    /// how others differ.
    pub low: Option<f64>,
    /// As many above it.
    pub high: Option<f64>,
}

impl Figure {
    /// The estimate with its range, each number written so; no range where its ends read the same.
    pub fn text(self, write: impl Fn(f64) -> String) -> String {
        let mean = write(self.mean);
        match (self.low.map(&write), self.high.map(&write)) {
            (Some(low), Some(high)) if low != high => format!("{mean} ({low} to {high})"),
            _ => mean,
        }
    }
}

/// What one role is expected to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RoleExpected {
    /// Calls.
    pub calls: u64,
    /// Whether what they take was measured; else it is estimated from the lengths of what is sent.
    pub measured: bool,
}

/// What a whole study is expected to take when every rewrite gives a prompt of its own; tries that fail come on top. Where
/// the budget ends it earlier, what it takes until then.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Expected {
    /// The rollouts that it goes by.
    pub measured: u64,
    /// The part of the study that the budget has room for, 1 for all of it.
    pub share: f64,
    /// Rollouts, held-out ones included.
    pub rollouts: u64,
    /// Model calls, as far as they are told.
    pub calls: Figure,
    /// Tokens, read and written.
    pub tokens: Figure,
    /// US dollars; null where a price is unknown.
    pub usd: Option<Figure>,
    /// Seconds with `concurrency` rollouts under way at once; null where nobody says how long a call takes.
    pub seconds: Option<Figure>,
    /// Rollouts under way at once.
    pub concurrency: usize,
    /// Who is asked.
    pub by_role: IndexMap<Role, RoleExpected>,
}

/// The mean of a sum and its variance, NaN where a part of it is unknown.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    mean: f64,
    variance: f64,
}

impl Sum {
    fn add(&mut self, times: f64, each: &Spread) {
        self.mean += times * each.mean();
        self.variance += (times * each.standard_error()).powi(2);
    }

    /// The part of it that the budget has room for.
    fn figure(self, share: f64, bound: Option<f64>) -> Option<Figure> {
        let within = |value: f64| bound.map_or(value, |bound| value.min(bound)).max(0.0);
        let (mean, error) = (share * self.mean, share * 2.0 * self.variance.sqrt());
        let end = |end: f64| error.is_finite().then(|| within(end));
        mean.is_finite().then(|| Figure {
            mean: within(mean),
            low: end(mean - error),
            high: end(mean + error),
        })
    }
}

impl Expected {
    /// What a run tells of its study within a budget; none before its first rollout, and where no end of the search is in
    /// sight.
    pub fn of(state: &RunState, budget: &Budget, prices: &PriceTable) -> Option<Self> {
        let event = state.study()?;
        let study = &event.study;
        let read = |(&role, table)| Some((role, ModelSpec::parse(table).ok()?));
        let specs: IndexMap<Role, ModelSpec> = study.models.iter().map(read).collect::<Option<_>>()?;
        let concurrency = pace(&specs).concurrency;
        let method = methods::build(&study.study.method, &study.method).ok()?;
        let rounds = match study.study.rounds {
            Rounds::Count(rounds) => rounds,
            Rounds::Open(_) => OPEN,
        };
        let [mut calls, mut tokens, mut usd, mut seconds] = [Sum::default(); 4];
        let (mut rollouts, mut measured, mut longest) = (0.0, 0, 0.0_f64);
        let mut by_role: IndexMap<Role, (f64, bool)> = IndexMap::new();
        for (name, record) in &event.workloads {
            let each = state.per_rollout(name)?;
            let count = course(study, record, &*method, rounds) as f64;
            calls.add(count, &each.calls);
            tokens.add(count, &each.tokens);
            usd.add(count, &each.usd);
            seconds.add(count / concurrency as f64, &each.seconds);
            longest = longest.max(each.seconds.mean());
            for (role, usage) in each.usage.iter().filter(|(_, usage)| usage.calls > 0) {
                let calls = count * usage.calls as f64 / each.rollouts as f64;
                by_role.entry(role).or_insert((0.0, true)).0 += calls;
            }
            rollouts += count;
            measured += each.rollouts;
        }
        // However many are under way at once, a round waits for its last.
        seconds.mean = seconds.mean.max(f64::from(rounds) * longest);
        let is_timed = seconds.mean > 0.0;
        let price = |role| RoleForecast::new(role, None, &specs, prices)?.price;
        let consumed = state.ledger().usage();
        for (role, times, [input, output]) in lengths(study, &*method, rounds) {
            let mut each = consumed.role(role);
            let is_measured = each.calls > 0;
            if !is_measured {
                // As fast as others write.
                let all = consumed.total();
                each = RoleUsage {
                    calls: 1,
                    input_tokens: input,
                    output_tokens: output,
                    usd: price(role).map(|price| price.of(input, Cached::default(), output)),
                    seconds: all.seconds * output as f64 / all.output_tokens.max(1) as f64,
                };
            }
            let of_call = 1.0 / each.calls as f64;
            calls.mean += times;
            tokens.mean += times * of_call * each.tokens() as f64;
            usd.mean += times * of_call * each.usd.unwrap_or(f64::NAN);
            // Those of a round are asked for at once.
            seconds.mean += times.min(f64::from(rounds)) * of_call * each.seconds;
            by_role.insert(role, (times, is_measured));
        }

        let [of_rollouts, of_calls, of_tokens] =
            [budget.rollouts, budget.calls, budget.tokens].map(|bound| bound.map(|bound| bound as f64));
        let of_seconds = budget.seconds.filter(|_| is_timed);
        let share = [
            (of_rollouts, rollouts),
            (of_calls, calls.mean),
            (of_tokens, tokens.mean),
            (budget.usd, usd.mean),
            (of_seconds, seconds.mean),
        ];
        let room = |(bound, of): (Option<f64>, f64)| bound.map(|bound| bound / of);
        let share = share.into_iter().filter_map(room).fold(1.0, f64::min);
        if share == 1.0 && matches!(study.study.rounds, Rounds::Open(_)) {
            return None;
        }
        let role = |(role, (calls, measured)): (Role, (f64, bool))| {
            let calls = (share * calls).round() as u64;
            (role, RoleExpected { calls, measured })
        };
        Some(Self {
            measured,
            share,
            rollouts: (share * rollouts).round() as u64,
            calls: calls.figure(share, of_calls)?,
            tokens: tokens.figure(share, of_tokens)?,
            usd: usd.figure(share, budget.usd),
            seconds: seconds.figure(share, of_seconds).filter(|_| is_timed),
            concurrency,
            by_role: by_role.into_iter().map(role).collect(),
        })
    }
}

/// Rollouts of a workload over the whole course of a study without a budget.
fn course(study: &Study, record: &WorkloadRecord, method: &dyn Method, rounds: u32) -> u64 {
    let (candidates, pool) = (method.at_most(rounds).candidates, method.pool() as u64);
    let examples = record.optimize.len() as u64;
    let searched = match study.study.batch {
        None => candidates * examples,
        Some(batch) => {
            // Each round measures the pool anew, unless its batch begins with that of the round before.
            let drawn_anew = study.study.batch_growth.is_none();
            let again = if drawn_anew { u64::from(rounds) * pool } else { 0 };
            let in_rounds = (candidates + again) * examples.min(batch as u64);
            (in_rounds + (pool + BESIDE_THE_POOL) * examples).min(candidates * examples)
        }
    };
    let kept = record.reserve.len() as u64;
    let finalists = study
        .confirm
        .as_ref()
        .map_or(0, |confirm| confirm.finalists as u64);
    let held_out = 2 * (record.evaluate.len() as u64).saturating_sub(kept) + kept * finalists;
    (searched + held_out) * u64::from(study.study.repeats)
}

/// Critiques and rewrites of a study, and by the lengths of what is sent how many tokens each reads and writes.
fn lengths(study: &Study, method: &dyn Method, rounds: u32) -> Vec<(Role, f64, [u64; 2])> {
    let effort = method.at_most(rounds);
    let prompt = study.prompt.text.as_ref();
    let prompt = prompt.map_or(0, |text| text.chars().count() as u64 / CHARACTERS);
    let evidence = study.feedback.max_characters as u64 / CHARACTERS;
    let (critiques, feedback) = match study.feedback.form {
        FeedbackForm::Summary => (effort.critiques, CRITIQUE),
        FeedbackForm::Trajectory => (0, evidence),
        FeedbackForm::None => (0, 0),
    };
    let of_critic = [AROUND + prompt + evidence, CRITIQUE];
    let of_rewriter = [AROUND + prompt + feedback, prompt + CRITIQUE];
    let mut asked = vec![
        (Role::Critic, critiques as f64, of_critic),
        (Role::Rewriter, effort.rewrites as f64, of_rewriter),
    ];
    asked.retain(|(_, times, _)| *times > 0.0);
    asked
}

#[cfg(test)]
mod tests {
    use capo_core::ids::CandidateId;
    use capo_core::journal::{Event, SCHEMA};
    use serde_json::{Value, json};

    use super::*;
    use crate::fixture::{STUDY, problem};

    /// What a journal tells in which so many rollouts cost so many dollars each.
    fn expected(study: &str, dollars: &[Option<f64>]) -> Option<Expected> {
        let problem = problem(study);
        let (seed, prompt) = (CandidateId::of(problem.seed_prompt()), problem.seed_prompt());
        let mut state = RunState::default();
        let mut apply = |event: Value| {
            let event: Event = serde_json::from_value(event).unwrap();
            state.apply(&event, 0).unwrap();
        };
        apply(json!({
            "event": "study", "schema": SCHEMA, "id": problem.id(), "study": problem.study(), "started_at": "",
            "workloads": problem.records(),
        }));
        apply(json!({
            "event": "candidate", "id": seed, "round": 0, "origin": "seed", "parents": [], "prompt": &**prompt,
        }));
        for (example, usd) in ["a", "b", "c"].into_iter().zip(dollars) {
            apply(json!({
                "event": "rollout", "candidate": seed, "split": "optimize", "workload": "dialogues",
                "example": example, "repeat": 0, "measurements": { "success": 1.0, "prompt_length": 0.005 },
                "trace": { "messages": [] },
                "usage": { "agent": {
                    "calls": 3, "input_tokens": 90, "output_tokens": 10, "usd": usd, "seconds": 8.0,
                } },
            }));
        }
        Expected::of(&state, &state.budget(), &PriceTable::shipped())
    }

    /// The study with models that cost nothing beside what rollouts are told to.
    fn free() -> String {
        let price = "provider = \"simulated\"\nprice = { input = 0, output = 0 }";
        STUDY.replace("provider = \"simulated\"", price)
    }

    #[test]
    fn the_whole_is_as_many_rollouts_as_those_measured_with_what_they_differ_by() {
        let expected = expected(&free(), &[Some(0.01), Some(0.03)]).unwrap();
        // The seed and two children on three examples; the seed and the best on two held out.
        assert_eq!(
            (expected.measured, expected.rollouts, expected.share),
            (2, 13, 1.0)
        );
        let usd = expected.usd.unwrap();
        for (found, each) in [(Some(usd.mean), 0.02), (usd.low, 0.0), (usd.high, 0.04)] {
            assert!((found.unwrap() - 13.0 * each).abs() < 1e-12, "{usd:?}");
        }
        let text = expected.calls.text(|calls| calls.to_string());
        assert_eq!(text, "43", "3 by each rollout, no more, no less, and 4");
        let asked = |role: Role| (expected.by_role[&role].calls, expected.by_role[&role].measured);
        assert_eq!(
            [Role::Agent, Role::Critic, Role::Rewriter].map(asked),
            [(39, true), (2, false), (2, false)]
        );
        // Sixteen at once, but each of two rounds waits for its own, and has a critique and a rewrite.
        assert!(expected.seconds.unwrap().mean > 2.0 * 8.0);
    }

    #[test]
    fn what_is_unknown_stays_unknown() {
        assert_eq!(expected(STUDY, &[]), None);
        let one = expected(&free(), &[Some(0.01)]).unwrap();
        assert_eq!(one.usd.unwrap().high, None, "one rollout has no range");
        let unpriced = expected(&free(), &[Some(0.01), None]).unwrap();
        assert_eq!((unpriced.usd, unpriced.measured), (None, 2));
        assert_eq!(unpriced.tokens.low, Some(unpriced.tokens.mean));
    }

    #[test]
    fn a_budget_bounds_what_is_expected() {
        let some = [Some(0.01), Some(0.03)];
        let bounded = expected(&format!("{}[budget]\nusd = 0.12", free()), &some).unwrap();
        assert_eq!(bounded.rollouts, 6, "12 of 26 cents");
        assert!(bounded.usd.unwrap().high.unwrap() <= 0.12);
        let open = free().replace("rounds = 2", "rounds = \"until-budget\"");
        let spent = expected(&format!("{open}[budget]\nrollouts = 50"), &some).unwrap();
        assert_eq!(spent.rollouts, 50);
    }
}
