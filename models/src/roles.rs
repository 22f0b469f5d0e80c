//! The roles of a run, and the models that answer for them.

use std::rc::Rc;

use capo_core::llm::{Llm, RewriteForm, Role};
use capo_core::methods;
use capo_core::problem::Problem;
use capo_core::study::StudyError;
use indexmap::IndexMap;
use serde_json::Value;

use crate::error::BuildError;
use crate::providers::LOCAL;
use crate::spec::ModelSpec;

/// Everybody a run of the problem may ask, each once: those its workloads need, then critic and
/// rewriter, if its method asks them.
///
/// # Errors
/// When its method does not exist or does not take its settings.
pub fn roles(problem: &Problem) -> Result<Vec<Role>, StudyError> {
    let study = problem.study();
    let method = methods::build(&study.study.method, &study.method)?;
    let needed = problem
        .workloads()
        .iter()
        .flat_map(|workload| workload.max_calls())
        .filter(|(_, calls)| *calls > 0)
        .map(|(role, _)| role);
    let asked = needed.chain(methods::asked(&*method, &study.study.rounds));
    let mut roles = Vec::new();
    for role in asked {
        if !roles.contains(&role) {
            roles.push(role);
        }
    }
    Ok(roles)
}

/// Refuses models of which none serves somebody who will be asked. `models` are tables or what is
/// made of them.
///
/// # Errors
/// [`BuildError::NoModel`] for the first such role.
pub fn check_roles<M: Serves>(asked: &[Role], models: &IndexMap<Role, M>) -> Result<(), BuildError> {
    match asked.iter().find(|role| serving(**role, models).is_none()) {
        Some(&role) => Err(BuildError::NoModel { role }),
        None => Ok(()),
    }
}

/// Refuses an agent whose calls are handed in together (`batch`) where more than one call of it makes a rollout, or where
/// somebody else who is asked has no other model: each of these calls would be waited for by itself.
///
/// # Errors
/// What in the study is in the way, and what to do.
pub(crate) fn check_batch(
    problem: &Problem,
    asked: &[Role],
    models: &IndexMap<Role, ModelSpec>,
) -> Result<(), BuildError> {
    if !models.get(&Role::Agent).is_some_and(|spec| spec.batch) {
        return Ok(());
    }
    let wrong = |message: String| {
        let role = Role::Agent;
        Err(BuildError::Spec { role, message })
    };
    for workload in problem.workloads() {
        let of_agent = |(role, _): &(Role, u64)| *role == Role::Agent;
        let calls = workload.max_calls().into_iter().find(of_agent);
        if calls != Some((Role::Agent, 1)) {
            return wrong(format!(
                "`batch` needs rollouts of one call of the agent, as those of a table are; those of `{}` are not: \
                 leave it out",
                workload.name()
            ));
        }
    }
    let falls_back =
        |role: &&Role| serving(**role, models).is_some_and(|(serving, _)| serving == Role::Agent);
    // A critic falls back to the rewriter, who comes behind it.
    let mut others = asked.iter().rev().filter(|role| **role != Role::Agent);
    match others.find(falls_back) {
        Some(role) => wrong(format!(
            "`batch` is for the agent alone, and the role `{role}` has no other model: add a table [models.{role}]"
        )),
        None => Ok(()),
    }
}

/// A model of a study, or the table it is made of.
pub trait Serves {
    /// Whether it was trained to rewrite prompts, and can do nothing else.
    fn only_rewrites(&self) -> bool;
}

impl Serves for Value {
    fn only_rewrites(&self) -> bool {
        self["provider"] == LOCAL || self["rewrite_form"] == "learned"
    }
}

impl Serves for ModelSpec {
    fn only_rewrites(&self) -> bool {
        self.is_local() || self.rewrite_form == Some(RewriteForm::Learned)
    }
}

impl Serves for Rc<dyn Llm> {
    fn only_rewrites(&self) -> bool {
        self.rewrite_form() == RewriteForm::Learned
    }
}

/// What serves `role`: its own entry of `models`, or that of the first role it falls back to that
/// has one ([`Role::fallback`]), with the role it stands under. Nobody falls back to a rewriter that was trained to be one.
pub fn serving<M: Serves>(role: Role, models: &IndexMap<Role, M>) -> Option<(Role, &M)> {
    std::iter::successors(Some(role), |role| role.fallback()).find_map(|candidate| {
        let model = models.get(&candidate)?;
        let is_free = candidate != Role::Rewriter || role == Role::Rewriter || !model.only_rewrites();
        is_free.then_some((candidate, model))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture::{STUDY, problem, problem_of};

    #[test]
    fn who_is_asked_follows_from_workload_and_method() {
        assert_eq!(
            roles(&problem(STUDY)).unwrap(),
            [Role::Agent, Role::Critic, Role::Rewriter]
        );
    }

    #[test]
    fn a_critic_who_is_asked_from_the_second_round_on_is_asked() {
        let open = STUDY
            .replace("rounds = 2", "rounds = \"until-budget\"\n    method = \"dcapo\"")
            .replace("[method]", "[budget]\n    rollouts = 100\n    [method]");
        assert!(roles(&problem(&open)).unwrap().contains(&Role::Critic));
    }

    #[test]
    fn calls_are_handed_in_together_for_rollouts_of_one_call_of_the_agent_alone() {
        let batch = json!({ "provider": "openai", "model": "m", "batch": true });
        let single = json!({ "provider": "openai", "model": "m" });
        let said = |answers, tables: &[(Role, &Value)]| {
            let problem = problem_of(STUDY, answers);
            let read = |(role, table): &(Role, &Value)| (*role, ModelSpec::parse(table).unwrap());
            let models: IndexMap<Role, ModelSpec> = tables.iter().map(read).collect();
            let checked = check_batch(&problem, &roles(&problem).unwrap(), &models);
            checked.err().map(|error| error.to_string()).unwrap_or_default()
        };
        let others = [(Role::Agent, &batch), (Role::Rewriter, &single)];
        assert_eq!(said(1, &others), "");
        let dialogue = said(10, &others);
        assert!(
            dialogue.starts_with("models.agent: `batch` needs rollouts of one call"),
            "{dialogue}"
        );
        assert!(dialogue.contains("`dialogues`"), "{dialogue}");
        let alone = said(1, &others[..1]);
        assert!(alone.contains("add a table [models.rewriter]"), "{alone}");
        assert_eq!(said(10, &[(Role::Agent, &single)]), "");
    }

    #[test]
    fn nobody_falls_back_to_a_rewriter_that_does_nothing_else() {
        let agent = json!({ "provider": "simulated" });
        for learned in [
            json!({ "provider": "local", "model": "runs/desk" }),
            json!({ "provider": "openai-compatible", "model": "m", "rewrite_form": "learned" }),
        ] {
            let models = IndexMap::from([(Role::Agent, agent.clone()), (Role::Rewriter, learned)]);
            let of = |role| serving(role, &models).map(|(role, _)| role);
            assert_eq!(of(Role::Rewriter), Some(Role::Rewriter));
            assert_eq!(of(Role::Critic), Some(Role::Agent));
        }
        let models = IndexMap::from([(Role::Rewriter, agent)]);
        assert_eq!(
            serving(Role::Critic, &models).map(|(role, _)| role),
            Some(Role::Rewriter)
        );
    }

    #[test]
    fn somebody_asked_without_a_model_is_named() {
        let asked = [Role::Agent, Role::Critic];
        assert_eq!(
            check_roles(&asked, &IndexMap::from([(Role::Agent, json!({}))])),
            Ok(())
        );
        assert_eq!(
            check_roles(&asked, &IndexMap::from([(Role::Rewriter, json!({}))])),
            Err(BuildError::NoModel { role: Role::Agent })
        );
    }

    #[test]
    fn a_role_is_served_by_its_own_model_else_by_the_nearest_it_falls_back_to() {
        let [first, second] = ["a", "b"].map(|model| json!({ "provider": "openai", "model": model }));
        let models = IndexMap::from([(Role::Agent, first.clone()), (Role::Rewriter, second.clone())]);
        assert_eq!(serving(Role::Rewriter, &models), Some((Role::Rewriter, &second)));
        assert_eq!(serving(Role::Critic, &models), Some((Role::Rewriter, &second)));
        assert_eq!(serving(Role::Judge, &models), Some((Role::Agent, &first)));
        assert_eq!(serving(Role::Judge, &IndexMap::<Role, Value>::new()), None);
    }
}
