//! Extraction of the answer from a model's output.

/// The output without the reasoning some models print between `<think>` and `</think>`.
///
/// A block that is never closed (the model ran out of tokens while thinking) hides all that
/// follows. Text without such a block is returned as it is; around a removed block white space is
/// trimmed from the beginning.
pub fn visible(output: &str) -> String {
    if !output.contains("<think>") && !output.contains("</think>") {
        return output.to_owned();
    }
    // Some chat templates put the opening mark into the prompt, so only the closing one is seen.
    let first_close = output.find("</think>");
    let mut rest = match (output.find("<think>"), first_close) {
        (open, Some(close)) if open.is_none_or(|open| close < open) => &output[close + "</think>".len()..],
        _ => output,
    };
    let mut kept = String::new();
    while let Some(open) = rest.find("<think>") {
        kept.push_str(&rest[..open]);
        let inside = &rest[open + "<think>".len()..];
        rest = inside
            .find("</think>")
            .map_or("", |close| &inside[close + "</think>".len()..]);
    }
    kept.push_str(rest);
    kept.trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_is_removed_and_nothing_else() {
        for (output, answer) in [
            (" plain ", " plain "),
            ("<think>a\nb</think>\n\n72", "72"),
            ("x <think>a</think>y<think>b</think> z", "x y z"),
            ("thoughts</think>\n72", "72"),
            ("<think>cut off", ""),
            ("", ""),
        ] {
            assert_eq!(visible(output), answer, "{output:?}");
        }
    }
}
