//! Providers' keys that projects share, what they may cost, and what they did cost.

use capo_gateway::{
    Account, Consumption, KeyRecord, Limits, NanoUsd, Problem, Reservation, Scope, SharedKey, reserve,
};
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row, Transaction};

use super::columns::number;
use super::processes::FORSAKEN;
use super::{Actor, Millis, Store, StoreError, audit, present, taken};
use crate::seal::{MasterKey, SealError};
use crate::secret;

/// The day in UTC of a moment, counted from 1970-01-01.
pub fn day_of(at: Millis) -> u64 {
    u64::try_from(at / (24 * 60 * 60 * 1000)).unwrap_or(0)
}

/// A reservation that stands for so long is nobody's: no call to a model takes half of that.
pub const FORGOTTEN: Millis = 60 * 60 * 1000;

/// A shared key as it is kept: without the key itself, which stays sealed.
#[derive(Debug, Clone)]
pub struct StoredKey {
    /// What the administrator says of it.
    pub key: SharedKey,
    /// When it was added.
    pub created_at: Millis,
    sealed: String,
}

/// Whose limits and consumption a request counts towards.
#[derive(Debug, Clone)]
pub struct ChargedTo {
    /// Id of the key.
    pub key: String,
    /// Id of the project.
    pub project: String,
    /// Id of the member.
    pub member: String,
}

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
    /// How much.
    pub consumption: Consumption,
}

impl StoredKey {
    fn of(row: &AnyRow) -> Result<Self, StoreError> {
        let record: String = row.try_get("record")?;
        let key = serde_json::from_str(&record);
        Ok(Self {
            key: key.map_err(|error| StoreError::Unreadable(format!("key: {error}")))?,
            created_at: row.try_get("created_at")?,
            sealed: row.try_get("sealed")?,
        })
    }

    /// The provider's key.
    ///
    /// # Errors
    /// When the master key is another one than it was sealed with.
    pub fn open(&self, master: &MasterKey) -> Result<String, SealError> {
        master.open(&bound_to(self.key.record()), &self.sealed)
    }
}

impl ChargedTo {
    fn all(&self) -> [(Scope, &str); 3] {
        [
            (Scope::Member, &self.member),
            (Scope::Project, &self.project),
            (Scope::Key, &self.key),
        ]
    }
}

/// As it is written in the database.
fn word(scope: Scope) -> &'static str {
    match scope {
        Scope::Member => "member",
        Scope::Project => "project",
        Scope::Key => "key",
    }
}

fn unsigned(row: &AnyRow, column: &str) -> Result<u64, StoreError> {
    let value: i64 = row.try_get(column)?;
    u64::try_from(value).map_err(|_| StoreError::Unreadable(format!("{column}: {value}")))
}

fn scope_of(row: &AnyRow) -> Result<Scope, StoreError> {
    let scope: String = row.try_get("scope")?;
    let known = [Scope::Member, Scope::Project, Scope::Key];
    let found = known.into_iter().find(|known| word(*known) == scope);
    found.ok_or_else(|| StoreError::Unreadable(format!("scope: {scope}")))
}

fn limits_in(row: &AnyRow) -> Result<Limits, StoreError> {
    let amount = |column| -> Result<Option<u64>, StoreError> {
        let value: Option<i64> = row.try_get(column)?;
        value.map(|_| unsigned(row, column)).transpose()
    };
    Ok(Limits {
        usd_per_day: amount("nano_usd")?.map(NanoUsd::from),
        requests_per_day: amount("requests")?,
    })
}

async fn lock(transaction: &mut Transaction<'_, Any>) -> Result<(), StoreError> {
    sqlx::query("UPDATE locks SET name = name WHERE name = 'consumption'")
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

/// A member, a project and a key, as `$1` to `$6`.
const PAYERS: &str =
    "((scope = $1 AND subject = $2) OR (scope = $3 AND subject = $4) OR (scope = $5 AND subject = $6))";

/// What each of them has, in their order, of the rows of a statement that names them as [`PAYERS`] does.
fn in_order<T: Default>(
    rows: &[AnyRow],
    payers: &ChargedTo,
    read: fn(&AnyRow) -> Result<T, StoreError>,
) -> Result<[T; 3], StoreError> {
    let mut found = <[T; 3]>::default();
    for row in rows {
        let scope = scope_of(row)?;
        for (found, payer) in found.iter_mut().zip(payers.all()) {
            if payer.0 == scope {
                *found = read(row)?;
            }
        }
    }
    Ok(found)
}

async fn consumptions(
    transaction: &mut Transaction<'_, Any>,
    payers: &ChargedTo,
    day: u64,
) -> Result<[Consumption; 3], StoreError> {
    let statement = format!("SELECT * FROM consumption WHERE {PAYERS} AND day = $7");
    let mut query = sqlx::query(AssertSqlSafe(statement));
    for (scope, subject) in payers.all() {
        query = query.bind(word(scope)).bind(subject.to_owned());
    }
    let rows = query.bind(number(day)).fetch_all(&mut **transaction).await?;
    in_order(&rows, payers, consumed)
}

fn consumed(row: &AnyRow) -> Result<Consumption, StoreError> {
    Ok(Consumption {
        used: NanoUsd::from(unsigned(row, "used")?),
        reserved: NanoUsd::from(unsigned(row, "reserved")?),
        requests: unsigned(row, "requests")?,
    })
}

async fn write(
    transaction: &mut Transaction<'_, Any>,
    payers: &ChargedTo,
    day: u64,
    consumptions: [Consumption; 3],
) -> Result<(), StoreError> {
    let mut query = sqlx::query(
        "INSERT INTO consumption (day, scope, subject, used, reserved, requests) \
         VALUES ($1, $2, $3, $4, $5, $6), ($1, $7, $8, $9, $10, $11), ($1, $12, $13, $14, $15, $16) \
         ON CONFLICT (scope, subject, day) DO UPDATE SET \
         used = excluded.used, reserved = excluded.reserved, requests = excluded.requests",
    )
    .bind(number(day));
    for ((scope, subject), consumption) in payers.all().into_iter().zip(consumptions) {
        query = query
            .bind(word(scope))
            .bind(subject.to_owned())
            .bind(number(consumption.used.get()))
            .bind(number(consumption.reserved.get()))
            .bind(number(consumption.requests));
    }
    query.execute(&mut **transaction).await?;
    Ok(())
}

impl Store {
    /// Adds a key.
    ///
    /// # Errors
    /// When its id is taken, or the database fails.
    pub async fn add_key(
        &self,
        actor: &Actor,
        key: &SharedKey,
        secret: &str,
        master: &MasterKey,
    ) -> Result<(), StoreError> {
        let record = key.record();
        let mut transaction = self.begin().await?;
        lock_keys(&mut transaction, master).await?;
        sqlx::query("INSERT INTO keys (id, record, sealed, created_at) VALUES ($1, $2, $3, $4)")
            .bind(&record.id)
            .bind(written(record))
            .bind(master.seal(&bound_to(record), secret))
            .bind(actor.at)
            .execute(&mut *transaction)
            .await
            .map_err(taken("key"))?;
        audit::write(&mut transaction, actor, "key.create", &record.id, None).await?;
        Ok(transaction.commit().await?)
    }

    /// Changes what is said of a key, and the key itself where a new one is given. Without one it goes where it went
    /// before, and nowhere else.
    ///
    /// # Errors
    /// When there is none of this id, another host needs a new key, the master key is another one, or the database fails.
    pub async fn change_key(
        &self,
        actor: &Actor,
        key: &SharedKey,
        secret: Option<&str>,
        master: &MasterKey,
    ) -> Result<(), StoreError> {
        let record = key.record();
        let mut transaction = self.begin().await?;
        lock_keys(&mut transaction, master).await?;
        let row = sqlx::query("SELECT * FROM keys WHERE id = $1")
            .bind(&record.id)
            .fetch_optional(&mut *transaction)
            .await?;
        let before = StoredKey::of(&present(row, "key")?)?;
        if secret.is_none() && bound_to(before.key.record()) != bound_to(record) {
            return Err(StoreError::OtherHost);
        }
        sqlx::query("UPDATE keys SET record = $1 WHERE id = $2")
            .bind(written(record))
            .bind(&record.id)
            .execute(&mut *transaction)
            .await?;
        if let Some(secret) = secret {
            sqlx::query("UPDATE keys SET sealed = $1 WHERE id = $2")
                .bind(master.seal(&bound_to(record), secret))
                .bind(&record.id)
                .execute(&mut *transaction)
                .await?;
        }
        audit::write(&mut transaction, actor, "key.change", &record.id, None).await?;
        Ok(transaction.commit().await?)
    }

    /// Takes a key away with its limits. What it cost stays known.
    ///
    /// # Errors
    /// When there is none of this id, or the database fails.
    pub async fn delete_key(&self, actor: &Actor, id: &str) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let deleted = sqlx::query("DELETE FROM keys WHERE id = $1")
            .bind(id)
            .execute(&mut *transaction)
            .await?;
        if deleted.rows_affected() == 0 {
            return Err(StoreError::Missing("key"));
        }
        sqlx::query("DELETE FROM limits WHERE scope = $1 AND subject = $2")
            .bind(word(Scope::Key))
            .bind(id)
            .execute(&mut *transaction)
            .await?;
        audit::write(&mut transaction, actor, "key.delete", id, None).await?;
        Ok(transaction.commit().await?)
    }

    /// All keys by id.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn keys(&self) -> Result<Vec<StoredKey>, StoreError> {
        let rows = sqlx::query("SELECT * FROM keys ORDER BY id")
            .fetch_all(&self.read)
            .await?;
        rows.iter().map(StoredKey::of).collect()
    }

    /// A key by id.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn key(&self, id: &str) -> Result<Option<StoredKey>, StoreError> {
        let row = sqlx::query("SELECT * FROM keys WHERE id = $1")
            .bind(id)
            .fetch_optional(&self.read)
            .await?;
        row.as_ref().map(StoredKey::of).transpose()
    }

    /// Whether this is the master key of the database. The first one that asks becomes it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn is_master(&self, master: &MasterKey) -> Result<bool, StoreError> {
        sqlx::query("INSERT INTO master (name, sealed) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")
            .bind(CHECK)
            .bind(master.seal(CHECK, CHECK))
            .execute(&self.write)
            .await?;
        let row = sqlx::query("SELECT sealed FROM master WHERE name = $1")
            .bind(CHECK)
            .fetch_optional(&self.write)
            .await?;
        let sealed: String = present(row, "master key")?.try_get("sealed")?;
        Ok(master.open(CHECK, &sealed).is_ok())
    }

    /// Whether the database has a master key.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn has_master(&self) -> Result<bool, StoreError> {
        let row = sqlx::query("SELECT name FROM master WHERE name = $1")
            .bind(CHECK)
            .fetch_optional(&self.read)
            .await?;
        Ok(row.is_some())
    }

    /// Seals all keys with another master key, which becomes the database's. Returns how many there are.
    ///
    /// # Errors
    /// When the present one is not the database's or opens not all of them, and then nothing has changed; or the database
    /// fails.
    pub async fn reseal(
        &self,
        actor: &Actor,
        master: &MasterKey,
        next: &MasterKey,
    ) -> Result<usize, StoreError> {
        let mut transaction = self.begin().await?;
        lock_keys(&mut transaction, master).await?;
        let rows = sqlx::query("SELECT * FROM keys ORDER BY id")
            .fetch_all(&mut *transaction)
            .await?;
        for row in &rows {
            let kept = StoredKey::of(row)?;
            let record = kept.key.record();
            let secret = kept.open(master);
            let secret =
                secret.map_err(|error| StoreError::Unreadable(format!("key {}: {error}", record.id)))?;
            sqlx::query("UPDATE keys SET sealed = $1 WHERE id = $2")
                .bind(next.seal(&bound_to(record), &secret))
                .bind(&record.id)
                .execute(&mut *transaction)
                .await?;
        }
        sqlx::query("UPDATE master SET sealed = $1 WHERE name = $2")
            .bind(next.seal(CHECK, CHECK))
            .bind(CHECK)
            .execute(&mut *transaction)
            .await?;
        audit::write(&mut transaction, actor, "key.rotate", "all", None).await?;
        transaction.commit().await?;
        Ok(rows.len())
    }

    /// Says what a member, a project or a key may consume in a day.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn set_limits(
        &self,
        actor: &Actor,
        (scope, subject): (Scope, &str),
        name: &str,
        limits: Limits,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        sqlx::query(
            "INSERT INTO limits (scope, subject, nano_usd, requests) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (scope, subject) DO UPDATE SET nano_usd = excluded.nano_usd, requests = excluded.requests",
        )
        .bind(word(scope))
        .bind(subject)
        .bind(limits.usd_per_day.map(|amount| number(amount.get())))
        .bind(limits.requests_per_day.map(number))
        .execute(&mut *transaction)
        .await?;
        let action = match scope {
            Scope::Member => "limits.member",
            Scope::Project => "limits.project",
            Scope::Key => "limits.key",
        };
        let usd = limits
            .usd_per_day
            .map_or_else(|| "no limit".to_owned(), |amount| format!("${}", amount.usd()));
        let requests = limits
            .requests_per_day
            .map_or_else(|| "no limit".to_owned(), |requests| requests.to_string());
        let subject = format!("{name}: dollars a day {usd}, requests a day {requests}");
        audit::write(&mut transaction, actor, action, &subject, None).await?;
        Ok(transaction.commit().await?)
    }

    /// All limits, by what they are set for and its id.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn all_limits(&self) -> Result<Vec<(Scope, String, Limits)>, StoreError> {
        let rows = sqlx::query("SELECT * FROM limits ORDER BY scope, subject")
            .fetch_all(&self.read)
            .await?;
        rows.iter()
            .map(|row| Ok((scope_of(row)?, row.try_get("subject")?, limits_in(row)?)))
            .collect()
    }

    /// What a member, a project or a key may consume in a day.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn limits(&self, scope: Scope, subject: &str) -> Result<Limits, StoreError> {
        let row = sqlx::query("SELECT * FROM limits WHERE scope = $1 AND subject = $2")
            .bind(word(scope))
            .bind(subject)
            .fetch_optional(&self.read)
            .await?;
        row.map_or_else(|| Ok(Limits::default()), |row| limits_in(&row))
    }

    /// The limits that a request counts towards: of the member, the project and the key.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn limits_of(&self, payers: &ChargedTo) -> Result<[Limits; 3], StoreError> {
        let statement = format!("SELECT * FROM limits WHERE {PAYERS}");
        let mut query = sqlx::query(AssertSqlSafe(statement));
        for (scope, subject) in payers.all() {
            query = query.bind(word(scope)).bind(subject.to_owned());
        }
        in_order(&query.fetch_all(&self.read).await?, payers, limits_in)
    }

    /// Sets aside what a request may cost, or refuses it: of two that want the last of a limit one is admitted.
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
        let mut transaction = self.begin().await?;
        if !self.is_sqlite {
            lock(&mut transaction).await?;
        }
        let consumptions = consumptions(&mut transaction, &payers, day).await?;
        let scopes = payers.all().map(|(scope, _)| scope);
        let mut accounts: Vec<Account> = std::iter::zip(scopes, std::iter::zip(limits, consumptions))
            .map(|(scope, (limits, consumption))| Account {
                scope,
                limits,
                consumption,
            })
            .collect();
        let reservation = match reserve(&mut accounts, amount, day) {
            Ok(reservation) => reservation,
            Err(problem) => return Ok(Err(problem)),
        };
        let consumptions = std::array::from_fn(|place| accounts[place].consumption);
        write(&mut transaction, &payers, day, consumptions).await?;
        let id = secret::id();
        sqlx::query(
            "INSERT INTO reservations (id, key, project, member, day, amount, created_at, process) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(&id)
        .bind(&payers.key)
        .bind(&payers.project)
        .bind(&payers.member)
        .bind(number(day))
        .bind(number(amount.get()))
        .bind(at)
        .bind(&*self.process)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(Ok(OpenReservation {
            id,
            payers,
            reservation,
        }))
    }

    /// Replaces what was set aside by what the request did cost; does nothing when that was done before.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn settle(&self, aside: &OpenReservation, cost: NanoUsd) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        if !self.is_sqlite {
            lock(&mut transaction).await?;
        }
        let deleted = sqlx::query("DELETE FROM reservations WHERE id = $1")
            .bind(&aside.id)
            .execute(&mut *transaction)
            .await?;
        if deleted.rows_affected() == 0 {
            return Ok(());
        }
        let day = aside.reservation.day;
        let mut consumptions = consumptions(&mut transaction, &aside.payers, day).await?;
        for consumption in &mut consumptions {
            consumption.settle(&aside.reservation, cost);
        }
        write(&mut transaction, &aside.payers, day, consumptions).await?;
        Ok(transaction.commit().await?)
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
            self.settle(&aside, amount).await?;
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

    /// The names of members and projects by id, keys being their own names.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn names(&self) -> Result<std::collections::HashMap<String, String>, StoreError> {
        let rows = sqlx::query("SELECT id, name FROM members UNION ALL SELECT id, name FROM projects")
            .fetch_all(&self.read)
            .await?;
        rows.iter()
            .map(|row| Ok((row.try_get("id")?, row.try_get("name")?)))
            .collect()
    }

    /// The id of the project of a name, whoever asks.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn project_id(&self, name: &str) -> Result<String, StoreError> {
        let row = sqlx::query("SELECT id FROM projects WHERE name = $1")
            .bind(name)
            .fetch_optional(&self.read)
            .await?;
        Ok(present(row, "project")?.try_get("id")?)
    }
}

/// What a key is sealed for: its name and where it is sent, so that who writes the database sends it nowhere else.
fn bound_to(record: &KeyRecord) -> String {
    let base_url = record.base_url.as_deref().unwrap_or_default();
    let provider = record.provider.get().name;
    format!("{}\n{provider}\n{base_url}\n{}", record.id, record.private_host)
}

/// The text that tells whether a master key is the right one.
pub(super) const CHECK: &str = "master";

/// Waits for every other transaction that seals keys, and refuses a master key that is not the one of the database.
async fn lock_keys(transaction: &mut Transaction<'_, Any>, master: &MasterKey) -> Result<(), StoreError> {
    sqlx::query("UPDATE locks SET name = name WHERE name = 'keys'")
        .execute(&mut **transaction)
        .await?;
    let row = sqlx::query("SELECT sealed FROM master WHERE name = $1")
        .bind(CHECK)
        .fetch_optional(&mut **transaction)
        .await?;
    let sealed: String = present(row, "master key")?.try_get("sealed")?;
    let opened = master.open(CHECK, &sealed);
    opened.map(|_| ()).map_err(|_| StoreError::OtherMasterKey)
}

pub(super) fn written(record: &KeyRecord) -> String {
    serde_json::to_string(record).expect("a record is plain")
}
