//! Addresses that people are sent to.

use capo_api::OIDC_RETURN;

/// Where one goes on to from the pages by which one signs in.
const PROJECTS: &str = "/team";

/// Pages by which one signs in: nobody is sent back to them.
const DOORS: [&str; 4] = ["/sign-in", OIDC_RETURN, "/set-up", "/invitation"];

/// Where to go on to after signing in: to what an address asks for when it is a page of this site, else to the projects.
/// What a browser could take for another host, a scheme or a way up is none.
pub fn way_back(asked: &str) -> &str {
    let (path, query) = asked.split_once('?').unwrap_or((asked, ""));
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let is_page = path.strip_prefix('/').is_some_and(|parts| {
        let mut parts = parts.split('/');
        path == "/" || parts.all(|part| !part.is_empty() && part.chars().all(is_plain))
    });
    let is_query = query
        .chars()
        .all(|letter| is_plain(letter) || "=&,.%".contains(letter));
    if is_page && is_query && !DOORS.contains(&path) {
        asked
    } else {
        PROJECTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_off_the_site() {
        for page in [
            "/",
            "/runs",
            "/team/projects/help-desk-2",
            "/compare?runs=a1,b2&of=%CE%BB",
        ] {
            assert_eq!(way_back(page), page);
        }
        for evil in [
            "",
            "//evil.example",
            "/\\evil.example",
            "\\/evil.example",
            "/\t/evil.example",
            "https://evil.example",
            "https:evil.example",
            "javascript:alert(1)",
            "evil",
            " /runs",
            "/runs/../..//evil.example",
            "/%2e%2e//evil.example",
            "/runs//evil",
            "/runs/",
            "/runs?next=//evil",
            "/runs#top",
            "/sign-in",
            "/sign-in?return=/runs",
            "/sign-in/return",
            "/invitation",
        ] {
            assert_eq!(way_back(evil), PROJECTS, "{evil:?}");
        }
    }
}
