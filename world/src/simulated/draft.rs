//! A prompt as the rewriter edits it: a list of sentences that keeps its layout.

use super::profile::{self, Policy};
use super::text;

/// One sentence with what stands in front of it.
#[derive(Debug, Clone, PartialEq)]
struct Piece {
    /// White space before the sentence, as it was.
    gap: String,
    sentence: String,
    /// What the rewriter takes the sentence to say: policies with signed weights.
    says: Vec<(Policy, f64)>,
}

/// A prompt taken apart into sentences.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Draft {
    pieces: Vec<Piece>,
}

impl Draft {
    /// Takes a prompt apart.
    pub(super) fn new(prompt: &str) -> Self {
        let mut end = 0;
        let pieces = text::sentence_ranges(prompt)
            .into_iter()
            .map(|(start, stop)| {
                let gap = prompt[end..start].to_owned();
                end = stop;
                Piece::new(gap, prompt[start..stop].to_owned())
            })
            .collect();
        Self { pieces }
    }

    /// Puts the prompt together again.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            text.push_str(&piece.gap);
            text.push_str(&piece.sentence);
        }
        text.trim().to_owned()
    }

    /// The number of sentences.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// How strongly the draft asks for a policy: its clearest sentence for it, less its clearest
    /// against it.
    pub(super) fn asks_for(&self, policy: Policy) -> f64 {
        let weights = || {
            self.pieces
                .iter()
                .flat_map(|piece| &piece.says)
                .filter(move |(said, _)| *said == policy)
                .map(|(_, weight)| *weight)
        };
        weights().fold(0.0, f64::max) + weights().fold(0.0, f64::min)
    }

    /// The sentences that speak for or against a policy.
    pub(super) fn about(&self, policy: Policy) -> Vec<usize> {
        self.matching(|piece| piece.says.iter().any(|(said, _)| *said == policy))
    }

    /// The sentences that ask for something.
    pub(super) fn instructions(&self) -> Vec<usize> {
        self.matching(|piece| !piece.says.is_empty())
    }

    /// The sentences that ask for nothing, the opening excepted.
    pub(super) fn fluff(&self) -> Vec<usize> {
        self.matching(|piece| piece.says.is_empty())
            .into_iter()
            .filter(|&index| index > 0)
            .collect()
    }

    fn matching(&self, condition: impl Fn(&Piece) -> bool) -> Vec<usize> {
        self.pieces
            .iter()
            .enumerate()
            .filter(|(_, piece)| condition(piece))
            .map(|(index, _)| index)
            .collect()
    }

    /// A sentence as it stands.
    pub(super) fn sentence(&self, index: usize) -> &str {
        &self.pieces[index].sentence
    }

    /// Puts a sentence at a place, in the layout of its neighbours.
    pub(super) fn insert(&mut self, index: usize, sentence: &str) {
        let index = index.min(self.pieces.len());
        let bullet = index
            .checked_sub(1)
            .and_then(|before| self.pieces.get(before))
            .and_then(|piece| {
                ["- ", "* "]
                    .into_iter()
                    .find(|bullet| piece.sentence.starts_with(bullet))
            });
        let piece = match bullet {
            Some(bullet) => Piece::new("\n".into(), format!("{bullet}{sentence}")),
            None if index == 0 => Piece::new(String::new(), sentence.to_owned()),
            None => Piece::new(" ".into(), sentence.to_owned()),
        };
        if index == 0
            && let Some(first) = self.pieces.first_mut()
            && first.gap.is_empty()
        {
            " ".clone_into(&mut first.gap);
        }
        self.pieces.insert(index, piece);
    }

    /// Adds a sentence at the end.
    pub(super) fn append(&mut self, sentence: &str) {
        self.insert(self.pieces.len(), sentence);
    }

    /// Puts another sentence in the place of one.
    pub(super) fn replace(&mut self, index: usize, sentence: &str) {
        let bullet = ["- ", "* "]
            .into_iter()
            .find(|bullet| self.pieces[index].sentence.starts_with(bullet))
            .unwrap_or("");
        let gap = std::mem::take(&mut self.pieces[index].gap);
        self.pieces[index] = Piece::new(gap, format!("{bullet}{sentence}"));
    }

    /// Takes a sentence out.
    pub(super) fn remove(&mut self, index: usize) {
        let removed = self.pieces.remove(index);
        if let Some(next) = self.pieces.get_mut(index)
            && removed.gap.len() > next.gap.len()
        {
            next.gap = removed.gap;
        }
    }

    /// Moves a sentence to another place.
    pub(super) fn relocate(&mut self, from: usize, to: usize) {
        let sentence = self.pieces[from]
            .sentence
            .trim_start_matches(['-', '*', ' '])
            .to_owned();
        self.remove(from);
        self.insert(to, &sentence);
    }
}

impl Piece {
    fn new(gap: String, sentence: String) -> Self {
        let says = profile::statements(&sentence);
        Self { gap, sentence, says }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_survives_being_taken_apart() {
        for prompt in [
            "You are kind. Be brief.",
            "Rules:\n- Be brief.\n- Never guess.\n\nThank you!",
            "",
            "One line",
        ] {
            assert_eq!(Draft::new(prompt).text(), prompt);
        }
    }

    #[test]
    fn edits_keep_the_layout() {
        let mut draft = Draft::new("Rules:\n- Be brief.\n- Never guess.");
        draft.append("Plan ahead.");
        assert_eq!(draft.text(), "Rules:\n- Be brief.\n- Never guess.\n- Plan ahead.");
        draft.remove(1);
        assert_eq!(draft.text(), "Rules:\n- Never guess.\n- Plan ahead.");
        draft.replace(1, "Do not assume anything.");
        assert_eq!(draft.text(), "Rules:\n- Do not assume anything.\n- Plan ahead.");
        let mut plain = Draft::new("You are kind. Be brief.");
        plain.insert(0, "Never guess.");
        assert_eq!(plain.text(), "Never guess. You are kind. Be brief.");
        plain.relocate(0, 2);
        assert_eq!(plain.text(), "You are kind. Be brief. Never guess.");
    }

    #[test]
    fn sentences_are_understood() {
        let draft = Draft::new("You are kind. Be brief. The sky is blue.");
        assert!(draft.asks_for(Policy::BeBrief) > 0.5);
        assert_eq!(draft.about(Policy::BeBrief), [1]);
        assert_eq!(draft.fluff(), [2]);
    }
}
