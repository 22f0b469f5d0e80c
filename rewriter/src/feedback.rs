//! Feedback cut to what a context has room for.
//!
//! The rule: passages are separated by blank lines. Of the longest passage (the earliest of equals)
//! the first line that is left goes, and so on, so that long passages lose first and the latest of
//! each is kept longest. Where lines went, a mark says how much.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::AddAssign;

/// How much of a feedback was left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Lines that are not blank.
    pub lines: usize,
    /// Their Unicode scalar values, line ends not counted.
    pub characters: usize,
}

impl LeftOut {
    /// Whether nothing was left out.
    pub fn is_nothing(&self) -> bool {
        self.lines == 0
    }

    fn of(line: &str) -> Self {
        Self {
            lines: 1,
            characters: line.chars().count(),
        }
    }

    fn mark(self) -> String {
        format!("[… {} characters left out …]", self.characters)
    }
}

impl AddAssign for LeftOut {
    fn add_assign(&mut self, other: Self) {
        self.lines += other.lines;
        self.characters += other.characters;
    }
}

/// A feedback with the order in which its lines go.
///
/// ```
/// use capo_rewriter::feedback::Cuttable;
///
/// let feedback = Cuttable::new("It hands over.\n\nUser: hello\nAgent: bye\nUser: why?");
/// assert_eq!(feedback.steps(), 4);
/// let (text, left_out) = feedback.without(2);
/// assert_eq!(text, "It hands over.\n\n[… 21 characters left out …]\nUser: why?");
/// assert_eq!(left_out.lines, 2);
/// ```
#[derive(Debug, Clone)]
pub struct Cuttable<'a> {
    lines: Vec<&'a str>,
    /// For each line the number of cuts after which it is gone; none for a blank line.
    goes_at: Vec<Option<usize>>,
    steps: usize,
}

impl<'a> Cuttable<'a> {
    /// Reads a feedback.
    pub fn new(feedback: &'a str) -> Self {
        let lines: Vec<&str> = feedback.lines().skip_while(|line| is_blank(line)).collect();
        let mut goes_at = vec![None; lines.len()];
        let passages = passages(&lines);
        let mut longest: BinaryHeap<_> = (0..)
            .zip(&passages)
            .map(|(index, passage)| (characters(&lines[passage.clone()]), Reverse(index)))
            .collect();
        let mut first: Vec<usize> = passages.iter().map(|passage| passage.start).collect();
        let mut steps = 0;
        while let Some((length, Reverse(index))) = longest.pop() {
            let line: usize = first[index];
            steps += 1;
            goes_at[line] = Some(steps);
            first[index] += 1;
            if first[index] < passages[index].end {
                longest.push((length - characters(&lines[line..=line]), Reverse(index)));
            }
        }
        Self {
            lines,
            goes_at,
            steps,
        }
    }

    /// Cuts after which nothing but a mark is left: the number of lines that are not blank.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The text after `cuts` cuts, and what it lacks.
    pub fn without(&self, cuts: usize) -> (String, LeftOut) {
        let mut kept: Vec<String> = Vec::new();
        let (mut total, mut here, mut blanks) = (LeftOut::default(), LeftOut::default(), 0);
        for (line, goes_at) in self.lines.iter().zip(&self.goes_at) {
            match goes_at {
                Some(step) if *step <= cuts => {
                    here += LeftOut::of(line);
                    // What lies between two cuts is one cut.
                    blanks = 0;
                }
                None if !here.is_nothing() => blanks += 1,
                _ => {
                    if !here.is_nothing() {
                        kept.push(here.mark());
                        kept.extend(std::iter::repeat_n(String::new(), blanks));
                        total += std::mem::take(&mut here);
                        blanks = 0;
                    }
                    kept.push((*line).to_owned());
                }
            }
        }
        if !here.is_nothing() {
            kept.push(here.mark());
            total += here;
        }
        (kept.join("\n"), total)
    }
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn characters(lines: &[&str]) -> usize {
    lines.iter().map(|line| line.chars().count()).sum()
}

/// Runs of lines that are not blank.
fn passages(lines: &[&str]) -> Vec<std::ops::Range<usize>> {
    let mut passages: Vec<std::ops::Range<usize>> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if is_blank(line) {
            continue;
        }
        match passages.last_mut() {
            Some(last) if last.end == index => last.end += 1,
            _ => passages.push(index..index + 1),
        }
    }
    passages
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_longest_passage_loses_its_oldest_lines_first() {
        let feedback = Cuttable::new("aa\nbb\n\ncccc\ndddd\neeee\n\nff");
        let texts: Vec<String> = (0..=3).map(|cuts| feedback.without(cuts).0).collect();
        assert_eq!(
            texts,
            [
                "aa\nbb\n\ncccc\ndddd\neeee\n\nff",
                "aa\nbb\n\n[… 4 characters left out …]\ndddd\neeee\n\nff",
                "aa\nbb\n\n[… 8 characters left out …]\neeee\n\nff",
                // Both are four characters long now.
                "[… 2 characters left out …]\nbb\n\n[… 8 characters left out …]\neeee\n\nff",
            ]
        );
    }

    #[test]
    fn neighbouring_cuts_share_a_mark() {
        let feedback = Cuttable::new("a\n\nb\n\n\nc");
        assert_eq!(feedback.without(2).0, "[… 2 characters left out …]\n\n\nc");
        assert_eq!(feedback.without(3).0, "[… 3 characters left out …]");
        assert_eq!(
            feedback.without(3).1,
            LeftOut {
                lines: 3,
                characters: 3
            }
        );
    }

    #[test]
    fn no_feedback_has_nothing_to_cut() {
        assert_eq!(Cuttable::new("").steps(), 0);
        assert_eq!(Cuttable::new("\n \n").steps(), 0);
    }

    proptest! {
        #[test]
        fn every_character_is_kept_or_counted(
            lines in prop::collection::vec("[a-zé ]{0,12}", 0..20), cuts in 0usize..24,
        ) {
            let text = lines.join("\n");
            let feedback = Cuttable::new(&text);
            let (kept, left_out) = feedback.without(cuts);
            let marked = |line: &&str| line.starts_with('[');
            let kept_lines: Vec<&str> = kept.lines().filter(|line| !marked(line)).collect();
            let written = |line: &&&str| !line.trim().is_empty();
            let all: Vec<&str> = text.lines().collect();
            let total = all.iter().filter(written).count();
            prop_assert_eq!(total, feedback.steps());
            prop_assert_eq!(left_out.lines, cuts.min(total));
            prop_assert_eq!(kept_lines.iter().filter(written).count() + left_out.lines, total);
            let count = |lines: &[&str]| lines.iter().filter(written).map(|line| line.chars().count()).sum::<usize>();
            prop_assert_eq!(count(&kept_lines) + left_out.characters, count(&all));
            prop_assert_eq!(kept.lines().any(|line| marked(&line)), cuts > 0 && total > 0);
            // What is kept stands in its order.
            let mut rest = all.iter();
            prop_assert!(kept_lines.iter().filter(written).all(|line| rest.any(|other| other == line)));
        }
    }
}
