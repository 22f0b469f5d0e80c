//! Ids and dates in the agent's words.

/// The part of a deed that names action and record: up to the end of the first id.
pub(super) fn first_words(deed: &str) -> &str {
    let end = deed
        .match_indices('-')
        .map(|(at, _)| at)
        .find(|&at| {
            deed[..at].ends_with(['O', 'T'])
                && deed[at + 1..].starts_with(|character: char| character.is_ascii_digit())
        })
        .map(|at| at + 1 + deed[at + 1..].bytes().take_while(u8::is_ascii_digit).count());
    end.map_or(deed, |end| &deed[..end])
}

/// `2026-03-19` → `19 March`.
pub(super) fn spoken_date(date: &str) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let mut parts = date.split('-').skip(1);
    match (
        parts.next().and_then(|month| month.parse::<usize>().ok()),
        parts.next().and_then(|day| day.parse::<u8>().ok()),
    ) {
        (Some(month @ 1..=12), Some(day)) => format!("{day} {}", MONTHS[month - 1]),
        _ => date.to_owned(),
    }
}
