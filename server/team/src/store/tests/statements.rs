//! What a statement may cost.

use sqlx::{AssertSqlSafe, Row as _};

use super::*;
use crate::store::audit::FORGET;
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

/// How a statement is carried out, by a word and numbers that it binds.
async fn plan(store: &Store, statement: &str, numbers: &[i64]) -> String {
    let mut transaction = store.write.begin().await.unwrap();
    let (explain, column) = if store.is_sqlite {
        ("EXPLAIN QUERY PLAN", "detail")
    } else {
        // A table that has next to no rows may well be read whole.
        sqlx::raw_sql("SET LOCAL enable_seqscan = off")
            .execute(&mut *transaction)
            .await
            .unwrap();
        ("EXPLAIN", "QUERY PLAN")
    };
    let mut query = sqlx::query(AssertSqlSafe(format!("{explain} {statement}"))).bind("a");
    for number in numbers {
        query = query.bind(*number);
    }
    let rows = query.fetch_all(&mut *transaction).await.unwrap();
    let steps: Vec<String> = rows.iter().map(|row| row.try_get(column).unwrap()).collect();
    steps.join("\n")
}

#[test]
fn a_journal_is_searched_by_its_key_for_the_line_to_go_on_from() {
    on_each(|store| async move {
        let (key, condition) = if store.is_sqlite {
            let key = "SEARCH lines USING INDEX sqlite_autoindex_lines_1";
            (key, "(run=? AND line>?)")
        } else {
            let condition = "Index Cond: ((run = 'a'::text) AND (line >= '5'::bigint))";
            ("Index Scan using lines_pkey", condition)
        };
        let plan = plan(&store, FROM_LINE, &[5, 32]).await;
        assert!(plan.contains(key) && plan.contains(condition), "{plan}");
        assert!(!plan.contains("Sort") && !plan.contains("TEMP B-TREE"), "{plan}");
    });
}

#[test]
fn refused_sign_ins_are_found_by_what_they_are_among_all_that_was_done() {
    on_each(|store| async move {
        let plan = plan(&store, FORGET, &[5]).await;
        assert_eq!(plan.matches("audit_of_action").count(), 2, "{plan}");
    });
}
