//! The lines of runs' journals.

use sqlx::{Any, AssertSqlSafe, Row, Transaction};

use super::columns::{ROWS, number, rows};
use super::{Store, StoreError, count, present};

/// Bytes of a journal that are read at once.
const AT_ONCE: usize = 4 << 20;

/// Rows that one statement reads.
const READ: usize = 32;

/// The next rows of a run (`$1`) from a line (`$2`) on, as many as are asked for (`$3`): what comes before costs nothing.
pub(super) const FROM_LINE: &str =
    "SELECT line, body FROM lines WHERE run = $1 AND line >= $2 ORDER BY line LIMIT $3";

/// Appends lines to the journal of a run, the first of which gets this number.
pub(super) async fn insert_lines(
    transaction: &mut Transaction<'static, Any>,
    run: &str,
    first: u64,
    lines: &[String],
) -> Result<(), sqlx::Error> {
    let mut next = number(first);
    for lines in lines.chunks(ROWS) {
        let values = rows(lines.len(), 2);
        let statement = format!("INSERT INTO lines (run, line, body) VALUES {values}");
        let mut query = sqlx::query(AssertSqlSafe(statement)).bind(run);
        for line in lines {
            query = query.bind(next).bind(line);
            next += 1;
        }
        query.execute(&mut **transaction).await?;
    }
    Ok(())
}

impl Store {
    /// The journal of a run from a line on, up to about so many bytes; at least one line where there is one.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn lines(&self, run: &str, from: u64, bytes: usize) -> Result<Vec<(u64, String)>, StoreError> {
        let (mut found, mut size) = (Vec::new(), 0);
        loop {
            let next = found.last().map_or(from, |(line, _): &(u64, String)| line + 1);
            let rows = sqlx::query(FROM_LINE)
                .bind(run)
                .bind(number(next))
                .bind(number(READ))
                .fetch_all(&self.read)
                .await?;
            for row in &rows {
                let body: String = row.try_get("body")?;
                size += body.len();
                found.push((count(row, "line")?, body));
            }
            if rows.len() < READ || size >= bytes {
                return Ok(found);
            }
        }
    }

    /// The whole journal of a run, as its file would be.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn journal(&self, run: &str) -> Result<String, StoreError> {
        let mut text = String::new();
        self.each_line(run, |line| text += &(line + "\n")).await?;
        Ok(text)
    }

    /// All lines of the journal of a run.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn all_lines(&self, run: &str) -> Result<Vec<String>, StoreError> {
        let mut lines = Vec::new();
        self.each_line(run, |line| lines.push(line)).await?;
        Ok(lines)
    }

    async fn each_line(&self, run: &str, mut take: impl FnMut(String)) -> Result<(), StoreError> {
        let mut next = 0;
        loop {
            let lines = self.lines(run, next, AT_ONCE).await?;
            let Some((last, _)) = lines.last() else {
                return Ok(());
            };
            next = last + 1;
            for (_, line) in lines {
                take(line);
            }
        }
    }

    /// How many bytes the first lines of a journal have, with the end of each.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn size_of_lines(&self, run: &str, lines: u64) -> Result<u64, StoreError> {
        let row = sqlx::query(
            "SELECT CAST(COALESCE(SUM(OCTET_LENGTH(body) + 1), 0) AS BIGINT) AS size FROM lines \
             WHERE run = $1 AND line < $2",
        )
        .bind(run)
        .bind(number(lines))
        .fetch_one(&self.read)
        .await?;
        count(&row, "size")
    }

    /// One line of a journal.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn line(&self, run: &str, line: u64) -> Result<String, StoreError> {
        let row = sqlx::query("SELECT body FROM lines WHERE run = $1 AND line = $2")
            .bind(run)
            .bind(number(line))
            .fetch_optional(&self.read)
            .await?;
        Ok(present(row, "line")?.try_get("body")?)
    }
}
