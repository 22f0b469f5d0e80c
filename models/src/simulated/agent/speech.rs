//! How an agent puts things to a customer, in as many words as its temper allows.

use super::temper::Temper;
use crate::simulated::luck::Luck;

/// The agent's way of speaking on one occasion.
#[derive(Debug, Clone, Copy)]
pub(super) struct Voice<'a> {
    temper: &'a Temper,
    luck: Luck,
}

const OPENINGS: [&str; 5] = [
    "Thank you for getting in touch with us about this today. ",
    "Thank you very much for your message and for your patience. ",
    "I appreciate that you took the time to write to us. ",
    "I'm glad to look after this for you. ",
    "Thank you for the information, that makes it easier for me. ",
];

const CLOSINGS: [&str; 4] = [
    " We at the help desk take every request seriously.",
    " It is our aim that you enjoy every ride.",
    " Thank you for being a customer of ours.",
    " We are happy to be of service to you.",
];

impl<'a> Voice<'a> {
    /// The voice for an occasion.
    pub(super) fn new(temper: &'a Temper, luck: Luck) -> Self {
        Self { temper, luck: luck.named("voice") }
    }

    /// Whether the agent keeps this text short.
    fn terse(self) -> bool {
        self.luck.named("terse").uniform() < self.temper.brevity()
    }

    /// A text with pleasantries around it unless the agent is brief.
    pub(super) fn say(self, matter: &str) -> String {
        if self.terse() {
            return matter.to_owned();
        }
        let mut text = String::with_capacity(matter.len() + 140);
        text.push_str(OPENINGS[self.luck.named("opening").pick(OPENINGS.len())]);
        text.push_str(matter);
        if self.luck.named("closing").chance(0.6) {
            text.push_str(CLOSINGS[self.luck.named("closed").pick(CLOSINGS.len())]);
        }
        text
    }

    /// A report of something done, with a recap if the agent sums up, and a question for more.
    pub(super) fn report(self, done: &str, recap: &str) -> String {
        let mut text = self.say(done);
        if self.luck.named("recap").uniform() < self.temper.summarises() {
            text.push_str(" To sum up: ");
            text.push_str(recap);
        }
        text.push_str(" Is there anything else?");
        text
    }
}
