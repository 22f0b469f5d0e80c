//! The team's runs as the server lists them, page by page.

use capo_api::{RunPage, RunShown};

use crate::storage::RunRecord;

/// The runs of all one's projects, as far as they were listed; those added last first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct OnServer {
    runs: Vec<RunShown>,
    /// What the next page begins after; `None` when all are listed.
    pub(super) more: Option<String>,
}

impl OnServer {
    /// Takes in the first page anew; what was listed beyond it stays.
    pub(super) fn take_first(&mut self, page: RunPage) {
        let last = page.runs.last().map(|run| run.id.clone());
        let after = last.and_then(|last| self.runs.iter().position(|run| run.id == last));
        match (page.before, after) {
            (Some(_), Some(after)) => {
                self.runs.splice(..=after, page.runs);
            }
            (before, _) => {
                self.runs = page.runs;
                self.more = before;
            }
        }
    }

    /// Takes in the page after those that are known.
    pub(super) fn take_next(&mut self, page: RunPage) {
        self.runs.extend(page.runs);
        self.more = page.before;
    }

    /// As records of mirrors, of which there need be none.
    pub(super) fn records(&self) -> Vec<RunRecord> {
        self.runs.iter().map(RunRecord::mirrored).collect()
    }
}

/// The runs that are kept here and those that the server lists, each once. What only a record here tells is kept.
pub(super) fn merged(mut kept: Vec<RunRecord>, listed: Vec<RunRecord>) -> Vec<RunRecord> {
    for there in listed {
        match kept.iter_mut().find(|here| here.id == there.id) {
            Some(here) if here.touched >= there.touched => {}
            Some(here) => {
                *here = RunRecord {
                    about: std::mem::take(&mut here.about),
                    study: std::mem::take(&mut here.study),
                    ..there
                };
            }
            None => kept.push(there),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use capo_api::{RunOrigin, RunStage};
    use capo_core::reading::progress::{Progress, Times};

    use super::*;
    use crate::storage::RunStatus;

    fn shown(id: &str) -> RunShown {
        RunShown {
            id: id.into(),
            project: "help-desk".into(),
            name: format!("Run {id}"),
            started_by: "ada".into(),
            origin: RunOrigin::Server,
            stage: RunStage::Running,
            wish: None,
            status: None,
            error: None,
            method: "capo".into(),
            objective: "success".into(),
            created_at: "2026-11-26T07:00:00Z".into(),
            start_at: None,
            touched_at: "2026-11-26T07:00:00Z".into(),
            lines: 3,
            revision: 0,
            progress: Progress::default(),
            times: Times::default(),
        }
    }

    fn page(ids: &[&str], before: Option<&str>) -> RunPage {
        RunPage {
            runs: ids.iter().map(|id| shown(id)).collect(),
            before: before.map(str::to_owned),
        }
    }

    fn ids(on_server: &OnServer) -> Vec<&str> {
        on_server.runs.iter().map(|run| run.id.as_str()).collect()
    }

    #[test]
    fn a_first_page_that_is_read_anew_leaves_the_others() {
        let mut listed = OnServer::default();
        listed.take_first(page(&["d", "c"], Some("c")));
        listed.take_next(page(&["b", "a"], None));
        assert_eq!((ids(&listed), &listed.more), (vec!["d", "c", "b", "a"], &None));
        // One was added, and one was deleted.
        listed.take_first(page(&["e", "c"], Some("c")));
        assert_eq!((ids(&listed), &listed.more), (vec!["e", "c", "b", "a"], &None));
        // More were added than a page holds.
        listed.take_first(page(&["g", "f"], Some("f")));
        assert_eq!(ids(&listed), ["g", "f"]);
        assert_eq!(listed.more.as_deref(), Some("f"));
        listed.take_first(page(&["g"], None));
        assert_eq!((ids(&listed), &listed.more), (vec!["g"], &None));
    }

    fn record(id: &str, about: &str, touched: f64) -> RunRecord {
        RunRecord {
            id: id.into(),
            name: format!("{id} at {touched}"),
            method: "capo".into(),
            about: about.into(),
            objective: "success".into(),
            status: RunStatus::Running,
            study: about.into(),
            created: 0.0,
            touched,
            progress: Progress::default(),
            times: Times::default(),
            server: None,
        }
    }

    #[test]
    fn a_run_that_is_mirrored_and_listed_is_one_row_with_what_is_newest() {
        let kept = vec![
            record("mine", "", 1.0),
            record("team-a", "sim", 1.0),
            record("team-b", "", 9.0),
        ];
        let listed = vec![
            record("team-a", "", 5.0),
            record("team-b", "", 5.0),
            record("team-c", "", 5.0),
        ];
        let rows = merged(kept, listed);
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["mine at 1", "team-a at 5", "team-b at 9", "team-c at 5"]);
        assert_eq!(rows[1].about, "sim");
    }
}
