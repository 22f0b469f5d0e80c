//! Isolation of projects: what one has, asked for by a member of another.

use super::routes::{naming, table};
use super::*;
use crate::store::tests::on_each_database;

/// What belongs to `alpha` or is one of its members, each with one of its kind that there is not.
const ABSENT: [(&str, &str); 14] = [
    ("SESSION", NO_ID),
    ("IDENTITY", NO_ID),
    ("TOKEN", NO_ID),
    ("INVITATION", NO_ID),
    ("TO-PROJECT", NO_ID),
    ("RUN", NO_ID),
    ("LEARNED", NO_ID),
    ("TRAINING", NO_ID),
    ("DATA", NO_ID),
    ("FILE", NO_HASH),
    ("SEEN", NO_HASH),
    ("greeting", "farewell"),
    ("vera", "nobody"),
    ("alpha", "omega"),
];
const NO_ID: &str = "00000000000000000000000000000000";
const NO_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

on_each_database!(what_another_project_has_is_answered_for_as_what_is_not_there);
async fn what_another_project_has_is_answered_for_as_what_is_not_there(store: Store) {
    let team = Team::on(store).await;
    let before = team.exported("alpha").await;
    // Absent ones in place of the names, or of what these stand for.
    let without = |text: &str, real: bool| {
        ABSENT.iter().fold(text.to_owned(), |text, (name, absent)| {
            let id = team.ids.iter().find(|(of, _)| real && of == name);
            text.replace(id.map_or(*name, |(_, id)| id.as_str()), absent)
        })
    };
    // What belongs to `alpha` below a project of one's own, and below `alpha` itself.
    let requests = |text: &str| {
        let own = text.replace("alpha", "beta");
        let absent = without(&own, false);
        [(own, absent), (text.to_owned(), text.replace("alpha", "omega"))]
    };
    let mut compared = 0;
    for (method, path, body, _) in table().into_iter().chain(naming()) {
        let bodies = requests(&body.to_string());
        for (paths, bodies) in requests(path).into_iter().zip(bodies) {
            if paths.0 == paths.1 && bodies.0 == bodies.1 {
                continue;
            }
            let ask = async |path: &str, body: &str| {
                let body = serde_json::from_str(body).unwrap();
                let (status, answer) = team.ask(Who::Stranger, method, path, body).await;
                (status, without(&answer.to_string(), true))
            };
            let (there, absent) = (ask(&paths.0, &bodies.0).await, ask(&paths.1, &bodies.1).await);
            assert_eq!(there, absent, "{method} {} {}", paths.0, bodies.0);
            if paths.0.contains("/projects/alpha") {
                assert_eq!(there.0, 404, "{method} {} {}", paths.0, bodies.0);
            }
            compared += 1;
        }
    }
    assert!(compared >= 80, "{compared}");
    assert!(
        team.exported("alpha").await == before,
        "and nothing of it changed"
    );
    let log = team.store.audit(None, None, 1000).await.unwrap();
    let exports = log
        .iter()
        .filter(|line| line.action == "project.export" && line.subject == "alpha");
    assert_eq!(exports.count(), 2, "a refused export leaves no line");
}
