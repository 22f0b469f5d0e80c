//! The team's runs as the server lists them, page by page.

use std::collections::BTreeSet;

use capo_api::{RunPage, RunShown};

use crate::storage::{RunRecord, server_id};

/// The runs of all one's projects, as far as they were listed; those added last first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct OnServer {
    runs: Vec<RunShown>,
    /// How many pages were listed.
    pub(super) pages: u32,
    /// What the next page begins after; `None` when all are listed.
    pub(super) more: Option<String>,
    /// Why it says nothing new.
    pub(super) refused: Option<String>,
}

impl OnServer {
    /// Reads so many pages anew, and at least one; `page` is told what one begins after.
    ///
    /// # Errors
    /// As `page`.
    pub(super) async fn read<E>(
        pages: u32,
        page: impl AsyncFn(Option<String>) -> Result<RunPage, E>,
    ) -> Result<Self, E> {
        let mut listed = Self::default();
        loop {
            let next = page(listed.more.take()).await?;
            listed.runs.extend(next.runs);
            listed.more = next.before;
            listed.pages += 1;
            if listed.more.is_none() || listed.pages >= pages {
                return Ok(listed);
            }
        }
    }

    /// Takes in a run that is not on these pages.
    pub(super) fn add(&mut self, run: RunShown) {
        self.runs.push(run);
    }

    /// Ids of runs that are not on these pages: of mirrors kept here, `all` or those that go on, and of what is wanted
    /// though no mirror is kept.
    pub(super) fn lacks(&self, kept: &[RunRecord], all: bool, wanted: &BTreeSet<String>) -> Vec<String> {
        let mirrors = kept.iter().filter_map(|record| record.server.as_ref());
        let mirrors = mirrors.filter(|server| all || server.goes_on());
        let is_kept = |id: &str| kept.iter().any(|record| record.id == id);
        let wanted = wanted.iter().filter(|id| !is_kept(id));
        let ids = mirrors
            .map(|server| server.id.as_str())
            .chain(wanted.filter_map(|id| server_id(id)));
        ids.filter(|id| self.runs.iter().all(|run| run.id != *id))
            .map(str::to_owned)
            .collect()
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
            Some(here) if here.touched > there.touched => {}
            Some(here) => {
                *here = RunRecord {
                    about: std::mem::take(&mut here.about),
                    study: std::mem::take(&mut here.study),
                    notes: std::mem::take(&mut here.notes),
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
    use futures::executor::block_on;

    use super::*;
    use crate::storage::{RunStatus, ServerRun, mirror_id};

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
    fn all_pages_that_were_listed_are_read_anew() {
        let pages = [
            (None, page(&["d", "c"], Some("c"))),
            (Some("c"), page(&["b"], Some("b"))),
            (Some("b"), page(&["a"], None)),
        ];
        let read = |most| {
            let find = async |before: Option<String>| {
                let mut pages = pages.iter();
                let found = pages.find(|(begins, _)| *begins == before.as_deref());
                found.map(|(_, page)| page.clone()).ok_or("no such page")
            };
            block_on(OnServer::read(most, find)).unwrap()
        };
        let (first, two, whole) = (read(0), read(2), read(9));
        assert_eq!((ids(&first), first.pages), (vec!["d", "c"], 1));
        assert_eq!((ids(&two), two.more.as_deref()), (vec!["d", "c", "b"], Some("b")));
        assert_eq!((ids(&whole), whole.pages), (vec!["d", "c", "b", "a"], 3));
    }

    #[test]
    fn mirrors_that_are_not_listed_are_asked_for() {
        let mirror = |id: &str, stage| RunRecord {
            server: Some(ServerRun {
                stage,
                ..ServerRun::of(&shown(id))
            }),
            ..record(&mirror_id(id), "", 0.0)
        };
        let kept = [
            record("mine", "", 1.0),
            mirror("a", RunStage::Running),
            mirror("x", RunStage::Running),
            mirror("y", RunStage::Ended),
        ];
        let listed = block_on(OnServer::read(1, async |_| Ok::<_, ()>(page(&["a"], None)))).unwrap();
        let lacks = |all, wanted: &[&str]| {
            let wanted = wanted.iter().map(|id| mirror_id(id)).collect();
            listed.lacks(&kept, all, &wanted)
        };
        assert_eq!(lacks(true, &[]), ["x", "y"]);
        assert_eq!(lacks(false, &[]), ["x"]);
        assert_eq!(lacks(false, &["a", "y", "z"]), ["x", "z"]);
    }

    fn record(id: &str, about: &str, touched: f64) -> RunRecord {
        RunRecord {
            pilot: None,
            check: None,
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
            notes: <_>::default(),
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
