//! "Did you mean …?"

/// The candidate nearest to what was written, if any is near enough to be a typing error.
pub fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance =
        |candidate: &str| strsim::damerau_levenshtein(&written.to_lowercase(), &candidate.to_lowercase());
    candidates
        .into_iter()
        .map(|candidate| (distance(candidate), candidate))
        .filter(|(distance, candidate)| {
            *distance <= 1 + candidate.chars().count().max(written.chars().count()) / 3
                || (!written.is_empty() && candidate.starts_with(written))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_typing_errors_and_leaves_strangers_alone() {
        assert_eq!(nearest("treshold", ["metric", "threshold"]), Some("threshold"));
        for stranger in ["zzz", ""] {
            assert_eq!(nearest(stranger, ["metric", "threshold"]), None);
        }
    }
}
