//! Who may tell a run of the server something.

use capo_api::Role;
use leptos::prelude::*;

use crate::live::Run;
use crate::team::Team;

/// Why one may not pause, steer or branch a run, if that is so; runs of this browser are one's own.
pub fn use_forbidden(run: Run) -> Memo<Option<String>> {
    let team = expect_context::<Team>();
    Memo::new(move |_| {
        let project = run.server()?.project;
        forbidden(&project, team.role(&project))
    })
}

/// Why a role that is known does not do.
fn forbidden(project: &str, role: Option<Role>) -> Option<String> {
    (role == Some(Role::Viewer)).then(|| {
        format!("You are a viewer of the project {project}: its editors pause, stop, steer and branch runs.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewers_only_watch() {
        assert!(forbidden("help-desk", Some(Role::Viewer)).is_some_and(|why| why.contains("help-desk")));
        for role in [Some(Role::Editor), Some(Role::Admin), None] {
            assert_eq!(forbidden("help-desk", role), None, "the server decides");
        }
    }
}
