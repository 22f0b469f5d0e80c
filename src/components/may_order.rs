//! Who may tell a run of the server something.

use capo_api::Role;
use leptos::prelude::*;

use crate::live::Run;
use crate::storage::{RunRecord, ServerRun};
use crate::team::Team;

/// Why one may not pause, steer or branch a run, if that is so; runs of this browser are one's own.
pub fn use_forbidden(run: Run) -> Memo<Option<String>> {
    let team = expect_context::<Team>();
    Memo::new(move |_| {
        let project = run.server()?.project;
        forbidden(&project, team.role(&project))
    })
}

/// Whether one may do more with a run than look at it, as far as one's role is known.
pub fn may_order(team: Team, record: &RunRecord) -> bool {
    let forbids = |server: &ServerRun| forbidden(&server.project, team.role(&server.project));
    record.server.as_ref().and_then(forbids).is_none()
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
