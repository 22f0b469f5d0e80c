//! The database of the team server: in SQLite, or in PostgreSQL when a team outgrows one machine.
//!
//! One set of statements serves both; what differs between them is in the migrations. Every change writes a line of the
//! audit log in the same transaction.

mod accounts;
mod audit;
mod backup;
mod certificates;
mod checkpoints;
mod columns;
mod consumption;
mod data_sets;
mod files;
mod gauges;
mod identities;
mod invitations;
mod journals;
mod keys;
mod leases;
mod limits;
mod member;
mod orders;
mod processes;
mod projects;
mod prompts;
mod runs;
mod sessions;
mod terms;
#[cfg(test)]
pub(crate) mod tests;
mod tokens;
mod training_work;
mod trainings;
mod workers;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use sqlx::any::{AnyPoolOptions, AnyRow};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{Any, AnyPool, Connection as _, Row, Transaction};

#[cfg(test)]
pub(crate) use audit::REFUSALS;
pub use audit::{Actor, Entry};
pub use backup::{back_up, make_ready};
pub use certificates::{Tested, TestingRun};
pub use checkpoints::KeptCheckpoint;
pub use consumption::{FORGOTTEN, OpenReservation, Used, day_of};
pub use data_sets::{AddedDataSet, DataSet};
pub use files::KeptFile;
pub use identities::{Identity, LinkedIdentity, SignsInBy};
pub use invitations::{Invitation, Invited};
pub use keys::StoredKey;
pub use leases::{Lease, NotKept};
pub use limits::ChargedTo;
pub use member::Member;
pub use projects::{MemberRole, Project};
pub use prompts::{AddedVersion, Moved, Prompt, PromptVersion};
pub use runs::{AddedRun, Run, RunStudy};
pub use sessions::Session;
pub use terms::{Proof, Terms};
pub use tokens::Token;
pub use training_work::TrainingOutcome;
pub use trainings::{AddedTraining, Training};
pub use workers::{Instructions, RunOutcome};

use crate::files::FilesError;

/// Milliseconds since 1970 in UTC.
pub type Millis = i64;

pub(crate) fn in_millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX / 2)
}

static SQLITE: Migrator = sqlx::migrate!("migrations/sqlite");
static POSTGRES: Migrator = sqlx::migrate!("migrations/postgres");

/// How long a statement waits for a connection or a lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connections that only read, or of PostgreSQL all.
const CONNECTIONS: u32 = 8;

/// Why something cannot be kept or found.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is none, or not for who asks.
    #[error("there is no such {0}")]
    Missing(&'static str),
    /// The name is in use.
    #[error("there is already a {0} of this name")]
    Taken(&'static str),
    /// The server has members already.
    #[error("this server is set up already; sign in, or ask for an invitation")]
    SetUp,
    /// Nobody could administer the server any more.
    #[error("this is the last administrator; make somebody else one first")]
    LastAdmin,
    /// The identity opens an account already.
    #[error("this identity opens an account here already; sign in by it, or unlink it there")]
    Linked,
    /// The member could not sign in any more.
    #[error(
        "this identity is the only way into the account; have an administrator give it a password by \
         `capo admin set-password`"
    )]
    LastWayIn,
    /// A key would go where it did not go before.
    #[error("the key goes to another host now: give it anew")]
    OtherHost,
    /// Somebody works on the run or training, or will.
    #[error("this is under way; stop it first")]
    Working,
    /// The run or training is queued, or somebody works on it.
    #[error("this goes on already")]
    GoesOn,
    /// Nobody works on the run or training.
    #[error("this is not under way")]
    AtRest,
    /// Somebody else has moved the label.
    #[error("the label {label} is on {} by now; look at what it is on before you move it", place(*.version))]
    LabelMoved {
        /// Its name.
        label: String,
        /// The version that it is on.
        version: Option<u64>,
    },
    /// There is no room for another.
    #[error("a project has at most {1} {0}; delete one that is no longer needed")]
    TooMany(&'static str, u64),
    /// What a file holds is not where it was written.
    #[error("{object} is not in {place}; name the place where the server's data files lie with --files")]
    NoObject {
        /// The object.
        object: String,
        /// Where it was looked for.
        place: String,
    },
    /// The place of data files.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// Keys were encrypted with another master key.
    #[error("the keys were encrypted with another master key")]
    OtherMasterKey,
    /// The database holds what this program does not understand.
    #[error("the database holds what this version cannot read: {0}")]
    Unreadable(String),
    /// A copy that is no whole database.
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// The address is no database.
    #[error("{url}: {problem}; name a database as sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME")]
    Address {
        /// The address, without a password.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// It was written by a newer version.
    #[error(
        "the database has the changes up to {found}, and this `capo` knows those up to {known}: a newer version wrote it. \
         Start that one, or restore a backup that this one wrote"
    )]
    Newer {
        /// The last change in the database.
        found: i64,
        /// The last change that this program knows.
        known: i64,
    },
    /// What the database says.
    #[error("the database: {0}")]
    Database(#[from] sqlx::Error),
    /// What it says when its tables are made.
    #[error("the tables cannot be brought up to date: {0}")]
    Migration(MigrateError),
}

impl StoreError {
    /// Whether there is no more room for it.
    pub(crate) fn is_full(&self) -> bool {
        self.has_code(&[SQLITE_FULL, POSTGRES_FULL])
    }

    /// Whether a text has the character NUL, which PostgreSQL neither keeps nor compares with what it keeps.
    pub(crate) fn is_unkept(&self) -> bool {
        self.has_code(&[POSTGRES_UNKEPT])
    }

    fn has_code(&self, codes: &[&str]) -> bool {
        let code = match self {
            Self::Database(sqlx::Error::Database(said)) => said.code(),
            _ => None,
        };
        code.is_some_and(|code| codes.contains(&&*code))
    }
}

/// By which the databases say that the disk is full.
const SQLITE_FULL: &str = "13";
const POSTGRES_FULL: &str = "53100";

/// By which PostgreSQL says that its encoding does not have a character.
const POSTGRES_UNKEPT: &str = "22021";

/// A database of the team server.
#[derive(Debug, Clone)]
pub struct Store {
    read: AnyPool,
    /// The same pool with PostgreSQL. Of SQLite, which has one writer, a single connection: others would only wait.
    write: AnyPool,
    is_sqlite: bool,
    /// By which the database knows this process from others that work on it.
    process: Arc<str>,
    costs: consumption::Costs,
    /// Milliseconds by which the clock that all these processes share is ahead of this machine's.
    ahead: Arc<AtomicI64>,
}

impl Store {
    /// Opens a database by its address, `sqlite:PATH` (the file is made) or `postgres://…`, and brings its tables up to
    /// date.
    ///
    /// # Errors
    /// When the address is none, the database does not answer, or a newer version wrote it.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        sqlx::any::install_default_drivers();
        let address = |problem: &str| StoreError::Address {
            url: without_password(url),
            problem: problem.into(),
        };
        let (url, is_sqlite) = match url.split_once(':') {
            Some(("sqlite", path)) => (sqlite_url(path), true),
            Some(("postgres" | "postgresql", _)) => (url.to_owned(), false),
            _ => return Err(address("this is no address of a database")),
        };
        let open = |connections: u32| {
            let options = AnyPoolOptions::new().acquire_timeout(PATIENCE);
            options
                // A file is not lost between two statements, as a connection over a network may be.
                .test_before_acquire(!is_sqlite)
                // SQLite itself takes back what a full disk ended, which the driver never learns: that connection begins nothing
                // more.
                .after_release(move |connection, _| {
                    Box::pin(async move {
                        if connection.is_in_transaction() {
                            // What is to be taken back may still be on its way.
                            connection.ping().await?;
                        }
                        if connection.is_in_transaction() {
                            return Ok(false);
                        }
                        if is_sqlite && connections == 1 {
                            // After a change of the ledger that the disk did not confirm.
                            sqlx::raw_sql("PRAGMA synchronous = FULL")
                                .execute(connection)
                                .await?;
                        }
                        Ok(true)
                    })
                })
                .max_connections(connections)
                .after_connect(move |connection, _| {
                    Box::pin(async move {
                        let settings = if is_sqlite {
                            SQLITE_SETTINGS
                        } else {
                            POSTGRES_SETTINGS
                        };
                        sqlx::raw_sql(settings).execute(connection).await?;
                        Ok(())
                    })
                })
                .connect(&url)
        };
        let refused = |error: sqlx::Error| match error {
            sqlx::Error::Configuration(problem) => address(&problem.to_string()),
            error => StoreError::Database(error),
        };
        // A pool would try until its patience ends, and then only say so.
        let first = sqlx::AnyConnection::connect(&url).await.map_err(refused)?;
        first.close().await?;
        let write = open(if is_sqlite { 1 } else { CONNECTIONS })
            .await
            .map_err(refused)?;
        let migrations = if is_sqlite { &SQLITE } else { &POSTGRES };
        migrate(migrations, &write).await?;
        let read = if is_sqlite {
            open(CONNECTIONS).await.map_err(refused)?
        } else {
            write.clone()
        };
        Ok(Self {
            read,
            write,
            is_sqlite,
            process: crate::secret::id().into(),
            costs: consumption::Costs::default(),
            ahead: Arc::default(),
        })
    }

    /// The database in a file of a folder, which is made for this account alone.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn in_folder(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join("capo.db");
        let mut file = File::options();
        file.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
        // One that is there keeps its mode, and why none can be made SQLite says.
        let _ = file.open(&path);
        Self::open(&format!("sqlite:{}", path.display())).await
    }

    /// Whether the database answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn answers(&self) -> Result<(), StoreError> {
        sqlx::query("SELECT 1").execute(&self.read).await?;
        Ok(())
    }

    /// Waits for what is under way and closes the connections.
    pub async fn close(&self) {
        self.write.close().await;
        self.read.close().await;
    }

    /// Begins to write; of a file nobody else writes from then on.
    async fn begin(&self) -> Result<Transaction<'static, Any>, StoreError> {
        Ok(if self.is_sqlite {
            self.write.begin_with("BEGIN IMMEDIATE").await?
        } else {
            self.write.begin().await?
        })
    }
}

/// A statement gives up before whoever asked for it does; rows that others lock are seen as those leave them.
const POSTGRES_SETTINGS: &str = "SET lock_timeout = '10s'; SET statement_timeout = '30s'; \
                                 SET default_transaction_isolation = 'read committed';";

/// A writer waits for another program's (such as `capo admin`), readers for nobody; rows go with what they belong to.
const SQLITE_SETTINGS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; \
                       PRAGMA busy_timeout = 10000;";

async fn migrate(migrations: &'static Migrator, pool: &AnyPool) -> Result<(), StoreError> {
    let known = migrations.iter().map(|migration| migration.version).max();
    migrations.run(pool).await.map_err(|error| match error {
        MigrateError::VersionMissing(found) => StoreError::Newer {
            found,
            known: known.unwrap_or(0),
        },
        error => StoreError::Migration(error),
    })
}

/// The address of a file, whatever characters its path has.
fn sqlite_url(path: &str) -> String {
    use std::fmt::Write as _;
    let path = path.strip_prefix("//").unwrap_or(path);
    let mut url = String::from("sqlite://");
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-~:\\".contains(&byte) {
            url.push(char::from(byte));
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
    }
    url + "?mode=rwc"
}

/// The address with `…` in place of a password, and without what follows a question mark, where one may stand, too.
fn without_password(url: &str) -> String {
    let url = url.split('?').next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    match rest.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}:…@{host}")
        }
        None => url.to_owned(),
    }
}

/// Notes that a time of use could not be written: a full disk signs nobody out.
fn unless_written<T>(written: Result<T, sqlx::Error>) {
    if let Err(error) = written {
        tracing::warn!(%error, "when it was used could not be written");
    }
}

/// The one row that there is, or an error that names what is missing.
fn present(row: Option<AnyRow>, what: &'static str) -> Result<AnyRow, StoreError> {
    row.ok_or(StoreError::Missing(what))
}

/// A flag: neither database has the other's booleans.
fn flag(row: &AnyRow, column: &str) -> Result<bool, sqlx::Error> {
    row.try_get::<i64, _>(column).map(|value| value != 0)
}

/// A number that counts something.
fn count(row: &AnyRow, column: &str) -> Result<u64, StoreError> {
    optional_count(row, column)?.ok_or_else(|| StoreError::Unreadable(column.into()))
}

/// The same where there may be none.
fn optional_count(row: &AnyRow, column: &str) -> Result<Option<u64>, StoreError> {
    let count: Option<i64> = row.try_get(column)?;
    let unreadable = |count| StoreError::Unreadable(format!("{column}: {count}"));
    count
        .map(|count| u64::try_from(count).map_err(|_| unreadable(count)))
        .transpose()
}

/// Where a label is, in words.
fn place(version: Option<u64>) -> String {
    version.map_or_else(|| "no version".into(), |version| format!("version {version}"))
}

/// A word of a closed set.
fn word<T: std::str::FromStr>(row: &AnyRow, column: &str) -> Result<T, StoreError>
where
    T::Err: std::fmt::Display,
{
    let text: String = row.try_get(column)?;
    text.parse()
        .map_err(|error: T::Err| StoreError::Unreadable(format!("{column}: {error}")))
}

/// The error of a statement that inserts a name.
fn taken(what: &'static str) -> impl FnOnce(sqlx::Error) -> StoreError {
    move |error| {
        let is_unique = error
            .as_database_error()
            .is_some_and(sqlx::error::DatabaseError::is_unique_violation);
        if is_unique {
            StoreError::Taken(what)
        } else {
            error.into()
        }
    }
}
