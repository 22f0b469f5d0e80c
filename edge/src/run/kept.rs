//! Storage of a run in its object: what lists show of it, its study, its journal, and what it was told.

use std::cell::{Cell, Ref, RefCell};

use capo_api::RunShown;
use capo_core::control::Control;
use capo_core::journal::{SteerEvent, StoreError};
use capo_hosted::{Waiting, Waits};
use serde::Deserialize;
use worker::{SqlStorage, SqlStorageValue};

use crate::notify::Notify;
use crate::project::Files;
use crate::runtime::{Count, moment, now, number};

const TABLES: &str = "
CREATE TABLE run (
    one INTEGER PRIMARY KEY CHECK (one = 1), shown TEXT NOT NULL, study TEXT NOT NULL, files TEXT NOT NULL,
    claims INTEGER NOT NULL
);
CREATE TABLE lines (line INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE steers (number INTEGER PRIMARY KEY AUTOINCREMENT, change TEXT NOT NULL);";

/// How often a run is taken up without a further line before it is left alone.
const CLAIMS: u64 = 4;

/// A run's rows, and what of them is in memory.
pub(super) struct Kept {
    sql: SqlStorage,
    shown: RefCell<RunShown>,
    /// Rises with every change of anything but the lines.
    version: Cell<u64>,
    /// Notified at every change and line.
    pub(super) changed: Notify,
    waiting: RefCell<Waiting>,
    waits: RefCell<Waits>,
    /// Whether the run was taken up without a further line.
    is_claimed: Cell<bool>,
    is_gone: Cell<bool>,
}

#[derive(Deserialize)]
struct Row {
    shown: String,
    lines: u64,
}

#[derive(Deserialize)]
struct StudyRow {
    study: String,
    files: String,
}

#[derive(Deserialize)]
struct LineRow {
    line: u64,
    body: String,
}

#[derive(Deserialize)]
struct SteerRow {
    number: i64,
    change: String,
}

impl Kept {
    /// The run of an object; `None` where it has none.
    pub(super) fn load(sql: SqlStorage) -> worker::Result<Option<Self>> {
        // An object of which nothing is written takes no room.
        let made = "SELECT count(*) AS count FROM sqlite_master WHERE name = 'run'";
        if sql.exec(made, None)?.one::<Count>()?.count == 0 {
            return Ok(None);
        }
        let select = "SELECT shown, (SELECT COALESCE(MAX(line) + 1, 0) FROM lines) AS lines FROM run";
        let row: Row = sql.exec(select, None)?.one()?;
        let mut shown: RunShown = serde_json::from_str(&row.shown)?;
        shown.lines = row.lines;
        Ok(Some(Self::new(sql, shown)))
    }

    /// Makes it the object's run.
    pub(super) fn create(
        sql: SqlStorage,
        shown: RunShown,
        study: &str,
        files: &Files,
    ) -> worker::Result<Self> {
        sql.exec(TABLES, None)?;
        let row = vec![
            serde_json::to_string(&shown)?.into(),
            study.into(),
            serde_json::to_string(files)?.into(),
        ];
        sql.exec("INSERT INTO run VALUES (1, ?, ?, ?, 0)", row)?;
        Ok(Self::new(sql, shown))
    }

    fn new(sql: SqlStorage, shown: RunShown) -> Self {
        Self {
            sql,
            shown: RefCell::new(shown),
            version: Cell::new(0),
            changed: Notify::default(),
            waiting: RefCell::default(),
            waits: RefCell::default(),
            is_claimed: Cell::new(false),
            is_gone: Cell::new(false),
        }
    }

    pub(super) fn shown(&self) -> Ref<'_, RunShown> {
        self.shown.borrow()
    }

    pub(super) fn version(&self) -> u64 {
        self.version.get()
    }

    /// Whether it was deleted.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.get()
    }

    /// Says that it was deleted.
    pub(super) fn leave(&self) {
        self.is_gone.set(true);
        self.changed.notify();
    }

    /// The model that its search waits for. It is not written: a search that goes on from the journal waits anew.
    pub(super) fn waits(&self) -> Waits {
        self.waits.borrow().clone()
    }

    /// Notes the model that its search waits for.
    pub(super) fn wait_for(&self, waits: Waits) {
        self.waits.replace(waits);
        self.changed.notify();
    }

    /// Changes what lists show of it.
    pub(super) fn change(&self, change: impl FnOnce(&mut RunShown)) -> worker::Result<()> {
        let written = {
            let mut shown = self.shown.borrow_mut();
            change(&mut shown);
            shown.touched_at = moment(now());
            serde_json::to_string(&*shown)?
        };
        self.sql.exec("UPDATE run SET shown = ?", vec![written.into()])?;
        self.version.set(self.version.get() + 1);
        self.changed.notify();
        Ok(())
    }

    /// Notes that its last line came after so many seconds; it is written with the next change.
    pub(super) fn note_time(&self, seconds: f64) {
        let mut shown = self.shown.borrow_mut();
        let last = shown.lines.saturating_sub(1);
        shown.times.note(last, seconds);
    }

    /// Its study and the data files that it names.
    pub(super) fn study(&self) -> worker::Result<(String, Files)> {
        let row: StudyRow = self.sql.exec("SELECT study, files FROM run", None)?.one()?;
        Ok((row.study, serde_json::from_str(&row.files)?))
    }

    pub(super) fn replace_study(&self, study: &str) -> worker::Result<()> {
        self.sql.exec("UPDATE run SET study = ?", vec![study.into()])?;
        Ok(())
    }

    /// Notes that it is taken up; false where it was too often without a further line.
    pub(super) fn claim(&self) -> worker::Result<bool> {
        let claim = "UPDATE run SET claims = claims + 1 RETURNING claims AS count";
        self.is_claimed.set(true);
        Ok(self.sql.exec(claim, None)?.one::<Count>()?.count <= CLAIMS)
    }

    /// Notes that it gets on.
    pub(super) fn unclaim(&self) -> worker::Result<()> {
        self.is_claimed.set(false);
        self.sql.exec("UPDATE run SET claims = 0", None)?;
        Ok(())
    }

    /// Its journal from a line on, up to about so many bytes.
    pub(super) fn lines(&self, from: u64, bytes: usize) -> worker::Result<Vec<(u64, String)>> {
        let (mut lines, mut size) = (Vec::new(), 0);
        for line in self.lines_from(from)? {
            let (number, body) = line?;
            size += body.len();
            lines.push((number, body));
            if size >= bytes {
                break;
            }
        }
        Ok(lines)
    }

    /// Its journal from a line on, read as it is asked for.
    fn lines_from(
        &self,
        from: u64,
    ) -> worker::Result<impl Iterator<Item = worker::Result<(u64, String)>> + use<>> {
        let select = "SELECT line, body FROM lines WHERE line >= ? ORDER BY line";
        let rows = self.sql.exec(select, vec![number(from)])?;
        Ok(rows
            .next::<LineRow>()
            .map(|row| row.map(|row| (row.line, row.body))))
    }

    /// Its whole journal, read as it is asked for.
    pub(super) fn journal(
        &self,
    ) -> worker::Result<impl Iterator<Item = Result<(u64, String), StoreError>> + use<>> {
        let lines = self.lines_from(0)?;
        Ok(lines.map(|line| line.map_err(|error| StoreError(error.to_string()))))
    }

    /// Adds a line to its journal, and returns its number. What the line takes up is forgotten.
    pub(super) fn append(&self, line: &str) -> worker::Result<u64> {
        let at = self.shown.borrow().lines;
        self.sql
            .exec("INSERT INTO lines VALUES (?, ?)", vec![number(at), line.into()])?;
        if let Some(taken) = self.waiting.borrow_mut().note(line) {
            let taken = SqlStorageValue::Integer(taken);
            self.sql
                .exec("DELETE FROM steers WHERE number <= ?", vec![taken])?;
        }
        if self.is_claimed.get() {
            self.unclaim()?;
        }
        self.shown.borrow_mut().lines = at + 1;
        self.changed.notify();
        Ok(at)
    }

    /// Replaces the first line of its journal.
    pub(super) fn replace_first(&self, line: &str) -> worker::Result<()> {
        self.sql
            .exec("UPDATE lines SET body = ? WHERE line = 0", vec![line.into()])?;
        self.change(|shown| shown.revision += 1)
    }

    /// Adds a change that its next round takes up.
    pub(super) fn steer(&self, change: &SteerEvent) -> worker::Result<()> {
        let change = serde_json::to_string(change)?;
        self.sql
            .exec("INSERT INTO steers (change) VALUES (?)", vec![change.into()])?;
        Ok(())
    }

    /// Takes back what no round has taken up yet.
    pub(super) fn withdraw(&self, change: &SteerEvent) -> worker::Result<()> {
        for (number, mut left) in self.steers()? {
            left.withdraw(change);
            let left = serde_json::to_string(&left)?;
            let row = vec![left.into(), SqlStorageValue::Integer(number)];
            self.sql
                .exec("UPDATE steers SET change = ? WHERE number = ?", row)?;
        }
        Ok(())
    }

    /// Has the search hear what waits for its next round.
    pub(super) fn hear(&self, control: &Control) -> worker::Result<()> {
        let steers = self.steers()?;
        self.waiting.borrow_mut().replace(steers);
        self.hear_news(control);
        Ok(())
    }

    /// The same for a search that begins, and has heard nothing yet.
    pub(super) fn hear_anew(&self, control: &Control) -> worker::Result<()> {
        *self.waiting.borrow_mut() = Waiting::default();
        self.hear(control)
    }

    /// The same where nothing was asked for since.
    pub(super) fn hear_news(&self, control: &Control) {
        let mut waiting = self.waiting.borrow_mut();
        if std::mem::take(&mut waiting.is_news) {
            let changes = waiting.changes.iter().map(|(_, change)| change.clone());
            control.steer_anew(changes.collect());
        }
    }

    fn steers(&self) -> worker::Result<Vec<(i64, SteerEvent)>> {
        let select = "SELECT number, change FROM steers ORDER BY number";
        let rows: Vec<SteerRow> = self.sql.exec(select, None)?.to_array()?;
        rows.into_iter()
            .map(|row| Ok((row.number, serde_json::from_str(&row.change)?)))
            .collect()
    }
}
