//! Permission to tell a run of the server something.

use capo_api::Role;
use leptos::prelude::*;

use crate::live::Run;
use crate::storage::{RunRecord, ServerRun};
use crate::team::Team;

/// Why one may not pause, steer or branch a run, if that is so; runs of this browser are one's own.
pub fn use_forbidden(run: Run) -> Memo<Option<String>> {
    let team = expect_context::<Team>();
    Memo::new(move |_| {
        let server = run.server()?;
        forbidden(&server, team.role(&server.project))
    })
}

/// Whether one may do more with a run than look at it: not before one's role was asked for.
pub fn may_order(team: Team, record: &RunRecord) -> bool {
    let may =
        |server: &ServerRun| team.knows_projects() && forbidden(server, team.role(&server.project)).is_none();
    record.server.as_ref().is_none_or(may)
}

/// Why a role that is known does not do, or nobody's.
fn forbidden(run: &ServerRun, role: Option<Role>) -> Option<String> {
    let project = &run.project;
    if role == Some(Role::Viewer) {
        Some(format!(
            "You are a viewer of the project {project}: its editors pause, stop, steer and branch runs."
        ))
    } else if run.is_of_training {
        Some(format!(
            "This run is the search of a training of the project {project}, and ends and goes on with that."
        ))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewers_only_watch_and_nobody_orders_the_search_of_a_training() {
        let shown = r#"{"id": "1", "project": "help-desk", "started_by": "ada", "stage": "running", "lines": 1, "revision": 0}"#;
        let run: ServerRun = serde_json::from_str(shown).unwrap();
        assert!(forbidden(&run, Some(Role::Viewer)).is_some_and(|why| why.contains("help-desk")));
        let of_training = ServerRun {
            is_of_training: true,
            ..run.clone()
        };
        for role in [Some(Role::Editor), Some(Role::Admin), None] {
            assert_eq!(forbidden(&run, role), None, "the server decides");
            assert!(forbidden(&of_training, role).is_some_and(|why| why.contains("training")));
        }
    }
}
