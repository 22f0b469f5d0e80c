//! Moving by cell in a table.

/// The rows that PageUp and PageDown pass over.
const PAGE: usize = 10;

/// The cell that a key leads to, in a table of so many rows and columns.
pub(super) fn next(
    (row, column): (usize, usize),
    key: &str,
    (rows, columns): (usize, usize),
) -> Option<(usize, usize)> {
    let (last_row, last_column) = (rows.checked_sub(1)?, columns.checked_sub(1)?);
    let next = match key {
        "ArrowLeft" => (row, column.saturating_sub(1)),
        "ArrowRight" => (row, column + 1),
        "ArrowUp" => (row.saturating_sub(1), column),
        "ArrowDown" => (row + 1, column),
        "Home" => (row, 0),
        "End" => (row, last_column),
        "PageUp" => (row.saturating_sub(PAGE), column),
        "PageDown" => (row + PAGE, column),
        _ => return None,
    };
    Some((next.0.min(last_row), next.1.min(last_column)))
}

#[cfg(test)]
mod tests {
    use super::next;

    #[test]
    fn keys_move_by_cell_and_stay_inside() {
        assert_eq!(next((0, 0), "ArrowRight", (12, 74)), Some((0, 1)));
        assert_eq!(next((0, 73), "ArrowRight", (12, 74)), Some((0, 73)));
        assert_eq!(next((4, 9), "PageDown", (12, 74)), Some((11, 9)));
        assert_eq!(next((4, 9), "End", (12, 74)), Some((4, 73)));
        assert_eq!(next((4, 9), "x", (12, 74)), None);
        assert_eq!(next((0, 0), "ArrowDown", (0, 0)), None);
    }
}
