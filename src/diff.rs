//! Two prompts, word by word.
//!
//! The diff is for reading: a run of fewer than three unchanged words between two edits counts as
//! edited, or what was rewritten falls into confetti. Line breaks that both prompts have stay where
//! they are, so that what was a list remains one.

use std::mem::take;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::format;

/// Unchanged words between two edits that are enough to be shown as unchanged.
const FEWEST_UNCHANGED: usize = 3;

/// What became of a part of the old prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It stands in both.
    Equal,
    /// It stands in the old prompt only.
    Deleted,
    /// It stands in the new prompt only.
    Inserted,
}

/// A part of the diff; white space and line breaks belong to its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// What became of it.
    pub change: Change,
    /// Its text, never empty.
    pub text: String,
}

/// The difference of two prompts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptDiff {
    /// The parts in reading order. Equal and deleted ones together are the old prompt, equal and
    /// inserted ones the new prompt. No two neighbours have the same kind of change.
    pub segments: Vec<Segment>,
    /// Words shown as inserted.
    pub inserted: usize,
    /// Words shown as deleted.
    pub deleted: usize,
}

impl PromptDiff {
    /// The difference from one prompt to another.
    ///
    /// ```
    /// use capo_web::diff::{Change, PromptDiff};
    ///
    /// let diff = PromptDiff::new("Say so politely in one sentence.", "Say so in one sentence.");
    /// let parts: Vec<(Change, &str)> =
    ///     diff.segments.iter().map(|part| (part.change, part.text.as_str())).collect();
    /// assert_eq!(
    ///     parts,
    ///     [(Change::Equal, "Say so "), (Change::Deleted, "politely "), (Change::Equal, "in one sentence.")]
    /// );
    /// assert_eq!((diff.inserted, diff.deleted), (0, 1));
    /// ```
    pub fn new(old: &str, new: &str) -> Self {
        let (old, new) = (tokens(old), tokens(new));
        let mut diff = Self::default();
        let mut runs: Vec<Run<'_>> = Vec::new();
        for operation in capture_diff_slices(Algorithm::Myers, &old, &new) {
            let run = Run {
                equal: matches!(operation, DiffOp::Equal { .. }),
                old: &old[operation.old_range()],
                new: &new[operation.new_range()],
            };
            runs.push(run);
        }
        let mut edit = Edit::default();
        for (place, run) in runs.iter().enumerate() {
            let between_edits = place > 0 && place + 1 < runs.len();
            if !run.equal {
                edit.deleted.extend(run.old);
                edit.inserted.extend(run.new);
            } else if between_edits && words(run.old) < FEWEST_UNCHANGED {
                for token in run.old {
                    if token.contains('\n') {
                        edit.close(&mut diff.segments);
                        push(&mut diff.segments, Change::Equal, token);
                    } else {
                        edit.deleted.push(token);
                        edit.inserted.push(token);
                    }
                }
            } else {
                edit.close(&mut diff.segments);
                push(&mut diff.segments, Change::Equal, &run.old.concat());
            }
        }
        edit.close(&mut diff.segments);
        // What is struck or underlined is what a reader counts.
        let shown = |change: Change| {
            let of_kind = diff.segments.iter().filter(|segment| segment.change == change);
            of_kind
                .map(|segment| segment.text.split_whitespace().count())
                .sum()
        };
        (diff.inserted, diff.deleted) = (shown(Change::Inserted), shown(Change::Deleted));
        diff
    }

    /// The same with a few words alone of what stands in both, beside every edit.
    #[must_use]
    pub fn excerpt(mut self) -> Self {
        let last = self.segments.len().saturating_sub(1);
        for (place, segment) in self.segments.iter_mut().enumerate() {
            if segment.change == Change::Equal {
                segment.text = beside(&segment.text, place > 0, place < last);
            }
        }
        self
    }

    /// Whether the two prompts are the same.
    pub fn is_empty(&self) -> bool {
        self.segments
            .iter()
            .all(|segment| segment.change == Change::Equal)
    }

    /// "Underlined: 12 words added. Struck through: one word taken out."
    pub fn words(&self) -> String {
        let words = |number: usize| match number {
            1 => "one word".to_owned(),
            number => format!("{} words", format::count(number as u64)),
        };
        match (self.inserted, self.deleted) {
            (0, 0) if self.is_empty() => "The two texts are the same.".into(),
            (inserted, 0) => format!("Underlined: {} added.", words(inserted)),
            (0, deleted) => format!("Struck through: {} taken out.", words(deleted)),
            (inserted, deleted) => format!(
                "Underlined: {} added. Struck through: {} taken out.",
                words(inserted),
                words(deleted)
            ),
        }
    }
}

/// Tokens of both prompts that one operation speaks of.
struct Run<'a> {
    equal: bool,
    old: &'a [&'a str],
    new: &'a [&'a str],
}

/// An edit that is being collected.
#[derive(Default)]
struct Edit<'a> {
    deleted: Vec<&'a str>,
    inserted: Vec<&'a str>,
}

impl Edit<'_> {
    /// Hands the edit over, what was deleted first. Where a line break of both prompts stands between
    /// two edits, the unchanged words next to it lie at the edge of one: there they stay unchanged.
    fn close(&mut self, segments: &mut Vec<Segment>) {
        let (deleted, inserted) = (take(&mut self.deleted), take(&mut self.inserted));
        let same = |(a, b): &(&&str, &&str)| a == b;
        let before = deleted.iter().zip(&inserted).take_while(same).count();
        let (opening, deleted) = deleted.split_at(before);
        let inserted = &inserted[before..];
        let pairs = deleted.iter().rev().zip(inserted.iter().rev());
        let after = pairs.take_while(same).count();
        let (deleted, closing) = deleted.split_at(deleted.len() - after);
        let inserted = &inserted[..inserted.len() - after];
        push(segments, Change::Equal, &opening.concat());
        push(segments, Change::Deleted, &deleted.concat());
        push(segments, Change::Inserted, &inserted.concat());
        push(segments, Change::Equal, &closing.concat());
    }
}

/// Adds text to the last segment when it has the same kind of change, else as one more.
fn push(segments: &mut Vec<Segment>, change: Change, text: &str) {
    match segments.last_mut() {
        _ if text.is_empty() => {}
        Some(last) if last.change == change => last.text.push_str(text),
        _ => segments.push(Segment {
            change,
            text: text.to_owned(),
        }),
    }
}

/// Words, line breaks and the runs of other white space between them; together they are the text.
fn tokens(text: &str) -> Vec<&str> {
    let kind = |character: char| match character {
        '\n' => 0,
        blank if blank.is_whitespace() => 1,
        _ => 2,
    };
    let mut tokens = Vec::new();
    let mut start = 0;
    let mut last = None;
    for (place, character) in text.char_indices() {
        let next = kind(character);
        // Every line break is a token of its own.
        if last.is_some_and(|last| last != next || next == 0) {
            tokens.push(&text[start..place]);
            start = place;
        }
        last = Some(next);
    }
    if start < text.len() {
        tokens.push(&text[start..]);
    }
    tokens
}

/// The first words of a text after an edit and the last ones before an edit.
fn beside(text: &str, after: bool, before: bool) -> String {
    // Five words, and what parts them.
    const KEPT: usize = 10;
    let tokens = tokens(text);
    let (head, tail) = (KEPT * usize::from(after), KEPT * usize::from(before));
    if tokens.len() <= head + tail {
        return text.to_owned();
    }
    let rest = tokens.len() - tail;
    format!("{}…{}", tokens[..head].concat(), tokens[rest..].concat())
}

fn words(tokens: &[&str]) -> usize {
    tokens.iter().filter(|token| !token.trim().is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `[-deleted-]`, `{+inserted+}`, everything else as it stands.
    fn shown(old: &str, new: &str) -> String {
        let diff = PromptDiff::new(old, new);
        let side = |absent: Change| -> String {
            let kept = diff.segments.iter().filter(|segment| segment.change != absent);
            kept.map(|segment| segment.text.as_str()).collect()
        };
        assert_eq!(side(Change::Inserted), old);
        assert_eq!(side(Change::Deleted), new);
        let neighbours = diff.segments.windows(2);
        for pair in neighbours {
            assert_ne!(pair[0].change, pair[1].change);
        }
        diff.segments
            .iter()
            .map(|segment| match segment.change {
                Change::Equal => segment.text.clone(),
                Change::Deleted => format!("[-{}-]", segment.text),
                Change::Inserted => format!("{{+{}+}}", segment.text),
            })
            .collect()
    }

    #[test]
    fn what_is_the_same_is_one_segment() {
        let diff = PromptDiff::new("Help\nthem. ", "Help\nthem. ");
        assert_eq!(diff.segments.len(), 1);
        assert!(diff.is_empty());
        assert!(PromptDiff::new("", "").is_empty());
        assert_eq!(shown("", "New words."), "{+New words.+}");
        assert_eq!(shown("Old words.", ""), "[-Old words.-]");
    }

    #[test]
    fn a_short_run_between_two_edits_counts_as_edited() {
        assert_eq!(
            shown("one a b two end of it", "three a b four end of it"),
            "[-one a b two-]{+three a b four+} end of it"
        );
        assert_eq!(
            shown("one a b c two end of it", "three a b c four end of it"),
            "[-one-]{+three+} a b c [-two-]{+four+} end of it"
        );
        // At the beginning and at the end there is only one edit beside it.
        assert_eq!(shown("a one", "a two"), "a [-one-]{+two+}");
        assert_eq!(shown("one a", "two a"), "[-one-]{+two+} a");
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(
            shown("1. Ask once.\n2. Read it.", "1. Ask twice.\n2. Fetch it."),
            "1. Ask [-once.-]{+twice.+}\n2. [-Read-]{+Fetch+} it."
        );
        assert_eq!(
            shown("Be kind.\nBe brief.\n", "Be kind.\nPlan first.\nBe brief.\n"),
            "Be kind.\n{+Plan first.\n+}Be brief.\n"
        );
        assert_eq!(shown("a\nb", "a\n\nb"), "a\n{+\n+}b");
    }

    #[test]
    fn the_summary_counts_what_is_shown_as_changed() {
        let diff = PromptDiff::new("one a b two end of it", "three a b four five end of it");
        assert_eq!((diff.deleted, diff.inserted), (4, 5));
    }

    #[test]
    fn an_excerpt_leaves_out_what_is_far_from_edits() {
        let (old, new) = ("one a b c d e f g h i j k l two", "three a b c d e f g h i j k l");
        let diff = PromptDiff::new(old, new).excerpt();
        let parts: Vec<&str> = diff.segments.iter().map(|part| part.text.as_str()).collect();
        assert_eq!(parts, ["one", "three", " a b c d e… h i j k l", " two"]);
        assert_eq!((diff.inserted, diff.deleted), (1, 2));
    }

    #[test]
    fn every_script_is_put_together_again() {
        shown("Grüße\u{a0}an\talle\r\n你好", "Grüße an alle\r\n你好 世界");
    }
}
