//! The prompt that a run returned, under another model: what is asked, and what came of it.

use capo_core::budget::Budget;
use capo_core::ids::CandidateId;
use capo_core::llm::Role;
use capo_core::reading::comparison::{self, Difference, PromptOf};
use capo_core::reading::examples::Examples;
use capo_core::reading::{in_force, lineage, measured, metrics};
use capo_core::run_state::RunState;
use capo_core::study::{Rounds, Study};
use capo_core::usage::Usage;
use capo_core::workload::Split;
use capo_models::prices::Cached;
use capo_models::serving;

use super::outcome::{MetricRow, costs};
use super::regression::hold_thresholds;
use crate::format;
use crate::storage::Check;
use crate::studies;

/// The study of a run for measuring alone: under its thresholds, and with whoever else took part in held-out rollouts.
pub fn study(state: &RunState) -> Option<Study> {
    let mut study = state.study()?.study.clone();
    hold_thresholds(state, &mut study);
    for role in [Role::User, Role::Judge] {
        let is_asked = state.ledger().evaluation_usage().role(role).calls > 0;
        let table = serving(role, &study.models).map(|(_, table)| table.clone());
        if let Some(table) = table.filter(|_| is_asked) {
            study.models.insert(role, table);
        }
    }
    // Nobody rewrites anything, round by round or until a budget is spent.
    study.study.rounds = Rounds::default();
    study
        .models
        .retain(|role, _| !matches!(role, Role::Critic | Role::Rewriter));
    study.budget = Budget::default();
    Some(study)
}

/// How many rollouts a check of the prompt that a run returned takes.
pub fn rollouts(state: &RunState, check: &Check) -> u64 {
    let repeats = state.study().map_or(1, |event| event.study.study.repeats);
    let prompts = if lineage::seed(state) == Some(CandidateId::of(&check.prompt)) {
        1
    } else {
        2
    };
    prompts * check.examples as u64 * u64::from(repeats)
}

/// What a check may spend: its rollouts, and of calls, tokens and dollars what the run might, the last where they can be
/// counted.
pub fn budget(state: &RunState, study: &Study, check: &Check) -> Budget {
    let is_priced = study
        .models
        .values()
        .all(|table| studies::unpriced(table).is_none());
    Budget {
        rollouts: Some(rollouts(state, check)),
        usd: state.budget().usd.filter(|_| is_priced),
        seconds: None,
        ..state.budget()
    }
}

/// What it is expected to take under the agent of a study, by what rollouts of the run took, and at most in
/// dollars.
pub fn expected(state: &RunState, study: &Study, check: &Check) -> Option<String> {
    let rollouts = rollouts(state, check);
    let (mut usage, mut known) = (Usage::default(), 0);
    for name in state.study()?.workloads.keys() {
        let each = state.per_rollout(name)?;
        usage.merge(&each.usage);
        known += each.rollouts;
    }
    let of_all = rollouts as f64 / known as f64;
    let (agent, total) = (usage.role(Role::Agent), usage.total());
    let price = study.models.get(&Role::Agent).and_then(studies::price);
    let own = price.map(|price| price.of(agent.input_tokens, Cached::default(), agent.output_tokens));
    let others = usage.iter().filter(|(role, _)| *role != Role::Agent);
    let usd: Option<f64> = others.map(|(_, usage)| usage.usd).chain([own]).sum();
    let most = budget(state, study, check).usd;
    let most = most.map(|usd| format!(" It stops at {}, as the run.", format::dollars(Some(usd))));
    let scaled = |value: u64| (of_all * value as f64).round() as u64;
    Some(format!(
        "By what rollouts took in this run, {} are expected to take {} calls, {} tokens and {}.{}",
        format::count(rollouts),
        format::count(scaled(total.calls)),
        format::tokens(scaled(total.tokens())),
        usd.map_or_else(
            || "an unknown number of dollars".to_owned(),
            |usd| format::dollars(Some(of_all * usd))
        ),
        most.unwrap_or_default(),
    ))
}

/// How far a check is, and what it has spent.
pub fn progress(state: &RunState, check: &Check) -> String {
    let seed = lineage::seed(state);
    let done = |candidate: &CandidateId| {
        let examples = Examples::whole(state, Split::Evaluate);
        measured::progress(state, candidate, &examples).done
    };
    let spent = costs(state).pop().map(|all| all.usage).unwrap_or_default();
    format!(
        "Of {}, the prompt was measured on {}, the seed prompt on {}: {} rollouts, {} calls, {} tokens, {}.",
        format::counted(check.examples, "held-out example"),
        done(&CandidateId::of(&check.prompt)),
        seed.map_or(0, |seed| done(&seed)),
        format::count(state.ledger().rollouts()),
        format::count(spent.calls),
        format::tokens(spent.tokens()),
        format::dollars(spent.usd),
    )
}

/// The table of what was measured: the prompt and the seed prompt under the model.
pub fn rows(state: &RunState, check: &Check) -> Vec<MetricRow> {
    let thresholds = in_force::thresholds(state, None);
    let of = |candidate: CandidateId| measured::on_split(state, &candidate, Split::Evaluate).estimates;
    let best = of(CandidateId::of(&check.prompt));
    let seed = lineage::seed(state).map(of).unwrap_or_default();
    let row = |metric: metrics::StudiedMetric| MetricRow {
        best: best.get(metric.name()).copied(),
        seed: seed.get(metric.name()).copied(),
        threshold: thresholds.get(metric.name()).copied(),
        metric,
    };
    metrics::of_study(state).into_iter().map(row).collect()
}

/// The prompt under the model minus itself in the run that returned it, on the held-out examples that the check measured.
pub fn differences(state: &RunState, run: &RunState, check: &Check) -> Vec<Difference> {
    let candidate = CandidateId::of(&check.prompt);
    let [here, there] = [state, run].map(|state| PromptOf { state, candidate });
    comparison::differences_on_shared(here, there, Split::Evaluate).metrics
}

/// The prompt minus the seed prompt, both under the model; none where they are the same.
pub fn against_seed(state: &RunState, check: &Check) -> Vec<Difference> {
    let candidate = CandidateId::of(&check.prompt);
    let seed = PromptOf::seed(state).filter(|seed| seed.candidate != candidate);
    let found = seed
        .map(|seed| comparison::differences_on_shared(PromptOf { state, candidate }, seed, Split::Evaluate));
    found.unwrap_or_default().metrics
}

/// The prompt of a check, if it is not the one that the run returned last.
pub fn earlier(run: &RunState, check: &Check) -> Option<CandidateId> {
    let candidate = CandidateId::of(&check.prompt);
    let returned = run.finished()?.best?;
    (returned != candidate).then_some(candidate)
}

#[cfg(test)]
mod tests {
    use capo_core::journal::Event;
    use capo_core::study::UntilBudget;
    use serde_json::json;

    use super::*;
    use crate::run::fixture::{events, fold};

    #[test]
    fn a_check_asks_the_other_agent_and_whoever_else_took_part_as_before() {
        let mut events = events(|_| {}, None);
        let Event::Study(begun) = &mut events[0] else {
            panic!("a journal begins with its study");
        };
        begun.study.constraints[0].relative_to_seed = Some(0.5);
        let rewriter = json!({ "provider": "openai", "model": "gpt-5-mini" });
        begun.study.models.insert(Role::Rewriter, rewriter);
        begun.study.study.rounds = Rounds::Open(UntilBudget::UntilBudget);
        begun.study.budget = Budget {
            calls: Some(20_000),
            usd: Some(3.0),
            seconds: Some(60.0),
            ..Budget::default()
        };
        for event in &mut events {
            if let Event::Rollout(rollout) = event {
                let agent = rollout.usage.role(Role::Agent);
                rollout.usage.add(Role::User, agent);
            }
        }
        let state = fold(&events);
        let best = state.finished().unwrap().best.unwrap();
        let mut check = Check {
            of: "r".into(),
            prompt: state.candidate(&best).unwrap().prompt.to_string(),
            examples: 5,
        };
        let mut study = study(&state).unwrap();
        study = study.checked().unwrap();
        let roles: Vec<Role> = study.models.keys().copied().collect();
        assert_eq!(roles, [Role::Agent, Role::User]);
        let first = &study.constraints[0];
        assert_eq!((first.threshold, first.relative_to_seed), (Some(0.4), None));

        let agent = |model: &str| json!({ "provider": "openai", "model": model });
        study.models.insert(Role::Agent, agent("gpt-5-mini"));
        let of = |study: &Study, check: &Check| {
            let budget = budget(&state, study, check);
            assert_eq!((budget.calls, budget.seconds), (Some(20_000), None));
            (budget.rollouts, budget.usd)
        };
        assert_eq!(of(&study, &check), (Some(10), Some(3.0)));
        let words = expected(&state, &study, &check).unwrap();
        assert!(
            words.contains(" 10 are expected") && words.ends_with(" It stops at $3.00, as the run."),
            "{words}"
        );
        study.models.insert(Role::Agent, agent("unheard of"));
        assert_eq!(of(&study, &check), (Some(10), None));
        let words = expected(&state, &study, &check).unwrap();
        assert!(words.ends_with("unknown number of dollars."), "{words}");
        check.prompt = study.prompt.text.clone().unwrap();
        assert_eq!(of(&study, &check).0, Some(5));
    }

    #[test]
    fn what_was_measured_is_told_of_both_prompts_against_the_thresholds() {
        let state = fold(&events(|_| {}, None));
        let finished = state.finished().unwrap();
        let check = Check {
            of: "r".into(),
            prompt: state
                .candidate(&finished.best.unwrap())
                .unwrap()
                .prompt
                .to_string(),
            examples: 8,
        };
        for row in rows(&state, &check) {
            assert_eq!(row.best, finished.evaluation.get(row.metric.name()).copied());
            assert_eq!(row.seed, finished.seed_evaluation.get(row.metric.name()).copied());
            assert_eq!(row.threshold.is_some(), row.metric.is_constraint());
        }
        let words = progress(&state, &check);
        assert!(
            words.starts_with(
                "Of eight held-out examples, the prompt was measured on 8, the seed prompt on 8:"
            ),
            "{words}"
        );
        let same = differences(&state, &state, &check);
        assert!(!same.is_empty() && same.iter().all(|one| one.paired.mean == 0.0));
    }

    #[test]
    fn a_check_of_fewer_examples_is_paired_on_those() {
        let mut events = events(|_| {}, None);
        let run = fold(&events);
        let best = run.finished().unwrap().best.unwrap();
        let mut check = Check {
            of: "r".into(),
            prompt: run.candidate(&best).unwrap().prompt.to_string(),
            examples: 3,
        };
        let among = check.among(run.study().unwrap().workloads["desk"].evaluate.clone());
        events.retain(|event| match event {
            Event::Rollout(rollout) => among.contains(&rollout.example),
            Event::Finished(_) => false,
            _ => true,
        });
        let state = fold(&events);
        let same = differences(&state, &run, &check);
        assert!(same.iter().all(|one| one.paired.n == 3 && one.paired.mean == 0.0));
        let seed = against_seed(&state, &check);
        assert_eq!((same.len(), seed.len()), (4, 4));
        assert!(seed.iter().all(|one| one.paired.n == 3) && seed.iter().any(|one| one.paired.mean != 0.0));

        assert_eq!(earlier(&run, &check), None);
        check.prompt = run.study().unwrap().study.prompt.text.clone().unwrap();
        assert_eq!(earlier(&run, &check), Some(CandidateId::of(&check.prompt)));
        assert_eq!(earlier(&state, &check), None, "the run has returned none yet");
        assert!(against_seed(&state, &check).is_empty());
    }
}
