//! Concurrency limits of runs: of a member so many at a time, those first that were added first.

use std::time::Duration;

use capo_api::RunShown;
use serde::{Deserialize, Serialize};
use worker::{SqlStorage, SqlStorageValue};

use crate::runtime::{Count, number};

/// Made with the other tables of the object that has the places.
pub(crate) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS places (
    run TEXT PRIMARY KEY, member TEXT NOT NULL, created_at TEXT NOT NULL, is_held INTEGER NOT NULL, until INTEGER NOT NULL
) WITHOUT ROWID;";

/// For so many milliseconds a place is held by a run that is not heard of: more than a slice takes, with which it asks anew.
const HELD: u64 = 20 * 60_000;

/// How soon a run without a place asks again, and for how many milliseconds it keeps its turn meanwhile.
pub(crate) const AGAIN: Duration = Duration::from_secs(15);
const TURN: u64 = 60_000;

/// A run that is to go on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ready {
    run: String,
    /// On whose account it asks.
    member: String,
    created_at: String,
    /// Runs of the member that may go on at a time.
    most: u32,
}

impl Ready {
    pub(crate) fn new(run: &RunShown, most: u32) -> Self {
        Self {
            run: run.id.clone(),
            member: run.started_by.clone(),
            created_at: run.created_at.clone(),
            most,
        }
    }
}

/// Gives a run a place, or has it keep the one that it has; false where it must wait.
pub(crate) fn take(sql: &SqlStorage, ready: &Ready, now: u64) -> worker::Result<bool> {
    sql.exec("DELETE FROM places WHERE until <= ?", vec![number(now)])?;
    let [run, member, created_at] = [&ready.run, &ready.member, &ready.created_at].map(String::as_str);
    let before = "SELECT count(*) AS count FROM places WHERE member = ? AND run <> ? \
                  AND (is_held OR (created_at, run) < (?, ?)) \
                  AND NOT EXISTS (SELECT 1 FROM places WHERE run = ? AND member = ? AND is_held)";
    let of = [member, run, created_at, run, run, member].map(SqlStorageValue::from);
    let Count { count } = sql.exec(before, Vec::from(of))?.one()?;
    let is_held = count < u64::from(ready.most);
    let until = now + if is_held { HELD } else { TURN };
    let row = vec![
        run.into(),
        member.into(),
        created_at.into(),
        number(u64::from(is_held)),
        number(until),
    ];
    sql.exec("INSERT OR REPLACE INTO places VALUES (?, ?, ?, ?, ?)", row)?;
    Ok(is_held)
}

/// Takes a run's place back.
pub(crate) fn leave(sql: &SqlStorage, run: &str) -> worker::Result<()> {
    sql.exec("DELETE FROM places WHERE run = ?", vec![run.into()])?;
    Ok(())
}
