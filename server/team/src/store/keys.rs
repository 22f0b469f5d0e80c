//! Providers' keys that projects share.

use capo_gateway::{KeyRecord, Scope, SharedKey};
use sqlx::any::AnyRow;
use sqlx::{Any, Row, Transaction};

use super::limits::word;
use super::{Actor, Millis, Store, StoreError, audit, present, taken};
use crate::seal::{MasterKey, SealError};

/// A shared key as it is kept: without the key itself, which stays sealed.
#[derive(Debug, Clone)]
pub struct StoredKey {
    /// What the administrator says of it.
    pub key: SharedKey,
    /// When it was added.
    pub created_at: Millis,
    sealed: String,
}

impl StoredKey {
    fn of(row: &AnyRow) -> Result<Self, StoreError> {
        let record: String = row.try_get("record")?;
        Self::new(&record, row.try_get("sealed")?, row.try_get("created_at")?)
    }

    /// As its columns have it.
    pub(super) fn new(record: &str, sealed: String, created_at: Millis) -> Result<Self, StoreError> {
        let key = serde_json::from_str(record);
        Ok(Self {
            key: key.map_err(|error| StoreError::Unreadable(format!("key: {error}")))?,
            created_at,
            sealed,
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
