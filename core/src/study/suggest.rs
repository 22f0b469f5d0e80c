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
                || candidate.starts_with(written)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A parser's message for people, see [`plain`](super::plain); adds the nearest valid name to serde's messages on unknown fields and variants, which list the
/// valid ones between back-ticks after the written one.
pub fn suggest(message: &str) -> String {
    let unknown = message.contains("unknown field `") || message.contains("unknown variant `");
    let mut names = message.split('`').skip(1).step_by(2);
    match (unknown, names.next()) {
        (true, Some(written)) => match nearest(written, names) {
            Some(candidate) => format!("{message}; did you mean `{candidate}`?"),
            None => message.to_owned(),
        },
        _ => super::plain(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_typing_errors_and_leaves_strangers_alone() {
        assert_eq!(nearest("treshold", ["metric", "threshold"]), Some("threshold"));
        assert_eq!(nearest("zzz", ["metric", "threshold"]), None);
        assert_eq!(
            suggest("unknown field `metrc`, expected one of `metric`, `scale`"),
            "unknown field `metrc`, expected one of `metric`, `scale`; did you mean `metric`?"
        );
        assert_eq!(suggest("missing field `metric`"), "missing field `metric`");
    }
}
