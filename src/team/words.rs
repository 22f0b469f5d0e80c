//! Words on screen for those of the server.

use capo_api::{Role, Scope};

use crate::format::capitalized;

/// A sentence of what went wrong.
pub fn sentence(error: &impl std::fmt::Display) -> String {
    let words = capitalized(&error.to_string());
    if words.ends_with('.') { words } else { words + "." }
}

/// What a role in a project allows.
pub fn role_means(role: Role) -> &'static str {
    match role {
        Role::Viewer => "viewer: reads",
        Role::Editor => "editor: also runs studies, uploads data, writes prompts",
        Role::Admin => "admin: also decides about members, keys and the project",
    }
}

/// What a token allows.
pub fn scope_means(scope: Scope) -> &'static str {
    match scope {
        Scope::Read => "read: changes nothing",
        Scope::Write => "write: all that you may, but for accounts",
    }
}

/// What somebody with a role in a project can do about a member's place in it: nothing, unless they decide about members
/// or it is their own.
pub fn removal(role: Role, myself: &str, member: &str) -> Option<(&'static str, &'static str)> {
    match role {
        _ if myself == member => Some(("Leave", "Leaving…")),
        Role::Admin => Some(("Remove", "Removing…")),
        Role::Viewer | Role::Editor => None,
    }
}

#[cfg(test)]
mod tests {
    use capo_api::ClientError;

    use super::*;

    #[test]
    fn errors_are_sentences() {
        let error = ClientError::Unreached("no answer came".into());
        assert_eq!(sentence(&error), "The server was not reached: no answer came.");
    }

    #[test]
    fn roles_and_scopes_begin_with_their_names() {
        assert!(
            Role::ALL
                .iter()
                .all(|role| role_means(*role).starts_with(role.as_str()))
        );
        assert!(
            Scope::ALL
                .iter()
                .all(|scope| scope_means(*scope).starts_with(scope.as_str()))
        );
    }

    #[test]
    fn members_are_removed_by_admins_and_leave_by_themselves() {
        let verb = |role, member| removal(role, "ada", member).map(|(verb, _)| verb);
        assert_eq!(verb(Role::Viewer, "ada"), Some("Leave"));
        assert_eq!(verb(Role::Editor, "bob"), None);
        assert_eq!(verb(Role::Admin, "bob"), Some("Remove"));
        assert_eq!(verb(Role::Admin, "ada"), Some("Leave"));
    }
}
