//! What a statement may cost.

use sqlx::{AssertSqlSafe, Row as _};

use super::*;
use crate::store::journals::FROM_LINE;

#[test]
fn a_statement_in_postgresql_gives_up_in_time() {
    in_postgres(|store| async move {
        for (setting, value) in [("statement_timeout", "30s"), ("lock_timeout", "10s")] {
            let shown: String = sqlx::query_scalar(AssertSqlSafe(format!("SHOW {setting}")))
                .fetch_one(&store.read)
                .await
                .unwrap();
            assert_eq!(shown, value, "{setting}");
        }
    });
}

#[test]
fn a_journal_is_searched_by_its_key_for_the_line_to_go_on_from() {
    on_each(|store| async move {
        let mut transaction = store.write.begin().await.unwrap();
        let (explain, column, key, condition) = if store.is_sqlite {
            let condition = "(run=? AND line>?)";
            (
                "EXPLAIN QUERY PLAN",
                "detail",
                "SEARCH lines USING INDEX sqlite_autoindex_lines_1",
                condition,
            )
        } else {
            // A table that has next to no rows may well be read whole.
            sqlx::raw_sql("SET LOCAL enable_seqscan = off")
                .execute(&mut *transaction)
                .await
                .unwrap();
            let condition = "Index Cond: ((run = 'a'::text) AND (line >= '5'::bigint))";
            ("EXPLAIN", "QUERY PLAN", "Index Scan using lines_pkey", condition)
        };
        let statement = format!("{explain} {FROM_LINE}");
        let rows = sqlx::query(AssertSqlSafe(statement))
            .bind("a")
            .bind(5_i64)
            .bind(32_i64)
            .fetch_all(&mut *transaction)
            .await
            .unwrap();
        let steps: Vec<String> = rows.iter().map(|row| row.try_get(column).unwrap()).collect();
        let plan = steps.join("\n");
        assert!(plan.contains(key) && plan.contains(condition), "{plan}");
        assert!(!plan.contains("Sort") && !plan.contains("TEMP B-TREE"), "{plan}");
    });
}
