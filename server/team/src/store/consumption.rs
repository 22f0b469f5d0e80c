//! Consumption: what members, projects and keys consume in a day, and what is set aside for requests under way.

use std::collections::{BTreeMap, HashSet};
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use capo_gateway::{Account, Consumption, Limits, NanoUsd, Problem, Reservation, Scope, reserve};
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row, Transaction};

use super::columns::number;
use super::limits::{ChargedTo, scope_of, unsigned, word};
use super::processes::FORSAKEN;
use super::{Millis, Store, StoreError};
use crate::secret;

/// The day in UTC of a moment, counted from 1970-01-01.
pub fn day_of(at: Millis) -> u64 {
    u64::try_from(at / (24 * 60 * 60 * 1000)).unwrap_or(0)
}

/// A reservation that stands for so long is nobody's: no call to a model takes half of that.
pub const FORGOTTEN: Millis = 60 * 60 * 1000;

/// How long it may wait to be written what a request did cost. Until then what was set aside counts, and the next reservation
/// writes it along: a file has one writer, who changes it once then and not twice.
const LATER: Duration = Duration::from_millis(20);

/// Begins a change that stays when the server is killed, and that a power cut may take back until any other change is
/// written, as [`Store::beat`] does at the latest: a call does not wait for the disk.
const BEGIN_UNCONFIRMED: &str = "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE";

/// What was set aside for one request, by the id under which it is kept.
#[derive(Debug, Clone)]
pub struct OpenReservation {
    id: String,
    payers: ChargedTo,
    reservation: Reservation,
}

/// What somebody or something consumed on a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    /// Member, project or key.
    pub scope: Scope,
    /// Its id.
    pub subject: String,
    /// The day in UTC, counted from 1970-01-01.
    pub day: u64,
    /// What was consumed.
    pub consumption: Consumption,
}

/// What was set aside, and what the request did cost.
type Cost = (OpenReservation, NanoUsd);

/// What requests did cost that is not written yet. It stays here until that is certain: what is written twice counts once.
#[derive(Debug, Clone, Default)]
pub(super) struct Costs(Arc<Mutex<Vec<Cost>>>);

impl Costs {
    fn change<T>(&self, change: impl FnOnce(&mut Vec<Cost>) -> T) -> T {
        // Nothing panics while it has them.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn forget(&self, written: &[Cost]) {
        let written: HashSet<&str> = written.iter().map(|(aside, _)| aside.id.as_str()).collect();
        self.change(|costs| costs.retain(|(aside, _)| !written.contains(aside.id.as_str())));
    }
}

fn consumed(row: &AnyRow) -> Result<Consumption, StoreError> {
    Ok(Consumption {
        used: NanoUsd::from(unsigned(row, "used")?),
        reserved: NanoUsd::from(unsigned(row, "reserved")?),
        requests: unsigned(row, "requests")?,
    })
}

/// By which a row of `consumption` is known: day, scope and subject.
type RowKey = (u64, &'static str, String);

/// One transaction on what is consumed. What is added to a row is written once, however many requests of the transaction
/// count towards it.
struct Ledger {
    transaction: Transaction<'static, Any>,
    /// To what is used and reserved, and to requests.
    added: BTreeMap<RowKey, [i64; 3]>,
}

fn row_keys(payers: &ChargedTo, day: u64) -> [RowKey; 3] {
    payers
        .all()
        .map(|(scope, subject)| (day, word(scope), subject.to_owned()))
}

const SET_ASIDE: &str = "INSERT INTO reservations (id, key, project, member, day, amount, created_at, process) \
                         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

const SET_ASIDE_INSTEAD: &str = "UPDATE reservations SET id = $1, key = $2, project = $3, member = $4, day = $5, amount = $6, \
                                 created_at = $7, process = $8 WHERE id = $9";

/// Adds to so many rows, each within the range of amounts, and says what they are then.
fn addition(rows: usize) -> String {
    let values: Vec<String> = (0..rows)
        .map(|row| {
            let places: [String; 6] = std::array::from_fn(|column| format!("${}", 6 * row + column + 1));
            format!("({})", places.join(", "))
        })
        .collect();
    let most = NanoUsd::MAX.get();
    let sums = ["used", "reserved", "requests"].map(|column| {
        let sum = format!("consumption.{column} + excluded.{column}");
        format!("{column} = CASE WHEN {sum} < 0 THEN 0 WHEN {sum} > {most} THEN {most} ELSE {sum} END")
    });
    format!(
        "INSERT INTO consumption (day, scope, subject, used, reserved, requests) VALUES {} \
         ON CONFLICT (scope, subject, day) DO UPDATE SET {} RETURNING *",
        values.join(", "),
        sums.join(", ")
    )
}

impl Ledger {
    fn add(&mut self, aside: &OpenReservation, added: [i64; 3]) {
        for key in row_keys(&aside.payers, aside.reservation.day) {
            let sums = self.added.entry(key).or_default();
            for (sum, added) in std::iter::zip(sums, added) {
                *sum = sum.saturating_add(added);
            }
        }
    }

    /// Counts what a request did cost in place of what was set aside.
    fn replace(&mut self, (aside, cost): &Cost) {
        let reserved = number(aside.reservation.amount.get());
        self.add(aside, [number(cost.get()), -reserved, 0]);
    }

    /// Replaces what was set aside by what requests did cost, except where that was done before.
    async fn settle(&mut self, costs: &[Cost]) -> Result<(), StoreError> {
        // Few at a time, so that there are few different statements.
        for costs in costs.chunks(8) {
            let places: Vec<String> = (1..=costs.len()).map(|place| format!("${place}")).collect();
            let statement = format!(
                "DELETE FROM reservations WHERE id IN ({}) RETURNING id",
                places.join(", ")
            );
            let mut query = sqlx::query::<Any>(AssertSqlSafe(statement));
            for (aside, _) in costs {
                query = query.bind(&aside.id);
            }
            let rows = query.fetch_all(&mut *self.transaction).await?;
            let ids = rows.iter().map(|row| row.try_get::<String, _>("id"));
            let mut stood = ids.collect::<Result<HashSet<_>, _>>()?;
            for cost in costs {
                if stood.remove(&cost.0.id) {
                    self.replace(cost);
                }
            }
        }
        Ok(())
    }

    /// Sets aside for a request, and settles others; in the row of the last of these, where it still stands, which saves a
    /// statement.
    async fn set_aside(
        &mut self,
        aside: &OpenReservation,
        at: Millis,
        process: &str,
        costs: &[Cost],
    ) -> Result<(), StoreError> {
        let amount = number(aside.reservation.amount.get());
        self.add(aside, [0, amount, 1]);
        let row = |statement: &'static str| {
            sqlx::query::<Any>(statement)
                .bind(&aside.id)
                .bind(&aside.payers.key)
                .bind(&aside.payers.project)
                .bind(&aside.payers.member)
                .bind(number(aside.reservation.day))
                .bind(amount)
                .bind(at)
                .bind(process)
        };
        if let Some((last, others)) = costs.split_last() {
            self.settle(others).await?;
            let instead = row(SET_ASIDE_INSTEAD).bind(&last.0.id);
            if instead.execute(&mut *self.transaction).await?.rows_affected() > 0 {
                self.replace(last);
                return Ok(());
            }
        }
        row(SET_ASIDE).execute(&mut *self.transaction).await?;
        Ok(())
    }

    /// Writes what is added, and says what the rows are then.
    async fn write(&mut self) -> Result<BTreeMap<RowKey, Consumption>, StoreError> {
        let added: Vec<_> = mem::take(&mut self.added).into_iter().collect();
        let mut after = BTreeMap::new();
        // As many as one request counts towards, for the same reason as above.
        for added in added.chunks(3) {
            let mut query = sqlx::query::<Any>(AssertSqlSafe(addition(added.len())));
            for ((day, scope, subject), added) in added {
                query = query.bind(number(*day)).bind(*scope).bind(subject);
                for added in added {
                    query = query.bind(*added);
                }
            }
            for row in &query.fetch_all(&mut *self.transaction).await? {
                let (day, scope) = (unsigned(row, "day")?, word(scope_of(row)?));
                after.insert((day, scope, row.try_get("subject")?), consumed(row)?);
            }
        }
        Ok(after)
    }
}

impl Store {
    /// Sets aside what a request may cost, or refuses it: of two that want the last of a limit one is let through.
    ///
    /// # Errors
    /// When the database fails. The inner error names the limit that is reached.
    pub async fn reserve(
        &self,
        payers: ChargedTo,
        limits: [Limits; 3],
        amount: NanoUsd,
        at: Millis,
    ) -> Result<Result<OpenReservation, Problem>, StoreError> {
        let day = day_of(at);
        let aside = OpenReservation {
            id: secret::id(),
            payers,
            reservation: Reservation { day, amount },
        };
        let mut ledger = self.open_ledger().await?;
        let costs = self.costs.change(|costs| costs.clone());
        ledger.set_aside(&aside, at, &self.process, &costs).await?;
        // It is added before it is let through, which tells what is there without another statement.
        let after = ledger.write().await?;
        let rows = std::iter::zip(aside.payers.all(), row_keys(&aside.payers, day));
        let mut before: Vec<Account> = std::iter::zip(rows, limits)
            .map(|(((scope, _), key), limits)| {
                let mut consumption = after[&key];
                consumption.reserved = consumption.reserved.minus(amount);
                consumption.requests = consumption.requests.saturating_sub(1);
                Account {
                    scope,
                    limits,
                    consumption,
                }
            })
            .collect();
        if let Err(problem) = reserve(&mut before, amount, day) {
            ledger.transaction.rollback().await?;
            // What others did cost is written all the same.
            if !costs.is_empty() {
                self.write_costs().await?;
            }
            return Ok(Err(problem));
        }
        ledger.transaction.commit().await?;
        self.costs.forget(&costs);
        Ok(Ok(aside))
    }

    /// Replaces what was set aside by what the request did cost, within a moment; does nothing when that was done before.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn settle(&self, aside: &OpenReservation, cost: NanoUsd) -> Result<(), StoreError> {
        self.costs.change(|costs| costs.push((aside.clone(), cost)));
        // Another process would see it set aside for longer, and a commit of its own costs it nothing more there.
        if self.is_sqlite {
            tokio::time::sleep(LATER).await;
        }
        let waits = |costs: &mut Vec<Cost>| costs.iter().any(|(waiting, _)| waiting.id == aside.id);
        if self.costs.change(waits) {
            self.write_costs().await?;
        }
        Ok(())
    }

    /// Begins to change what was consumed, which nobody else does until it ends.
    async fn open_ledger(&self) -> Result<Ledger, StoreError> {
        let transaction = if self.is_sqlite {
            self.write.begin_with(BEGIN_UNCONFIRMED).await?
        } else {
            let mut transaction = self.begin().await?;
            sqlx::query("UPDATE locks SET name = name WHERE name = 'consumption'")
                .execute(&mut *transaction)
                .await?;
            transaction
        };
        let added = BTreeMap::new();
        Ok(Ledger { transaction, added })
    }

    /// Writes what requests did cost that is not written yet.
    async fn write_costs(&self) -> Result<(), StoreError> {
        let mut ledger = self.open_ledger().await?;
        let costs = self.costs.change(|costs| costs.clone());
        ledger.settle(&costs).await?;
        ledger.write().await?;
        ledger.transaction.commit().await?;
        self.costs.forget(&costs);
        Ok(())
    }

    /// Settles at their full amounts the reservations of processes that were not heard of since a moment, and those of
    /// longer than an hour ago. Returns how many there were.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) async fn settle_forgotten(
        &self,
        now: Millis,
        heard_since: Millis,
    ) -> Result<usize, StoreError> {
        let statement = format!("SELECT * FROM reservations WHERE created_at < $2 OR {FORSAKEN}");
        let rows = sqlx::query(AssertSqlSafe(statement))
            .bind(heard_since)
            .bind(now - FORGOTTEN)
            .fetch_all(&self.read)
            .await?;
        for row in &rows {
            let amount = NanoUsd::from(unsigned(row, "amount")?);
            let aside = OpenReservation {
                id: row.try_get("id")?,
                payers: ChargedTo {
                    key: row.try_get("key")?,
                    project: row.try_get("project")?,
                    member: row.try_get("member")?,
                },
                reservation: Reservation {
                    day: unsigned(row, "day")?,
                    amount,
                },
            };
            self.costs.change(|costs| {
                // Those that could not be written the last time wait already.
                if costs.iter().all(|(waiting, _)| waiting.id != aside.id) {
                    costs.push((aside, amount));
                }
            });
        }
        if !rows.is_empty() {
            self.write_costs().await?;
        }
        Ok(rows.len())
    }

    /// What was consumed from a day on, the latest day first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn used_since(&self, day: u64) -> Result<Vec<Used>, StoreError> {
        let rows = sqlx::query("SELECT * FROM consumption WHERE day >= $1 ORDER BY day DESC, scope, subject")
            .bind(number(day))
            .fetch_all(&self.read)
            .await?;
        let used = |row: &AnyRow| {
            Ok(Used {
                scope: scope_of(row)?,
                subject: row.try_get("subject")?,
                day: unsigned(row, "day")?,
                consumption: consumed(row)?,
            })
        };
        rows.iter().map(used).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::DAY;
    use crate::store::tests::{in_sqlite, on_each};

    fn payers(member: &str, project: &str) -> ChargedTo {
        ChargedTo {
            key: "k".into(),
            project: project.into(),
            member: member.into(),
        }
    }

    /// Day, scope and subject of a row; what is used and reserved, and requests.
    type Line = (u64, &'static str, String, [u64; 3]);

    fn line(day: u64, scope: &'static str, subject: &str, counted: [u64; 3]) -> Line {
        (day, scope, subject.to_owned(), counted)
    }

    impl Store {
        async fn set_aside(&self, payers: ChargedTo, amount: u64, at: Millis) -> OpenReservation {
            let limits = [Limits::default(); 3];
            let reserved = self.reserve(payers, limits, NanoUsd::from(amount), at).await;
            reserved.unwrap().unwrap()
        }

        /// Leaves it to the next transaction to write what a request did cost.
        fn owe(&self, aside: &OpenReservation, cost: u64) {
            self.costs
                .change(|costs| costs.push((aside.clone(), NanoUsd::from(cost))));
        }

        fn owed(&self) -> usize {
            self.costs.change(|costs| costs.len())
        }

        async fn ledger_lines(&self) -> Vec<Line> {
            let used = self.used_since(0).await.unwrap().into_iter();
            let line = |used: Used| {
                let Consumption {
                    used: paid,
                    reserved,
                    requests,
                } = used.consumption;
                let counted = [paid.get(), reserved.get(), requests];
                (used.day, word(used.scope), used.subject, counted)
            };
            used.map(line).collect()
        }
    }

    #[test]
    fn what_one_transaction_settles_and_sets_aside_counts_for_every_payer_and_day() {
        on_each(|store| async move {
            let first = store.set_aside(payers("m", "p"), 30, 0).await;
            let second = store.set_aside(payers("m", "p"), 40, 0).await;
            let of_other_member = store.set_aside(payers("n", "p"), 50, 0).await;
            let of_other_project = store.set_aside(payers("m", "q"), 60, 0).await;
            let of_other_day = store.set_aside(payers("m", "p"), 70, DAY).await;
            for (aside, cost) in [
                (&first, 10),
                (&second, 20),
                (&of_other_member, 5),
                (&of_other_project, 6),
                (&of_other_day, 7),
                // Once only.
                (&first, 99),
            ] {
                store.owe(aside, cost);
            }
            let next = store.set_aside(payers("m", "p"), 25, 0).await;
            assert_eq!(store.owed(), 0, "one transaction did it all");
            let on_other_day = [
                line(1, "key", "k", [7, 0, 1]),
                line(1, "member", "m", [7, 0, 1]),
                line(1, "project", "p", [7, 0, 1]),
            ];
            let other_member = line(0, "member", "n", [5, 0, 1]);
            let other_project = line(0, "project", "q", [6, 0, 1]);
            let ledger = |key, member, project| {
                let of_day = [
                    line(0, "key", "k", key),
                    line(0, "member", "m", member),
                    other_member.clone(),
                    line(0, "project", "p", project),
                    other_project.clone(),
                ];
                [&on_other_day[..], &of_day].concat()
            };
            assert_eq!(
                store.ledger_lines().await,
                ledger([41, 25, 5], [36, 25, 4], [35, 25, 4])
            );
            // What is refused takes along what others did cost all the same.
            store.owe(&next, 21);
            let few = Limits {
                usd_per_day: None,
                requests_per_day: Some(4),
            };
            let limits = [few, Limits::default(), Limits::default()];
            let refused = store.reserve(payers("m", "p"), limits, NanoUsd::from(1), 0).await;
            assert!(refused.unwrap().is_err());
            assert_eq!(
                store.ledger_lines().await,
                ledger([62, 0, 5], [57, 0, 4], [56, 0, 4])
            );
        });
    }

    #[test]
    fn only_the_ledger_does_not_wait_for_the_disk() {
        in_sqlite(|store| async move {
            let confirmed = "PRAGMA synchronous";
            let mut ledger = store.open_ledger().await.unwrap();
            let of_ledger: i64 = sqlx::query_scalar(confirmed)
                .fetch_one(&mut *ledger.transaction)
                .await
                .unwrap();
            ledger.transaction.commit().await.unwrap();
            let of_others: i64 = sqlx::query_scalar(confirmed)
                .fetch_one(&store.write)
                .await
                .unwrap();
            assert_eq!((of_ledger, of_others), (1, 2), "NORMAL, and FULL again");
        });
    }

    #[test]
    fn sums_stay_in_the_range_of_amounts() {
        on_each(|store| async move {
            let most = NanoUsd::MAX.get();
            for requests in 1..=2 {
                let aside = store.set_aside(payers("m", "p"), most, 0).await;
                store.set_aside(payers("m", "p"), most, 0).await;
                assert_eq!(store.ledger_lines().await[0].3[1], most);
                store.settle(&aside, NanoUsd::MAX).await.unwrap();
                assert_eq!(store.ledger_lines().await[0].3, [most, 0, 2 * requests]);
            }
        });
    }

    #[test]
    fn what_is_forgotten_waits_once_however_often_it_cannot_be_written() {
        on_each(|store| async move {
            store.set_aside(payers("m", "p"), 30, 0).await;
            let change = async |statement: &'static str| {
                sqlx::raw_sql(statement).execute(&store.write).await.unwrap();
            };
            change("ALTER TABLE consumption RENAME TO away").await;
            for _ in 0..3 {
                assert!(store.settle_forgotten(2 * FORGOTTEN, 0).await.is_err());
            }
            change("ALTER TABLE away RENAME TO consumption").await;
            assert_eq!(store.owed(), 1);
        });
    }

    #[test]
    fn a_transaction_that_fails_in_the_end_has_changed_nothing_and_the_next_one_writes_it() {
        on_each(|store| async move {
            let first = store.set_aside(payers("m", "p"), 30, 0).await;
            let before = store.ledger_lines().await;
            let change = async |statement: &'static str| {
                sqlx::raw_sql(statement).execute(&store.write).await.unwrap();
            };
            store.owe(&first, 10);
            // What is written in the end fails: it is another member's row of the day.
            change("CREATE UNIQUE INDEX one_a_day ON consumption (scope, day)").await;
            let limits = [Limits::default(); 3];
            let failed = store
                .reserve(payers("n", "p"), limits, NanoUsd::from(40), 0)
                .await;
            assert!(failed.is_err());
            change("DROP INDEX one_a_day").await;
            assert_eq!((store.owed(), store.ledger_lines().await), (1, before));
            store.set_aside(payers("n", "p"), 40, 0).await;
            let after = [
                line(0, "key", "k", [10, 40, 2]),
                line(0, "member", "m", [10, 0, 1]),
                line(0, "member", "n", [0, 40, 1]),
                line(0, "project", "p", [10, 40, 2]),
            ];
            assert_eq!((store.owed(), store.ledger_lines().await), (0, after.to_vec()));
        });
    }
}
