//! Gauges: what is measured of a database.

use std::collections::BTreeMap;

use sqlx::{AnyPool, Row};

use super::{Store, StoreError};

impl Store {
    /// How many runs are in each stage in which there are any.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn runs_by_stage(&self) -> Result<BTreeMap<String, i64>, StoreError> {
        let rows = sqlx::query("SELECT stage, COUNT(*) AS runs FROM runs GROUP BY stage")
            .fetch_all(&self.read)
            .await?;
        rows.iter()
            .map(|row| Ok((row.try_get("stage")?, row.try_get("runs")?)))
            .collect()
    }

    /// Connections of each pool: its name, how many are open, and how many of these are idle.
    pub fn connections(&self) -> Vec<(&'static str, u32, u32)> {
        let of = |name, pool: &AnyPool| (name, pool.size(), pool.num_idle().try_into().unwrap_or(u32::MAX));
        if self.is_sqlite {
            vec![of("read", &self.read), of("write", &self.write)]
        } else {
            vec![of("all", &self.write)]
        }
    }
}
