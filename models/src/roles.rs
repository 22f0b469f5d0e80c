//! Who a run asks, and who answers for them.

use capo_core::llm::Role;
use capo_core::methods;
use capo_core::problem::Problem;
use capo_core::study::StudyError;
use indexmap::IndexMap;

use crate::models::BuildError;

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
pub fn check_roles<M>(asked: &[Role], models: &IndexMap<Role, M>) -> Result<(), BuildError> {
    match asked.iter().find(|role| serving(**role, models).is_none()) {
        Some(&role) => Err(BuildError::NoModel { role }),
        None => Ok(()),
    }
}

/// What serves `role`: its own entry of `models`, or that of the first role it falls back to that
/// has one ([`Role::fallback`]), with the role it stands under.
pub fn serving<M>(role: Role, models: &IndexMap<Role, M>) -> Option<(Role, &M)> {
    std::iter::successors(Some(role), |role| role.fallback())
        .find_map(|candidate| Some((candidate, models.get(&candidate)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{STUDY, problem};

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
    fn somebody_asked_without_a_model_is_named() {
        let asked = [Role::Agent, Role::Critic];
        assert_eq!(check_roles(&asked, &IndexMap::from([(Role::Agent, ())])), Ok(()));
        assert_eq!(
            check_roles(&asked, &IndexMap::from([(Role::Rewriter, ())])),
            Err(BuildError::NoModel { role: Role::Agent })
        );
    }

    #[test]
    fn a_role_is_served_by_its_own_model_else_by_the_nearest_it_falls_back_to() {
        let models = IndexMap::from([(Role::Agent, 1), (Role::Rewriter, 2)]);
        assert_eq!(serving(Role::Rewriter, &models), Some((Role::Rewriter, &2)));
        assert_eq!(serving(Role::Critic, &models), Some((Role::Rewriter, &2)));
        assert_eq!(serving(Role::Judge, &models), Some((Role::Agent, &1)));
        assert_eq!(serving(Role::Judge, &IndexMap::<Role, u8>::new()), None);
    }
}
